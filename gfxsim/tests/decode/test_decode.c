/* Every row against LLVM: random operand bits under the row's opcode are decoded and printed here and by llvm-mc, which
 * must agree in whether it is an instruction, how long it is, and in its text.  Without llvm-mc the test is skipped. */
#include "decode/decode.h"
#include "support/draw.h"

#include <stdlib.h>
#include <unistd.h>

#ifndef GFXSIM_LLVM_MC
#define GFXSIM_LLVM_MC ""
#endif

struct sample { uint32_t word[4]; const struct row *row; char text[INSTRUCTION_TEXT]; uint32_t bytes; };
enum { SAMPLES_A_ROW = 24, MOST_SAMPLES = 30000 };

/* llvm-mc's text of all samples: a line each, in order.  It says on stderr what is none, so there each sample is a
 * section of its own, told apart by a marker instruction in front (s_nop with a number). */
static bool ask(struct test *t, const struct sample *s, int count, char **answers)
{
    char in[] = "/tmp/gfxsim_decode_XXXXXX", command[512];
    const int fd = mkstemp(in);
    if (fd < 0) {
        FAIL(t, "no temporary file");
        return false;
    }
    FILE *f = fdopen(fd, "w");
    for (int i = 0; i < count; i++) {
        fprintf(f, "0x%02x 0x%02x 0x8d 0xbf\n", (unsigned)i & 255, (unsigned)i >> 8);
        for (uint32_t b = 0; b < s[i].bytes; b++) fprintf(f, "0x%02x ", s[i].word[b / 4] >> 8 * (b % 4) & 255);
        fprintf(f, "\n");
    }
    fclose(f);
    snprintf(command, sizeof command, "%s -triple=amdgcn-amd-amdhsa -mcpu=gfx950 --disassemble %s 2>/dev/null",
             GFXSIM_LLVM_MC, in);
    FILE *p = popen(command, "r");
    char line[512];
    int at = -1;
    while (p != NULL && fgets(line, sizeof line, p) != NULL) {
        unsigned number;
        if (sscanf(line, " s_sethalt %i", (int *)&number) == 1) {
            at = (int)number;
            continue;
        }
        char *text = line + strspn(line, " \t");
        text[strcspn(text, "\n")] = '\0';
        if (*text == '\0' || *text == '.' || at < 0 || at >= count) continue;
        if (answers[at] == NULL) answers[at] = strdup(text);
    }
    const int status = p == NULL ? -1 : pclose(p);
    unlink(in);
    return status >= 0 && at >= 0;
}

/* Spaces in front of commas and the comment behind are not part of it. */
static void clean(char *text)
{
    char *comment = strstr(text, " //");
    if (comment != NULL) *comment = '\0';
    for (size_t n = strlen(text); n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'); n--) text[n - 1] = '\0';
    for (char *c = text; *c != '\0'; c++) if (*c == '\t') *c = ' ';
}

/* llvm-mc refuses fewer than 8 registers where 8 would not fit: its decoder takes them for 8 first. */
static bool short_tuple_at_the_end(const struct insn *in)
{
    return in->encoding == FORMAT_MFMA && (in->row->detail & 1) != 0
           && (in->operand[1].index > 248 || in->operand[2].index > 248);
}

static void rows_agree_with_llvm(struct test *t)
{
    if (access(GFXSIM_LLVM_MC, X_OK) != 0) {
        test_skip(t, "no llvm-mc that knows gfx950");
        return;
    }
    struct sample *s = calloc(MOST_SAMPLES, sizeof *s);
    char **answer = calloc(MOST_SAMPLES, sizeof *answer);
    int count = 0, rows = 0, wrong = 0, unseen = 0;
    for (size_t i = 0; i < instruction_family_count; i++)
        for (size_t k = 0; k < instruction_families[i]->count; k++) {
            const struct row *r = &instruction_families[i]->rows[k];
            rows++;
            for (int n = 0, made = 0; n < 4000 && made < SAMPLES_A_ROW && count < MOST_SAMPLES; n++) {
                struct insn in;
                draw_instruction(t, instruction_families[i], r, s[count].word, n);
                s[count].row = r;
                if (!decode(&in, (const uint8_t *)s[count].word, sizeof s[count].word, 0) || in.row != r) continue;
                if (short_tuple_at_the_end(&in)) continue;
                s[count].bytes = in.bytes;
                instruction_text(&in, s[count].text);
                made++, count++;
            }
            if (count == 0 || s[count - 1].row != r) {
                unseen++;
                FAIL(t, "%s: no bits were found that decode to it", r->name);
            }
        }
    if (!ask(t, s, count, answer)) FAIL(t, "llvm-mc gave nothing");
    for (int i = 0; i < count; i++) {
        if (answer[i] != NULL) clean(answer[i]);
        if (answer[i] == NULL || strcmp(answer[i], s[i].text) != 0) {
            wrong++;
            if (getenv("GFXSIM_ALL") != NULL || wrong < 10)
                printf("%08x %08x %08x %08x: here \"%s\", LLVM \"%s\"\n", s[i].word[0], s[i].word[1], s[i].word[2],
                       s[i].word[3], s[i].text, answer[i] == NULL ? "(nothing)" : answer[i]);
        }
        free(answer[i]);
    }
    if (wrong != 0) FAIL(t, "%d of %d samples of %d rows differ", wrong, count, rows);
    if (rows < 250 || count < 20 * rows) FAIL(t, "%d rows with %d samples: hardly any", rows, count);
    free(answer);
    free(s);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(rows_agree_with_llvm) };
    return TEST_MAIN(argc, argv, cases);
}
