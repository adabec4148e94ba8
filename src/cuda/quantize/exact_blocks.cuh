/* Blocks, and squares of them that share a scale, by one thread each and the exact path: the bits of bsm_quantize. */
#ifndef BSMI_EXACT_BLOCKS_CUH
#define BSMI_EXACT_BLOCKS_CUH

#include "block.cuh"

/* Blocks of `rows` rows from `first_row` on that share a scale: one, or as many as a block is long. */
struct square { int64_t matrix, first_row, block; int rows; };

__device__ static inline int64_t source_index(const bsmi_device_reals &s, const square &of, int64_t row)
{
    return of.matrix * s.batch_stride + row * s.row_stride;
}

/* How many numbers of a row lie in block `block`; of GGUF's last blocks none may. */
__device__ static inline int count_of(const bsmi_device_matrix &m, int64_t block)
{
    const int64_t left = m.columns - block * m.block;
    return (int)(left < 0 ? 0 : left < m.block ? left : m.block);
}

struct magnitudes { uint32_t largest, largest_finite; };

__device__ static magnitudes scan(const bsmi_quantize_parameters &p, const square &of)
{
    const bsmi_device_reals &s = p.source;
    const int count = count_of(p.destination, of.block);
    magnitudes all = { 0, 0 };
    for (int64_t row = of.first_row; row < of.first_row + of.rows; row++) {
        const int64_t first = source_index(s, of, row) + of.block * p.destination.block * s.column_stride;
        for (int i = 0; i < count; i++) {
            const uint32_t bits =
                __float_as_uint((float)load_real(s.type, s.data, first + i * s.column_stride)) & 0x7fffffff;
            all.largest = max(all.largest, bits);
            all.largest_finite = max(all.largest_finite, bits < 0x7f800000 ? bits : 0);
        }
    }
    return all;
}

__device__ static octet codes_of_octet(const bsmi_quantize_parameters &p, const block_quantizer &q, const square &of,
                                       int64_t row, int64_t number, int count, uint32_t scale_code)
{
    const bsmi_device_reals &s = p.source;
    const int64_t first = source_index(s, of, row) + number * 8 * s.column_stride;
    const uint64_t index =
        (uint64_t)(of.matrix * p.destination.rows + row) * (uint64_t)p.destination.columns + (uint64_t)number * 8;
    eight v = {};
    for (int i = 0; i < count; i++) v.x[i] = (float)load_real(s.type, s.data, first + i * s.column_stride);
    octet o = exact_codes(q, v, scale_code, index);
    if (count < 8) {                      /* zeros behind the row, also where a zero would have a sign */
        const uint64_t kept = ((uint64_t)1 << 8 * count) - 1;
        o.low &= (uint32_t)kept, o.high &= (uint32_t)(kept >> 32);
    }
    return o;
}

__device__ static void store_row(const bsmi_quantize_parameters &p, const block_quantizer &q, const square &of,
                                 int64_t row, bool is_nan, uint32_t scale_code)
{
    const bsmi_device_matrix &m = p.destination;
    unsigned char *codes = m.data + of.matrix * m.batch_bytes + row * m.row_bytes;
    const int64_t first = of.block * q.lanes;
    octet o[4] = {};
#pragma unroll 1
    for (int i = 0; i < 4; i++) {         /* short code: what is rare waits for its instructions */
        const int64_t number = first + i, left = m.columns - number * 8;
        const int count = (int)(i >= q.lanes || left < 0 ? 0 : left < 8 ? left : 8);
        if (count > 0 && !is_nan) o[i] = codes_of_octet(p, q, of, row, number, count, scale_code);
        if (count > 0 && m.packing != BSM_PACKING_GGUF) store_octet(m, codes, number, o[i], count);
    }
    if (m.packing != BSM_PACKING_GGUF) return;
    const bool mxfp4 = m.scale == BSM_E8M0;
    store_gguf(codes, mxfp4, first * 8, o[0], mxfp4 ? o[2] : o[1]);
    if (mxfp4) store_gguf(codes, mxfp4, first * 8 + 8, o[1], o[3]);
}

/* The codes of a block by bsmi_quantize's recipes; the result: the code of its scale. */
__device__ __noinline__ static unsigned char quantize_block_exactly(const bsmi_quantize_parameters &p,
                                                                    const block_quantizer &q, const square of)
{
    const magnitudes found = scan(p, of);
    const bool is_nan = found.largest >= 0x7f800000 && p.nonfinite == BSM_NONFINITE_PROPAGATE;
    const float amax = __uint_as_float(found.largest_finite);
    uint32_t scale_code = 0;
    if (is_nan) scale_code = q.scale == BSM_E8M0 ? 0xff : 0x7f;
    else if (amax > 0) scale_code = exact_scale_code(q, amax);
    store_row(p, q, of, of.first_row, is_nan, scale_code);
    return (unsigned char)scale_code;
}

/* The same with the scale. */
__device__ static inline void quantize_exactly_at(const bsmi_quantize_parameters &p, const block_quantizer &q,
                                                  const scale_places &places, const square of)
{
    const unsigned char scale_code = quantize_block_exactly(p, q, of);
    const int64_t place = place_in(places.row, of.first_row) + place_in(places.column, of.block);
    p.destination.scales[of.matrix * p.destination.scale_batch_bytes + place] = scale_code;
}

#endif
