/* What a code is worth: elements, scales, formats; encode and decode.
 *
 * Sources: OCP Microscaling Formats (MX) v1.0; OCP 8-bit floating point v1.0; NVIDIA's NVFP4 (e2m1, ue4m3, block 16).
 *
 * Rules for what the sources leave open:
 *   - encoding NaN gives the format's NaN (always the same positive code); formats without NaN give the largest
 *     positive code, as PTX's cvt does, and int8 gives 0;
 *   - overflow and infinity: saturating, the largest finite code with the value's sign; not saturating, infinity where
 *     the format has one, else NaN where it has one (e4m3), else the largest finite code;
 *   - -0 keeps its sign wherever the format has a sign bit;
 *   - int8 (MXINT8) is two's complement times 2^-6; -128 decodes to -2, but encoding stays within +-127 so that the
 *     range is symmetric;
 *   - e8m0 code c is 2^(c - 127); 0 is 2^-127 (not zero), 255 is NaN;
 *   - ue4m3 ignores its sign bit: 0x80 is 0, 0xff is NaN. */
#ifndef BLOCKSCALE_FORMAT_H
#define BLOCKSCALE_FORMAT_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One stored number. */
typedef enum bsm_element {
    BSM_E4M3, BSM_E5M2, BSM_E3M2, BSM_E2M3, BSM_E2M1, BSM_INT8, BSM_BF16, BSM_FP16, BSM_FP32,
    BSM_ELEMENT_COUNT
} bsm_element;

/* The factor of a block. */
typedef enum bsm_scale { BSM_UNSCALED, BSM_E8M0, BSM_UE4M3, BSM_SCALE_COUNT } bsm_scale;

/* Element, scale and block together.  0 is no format, so that a forgotten field is an error. */
typedef enum bsm_format {
    BSM_FORMAT_NONE = 0,
    BSM_MXFP8_E4M3, BSM_MXFP8_E5M2, BSM_MXFP6_E3M2, BSM_MXFP6_E2M3, BSM_MXFP4, BSM_MXFP4_BLOCK16, BSM_MXINT8, BSM_NVFP4,
    BSM_FORMAT_E4M3, BSM_FORMAT_E5M2, BSM_FORMAT_BF16, BSM_FORMAT_FP16, BSM_FORMAT_FP32,
    BSM_FORMAT_E3M2, BSM_FORMAT_E2M3, BSM_FORMAT_E2M1,
    BSM_FORMAT_COUNT
} bsm_format;

typedef struct bsm_element_info {
    const char *name;                    /* "e4m3" */
    int bits;                            /* of a code: 4, 6, 8, 16 or 32 */
    int exponent_bits, mantissa_bits;    /* int8: 0 and 7 */
    int bias;
    uint32_t max_code;                   /* largest finite positive code */
    bool has_infinity;
    uint32_t nan_code;                   /* what NaN encodes to; max_code (int8: 0) where there is no NaN */
    int nan_codes;                       /* how many codes are NaN, both signs counted */
    double max_value;                    /* of max_code */
} bsm_element_info;

typedef struct bsm_format_info {
    const char *name;                    /* "mxfp8_e4m3"; bsm_format_from_name reads it back */
    bsm_element element;
    bsm_scale scale;
    int block;                           /* elements of K per scale; 0 for unscaled formats */
    double bits_per_element;             /* element and its share of the scale */
} bsm_format_info;

/* Total over all ints: NULL for numbers that are no element or format. */
BSM_API const bsm_element_info *bsm_element_get(int element);
BSM_API const bsm_format_info *bsm_format_get(int format);
BSM_API const char *bsm_scale_name(int scale);

/* By name, or by an alias in common use ("mxfp8" is mxfp8_e4m3, "mxfp6" is mxfp6_e2m3, "float4_e2m1fn" is e2m1 ...).
 * BSM_FORMAT_NONE or -1 when the name is not known; name may be NULL. */
BSM_API bsm_format bsm_format_from_name(const char *name);
BSM_API int bsm_element_from_name(const char *name);

typedef enum bsm_rounding {
    BSM_ROUND_NEAREST_EVEN,
    BSM_ROUND_STOCHASTIC                 /* up (in magnitude) with the probability of the discarded fraction, cut to 32
                                            bits */
} bsm_rounding;

/* Exact value of a code; bits of `code` above the element's width are ignored.  NaN for elements that are not
 * listed. */
BSM_API float bsm_element_decode(bsm_element element, uint32_t code);

/* Rounds once, straight from the exact value: every fp32, fp16 and bf16 number is a double, so none is rounded twice.
 * random: 32 uniform random bits, used by stochastic rounding alone.  Does not depend on the rounding mode of the
 * thread. */
BSM_API uint32_t bsm_element_encode(bsm_element element, double value, bsm_rounding rounding, bool saturate,
                                    uint32_t random);

/* Exact value of a scale code; 1 for BSM_UNSCALED. */
BSM_API float bsm_scale_decode(bsm_scale scale, uint8_t code);

/* The 32 random bits that stochastic rounding uses for element number `index` under `seed`: a pure function. */
BSM_API uint32_t bsm_random_bits(uint64_t seed, uint64_t index);

#ifdef __cplusplus
}
#endif
#endif
