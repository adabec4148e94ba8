/* Eight neighbouring codes of a row, in any packing: element 8 o + i is byte i of (low, high).  What lies behind the
 * row's last code is neither read nor told apart: those codes are 0. */
#ifndef BSMI_OCTETS_CUH
#define BSMI_OCTETS_CUH

#include "elements.cuh"

struct octet { uint32_t low, high; };

__device__ static inline bool aligned_to(const void *pointer, uint32_t bytes)
{
    return ((uint32_t)(uintptr_t)pointer & (bytes - 1)) == 0;
}

/* `bytes` bytes (at most 8) from anywhere, the rest zeros. */
__device__ static inline octet load_bytes(const unsigned char *from, int bytes)
{
    octet o = { 0, 0 };
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const uint32_t byte = i < bytes ? (uint32_t)__ldg(from + i) << 8 * (i & 3) : 0;
        if (i < 4) o.low |= byte;
        else o.high |= byte;
    }
    return o;
}

__device__ static inline void store_bytes(unsigned char *to, octet o, int bytes)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < bytes) to[i] = (unsigned char)((i < 4 ? o.low : o.high) >> 8 * (i & 3));
}

/* Nibbles to bytes: even elements from the low nibbles, or from the high ones. */
__device__ static inline octet spread_nibbles(uint32_t bytes, bool high_first)
{
    const uint32_t low = bytes & 0x0f0f0f0f, high = (bytes >> 4) & 0x0f0f0f0f;
    const uint32_t even = high_first ? high : low, odd = high_first ? low : high;
    return { __byte_perm(even, odd, 0x5140), __byte_perm(even, odd, 0x7362) };
}

__device__ static inline uint32_t gather_nibbles(octet o, bool high_first)
{
    const uint32_t even = __byte_perm(o.low, o.high, 0x6420), odd = __byte_perm(o.low, o.high, 0x7531);
    return high_first ? (even << 4 & 0xf0f0f0f0) | (odd & 0x0f0f0f0f) : (even & 0x0f0f0f0f) | (odd << 4 & 0xf0f0f0f0);
}

/* A stream of 6 bits: 48 bits to eight bytes. */
__device__ static inline octet spread_stream(octet packed)
{
    const uint64_t bits = (uint64_t)packed.high << 32 | packed.low;
    octet o = { 0, 0 };
#pragma unroll
    for (int i = 0; i < 4; i++) {
        o.low |= ((uint32_t)(bits >> 6 * i) & 63) << 8 * i;
        o.high |= ((uint32_t)(bits >> (24 + 6 * i)) & 63) << 8 * i;
    }
    return o;
}

__device__ static inline octet gather_stream(octet o)
{
    uint64_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        bits |= (uint64_t)(o.low >> 8 * i & 63) << 6 * i | (uint64_t)(o.high >> 8 * i & 63) << (24 + 6 * i);
    return { (uint32_t)bits, (uint32_t)(bits >> 32) };
}

/* Byte in the row and shift of a nibble in GGUF blocks (packing.c). */
struct gguf_nibble { int64_t byte; int shift; };

__device__ static inline gguf_nibble gguf_place(bool mxfp4, int64_t k)
{
    if (mxfp4) {
        const int j = (int)(k & 31);
        return { (k >> 5) * 17 + 1 + (j & 15), j < 16 ? 0 : 4 };
    }
    const int sub_block = (int)(k & 63) >> 4, j = (int)(k & 15);
    return { (k >> 6) * 36 + 4 + sub_block * 8 + (j & 7), j < 8 ? 0 : 4 };
}

/* An octet of GGUF is the low or the high nibbles of eight neighbouring bytes. */
__device__ static inline octet load_gguf(const unsigned char *row, bool mxfp4, int64_t k, int count)
{
    const gguf_nibble at = gguf_place(mxfp4, k);
    const octet bytes = load_bytes(row + at.byte, count);
    return { (bytes.low >> at.shift) & 0x0f0f0f0f, (bytes.high >> at.shift) & 0x0f0f0f0f };
}

