/* Quantizing a block: eight elements a thread, so that two or four neighbouring lanes of a warp have a block together.
 *
 * Three ways give the same bits: the exact one, which is src/quantize's arithmetic in double, for everything; one for
 * e8m0 scales without a tensor scale, where dividing by the scale is exact in fp32; and one for e2m1 with ue4m3 scales,
 * where an fp32 quotient tells the code unless it lies close to a midpoint, and then the exact path decides. */
#ifndef BSMI_BLOCK_CUH
#define BSMI_BLOCK_CUH

#include "blockscale/quantize.h"
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/dequantize/octets.cuh"
#include "quantize/block/scale_code.h"
#include "cuda/scales/scale_places.cuh"

enum block_path { PATH_EXACT, PATH_POWER_OF_TWO, PATH_NVFP4 };

struct eight { float x[8]; };

/* Everything about blocks that is fixed for a matrix. */
struct block_quantizer {
    int element, scale, recipe, rounding, nonfinite, lanes;          /* lanes of a block: 4 or 2 */
    block_path path;
    uint64_t seed;
    double tensor_scale;
    bool divides;
    bool is_nvfp4;                        /* e2m1 to nearest with ue4m3 scales, and a tensor scale that leaves room */
    /* PATH_POWER_OF_TWO: the scale code of amax is ((bits + round_up) >> 23) - emax. */
    uint32_t round_up;
    int emax;
    /* PATH_NVFP4: 1 / (6 t), 6 t and 1 / t, rounded; and whether numbers and t have so few bits, 11 and 12, that an
     * fp32 quotient in the middle of two codes is there exactly: x and middle times divisor are multiples of 2^-21 of
     * themselves. */
    float amax_factor, six_t, factor;
    bool short_t;
};

/* At most 12 significant bits. */
__device__ static inline bool has_few_bits(float value) { return (__float_as_uint(value) & 0xfff) == 0; }

/* amax as fraction bits: from which on the recipe takes the next power of two. */
__device__ static inline uint32_t round_up_of(int recipe, const bsm_element_info &element)
{
    const uint32_t max_fraction = __float_as_uint((float)element.max_value) & 0x7fffff;
    const int bits = element.exponent_bits == 0 ? 6 : element.mantissa_bits;
    switch (recipe) {
    case BSM_RECIPE_FLOOR: return 0;
    case BSM_RECIPE_CEIL: return 0x7fffff;
    case BSM_RECIPE_EVEN: return 1u << (23 - (bits + 1));            /* 2^23 less the fraction of 2 - 2^-(bits + 1) */
    default: return 0x7fffff - max_fraction;
    }
}

/* t: the tensor scale, or 1.  short_source: elements have at most 11 bits. */
__device__ static inline block_quantizer make_quantizer(const bsmi_device_matrix &m, float t, int recipe, int rounding,
                                                        int nonfinite, uint64_t seed, bool short_source)
{
    block_quantizer q = {};
    const bsm_element_info &element = element_of(m.element);
    q.element = m.element, q.scale = m.scale, q.recipe = recipe, q.rounding = rounding, q.nonfinite = nonfinite,
    q.lanes = m.block / 8;
    q.seed = seed, q.tensor_scale = (double)t, q.divides = m.tensor_scale_divides != 0;
    q.path = PATH_EXACT;
    if (rounding != BSM_ROUND_NEAREST_EVEN) return q;
    if (m.scale == BSM_E8M0 && t == 1) {
        q.path = PATH_POWER_OF_TWO;
        q.round_up = round_up_of(recipe, element);
        q.emax = (__double2hiint(element.max_value) >> 20) - 1023;
    }
    q.is_nvfp4 = m.scale == BSM_UE4M3 && m.element == BSM_E2M1 && t > 0x1p-100f && t < 0x1p100f;
    if (q.is_nvfp4 && (!q.divides || t == 1)) {
        const double six_t = 6 * (double)t;
        q.path = PATH_NVFP4;
        q.six_t = (float)six_t, q.amax_factor = (float)(1 / six_t), q.factor = (float)(1 / (double)t);
        q.short_t = short_source && has_few_bits(t);
    }
    return q;
}

/* The exact path --------------------------------------------------------------------------------------------------- */

