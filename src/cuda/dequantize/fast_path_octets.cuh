/* Octets of rows that lie well, as eight exact bf16 numbers without their scale: what decoding and dequantizing have in
 * common.
 *
 * A warp takes 32 * STEPS neighbouring octets, octet 32 i + lane in step i, so that addresses within are one pointer a
 * thread and constants.  All the constants of an element are those of the instance: at the speed of memory an octet has
 * some 150 issue slots of the whole warp, and half as many for what is neither a multiplication nor a load or store (an
 * SM of compute capability 9.0 does 64 such operations a cycle). */
#ifndef BSMI_FAST_PATH_OCTETS_CUH
#define BSMI_FAST_PATH_OCTETS_CUH

#include "cuda/ptx/arithmetic.cuh"
#include "cuda/ptx/async_copy.cuh"
#include "octets.cuh"
#include "cuda/scales/scale_places.cuh"
#include "small_floats.cuh"

/* How codes lie: nibbles, bytes, a stream of 6 bits. */
enum fast_packing { FAST_NIBBLES, FAST_BYTES, FAST_STREAM };

/* Of packed codes, from the row's first. */
template <fast_packing packing> __device__ static constexpr int bytes_of_octet()
{
    return packing == FAST_NIBBLES ? 4 : packing == FAST_BYTES ? 8 : 6;
}

/* The ways there are: packing, element, scale. */
#define FAST_PATHS(X) \
    X(FAST_NIBBLES, BSM_E2M1, BSM_E8M0) \
    X(FAST_NIBBLES, BSM_E2M1, BSM_UE4M3) \
    X(FAST_BYTES, BSM_E4M3, BSM_E8M0) \
    X(FAST_BYTES, BSM_E5M2, BSM_E8M0) \
    X(FAST_BYTES, BSM_INT8, BSM_E8M0) \
    X(FAST_BYTES, BSM_E4M3, BSM_UNSCALED) \
    X(FAST_BYTES, BSM_E5M2, BSM_UNSCALED) \
    X(FAST_BYTES, BSM_E2M3, BSM_E8M0) \
    X(FAST_BYTES, BSM_E3M2, BSM_E8M0) \
    X(FAST_BYTES, BSM_E2M1, BSM_E8M0) \
    X(FAST_BYTES, BSM_E2M1, BSM_UE4M3) \
    X(FAST_STREAM, BSM_E2M3, BSM_E8M0) \
    X(FAST_STREAM, BSM_E3M2, BSM_E8M0)

__device__ static constexpr int fast_path(int packing, int element, int scale)
{
    return 1 + (packing << 8 | element << 4 | scale);
}

__device__ static inline bool has_fast_path(int path)
{
    switch (path) {
#define WAY(packing, element, scale) case fast_path(packing, element, scale):
        FAST_PATHS(WAY)
#undef WAY
        return true;
    default: return false;
    }
}

/* 0: rows do not lie so that full octets can be loaded whole. */
__device__ static inline int fast_path_of(const bsmi_device_matrix &m)
{
    const bool nibbles = m.packing == BSM_PACKING_LOW_FIRST || m.packing == BSM_PACKING_HIGH_FIRST;
    if (m.bits > 8 || m.packing == BSM_PACKING_GGUF) return 0;
    const fast_packing packing = nibbles                               ? FAST_NIBBLES
                                  : m.packing == BSM_PACKING_BIT_STREAM ? FAST_STREAM
                                                                        : FAST_BYTES;
    const int64_t step = packing == FAST_BYTES ? 8 : 4;
    if (!aligned_to(m.data, (uint32_t)step) || m.row_bytes % step != 0 || m.batch_bytes % step != 0) return 0;
    const int path = fast_path(packing, m.element, m.scale);
    return has_fast_path(path) ? path : 0;
}

/* The full octets of a row that a fast path does. */
__device__ static inline int fast_end(const bsmi_device_matrix &m)
{
    const int64_t full = m.columns / 8;
    return (int)(m.packing == BSM_PACKING_BIT_STREAM ? full & ~(int64_t)1 : full);
}

/* Where a lane's octet of step 0 lies, from its warp's first, which is even; bytes from one step to the next. */
template <fast_packing packing>
__device__ static inline int lane_place(int lane)
{
    return packing == FAST_STREAM ? (lane * 3 >> 1) * 4 : lane * (packing == FAST_NIBBLES ? 4 : 8);
}

/* To shared memory, as two words; six bytes of a stream lie in eight: the last, if the octet's number is odd. */
template <fast_packing packing>
__device__ static inline void copy_fast(uint32_t to, const unsigned char *lane_octets, int step)
{
    const unsigned char *from = lane_octets + step * 32 * bytes_of_octet<packing>();
    if (packing == FAST_BYTES) {
        cp_async<8>(to, from, 8);
        return;
    }
    cp_async<4>(to, from, 4);
    if (packing == FAST_STREAM) cp_async<4>(to + 4, from + 4, 4);
}

