/* Blocks of zeros under large scales: on Blackwell, where both operands have 4 bits, they may take something from the
 * sum, within the bound of matmul.h; everywhere else nothing, and the bound has no term for scales. */
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_M = 24, N = 40, MOST_K = 320 };

/* Kernels whose bound has the term. */
static bool takes_four_bits(int kernel) { return strncmp(bsm_kernel_name(kernel), "cuda_tcgen05_mxf4", 17) == 0; }

static uint8_t large(bsm_format format) { return format == BSM_NVFP4 ? 0x7e : 167; }
static uint8_t least(bsm_format format) { return format == BSM_NVFP4 ? 0x01 : 127; }

static struct operand make(bsm_format format, int64_t rows, int64_t columns)
{
    const bsm_layout layout = bsm_format_get((int)format)->block != 0 ? BSM_LAYOUT_128X4 : BSM_LAYOUT_LINEAR;
    return operand_make(
        &(struct shape){ .format = format, .rows = rows, .columns = columns, .layout = { .kind = layout } }, 0);
}

static void set_row(struct operand *o, int64_t row, double value, int64_t from, int64_t to)
{
    const bsm_element element = bsm_format_get((int)o->m.format)->element;
    const uint32_t code = bsm_element_encode(element, value, BSM_ROUND_NEAREST_EVEN, true, 0);
    for (int64_t k = from; k < to; k++) bsm_matrix_set_code(&o->m, 0, row, k, code);
}

static void multiply(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                     int kernel, float *d)
{
    struct twin x = twin_make(t, c, a), y = twin_make(t, c, b);
    const size_t bytes = (size_t)(a->m.rows * b->m.rows) * sizeof *d;
    const bsm_matrix out = { .struct_size = sizeof out,
                             .format = BSM_FORMAT_FP32,
                             .rows = a->m.rows,
                             .columns = b->m.rows,
                             .data = to_device(t, c, d, bytes) };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out };
    CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
    if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, c, d, out.data, bytes);
    twin_free(t, c, &x), twin_free(t, c, &y), (void)bsm_device_release(c->gpu, out.data);
}

/* Once for every 16 columns. */
static double scales_of(const struct operand *a, int64_t i, const struct operand *b, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < a->m.columns; k += 16) {
        uint8_t sa = 0, sb = 0;
        const bsm_format_info *fa = bsm_format_get((int)a->m.format), *fb = bsm_format_get((int)b->m.format);
        (void)bsm_matrix_get_scale(&a->m, 0, i, k / fa->block, &sa),
            (void)bsm_matrix_get_scale(&b->m, 0, j, k / fb->block, &sb);
        sum += (double)bsm_scale_decode(fa->scale, sa) * (double)bsm_scale_decode(fb->scale, sb);
    }
    return sum;
}

/* Elements of D within the bound, with the term for scales or without. */
static int64_t count_beyond(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                            const float *d, bool with_scales)
{
    static double sum[MOST_M * N], magnitude[MOST_M * N];
    const int64_t m = a->m.rows, n = b->m.rows, k = a->m.columns;
    const double units = 10 * ceil((double)k / 16) * 0x1p-24, gamma = units / (1 - units),
                 cut = ceil((double)k / 16) * 0x1p-149;
    const bsm_real_matrix sums = { .struct_size = sizeof sums,
                                   .type = BSM_REAL_FP64,
                                   .rows = m,
                                   .columns = n,
                                   .data = sum,
                                   .row_stride = n,
                                   .column_stride = 1 };
    bsm_real_matrix magnitudes = sums;
    magnitudes.data = magnitude;
    int64_t beyond = 0;
    CHECK(t, bsm_matmul_exact(c->cpu, &a->m, &b->m, &sums, &magnitudes) == BSM_OK);
    for (int64_t i = 0; i < m * n; i++) {
        const double lost = with_scales ? 0x1p-32 * scales_of(a, i / n, b, i % n) : 0;
        beyond += !(fabs((double)d[i] - sum[i]) <= gamma * magnitude[i] + lost + cut);
    }
    return beyond;
}

/* Simulated, of the kernels whose bound has no such term some. */
static bool is_chosen(int kernel, int number) { return takes_four_bits(kernel) || !is_simulated() || number % 5 == 0; }

/* A: numbers, and behind 64 columns zeros under the largest scale; B: the same number everywhere. */
static void set_numbers(struct operand *a, struct operand *b, double number, int64_t count)
{
    const int64_t block = bsm_format_get((int)a->m.format)->block;
    for (int64_t i = 0; i < bsm_matrix_scale_columns(&a->m); i++)
        bsm_matrix_set_scale(&a->m, 0, 0, i, i * block < 64 ? least(a->m.format) : large(a->m.format));
    set_row(a, 0, number, 0, count);
    for (int64_t j = 0; j < b->m.rows; j++) {
        set_row(b, j, number, 0, b->m.columns);
        for (int64_t i = 0; i < bsm_matrix_scale_columns(&b->m); i++)
            bsm_matrix_set_scale(&b->m, 0, j, i, b->m.format == BSM_NVFP4 && i >= 4 ? 0x7e : least(b->m.format));
    }
}