__device__ __noinline__ static uint32_t exact_scale_code(const block_quantizer &q, float amax)
{
    const bsm_element_info *element = &element_of(q.element);
    const bsmi_fraction r = bsmi_scaled_amax(amax, q.tensor_scale, q.divides);
    switch (q.recipe) {
    case BSM_RECIPE_FLOOR: return bsmi_floor_code(element, r);
    case BSM_RECIPE_CEIL: return bsmi_ceil_code(element, r);
    case BSM_RECIPE_EVEN: return bsmi_even_code(element, r);
    case BSM_RECIPE_NEAREST: return bsmi_nearest_code(element, &element_of(BSM_E4M3), r);
    default: return bsmi_rceil_code(element, r);
    }
}

/* index: the number of the first element, for stochastic rounding. */
__device__ __noinline__ static octet exact_codes(const block_quantizer &q, eight v, uint32_t scale_code, uint64_t index)
{
    const bsmi_division by = bsmi_division_of((double)decode_scale(q.scale, scale_code), q.tensor_scale, q.divides);
    octet o = { 0, 0 };
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
        const float x = v.x[i];
        const double quotient = isfinite(x) ? (double)x * by.factor / by.divisor : (double)x;
        const uint32_t random = q.rounding == BSM_ROUND_STOCHASTIC ? bsmi_random_bits(q.seed, index + i) : 0;
        const uint32_t code = encode_element(q.element, quotient, q.rounding, true, random);
        if (i < 4) o.low |= code << 8 * i;
        else o.high |= code << 8 * (i - 4);
    }
    return o;
}

/* The largest magnitude of a block as bits; lanes that share it are neighbours. */
__device__ static inline uint32_t block_max(uint32_t bits, int lanes)
{
    bits = max(bits, __shfl_xor_sync(0xffffffff, bits, 1));
    if (lanes == 4) bits = max(bits, __shfl_xor_sync(0xffffffff, bits, 2));
    return bits;
}

/* The fast paths --------------------------------------------------------------------------------------------------- */

/* Elements of 6 and 4 bits: v is rounded by adding the number whose last place is v's, at least that of a subnormal;
 * then it fits into the element, and its bits are the code's, moved. */
__device__ static inline uint32_t small_code(float v, int mantissa_bits, int bias, float max_value, int sign_shift)
{
    const float magnitude = fminf(fabsf(v), max_value);
    const uint32_t exponent = max(__float_as_uint(magnitude) & 0x7f800000, (uint32_t)(128 - bias) << 23);
    const float places = __uint_as_float(exponent + ((uint32_t)(23 - mantissa_bits) << 23));
    const float rounded = (magnitude + places) - places;
    const uint32_t code = __float_as_uint(rounded * __uint_as_float((uint32_t)bias << 23)) >> (23 - mantissa_bits);
    return code | (__float_as_uint(v) >> 31) << sign_shift;
}

/* 64 v to the nearest integer in the low bits, by adding 3 * 2^22. */
__device__ static inline uint32_t int8_code(float v)
{
    const float whole = fminf(fmaxf(v * 64, -127), 127) + 0x1.8p23f;
    return __float_as_uint(whole) & 0xff;
}

__device__ static inline octet codes_of(int element, const eight &v)
{
    octet o = { 0, 0 };
    if (element == BSM_E4M3) {
        o.low = ptx_cvt_e4m3x2(v.x[1], v.x[0]) | ptx_cvt_e4m3x2(v.x[3], v.x[2]) << 16;
        o.high = ptx_cvt_e4m3x2(v.x[5], v.x[4]) | ptx_cvt_e4m3x2(v.x[7], v.x[6]) << 16;
        return o;
    }
    if (element == BSM_E5M2) {
        o.low = ptx_cvt_e5m2x2(v.x[1], v.x[0]) | ptx_cvt_e5m2x2(v.x[3], v.x[2]) << 16;
        o.high = ptx_cvt_e5m2x2(v.x[5], v.x[4]) | ptx_cvt_e5m2x2(v.x[7], v.x[6]) << 16;
        return o;
    }
    const bsm_element_info &info = element_of(element);
    const float max_value = (float)info.max_value;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint32_t code = element == BSM_INT8 ? int8_code(v.x[i])
                              : small_code(v.x[i], info.mantissa_bits, info.bias, max_value, info.bits - 1);
        if (i < 4) o.low |= code << 8 * i;
        else o.high |= code << 8 * (i - 4);
    }
    return o;
}

