/* One row against tiles of bf16, bit for bit, by weights that are prepacked, and by the same as they are stored: what
 * panels hold in place of B, and which rows they are not for. */
#include "two_kernels.h"

#include "core/core.h"

#include <math.h>
#include <stdlib.h>

/* stored: B as it is stored goes by no tiles either. */
static const struct { bsm_format b; const char *kernel; bool stored; } kernels[] = {
    { BSM_MXFP4, "fp4_one_row_vnni", true },
    { BSM_MXFP8_E4M3, "bf16_dot_one_row_avx512", true },
    { BSM_MXFP8_E5M2, "bf16_dot_one_row_avx512", true },
    { BSM_NVFP4, "nvfp4_one_row_avx512", true },
};
enum { KERNELS = sizeof kernels / sizeof kernels[0], BLOCK = 32 };

static bool skipped(struct test *t)
{
    bool all = true;
    for (int i = 0; i < KERNELS; i++) all &= kernel_named(kernels[i].kernel) != NULL;
    if (!all) test_skip(t, "this machine has no AMX");
    return !all;
}

static struct operand filled(struct test *t, const struct shape *shape)
{
    struct operand o = operand_make(shape, 0xff);
    operand_fill(t, &o, false);
    return o;
}

static struct operand weights(struct test *t, int kernel, int64_t rows, int64_t k)
{
    return filled(t, &(struct shape){ .format = kernels[kernel].b, .rows = rows, .columns = k });
}

/* 8-bit floats without zeros, subnormal numbers and what is no number: such lines go another way than others. */
static void make_normal(struct test *t, int kernel, struct operand *b)
{
    const int mantissa_bits = kernels[kernel].b == BSM_MXFP8_E4M3 ? 3 : 2, most = mantissa_bits == 3 ? 14 : 30;
    if (bsm_element_get((int)bsm_format_get((int)kernels[kernel].b)->element)->bits < 8) return;
    for (int64_t r = 0; r < b->m.rows; r++)
        for (int64_t k = 0; k < b->m.columns; k++) {
            const uint32_t rest = (uint32_t)rnd_below(t, 256) & (0x80u | ((1u << mantissa_bits) - 1));
            set_code(t, b, r, k, rest | (uint32_t)rnd_between(t, 1, most) << mantissa_bits);
        }
}

static void set_number(struct test *t, struct operand *a, int64_t k, double number)
{
    set_code(t, a, 0, k, bsm_element_encode(BSM_BF16, number, BSM_ROUND_NEAREST_EVEN, false, 0));
}

static struct operand normal_row(struct test *t, int64_t k)
{
    struct operand a = operand_make(&(struct shape){ .format = BSM_FORMAT_BF16, .rows = 1, .columns = k }, 0);
    for (int64_t i = 0; i < k; i++) set_number(t, &a, i, rnd_normal(t));
    return a;
}