static void check_sum(struct test *t, const struct contexts *c, int kernel, const bsm_format *pair)
{
    const bool narrow = pair[0] == BSM_NVFP4; /* its scales span 2^18 alone */
    const double number = narrow ? 0.5 : 1, count = narrow ? 47 : 48;
    struct operand a = make(pair[0], 1, 128), b = make(pair[1], 8, 128);
    const double scaled_by = narrow ? pair[1] == BSM_NVFP4 ? 0x1p-18 : 0x1p-9 : 1,
                 want = count * number * number * scaled_by;
    float d[8];
    set_numbers(&a, &b, number, (int64_t)count);
    multiply(t, c, &a, &b, kernel, d);
    if (!takes_four_bits(kernel) && (double)d[7] != want)
        FAIL(t, "%s: %g, not %g", bsm_kernel_name(kernel), (double)d[7], want);
    if (count_beyond(t, c, &a, &b, d, takes_four_bits(kernel)) != 0)
        FAIL(t, "%s: %g, not %g: beyond the bound", bsm_kernel_name(kernel), (double)d[7], want);
    /* Were it not so, the term would be wanted no more. */
    if (takes_four_bits(kernel) && is_simulated() && count_beyond(t, c, &a, &b, d, false) == 0)
        FAIL(t, "%s: %g: scales took nothing", bsm_kernel_name(kernel), (double)d[7]);
    operand_free(&a), operand_free(&b);
}

/* 48 ones and then zeros: 48 wherever scales take nothing. */
static void a_sum_before_zeros(struct test *t)
{
    static const bsm_format pairs[][2] = { { BSM_MXFP4, BSM_MXFP4 },         { BSM_NVFP4, BSM_NVFP4 },
                                           { BSM_MXFP4_BLOCK16, BSM_MXFP4 }, { BSM_MXFP4_BLOCK16, BSM_MXFP4_BLOCK16 },
                                           { BSM_MXFP4, BSM_MXFP8_E4M3 },    { BSM_NVFP4, BSM_FORMAT_BF16 } };
    struct contexts c;
    int number = 0;
    if (!contexts_open(t, &c)) return;
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
        for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++)
            if (bsm_kernel_serves(c.gpu, kernel, pairs[p][0], pairs[p][1]) && is_chosen(kernel, number++))
                check_sum(t, &c, kernel, pairs[p]);
    contexts_close(&c);
}

/* A third of the blocks are zeros, under scales that are anything up to the largest. */
static void set_zeros(struct test *t, struct operand *a)
{
    const int64_t block = bsm_format_get((int)a->m.format)->block, k = a->m.columns;
    for (int64_t i = 0; i < a->m.rows; i++)
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&a->m); s++) {
            if (rnd_below(t, 3) != 0) continue;
            set_row(a, i, 0, s * block, s * block + block < k ? s * block + block : k);
            bsm_matrix_set_scale(&a->m, 0, i, s, a->m.format == BSM_NVFP4 ? 0x7e : (uint8_t)rnd_between(t, 120, 190));
        }
}

static int64_t rows_of(int kernel)
{
    const char *name = bsm_kernel_name(kernel);
    return strstr(name, "_8x128") != NULL ? 8 : strstr(name, "_16x128") != NULL ? 16 : MOST_M;
}

/* Any codes; K ragged where kernels take that. */
static void zeros_among_any_codes(struct test *t)
{
    static const bsm_format pairs[][2] = { { BSM_MXFP4, BSM_MXFP4 },
                                           { BSM_NVFP4, BSM_NVFP4 },
                                           { BSM_MXFP4, BSM_MXFP4_BLOCK16 } };
    static const int64_t ks[] = { MOST_K, 113, 128 };
    static float d[MOST_M * N];
    struct contexts c;
    int number = 0;
    if (!contexts_open(t, &c)) return;
    for (int p = 0; p < 3; p++)
        for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
            if (!bsm_kernel_serves(c.gpu, kernel, pairs[p][0], pairs[p][1]) || !is_chosen(kernel, number++)) continue;
            const int64_t k = takes_four_bits(kernel) ? ks[number % 3] : MOST_K;
            struct operand a = make(pairs[p][0], rows_of(kernel), k), b = make(pairs[p][1], N, k);
            operand_fill(t, &a, false), operand_fill(t, &b, false), set_zeros(t, &a);
            multiply(t, &c, &a, &b, kernel, d);
            const int64_t beyond = count_beyond(t, &c, &a, &b, d, takes_four_bits(kernel));
            if (beyond > 0)
                FAIL(t, "%s, pair %d: %d elements beyond the bound", bsm_kernel_name(kernel), p, (int)beyond);
            operand_free(&a), operand_free(&b);
        }
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(a_sum_before_zeros), TEST(zeros_among_any_codes) };
    return TEST_MAIN(argc, argv, cases);
}