/* Codes of elements of at most 8 bits.  count: how many there are, 1 .. 8; bits of a BYTES packing beyond the element's
 * width are dropped.  Out of line: the fast paths are the callers'. */
__device__ __noinline__ static octet load_octet(const bsmi_device_matrix &m, const unsigned char *row, int64_t number,
                                                int count)
{
    const int64_t k = number * 8;
    octet o;
    switch (m.packing) {
    case BSM_PACKING_LOW_FIRST:
    case BSM_PACKING_HIGH_FIRST: {
        const unsigned char *from = row + number * 4;
        const bool high_first = m.packing == BSM_PACKING_HIGH_FIRST;
        if (count == 8 && aligned_to(from, 4)) return spread_nibbles(__ldg((const uint32_t *)from), high_first);
        o = spread_nibbles(load_bytes(from, (count + 1) / 2).low, high_first);
        break;
    }
    case BSM_PACKING_BIT_STREAM: {
        const unsigned char *from = row + number * 6;
        if (count == 8 && aligned_to(from, 2)) {
            const uint16_t *halves = (const uint16_t *)from;
            return spread_stream({ __ldg(halves) | (uint32_t)__ldg(halves + 1) << 16, __ldg(halves + 2) });
        }
        o = spread_stream(load_bytes(from, (count * 6 + 7) / 8));
        break;
    }
    case BSM_PACKING_GGUF:
        return load_gguf(row, m.scale == BSM_E8M0, k, count);
    default: {
        const unsigned char *from = row + k;
        const uint32_t mask = ((1u << m.bits) - 1) * 0x01010101;
        if (count == 8 && aligned_to(from, 8)) {
            const uint2 two = __ldg((const uint2 *)from);
            return { two.x & mask, two.y & mask };
        }
        o = load_bytes(from, count);
        o.low &= mask, o.high &= mask;
        break;
    }
    }
    /* The other half of the last byte. */
    if (count < 8) {
        const uint64_t kept = ((uint64_t)1 << 8 * count) - 1;
        o.low &= (uint32_t)kept, o.high &= (uint32_t)(kept >> 32);
    }
    return o;
}

/* The same, stored: `count` codes, padding bits of the last byte as zeros.  Codes behind them are 0 and have no bits
 * beyond the element's width.  A half octet of GGUF's other half keeps its nibbles: the caller stores both by
 * store_gguf. */
__device__ static inline void store_octet(const bsmi_device_matrix &m, unsigned char *row, int64_t number, octet o,
                                          int count)
{
    switch (m.packing) {
    case BSM_PACKING_LOW_FIRST:
    case BSM_PACKING_HIGH_FIRST: {
        unsigned char *to = row + number * 4;
        const uint32_t bytes = gather_nibbles(o, m.packing == BSM_PACKING_HIGH_FIRST);
        if (count == 8 && aligned_to(to, 4)) *(uint32_t *)to = bytes;
        else store_bytes(to, { bytes, 0 }, (count + 1) / 2);
        break;
    }
    case BSM_PACKING_BIT_STREAM: {
        unsigned char *to = row + number * 6;
        const octet bits = gather_stream(o);
        if (count == 8 && aligned_to(to, 2)) {
            uint16_t *halves = (uint16_t *)to;
            halves[0] = (uint16_t)bits.low, halves[1] = (uint16_t)(bits.low >> 16), halves[2] = (uint16_t)bits.high;
        } else {
            store_bytes(to, bits, (count * 6 + 7) / 8);
        }
        break;
    }
    default: {
        unsigned char *to = row + number * 8;
        if (count == 8 && aligned_to(to, 8)) *(uint2 *)to = make_uint2(o.low, o.high);
        else store_bytes(to, o, count);
        break;
    }
    }
}

/* GGUF: the octet of low nibbles and the one of high nibbles, into the same eight bytes. */
__device__ static inline void store_gguf(unsigned char *row, bool mxfp4, int64_t first_of_low, octet low, octet high)
{
    store_bytes(row + gguf_place(mxfp4, first_of_low).byte, { low.low | high.low << 4, low.high | high.high << 4 }, 8);
}

#endif
