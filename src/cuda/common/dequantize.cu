/* Codes and scales into real numbers: the bits of bsm_dequantize, and its reasons why rounding through double rounds once
 * (dequantize.c).  Where there is no tensor scale, fp32 holds element times scale exactly, and so does bf16 unless an e8m0 scale
 * leads beyond its normal numbers: elements and scales have 8 and 4 bits at most.
 *
 * CTA: 256 threads, in groups of 32 .. 256 threads that take a row each, eight elements a thread and step. */
#include "blockscale/quantize.h"
#include "cuda/ptx/arithmetic.cuh"
#include "octets.cuh"
#include "quantize/scale_code.h"
#include "scale_places.cuh"
#include "small_floats.cuh"

struct row_work {
    int thread, threads, octets, last_count;
    const unsigned char *codes, *scales;
    int64_t first;                        /* index of the row's first number in the destination */
};

/* Exact, without scales. */
__device__ static inline void load_elements(const bsmi_device_matrix &m, const row_work &w, int number, int count, float *x)
{
    if (m.bits <= 8) {
        const octet o = load_octet(m, w.codes, number, count);
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = decode_element(m.element, (i < 4 ? o.low : o.high) >> 8 * (i & 3) & 0xff);
        return;
    }
    for (int i = 0; i < count; i++) {
        const int64_t k = (int64_t)number * 8 + i;
        x[i] = decode_element(m.element, m.bits == 16 ? ((const uint16_t *)w.codes)[k] : ((const uint32_t *)w.codes)[k]);
    }
}

/* A finite or infinite fp32 number, or NaN, rounded to a real of 16 or 32 bits. */
__device__ static inline uint32_t real_code(int type, float x)
{
    const uint32_t bits = __float_as_uint(x);
    if (type == BSM_REAL_BF16) return isnan(x) ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    if (type == BSM_REAL_FP16) return isnan(x) ? 0x7e00 : ptx_cvt_f16x2(0, x) & 0xffff;
    return isnan(x) ? 0x7fc00000 : bits;
}

