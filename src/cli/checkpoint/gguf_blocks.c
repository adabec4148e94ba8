/* Q8_0, see gguf_blocks.h.  Source: block_q8_0 of ggml-common.h: 34 bytes, an fp16 scale and 32 codes of int8. */
#include "gguf_blocks.h"
#include "cli/matrices/operand.h"

#include <stdlib.h>
#include <string.h>

enum { Q8_0 = 8, NUMBERS = 32, BYTES = 34 };

bool gguf_blocks_are_read(const bsm_tensor *tensor)
{
    return tensor->type == BSM_TENSOR_OTHER && tensor->gguf_type == Q8_0;
}

/* The scales of all blocks as fp32. */
static bsm_status read_scales(struct cli *cli, const unsigned char *blocks, int64_t count, float *scales)
{
    uint16_t *codes = cli_memory(cli, count, sizeof *codes);
    for (int64_t i = 0; i < count; i++) memcpy(&codes[i], blocks + i * BYTES, sizeof codes[i]);
    const bsm_matrix source = {
        .struct_size = sizeof source, .format = BSM_FORMAT_FP16, .rows = 1, .columns = count, .data = codes
    };
    const bsm_real_matrix to = real_rows(BSM_REAL_FP32, 1, count, scales, count);
    const bsm_status status = bsm_dequantize(cli->context, &source, &to);
    free(codes);
    return status;
}

/* fp16 times int8 has 19 bits: exact in fp32. */
static void multiply(const unsigned char *blocks, const float *scales, int64_t count, float *numbers)
{
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < NUMBERS; k++)
            numbers[i * NUMBERS + k] = scales[i] * (float)(int8_t)blocks[i * BYTES + 2 + k];
}

bsm_status gguf_blocks_values(struct cli *cli, const bsm_tensor *tensor, bsm_real type, void *numbers)
{
    const int64_t blocks = tensor->bytes / BYTES, count = blocks * NUMBERS;
    float *scales = cli_memory(cli, blocks, sizeof *scales), *values = cli_memory(cli, count, sizeof *values);
    bsm_status status = read_scales(cli, tensor->data, blocks, scales);
    if (status == BSM_OK) {
        multiply(tensor->data, scales, blocks, values);
        const bsm_matrix source = fp32_rows(1, count, values, count);
        const bsm_real_matrix to = real_rows(type, 1, count, numbers, count);
        status = bsm_dequantize(cli->context, &source, &to);
    }
    free(values);
    free(scales);
    return status;
}
