/* The tensor scale that several weights share, see shared_scale.h.
 *
 * A tensor scale follows from the largest magnitude alone, and grows with it: that of a group is the one with the
 * largest factor of its members'.  So a single number, the largest, is quantized in place of each member, by the same
 * rule or preset. */
#include "shared_scale.h"

#include <string.h>

/* The largest magnitude among 16-bit codes below `infinity`, which are ordered as their numbers are. */
static uint16_t largest_16(const uint16_t *codes, int64_t count, int infinity)
{
    int16_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const int16_t magnitude = (int16_t)(codes[i] & 0x7fff), finite = magnitude < infinity ? magnitude : 0;
        largest = finite > largest ? finite : largest;
    }
    return (uint16_t)largest;
}

static uint32_t largest_32(const uint32_t *codes, int64_t count)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t magnitude = (int32_t)(codes[i] & 0x7fffffff), finite = magnitude < 0x7f800000 ? magnitude : 0;
        largest = finite > largest ? finite : largest;
    }
    return (uint32_t)largest;
}

bsm_status shared_scale_of(struct cli *cli, const bsm_real_matrix *numbers, const bsm_quantize_options *options,
                           const bsm_matrix *like, float *tensor_scale)
{
    const int64_t count = numbers->rows * numbers->columns;
    const bool wide = numbers->type == BSM_REAL_FP32;
    uint32_t bits32 = wide ? largest_32(numbers->data, count) : 0;
    uint16_t bits16 = wide ? 0 : largest_16(numbers->data, count, numbers->type == BSM_REAL_BF16 ? 0x7f80 : 0x7c00);
    unsigned char code[64], scale[64];
    bsm_quantize_options how = *options;
    bsm_matrix one = *like;
    bsm_real_matrix largest = *numbers;
    *tensor_scale = 0;
    if (bits32 == 0 && bits16 == 0) return BSM_OK;
    largest.data = wide ? (void *)&bits32 : (void *)&bits16;
    largest.rows = largest.columns = one.rows = one.columns = one.batch = 1;
    one.packing = BSM_PACKING_DEFAULT;
    one.scale_layout = (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR };
    one.data = code;
    one.scales = bsm_format_get((int)like->format)->scale == BSM_UNSCALED ? NULL : scale;
    one.tensor_scale = tensor_scale;
    how.tensor_scale = BSM_TENSOR_SCALE_COMPUTED;
    return bsm_quantize(cli->context, &largest, &how, &one, NULL);
}

float shared_scale_join(float one, float other, bsm_tensor_scale_use use)
{
    if (one == 0 || other == 0) return one + other;
    const bool first = use == BSM_TENSOR_SCALE_DIVIDES ? one < other : one > other;
    return first ? one : other;
}

float shared_scale_shorten(float multiplier)
{
    uint32_t bits;
    memcpy(&bits, &multiplier, sizeof bits);
    bits = (bits + 0xffff) & 0xffff0000;
    memcpy(&multiplier, &bits, sizeof bits);
    return multiplier;
}
