/* Quantizing whole blocks of rows that lie well: sources of neighbouring numbers loaded 16 bytes a time, codes stored 4
 * or 8 a time.  The same rounding as block.cuh's fast paths, with everything that can be told before the row taken out
 * of the loop.  What is left of a row, and blocks with NaN or infinity, go by the path of block.cuh. */
#ifndef BSMI_FAST_PATH_ROWS_CUH
#define BSMI_FAST_PATH_ROWS_CUH

#include "block.cuh"

/* Rows of neighbouring numbers that can be loaded 16 bytes a time, by type; or anything, one by one. */
enum source_kind { SOURCE_FP32, SOURCE_FP16, SOURCE_BF16, SOURCE_ANY };

/* FAST_NVFP4_SHORT: few bits (block_quantizer.short_t): the mended quotient is on the
 * right side of every middle.  FAST_NVFP4: any tensor scale. */
enum fast_path { FAST_NONE, FAST_E4M3, FAST_E5M2, FAST_NVFP4_SHORT, FAST_NVFP4 };

__device__ static inline fast_path fast_path_of(const bsmi_device_matrix &m, const block_quantizer &q, source_kind kind)
{
    const uint32_t step = m.bits == 8 ? 8 : 4;
    const bool aligned = aligned_to(m.data, step) && m.row_bytes % step == 0 && m.batch_bytes % step == 0;
    if (!aligned || kind == SOURCE_ANY) return FAST_NONE;
    if (q.path == PATH_POWER_OF_TWO && m.element == BSM_E4M3) return FAST_E4M3;
    if (q.path == PATH_POWER_OF_TWO && m.element == BSM_E5M2) return FAST_E5M2;
    if (m.packing != BSM_PACKING_LOW_FIRST && m.packing != BSM_PACKING_HIGH_FIRST) return FAST_NONE;
    if (q.path == PATH_NVFP4) return q.short_t ? FAST_NVFP4_SHORT : FAST_NVFP4;
    return FAST_NONE;
}

struct loaded { uint4 a, b; };

template <source_kind kind>
__device__ static inline loaded load_numbers(const unsigned char *row, int number)
{
    loaded l = {};
    if (kind == SOURCE_FP32) {
        l.a = ptx_load_16(row + (int64_t)number * 32);
        l.b = ptx_load_16(row + (int64_t)number * 32 + 16);
    } else {
        l.a = ptx_load_16(row + (int64_t)number * 16);
    }
    return l;
}

/* Exact, NaN and infinity included: fp16 by its place in fp32's bits, times 2^112. */
__device__ static inline float widen_fp16(uint32_t code)
{
    const float scaled = __uint_as_float((code & 0x7fff) << 13) * 0x1p112f;
    const uint32_t special = (code & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
    return __uint_as_float(__float_as_uint(scaled) | special | (code & 0x8000) << 16);
}

template <source_kind kind>
__device__ static inline eight widen(const loaded &l)
{
    if (kind == SOURCE_FP32)
        return { { __uint_as_float(l.a.x), __uint_as_float(l.a.y), __uint_as_float(l.a.z), __uint_as_float(l.a.w),
                   __uint_as_float(l.b.x), __uint_as_float(l.b.y), __uint_as_float(l.b.z), __uint_as_float(l.b.w) } };
    const uint32_t words[4] = { l.a.x, l.a.y, l.a.z, l.a.w };
    eight v;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (kind == SOURCE_BF16) {
            v.x[2 * i] = __uint_as_float(words[i] << 16), v.x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000);
        } else {
            v.x[2 * i] = widen_fp16(words[i] & 0xffff), v.x[2 * i + 1] = widen_fp16(words[i] >> 16);
        }
    }
    return v;
}

/* The largest magnitude of a block, as bits of fp32. */
template <source_kind kind>
__device__ static inline uint32_t fast_amax(const loaded &l, const eight &v, int lanes)
{
    if (kind != SOURCE_BF16) return block_max(largest_magnitude(v), lanes);
    const uint32_t mask = 0x7fff7fff;
    uint32_t pair = __vmaxu2(__vmaxu2(l.a.x & mask, l.a.y & mask), __vmaxu2(l.a.z & mask, l.a.w & mask));
    pair = __vmaxu2(pair, __shfl_xor_sync(0xffffffff, pair, 1));
    if (lanes == 4) pair = __vmaxu2(pair, __shfl_xor_sync(0xffffffff, pair, 2));
    return max(pair << 16, pair & 0xffff0000);
}

/* Bit 3 of nibble i: the sign of number i. */
__device__ static inline uint32_t sign_nibbles(const eight &v)
{
    const uint32_t low = __byte_perm(__byte_perm(__float_as_uint(v.x[0]), __float_as_uint(v.x[1]), 0x0073),
                                     __byte_perm(__float_as_uint(v.x[2]), __float_as_uint(v.x[3]), 0x0073), 0x5410);
    const uint32_t high = __byte_perm(__byte_perm(__float_as_uint(v.x[4]), __float_as_uint(v.x[5]), 0x0073),
                                      __byte_perm(__float_as_uint(v.x[6]), __float_as_uint(v.x[7]), 0x0073), 0x5410);
    return (__byte_perm(low, high, 0x6420) >> 4 & 0x08080808) | (__byte_perm(low, high, 0x7531) & 0x80808080);
}

