/* Scales of 16x16 and 32x32 squares: against the oracle under each square's largest number; a matrix and its
 * transpose. */
#include "blockscale.h"
#include "oracle_block.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static const bsm_format formats[] = { BSM_MXFP8_E4M3, BSM_MXFP8_E5M2,    BSM_MXFP6_E3M2, BSM_MXFP6_E2M3,
                                      BSM_MXFP4,      BSM_MXFP4_BLOCK16, BSM_MXINT8,     BSM_NVFP4 };
enum { FORMATS = sizeof formats / sizeof formats[0], MOST = 80 * 300 };
static float x[MOST], back[MOST], transposed[MOST];
static unsigned char codes[MOST], scales[MOST];

struct quantized {
    bsm_matrix matrix;
    bsm_quantize_stats stats;
    float tensor_scale;
};

/* rows x columns of x (or, turned, of its transpose) into codes and scales. */
static bsm_status quantize(bsm_context *context, bsm_format format, int64_t rows, int64_t columns, bool turned,
                           int64_t block_rows, bsm_recipe recipe, struct quantized *q)
{
    const bsm_real_matrix source = { .struct_size = sizeof source,
                                     .rows = turned ? columns : rows,
                                     .columns = turned ? rows : columns,
                                     .data = x,
                                     .row_stride = turned ? 1 : columns,
                                     .column_stride = turned ? columns : 1 };
    const bsm_quantize_options options = { .struct_size = sizeof options, .recipe = recipe, .block_rows = block_rows };
    q->tensor_scale = 0.75f;
    q->stats = (bsm_quantize_stats){ .struct_size = sizeof q->stats };
    q->matrix = (bsm_matrix){ .struct_size = sizeof q->matrix,
                              .format = format,
                              .packing = BSM_PACKING_BYTES,
                              .rows = source.rows,
                              .columns = source.columns,
                              .data = codes,
                              .scales = scales,
                              .tensor_scale = &q->tensor_scale };
    return bsm_quantize(context, &source, &options, &q->matrix, &q->stats);
}

static void fill(struct test *t)
{
    for (int i = 0; i < MOST; i++) x[i] = (float)(rnd_normal(t) * exp2((double)rnd_below(t, 12) - 6));
}

static void check_square(struct test *t, const struct quantized *q, const struct oracle_setup *setup, int64_t columns,
                         int64_t block, int64_t row, int64_t column)
{
    const int64_t row_end = row + block < q->matrix.rows ? row + block : q->matrix.rows,
                  column_end = column + block < columns ? column + block : columns;
    const bsm_format_info *info = bsm_format_get((int)setup->format);
    float amax = 0;
    for (int64_t r = row; r < row_end; r++)
        for (int64_t k = column; k < column_end; k++) amax = fmaxf(amax, fabsf(x[r * columns + k]));
    const uint8_t scale = amax > 0 ? oracle_scale_code(setup, amax) : 0;
    const double value = (double)bsm_scale_decode(info->scale, scale);
    for (int64_t r = row; r < row_end; r++) {
        uint8_t got = 0;
        CHECK_OR_RETURN(t, bsm_matrix_get_scale(&q->matrix, 0, r, column / block, &got) == BSM_OK);
        if (got != scale)
            FAIL(t, "%s: row %d, column %d: scale 0x%02x, not 0x%02x", info->name, (int)r, (int)column, got, scale);
        for (int64_t k = column; k < column_end; k++) {
            const float number = x[r * columns + k];
            const struct exact under = exact_times(exact_of(value), exact_of((double)q->tensor_scale));
            uint32_t code = 0;
            CHECK_OR_RETURN(t, bsm_matrix_get_code(&q->matrix, 0, r, k, &code) == BSM_OK);
            if (value > 0)
                CHECK(t, code
                             == oracle_round(info->element, signbit(number) != 0, exact_of(fabs((double)number)), under,
                                             true));
            else
                CHECK(t,
                      !(bsm_element_decode(info->element, code) > 0) && !(bsm_element_decode(info->element, code) < 0));
        }
    }
}

static void every_square(struct test *t)
{
    static const int64_t shapes[][2] = { { 1, 1 },   { 16, 16 },  { 32, 32 }, { 33, 17 },
                                         { 37, 70 }, { 70, 300 }, { 15, 257 } };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int f = 0; f < FORMATS; f++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            const int64_t rows = shapes[s][0], columns = shapes[s][1], block = bsm_format_get((int)formats[f])->block;
            const bsm_recipe recipe = formats[f] == BSM_NVFP4
                                          ? BSM_RECIPE_NEAREST
                                          : (bsm_recipe)rnd_between(t, BSM_RECIPE_FLOOR, BSM_RECIPE_EVEN);
            const struct oracle_setup setup = { formats[f], recipe, BSM_NONFINITE_PROPAGATE, 0.75f, false };
            struct quantized q;
            fill(t);
            CHECK_OR_RETURN(t, quantize(context, formats[f], rows, columns, false, block, recipe, &q) == BSM_OK);
            for (int64_t r = 0; r < rows; r += block)
                for (int64_t k = 0; k < columns; k += block) check_square(t, &q, &setup, columns, block, r, k);
            CHECK(t, q.stats.elements == rows * columns && q.stats.blocks == rows * ((columns + block - 1) / block));
        }
    bsm_context_destroy(context);
}

