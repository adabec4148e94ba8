/* Finishing and storing eight neighbours of a row of D at a time, whatever the product asks for: the formulas of
 * gemm_epilogue.cuh, with what belongs to rows and columns in tables in shared memory. */
#pragma once

#include "cuda/ptx/arithmetic.cuh"
#include "gemm_epilogue.cuh"
#include "gemm_output.cuh"

/* What belongs to one row or column of D. */
struct gemm_line { int32_t exponent; float factor, bias; };

/* Three numbers of 32 bits for each of `count` lines, one kind behind the other. */
__device__ static inline void store_line(uint32_t table, uint32_t count, uint32_t i, const gemm_line &line)
{
    store_shared(table + 4 * i, (uint32_t)line.exponent);
    store_shared(table + 4 * (count + i), __float_as_uint(line.factor));
    store_shared(table + 4 * (2 * count + i), __float_as_uint(line.bias));
}

__device__ static inline gemm_line load_line(uint32_t table, uint32_t count, uint32_t i)
{
    return { (int32_t)load_shared(table + 4 * i), __uint_as_float(load_shared(table + 4 * (count + i))),
             __uint_as_float(load_shared(table + 4 * (2 * count + i))) };
}

__device__ static inline gemm_line row_of(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                          const gemm_tile &tile, int32_t row)
{
    gemm_line line = { 0, finish.f, -0.0f };
    if (row >= tile.row_end) return line;
    if (e.a_exponents != nullptr) line.exponent = e.a_exponents[tile.matrix * e.a_exponent_step + row];
    if (e.alpha != nullptr && e.alpha_per == BSM_PER_ROW) line.factor = factor_of(finish, e.alpha[row]);
    if (e.alpha != nullptr && e.alpha_per == BSM_PER_BATCH) line.factor = factor_of(finish, e.alpha[tile.matrix]);
    if (e.bias != nullptr && e.bias_per == BSM_PER_ROW)
        line.bias = load_bias(e, (e.grouped ? 0 : tile.matrix * e.bias_batch_pitch) + row);
    return line;
}

__device__ static inline gemm_line column_of(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                             const gemm_tile &tile, int32_t column)
{
    gemm_line line = { 0, 1, -0.0f };
    if (column >= e.n) return line;
    if (e.b_exponents != nullptr) line.exponent = e.b_exponents[tile.matrix * e.b_exponent_step + column];
    if (finish.column_factors) line.factor = factor_of(finish, e.alpha[column]);
    if (finish.column_biases) line.bias = load_bias(e, tile.matrix * e.bias_batch_pitch + column);
    return line;
}

/* Eight numbers of a row, and which of them D gets. */
struct gemm_octet { float v[8]; uint32_t exists; };

__device__ static inline void load_eight(uint32_t first_four, uint32_t last_four, float (&v)[8])
{
    const uint4 low = load_shared_v4(first_four), high = load_shared_v4(last_four);
    const uint32_t words[8] = { low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w };
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = __uint_as_float(words[i]);
}

/* Columns whose sums a fallback computes drop out; the others get their exponents, where `applies`.  columns: the table
 * of columns, from the first of the eight on. */
__device__ static inline void scale_octet(gemm_octet &octet, int32_t row_exponent, uint32_t columns, bool applies)
{
    float exponents[8];
    load_eight(columns, columns + 16, exponents);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int32_t exponent = __float_as_int(exponents[i]);
        if (exponent == BSMI_ROW_FALLBACK) octet.exists &= ~(1u << i);
        if (applies) octet.v[i] = times_power_of_two(octet.v[i], bsmi_sum_exponent(row_exponent, exponent));
    }
}

/* t = f S + (beta C + bias).  columns, count: the table of columns, from the first of the eight on, and its lines.  c:
 * of the first of the eight. */
