/* The table of kernels that dequantize, and a format in the numbers they take. */
#include "dequantize_table.h"

#include "core/core.h"
#include "core/stream.h"

const struct bsmi_dequantize_kernel bsmi_dequantize_kernels[] = {
#if defined(__x86_64__)
    { "dequantize_avx2",     BSM_CPU_AVX2 | BSM_CPU_FMA, bsmi_dequantize_blocks_avx2 },
#endif
    { "dequantize_portable", 0,                          NULL },
};
const int bsmi_dequantize_kernel_count = sizeof bsmi_dequantize_kernels / sizeof bsmi_dequantize_kernels[0];

static bool serves(const struct bsmi_matrix *source, float tensor_scale, const struct bsmi_reals *destination)
{
    const bool rows_of_floats = destination->column_stride == 1 && destination->type != BSM_REAL_FP64;
    /* Nothing underflows, not even what a product of 2^-10 at least lacks after it was rounded. */
    const bool moderate = tensor_scale >= 0x1p-96F && tensor_scale <= 0x1p96F;
    const bool ue4m3 = source->scale == BSM_UE4M3 && (moderate || destination->type == BSM_REAL_FP32);
    return source->block > 0 && rows_of_floats && (tensor_scale == 1 || ue4m3);
}

const struct bsmi_dequantize_kernel *bsmi_dequantize_kernel_choose(uint32_t features, const struct bsmi_matrix *source,
                                                                   float tensor_scale,
                                                                   const struct bsmi_reals *destination,
                                                                   struct bsmi_block_decoding *decoding)
{
    const bsm_element_info *info = bsm_element_get((int)source->element);
    const struct bsmi_dequantize_kernel *kernel = bsmi_dequantize_kernels;
    const bool served = serves(source, tensor_scale, destination);
    while (kernel->dequantize != NULL && (!served || (kernel->needs & features) != kernel->needs)) kernel++;
    const bool pairs = source->packing == BSM_PACKING_LOW_FIRST || source->packing == BSM_PACKING_HIGH_FIRST;
    *decoding = (struct bsmi_block_decoding){
        .type = destination->type,
        .packing = pairs ? source->packing : BSM_PACKING_BYTES,
        .block = source->block,
        .sign_bit = info->bits - 1,
        .shift = 10 - info->mantissa_bits,
        .integer = source->element == BSM_INT8,
        .nan_magnitude = source->element == BSM_E4M3 ? 0x7f : -1,
        .factor = source->element == BSM_INT8 ? 0x1p-6F : bsmi_float_power_of_two(15 - info->bias),
        .tensor_scale = tensor_scale,
        .divides = source->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES,
        .streamed = bsmi_is_streamed(source->batch, source->rows, source->columns),
    };
    return kernel;
}
