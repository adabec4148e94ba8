/* Every row against LLVM: random operand bits under the row's opcode are decoded and printed here and by llvm-mc, which
 * must agree in whether it is an instruction, how long it is, and in its text.  Without llvm-mc the test is skipped. */
#include "decode/decode.h"
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#ifndef GFXSIM_LLVM_MC
#define GFXSIM_LLVM_MC ""
#endif

struct sample { uint32_t word[4]; const struct row *row; char text[INSTRUCTION_TEXT]; uint32_t bytes; };
enum { SAMPLES_A_ROW = 24, MOST_SAMPLES = 20000 };

/* The bits that make it this row; the rest is drawn. */
static void draw(struct test *t, const struct family *f, const struct row *r, struct sample *s, int number)
{
    for (int i = 0; i < 4; i++) s->word[i] = (uint32_t)rnd(t);
    uint32_t w = s->word[0];
    const uint32_t op = r->opcode;
    static const uint32_t constants[] = { 128, 129, 160, 193, 200, 240, 242, 247, 255, 106, 124, 126, 0, 2, 4, 100 };
    const uint32_t c = constants[rnd_below(t, 16)];
    const bool long_form = number % 2 == 1;
    switch (f->format) {
    case FORMAT_SOP2: w = (w & 0x7fffff) | 2u << 30 | op << 23; if (number % 3 == 0) w = (w & ~0xffu) | c; break;
    case FORMAT_SOPK: w = (w & 0x7fffff) | 0xbu << 28 | op << 23; break;
    case FORMAT_SOP1: w = (w & 0x7f00ff) | 0x17du << 23 | op << 8; if (number % 3 == 0) w = (w & ~0xffu) | c; break;
    case FORMAT_SOPC: w = (w & 0xffff) | 0x17eu << 23 | op << 16; if (number % 3 == 0) w = (w & ~0xffu) | c; break;
    case FORMAT_SOPP:
        w = 0x17fu << 23 | op << 16 | (r->run != NULL && (op == 10 || op == 19) ? 0 : w & 0xffff);
        break;
    case FORMAT_SMEM:
        w = (w & 0x5fff) | 0x30u << 26 | op << 18 | 1u << 17;             /* GLC is not compared */
        s->word[1] &= 0xfe1fffff;
        if (number % 2 != 0) w &= ~(1u << 14);
        if ((w & 1u << 14) == 0) s->word[1] &= 0x1fffff;
        break;
    case FORMAT_VOP1:
        if (!long_form) w = (*r->operands == '\0' ? 0 : w & 0x1fe01ff) | 0x3fu << 25 | op << 9;
        else w = (w & 0xff) | 0x34u << 26 | (0x140 + op) << 16, s->word[1] &= 0x1ff;
        break;
    case FORMAT_VOP2:
        if (!long_form) w = (w & 0x1ffffff) | op << 25;
        else w = (w & 0xff) | 0x34u << 26 | (0x100 + op) << 16, s->word[1] &= 0x3ffff;
        break;
    case FORMAT_VOPC:
        if (!long_form) w = (w & 0x1ffff) | 0x3eu << 25 | op << 17;
        else w = (w & 0x7f) | 0x34u << 26 | op << 16, s->word[1] &= 0x3ffff;
        break;
    case FORMAT_VOP3: w = (w & 0xff) | 0x34u << 26 | op << 16; s->word[1] &= 0x7ffffff; break;
    case FORMAT_VOP3P:
        w = (w & 0xff) | 0x1a7u << 23 | op << 16 | 1u << 14;
        s->word[1] = (s->word[1] & 0x7ffffff) | 3u << 27;
        if ((r->flags & ROW_PACKED) != 0 && number % 2 == 0) w |= (uint32_t)rnd_below(t, 4) << 11, s->word[1] ^= 1u << 27;
        if ((r->flags & ROW_PACKED) == 0) s->word[1] &= ~0x7fffe00u;
        break;
    case FORMAT_MFMA:
        w = (w & 0x80ff) | 0x1a7u << 23 | op << 16;
        s->word[1] = (s->word[1] & 0x1fffffff) | 0x20100;
        if ((r->detail & 1) != 0)
            w |= (uint32_t)rnd_below(t, 5) << 8, s->word[1] |= (uint32_t)rnd_below(t, 5) << 29;
        if ((r->detail & 1) != 0 && long_form) {
            s->word[2] = w | 1u << 11, s->word[3] = s->word[1];
            w = 0xd3ac0000 | (uint32_t)rnd_below(t, 4) << 11;
            s->word[1] = ((uint32_t)rnd(t) & 0x1fffffff & ~0x7fc0000u) | 0x20100;
        }
        break;
    case FORMAT_DS:
        w = (w & 0xffff) | 0x36u << 26 | op << 17 | (w & 1u << 25);
        if (number % 2 == 0) w &= ~(1u << 25);
        /* fields that nothing uses are zero */
        if (r->operands[0] == 'a') s->word[1] &= strlen(r->operands) < 7 ? 0xffff : 0xffffff;
        else s->word[1] &= strlen(r->operands) < 7 ? 0xff0000ff : 0xff00ffff;
        break;
    case FORMAT_GLOBAL:
        w = (w & 0x2031fff) | 2u << 14 | 0x37u << 26 | op << 18;
        s->word[1] = (s->word[1] & ~(0x7fu << 16)) | (number % 2 == 0 ? 0x7fu << 16 : (uint32_t)rnd_below(t, 48) * 2 << 16);
        if ((r->flags & ROW_TO_LDS) != 0) s->word[1] &= 0x007f00ff;
        break;
    case FORMAT_BUFFER:
        w = (w & 0x2dfff & ~(1u << 16)) | 0x38u << 26 | op << 18;
        const bool to_lds = (r->flags & ROW_TO_LDS) != 0 && number % 3 == 0;
        if (to_lds) w |= 1u << 16, s->word[1] &= ~0x80ff00u;
        s->word[1] = (s->word[1] & ~(0x1fu << 16) & 0xffffff) | (uint32_t)rnd_below(t, 25) << 16
                     | (number % 2 == 0 ? 128u : (uint32_t)rnd_below(t, 100)) << 24;
        break;
    default: break;
    }
    s->word[0] = w;
    s->row = r;
}

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
                draw(t, instruction_families[i], r, &s[count], n);
                if (!decode(&in, (const uint8_t *)s[count].word, sizeof s[count].word, 0) || in.row != r) continue;
                if (in.sdwa || in.dpp || short_tuple_at_the_end(&in)) continue;
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