/* Eight e2m1 as nibbles in order, of numbers that have at most 8 bits: as halves of v 2^-14 they are exact where it
 * matters (0.125 and above), and there e2m1's bits are the leading ones of the half, subnormals included. */
__device__ static inline uint32_t short_e2m1_codes(const eight &x, float inverse)
{
    uint32_t nibbles = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t halves = ptx_cvt_f16x2(x.x[i + 4] * inverse, x.x[i] * inverse);
        const uint32_t rounded = (halves & 0x7fff7fff) + 0x00ff00ff + ((halves >> 9) & 0x00010001);
        const uint32_t codes = __vminu2(rounded, 0x0fff0fff);
        nibbles |= (((codes >> 9) & 0x00070007) | ((halves >> 12) & 0x00080008)) << 4 * i;
    }
    return nibbles;
}

/* One over 2^(code - 127). */
__device__ static inline float inverse_power(uint32_t code)
{
    return __uint_as_float(code == 254 ? 0x00400000 : (254 - code) << 23);
}

/* x / (s t) as fp32, up to a few of its last places; with short_t an exact tie comes out exactly. */
__device__ static inline float quotient_of(float x, float divisor, float reciprocal, bool mend)
{
    const float q = x * reciprocal;
    return mend ? fmaf(fmaf(-q, divisor, x), reciprocal, q) : q;
}

/* Whether `bits` lies within 16 last places of the middle of two numbers that have `dropped` bits less, and is not that
 * middle itself where that is trusted. */
__device__ static inline bool near_middle(uint32_t bits, int dropped, bool trust_middle)
{
    const uint32_t away = (bits + (1u << (dropped - 1))) << (32 - dropped), unit = 1u << (32 - dropped);
    return away + 16 * unit < 32 * unit && !(trust_middle && away == 0);
}

__device__ static inline uint32_t nvfp4_scale_code(const block_quantizer &q, float amax)
{
    /* NaN, of infinities: 1024 */
    const float quotient = fminf(quotient_of(amax, q.six_t, q.amax_factor, q.short_t), 1024);
    if (quotient < 0x1p-6f || near_middle(__float_as_uint(quotient), 20, q.short_t)) return exact_scale_code(q, amax);
    return ptx_cvt_e4m3x2(0, quotient) & 0x7f;
}

/* Nibbles in order; *doubtful if one of them must be told the exact path. */
__device__ static inline uint32_t nvfp4_codes(const block_quantizer &q, const eight &v, uint32_t scale_code,
                                              bool *doubtful)
{
    const float scale = bsmi_ue4m3_to_float((uint8_t)scale_code), t = (float)q.tensor_scale, divisor = scale * t;
    const float reciprocal = scale_code == 0 ? 0 : __frcp_rn(scale) * q.factor;
    uint32_t nibbles = 0;
    bool doubt = false;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float quotient = fminf(fabsf(quotient_of(v.x[i], divisor, reciprocal, q.short_t)), 6);
        const uint32_t bits = __float_as_uint(quotient * 0x1p-126f);  /* e2m1's exponent and mantissa lead, subnormals
                                                                         included */
        doubt |= near_middle(bits, 22, q.short_t);
        const uint32_t code = (bits + 0x1fffff + (bits >> 22 & 1)) >> 22;
        nibbles |= (code | (__float_as_uint(v.x[i]) >> 28 & 8)) << 4 * i;
    }
    *doubtful = doubt;
    return nibbles;
}

/* A block ---------------------------------------------------------------------------------------------------------- */

struct quantized { octet codes; uint32_t scale_code; };

__device__ static inline uint32_t largest_magnitude(const eight &v)
{
    uint32_t largest = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) largest = max(largest, __float_as_uint(v.x[i]) & 0x7fffffff);
    return largest;
}

