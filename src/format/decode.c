/* Codes to values, exactly. */
#include "format.h"

static float decode_int8(uint32_t code) { return (float)(int8_t)(uint8_t)code * 0x1p-6f; }

float bsm_element_decode(bsm_element element, uint32_t code)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    if (info == NULL) return bsmi_float_from_bits(0x7fc00000);
    if (element == BSM_FP32) return bsmi_float_from_bits(code);
    if (element == BSM_BF16) return bsmi_bf16_to_float((uint16_t)code);
    if (element == BSM_INT8) return decode_int8(code);

    const uint32_t sign = (code >> (info->bits - 1)) & 1;
    const uint32_t magnitude = code & (((uint32_t)1 << (info->bits - 1)) - 1);
    const uint32_t exponent = magnitude >> info->mantissa_bits;
    const uint32_t fraction = magnitude & (((uint32_t)1 << info->mantissa_bits) - 1);
    const uint32_t fraction_bits = fraction << (23 - info->mantissa_bits);

    if (magnitude > info->max_code) {     /* only formats with NaN or infinity have such codes */
        const bool infinite = info->has_infinity && fraction == 0;
        return bsmi_float_from_bits(sign << 31 | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    if (exponent == 0) {                  /* fraction * 2^(1 - bias - mantissa bits): exact, and normal in fp32 */
        const float value = (float)fraction * bsmi_float_power_of_two(1 - info->bias - info->mantissa_bits);
        return bsmi_float_from_bits(sign << 31 | bsmi_float_bits(value));
    }
    return bsmi_float_from_bits(sign << 31 | (uint32_t)((int)exponent - info->bias + 127) << 23 | fraction_bits);
}

float bsm_scale_decode(bsm_scale scale, uint8_t code)
{
    switch (scale) {
    case BSM_E8M0: return bsmi_e8m0_to_float(code);
    case BSM_UE4M3: return bsmi_ue4m3_to_float(code);
    default: return 1;
    }
}

void bsmi_element_table(bsm_element element, float *table)
{
    const uint32_t codes = (uint32_t)1 << bsm_element_get((int)element)->bits;
    for (uint32_t code = 0; code < codes; code++) table[code] = bsm_element_decode(element, code);
}
