/* Some whole plain rows of one operand, by a CTA: what the kernels that decode them have in common
 * (decode_plain.cu, decode_early.cu). */
#pragma once

#include "cuda/ptx/threads.cuh"
#include "decoded_rows.cuh"
#include "cuda/params/plain.h"

enum { OCTETS_AT_ONCE = BSMI_DECODE_PLAIN_OCTETS, THREADS = BSMI_DECODE_PLAIN_THREADS };
static_assert((int)BSMI_LEAST_EXPONENT == (int)LEAST_EXPONENT && (int)BSMI_MOST_EXPONENT == (int)MOST_EXPONENT,
              "what the host computes bounds of");

/* Octet `number` of the CTA's, the first of which is even. */
template <fast_packing packing>
__device__ static inline octet load_plain_octet(const unsigned char *codes, uint32_t number)
{
    if (packing == FAST_NIBBLES) return { __ldg((const uint32_t *)codes + number), 0 };
    if (packing == FAST_BYTES) {
        const uint2 two = __ldg((const uint2 *)codes + number);
        return { two.x, two.y };
    }
    const uint32_t *words = (const uint32_t *)codes + (number * 3 >> 1);        /* of a stream: see copy_fast */
    return { __ldg(words), __ldg(words + 1) };
}

/* As 128x4: of octet `number` of the rows from `first_row` on. */
template <int shift>
__device__ static inline int64_t place_in_bands(const bsmi_plain_rows &j, int64_t first_row, uint32_t number)
{
    const uint32_t of_cta = __umulhi(number, j.reciprocal), column = (number - of_cta * j.row_octets) >> shift;
    const uint32_t row = (uint32_t)first_row + of_cta;
    const uint32_t in_piece = (row & 31) * 16 + (row >> 5 & 3) * 4 + (column & 3);
    return (int64_t)(row >> 7) * j.band_bytes + (int64_t)(column >> 2) * 512 + in_piece;
}

template <fast_packing packing, int scale_kind, bool bands> struct plain_reader {
    static constexpr int SHIFT = scale_kind == BSM_UE4M3 ? 1 : 2;    /* octets of a scale, as a power of two */
    const unsigned char *codes, *scales;  /* of the CTA's first octet; in bands of the matrix */
    __device__ inline loaded_octet load(const bsmi_plain_rows &j, int64_t first_row, uint32_t number) const
    {
        return { load_plain_octet<packing>(codes, number),
                 __ldg(scales + (bands ? place_in_bands<SHIFT>(j, first_row, number) : (int64_t)(number >> SHIFT))) };
    }
};

/* Without branches: *rare where that may be wrong. */
template <fast_packing packing, int element, int scale_kind>
__device__ static inline uint4 usual_octet(const bsmi_plain_rows &j, const loaded_octet &l, uint32_t number, bool *rare)
{
    bool special;
    const uint4 v = decode_fast<packing, element>(l.codes, (int)number, false, &special);
    if (scale_kind == BSM_UE4M3) return multiply(v, scale_pair(BSM_UE4M3, l.scale, 0));
    *rare = special || l.scale - j.bounds.least > j.bounds.span;
    return multiply(v, l.scale * 0x00800080); /* 2^(code - 127) twice, if it is a normal number */
}

/* True if a block that is not all zeros has a scale outside the bounds. */
template <fast_packing packing, int element, int scale_kind, bool bands>
__device__ static inline bool write_plain_rows(const bsmi_plain_rows &j, int64_t first_row, int32_t rows)
{
    using READER = plain_reader<packing, scale_kind, bands>;
    const int64_t first = first_row * j.row_octets;
    const uint32_t count = (uint32_t)rows * j.row_octets;
    const READER reader = { j.codes + first * bytes_of_octet<packing>(),
                            bands ? j.scales : j.scales + (first >> READER::SHIFT) };
    uint16_t *to = j.decoded + first * 8;
    bool outside = false;
    for (uint32_t base = threadIdx.x; base < count; base += THREADS * OCTETS_AT_ONCE) {
        loaded_octet loaded[OCTETS_AT_ONCE];
        uint32_t rare = 0;
#pragma unroll
        for (uint32_t i = 0; i < OCTETS_AT_ONCE; i++)
            if (base + THREADS * i < count) loaded[i] = reader.load(j, first_row, base + THREADS * i);
#pragma unroll
        for (uint32_t i = 0; i < OCTETS_AT_ONCE; i++) {
            const uint32_t number = base + THREADS * i;
            bool is_rare = false;
            if (number >= count) break;
            ptx_store_16(to + (int64_t)number * 8,
                         usual_octet<packing, element, scale_kind>(j, loaded[i], number, &is_rare));
            rare |= (uint32_t)is_rare << i;
        }
#pragma unroll 1
        for (uint32_t number = base; rare != 0; rare >>= 1, number += THREADS) {
            if ((rare & 1) == 0) continue;
            const loaded_octet l = reader.load(j, first_row, number);
            ptx_store_16(to + (int64_t)number * 8, scaled_octet<packing, element, scale_kind>(
                                                       l, (int)number, false, j.bounds.least, j.bounds.span, &outside));
        }
    }
    return outside;
}

/* By the whole CTA, in the rare case.  True if a row is a fallback row. */
__device__ __noinline__ static bool write_rows_again(const bsmi_decode_operand &p, int64_t first_row, int32_t rows)
{
    __shared__ int range[2];
    const bsmi_device_matrix &m = p.source;
    const scale_places places = make_places(m.layout);
    const scale_bounds bounds = scale_bounds_of(m.element);
    const decoding d = { small_float_of(m.element), 0, bounds.least, bounds.span };
    row_job j = {};
    j.octets = (int)(m.columns / 8), j.padded_octets = j.octets, j.last_count = 8, j.thread = (int)threadIdx.x,
    j.threads = THREADS;
    bool fallback = false;
    for (int64_t row = first_row; row < first_row + rows; row++) {
        const int64_t matrix = row / m.rows, r = row - matrix * m.rows;
        point_to_row(p, matrix, r, place_in(places.row, r), &j);
        const bool outside = write_rest<true>(m, places.column, d, j, 0);
        if (__syncthreads_or(outside) != 0) fallback |= write_again(p, places.column, d, j, row, 0, range);
        else if (threadIdx.x == 0) p.exponents[row] = 0;
    }
    return fallback;
}

/* WRITE_ROWS: write_plain_rows of what the operand is. */
template <bool (*WRITE_ROWS)(const bsmi_plain_rows &, int64_t, int32_t)>
__device__ static inline void decode_rows(const bsmi_plain_rows &j, const bsmi_decode_operand &general, int32_t cta)
{
    const int64_t first_row = (int64_t)cta * j.rows_of_cta;
    const int32_t rows = (int32_t)min((int64_t)j.rows_of_cta, j.rows - first_row);
    const bool outside = WRITE_ROWS(j, first_row, rows);
    bool fallback = false;
    if (j.exponents == nullptr) return;
    if (__syncthreads_or(outside) != 0) fallback = write_rows_again(general, first_row, rows);
    else
        for (int32_t i = (int32_t)threadIdx.x; i < rows; i += THREADS) j.exponents[first_row + i] = 0;
    if (threadIdx.x == 0) j.fallback[cta] = fallback;
}
