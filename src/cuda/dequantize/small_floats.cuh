/* Codes of at most 8 bits, and scales, as pairs of bf16: exact. */
#ifndef BSMI_SMALL_FLOATS_CUH
#define BSMI_SMALL_FLOATS_CUH

#include "cuda/ptx/arithmetic.cuh"
#include "octets.cuh"

/* How a code of at most 8 bits becomes a bf16: magnitude bits move up to where bf16 has its exponent and mantissa,
 * which makes it the element times 2^(bias of the element - 127), subnormals included; a multiplication by a power of
 * two mends that. */
struct small_float { uint32_t magnitude, sign, magnitude_shift, sign_shift, mend; };

__device__ static inline small_float small_float_of(int element)
{
    const uint32_t magnitude_bits = (uint32_t)byte_of(bits_of_each, element) - 1,
                   mantissa_bits = (uint32_t)byte_of(mantissa_bits_of_each, element),
                   power = (127u + 127 - (uint32_t)byte_of(bias_of_each, element)) << 7;
    return { ((1u << magnitude_bits) - 1) * 0x00010001, 0x00010001u << magnitude_bits, 7 - mantissa_bits,
             15 - magnitude_bits, power * 0x00010001 };
}

/* Two codes in the low bytes of two halves. */
__device__ static inline uint32_t decode_pair(const small_float &f, uint32_t codes)
{
    const uint32_t bits = (codes & f.magnitude) << f.magnitude_shift | (codes & f.sign) << f.sign_shift;
    return ptx_mul_bf16x2(bits, f.mend);
}

/* int8: 128 + its low seven bits, less 128 or 256, times 2^-6. */
__device__ static inline uint32_t decode_int8_pair(uint32_t codes)
{
    const uint32_t whole = ptx_sub_bf16x2(0x43004300 | (codes & 0x007f007f), 0x43004300 | (codes & 0x00800080));
    return ptx_mul_bf16x2(whole, 0x3c803c80);
}

/* NaN and infinity of e4m3 and e5m2, which the multiplication took for numbers. */
__device__ static inline uint32_t mend_special_pair(int element, uint32_t codes, uint32_t decoded)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint32_t code = codes >> 16 * half & 0xff, magnitude = code & 0x7f;
        if ((int)magnitude <= byte_of(max_code_of_each, element)) continue;
        const bool infinite = element == BSM_E5M2 && magnitude == 0x7c;
        const uint32_t bits = (infinite ? 0x7f80u : 0x7fc0u) | (code & 0x80) << 8;
        decoded = (decoded & ~(0xffffu << 16 * half)) | bits << 16 * half;
    }
    return decoded;
}

__device__ static inline bool any_byte_from(octet o, uint32_t magnitude)
{
    const uint32_t add = (0x80 - magnitude) * 0x01010101;
    return ((((o.low & 0x7f7f7f7f) + add) | ((o.high & 0x7f7f7f7f) + add)) & 0x80808080) != 0;
}

/* Without scales. */
__device__ static inline uint4 decode_codes(int element, const small_float &f, octet o)
{
    uint32_t codes[4] = { __byte_perm(o.low, 0, 0x4140), __byte_perm(o.low, 0, 0x4342), __byte_perm(o.high, 0, 0x4140),
                          __byte_perm(o.high, 0, 0x4342) };
    uint32_t decoded[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        decoded[i] = element == BSM_INT8 ? decode_int8_pair(codes[i]) : decode_pair(f, codes[i]);
    if ((element == BSM_E4M3 || element == BSM_E5M2) && any_byte_from(o, element == BSM_E4M3 ? 0x7f : 0x7c)) {
#pragma unroll
        for (int i = 0; i < 4; i++) decoded[i] = mend_special_pair(element, codes[i], decoded[i]);
    }
    return make_uint4(decoded[0], decoded[1], decoded[2], decoded[3]);
}

/* A scale as bf16, twice.  e8m0: 2^(code - 127 - exponent), which is a normal number unless the row is written again or
 * a fallback row; then it is cut to the nearest one.  ue4m3 has a bf16 of its own. */
__device__ static inline uint32_t scale_pair(int scale, uint32_t code, int exponent)
{
    uint32_t bits;
    if (scale == BSM_E8M0) {
        const int biased = (int)code - exponent;
        bits = code == 255 ? 0x7fc0 : (uint32_t)min(max(biased, 1), 254) << 7;
        return bits * 0x00010001;
    }
    bits = (code & 0x7f) == 0x7f ? 0x7fc0 : (code & 0x7f) << 4;
    return ptx_mul_bf16x2(bits * 0x00010001, 0x7b807b80);            /* 2^120 */
}

__device__ static inline uint4 multiply(uint4 v, uint32_t pair)
{
    return make_uint4(ptx_mul_bf16x2(v.x, pair), ptx_mul_bf16x2(v.y, pair), ptx_mul_bf16x2(v.z, pair),
                      ptx_mul_bf16x2(v.w, pair));
}

/* Eight e2m1 in order, as the bf16 that a table has for each magnitude: x, y their low bytes, z, w their high ones.  A
 * nibble whose highest bit is set would make prmt give a sign instead of a byte; of a selector it reads the low half
 * alone. */
__device__ static inline uint4 nibbles_by_table(uint32_t codes, uint4 table)
{
    const uint32_t first = codes & 0x77777777, second = first >> 16, shifted = codes << 4;
    const uint32_t high_0 = __byte_perm(table.z, table.w, first) | (__byte_perm(shifted, codes, 0x5140) & 0x80808080);
    const uint32_t high_1 = __byte_perm(table.z, table.w, second) | (__byte_perm(shifted, codes, 0x7362) & 0x80808080);
    const uint32_t low_0 = __byte_perm(table.x, table.y, first), low_1 = __byte_perm(table.x, table.y, second);
    return make_uint4(__byte_perm(low_0, high_0, 0x5140), __byte_perm(low_0, high_0, 0x7362),
                      __byte_perm(low_1, high_1, 0x5140), __byte_perm(low_1, high_1, 0x7362));
}

/* Without scales. */
__device__ static inline uint4 decode_nibbles(uint32_t codes)
{
    return nibbles_by_table(codes, make_uint4(0xc0800000, 0xc0804000, 0x3f3f3f00, 0x40404040));
}

__device__ static inline uint32_t swap_nibbles(uint32_t codes)
{
    return (codes << 4 & 0xf0f0f0f0) | (codes >> 4 & 0x0f0f0f0f);
}

#endif
