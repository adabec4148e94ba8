/* Codes to values, exactly. */
#include "rounding.h"

float bsm_element_decode(bsm_element element, uint32_t code)
{
    const bsm_element_info *info = bsm_element_get((int)element);
    if (info == NULL) return bsmi_float_from_bits(0x7fc00000);
    if (element == BSM_FP32) return bsmi_float_from_bits(code);
    if (element == BSM_BF16) return bsmi_bf16_to_float((uint16_t)code);
    if (element == BSM_INT8) return bsmi_decode_int8(code);
    return bsmi_decode_small(info, code);
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