/* Codes of 4 or 6 bits in the low bits of halves; bits beyond are dropped. */
template <int bits, int mantissa_bits, int bias>
__device__ static inline uint32_t decode_low(uint32_t codes)
{
    const uint32_t magnitude = ((1u << (bits - 1)) - 1) * 0x00010001 << (7 - mantissa_bits),
                   mend = (uint32_t)(127 + 127 - bias) << 7;
    return ptx_mul_bf16x2((codes << (7 - mantissa_bits) & magnitude) | (codes << (16 - bits) & 0x80008000),
                          mend * 0x00010001);
}

/* Bytes e4m3 or e5m2 as halves, in their high bytes. */
template <int mantissa_bits>
__device__ static inline uint32_t decode_eight(uint32_t high_bytes)
{
    const uint32_t mend = (uint32_t)(127 + 127 - (mantissa_bits == 3 ? 7 : 15)) << 7;
    const uint32_t magnitude = 0x7fu * 0x00010001 << (7 - mantissa_bits);
    return ptx_mul_bf16x2((high_bytes & 0x80008000) | (high_bytes >> (1 + mantissa_bits) & magnitude),
                          mend * 0x00010001);
}

struct loaded_octet {
    octet codes;
    uint32_t scale;
};

/* What was loaded as eight numbers.  *special: NaN or infinity may be among them. */
template <fast_packing packing, int element>
__device__ static inline uint4 decode_fast(octet o, int number, bool high_first, bool *special)
{
    *special = false;
    if (packing == FAST_NIBBLES) return decode_nibbles(high_first ? swap_nibbles(o.low) : o.low);
    uint32_t v[4];
    if (packing == FAST_STREAM) {
        const bool odd = (number & 1) != 0;
        const uint32_t low = odd ? __funnelshift_r(o.low, o.high, 16) : o.low, high = odd ? o.high >> 16 : o.high;
        const uint32_t rest = __funnelshift_r(low, high, 24);        /* from the fifth code on */
        v[0] = (low & 0x3f) | (low << 10 & 0x003f0000), v[1] = (low >> 12 & 0x3f) | (low >> 2 & 0x003f0000);
        v[2] = (rest & 0x3f) | (rest << 10 & 0x003f0000), v[3] = (rest >> 12 & 0x3f) | (rest >> 2 & 0x003f0000);
    } else if (element == BSM_E4M3 || element == BSM_E5M2) {
        v[0] = __byte_perm(o.low, 0, 0x1404), v[1] = __byte_perm(o.low, 0, 0x3424);
        v[2] = __byte_perm(o.high, 0, 0x1404), v[3] = __byte_perm(o.high, 0, 0x3424);
    } else {
        v[0] = __byte_perm(o.low, 0, 0x4140), v[1] = __byte_perm(o.low, 0, 0x4342);
        v[2] = __byte_perm(o.high, 0, 0x4140), v[3] = __byte_perm(o.high, 0, 0x4342);
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        v[i] = element == BSM_E4M3   ? decode_eight<3>(v[i])
               : element == BSM_E5M2 ? decode_eight<2>(v[i])
               : element == BSM_INT8 ? decode_int8_pair(v[i])
               : element == BSM_E2M3 ? decode_low<6, 3, 1>(v[i])
               : element == BSM_E3M2 ? decode_low<6, 2, 3>(v[i])
                                     : decode_low<4, 1, 1>(v[i]);
    if (element == BSM_E4M3 || element == BSM_E5M2) *special = any_byte_from(o, element == BSM_E4M3 ? 0x7f : 0x7c);
    return make_uint4(v[0], v[1], v[2], v[3]);
}

/* Only where *special. */
template <int element>
__device__ static inline uint4 mend_special(octet o, uint4 v)
{
    v.x = mend_special_pair(element, __byte_perm(o.low, 0, 0x4140), v.x);
    v.y = mend_special_pair(element, __byte_perm(o.low, 0, 0x4342), v.y);
    v.z = mend_special_pair(element, __byte_perm(o.high, 0, 0x4140), v.z);
    v.w = mend_special_pair(element, __byte_perm(o.high, 0, 0x4342), v.w);
    return v;
}

/* Whether a code of it is no zero. */
template <fast_packing packing, int element>
__device__ static inline bool has_nonzero_fast(octet o, int number)
{
    if (packing == FAST_NIBBLES) return (o.low & 0x77777777) != 0;
    if (packing == FAST_STREAM) {
        const bool odd = (number & 1) != 0;                          /* magnitudes are bits 0-4, 6-10 .. 42-46 of the
                                                                        octet's */
        return (o.low & (odd ? 0xf7df0000 : 0xdf7df7df)) != 0 || (o.high & (odd ? 0x7df7df7d : 0x00007df7)) != 0;
    }
    const uint32_t magnitude = element == BSM_INT8                          ? 0xff
                               : element == BSM_E4M3 || element == BSM_E5M2 ? 0x7f
                               : element == BSM_E2M1                        ? 0x07
                                                                            : 0x1f;
    return ((o.low | o.high) & magnitude * 0x01010101) != 0;
}

#endif