__device__ static inline void store_numbers(const bsmi_device_reals &d, int64_t index, int count, const float *x)
{
    uint32_t codes[8];
#pragma unroll
    for (int i = 0; i < 8; i++) codes[i] = real_code(d.type, x[i]);
    const bool wide = d.type == BSM_REAL_FP32;
    unsigned char *to = d.data + index * (wide ? 4 : 2);
    if (count == 8 && d.column_stride == 1 && aligned_to(to, 16)) {
        if (wide) {
            ((uint4 *)to)[0] = make_uint4(codes[0], codes[1], codes[2], codes[3]);
            ((uint4 *)to)[1] = make_uint4(codes[4], codes[5], codes[6], codes[7]);
        } else {
            *(uint4 *)to = make_uint4(codes[0] | codes[1] << 16, codes[2] | codes[3] << 16, codes[4] | codes[5] << 16,
                                      codes[6] | codes[7] << 16);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (i >= count) continue;
        if (wide) ((uint32_t *)to)[i * d.column_stride] = codes[i];
        else ((uint16_t *)to)[i * d.column_stride] = (uint16_t)codes[i];
    }
}

/* e8m0 codes with which every element stays a normal bf16 number: 2^-16 * 2^-110 and 2^16 * 2^110 are. */
enum { LEAST_QUICK_CODE = 127 - 110, MOST_QUICK_CODE = 127 + 110 };

__device__ static inline float bf16_of(uint32_t pair, int half)
{
    return __uint_as_float(half == 0 ? pair << 16 : pair & 0xffff0000);
}

/* NaN as the canonical one of bf16. */
__device__ static inline uint32_t canonical_pair(uint32_t pair)
{
    if ((((pair & 0x7fff7fff) + 0x007f007f) & 0x80008000) == 0) return pair;       /* neither is above infinity */
    const uint32_t low = (pair & 0x7fff) > 0x7f80 ? 0x7fc0 : pair & 0xffff,
                   high = (pair >> 16 & 0x7fff) > 0x7f80 ? 0x7fc0 : pair >> 16;
    return low | high << 16;
}

/* A full octet by way of bf16; false if its scale is beyond the quick codes. */
__device__ static inline bool dequantize_quickly(const bsmi_device_matrix &m, const bsmi_device_reals &d, const small_float &f,
                                                 const row_work &w, int number, uint32_t scale_code)
{
    if (m.scale == BSM_E8M0 && scale_code - LEAST_QUICK_CODE > MOST_QUICK_CODE - LEAST_QUICK_CODE) return false;
    const bool nibbles = m.packing == BSM_PACKING_LOW_FIRST || m.packing == BSM_PACKING_HIGH_FIRST;
    uint4 v;
    if (nibbles) {
        const uint32_t codes = __ldg((const uint32_t *)w.codes + number);
        v = decode_nibbles(m.packing == BSM_PACKING_HIGH_FIRST ? swap_nibbles(codes) : codes);
    } else {
        const uint2 two = __ldg((const uint2 *)w.codes + number);
        v = decode_codes(m.element, f, { two.x, two.y });
    }
    if (m.block != 0) v = multiply(v, scale_pair(m.scale, scale_code, 0));
    v = make_uint4(canonical_pair(v.x), canonical_pair(v.y), canonical_pair(v.z), canonical_pair(v.w));
    const int64_t index = w.first + (int64_t)number * 8;
    if (d.type == BSM_REAL_BF16) {
        *(uint4 *)(d.data + index * 2) = v;
        return true;
    }
    const uint32_t pairs[4] = { v.x, v.y, v.z, v.w };
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = bf16_of(pairs[i / 2], i % 2);
    store_numbers(d, index, 8, x);
    return true;
}

/* Rows whose full octets can be loaded and stored whole. */
__device__ static inline bool lies_well(const bsmi_device_matrix &m, const bsmi_device_reals &d)
{
    const bool nibbles = m.packing == BSM_PACKING_LOW_FIRST || m.packing == BSM_PACKING_HIGH_FIRST;
    const int64_t step = nibbles ? 4 : 8;
    if (!nibbles && m.bits != 8) return false;
    return aligned_to(m.data, (uint32_t)step) && m.row_bytes % step == 0 && m.batch_bytes % step == 0 && d.column_stride == 1
        && aligned_to(d.data, 16) && d.row_stride % 8 == 0 && d.batch_stride % 8 == 0;
}

extern "C" __global__ void __launch_bounds__(BSMI_DEQUANTIZE_THREADS)
    bsmi_dequantize(const __grid_constant__ bsmi_dequantize_parameters p)
{
    ptx_griddepcontrol_wait();
    const bsmi_device_matrix &m = p.source;
    const bsmi_device_reals &d = p.destination;
    if (m.columns == 0) return;
    const bool scaled = m.block != 0, quick = m.tensor_scale == nullptr && d.type != BSM_REAL_FP64 && m.bits <= 8;
    const bool well = quick && lies_well(m, d);
    small_float f = {};
    if (m.bits <= 8) f = small_float_of(m.element);
    const double tensor_scale = m.tensor_scale == nullptr ? 1 : (double)*m.tensor_scale;
    scale_places places = {};
    if (scaled) places = make_places(m.layout);
    row_work w;
    w.octets = (int)((m.columns + 7) / 8), w.last_count = (int)(m.columns - (int64_t)(w.octets - 1) * 8);
    w.threads = 32;
    while (w.threads < BSMI_DEQUANTIZE_THREADS && w.threads * 2 < w.octets) w.threads *= 2;
    w.thread = (int)threadIdx.x % w.threads;
    const int groups = BSMI_DEQUANTIZE_THREADS / w.threads, group = (int)threadIdx.x / w.threads, shift = m.block == 16 ? 1 : 2;
    for (int64_t row = (int64_t)blockIdx.x * groups + group; row < m.rows * m.batch; row += (int64_t)gridDim.x * groups) {
        const int64_t matrix = row / m.rows, r = row - matrix * m.rows;
        w.codes = m.data + matrix * m.batch_bytes + r * m.row_bytes;
        w.first = matrix * d.batch_stride + r * d.row_stride;
        if (scaled) w.scales = m.scales + matrix * m.scale_batch_bytes + place_in(places.row, r);
        for (int number = w.thread; number < w.octets; number += w.threads) {
            const int count = number == w.octets - 1 ? w.last_count : 8;
            const int64_t index = w.first + (int64_t)number * 8 * d.column_stride;
            const uint32_t scale_code = scaled ? __ldg(w.scales + place_in(places.column, number >> shift)) : 0;
            if (well && count == 8 && dequantize_quickly(m, d, f, w, number, scale_code)) continue;
            const float scale = scaled ? decode_scale(m.scale, scale_code) : 1;
            float x[8] = {};
            load_elements(m, w, number, count, x);
            if (quick) {
#pragma unroll
                for (int i = 0; i < 8; i++) x[i] *= scale;
                store_numbers(d, index, count, x);
                continue;
            }
            for (int i = 0; i < count; i++)
                store_real(d.type, d.data, index + i * d.column_stride,
                           bsmi_scaled_value((double)x[i], (double)scale, tensor_scale, m.tensor_scale_divides != 0));
        }
    }
}