/* Called by whole warps. */
__device__ __noinline__ static quantized quantize_exactly(const block_quantizer &q, eight v, uint64_t index)
{
    uint32_t largest = 0, largest_finite = 0;
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
        const uint32_t magnitude = __float_as_uint(v.x[i]) & 0x7fffffff;
        largest = max(largest, magnitude);
        largest_finite = max(largest_finite, magnitude < 0x7f800000 ? magnitude : 0);
    }
    largest = block_max(largest, q.lanes), largest_finite = block_max(largest_finite, q.lanes);
    quantized result = { { 0, 0 }, 0 };
    if (largest >= 0x7f800000 && q.nonfinite == BSM_NONFINITE_PROPAGATE) {
        result.scale_code = q.scale == BSM_E8M0 ? 0xff : 0x7f;
        return result;
    }
    if (largest_finite > 0) result.scale_code = exact_scale_code(q, __uint_as_float(largest_finite));
    result.codes = exact_codes(q, v, result.scale_code, index);
    return result;
}

/* The quantizer lies in shared memory.  Called by whole warps; numbers behind the end of the row are zeros.  path is
 * q.path; short_bf16: the numbers have at most 8 bits. */
template <block_path path>
__device__ static inline quantized quantize_eight(const block_quantizer &q, const eight &v, uint64_t index,
                                                  bool short_bf16)
{
    if (path == PATH_EXACT) return quantize_exactly(q, v, index);
    quantized result = { { 0, 0 }, 0 };
    const uint32_t amax = block_max(largest_magnitude(v), path == PATH_NVFP4 ? 2 : q.lanes);
    if (__any_sync(0xffffffff, amax >= 0x7f800000)) return quantize_exactly(q, v, index);
    if (path == PATH_NVFP4) {
        bool doubtful;
        if (amax > 0) result.scale_code = nvfp4_scale_code(q, __uint_as_float(amax));
        const uint32_t nibbles = nvfp4_codes(q, v, result.scale_code, &doubtful);
        result.codes = doubtful ? exact_codes(q, v, result.scale_code, index) : spread_nibbles(nibbles, false);
        return result;
    }
    if (amax >= 0x00800000) result.scale_code = (uint32_t)min(max((int)((amax + q.round_up) >> 23) - q.emax, 0), 254);
    else if (amax > 0) result.scale_code = exact_scale_code(q, __uint_as_float(amax));
    const float inverse = inverse_power(result.scale_code);
    if (short_bf16 && q.element == BSM_E2M1) {
        result.codes = spread_nibbles(short_e2m1_codes(v, inverse * 0x1p-14f), false);
        return result;
    }
    eight scaled;
#pragma unroll
    for (int i = 0; i < 8; i++) scaled.x[i] = v.x[i] * inverse;
    result.codes = codes_of(q.element, scaled);
    return result;
}

/* By the quantizer's path, whichever it is; numbers of any size. */
__device__ static inline quantized quantize_to_nearest(const block_quantizer &q, const eight &t)
{
    return q.path == PATH_POWER_OF_TWO ? quantize_eight<PATH_POWER_OF_TWO>(q, t, 0, false)
           : q.path == PATH_NVFP4 ? quantize_eight<PATH_NVFP4>(q, t, 0, false) : quantize_exactly(q, t, 0);
}

/* Where it goes: octet `number` of a row, `count` codes of which lie in it (0 .. 8); scales: of the row;
 * padded_octets: of the row, with the rest of its last block (of GGUF: its last GGUF block).  Called by whole warps. */
__device__ static inline void store_quantized(const bsmi_device_matrix &m, const scale_part &columns,
                                              unsigned char *row, unsigned char *scales, int number, int count,
                                              int padded_octets, const block_quantizer &q, quantized v)
{
    if (count < 8) {                      /* codes behind the row are zeros, also where a zero has a sign */
        const uint64_t kept = ((uint64_t)1 << 8 * count) - 1;
        v.codes.low &= (uint32_t)kept, v.codes.high &= (uint32_t)(kept >> 32);
    }
    const int octets_of_block = q.lanes;
    if (count > 0 && number % octets_of_block == 0)
        scales[place_in(columns, number / octets_of_block)] = (unsigned char)v.scale_code;
    if (m.packing == BSM_PACKING_GGUF) {
        const bool mxfp4 = m.scale == BSM_E8M0;
        const int partner = mxfp4 ? 2 : 1;
        const octet other = { __shfl_xor_sync(0xffffffff, v.codes.low, partner),
                              __shfl_xor_sync(0xffffffff, v.codes.high, partner) };
        if (number < padded_octets && (number & partner) == 0)
            store_gguf(row, mxfp4, (int64_t)number * 8, v.codes, other);
        return;
    }
    if (count > 0) store_octet(m, row, number, v.codes, count);
}

#endif
