#include "problem.h"
#include "ladder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
const struct ladder_format ladder_formats[LADDER_FORMATS] = {
    { "mxfp8",       "mxfp8",   BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 128, 32, false, false },
    { "mxfp4",       "mxfp4",   BSM_MXFP4,      BSM_MXFP4,      256, 64, false, false },
    { "nvfp4",       "nvfp4",   BSM_NVFP4,      BSM_NVFP4,      256, 64, false, false },
    { "mxfp8xmxfp4", "mixed",   BSM_MXFP8_E4M3, BSM_MXFP4,      128, 32, false, true  },
    { "mxfp4xmxfp8", "mixed_a", BSM_MXFP4,      BSM_MXFP8_E4M3, 128, 32, true,  false },
};
// clang-format on

const struct ladder_format *ladder_format_of(const char *name)
{
    for (int i = 0; i < LADDER_FORMATS; i++)
        if (strcmp(ladder_formats[i].name, name) == 0) return &ladder_formats[i];
    return NULL;
}

void stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("ladder: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(3);
}

static void good(bsm_status status)
{
    if (status != BSM_OK) stop("%s", bsm_last_error());
}

static void *zeroed(int64_t bytes)
{
    void *memory = calloc((size_t)bytes + 1, 1);
    if (memory == NULL) stop("no memory for %lld bytes", (long long)bytes);
    return memory;
}

/* ---- numbers ---- */

static uint64_t state = 1;
static uint32_t draw(uint32_t bound) /* 0 to bound - 1 */
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 32) * bound >> 32);
}

static double normal(void) /* nearly: the sum of 12 uniform numbers */
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += draw(1u << 24) / 16777216.0;
    return sum;
}

/* Elements and scales whose products and sums fp32 holds exactly, in whatever order they are added, for K up to
 * 4096. */
static void fill_whole(struct operand *x)
{
    const int64_t pitch = x->linear_pitch;
    /* 0, +-1, +-2, +-3, 4 */
    static const uint8_t e4m3[] = { 0x00, 0x38, 0xb8, 0x40, 0xc0, 0x44, 0xc4, 0x48 };
    /* 1, 2, 4, 1/2; 1, 1.5, 2, 1/2 */
    static const uint8_t e8m0[] = { 127, 128, 129, 126 }, ue4m3[] = { 0x38, 0x3c, 0x40, 0x30 };
    uint8_t *codes = x->matrix.data, *scales = x->matrix.scales;
    const bool bytes = x->matrix.format == BSM_MXFP8_E4M3, nv = x->matrix.format == BSM_NVFP4;
    for (int64_t i = 0; i < x->data_bytes; i++) codes[i] = bytes ? e4m3[draw(8)] : (uint8_t)draw(256);
    for (int64_t row = 0; row < x->matrix.rows; row++)
        for (int64_t i = 0; i < x->scale_columns; i++)
            scales[row * pitch + i] = nv ? ue4m3[draw(4)] : e8m0[draw(4)];
}

static void fill_normal(struct operand *x, bsm_context *context)
{
    const int64_t rows = x->matrix.rows, columns = x->matrix.columns;
    float *numbers = zeroed(rows * columns * (int64_t)sizeof *numbers);
    const bsm_real_matrix source = { .struct_size = sizeof source,
                                     .type = BSM_REAL_FP32,
                                     .rows = rows,
                                     .columns = columns,
                                     .data = numbers,
                                     .row_stride = columns,
                                     .column_stride = 1 };
    for (int64_t i = 0; i < rows * columns; i++) numbers[i] = (float)normal();
    good(bsm_quantize(context, &source, NULL, &x->matrix, NULL));
    free(numbers);
}

/* ---- operands ---- */

/* Scales of rows that the matrix has not become NaN: no step may let them into D. */
static void poison_padding(const struct operand *x, const bsm_scale_layout *layout, uint8_t *data)
{
    int64_t rows, columns, offset;
    good(bsm_scale_padded(layout, x->matrix.rows, x->scale_columns, &rows, &columns));
    for (int64_t row = x->matrix.rows; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            good(bsm_scale_offset(layout, x->matrix.rows, x->scale_columns, row, column, &offset));
            data[offset] = 0xff;
        }
}

static uint8_t *convert(const struct operand *x, bsm_scale_layout layout, int64_t *bytes)
{
    good(bsm_scale_bytes(&layout, x->matrix.rows, x->scale_columns, bytes));
    uint8_t *data = zeroed(*bytes);
    const bsm_scales from = { x->matrix.scales, x->matrix.rows, x->scale_columns, x->matrix.scale_layout };
    const bsm_scales to = { data, x->matrix.rows, x->scale_columns, layout };
    good(bsm_scales_convert(&from, &to));
    poison_padding(x, &layout, data);
    return data;
}

