/* Operands of BSM_COMPUTE_FAST: every row as e4m3 codes with one power of two, its exponent.
 *
 * The largest scale code of a row says its power of two, so that the largest number that the format has under that
 * scale becomes at most 448; what has a smaller scale moves down, and is rounded to nearest even where that drops
 * bits.  Rows of equal scales keep every bit but of e5m2.
 *
 * A number goes from its code to a half, times a power of two that is a half too, to its new code.  The product rounds
 * only what lies below 2^-14, all of which becomes 0 in e4m3, whose last place is 2^-9: nothing is rounded twice.
 *
 * A warp takes 8 rows, four lanes a row, 128 columns at a time, once it has read their scales. */
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/params/fp8_requantize.h"
#include "cuda/ptx/narrow.cuh"
#include "cuda/ptx/threads.cuh"
#include "cuda/dequantize/octets.cuh"
#include "cuda/scales/scale_places.cuh"

enum { STEP = 128, STEPS_AT_ONCE = 4, TWO_TO_MINUS_7 = 0x20002000 };

/* Codes of an element as halves that are exact, those of e5m2 for the range of a second factor: halves times 2^`raised`
 * are the element; and the exponent of a row whose largest scale is 1, less than which nothing fits. */
template <int ELEMENT> struct element_fold;
template <> struct element_fold<BSM_E4M3> { static constexpr int raised = 0, exponent = 0; };
template <> struct element_fold<BSM_E5M2> { static constexpr int raised = 7, exponent = 7; };
template <> struct element_fold<BSM_E2M3> { static constexpr int raised = 6, exponent = -5; };
template <> struct element_fold<BSM_E3M2> { static constexpr int raised = 4, exponent = -4; };
template <> struct element_fold<BSM_E2M1> { static constexpr int raised = 6, exponent = -6; };

/* Four codes of a byte each.  Shorter elements: sign to the front, the rest below e4m3's exponent, subnormals
 * included. */
template <int ELEMENT> __device__ static inline uint32_t as_eight_bits(uint32_t codes)
{
    if (ELEMENT == BSM_E2M3) return (codes << 2 & 0x80808080) | (codes & 0x1f1f1f1f);
    if (ELEMENT == BSM_E3M2) return (codes << 2 & 0x80808080) | (codes << 1 & 0x3e3e3e3e);
    if (ELEMENT == BSM_E2M1) return (codes << 4 & 0x80808080) | (codes << 2 & 0x1c1c1c1c);
    return codes;
}

/* Four codes times two halves `factor`. */
template <int ELEMENT> __device__ static inline uint32_t requantize_four(uint32_t codes, uint32_t factor)
{
    const uint32_t four = as_eight_bits<ELEMENT>(codes);
    uint32_t pairs[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint16_t pair = (uint16_t)(four >> 16 * i);
        uint32_t product;
        if (ELEMENT == BSM_E5M2) {
            const uint32_t halves = ptx_cvt_f16x2_e5m2x2(pair);
            /* infinity becomes NaN */
            product = ptx_fma_f16x2(halves, 0, ptx_mul_f16x2(ptx_mul_f16x2(halves, TWO_TO_MINUS_7), factor));
        } else {
            product = ptx_mul_f16x2(ptx_cvt_f16x2_e4m3x2(pair), factor);
        }
        pairs[i] = ptx_cvt_e4m3x2_f16x2(product);
    }
    return pairs[0] | pairs[1] << 16;
}

template <int ELEMENT> __device__ static inline uint4 requantize_sixteen(uint4 codes, uint32_t factor)
{
    return make_uint4(requantize_four<ELEMENT>(codes.x, factor), requantize_four<ELEMENT>(codes.y, factor),
                      requantize_four<ELEMENT>(codes.z, factor), requantize_four<ELEMENT>(codes.w, factor));
}

/* 2^exponent as two halves; what lies below their subnormals takes everything to 0 just as well. */
__device__ static inline uint32_t half_power(int exponent)
{
    const int kept = max(exponent, -24);
    return (kept < -14 ? 1u << (kept + 24) : (uint32_t)(kept + 15) << 10) * 0x00010001;
}

/* Everything about an operand that its rows share. */
struct requantize_job {
    scale_places places;
    int fast_steps;                      /* of a row, from the first on: 16 codes can be loaded at once, and are
                                             there */
    bool words;                           /* the four scales of a step are an aligned word */
};

__device__ static inline bool loads_by_fast_path(const bsmi_device_matrix &m)
{
    const bool nibbles = m.packing == BSM_PACKING_LOW_FIRST || m.packing == BSM_PACKING_HIGH_FIRST;
    const uint32_t step = nibbles ? 8 : m.packing == BSM_PACKING_BIT_STREAM ? 4 : 16;
    if (m.packing == BSM_PACKING_GGUF) return false;
    return aligned_to(m.data, step) && m.row_bytes % step == 0 && m.batch_bytes % step == 0;
}

