/* mma.sync of the kinds f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4: all types, all selectors, against matrices that are
 * assembled from the registers by the manual's formulas (9.7.14.3, 9.7.14.5) and multiplied by
 * block_scaled_reference.c. */
#include "tests/reference/block_scaled_reference.h"
#include "tests/support/harness.h"

#include <stdlib.h>

enum { MOST_K = 64, CASES = 24, WORDS = 12 };

struct form {
    const char *words; /* behind mma.sync.aligned. */
    enum tensor_format fa, fb;
    bool nibbles, half;
    int scales; /* of a row; 0: none */
    enum tensor_scale_format scale;
};

/* A case: registers of all lanes. */
struct input {
    uint32_t a[4][32], b[2][32], c[4][32], scale_a[32], scale_b[32];
};
struct output {
    uint32_t d[4][32];
};
_Static_assert(sizeof(struct input) == WORDS * 128, "as the kernel addresses it");

struct selectors {
    unsigned byte_a, thread_a, byte_b, thread_b;
};

/* Selectors stand in the text, or come in p1, 16 bits each. */
static void kernel(const struct form *f, const struct selectors *constant, char *text, size_t size)
{
    const int registers = f->half ? 2 : 4;
    char *at = text;
    at += snprintf(at, size,
                   "mov.u32 %%r60, %%laneid; mov.u32 %%r61, %%ctaid.x; shl.b32 %%r60, %%r60, 2;\n"
                   "mad.lo.u32 %%r62, %%r61, %d, %%r60; cvt.u64.u32 %%rd1, %%r62; add.u64 %%rd1, %%rd1, %%rd60;\n"
                   "mad.lo.u32 %%r62, %%r61, 512, %%r60; cvt.u64.u32 %%rd2, %%r62; add.u64 %%rd2, %%rd2, %%rd62;\n"
                   "mov.b64 {%%rs1, %%rs2, %%rs3, %%rs4}, %%rd61;\n",
                   WORDS * 128);
    for (int i = 0; i < WORDS; i++)
        at += snprintf(at, size - (size_t)(at - text), "ld.global.b32 %%r%d, [%%rd1+%d];\n", i, i * 128);
    for (int i = 0; i < 4; i++) at += snprintf(at, size - (size_t)(at - text), "mov.b32 %%f%d, %%r%d;\n", i, 6 + i);
    at += snprintf(at, size - (size_t)(at - text), "mma.sync.aligned.%s %s, {%%r0, %%r1, %%r2, %%r3}, {%%r4, %%r5}, %s",
                   f->words, f->half ? "{%r20, %r21}" : "{%f4, %f5, %f6, %f7}",
                   f->half ? "{%r6, %r7}" : "{%f0, %f1, %f2, %f3}");
    if (f->scales != 0 && constant == NULL)
        at += snprintf(at, size - (size_t)(at - text), ", {%%r10}, {%%rs1, %%rs2}, %%r11, {%%rs3, %%rs4}");
    if (f->scales != 0 && constant != NULL)
        at += snprintf(at, size - (size_t)(at - text), ", %%r10, {%u, %u}, {%%r11}, {%u, %u}", constant->byte_a,
                       constant->thread_a, constant->byte_b, constant->thread_b);
    at += snprintf(at, size - (size_t)(at - text), ";\n");
    for (int i = 0; i < registers; i++)
        at += snprintf(at, size - (size_t)(at - text), "st.global.%s [%%rd2+%d], %%%s%d;\n", f->half ? "b32" : "f32",
                       i * 128, f->half ? "r" : "f", f->half ? 20 + i : 4 + i);
}

/* ---- operands ---- */

/* Scales near 1 or anything; elements are any bits, their padding too; C near the products, or anything. */
static void draw(struct test *t, const struct form *f, int manner, struct input *in)
{
    uint32_t *word = &in->a[0][0];
    for (size_t i = 0; i < sizeof *in / 4; i++) word[i] = (uint32_t)rnd(t);
    for (int l = 0; l < 32; l++) {
        if (manner % 3 != 0)
            for (int j = 0; j < 4; j++) {
                const uint32_t middle = f->scale == TENSOR_UE8M0 ? 124 : 0x34;
                in->scale_a[l] = (in->scale_a[l] & ~(255u << 8 * j)) | (middle + (uint32_t)rnd_below(t, 8)) << 8 * j;
                in->scale_b[l] = (in->scale_b[l] & ~(255u << 8 * j)) | (middle + (uint32_t)rnd_below(t, 8)) << 8 * j;
            }
        for (int r = 0; r < 4 && manner % 2 == 0; r++)
            in->c[r][l] = f->half ? in->c[r][l] & 0xbfffbfff
                                  : (in->c[r][l] & 0x807fffff) | (uint32_t)rnd_between(t, 120, 138) << 23;
        for (int r = 0; r < 4 && manner % 4 == 1; r++) /* no NaN and infinities of fp8 */
            in->a[r][l] &= 0xbfbfbfbf, in->b[r / 2][l] &= 0xbfbfbfbf;
    }
}

