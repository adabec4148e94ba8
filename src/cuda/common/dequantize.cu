/* Codes and scales into real numbers: the bits of bsm_dequantize, and its reasons why rounding through double rounds once
 * (dequantize.c).  Where scales are e8m0 or ue4m3 and there is no tensor scale, fp32 holds the product exactly: elements and
 * scales have 8 and 4 bits at most, and nothing is below 2^-149.
 *
 * CTA: 256 threads, in groups of 32 .. 256 threads that take a row each, eight elements a thread and step. */
#include "blockscale/quantize.h"
#include "cuda/ptx/arithmetic.cuh"
#include "octets.cuh"
#include "quantize/scale_code.h"
#include "scale_places.cuh"

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
            *(uint4 *)to = make_uint4(codes[0] | codes[1] << 16, codes[2] | codes[3] << 16, codes[4] | codes[5] << 16, codes[6] | codes[7] << 16);
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

extern "C" __global__ void __launch_bounds__(BSMI_DEQUANTIZE_THREADS) bsmi_dequantize(const __grid_constant__ bsmi_dequantize_parameters p)
{
    ptx_griddepcontrol_wait();
    const bsmi_device_matrix &m = p.source;
    const bsmi_device_reals &d = p.destination;
    if (m.columns == 0) return;
    const bool scaled = m.block != 0, quick = m.tensor_scale == nullptr && d.type != BSM_REAL_FP64 && m.bits <= 8;
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
            const float scale = scaled ? decode_scale(m.scale, __ldg(w.scales + place_in(places.column, number >> shift))) : 1;
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