/* Whether the four scales of 128 columns are an aligned word. */
__device__ static inline bool scales_are_words(const bsmi_device_matrix &m, const scale_places &places)
{
    const scale_part &c = places.column, &r = places.row;
    const bool plain = c.tile == 0 && c.shift == 0 && c.stride == 1 && c.mask1 == 0 && c.mask2 == 0;
    const bool fours = c.tile == 0 && c.shift == 2 && c.stride % 4 == 0 && c.shift1 == 0 && c.mask1 == 3
                       && c.stride1 == 1 && c.mask2 == 0;
    const bool rows = r.tile == 0 && r.stride % 4 == 0 && (r.mask1 == 0 || r.stride1 % 4 == 0)
                      && (r.mask2 == 0 || r.stride2 % 4 == 0);
    return (plain || fours) && rows && aligned_to(m.scales, 4) && m.scale_batch_bytes % 4 == 0;
}

/* Of a stream of 6 bits: four codes in the low 24 bits, to a byte each. */
__device__ static inline uint32_t spread_four(uint32_t bits)
{
    return (bits & 0x3f) | (bits << 2 & 0x3f00) | (bits << 4 & 0x3f0000) | (bits << 6 & 0x3f000000);
}

/* 16 codes from `column` on: loaded at once, or one by one with zeros behind the row's end. */
template <bool FAST>
__device__ static inline uint4 load_sixteen(const bsmi_device_matrix &m, const unsigned char *row, int64_t column)
{
    if constexpr (FAST) {
        if (m.packing == BSM_PACKING_BIT_STREAM) {
            const uint32_t *words = (const uint32_t *)(row + column / 4 * 3);
            const uint32_t first = __ldg(words), second = __ldg(words + 1), third = __ldg(words + 2);
            return make_uint4(spread_four(first), spread_four(__funnelshift_r(first, second, 24)),
                              spread_four(__funnelshift_r(second, third, 16)), spread_four(third >> 8));
        }
        if (m.bits != 4 || m.packing == BSM_PACKING_BYTES) return ptx_load_16(row + column);
        const bool high_first = m.packing == BSM_PACKING_HIGH_FIRST;
        const uint2 packed = __ldg((const uint2 *)(row + column / 2));
        const octet first = spread_nibbles(packed.x, high_first), second = spread_nibbles(packed.y, high_first);
        return make_uint4(first.low, first.high, second.low, second.high);
    } else {
        const int64_t left = m.columns - column;
        octet first = { 0, 0 }, second = { 0, 0 };
        if (left > 0) first = load_octet(m, row, column / 8, (int)min(left, (int64_t)8));
        if (left > 8) second = load_octet(m, row, column / 8 + 1, (int)min(left - 8, (int64_t)8));
        return make_uint4(first.low, first.high, second.low, second.high);
    }
}

/* This lane's place among the rows of a warp. */
struct requantize_row {
    const unsigned char *codes, *scales;
    unsigned char *to;
    int64_t number;                       /* of all rows; clipped to the matrix's last */
    bool there;
    int quarter;
};

__device__ static inline requantize_row row_at(const bsmi_requantize_fp8_operand &o, const requantize_job &job,
                                               int64_t band)
{
    const bsmi_device_matrix &m = o.source;
    const int lane = (int)threadIdx.x % 32;
    const int64_t bands = (m.rows + BSMI_REQUANTIZE_FP8_ROWS - 1) / BSMI_REQUANTIZE_FP8_ROWS, matrix = band / bands;
    const int64_t given = (band - matrix * bands) * BSMI_REQUANTIZE_FP8_ROWS + lane / 4, row = min(given, m.rows - 1);
    return { m.data + matrix * m.batch_bytes + row * m.row_bytes,
             m.scales + matrix * m.scale_batch_bytes + place_in(job.places.row, row),
             o.codes + matrix * o.batch_bytes + row * o.row_bytes,
             matrix * m.rows + row,
             given < m.rows,
             lane % 4 };
}

/* A scale code that counts for a power of two. */
__device__ static inline int counted(uint32_t code) { return code == 255 ? 0 : (int)code; }

/* The largest scale code of a row, which is read before the rest of it. */
__device__ static inline int largest_scale(const bsmi_requantize_fp8_operand &o, const requantize_job &job,
                                           const requantize_row &r)
{
    const int blocks = (int)o.source.layout.columns;
    int most = 0, block = 0;
    if (job.words) {
#pragma unroll 4
        for (int group = r.quarter; group < blocks / 4; group += 4) {
            const uint32_t four =
                __ldg((const uint32_t *)(r.scales + column_place(job.places.column, (uint32_t)group * 4)));
            most = max(max(most, max(counted(four & 255), counted(four >> 8 & 255))),
                       max(counted(four >> 16 & 255), counted(four >> 24)));
        }
        block = blocks & ~3;
    }
#pragma unroll 1
    for (block += r.quarter; block < blocks; block += 4)
        most = max(most, counted(__ldg(r.scales + place_in(job.places.column, block))));
    most = max(most, __shfl_xor_sync(0xffffffff, most, 1));
    return max(most, __shfl_xor_sync(0xffffffff, most, 2));
}