/* ---- what should come out ---- */

/* Element i of a lane's fragment lies at row and k. */
static void place_a(const struct form *f, int lane, int i, int *row, int *k)
{
    const int each = f->nibbles ? 8 : 4, r = i / each;
    *row = r == 0 || r == 2 ? lane >> 2 : (lane >> 2) + 8;
    *k = lane % 4 * each + i % each + (r < 2 ? 0 : 4 * each);
}
static void place_b(const struct form *f, int lane, int i, int *col, int *k)
{
    const int each = f->nibbles ? 8 : 4;
    *col = lane >> 2;
    *k = lane % 4 * each + i % each + (i < each ? 0 : 4 * each);
}

static uint32_t element(const struct form *f, uint32_t word, int i, enum tensor_format format)
{
    if (f->nibbles) return word >> 4 * (i % 8) & 15;
    const uint32_t byte = word >> 8 * (i % 4) & 255;
    return format == TENSOR_E2M1 ? byte >> 2 & 15 : format == TENSOR_E3M2 || format == TENSOR_E2M3 ? byte & 63 : byte;
}

static void compare(struct test *t, const struct form *f, const struct selectors *s, const struct input *in,
                    const struct output *out)
{
    const int k = f->nibbles ? 64 : 32;
    uint32_t a[16][MOST_K], b[8][MOST_K], scale_a[16][4], scale_b[8][4];
    int row, col, at;
    for (int l = 0; l < 32; l++) {
        for (int i = 0; i < k / 2; i++)
            place_a(f, l, i, &row, &at), a[row][at] = element(f, in->a[i / (k / 8)][l], i, f->fa);
        for (int i = 0; i < k / 4; i++)
            place_b(f, l, i, &col, &at), b[col][at] = element(f, in->b[i / (k / 8)][l], i, f->fb);
    }
    for (int m = 0; m < 16; m++)
        for (int j = 0; j < 4; j++)
            scale_a[m][j] =
                in->scale_a[4 * (m % 8) + 2 * (int)s->thread_a + m / 8] >> (8 * ((int)s->byte_a + j) & 31) & 255;
    for (int n = 0; n < 8; n++)
        for (int j = 0; j < 4; j++)
            scale_b[n][j] = in->scale_b[4 * n + (int)s->thread_b] >> (8 * ((int)s->byte_b + j) & 31) & 255;
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            row = i < 2 ? l >> 2 : (l >> 2) + 8, col = l % 4 * 2 + (i & 1);
            const uint32_t c = f->half ? in->c[i / 2][l] >> 16 * (i % 2) & 0xffff : in->c[i][l];
            const uint32_t got = f->half ? out->d[i / 2][l] >> 16 * (i % 2) & 0xffff : out->d[i][l];
            const uint32_t want =
                f->nibbles ? block_model_fp4(a[row], b[col], f->scale, scale_a[row], scale_b[col], k, k / f->scales, c)
                           : block_model_bytes(f->fa, a[row], f->fb, b[col], f->scales != 0 ? scale_a[row][0] : 127,
                                               f->scales != 0 ? scale_b[col][0] : 127, k, f->half, c);
            if (got != want)
                FAIL(t, "%s {%u, %u}, {%u, %u}: d[%d][%d] is 0x%x, not 0x%x", f->words, s->byte_a, s->thread_a,
                     s->byte_b, s->thread_b, row, col, got, want);
        }
}