/* What 2D blocks are for: W and W^T stand for the same numbers. */
static void transposes(struct test *t)
{
    int apart = 0;                        /* formats in which blocks of one row give other numbers */
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int f = 0; f < FORMATS; f++)
        for (int square = 0; square < 2; square++) {
            const int64_t rows = 45, columns = 83, block = bsm_format_get((int)formats[f])->block;
            struct quantized q;
            int different = 0;
            fill(t);
            CHECK(t, quantize(context, formats[f], rows, columns, false, square ? block : 0, BSM_RECIPE_DEFAULT, &q)
                         == BSM_OK);
            bsm_real_matrix to = {
                .struct_size = sizeof to, .rows = rows, .columns = columns, .data = back, .row_stride = columns,
                .column_stride = 1
            };
            CHECK(t, bsm_dequantize(context, &q.matrix, &to) == BSM_OK);
            CHECK(t, quantize(context, formats[f], rows, columns, true, square ? block : 1, BSM_RECIPE_DEFAULT, &q)
                         == BSM_OK);
            to = (bsm_real_matrix){ .struct_size = sizeof to,
                                    .rows = columns,
                                    .columns = rows,
                                    .data = transposed,
                                    .row_stride = rows,
                                    .column_stride = 1 };
            CHECK(t, bsm_dequantize(context, &q.matrix, &to) == BSM_OK);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t k = 0; k < columns; k++)
                    different += back[r * columns + k] < transposed[k * rows + r]
                                 || back[r * columns + k] > transposed[k * rows + r];
            if (square) CHECK(t, different == 0);
            else apart += different > 0;
        }
    CHECK(t, apart >= FORMATS - 1);       /* e5m2 has exponents of its own for all of these numbers */
    bsm_context_destroy(context);
}

/* The same bits and counts for any number of threads; a NaN makes the scale of its whole square NaN. */
static void threads_and_nan(struct test *t)
{
    static unsigned char first_codes[MOST], first_scales[MOST];
    bsm_context *context;
    struct quantized q, first;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    fill(t);
    x[40 * 300 + 100] = NAN;
    for (int threads = 1; threads <= 4; threads++) {
        CHECK(t, bsm_context_set_threads(context, threads) == BSM_OK);
        CHECK(t, quantize(context, BSM_MXFP4, 70, 300, false, 32, BSM_RECIPE_DEFAULT, &q) == BSM_OK);
        if (threads == 1)
            memcpy(first_codes, codes, sizeof codes), memcpy(first_scales, scales, sizeof scales), first = q;
        CHECK(t, memcmp(first_codes, codes, 70 * 300) == 0 && memcmp(first_scales, scales, 70 * 10) == 0);
        CHECK(t, memcmp(&first.stats, &q.stats, sizeof q.stats) == 0 && q.stats.nan_blocks == 32);
    }
    for (int r = 0; r < 70; r++)
        for (int s = 0; s < 10; s++) CHECK(t, (scales[r * 10 + s] == 0xff) == (r / 32 == 1 && s == 3));
    bsm_context_destroy(context);
}

static void refuse(struct test *t, bsm_context *context, bsm_format format, int64_t block_rows, bsm_recipe recipe,
                   const char *words)
{
    struct quantized q;
    CHECK(t, quantize(context, format, 4, 32, false, block_rows, recipe, &q) == BSM_EINVAL);
    if (strstr(bsm_last_error(), words) == NULL) FAIL(t, "%s: \"%s\"", words, bsm_last_error());
}

static void refused(struct test *t)
{
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    refuse(t, context, BSM_MXFP4, 16, BSM_RECIPE_DEFAULT,
           "options->block_rows=16: mxfp4 takes 0 or 1 (a scale for one row), or 32");
    refuse(t, context, BSM_NVFP4, 32, BSM_RECIPE_DEFAULT,
           "options->block_rows=32: nvfp4 takes 0 or 1 (a scale for one row), or 16");
    refuse(t, context, BSM_NVFP4, -1, BSM_RECIPE_DEFAULT, "options->block_rows=-1");
    refuse(t, context, BSM_NVFP4, 2, BSM_RECIPE_DEFAULT, "options->block_rows=2");
    refuse(t, context, BSM_NVFP4, 16, BSM_RECIPE_FOUR_OVER_SIX,
           "four_over_six chooses a scale by the error of one row");
    refuse(t, context, BSM_MXFP4, 32, BSM_RECIPE_MSE, "mse chooses a scale by the error of one row");
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_square), TEST(transposes), TEST(threads_and_nan),
                                              TEST(refused) };
    return TEST_MAIN(argc, argv, cases);
}
