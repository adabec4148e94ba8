/* Random instructions are executed: nothing crashes, and what ends a kernel is a report with a sentence.  GFXSIM_RANDOM
 * says how many thousand instructions (1000). */
#include "decode/decode.h"
#include "support/draw.h"
#include "support/object.h"
#include "support/simulate.h"

#include <stdlib.h>

enum { WORDS = 6000 };

static const struct row *any_row(struct test *t, const struct family **family)
{
    for (;;) {
        *family = instruction_families[rnd_below(t, (int64_t)instruction_family_count)];
        const struct row *r = &(*family)->rows[rnd_below(t, (int64_t)(*family)->count)];
        const enum format f = (*family)->format;
        const bool memory = f == FORMAT_SMEM || f >= FORMAT_DS;
        /* what mostly ends a kernel comes seldom */
        const bool exchanges = strncmp(r->name, "v_permlane", 10) == 0 || r->flags & ROW_SCALAR_LANE;
        const bool modes = (f == FORMAT_SOPK && r->opcode > 16) || strcmp(r->name, "s_setvskip") == 0
                           || (r->flags & ROW_WRITES_EXEC) != 0;
        if ((memory || exchanges || modes || f == FORMAT_SOPP || f == FORMAT_MFMA) && rnd_below(t, 64) != 0) continue;
        return r;
    }
}

static size_t draw_program(struct test *t, uint32_t *word)
{
    size_t at = 0;
    for (int n = 0; at + 8 < WORDS; n++) {
        struct insn in;
        const struct family *family;
        uint32_t drawn[4];
        const struct row *r = any_row(t, &family);
        draw_instruction(t, family, r, drawn, (int)rnd_below(t, 12));
        const bool known = decode(&in, (const uint8_t *)drawn, sizeof drawn, 0);
        if (!known && rnd_below(t, 2000) != 0) continue;
        if (in.row != NULL && rnd_below(t, 256) != 0
            && (in.row->run == NULL || strcmp(in.row->name, "s_endpgm") == 0
                || strncmp(in.row->name, "s_setpc", 7) == 0))
            continue;
        const size_t words = in.bytes / 4 == 0 ? 1 : in.bytes / 4;
        memcpy(word + at, drawn, 4 * words);
        at += words;
    }
    word[at++] = 0xbf810000;
    return at;
}

static uint64_t run_one(struct test *t, struct simulation *s, uint8_t *file, uint32_t *word)
{
    const size_t bytes = object_build(file, word, draw_program(t, word));
    memset(file + 256 + 44, 63, 1);                                       /* all 512 registers */
    memset(file + 256 + 48, 63, 1);
    struct machine_options o = test_options();
    o.check_uninitialised = rnd_below(t, 8) == 0;
    o.check_hazards = rnd_below(t, 8) == 0;
    o.rounding = (enum rounding)rnd_below(t, 3);
    o.seed = rnd(t), o.step_limit = 20000;
    uint64_t steps = 0;
    if (simulation_open(s, t, file, bytes, &o)) {
        const uint64_t arguments[2] = { simulation_put(s, NULL, 4096), simulation_put(s, NULL, 4096) };
        const bool ok = simulation_run(s, "k", 1, 64, 0, arguments, sizeof arguments);
        if (!ok && (s->report.code == REPORT_NONE || strlen(s->report.sentence) < 10))
            FAIL(t, "a report without a sentence");
        if (!ok && strncmp(s->report.text, "gfxsim: ", 8) != 0) FAIL(t, "a report without a text");
        steps = s->machine.steps - 256;                                   /* what the wave's start counts */
    }
    simulation_close(s);
    return steps;
}

static void random_instructions_do_not_crash(struct test *t)
{
    const char *wanted = getenv("GFXSIM_RANDOM");
    const uint64_t most = (wanted == NULL ? 1000 : strtoull(wanted, NULL, 10)) * 1000;
    uint8_t *file = malloc(OBJECT_MOST);
    uint32_t *word = malloc(WORDS * sizeof *word);
    struct simulation s;
    uint64_t steps = 0, runs = 0;
    while (file != NULL && word != NULL && steps < most && runs < most / 4) steps += run_one(t, &s, file, word), runs++;
    if (steps < most)
        FAIL(t, "%llu runs executed %llu instructions only", (unsigned long long)runs, (unsigned long long)steps);
    free(file);
    free(word);
}

/* Words that are nothing but random, too. */
static void random_words_do_not_crash(struct test *t)
{
    struct insn in;
    char text[INSTRUCTION_TEXT];
    uint32_t known = 0;
    for (int i = 0; i < 400000; i++) {
        const uint32_t word[4] = { (uint32_t)rnd(t), (uint32_t)rnd(t), (uint32_t)rnd(t), (uint32_t)rnd(t) };
        known += decode(&in, (const uint8_t *)word, 4u * (uint32_t)rnd_between(t, 1, 4), 0);
        instruction_text(&in, text);
    }
    CHECK(t, known > 10000);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(random_instructions_do_not_crash), TEST(random_words_do_not_crash) };
    return TEST_MAIN(argc, argv, cases);
}