static void check(struct test *t, const char *device, const struct form *f, const struct selectors *s, bool constant)
{
    static struct input in[CASES];
    static struct output out[CASES];
    char text[4096];
    struct sim sim;
    kernel(f, constant ? s : NULL, text, sizeof text);
    if (!sim_open(t, &sim, device, text)) return;
    for (int n = 0; n < CASES; n++) draw(t, f, n, &in[n]);
    const uint64_t packed = s->byte_a | s->thread_a << 16 | (uint64_t)s->byte_b << 32 | (uint64_t)s->thread_b << 48;
    const uint64_t parameters[3] = { sim_buffer(&sim, in, sizeof in), packed, sim_buffer(&sim, out, sizeof out) };
    sim_launch(t, &sim, "k", CASES, 32, parameters, 3);
    sim_read(&sim, parameters[2], out, sizeof out);
    for (int n = 0; n < CASES; n++) compare(t, f, s, &in[n], &out[n]);
    sim_close(&sim);
}

static const char *const names[] = { "e4m3", "e5m2", "e3m2", "e2m3", "e2m1" };
static const enum tensor_format formats[] = { TENSOR_E4M3, TENSOR_E5M2, TENSOR_E3M2, TENSOR_E2M3, TENSOR_E2M1 };
static const char *const consumers[] = { "sm_120a", "sm_121a" };

static void all_pairs_of_types(struct test *t)
{
    for (int n = 0; n < 150; n++) {
        const int x = n % 5, y = n / 5 % 5, manner = n / 25 % 3; /* without scales to f32, to f16; with scales */
        char words[128];
        const char *const d = manner == 1 ? "f16" : "f32", *const tail = manner == 2 ? ".ue8m0" : "";
        const char *const kind = manner != 2  ? ".kind::f8f6f4"
                                 : n % 2 == 0 ? ".kind::mxf8f6f4.block_scale"
                                              : ".kind::mxf8f6f4.block_scale.scale_vec::1X";
        if (n < 75)
            snprintf(words, sizeof words, "m16n8k32.row.col%s.%s.%s.%s.%s%s", kind, d, names[x], names[y], d, tail);
        else
            snprintf(words, sizeof words, "%s.m16n8k32.row.col.%s.%s.%s.%s%s", kind + 1, d, names[x], names[y], d,
                     tail);
        const struct form f = { words, formats[x], formats[y], false, manner == 1, manner == 2, TENSOR_UE8M0 };
        const struct selectors s = { (unsigned)n % 4, (unsigned)n / 4 % 2, (unsigned)n / 8 % 4, (unsigned)n / 2 % 4 };
        check(t, consumers[n % 2], &f, &s, n % 3 != 0);
    }
}

/* Of fp8 alone it is the other fp8 instruction, by another name: ptxas makes the same code of both. */
static void sm_100_has_fp8_alone(struct test *t)
{
    for (int n = 0; n < 2; n++) {
        char text[2][4096];
        uint32_t d[2][CASES * 128];
        static struct input in[CASES];
        struct form f = {
            "m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32", TENSOR_E4M3, TENSOR_E5M2, false, false, 0, TENSOR_UE8M0
        };
        for (int i = 0; i < CASES; i++) draw(t, &f, i, &in[i]);
        kernel(&f, NULL, text[0], sizeof text[0]);
        f.words = "m16n8k32.row.col.f32.e4m3.e5m2.f32";
        kernel(&f, NULL, text[1], sizeof text[1]);
        for (int i = 0; i < 2; i++) {
            struct sim sim;
            if (!sim_open(t, &sim, n == 0 ? "sm_100a" : "sm_103a", text[i])) continue;
            const uint64_t parameters[3] = { sim_buffer(&sim, in, sizeof in), 0, sim_buffer(&sim, d[i], sizeof d[i]) };
            sim_launch(t, &sim, "k", CASES, 32, parameters, 3);
            sim_read(&sim, parameters[2], d[i], sizeof d[i]);
            sim_close(&sim);
        }
        CHECK(t, memcmp(d[0], d[1], sizeof d[0]) == 0);
    }
}