__device__ static inline void change_octet(const bsmi_epilogue_parameters &e, const gemm_finish &finish,
                                           gemm_octet &octet, const gemm_line &row, uint32_t columns, uint32_t count,
                                           const unsigned char *c)
{
    const bool c_is_fp32 = e.c_element == BSM_FP32, c_is_bf16 = e.c_element == BSM_BF16;
    float factors[8], biases[8];
    if (finish.column_factors) load_eight(columns + 4 * count, columns + 4 * count + 16, factors);
    if (finish.column_biases) load_eight(columns + 8 * count, columns + 8 * count + 16, biases);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float addend = finish.column_biases ? biases[i] : row.bias;
        if (finish.beta != 0 && (octet.exists >> i & 1) != 0)
            addend = fmaf(finish.beta, load_number(c + i * (c_is_fp32 ? 4 : 2), c_is_fp32, c_is_bf16), addend);
        octet.v[i] = fmaf(finish.column_factors ? factors[i] : row.factor, octet.v[i], addend);
    }
}

__device__ static inline void store_octet(unsigned char *to, int32_t element, const gemm_octet &octet)
{
    const float(&v)[8] = octet.v;
    if (octet.exists != 0xff || (uint64_t)to % 16 != 0) {
#pragma unroll
        for (int i = 0; i < 8; i += 2)
            store_pair(to + i * (element == BSM_FP32 ? 4 : 2), element, v[i], v[i + 1], octet.exists >> i & 1,
                       octet.exists >> (i + 1) & 1);
    } else if (element == BSM_FP32) {
        ptx_store_16(
            to, make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]), __float_as_uint(v[3])));
        ptx_store_16(to + 16, make_uint4(__float_as_uint(v[4]), __float_as_uint(v[5]), __float_as_uint(v[6]),
                                         __float_as_uint(v[7])));
    } else {
        uint32_t pairs[4];
        if (element == BSM_BF16) convert_pairs<BSM_BF16, 4, 0>(pairs, v, true);
        else convert_pairs<BSM_FP16, 4, 0>(pairs, v, true);
        ptx_store_16(to, make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]));
    }
}

/* Where a thread's eight columns are, the same for many rows. */
struct gemm_octet_place {
    gemm_output output;
    int32_t column;                       /* the first */
    uint32_t exists;                      /* which of them D has */
    uint32_t columns;                     /* address of the first in the table of columns */
    bool scaled;                          /* there may be exponents other than 0 */
};

__device__ static inline gemm_octet_place octet_place_of(const bsmi_gemm_parameters &p, int32_t matrix, int32_t column,
                                                         uint32_t columns, bool scaled)
{
    const int64_t left = p.epilogue.n - column;
    return { gemm_output_of(p, matrix), column, left >= 8 ? 0xffu : left > 0 ? (1u << left) - 1 : 0u, columns, scaled };
}

/* A row that the tile has.  count: lines in the table of columns.  sums: addresses of the first four and the last
 * four.  False: D gets none of them. */
__device__ static inline bool finish_octet_numbers(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                                   const gemm_octet_place &place, uint32_t count, int32_t matrix,
                                                   int32_t row, const gemm_line &line, uint2 sums, gemm_octet &octet)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    if (place.exists == 0 || line.exponent == BSMI_ROW_FALLBACK) return false;
    octet.exists = place.exists;
    load_eight(sums.x, sums.y, octet.v);
    if (place.scaled) scale_octet(octet, line.exponent, place.columns, p.direct || e.sums_are_scaled);
    if (p.direct) {
        const unsigned char *c = e.c + (e.grouped ? 0 : matrix * e.c_batch_bytes) + row * e.c_row_bytes;
        if (finish.changes)
            change_octet(e, finish, octet, line, place.columns, count,
                         c + (int64_t)place.column * (e.c_element == BSM_FP32 ? 4 : 2));
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (isnan(octet.v[i])) octet.v[i] = __int_as_float(0x7fc00000);
    }
    return true;
}

__device__ static inline void store_octet_at(const gemm_octet_place &place, int32_t row, const gemm_octet &octet)
{
    store_octet(place.output.data + row * place.output.row_bytes
                    + (int64_t)place.column * (place.output.element == BSM_FP32 ? 4 : 2),
                place.output.element, octet);
}

__device__ static inline void finish_octet(const bsmi_gemm_parameters &p, const gemm_finish &finish,
                                           const gemm_octet_place &place, uint32_t count, int32_t matrix, int32_t row,
                                           const gemm_line &line, uint2 sums)
{
    gemm_octet octet;
    if (finish_octet_numbers(p, finish, place, count, matrix, row, line, sums, octet))
        store_octet_at(place, row, octet);
}
