/* Elements of 16 bits, eight at a time: as they are, or fp16 as two terms of bf16. */
#ifndef BSMI_WIDE_OCTETS_CUH
#define BSMI_WIDE_OCTETS_CUH

#include "cuda/ptx/arithmetic.cuh"
#include "octets.cuh"

__device__ static inline uint32_t load_half(const uint16_t *from, int i, int count)
{
    return i < count ? __ldg(from + i) : 0;
}

__device__ static inline uint4 load_halves(const unsigned char *row, int64_t number, int count)
{
    const uint16_t *from = (const uint16_t *)row + number * 8;
    if (count == 8 && aligned_to(from, 16)) return ptx_load_16(from);
    if (count == 8 && aligned_to(from, 4)) {
        const uint32_t *words = (const uint32_t *)from;
        return make_uint4(__ldg(words), __ldg(words + 1), __ldg(words + 2), __ldg(words + 3));
    }
    uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = load_half(from, 2 * i, count) | load_half(from, 2 * i + 1, count) << 16;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* An fp16 as two bf16 of the same sign whose sum it is: its first eight significant bits and the rest, or where there
 * is no rest two equal halves.  Neither part of a number that is not zero is zero, so that infinity times it stays
 * infinite. */
__device__ static inline uint32_t split_fp16(uint32_t code)
{
    const uint32_t bits = __float_as_uint(bsmi_fp16_to_float((uint16_t)code));
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc07fc0;
    if ((bits & 0xffff) == 0) return (__float_as_uint(__uint_as_float(bits) * 0.5f) >> 16) * 0x00010001;
    const float first = __uint_as_float(bits & 0xffff0000);
    return bits >> 16 | (__float_as_uint(__uint_as_float(bits) - first) & 0xffff0000);
}

__device__ static inline void split_octet(uint4 halves, uint4 *first, uint4 *second)
{
    const uint32_t words[4] = { halves.x, halves.y, halves.z, halves.w };
    uint32_t a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t even = split_fp16(words[i] & 0xffff), odd = split_fp16(words[i] >> 16);
        a[i] = __byte_perm(even, odd, 0x5410), b[i] = __byte_perm(even, odd, 0x7632);
    }
    *first = make_uint4(a[0], a[1], a[2], a[3]), *second = make_uint4(b[0], b[1], b[2], b[3]);
}

#endif