static void all_selectors(struct test *t)
{
    static const struct form forms[] = {
        { "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0", TENSOR_E4M3, TENSOR_E2M1,
          false, false, 1, TENSOR_UE8M0 },
        { "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1,
          true, false, 2, TENSOR_UE8M0 },
        { "kind::mxf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1, true, false, 2,
          TENSOR_UE8M0 },
        { "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1,
          true, false, 2, TENSOR_UE8M0 },
        { "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", TENSOR_E2M1, TENSOR_E2M1,
          true, false, 4, TENSOR_UE4M3 },
        { "kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3", TENSOR_E2M1, TENSOR_E2M1,
          true, false, 4, TENSOR_UE4M3 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const unsigned step = (unsigned)forms[i].scales;
        for (unsigned n = 0; n < 128; n++) {
            const struct selectors s = { n % 4, n / 4 % 2, n / 8 % 4, n / 32 };
            if (s.byte_a % step == 0 && s.byte_b % step == 0)
                check(t, consumers[n / 8 % 2], &forms[i], &s, n % 2 != 0 || step == 4);
        }
    }
}

/* Which lane and byte: examples worked out by hand from the manual's figures. */
static void the_named_lane_gives_the_scale(struct test *t)
{
    static const struct {
        int a, row, lane;
        struct selectors s;
        unsigned byte;
    } examples[] = {
        { 1, 5, 22, { 2, 1, 0, 0 }, 2 }, { 1, 13, 23, { 2, 1, 0, 0 }, 2 }, { 0, 6, 27, { 0, 0, 1, 3 }, 1 },
        { 1, 9, 5, { 3, 0, 0, 0 }, 3 },  { 0, 0, 2, { 0, 0, 0, 2 }, 0 },
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        static const struct form f = { "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0",
                                       TENSOR_E4M3,
                                       TENSOR_E4M3,
                                       false,
                                       false,
                                       1,
                                       TENSOR_UE8M0 };
        char text[4096];
        struct sim sim;
        struct input in;
        struct output out;
        memset(&in, 0, sizeof in);
        for (int l = 0; l < 32; l++) {
            for (int r = 0; r < 4; r++) in.a[r][l] = in.b[r / 2][l] = 0x38383838; /* 1 */
            in.scale_a[l] = in.scale_b[l] = 0x7f7f7f7f;
        }
        (examples[i].a ? in.scale_a : in.scale_b)[examples[i].lane] ^= 1u << 8 * examples[i].byte; /* 1/2 */
        kernel(&f, &examples[i].s, text, sizeof text);
        if (!sim_open(t, &sim, "sm_120a", text)) continue;
        const uint64_t parameters[3] = { sim_buffer(&sim, &in, sizeof in), 0, sim_buffer(&sim, &out, sizeof out) };
        sim_launch(t, &sim, "k", 1, 32, parameters, 3);
        sim_read(&sim, parameters[2], &out, sizeof out);
        for (int l = 0; l < 32; l++)
            for (int r = 0; r < 4; r++) {
                const int row = (l >> 2) + r / 2 * 8, col = l % 4 * 2 + r % 2;
                const float want = (examples[i].a ? row : col) == examples[i].row ? 16 : 32;
                float got;
                memcpy(&got, &out.d[r][l], 4);
                if (got != want)
                    FAIL(t, "example %zu: d[%d][%d] is %g, not %g", i, row, col, (double)got, (double)want);
            }
        sim_close(&sim);
    }
}

/* Plain fp32 in place of the model: products of small integers are exact in both. */
static void plain_sums(struct test *t)
{
    static const struct form forms[] = {
        { "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e5m2.f32.ue8m0", TENSOR_E2M1, TENSOR_E5M2, false, false,
          1, TENSOR_UE8M0 },
        { "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1, true, false, 2,
          TENSOR_UE8M0 },
    };
    for (int i = 0; i < 2; i++) {
        struct input in;
        struct output out;
        char text[4096];
        struct sim sim;
        const struct selectors s = { 0, 0, 0, 0 };
        for (int l = 0; l < 32; l++) {
            for (int r = 0; r < 4; r++) in.a[r][l] = (uint32_t)rnd(t), in.c[r][l] = 0x41800000;
            for (int r = 0; r < 2; r++)
                in.b[r][l] = i == 0 ? ((uint32_t)rnd(t) & 0x80808080) | 0x3c3c3c3c : (uint32_t)rnd(t);
            in.scale_a[l] = 0x80818081, in.scale_b[l] = 0x80808080;
        }
        in.scale_a[8] = in.scale_b[12] = UINT32_MAX; /* row 2 and column 3 are no numbers */
        kernel(&forms[i], &s, text, sizeof text);
        if (!sim_open(t, &sim, "sm_120a", text)) continue;
        sim.machine.options.tensor_core = TENSOR_MODE_FP32;
        const uint64_t parameters[3] = { sim_buffer(&sim, &in, sizeof in), 0, sim_buffer(&sim, &out, sizeof out) };
        sim_launch(t, &sim, "k", 1, 32, parameters, 3);
        sim_read(&sim, parameters[2], &out, sizeof out);
        compare(t, &forms[i], &s, &in, &out);
        CHECK(t, out.d[0][8] == 0x7fffffff && out.d[1][1] == 0x7fffffff && out.d[0][0] != 0x7fffffff);
        sim_close(&sim);
    }
}

/* ---- reports: a wrong kernel, and its correct twin ---- */

static void mistakes_are_reported(struct test *t)
{
    static const struct form byte = { "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0",
                                      TENSOR_E4M3,
                                      TENSOR_E4M3,
                                      false,
                                      false,
                                      1,
                                      TENSOR_UE8M0 };
    static const struct form nibble = { "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
                                        TENSOR_E2M1,
                                        TENSOR_E2M1,
                                        true,
                                        false,
                                        2,
                                        TENSOR_UE8M0 };
    static const struct form wide = {
        "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        TENSOR_E2M1,
        TENSOR_E2M1,
        true,
        false,
        4,
        TENSOR_UE4M3
    };
    static const struct {
        const struct form *form;
        const char *before;
        uint64_t selectors;
        const char *sentence;
    } planted[] = {
        { &byte, "", 0x0003000300010003, NULL },
        { &byte, "", 0x0000000000000004, "selects byte 4 of the scales of A; with .scale_vec::1X it may be 0 to 3" },
        { &byte, "", 0x0000000000020000, "selects thread 2 for the scales of A; it may be 0 or 1" },
        { &byte, "", 0x0000000400000000, "selects byte 4 of the scales of B" },
        { &byte, "", 0x0004000000000000, "selects thread 4 for the scales of B; it may be 0 to 3" },
        { &byte, "", 0xffff000000000000, "selects thread 65535 for the scales of B" },
        { &byte, "cvt.u16.u32 %rs3, %r60;", 0,
          "has a byte selector of B that is not the same in all lanes: 4 here, 0 in lane 0" },
        { &byte, "setp.eq.u32 %p1, %r60, 8; selp.b16 %rs2, 1, 0, %p1;", 0,
          "has a thread selector of A that is not the same in all lanes" },
        { &byte, "setp.eq.u32 %p1, %r60, 8; @%p1 exit;", 0, "is executed by the lanes 0xfffffffb alone" },
        { &nibble, "", 0x0003000200010002, NULL },
        { &nibble, "", 0x0000000000000001, "selects byte 1 of the scales of A; with .scale_vec::2X it may be 0 or 2" },
        { &nibble, "", 0x0000000300000000, "selects byte 3 of the scales of B; with .scale_vec::2X it may be 0 or 2" },
        { &wide, "", 0x0003000000010000, NULL },
        { &wide, "", 0x0000000000000002, "selects byte 2 of the scales of A; with .scale_vec::4X it may be 0" },
    };
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        static struct input in;
        static struct output out;
        char text[4096], whole[8192];
        struct sim sim;
        kernel(planted[i].form, NULL, text, sizeof text);
        char *const mma = strstr(text, "mma.sync");
        snprintf(whole, sizeof whole, "%.*s%s%s", (int)(mma - text), text, planted[i].before, mma);
        if (!sim_open(t, &sim, "sm_120a", whole)) continue;
        const uint64_t parameters[3] = { sim_buffer(&sim, &in, sizeof in), planted[i].selectors,
                                         sim_buffer(&sim, &out, sizeof out) };
        const bool ran = sim_run(&sim, "k", 1, 32, 0, parameters, 3);
        if (ran != (planted[i].sentence == NULL)) FAIL(t, "kernel %zu: %s", i, ran ? "no report" : sim.report.sentence);
        else if (!ran && strstr(sim.report.sentence, planted[i].sentence) == NULL)
            FAIL(t, "kernel %zu: %s", i, sim.report.sentence);
        sim_close(&sim);
    }
}