static void compare(struct test *t, int kernel, struct operand *a, struct operand *b, struct where at,
                    enum way wanted)
{
    const enum way way = compare_prepacked(t, "bf16_tiles_amx", kernels[kernel].kernel, a, b, at),
                   stored = compare_kernels(t, "bf16_tiles_amx", kernels[kernel].kernel, a, b, at);
    if (stored != UNKNOWN && stored != (kernels[kernel].stored ? wanted : AS_BF16))
        FAIL(t, "%s x %s, K=%lld: as it is stored it went otherwise", bsm_format_get((int)a->m.format)->name,
             bsm_format_get((int)b->m.format)->name, (long long)a->m.columns);
    if (way != UNKNOWN && way != wanted)
        FAIL(t, "%s x %s, K=%lld: went by %s", bsm_format_get((int)a->m.format)->name,
             bsm_format_get((int)b->m.format)->name, (long long)a->m.columns,
             way == AS_BF16 ? "tiles of bf16" : "panels");
    operand_free(a), operand_free(b);
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

/* bf16 by B ragged everywhere, in any packing and layout. */
static void every_shape(struct test *t)
{
    static const bsm_scale_layout layouts[] = { { .kind = BSM_LAYOUT_LINEAR }, { .kind = BSM_LAYOUT_128X4 } };
    static const int64_t depths[] = { 1, 2, 31, 32, 33, 64, 95, 127, 128, 129, 256, 300, 2048, 2049, 4100 };
    if (skipped(t)) return;
    for (int i = 0; i < 120; i++) {
        const int64_t k = depths[i % 15];
        struct where at = { .first_column = rnd_below(t, 3) * 16 };
        struct shape of_b = { .format = kernels[i % KERNELS].b, .rows = at.first_column + rnd_between(t, 1, 70),
                              .columns = k };
        shape_in_any_way(t, &of_b, layouts, 2);
        if (rnd_below(t, 3) == 0) of_b.rows += of_b.rows % 2, at.split = of_b.rows / 2;
        struct operand a = normal_row(t, k), b = filled(t, &of_b);
        if (i / KERNELS % 2 == 0) make_normal(t, i % KERNELS, &b);
        compare(t, i % KERNELS, &a, &b, at, WITHOUT_TILES);
    }
}

static void every_format_of_a(struct test *t)
{
    if (skipped(t)) return;
    for (int f = 0; f < BSM_FORMAT_COUNT; f++)
        for (int i = 0; i < 2 * KERNELS; i++) {
            const int kernel = i % KERNELS;
            if (bsm_format_get(f) == NULL || bsm_format_get(f)->block == 0
                || !kernel_named(kernels[kernel].kernel)->serves((bsm_format)f, kernels[kernel].b))
                continue;
            const int64_t k = 32 * rnd_between(t, 1, 20);
            struct operand a = filled(t, &(struct shape){ .format = (bsm_format)f, .rows = 1, .columns = k }),
                           b = weights(t, kernel, 37, k);
            compare(t, kernel, &a, &b, (struct where){ 0 }, WITHOUT_TILES);
        }
}

/* More columns of K than A's numbers are made of at once. */
static void several_stretches(struct test *t)
{
    const int64_t k = 16384 + 160;
    if (skipped(t)) return;
    for (int i = 0; i < KERNELS; i++) {
        struct operand a = normal_row(t, k), b = weights(t, i, 18, k);
        compare(t, i, &a, &b, (struct where){ 0 }, WITHOUT_TILES);
    }
}

/* Every code of B's elements and, of nvfp4, of its scales, near and far from one another. */
static void every_code(struct test *t)
{
    if (skipped(t)) return;
    for (int i = 0; i < KERNELS; i++) {
        const bsm_format_info *const f = bsm_format_get((int)kernels[i].b);
        const uint32_t codes = 1u << bsm_element_get((int)f->element)->bits;
        for (uint32_t code = 0; code < 256; code++) {
            struct operand a = normal_row(t, 256), b = weights(t, i, 33, 256);
            const double value = naive_element(f->element, code % codes);
            make_normal(t, i, &b);
            for (int n = 0; n < 5; n++) set_code(t, &b, rnd_below(t, 33), rnd_below(t, 256), code % codes);
            if (f->scale == BSM_UE4M3) set_scale(t, &b, rnd_below(t, 33), rnd_below(t, 16), (int)code);
            const bool number = isfinite(value) && (f->scale != BSM_UE4M3 || (code & 0x7f) != 0x7f);
            compare(t, i, &a, &b, (struct where){ 0 }, number ? WITHOUT_TILES : AS_BF16);
        }
    }
}

/* Rows of B with scales at the ends of what needs no exponent and beyond it, with NaN, and with blocks of zeros of any
 * scale. */
static void scales_of_b(struct test *t)
{
    static const struct { int least, most; } bounds[] = { { 88, 165 }, { 96, 159 }, { 103, 152 } };
    if (skipped(t)) return;
    for (int i = 0; i < 3; i++)
        for (int n = 0; n < 8; n++)
            for (int zero = 0; zero < 2; zero++) {
                const int codes[] = { 0, 1, bounds[i].least - 1, bounds[i].least, bounds[i].most, bounds[i].most + 1,
                                      254, 255 };
                const bool inside = codes[n] >= bounds[i].least && codes[n] <= bounds[i].most;
                struct operand a = normal_row(t, 608), b = weights(t, i, 70, 608);
                for (int64_t row = rnd_below(t, 40); row < 70; row += 1 + rnd_below(t, 8))
                    for (int64_t s = rnd_below(t, 3); s < blocks_of(&b); s += 1 + rnd_below(t, 6)) {
                        fill_block(t, &b, row, s, zero ? (uint32_t)(s % 2) << (i == 0 ? 3 : 7) : 0x07);
                        set_scale(t, &b, row, s, codes[n]);
                    }
                compare(t, i, &a, &b, (struct where){ 0 },
                        inside || (zero && codes[n] != 255) ? WITHOUT_TILES : AS_BF16);
            }
}

/* Numbers of A at the ends of what a row may have, and beyond. */
static void numbers_out_of_range(struct test *t)
{
    static const struct { double number; bool inside; } numbers[] = {
        { 0x1p60, true },  { 0x1.02p60, false }, { 0x1p127, false }, { 0x1p-60, true }, { 0x1.fep-61, false },
        { 0x1p-133, false }, { 0, true },        { INFINITY, false }, { NAN, false },
    };
    if (skipped(t)) return;
    for (int i = 0; i < KERNELS; i++)
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
            for (int sign = -1; sign < 2; sign += 2) {
                struct operand a = normal_row(t, 192), b = weights(t, i, 35, 192);
                set_number(t, &a, rnd_below(t, 192), sign * numbers[n].number);
                compare(t, i, &a, &b, (struct where){ 0 }, numbers[n].inside ? WITHOUT_TILES : AS_BF16);
            }
}

/* The largest sums that A's range allows, of one sign: nothing overflows on the way. */
static void largest_sums(struct test *t)
{
    if (skipped(t)) return;
    for (int i = 0; i < KERNELS; i++) {
        static const uint32_t largest[] = { 7, 0x7e, 0x7b, 7 };
        struct operand a = normal_row(t, 256), b = weights(t, i, 20, 256);
        for (int64_t k = 0; k < 256; k++) set_number(t, &a, k, 0x1p60);
        for (int64_t r = 0; r < 20; r++)
            for (int64_t s = 0; s < blocks_of(&b); s++) fill_block(t, &b, r, s, largest[i]);
        compare(t, i, &a, &b, (struct where){ 0 }, WITHOUT_TILES);
    }
}

/* Sums of a block close to 2^24 of their unit, and beyond it: one number, an odd number of units, is less than the
 * others by as many binades as make the unit too small, and comes when the sum is largest.  Scales of nvfp4 have
 * significands of 15: rounding at the end would give something else than rounding in the chain. */
static void sums_that_need_rounding(struct test *t)
{
    enum { K = 128, ONE_HALF = 1, ONE = 2, SIX = 7 };
    static const int kernels_of_fp4[] = { 0, 3 };
    if (skipped(t)) return;
    for (int i = 0; i < 2; i++)
        for (int binades = 0; binades < 22; binades++)
            for (int parity = 0; parity < 2; parity++) {
                const int kernel = kernels_of_fp4[i], block = kernel == 3 ? 16 : 32;
                struct operand a = normal_row(t, K), b = weights(t, kernel, 40, K);
                for (int64_t k = 0; k < K; k++)
                    set_number(t, &a, k, k % 2 == parity ? 2 - (double)rnd_between(t, 1, 32) / 128 : 0);
                for (int64_t s = 0; s < K / block; s++) {
                    const int64_t early = s * block + parity, late = (s + 1) * block - 2 + parity;
                    set_number(t, &a, early, ldexp(1 + 1 / 128.0, -binades));
                    set_number(t, &a, late, ldexp(1 + 1 / 128.0, -binades));
                    for (int64_t r = 0; r < 40; r++) {
                        fill_block(t, &b, r, s, SIX);
                        if (kernel == 3) set_scale(t, &b, r, s, 0x37 + 8 * (int)(r % 2));
                        set_code(t, &b, r, early, r % 3 == 0 ? ONE : ONE_HALF);
                        set_code(t, &b, r, late, r % 5 == 0 ? ONE_HALF : ONE);
                    }
                }
                compare(t, kernel, &a, &b, (struct where){ 0 }, WITHOUT_TILES);
            }
}

/* D of a product that has `parts` parts of b is each part's alone, which goes by a tile of its own. */
static void compare_parts(struct test *t, bsm_context *context, const struct operand *a, const struct operand *b,
                          int64_t rows, int64_t parts, const float *together)
{
    int64_t data_bytes = 0, scale_bytes = 0;
    float *const alone = calloc((size_t)rows, sizeof *alone);
    bsm_matrix part = b->m, d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = 1, .columns = rows,
                                  .data = alone };
    const bsm_matmul product = { .struct_size = sizeof product, .a = &a->m, .b = &part, .d = &d };
    part.rows = rows;
    CHECK(t, bsm_matrix_data_bytes(&part, &data_bytes) == BSM_OK);
    CHECK(t, bsm_matrix_scale_bytes(&part, &scale_bytes) == BSM_OK);
    for (int64_t i = 0; i < parts; i++) {
        CHECK(t, bsm_multiply(context, &product) == BSM_OK);
        compare_sums(t, a, b, rows, rows, alone, together + i * rows);
        part.data = (unsigned char *)part.data + data_bytes;
        part.scales = (unsigned char *)part.scales + scale_bytes;
    }
    free(alone);
}

