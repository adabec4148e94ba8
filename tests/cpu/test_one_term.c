/* Products of one term, through every kernel, against the exact product: with K = 1 both round one exact number once to
 * fp32, so every bit agrees.  All pairs of element codes and all pairs of scales, for every pair of formats.  Matrix
 * units make zeros of products below 2^-126, which only bf16 operands have. */
#include "exact/exact_help.h"
#include "unit_sums.h"

#include <math.h>
#include <stdlib.h>

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* What a unit may take of one product, of two bf16 terms where an operand is fp16. */
static double most_flushed(enum unit_order order, bsm_format a, bsm_format b)
{
    if (order == UNIT_NONE || (a != BSM_FORMAT_BF16 && b != BSM_FORMAT_BF16)) return 0;
    return a == BSM_FORMAT_FP16 || b == BSM_FORMAT_FP16 ? 0x1p-125 : 0x1p-126;
}

static void check_kernel(struct test *t, bsm_context *context, const struct operand *a, const struct operand *b,
                         const uint32_t *want, uint32_t *got, int kernel)
{
    const int64_t rows = a->matrix.rows, columns = b->matrix.rows;
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = rows, .columns = columns,
                           .data = got };
    const bsm_matmul product = { .struct_size = sizeof product, .a = &a->matrix, .b = &b->matrix, .d = &d };
    memset(got, 0xa5, (size_t)(rows * columns) * 4);
    CHECK(t, bsm_context_force_kernel(context, kernel) == BSM_OK);
    if (bsm_multiply(context, &product) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    const double flushed =
        most_flushed(unit_order_of(context, &product), a->matrix.format, b->matrix.format);
    for (int64_t i = 0; i < rows * columns; i++)
        if (got[i] != want[i] && !(fabs((double)float_of(got[i]) - (double)float_of(want[i])) < flushed)) {
            FAIL(t, "%s: %s x %s: %a * %a is %08x, wanted %08x", bsm_kernel_name(kernel),
                 bsm_format_get((int)a->matrix.format)->name, bsm_format_get((int)b->matrix.format)->name,
                 a->values[i / columns], b->values[i % columns], (unsigned)got[i], (unsigned)want[i]);
            break;
        }
}

static void check_pair(struct test *t, bsm_context *context, struct operand *a, struct operand *b)
{
    const int64_t rows = a->matrix.rows, columns = b->matrix.rows;
    uint32_t *want = malloc((size_t)(rows * columns) * 4), *got = malloc((size_t)(rows * columns) * 4);
    const bsm_real_matrix sum = result_of(BSM_REAL_FP32, rows, columns, want);
    int kernels = 0;
    operand_decode(a), operand_decode(b);
    CHECK(t, bsm_matmul_exact(context, &a->matrix, &b->matrix, &sum, NULL) == BSM_OK);
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++)
        if (bsm_kernel_serves(context, kernel, a->matrix.format, b->matrix.format)) {
            check_kernel(t, context, a, b, want, got, kernel);
            kernels++;
        }
    CHECK(t, kernels > 0);
    free(want), free(got);
}

static void every_pair_of_codes(struct test *t) { for_every_pair_of_codes(t, check_pair); }
static void every_pair_of_scales(struct test *t) { for_every_pair_of_scales(t, check_pair); }

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_pair_of_codes), TEST(every_pair_of_scales) };
    return TEST_MAIN(argc, argv, cases);
}
