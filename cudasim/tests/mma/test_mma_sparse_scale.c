/* mma.sp::ordered_metadata of the kinds f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4: a dense A is made sparse, packed as the
 * manual says (9.7.14.6.2), and the product over its elements must be that of block_scaled_reference.c. */
#include "tests/reference/block_scaled_reference.h"
#include "tests/support/harness.h"

#include <stdlib.h>

enum { MOST_K = 128, CASES = 16, WORDS = 15 };

struct form {
    const char *words; /* behind mma.sp::ordered_metadata.sync.aligned. */
    enum tensor_format fa, fb;
    bool nibbles, half;
    int scales;
    enum tensor_scale_format scale;
};

struct input {
    uint32_t a[4][32], b[4][32], c[4][32], scale_a[32], scale_b[32], metadata[32];
};
struct output {
    uint32_t d[4][32];
};
_Static_assert(sizeof(struct input) == WORDS * 128, "as the kernel addresses it");
struct selectors {
    unsigned byte_a, thread_a, byte_b, thread_b;
};

/* The elements that a row of A has: their columns, in order; 4 of 8 in pairs where two elements are in a byte, else 2
 * of 4. */
struct sparse {
    int column[16][MOST_K / 2];
};

static void kernel(const struct form *f, char *text, size_t size)
{
    const int registers = f->half ? 2 : 4;
    char *at = text, *const end = text + size;
    at += snprintf(at, size,
                   "mov.u32 %%r60, %%laneid; mov.u32 %%r61, %%ctaid.x; shl.b32 %%r60, %%r60, 2;\n"
                   "mad.lo.u32 %%r62, %%r61, %d, %%r60; cvt.u64.u32 %%rd1, %%r62; add.u64 %%rd1, %%rd1, %%rd60;\n"
                   "mad.lo.u32 %%r62, %%r61, 512, %%r60; cvt.u64.u32 %%rd2, %%r62; add.u64 %%rd2, %%rd2, %%rd62;\n"
                   "mov.b64 {%%rs1, %%rs2, %%rs3, %%rs4}, %%rd61;\n",
                   WORDS * 128);
    for (int i = 0; i < WORDS; i++)
        at += snprintf(at, (size_t)(end - at), "ld.global.b32 %%r%d, [%%rd1+%d];\n", i, i * 128);
    for (int i = 0; i < 4; i++) at += snprintf(at, (size_t)(end - at), "mov.b32 %%f%d, %%r%d;\n", i, 8 + i);
    at += snprintf(
        at, (size_t)(end - at),
        "mma.sp::ordered_metadata.sync.aligned.%s %s, {%%r0, %%r1, %%r2, %%r3}, {%%r4, %%r5, %%r6, %%r7}, %s, %%r14, "
        "0x0%s;\n",
        f->words, f->half ? "{%r20, %r21}" : "{%f4, %f5, %f6, %f7}", f->half ? "{%r8, %r9}" : "{%f0, %f1, %f2, %f3}",
        f->scales != 0 ? ", %r12, {%rs1, %rs2}, {%r13}, {%rs3, %rs4}" : "");
    for (int i = 0; i < registers; i++)
        at += snprintf(at, (size_t)(end - at), "st.global.%s [%%rd2+%d], %%%s%d;\n", f->half ? "b32" : "f32", i * 128,
                       f->half ? "r" : "f", f->half ? 20 + i : 4 + i);
}

/* ---- operands ---- */