static void operand_make(struct operand *x, bsm_context *context, bsm_format format, int64_t rows, int64_t k,
                         int64_t tile_k, enum data data)
{
    memset(x, 0, sizeof *x);
    x->matrix = (bsm_matrix){ .struct_size = sizeof x->matrix, .format = format, .rows = rows, .columns = k };
    const int64_t tile_columns = tile_k / bsm_format_get((int)format)->block;
    x->scale_columns = bsm_matrix_scale_columns(&x->matrix);
    x->linear_pitch = (x->scale_columns + tile_columns - 1) / tile_columns * tile_columns;
    x->matrix.scale_layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = x->linear_pitch };
    x->linear_bytes = rows * x->linear_pitch;
    good(bsm_matrix_data_bytes(&x->matrix, &x->data_bytes));
    x->matrix.data = zeroed(x->data_bytes), x->matrix.scales = zeroed(x->linear_bytes);
    if (data == WHOLE_NUMBERS) fill_whole(x);
    else fill_normal(x, context);
    x->tiles =
        convert(x, (bsm_scale_layout){ .kind = BSM_LAYOUT_TILES, .tile_rows = SCALE_BLOCK_ROWS,
                                       .tile_columns = tile_columns },
                &x->tile_bytes);
    x->packed = convert(x, (bsm_scale_layout){ .kind = BSM_LAYOUT_128X4 }, &x->packed_bytes);
}

static void operand_free(struct operand *x)
{
    free(x->matrix.data), free(x->matrix.scales), free(x->tiles), free(x->packed);
}

void problem_make(struct problem *p, bsm_context *context)
{
    const struct ladder_format *format = p->format;
    const int64_t m = p->m, n = p->n, k = p->k;
    if (m < 1 || n < 1 || m > 1 << 24 || n > 1 << 24)
        stop("M is %lld, N is %lld: each is 1 to 16777216", (long long)m, (long long)n);
    const int64_t multiple = format->a_is_padded || format->b_is_padded ? format->block_k : 32; /* what TMA describes */
    if (k < 1 || k % multiple != 0 || k > 1 << 20)
        stop("K is %lld: for %s it is a multiple of %d, up to 1048576", (long long)k, format->name, (int)multiple);
    operand_make(&p->a, context, format->a, m, k, p->block_k, p->data);
    operand_make(&p->b, context, format->b, n, k, p->block_k, p->data);
}

void problem_free(struct problem *p) { operand_free(&p->a), operand_free(&p->b); }

/* ---- what the product must be ---- */

/* The nearest number of fp16. */
static float half_of(double value)
{
    return bsm_element_decode(BSM_FP16, bsm_element_encode(BSM_FP16, value, BSM_ROUND_NEAREST_EVEN, false, 0));
}

static int64_t compare(const struct problem *p, const float *d, const float *exact, const float *magnitude, int64_t row,
                       int64_t wrong)
{
    /* Each instruction cuts its terms (33 with the old sum) off 25 bits below the largest, and the sum at fp32's last
     * bit. */
    const double instructions = (double)p->k / (double)p->format->instruction_k, each = ldexp(33.0 / 4 + 1, -23);
    int64_t count = 0;
    for (int64_t column = 0; column < p->n; column++) {
        const double bound = p->data == WHOLE_NUMBERS ? 0 : instructions * each * (double)magnitude[column];
        const double want = (double)exact[column], got = (double)d[column];
        /* rounding is monotonous: a sum within the bound becomes a number between those of the bound's ends */
        const bool right = p->d_is_half ? got >= (double)half_of(want - bound) && got <= (double)half_of(want + bound)
                                        : fabs(got - want) <= bound;
        if (right) continue;
        if (wrong + count++ == 0)
            printf("row %lld, column %lld: %.9g, not %.9g (allowed: %.3g)\n", (long long)row, (long long)column, got,
                   want, bound);
    }
    return count;
}

/* Rows first to first + rows - 1. */
static int64_t verify_rows(const struct problem *p, bsm_context *context, const float *d, int64_t d_pitch,
                           int64_t first, int64_t rows, int64_t wrong)
{
    bsm_matrix a = p->a.matrix;
    float *exact = zeroed(2 * rows * p->n * (int64_t)sizeof *exact), *magnitude = exact + rows * p->n;
    bsm_real_matrix sum = { .struct_size = sizeof sum,
                            .type = BSM_REAL_FP32,
                            .rows = rows,
                            .columns = p->n,
                            .data = exact,
                            .row_stride = p->n,
                            .column_stride = 1 };
    bsm_real_matrix of_magnitudes = sum;
    int64_t count = 0;
    a.rows = rows;
    a.data = (uint8_t *)a.data + p->a.data_bytes / p->m * first,
    a.scales = (uint8_t *)a.scales + p->a.linear_pitch * first;
    of_magnitudes.data = magnitude;
    good(bsm_matmul_exact(context, &a, &p->b.matrix, &sum, &of_magnitudes));
    for (int64_t i = 0; i < rows; i++)
        count +=
            compare(p, d + (first + i) * d_pitch, exact + i * p->n, magnitude + i * p->n, first + i, wrong + count);
    free(exact);
    return count;
}

int64_t problem_verify(const struct problem *p, bsm_context *context, const float *d, int64_t d_pitch)
{
    const double limit = 1 << 28, terms = (double)p->m * (double)p->n * (double)p->k;
    int64_t wrong = 0;
    if (terms <= limit) return verify_rows(p, context, d, d_pitch, 0, p->m, 0);
    const int64_t step = (int64_t)(terms / limit) + 1;
    for (int64_t row = 0; row < p->m; row += step) wrong += verify_rows(p, context, d, d_pitch, row, 1, wrong);
    return wrong + verify_rows(p, context, d, d_pitch, p->m - 1, 1, wrong);
}
