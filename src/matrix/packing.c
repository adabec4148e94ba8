/* Packings and majors: their names, and what goes with them. */
#include "packing.h"

#include <strings.h>

static const char *const names[BSM_PACKING_COUNT] = { "default",    "low_first", "high_first",
                                                      "bit_stream", "bytes",     "gguf" };

const char *bsm_packing_name(int packing)
{
    return packing >= 0 && packing < BSM_PACKING_COUNT ? names[packing] : NULL;
}

int bsm_packing_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_PACKING_COUNT; i++)
        if (strcasecmp(name, names[i]) == 0) return i;
    return -1;
}

static const char *const majors[BSM_MAJOR_COUNT] = { "k", "mn" };

const char *bsm_major_name(int major) { return major >= 0 && major < BSM_MAJOR_COUNT ? majors[major] : NULL; }

int bsm_major_from_name(const char *name)
{
    for (int i = 0; name != NULL && i < BSM_MAJOR_COUNT; i++)
        if (strcasecmp(name, majors[i]) == 0) return i;
    return -1;
}

bool bsmi_packing_fits(bsm_packing packing, bsm_format format, int bits)
{
    switch (packing) {
    case BSM_PACKING_DEFAULT: return bits >= 8;
    case BSM_PACKING_LOW_FIRST:
    case BSM_PACKING_HIGH_FIRST: return bits == 4;
    case BSM_PACKING_BIT_STREAM: return bits == 6;
    case BSM_PACKING_BYTES: return bits <= 8;
    case BSM_PACKING_GGUF: return format == BSM_MXFP4 || format == BSM_NVFP4;
    default: return false;
    }
}

struct bsmi_packing_unit bsmi_packing_unit_of(bsm_packing packing, bsm_format format, int bits)
{
    switch (packing) {
    case BSM_PACKING_LOW_FIRST:
    case BSM_PACKING_HIGH_FIRST: return (struct bsmi_packing_unit){ 2, 1 };
    case BSM_PACKING_BIT_STREAM: return (struct bsmi_packing_unit){ 4, 3 };
    case BSM_PACKING_GGUF:
        return format == BSM_MXFP4 ? (struct bsmi_packing_unit){ 32, 17 } : (struct bsmi_packing_unit){ 64, 36 };
    default: return (struct bsmi_packing_unit){ 1, bits <= 8 ? 1 : bits / 8 };
    }
}