#define DABC  " {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f4,%f5,%f6,%f7}"
#define S1X   "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0" DABC
#define S2X   "m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC
#define S4X   "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3" DABC
#define ZEROS ", %r6, {0, 0}, %r7, {0, 0};"

/* Every one of them is refused by ptxas 13.0, too. */
static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const struct {
        const char *device, *form;
    } refused[] = {
        { "sm_90a", S1X ZEROS },
        { "sm_100a", S1X ZEROS },
        { "sm_103a", S2X ZEROS },
        { "sm_100a", S4X ZEROS },
        { "sm_90a", "m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32" DABC ";" },
        { "sm_100a", "m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32" DABC ";" },
        { "sm_103a", "m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e3m2.f32" DABC ";" },
        { "sm_120a", "m16n8k32.row.col.f32.e4m3.e2m1.f32" DABC ";" },
        { "sm_120a", "m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32" DABC ";" },
        { "sm_120a", S1X ";" },
        { "sm_120a", S1X ", %r6, %r7;" },
        { "sm_120a", S1X ", %r6, {4, 0}, %r7, {0, 0};" },
        { "sm_120a", S1X ", %r6, {0, 2}, %r7, {0, 0};" },
        { "sm_120a", S1X ", %r6, {0, 0}, %r7, {-1, 0};" },
        { "sm_120a", S1X ", %r6, {0, 0}, %r7, {0, 4};" },
        { "sm_120a", S1X ", %r6, {%r1, 0}, %r7, {0, 0};" },
        { "sm_120a", S1X ", 1, {0, 0}, %r7, {0, 0};" },
        { "sm_120a", S1X ", {%r6, %r7}, {0, 0}, %r7, {0, 0};" },
        { "sm_120a", S2X ", %r6, {1, 0}, %r7, {0, 0};" },
        { "sm_120a", S2X ", %r6, {0, 0}, %r7, {3, 0};" },
        { "sm_120a", S4X ", %r6, {2, 0}, %r7, {0, 0};" },
        { "sm_120a", "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::2X.f32.e4m3.e4m3.f32.ue8m0" DABC ZEROS },
        { "sm_120a", "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue4m3" DABC ZEROS },
        { "sm_120a", "m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::1X.f32.e2m1.e2m1.f32.ue8m0" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf4.block_scale.f32.e4m3.e2m1.f32.ue8m0" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue4m3" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0" DABC ZEROS },
        { "sm_120a", "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3" DABC ZEROS },
        { "sm_120a", "m16n8k32.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3" DABC ZEROS },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim sim;
        char text[512];
        snprintf(text, sizeof text, "mma.sync.aligned.%s", refused[i].form);
        sim_refused(t, &sim, refused[i].device, text);
    }
}

