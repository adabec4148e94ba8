/* A matrix of the command's own, see operand.h. */
#include "operand.h"

#include <stdlib.h>
#include <string.h>

int operand_create(struct cli *cli, struct operand *operand, bsm_matrix description)
{
    const bsm_format_info *info = bsm_format_get((int)description.format);
    *operand = (struct operand) { .matrix = description, .tensor_scale = 1 };
    operand->matrix.struct_size = sizeof(bsm_matrix);
    if (info->scale == BSM_UNSCALED) operand->matrix.scale_layout = (bsm_scale_layout) { .kind = BSM_LAYOUT_LINEAR };
    bsm_status status = bsm_matrix_data_bytes(&operand->matrix, &operand->data_bytes);
    if (status == BSM_OK) status = bsm_matrix_scale_bytes(&operand->matrix, &operand->scale_bytes);
    if (status != BSM_OK) return cli_library_failed(cli, info->name, status);
    operand->matrix.data = cli_memory(cli, operand->data_bytes, 1);
    memset(operand->matrix.data, 0xff, (size_t)operand->data_bytes);
    if (operand->scale_bytes > 0) {
        operand->matrix.scales = cli_memory(cli, operand->scale_bytes, 1);
        memset(operand->matrix.scales, 0xff, (size_t)operand->scale_bytes);
    }
    return CLI_DONE;
}

int operand_create_plain(struct cli *cli, struct operand *operand, bsm_format format, int64_t rows, int64_t columns)
{
    return operand_create(cli, operand, (bsm_matrix) { .format = format, .rows = rows, .columns = columns });
}

/* Narrow formats without a scale of their own range; e8m0 formats and wide ones refuse a tensor scale that is
 * computed. */
static bool wants_tensor_scale(bsm_format format)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    return format == BSM_NVFP4 || (info->block == 0 && info->bits_per_element <= 8);
}

bsm_status operand_quantize(struct cli *cli, struct operand *operand, const float *source, int64_t pitch,
                            bsm_quantize_stats *stats)
{
    bsm_matrix *matrix = &operand->matrix;
    const bsm_real_matrix from =
        real_rows(BSM_REAL_FP32, matrix->rows, matrix->columns, (void *)(uintptr_t)source, pitch);
    bsm_quantize_options options = { .struct_size = sizeof options };
    if (wants_tensor_scale(matrix->format)) {
        options.tensor_scale = BSM_TENSOR_SCALE_COMPUTED;
        matrix->tensor_scale = &operand->tensor_scale;
    }
    return bsm_quantize(cli->context, &from, &options, matrix, stats);
}

void operand_free(struct operand *operand)
{
    free(operand->matrix.data);
    free(operand->matrix.scales);
    *operand = (struct operand) { .tensor_scale = 1 };
}

bsm_matrix operand_head(const struct operand *operand, int64_t count)
{
    bsm_matrix head = operand->matrix;
    head.rows = count;
    return head;
}

bsm_real_matrix real_rows(bsm_real type, int64_t rows, int64_t columns, void *data, int64_t pitch)
{
    return (bsm_real_matrix) { .struct_size = sizeof(bsm_real_matrix), .type = type, .rows = rows, .columns = columns,
                               .data = data,
                               .row_stride = pitch, .column_stride = 1 };
}

bsm_matrix fp32_rows(int64_t rows, int64_t columns, float *data, int64_t pitch)
{
    return (bsm_matrix){ .struct_size = sizeof(bsm_matrix), .format = BSM_FORMAT_FP32, .rows = rows, .columns = columns,
                         .data = data, .pitch = pitch };
}