/* A thread's row of A is made ready once for the matrices of a batch, and again where one of them, with a NaN scale,
 * went by a kernel that needs the memory. */
static void kept_rows(struct test *t)
{
    enum { K = 4096, N = 17, MATRICES = 2 };
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1 };
    bsm_context *context = NULL;
    if (skipped(t)) return;
    CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK);
    for (int i = 0; i < KERNELS; i++) {
        struct operand a = normal_row(t, K), b = weights(t, i, MATRICES * N, K);
        float together[MATRICES * N];
        bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = 1, .columns = N, .batch = MATRICES,
                         .data = together },
                   all = b.m;
        const bsm_matmul product = { .struct_size = sizeof product, .a = &a.m, .b = &all, .d = &d };
        set_scale(t, &b, 7, 3, 0xff);
        all.rows = N, all.batch = MATRICES;
        CHECK(t, bsm_multiply(context, &product) == BSM_OK);
        compare_parts(t, context, &a, &b, N, MATRICES, together);
        operand_free(&a), operand_free(&b);
    }
    bsm_context_destroy(context);
}

/* Tiles of a row have not all the same width; each thread's find its row of A where the first left it. */
static void tiles_of_two_widths(struct test *t)
{
    enum { K = 160, N = 2880, PARTS = 3, PART = N / PARTS };
    static float together[N];
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1 };
    bsm_context *context = NULL;
    if (skipped(t)) return;
    CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK);
    for (int i = 0; i < KERNELS; i++) {
        struct operand a = normal_row(t, K), b = weights(t, i, N, K);
        bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = 1, .columns = N,
                         .data = together };
        const bsm_matmul product = { .struct_size = sizeof product, .a = &a.m, .b = &b.m, .d = &d };
        CHECK(t, bsm_multiply(context, &product) == BSM_OK);
        compare_parts(t, context, &a, &b, PART, PARTS, together);
        operand_free(&a), operand_free(&b);
    }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_shape), TEST(every_format_of_a), TEST(several_stretches),
                                              TEST(every_code),  TEST(scales_of_b),       TEST(numbers_out_of_range),
                                              TEST(largest_sums), TEST(sums_that_need_rounding), TEST(kept_rows),
                                              TEST(tiles_of_two_widths) };
    return TEST_MAIN(argc, argv, cases);
}
