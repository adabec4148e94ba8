/* Codes and values, for the other rooms: the table, and decoding small enough to inline.
 * What is marked BSMI_SHARED is also compiled for GPUs. */
#ifndef BSMI_FORMAT_H
#define BSMI_FORMAT_H

#include "blockscale/format.h"

#include <math.h>
#include <string.h>

#ifdef __CUDACC__
#define BSMI_SHARED __host__ __device__ static inline
#else
#define BSMI_SHARED static inline
#endif

/* The one place that knows an element.
 * grid: decoded values are integers times 2^-grid; integer_bits: bits of the largest such integer, without its sign;
 * 0 where elements are floats whose integers are wider than 8 bits (no integer sums for them).
 *
 *      id      name    bits exp man bias max_code    inf  nan_code    nans      grid integer_bits   max_value */
#define BSMI_ELEMENTS(X) \
    X(E4M3, "e4m3", 8, 4, 3, 7, 0x7e, 0, 0x7f, 2, 9, 0, 448.0) \
    X(E5M2, "e5m2", 8, 5, 2, 15, 0x7b, 1, 0x7f, 6, 16, 0, 57344.0) \
    X(E3M2, "e3m2", 6, 3, 2, 3, 0x1f, 0, 0x1f, 0, 4, 0, 28.0) \
    X(E2M3, "e2m3", 6, 2, 3, 1, 0x1f, 0, 0x1f, 0, 3, 6, 7.5) \
    X(E2M1, "e2m1", 4, 2, 1, 1, 0x07, 0, 0x07, 0, 1, 4, 6.0) \
    X(INT8, "int8", 8, 0, 7, 0, 0x7f, 0, 0x00, 0, 6, 8, 1.984375) \
    X(BF16, "bf16", 16, 8, 7, 127, 0x7f7f, 1, 0x7fc0, 254, 133, 0, 0x1.fep127) \
    X(FP16, "fp16", 16, 5, 10, 15, 0x7bff, 1, 0x7e00, 2046, 24, 0, 65504.0) \
    X(FP32, "fp32", 32, 8, 23, 127, 0x7f7fffff, 1, 0x7fc00000, 16777214, 149, 0, 0x1.fffffep127)

/*      id             name              element  scale     block */
#define BSMI_FORMATS(X) \
        X(MXFP8_E4M3,    "mxfp8_e4m3",    E4M3,    E8M0,     32) \
        X(MXFP8_E5M2,    "mxfp8_e5m2",    E5M2,    E8M0,     32) \
        X(MXFP6_E3M2,    "mxfp6_e3m2",    E3M2,    E8M0,     32) \
        X(MXFP6_E2M3,    "mxfp6_e2m3",    E2M3,    E8M0,     32) \
        X(MXFP4,         "mxfp4",         E2M1,    E8M0,     32) \
        X(MXFP4_BLOCK16, "mxfp4_block16", E2M1,    E8M0,     16) \
        X(MXINT8,        "mxint8",        INT8,    E8M0,     32) \
        X(NVFP4,         "nvfp4",         E2M1,    UE4M3,    16) \
        X(FORMAT_E4M3,   "e4m3",          E4M3,    UNSCALED, 0)  \
        X(FORMAT_E5M2,   "e5m2",          E5M2,    UNSCALED, 0)  \
        X(FORMAT_BF16,   "bf16",          BF16,    UNSCALED, 0)  \
        X(FORMAT_FP16,   "fp16",          FP16,    UNSCALED, 0)  \
        X(FORMAT_FP32,   "fp32",          FP32,    UNSCALED, 0)  \
        X(FORMAT_E3M2,   "e3m2",          E3M2,    UNSCALED, 0)  \
        X(FORMAT_E2M3,   "e2m3",          E2M3,    UNSCALED, 0)  \
        X(FORMAT_E2M1,   "e2m1",          E2M1,    UNSCALED, 0)

/* Whether sums of this element's products are exact integers: bits of the integer without its sign, else 0; and the
 * grid. */
int bsmi_element_integer_bits(bsm_element element);
int bsmi_element_grid(bsm_element element);

BSMI_SHARED float bsmi_float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
BSMI_SHARED uint32_t bsmi_float_bits(float value) { uint32_t bits; memcpy(&bits, &value, sizeof bits); return bits; }
BSMI_SHARED double bsmi_double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
BSMI_SHARED uint64_t bsmi_double_bits(double value) { uint64_t bits; memcpy(&bits, &value, sizeof bits); return bits; }

/* 2^exponent for -149 <= exponent <= 127, exact (subnormals below -126). */
BSMI_SHARED float bsmi_float_power_of_two(int exponent)
{
    return bsmi_float_from_bits(exponent < -126 ? (uint32_t)1 << (exponent + 149) : (uint32_t)(exponent + 127) << 23);
}

/* 2^exponent for -1022 <= exponent <= 1023. */
BSMI_SHARED double bsmi_double_power_of_two(int exponent)
{
    return bsmi_double_from_bits((uint64_t)(exponent + 1023) << 52);
}

BSMI_SHARED float bsmi_bf16_to_float(uint16_t code) { return bsmi_float_from_bits((uint32_t)code << 16); }

BSMI_SHARED float bsmi_fp16_to_float(uint16_t code)
{
    const uint32_t sign = (uint32_t)(code & 0x8000) << 16, exponent = (code >> 10) & 31, fraction = code & 1023;
    if (exponent == 31) return bsmi_float_from_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent != 0) return bsmi_float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = (float)fraction * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
}

BSMI_SHARED float bsmi_e8m0_to_float(uint8_t code)
{
    return code == 255 ? bsmi_float_from_bits(0x7fc00000) : bsmi_float_power_of_two((int)code - 127);
}

BSMI_SHARED float bsmi_ue4m3_to_float(uint8_t code)
{
    const uint32_t exponent = (code >> 3) & 15, fraction = code & 7;
    if ((code & 0x7f) == 0x7f) return bsmi_float_from_bits(0x7fc00000);
    if (exponent == 0) return (float)fraction * 0x1p-9f;
    return bsmi_float_from_bits((exponent + 120) << 23 | fraction << 20);
}

BSMI_SHARED bool bsmi_scale_is_nan(bsm_scale scale, uint8_t code)
{
    return (scale == BSM_E8M0 && code == 255) || (scale == BSM_UE4M3 && (code & 0x7f) == 0x7f);
}

/* bsm_element_encode of many values, to nearest and saturating, for elements of at most 8 bits. */
void bsmi_element_encode_nearest(bsm_element element, const double *values, int count, uint8_t *codes);

/* The code nearest to a magnitude >= 0 (ties to even), saturating at 448; NaN gives 0x7f. */
uint8_t bsmi_ue4m3_encode(double magnitude);

/* Decoded values of all codes of an element of at most 8 bits: table[code], 1 << bits entries. */
void bsmi_element_table(bsm_element element, float *table);

/* value + tail, rounded once to fp32 (ties to even, subnormals, infinity), for exact tail: |tail| is at most half an
 * ulp of value.  This is how a sum that a double cannot hold is rounded without rounding twice. */
float bsmi_round_sum_to_float(double value, double tail);

/* The same value + tail as a double whose last bit is 1 unless it is exact ("round to odd"): it lies on the same side
 * of every number of fewer than 53 bits as the sum does, and on one only if the sum does. */
double bsmi_round_to_odd(double value, double tail);

/* a * b so rounded; exact products stay as they are. */
double bsmi_odd_product(double a, double b);

#endif
