/* The tables of elements, scales and formats, and their names. */
#include "format.h"

#include <strings.h>

#define X(id, name, bits, exp, man, bias, ...) \
    _Static_assert((exp) == 0 ? (man) + 1 == (bits) : 1 + (exp) + (man) == (bits), name ": sign, exponent, mantissa");
BSMI_ELEMENTS(X)
#undef X

static const bsm_element_info elements[BSM_ELEMENT_COUNT] = {
#define X(id, name, bits, exp, man, bias, max_code, inf, nan_code, nans, grid, integer_bits, max_value) \
    [BSM_##id] = { name, bits, exp, man, bias, max_code, inf, nan_code, nans, max_value },
    BSMI_ELEMENTS(X)
#undef X
};

static const struct { int grid, integer_bits; } integers[BSM_ELEMENT_COUNT] = {
#define X(id, name, bits, exp, man, bias, max_code, inf, nan_code, nans, grid, integer_bits, max_value) \
    [BSM_##id] = { grid, integer_bits },
    BSMI_ELEMENTS(X)
#undef X
};

enum {
#define X(id, name, bits, ...) BITS_##id = bits,
    BSMI_ELEMENTS(X)
#undef X
};

static const bsm_format_info formats[BSM_FORMAT_COUNT] = {
#define X(id, name, element, scale, block) \
    [BSM_##id] = { name, BSM_##element, BSM_##scale, block, \
                   BITS_##element + ((block) != 0 ? 8.0 / ((block) + ((block) == 0)) : 0) },
    BSMI_FORMATS(X)
#undef X
};

static const struct { const char *alias; bsm_format format; } format_aliases[] = {
    { "mxfp8", BSM_MXFP8_E4M3 }, { "mxfp6", BSM_MXFP6_E2M3 }, { "mxfp4_16", BSM_MXFP4_BLOCK16 },
    { "bfloat16", BSM_FORMAT_BF16 }, { "float16", BSM_FORMAT_FP16 }, { "half", BSM_FORMAT_FP16 },
    { "float32", BSM_FORMAT_FP32 }, { "float", BSM_FORMAT_FP32 },
    { "fp8_e4m3", BSM_FORMAT_E4M3 }, { "fp8_e5m2", BSM_FORMAT_E5M2 },
    { "fp6_e3m2", BSM_FORMAT_E3M2 }, { "fp6_e2m3", BSM_FORMAT_E2M3 }, { "fp4_e2m1", BSM_FORMAT_E2M1 },
};

static const struct { const char *alias; bsm_element element; } element_aliases[] = {
    { "float8_e4m3fn", BSM_E4M3 }, { "float8_e5m2", BSM_E5M2 }, { "float6_e3m2fn", BSM_E3M2 },
      { "float6_e2m3fn", BSM_E2M3 },
    { "float4_e2m1fn", BSM_E2M1 }, { "bfloat16", BSM_BF16 }, { "float16", BSM_FP16 }, { "float32", BSM_FP32 },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

const bsm_element_info *bsm_element_get(int element)
{
    return element >= 0 && element < BSM_ELEMENT_COUNT ? &elements[element] : NULL;
}

const bsm_format_info *bsm_format_get(int format)
{
    return format > BSM_FORMAT_NONE && format < BSM_FORMAT_COUNT ? &formats[format] : NULL;
}

const char *bsm_scale_name(int scale)
{
    static const char *const names[BSM_SCALE_COUNT] = { "unscaled", "e8m0", "ue4m3" };
    return scale >= 0 && scale < BSM_SCALE_COUNT ? names[scale] : NULL;
}

bsm_format bsm_format_from_name(const char *name)
{
    if (name == NULL) return BSM_FORMAT_NONE;
    for (int i = BSM_FORMAT_NONE + 1; i < BSM_FORMAT_COUNT; i++)
        if (strcasecmp(name, formats[i].name) == 0) return (bsm_format)i;
    for (size_t i = 0; i < COUNT_OF(format_aliases); i++)
        if (strcasecmp(name, format_aliases[i].alias) == 0) return format_aliases[i].format;
    return BSM_FORMAT_NONE;
}

int bsm_element_from_name(const char *name)
{
    if (name == NULL) return -1;
    for (int i = 0; i < BSM_ELEMENT_COUNT; i++)
        if (strcasecmp(name, elements[i].name) == 0) return i;
    for (size_t i = 0; i < COUNT_OF(element_aliases); i++)
        if (strcasecmp(name, element_aliases[i].alias) == 0) return (int)element_aliases[i].element;
    return -1;
}

int bsmi_element_integer_bits(bsm_element element) { return integers[element].integer_bits; }
int bsmi_element_grid(bsm_element element) { return integers[element].grid; }
