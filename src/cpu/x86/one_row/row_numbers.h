/* One row of A as bf16 numbers times their scales, for kernels of one row. */
#ifndef BSMI_ROW_NUMBERS_H
#define BSMI_ROW_NUMBERS_H

#include "cpu/x86/bf16/bf16_rows_avx512.h"
#include "cpu/x86/upcoming.h"

enum { BSMI_ASK_A_SLICE = 256 };           /* bytes of B that are asked for while a slice of A is made ready */

enum { BSMI_ROW_LENGTH = 16384, BSMI_ROW_GROUP = 128, BSMI_ROW_SLICES = BSMI_ROW_LENGTH / BSMI_SLICE };

struct bsmi_row_numbers {
    _Alignas(64) uint16_t numbers[BSMI_ROW_SLICES][BSMI_SLICE];
    struct bsmi_bf16_rows rows;           /* while they are made */
};

/* Columns [k, k + length) of the tile's only row, at most BSMI_ROW_LENGTH, from a multiple of BSMI_ROW_GROUP on, filled
 * up with zeros to a multiple of it.  false: it has NaN, an infinity, or a magnitude out of [2^-60, 2^60].  b: what is
 * read first of B, and asked for meanwhile. */
bool bsmi_row_numbers_make(const struct bsmi_tile *tile, int64_t k, int64_t length, struct bsmi_upcoming *b,
                           struct bsmi_row_numbers *row);

/* The tile's only row has scales for which it has an exponent or falls back. */
bool bsmi_row_has_exponent(const struct bsmi_tile *tile);

/* 2^(code - 127) of byte s of each word; 0 for 2^-127, which blocks of zeros have. */
AVX512_INLINE __m512 scales_of_byte(__m512i fours, int s)
{
    const __m512i moved = s == 3 ? _mm512_srli_epi32(fours, 1) : _mm512_slli_epi32(fours, (unsigned)(23 - 8 * s));
    return _mm512_castsi512_ps(_mm512_and_si512(moved, _mm512_set1_epi32(0x7f800000)));
}

#endif