static void draw(struct test *t, const struct form *f, int manner, struct input *in, struct sparse *s)
{
    static const int legal[6][2] = { { 0, 1 }, { 0, 2 }, { 1, 2 }, { 0, 3 }, { 1, 3 }, { 2, 3 } };
    const int unit = f->nibbles ? 2 : 1, chunks = 16;
    uint32_t *word = &in->a[0][0];
    for (size_t i = 0; i < sizeof *in / 4; i++) word[i] = (uint32_t)rnd(t);
    memset(in->metadata, 0, sizeof in->metadata);
    for (int row = 0; row < 16; row++)
        for (int chunk = 0; chunk < chunks; chunk++) {
            const int *const pair = legal[rnd_below(t, 6)];
            for (int e = 0; e < 2 * unit; e++)
                s->column[row][chunk * 2 * unit + e] = (chunk * 4 + pair[e / unit]) * unit + e % unit;
            in->metadata[row % 8 * 4 + (row < 8 ? 0 : 1) + (chunk < 8 ? 0 : 2)] |= (uint32_t)(pair[0] | pair[1] << 2)
                                                                                   << chunk % 8 * 4;
        }
    for (int l = 0; l < 32; l++) {
        for (int j = 0; j < 4 && manner % 3 != 0; j++) {
            const uint32_t middle = f->scale == TENSOR_UE8M0 ? 124 : 0x34;
            in->scale_a[l] = (in->scale_a[l] & ~(255u << 8 * j)) | (middle + (uint32_t)rnd_below(t, 8)) << 8 * j;
            in->scale_b[l] = (in->scale_b[l] & ~(255u << 8 * j)) | (middle + (uint32_t)rnd_below(t, 8)) << 8 * j;
        }
        for (int r = 0; r < 4 && manner % 2 == 0; r++)
            in->c[r][l] = f->half ? in->c[r][l] & 0xbfffbfff
                                  : (in->c[r][l] & 0x807fffff) | (uint32_t)rnd_between(t, 120, 138) << 23;
        for (int r = 0; r < 4 && manner % 4 == 1; r++) in->a[r][l] &= 0xbfbfbfbf, in->b[r][l] &= 0xbfbfbfbf;
    }
}

/* ---- what should come out ---- */

static uint32_t element(const struct form *f, uint32_t word, int i, enum tensor_format format)
{
    if (f->nibbles) return word >> 4 * i & 15;
    const uint32_t byte = word >> 8 * i & 255;
    return format == TENSOR_E2M1 ? byte >> 2 & 15 : format == TENSOR_E3M2 || format == TENSOR_E2M3 ? byte & 63 : byte;
}

static void compare(struct test *t, const struct form *f, const struct selectors *s, const struct input *in,
                    const struct sparse *sparse, const struct output *out)
{
    const int each = f->nibbles ? 8 : 4, kept = f->nibbles ? 64 : 32;
    uint32_t a[16][MOST_K / 2], b[8][MOST_K], scale_a[16][4], scale_b[8][4];
    for (int l = 0; l < 32; l++)
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < each; i++) {
                a[(l >> 2) + r % 2 * 8][r / 2 * 4 * each + l % 4 * each + i] = element(f, in->a[r][l], i, f->fa);
                b[l >> 2][r * 4 * each + l % 4 * each + i] = element(f, in->b[r][l], i, f->fb);
            }
    for (int j = 0; j < 4; j++) {
        for (int m = 0; m < 16; m++)
            scale_a[m][j] =
                in->scale_a[4 * (m % 8) + 2 * (int)s->thread_a + m / 8] >> (8 * ((int)s->byte_a + j) & 31) & 255;
        for (int n = 0; n < 8; n++)
            scale_b[n][j] = in->scale_b[4 * n + (int)s->thread_b] >> (8 * ((int)s->byte_b + j) & 31) & 255;
    }
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            const int row = i < 2 ? l >> 2 : (l >> 2) + 8, col = l % 4 * 2 + (i & 1);
            const uint32_t c = f->half ? in->c[i / 2][l] >> 16 * (i % 2) & 0xffff : in->c[i][l];
            const uint32_t got = f->half ? out->d[i / 2][l] >> 16 * (i % 2) & 0xffff : out->d[i][l];
            uint32_t x[MOST_K / 2];
            for (int e = 0; e < kept; e++) x[e] = b[col][sparse->column[row][e]];
            const uint32_t want =
                f->nibbles ? block_model_fp4(a[row], x, f->scale, scale_a[row], scale_b[col], kept, kept / f->scales, c)
                           : block_model_bytes(f->fa, a[row], f->fb, x, f->scales != 0 ? scale_a[row][0] : 127,
                                               f->scales != 0 ? scale_b[col][0] : 127, kept, f->half, c);
            if (got != want) FAIL(t, "%s: d[%d][%d] is 0x%x, not 0x%x", f->words, row, col, got, want);
        }
}

