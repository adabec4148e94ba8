/* One element, one scale of an operand, wherever they lie: the slow and plain way. */
#ifndef BSMI_SIMT_OPERAND_CUH
#define BSMI_SIMT_OPERAND_CUH

#include "blockscale/matrix.h"
#include "cuda/params/kernels.h"

__device__ static inline double power_of_two(int exponent)
{
    return __longlong_as_double((int64_t)(exponent + 1023) << 52);
}

/* A small float: exponent bits, mantissa bits, bias; a magnitude above `largest` is NaN, or infinity where there is
 * one. */
struct float_shape { int exponent_bits, mantissa_bits, bias; uint32_t largest; bool has_infinity; };

__device__ static inline double small_float_value(uint32_t code, const float_shape &f)
{
    const uint32_t magnitude = code & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
    const uint32_t fraction = magnitude & ((1u << f.mantissa_bits) - 1);
    const int exponent = (int)(magnitude >> f.mantissa_bits);
    double value = (double)(exponent == 0 ? fraction : fraction | 1u << f.mantissa_bits) *
                   power_of_two((exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits);
    if (magnitude > f.largest) value = f.has_infinity && fraction == 0 ? (double)INFINITY : (double)NAN;
    return (code >> (f.exponent_bits + f.mantissa_bits) & 1) != 0 ? -value : value;
}

__device__ static inline double element_value(int32_t element, uint32_t code)
{
    switch (element) {
    case BSM_INT8: return (double)(int8_t)code * 0x1p-6;
    case BSM_BF16: return (double)__uint_as_float(code << 16);
    case BSM_FP32: return (double)__uint_as_float(code);
    default: break;
    }
    const float_shape f = element == BSM_E4M3   ? float_shape{ 4, 3, 7, 0x7e, false }
                          : element == BSM_E5M2 ? float_shape{ 5, 2, 15, 0x7b, true }
                          : element == BSM_E3M2 ? float_shape{ 3, 2, 3, 0x1f, false }
                          : element == BSM_E2M3 ? float_shape{ 2, 3, 1, 0x1f, false }
                          : element == BSM_E2M1 ? float_shape{ 2, 1, 1, 0x07, false }
                                                : float_shape{ 5, 10, 15, 0x7bff, true };
    return small_float_value(code, f);
}

/* Packings: docs of bsm_packing. */
__device__ static inline uint32_t element_code(const bsmi_device_matrix &m, int64_t batch, int64_t row, uint64_t k)
{
    const unsigned char *bytes = m.data + batch * m.batch_bytes + row * m.row_bytes;
    switch (m.packing) {
    case BSM_PACKING_LOW_FIRST: return bytes[k / 2] >> (k % 2 * 4) & 15;
    case BSM_PACKING_HIGH_FIRST: return bytes[k / 2] >> (4 - k % 2 * 4) & 15;
    case BSM_PACKING_BIT_STREAM: {
        const uint64_t byte = k * 6 / 8;
        const int shift = (int)(k * 6 % 8);
        const uint32_t next = shift > 2 ? bytes[byte + 1] : 0;
        return (bytes[byte] | next << 8) >> shift & 63;
    }
    case BSM_PACKING_GGUF:
        if (m.scale == BSM_E8M0) return bytes[k / 32 * 17 + 1 + k % 16] >> (k % 32 / 16 * 4) & 15;
        return bytes[k / 64 * 36 + 4 + k % 64 / 16 * 8 + k % 8] >> (k % 16 / 8 * 4) & 15;
    default: break;
    }
    if (m.bits <= 8) return bytes[k] & ((1u << m.bits) - 1);
    return m.bits == 16 ? ((const uint16_t *)bytes)[k] : ((const uint32_t *)bytes)[k];
}

__device__ static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
__device__ static inline uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* docs/guide/layouts.md. */
__device__ static inline uint64_t scale_offset(const bsmi_device_layout &l, uint64_t r, uint64_t s)
{
    const uint64_t R = (uint64_t)l.rows, S = (uint64_t)l.columns;
    switch (l.kind) {
    case BSM_LAYOUT_128X4:
        return ((r / 128) * ceil_div(S, 4) + s / 4) * 512 + (r % 32) * 16 + ((r % 128) / 32) * 4 + s % 4;
    case BSM_LAYOUT_8X4: return ((r / 8) * ceil_div(S, 4) + s / 4) * 32 + (r % 8) * 4 + s % 4;
    case BSM_LAYOUT_TILES: {
        const uint64_t height = (uint64_t)l.tile_rows, width = (uint64_t)l.tile_columns;
        return ((r / height) * ceil_div(S, width) + s / width) * height * width + (r % height) * width + s % width;
    }
    case BSM_LAYOUT_CDNA4_16:
    case BSM_LAYOUT_AITER:
        return ((r / 32) * ceil_div(S, 8) + s / 8) * 256 + (s % 4) * 64 + (r % 16) * 4 + ((s % 8) / 4) * 2
               + (r % 32) / 16;
    case BSM_LAYOUT_CDNA4_32:
        return ((r / 32) * ceil_div(S, 8) + s / 8) * 256 + (s % 2) * 128 + (r % 32) * 4 + (s % 8) / 2;
    case BSM_LAYOUT_DEEPGEMM: return ((s / 4) * 4 * ceil_div(R, 4) + r) * 4 + s % 4;
    case BSM_LAYOUT_GGUF_MXFP4: return r * (uint64_t)l.pitch + s * 17;
    case BSM_LAYOUT_GGUF_NVFP4: return r * (uint64_t)l.pitch + (s / 4) * 36 + s % 4;
    default: return r * (uint64_t)l.pitch + s;
    }
}

/* The scale of element k; 1 without scales. */
__device__ static inline double scale_value(const bsmi_device_matrix &m, int64_t batch, int64_t row, int64_t k)
{
    if (m.block == 0) return 1;
    const uint32_t code =
        m.scales[batch * m.scale_batch_bytes + scale_offset(m.layout, (uint64_t)row, (uint64_t)k / (uint32_t)m.block)];
    if (m.scale == BSM_UE4M3) return small_float_value(code & 0x7f, { 4, 3, 7, 0x7e, false });
    return code == 255 ? (double)NAN : power_of_two((int)code - 127);
}

#endif
