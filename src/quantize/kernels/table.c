/* The table of kernels that quantize, and a quantizer in the numbers they take. */
#include "table.h"

#include "core/core.h"
#include "quantize/block/recipes.h"

#define AVX2 (BSM_CPU_AVX2 | BSM_CPU_FMA)
#define AVX512 (AVX2 | BSM_CPU_AVX512)

/* Best first; the last row serves every quantizer on every CPU. */
const struct bsmi_quantize_kernel bsmi_quantize_kernels[] = {
#if defined(__x86_64__)
    { "quantize_avx512",   AVX512, bsmi_quantize_rows_avx512, bsmi_widen_reals_avx512, bsmi_count_blocks_avx512,
      bsmi_largest_finite_avx512 },
    { "quantize_avx2",     AVX2,   bsmi_quantize_blocks_avx2,   bsmi_widen_reals_avx2,   bsmi_count_blocks_avx2,
      bsmi_largest_finite_avx2 },
#endif
    { "quantize_portable", 0,      NULL,                        NULL,                    NULL,
      NULL },
};
const int bsmi_quantize_kernel_count = sizeof bsmi_quantize_kernels / sizeof bsmi_quantize_kernels[0];

static struct bsmi_grid grid_of(bsm_element element)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    const int mantissa = info->mantissa_bits, smallest = 1 - info->bias;
    const float step = bsmi_float_power_of_two(smallest - mantissa);
    const float below = bsm_element_decode(element, info->max_code - 1), largest = (float)info->max_value;
    return (struct bsmi_grid){
        .bits = info->bits, .shift = 23 - mantissa,
        .smallest = (int32_t)bsmi_float_bits(bsmi_float_power_of_two(smallest)),
        .adder = (23 - mantissa) << 23 | (256 - (((smallest + 150 - mantissa) << mantissa) & 255)), .largest = largest,
        .first_midpoint = step / 2, .last_midpoint = (below + largest) / 2,
    };
}

/* A recipe's power of two doubles with amax, so it steps up once in every binade, at the same fraction of each (or
 * between two of them).  Both are found by asking the recipe in the binade of the tensor scale, where no code is
 * cut. */
static void find_scale_steps(const struct bsmi_block_quantizer *quantizer, struct bsmi_block_coding *coding)
{
    const uint32_t tensor_scale = bsmi_float_bits(coding->tensor_scale) >> 23;
    const uint32_t binade = coding->divides ? 254 - tensor_scale : tensor_scale;
    struct bsmi_block_view block = { NULL, 0, (double)bsmi_float_from_bits(binade << 23) };
    const int first = quantizer->recipe->scale_code(quantizer, &block);
    uint32_t low = 0, high = 1u << 23;    /* the least fraction with the next code: above low, at most high */
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        block.amax = (double)bsmi_float_from_bits(binade << 23 | middle);
        if (quantizer->recipe->scale_code(quantizer, &block) > first) high = middle;
        else low = middle;
    }
    coding->scale_bias = (int32_t)((1u << 23) - high);
    coding->scale_offset = first - (int32_t)binade;
}

static void find_divisor(struct bsmi_block_coding *coding)
{
    const float t = coding->tensor_scale, largest = coding->element.largest;
    coding->divisor = coding->divides ? t : largest * t;
    coding->divisor_rest = coding->divides ? largest : (float)((double)largest * (double)t - (double)coding->divisor);
    coding->scale_factor = coding->divides ? t / largest : 1 / coding->divisor;
}

static bool serves(const struct bsmi_block_quantizer *quantizer)
{
    const bool bounded = quantizer->clamp.low > 0 || quantizer->clamp.high > 0 || quantizer->smallest_scale > 0;
    const bool recipe_alone = quantizer->preset == NULL && quantizer->recipe->in_kernels && !bounded;
    const bool exact = quantizer->element == BSM_E2M1 && quantizer->tensor_scale == 1;
    if (quantizer->recipe->searches && !exact) return false;
    return recipe_alone && quantizer->rounding == BSM_ROUND_NEAREST_EVEN && quantizer->tensor_scale >= 0x1p-96
        && quantizer->tensor_scale <= 0x1p96;
}

static void make_coding(const struct bsmi_block_quantizer *quantizer, int block, struct bsmi_block_coding *coding)
{
    const float t = (float)quantizer->tensor_scale;
    const bool ue4m3 = quantizer->scale == BSM_UE4M3;
    *coding = (struct bsmi_block_coding){
        .element = grid_of(quantizer->element), .scale = grid_of(BSM_E4M3), .block = block,
        .complement = quantizer->element == BSM_INT8, .ue4m3 = ue4m3, .searches = quantizer->recipe->searches,
        .divides = quantizer->tensor_scale_divides && t != 1,
        .tensor_scale = t, .inverse = quantizer->tensor_scale_divides ? t : 1 / t,
    };
    if (ue4m3) find_divisor(coding);
    else find_scale_steps(quantizer, coding);
    if (ue4m3 && quantizer->source == BSM_REAL_BF16)
        bsmi_bf16_steps_make(quantizer->tensor_scale, coding->divides, &coding->bf16_steps);
}

const struct bsmi_quantize_kernel *bsmi_quantize_kernel_of(uint32_t features)
{
    const struct bsmi_quantize_kernel *kernel = bsmi_quantize_kernels;
    while ((kernel->needs & features) != kernel->needs) kernel++;
    return kernel;
}

const struct bsmi_quantize_kernel *bsmi_quantize_kernel_choose(uint32_t features,
                                                               const struct bsmi_block_quantizer *quantizer,
                                                               const struct bsmi_matrix *destination,
                                                               struct bsmi_block_coding *coding)
{
    const struct bsmi_quantize_kernel *kernel = bsmi_quantize_kernels;
    const bool served = serves(quantizer);
    while (kernel->quantize != NULL && (!served || (kernel->needs & features) != kernel->needs)) kernel++;
    if (kernel->quantize != NULL) make_coding(quantizer, destination->block, coding);
    return kernel;
}