static void check(struct test *t, const char *device, const struct form *f, const struct selectors *selectors,
                  int count)
{
    static struct input in[CASES];
    static struct sparse sparse[CASES];
    static struct output out[CASES];
    char text[4096];
    struct sim sim;
    kernel(f, text, sizeof text);
    if (!sim_open(t, &sim, device, text)) return;
    for (int i = 0; i < count; i++) {
        const struct selectors *s = &selectors[i];
        for (int n = 0; n < CASES; n++) draw(t, f, n, &in[n], &sparse[n]);
        const uint64_t packed = s->byte_a | s->thread_a << 16 | (uint64_t)s->byte_b << 32 | (uint64_t)s->thread_b << 48;
        const uint64_t parameters[3] = { sim_buffer(&sim, in, sizeof in), packed, sim_buffer(&sim, out, sizeof out) };
        sim_launch(t, &sim, "k", CASES, 32, parameters, 3);
        sim_read(&sim, parameters[2], out, sizeof out);
        for (int n = 0; n < CASES; n++) compare(t, f, s, &in[n], &sparse[n], &out[n]);
    }
    sim_close(&sim);
}

static const char *const names[] = { "e4m3", "e5m2", "e3m2", "e2m3", "e2m1" };
static const enum tensor_format formats[] = { TENSOR_E4M3, TENSOR_E5M2, TENSOR_E3M2, TENSOR_E2M3, TENSOR_E2M1 };

static void all_pairs_of_types(struct test *t)
{
    for (int n = 0; n < 75; n++) {
        const int x = n % 5, y = n / 5 % 5, manner = n / 25;
        char words[128];
        const char *const d = manner == 1 ? "f16" : "f32";
        snprintf(words, sizeof words, "m16n8k64.row.col.kind::%s.%s.%s.%s.%s%s",
                 manner == 2 ? "mxf8f6f4.block_scale.scale_vec::1X" : "f8f6f4", d, names[x], names[y], d,
                 manner == 2 ? ".ue8m0" : "");
        const struct form f = { words, formats[x], formats[y], false, manner == 1, manner == 2, TENSOR_UE8M0 };
        const struct selectors s = { (unsigned)n % 4, (unsigned)n / 4 % 2, (unsigned)n / 8 % 4, (unsigned)n / 2 % 4 };
        check(t, n % 2 == 0 ? "sm_120a" : "sm_121a", &f, &s, 1);
    }
    for (int n = 0; n < 4; n++) { /* fp8 to f16 without a kind */
        char words[128];
        snprintf(words, sizeof words, "m16n8k64.row.col.f16.%s.%s.f16", names[n % 2], names[n / 2]);
        const struct form f = { words, formats[n % 2], formats[n / 2], false, true, 0, TENSOR_UE8M0 };
        check(t, "sm_120a", &f, &(struct selectors){ 0, 0, 0, 0 }, 1);
    }
}