/* e2m1's exponent and mantissa lead the bits of |x / (s t)| 2^-126.  *doubtful: one may lie on the other side of a
 * middle. */
template <bool short_t>
__device__ static inline uint32_t fast_nvfp4_codes(const eight &v, float divisor, float reciprocal, bool *doubtful)
{
    uint32_t nibbles = sign_nibbles(v), nearest = 0xffffffff;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float quotient = fminf(fabsf(quotient_of(v.x[i], divisor, reciprocal, short_t)), 6);
        uint32_t bits = __float_as_uint(quotient * 0x1p-126f);
        if (short_t) {
            bits += 0x1fffff + (bits >> 22 & 1);
        } else {
            bits += 0x200000;
            nearest = min(nearest, bits * 1024 + 16 * 1024);         /* see near_middle */
        }
        nibbles |= (4 * i < 22 ? bits >> (22 - 4 * i) : bits << (4 * i - 22)) & 7u << 4 * i;
    }
    *doubtful = nearest < 32 * 1024;
    return nibbles;
}

/* A row's whole blocks. */
struct fast_row {
    const unsigned char *source;
    unsigned char *codes, *scales;
    int end;                              /* octets of whole blocks */
    int thread, threads;
    uint64_t index;
};

template <source_kind kind, fast_path path, int steps>
__device__ static inline void quantize_fast_row(const bsmi_device_matrix &m, const block_quantizer &q,
                                                 const scale_part &columns, const fast_row &r)
{
    const bool nvfp4 = path == FAST_NVFP4 || path == FAST_NVFP4_SHORT;
    const uint32_t round_up = q.round_up;
    const int emax = q.emax, lanes = nvfp4 ? 2 : q.lanes, shift = lanes == 4 ? 2 : 1;
    const float t = (float)q.tensor_scale, factor = q.factor;
    const bool high_first = m.packing == BSM_PACKING_HIGH_FIRST;
    for (int base = 0; base < r.end; base += r.threads * steps) {    /* whole warps go together */
        loaded raw[steps];
#pragma unroll
        for (int i = 0; i < steps; i++) {
            const int number = base + r.thread + i * r.threads;
            raw[i] = {};
            if (number < r.end) raw[i] = load_numbers<kind>(r.source, number);
        }
#pragma unroll
        for (int i = 0; i < steps; i++) {
            if (base + i * r.threads >= r.end) break;
            const int number = base + r.thread + i * r.threads;
            const bool mine = number < r.end;
            const eight v = widen<kind>(raw[i]);
            const uint32_t amax = fast_amax<kind>(raw[i], v, lanes);
            if (__any_sync(0xffffffff, amax >= 0x7f800000)) {
                const quantized exact = quantize_exactly(q, v, r.index + (uint64_t)number * 8);
                store_quantized(m, columns, r.codes, r.scales, number, mine ? 8 : 0, r.end, q, exact);
                continue;
            }
            uint32_t scale_code = 0, word = 0;
            octet codes = { 0, 0 };
            if (nvfp4) {
                bool doubtful;
                if (amax > 0) scale_code = nvfp4_scale_code(q, __uint_as_float(amax));
                const float scale = __uint_as_float((scale_code & 0x7f) << 20) * 0x1p120f;
                const float reciprocal = scale_code == 0 ? 0 : __fdividef(1, scale) * factor;
                word = fast_nvfp4_codes<path == FAST_NVFP4_SHORT>(v, scale * t, reciprocal, &doubtful);
                if (doubtful) word = gather_nibbles(exact_codes(q, v, scale_code, 0), false);
            } else {
                /* emax > 0: a subnormal amax has code 0, and so has 0. */
                scale_code = (uint32_t)min(max((int)((amax + round_up) >> 23) - emax, 0), 254);
                const float inverse = inverse_power(scale_code);
                eight scaled;
#pragma unroll
                for (int j = 0; j < 8; j++) scaled.x[j] = v.x[j] * inverse;
                codes = codes_of(path == FAST_E4M3 ? BSM_E4M3 : BSM_E5M2, scaled);
            }
            if (!mine) continue;
            if (nvfp4)
                ((uint32_t *)r.codes)[number] = high_first ? (word << 4 & 0xf0f0f0f0) | (word >> 4 & 0x0f0f0f0f) : word;
            else ((uint2 *)r.codes)[number] = make_uint2(codes.low, codes.high);
            if ((number & (lanes - 1)) == 0) r.scales[place_in(columns, number >> shift)] = (unsigned char)scale_code;
        }
    }
}

#endif
