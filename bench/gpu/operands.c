/* Operands in device memory, see operands.h. */
#include "operands.h"

static bsm_matrix describe(bsm_format format, int64_t rows, int64_t columns)
{
    return (bsm_matrix){ .struct_size = sizeof(bsm_matrix), .format = format, .rows = rows, .columns = columns };
}

static void count_bytes(const bsm_matrix *m, int64_t *data, int64_t *scales)
{
    gpu_library(bsm_matrix_data_bytes(m, data), "bytes of codes");
    gpu_library(bsm_matrix_scale_bytes(m, scales), "bytes of scales");
}

int64_t coded_bytes(bsm_format format, int64_t rows, int64_t columns)
{
    const bsm_matrix m = describe(format, rows, columns);
    int64_t data, scales;
    count_bytes(&m, &data, &scales);
    return data + scales;
}

bsm_real_matrix bf16_rows(void *data, int64_t rows, int64_t columns)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix),
                              .type = BSM_REAL_BF16,
                              .rows = rows,
                              .columns = columns,
                              .data = data,
                              .row_stride = columns,
                              .column_stride = 1 };
}

bsm_matrix plain_rows(bsm_format format, void *data, int64_t rows, int64_t columns)
{
    bsm_matrix m = describe(format, rows, columns);
    m.data = data;
    return m;
}

static void quantize(struct gpu *gpu, struct coded *c, void *numbers)
{
    const bsm_real_matrix source = bf16_rows(numbers, c->matrix.rows, c->matrix.columns);
    const bool two_levels = bsm_format_get((int)c->matrix.format)->scale == BSM_UE4M3;
    const bsm_quantize_options options = { .struct_size = sizeof options,
                                           .tensor_scale = two_levels ? BSM_TENSOR_SCALE_COMPUTED : BSM_TENSOR_SCALE_GIVEN };
    if (two_levels) c->matrix.tensor_scale = gpu_take(gpu, (int64_t)sizeof(float));
    gpu_library(bsm_quantize(gpu->context, &source, &options, &c->matrix, NULL), "quantizing operands");
    if (two_levels)
        gpu_library(bsm_device_read(gpu->context, &c->tensor_scale, c->matrix.tensor_scale, sizeof(float)), "a tensor scale");
}

struct coded coded_take(struct gpu *gpu, bsm_format format, int64_t rows, int64_t columns, int64_t first)
{
    return coded_take_in(gpu, format, BSM_LAYOUT_LINEAR, rows, columns, first);
}

struct coded coded_take_in(struct gpu *gpu, bsm_format format, bsm_layout layout, int64_t rows, int64_t columns, int64_t first)
{
    struct coded c = { .matrix = describe(format, rows, columns), .tensor_scale = 1 };
    uint16_t *numbers = (uint16_t *)gpu->pool + first;
    int64_t data, scales;
    c.matrix.scale_layout.kind = layout;
    if (first + rows * columns > gpu->pool_count)
        gpu_stop("too few random numbers: %lld x %lld", (long long)rows, (long long)columns);
    count_bytes(&c.matrix, &data, &scales);
    c.bytes = data + scales;
    c.matrix.data = gpu_take(gpu, data);
    if (scales > 0) c.matrix.scales = gpu_take(gpu, scales);
    if (format == BSM_FORMAT_BF16) gpu_copy(gpu, c.matrix.data, numbers, data);
    else quantize(gpu, &c, numbers);
    return c;
}

void coded_dequantize(const struct gpu *gpu, const struct coded *coded, void *to)
{
    const bsm_real_matrix destination = bf16_rows(to, coded->matrix.rows, coded->matrix.columns);
    bsm_matrix source = coded->matrix;
    source.tensor_scale = NULL;
    gpu_library(bsm_dequantize(gpu->context, &source, &destination), "dequantizing operands");
}