static void all_selectors(struct test *t)
{
    static const struct form forms[] = {
        { "m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0", TENSOR_E4M3, TENSOR_E2M1, false, false,
          1, TENSOR_UE8M0 },
        { "m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1, true, false, 2,
          TENSOR_UE8M0 },
        { "kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k128.row.col.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1,
          TENSOR_E2M1, true, false, 2, TENSOR_UE8M0 },
        { "m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", TENSOR_E2M1,
          TENSOR_E2M1, true, false, 4, TENSOR_UE4M3 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct selectors all[128];
        const unsigned step = (unsigned)forms[i].scales;
        int count = 0;
        for (unsigned n = 0; n < 128; n++) {
            const struct selectors s = { n % 4, n / 4 % 2, n / 8 % 4, n / 32 };
            if (s.byte_a % step == 0 && s.byte_b % step == 0) all[count++] = s;
        }
        check(t, i % 2 == 0 ? "sm_120a" : "sm_121a", &forms[i], all, count);
    }
}

/* Plain fp32 in place of the model: products of e2m1 with scales near 1 are exact in both. */
static void plain_sums(struct test *t)
{
    static const struct form forms[] = {
        { "m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1, false, false,
          1, TENSOR_UE8M0 },
        { "m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1, true, false, 2,
          TENSOR_UE8M0 },
    };
    for (int i = 0; i < 2; i++) {
        struct input in;
        struct sparse sparse;
        struct output out;
        char text[4096];
        struct sim sim;
        draw(t, &forms[i], 0, &in, &sparse);
        for (int l = 0; l < 32; l++) {
            in.scale_a[l] = 0x80818081, in.scale_b[l] = 0x80808080;
            for (int r = 0; r < 4; r++) in.c[r][l] = 0x41800000; /* 16 */
        }
        kernel(&forms[i], text, sizeof text);
        if (!sim_open(t, &sim, "sm_120a", text)) continue;
        sim.machine.options.tensor_core = TENSOR_MODE_FP32;
        const uint64_t parameters[3] = { sim_buffer(&sim, &in, sizeof in), 0, sim_buffer(&sim, &out, sizeof out) };
        sim_launch(t, &sim, "k", 1, 32, parameters, 3);
        sim_read(&sim, parameters[2], &out, sizeof out);
        compare(t, &forms[i], &(struct selectors){ 0, 0, 0, 0 }, &in, &sparse, &out);
        sim_close(&sim);
    }
}

/* ---- reports and refusals ---- */

static void metadata_must_have_a_meaning(struct test *t)
{
    static const struct form forms[] = {
        { "m16n8k64.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32", TENSOR_E2M1, TENSOR_E2M1, false, false, 0, TENSOR_UE8M0 },
        { "m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", TENSOR_E2M1, TENSOR_E2M1, true, false, 2,
          TENSOR_UE8M0 },
    };
    for (uint32_t n = 0; n < 32; n++) {
        const uint32_t nibble = n % 16;
        static const uint16_t legal = 1 << 4 | 1 << 8 | 1 << 9 | 1 << 12 | 1 << 13 | 1 << 14;
        static struct input in;
        static struct sparse sparse;
        static struct output out;
        char text[4096];
        struct sim sim;
        draw(t, &forms[n / 16], 1, &in, &sparse);
        in.metadata[22] = (in.metadata[22] & ~(15u << 12)) | nibble << 12; /* row 5, chunk 11 */
        kernel(&forms[n / 16], text, sizeof text);
        if (!sim_open(t, &sim, "sm_120a", text)) continue;
        const uint64_t parameters[3] = { sim_buffer(&sim, &in, sizeof in), 0, sim_buffer(&sim, &out, sizeof out) };
        const bool ran = sim_run(&sim, "k", 1, 32, 0, parameters, 3);
        if (ran != ((legal >> nibble & 1) != 0))
            FAIL(t, "metadata %u: %s", nibble, ran ? "no report" : sim.report.sentence);
        else if (!ran)
            CHECK(t, strstr(sim.report.sentence, "the indices of a chunk must rise): the index of element") != NULL);
        sim_close(&sim);
    }
}

#define DABC  " {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%f4,%f5,%f6,%f7}, %r8, "
#define ZEROS ", %r9, {0, 0}, %r10, {0, 0};"

/* Every one of them is refused by ptxas 13.0, too; but fp8 for sm_100a, which is refused here alone. */
static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const struct {
        const char *device, *form;
    } refused[] = {
        { "sm_90a",
          ".sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0" DABC
          "0" ZEROS },
        { "sm_100a",
          ".sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC
          "0" ZEROS },
        { "sm_120f",
          ".sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC
          "0" ZEROS },
        { "sm_100a", ".sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32" DABC "0;" },
        { "sm_100a", ".sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32" DABC "0;" },
        { "sm_120a",
          ".sp.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0" DABC "0" ZEROS },
        { "sm_120a",
          ".sp.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC "0" ZEROS },
        { "sm_120a", ".sp.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32" DABC "0;" },
        { "sm_120a",
          ".sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0" DABC
          "1" ZEROS },
        { "sm_120a",
          ".sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC
          "1" ZEROS },
        { "sm_120a",
          ".sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC
          "0" ZEROS },
        { "sm_120a",
          ".sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0" DABC
          "0" ZEROS },
        { "sm_120a",
          ".sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0" DABC
          "0, %r9, {1, 0}, %r10, {0, 0};" },
        { "sm_120a",
          ".sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1."
          "f32.ue8m0" DABC "0" ZEROS },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim sim;
        char text[512];
        snprintf(text, sizeof text, "mma%s", refused[i].form);
        sim_refused(t, &sim, refused[i].device, text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(all_pairs_of_types),
        TEST(all_selectors),
        TEST(plain_sums),
        TEST(metadata_must_have_a_meaning),
        TEST(forms_that_do_not_exist_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