/* ptxas 13.0 takes these, of fp8 alone, as if no kind were written; the manual has no such form. */
static void kinds_with_scales_need_scales(struct test *t)
{
    static const char *const forms[] = {
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.f32.e4m3.e4m3.f32" DABC ";",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf4.f32.e4m3.e4m3.f32" DABC ";",
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf4nvf4.f32.e4m3.e4m3.f32" DABC ";",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct sim sim;
        sim_refused(t, &sim, "sm_120a", forms[i]);
    }
}

/* ptxas takes the words in any order. */
static void words_stand_in_any_order(struct test *t)
{
    static const char *const orders[] = {
        "m16n8k32.kind::mxf8f6f4.block_scale.row.col.f32.e4m3.e5m2.f32.ue8m0",
        "m16n8k32.row.col.block_scale.kind::mxf8f6f4.f32.e4m3.e5m2.f32.ue8m0",
        "m16n8k32.row.col.kind::mxf8f6f4.scale_vec::1X.block_scale.f32.e4m3.e5m2.f32.ue8m0",
        "m16n8k32.row.col.f32.e4m3.e5m2.f32.ue8m0.kind::mxf8f6f4.block_scale",
        "kind::mxf8f6f4.m16n8k32.row.col.block_scale.f32.e4m3.e5m2.f32.ue8m0",
    };
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        const struct form f = { orders[i], TENSOR_E4M3, TENSOR_E5M2, false, false, 1, TENSOR_UE8M0 };
        const struct selectors s = { 1, 1, 2, 3 };
        check(t, "sm_120a", &f, &s, true);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(all_pairs_of_types),
        TEST(sm_100_has_fp8_alone),
        TEST(all_selectors),
        TEST(the_named_lane_gives_the_scale),
        TEST(plain_sums),
        TEST(mistakes_are_reported),
        TEST(forms_that_do_not_exist_are_refused),
        TEST(kinds_with_scales_need_scales),
        TEST(words_stand_in_any_order),
    };
    return TEST_MAIN(argc, argv, cases);
}
