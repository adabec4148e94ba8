/* Products of one term (K = 1): every pair of element codes under every pair of formats, every pair of scales, all
 * codes of the 16-bit elements.  One product of doubles is exact here, so hardware arithmetic is the judge. */
#include "exact_help.h"

#include <math.h>
#include <stdlib.h>

static void check_terms(struct test *t, bsm_context *context, struct operand *a, struct operand *b)
{
    const int64_t rows = a->matrix.rows, columns = b->matrix.rows;
    uint64_t *exact = malloc((size_t)(rows * columns) * 8);
    uint32_t *single = malloc((size_t)(rows * columns) * 4);
    const bsm_real_matrix sum = result_of(BSM_REAL_FP64, rows, columns, exact);
    const bsm_real_matrix narrow = result_of(BSM_REAL_FP32, rows, columns, single);
    operand_decode(a), operand_decode(b);
    CHECK(t, bsm_matmul_exact(context, &a->matrix, &b->matrix, &sum, NULL) == BSM_OK);
    CHECK(t, bsm_matmul_exact(context, &a->matrix, &b->matrix, &narrow, NULL) == BSM_OK);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double product = a->values[i] * b->values[j];
            if (product == 0) product = 0;                    /* -0 becomes +0 */
            float rounded = (float)product;
            uint64_t want;
            uint32_t want_single;
            memcpy(&want, &product, 8), memcpy(&want_single, &rounded, 4);
            if (isnan(product)) want = nan_bits(BSM_REAL_FP64), want_single = (uint32_t)nan_bits(BSM_REAL_FP32);
            if (exact[i * columns + j] != want || single[i * columns + j] != want_single)
                FAIL(t, "%s x %s: %a * %a: fp64 %016" PRIx64 " wanted %016" PRIx64 ", fp32 %08x wanted %08x",
                     bsm_format_get((int)a->matrix.format)->name, bsm_format_get((int)b->matrix.format)->name,
                     a->values[i], b->values[j], exact[i * columns + j], want, (unsigned)single[i * columns + j],
                     (unsigned)want_single);
        }
    free(exact), free(single);
}

static void every_pair_of_codes(struct test *t) { for_every_pair_of_codes(t, check_terms); }
static void every_pair_of_scales(struct test *t) { for_every_pair_of_scales(t, check_terms); }

/* All 65,536 codes of bf16 and fp16, against three codes of every format. */
static void every_code_of_16_bits(struct test *t)
{
    static const bsm_format wide[] = { BSM_FORMAT_BF16, BSM_FORMAT_FP16 };
    bsm_context *context = context_or_stop(0);
    for (int w = 0; w < 2; w++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++) {
            struct operand a = operand_make(wide[w], 65536, 1), b = operand_make((bsm_format)fb, 3, 1);
            uint16_t *codes = a.matrix.data;
            for (int code = 0; code < 65536; code++) codes[code] = (uint16_t)code;
            operand_set(&b, 1, 0, 1);
            operand_set(&b, 2, 0, bsm_element_get((int)bsm_format_get(fb)->element)->max_code);
            check_terms(t, context, &a, &b);
            operand_free(&a), operand_free(&b);
        }
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_pair_of_codes), TEST(every_pair_of_scales),
                                              TEST(every_code_of_16_bits) };
    return TEST_MAIN(argc, argv, cases);
}