/* What a lane has read of a step: 128 columns. */
struct requantize_step { uint4 codes[2]; int scale; };

template <bool FAST>
__device__ static inline requantize_step load_step(const bsmi_requantize_fp8_operand &o, const requantize_job &job,
                                                   const requantize_row &r, int step)
{
    const bsmi_device_matrix &m = o.source;
    const int64_t first = (int64_t)step * STEP + r.quarter * 16;
    const int block = step * 4 + r.quarter;
    requantize_step s;
    if (FAST) s.scale = __ldg(r.scales + column_place(job.places.column, (uint32_t)block));
    else s.scale = block < m.layout.columns ? __ldg(r.scales + place_in(job.places.column, block)) : 0;
#pragma unroll
    for (int i = 0; i < 2; i++) s.codes[i] = load_sixteen<FAST>(m, r.codes, first + 64 * i);
    return s;
}

/* most: the row's largest scale code.  The bits of the new codes. */
template <int ELEMENT>
__device__ static inline uint32_t store_step(const requantize_row &r, int step, const requantize_step &s, int most)
{
    using fold = element_fold<ELEMENT>;
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int scale = __shfl_sync(0xffffffff, s.scale, ((int)threadIdx.x & 28) + 2 * i + r.quarter / 2);
        const uint32_t factor = scale == 255 ? 0x7fff7fff : half_power(fold::raised - fold::exponent + scale - most);
        const uint4 codes = requantize_sixteen<ELEMENT>(s.codes[i], factor);
        any |= codes.x | codes.y | codes.z | codes.w;
        if (r.there) ptx_store_16(r.to + (int64_t)step * STEP + 64 * i + r.quarter * 16, codes);
    }
    return any;
}

template <int ELEMENT>
__device__ static inline void requantize_band(const bsmi_requantize_fp8_operand &o, const requantize_job &job,
                                              int64_t band)
{
    const requantize_row r = row_at(o, job, band);
    const int most = largest_scale(o, job, r), steps = (int)(o.row_bytes / STEP);
    uint32_t any = 0;
    int first = 0;
#pragma unroll 1
    for (; first + STEPS_AT_ONCE <= job.fast_steps; first += STEPS_AT_ONCE) {
        requantize_step read[STEPS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < STEPS_AT_ONCE; i++) read[i] = load_step<true>(o, job, r, first + i);
#pragma unroll
        for (int i = 0; i < STEPS_AT_ONCE; i++) any |= store_step<ELEMENT>(r, first + i, read[i], most);
    }
#pragma unroll 1
    for (; first < steps; first++) any |= store_step<ELEMENT>(r, first, load_step<false>(o, job, r, first), most);
    any |= __shfl_xor_sync(0xffffffff, any, 1);
    any |= __shfl_xor_sync(0xffffffff, any, 2);
    const bool only_zeros = (any & 0x7f7f7f7f) == 0;
    if (r.there && r.quarter == 0)
        o.exponents[r.number] = only_zeros ? 0 : most - 127 + element_fold<ELEMENT>::exponent;
}

__device__ static inline int64_t bands_of(const bsmi_device_matrix &m)
{
    return (m.rows + BSMI_REQUANTIZE_FP8_ROWS - 1) / BSMI_REQUANTIZE_FP8_ROWS * m.batch;
}

__device__ static inline void requantize_any(const bsmi_requantize_fp8_operand &o, const requantize_job &job,
                                             int64_t band)
{
    switch (o.source.element) {
    case BSM_E4M3: requantize_band<BSM_E4M3>(o, job, band); break;
    case BSM_E5M2: requantize_band<BSM_E5M2>(o, job, band); break;
    case BSM_E2M3: requantize_band<BSM_E2M3>(o, job, band); break;
    case BSM_E3M2: requantize_band<BSM_E3M2>(o, job, band); break;
    default: requantize_band<BSM_E2M1>(o, job, band); break;
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_REQUANTIZE_FP8_THREADS)
    bsmi_requantize_fp8(const __grid_constant__ bsmi_requantize_fp8_parameters p)
{
    __shared__ requantize_job jobs[2];
    if (threadIdx.x < 2) {
        const bsmi_device_matrix &m = p.operands[threadIdx.x].source;
        requantize_job &job = jobs[threadIdx.x];
        job.places = make_places(m.layout);
        job.fast_steps = loads_by_fast_path(m) && job.places.column.tile == 0 ? (int)(m.columns / STEP) : 0;
        job.words = scales_are_words(m, job.places);
    }
    __syncthreads();
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    const int64_t of_first = bands_of(p.operands[0].source), all = of_first + bands_of(p.operands[1].source);
    const int64_t warps = BSMI_REQUANTIZE_FP8_THREADS / 32;
    for (int64_t band = blockIdx.x * warps + threadIdx.x / 32; band < all; band += gridDim.x * warps) {
        const bool second = band >= of_first;
        requantize_any(p.operands[second], jobs[second], band - (second ? of_first : 0));
    }
}
