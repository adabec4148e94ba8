/* 16 rows by 32 columns into a column tile of bf16 numbers: what bf16_rows_avx512.h does for row tiles.
 *
 * Codes are transposed before they are decoded, when they are fewer bytes: words of 32 bits, each with the next codes
 * of one of the 16 rows.  Scales of rows are then a vector, the same for the whole slice. */
#ifndef BSMI_BF16_COLUMNS_AVX512_H
#define BSMI_BF16_COLUMNS_AVX512_H

#include "bf16_rows_avx512.h"

enum { BSMI_PAIR_NUMBERS = 2 * BSMI_TILE_ROWS /* two columns of a column tile: a vector */, BSMI_MOST_SLICES = 4 };

/* Codes of some slices (bf16_slices_of_lines) of 16 rows, a row after the other.  Of each row a cache line is read
 * whole: rows often lie so that few of their lines fit a cache together. */
struct bsmi_bf16_lines {
    _Alignas(64) uint8_t bytes[BSMI_TILE_ROWS][64];
    const uint8_t *rows[BSMI_TILE_ROWS];
    bool normal;                          /* 8-bit floats: all are normal numbers, by what bf16_rows_vbmi.h reads */
};

/* `count` slices from `slice` on, which is a multiple of how many lines hold; not of fp16. */
AVX512_INLINE void bsmi_bf16_read_lines(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                                        int count, struct bsmi_bf16_lines *lines)
{
    const int bytes = bf16_slice_bytes(kind);
    const __mmask64 there = ~(__mmask64)0 >> (64 - count * bytes);
    for (int r = 0; r < BSMI_TILE_ROWS; r++) lines->rows[r] = lines->bytes[r];
    if (kind == BSMI_BF16_OF_BF16) {
        bsmi_bf16_decode_slice(kind, rows, slice, (uint16_t *)(void *)lines->bytes, NULL);
        return;
    }
#pragma GCC unroll 16
    for (int r = 0; r < BSMI_TILE_ROWS; r++)
        _mm512_store_si512(lines->bytes[r], _mm512_maskz_loadu_epi8(there, rows->codes[r] + slice * bytes));
}

/* Transposing -------------------------------------------------------------------------------------------------------*/

/* Insertions of what comes from memory keep the port of shuffles free. */
AVX512_INLINE __m512i four_sixteens(const uint8_t *a, const uint8_t *b, const uint8_t *c, const uint8_t *d)
{
    const __m512i first = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)a)),
                  two = _mm512_inserti32x4(first, _mm_loadu_si128((const __m128i *)(const void *)b), 1),
                  three = _mm512_inserti32x4(two, _mm_loadu_si128((const __m128i *)(const void *)c), 2);
    return _mm512_inserti32x4(three, _mm_loadu_si128((const __m128i *)(const void *)d), 3);
}

/* 16 bytes of each of 16 rows; a quarter of vector i has row 4 * quarter + i. */
AVX512_INLINE void load_sixteens(const uint8_t *const *rows, int64_t byte, __m512i out[4])
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        out[i] = four_sixteens(rows[i] + byte, rows[i + 4] + byte, rows[i + 8] + byte, rows[i + 12] + byte);
}

/* Of such vectors the four bytes [4 i, 4 i + 4) of each row, in row order: vector i. */
AVX512_INLINE void transpose_sixteens(__m512i v[4])
{
    const __m512i t[4] = { _mm512_unpacklo_epi32(v[0], v[1]), _mm512_unpackhi_epi32(v[0], v[1]),
                           _mm512_unpacklo_epi32(v[2], v[3]), _mm512_unpackhi_epi32(v[2], v[3]) };
    v[0] = _mm512_unpacklo_epi64(t[0], t[2]);
    v[1] = _mm512_unpackhi_epi64(t[0], t[2]);
    v[2] = _mm512_unpacklo_epi64(t[1], t[3]);
    v[3] = _mm512_unpackhi_epi64(t[1], t[3]);
}

/* Quarter s of vector i into quarter i of vector s. */
AVX512_INLINE void transpose_quarters(__m512i v[4])
{
    const __m512i low[2] = { _mm512_shuffle_i32x4(v[0], v[1], 0x44), _mm512_shuffle_i32x4(v[2], v[3], 0x44) },
                  high[2] = { _mm512_shuffle_i32x4(v[0], v[1], 0xee), _mm512_shuffle_i32x4(v[2], v[3], 0xee) };
    v[0] = _mm512_shuffle_i32x4(low[0], low[1], 0x88);
    v[1] = _mm512_shuffle_i32x4(low[0], low[1], 0xdd);
    v[2] = _mm512_shuffle_i32x4(high[0], high[1], 0x88);
    v[3] = _mm512_shuffle_i32x4(high[0], high[1], 0xdd);
}

AVX512_INLINE void load_fours(const uint8_t *const *rows, int64_t byte, __m512i out[4])
{
    load_sixteens(rows, byte, out);
    transpose_sixteens(out);
}

/* Decoding ----------------------------------------------------------------------------------------------------------*/

/* Within each word of 32 bits: its bytes a, b, c, d in this order. */
AVX512_INLINE __m512i pick_bytes(__m512i words, unsigned a, unsigned b, unsigned c, unsigned d)
{
    const __m512i word = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
    return _mm512_shuffle_epi8(words, _mm512_add_epi8(word, _mm512_set1_epi32((int)(a | b << 8 | c << 16 | d << 24))));
}

AVX512_INLINE __m512i shift_right(__m512i words, unsigned bits)
{
    return bits == 0 ? words : _mm512_srli_epi32(words, bits);
}

AVX512_INLINE __m512 nvfp4_sixteen(__m512i codes, __m512 scales)
{
    const __m512 values = _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6);
    return _mm512_mul_ps(_mm512_permutexvar_ps(codes, values), scales);      /* looks at four bits of each code */
}

/* Columns 8 i + 2 j and the next, of codes of 4 bits: fours is vector i. */
AVX512_INLINE __m512i fp4_pair(enum bsmi_bf16_kind kind, __m512i fours, unsigned j, __m512i table, __m512i scales)
{
    if (kind == BSMI_BF16_OF_NVFP4) {
        const __m512 factors = _mm512_castsi512_ps(scales);
        return join_upper_halves(nvfp4_sixteen(shift_right(fours, 8 * j), factors),
                                 nvfp4_sixteen(shift_right(fours, 8 * j + 4), factors));
    }
    const __m512i words = _mm512_srlv_epi16(pick_bytes(fours, j, j, j, j), _mm512_set1_epi32(4 << 16));
    return fp4_numbers(words, table, scales);
}

AVX512_INLINE void fp4_columns(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                               const uint8_t *const *codes, int64_t byte, uint16_t *tile)
{
    const __m512i table = _mm512_load_si512(rows->table);
    const bool two_blocks = kind != BSMI_BF16_OF_FP4;
    const uint32_t (*const scales)[BSMI_TILE_ROWS] = rows->scales + (two_blocks ? 2 * slice : slice);
    __m512i fours[4];
    load_fours(codes, byte, fours);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i given = _mm512_load_si512(scales[two_blocks ? i / 2 : 0]),
                      upper = _mm512_and_si512(given, _mm512_set1_epi32((int)0xffff0000)),
                      of_block = kind == BSMI_BF16_OF_NVFP4 ? upper : given;
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; j++)
            _mm512_store_si512(tile + (4 * i + (int)j) * BSMI_PAIR_NUMBERS,
                               fp4_pair(kind, fours[i], j, table, of_block));
    }
}

/* 12 bytes of each row, four codes of 6 bits in three, into fours. */
AVX512_INLINE void load_stream_fours(const uint8_t *const *rows, int64_t byte, bool upper, __m512i out[4])
{
    const __m512i places = _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11)),
        _mm512_set1_epi8(upper ? 4 : 0));
    load_sixteens(rows, upper ? byte - 4 : byte, out);   /* rows end with the upper ones */
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) out[i] = _mm512_shuffle_epi8(out[i], places);
    transpose_sixteens(out);
}

AVX512_INLINE __m512i fp6_pair(__m512i fours, unsigned j, __m512i table, __m512i scales)
{
    const __m512i bytes = pick_bytes(fours, j, j + 1, j, j + 1);
    const __m512i up = _mm512_set1_epi32(j == 0 ? 10 | 4 << 16 : 6);
    return fp6_numbers(_mm512_sllv_epi16(bytes, up), table, scales);
}

AVX512_INLINE __m512i fp8_pair(enum bsmi_bf16_kind kind, __m512i fours, unsigned j, __m512i table, __m512i scales,
                               __m512i *largest)
{
    const __m512i words = pick_bytes(fours, 2 * j, 2 * j, 2 * j + 1, 2 * j + 1);
    const __m512i moved = _mm512_srli_epi16(words, kind == BSMI_BF16_OF_E4M3 ? 4 : 3);
    return fp8_numbers(kind, words, moved, table, scales, largest);
}

AVX512_INLINE __m512i int8_pair(__m512i fours, unsigned j, __m512i scales)
{
    const __m512i turned = _mm512_xor_si512(fours, _mm512_set1_epi8((char)0x80));
    const __m512 factors = _mm512_castsi512_ps(scales);
    return join_upper_halves(int8_numbers(shift_right(turned, 16 * j), factors),
                             int8_numbers(shift_right(turned, 16 * j + 8), factors));
}

/* Codes of 6 and of 8 bits: a half of the slice at a time. */
AVX512_INLINE void byte_columns(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                                const uint8_t *const *codes, int64_t byte, uint16_t *tile, __m512i *largest)
{
    const bool fp6 = kind == BSMI_BF16_OF_E2M3 || kind == BSMI_BF16_OF_E3M2;
    const __m512i table = _mm512_load_si512(rows->table), scales = _mm512_load_si512(rows->scales[slice]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        __m512i fours[4];
        if (fp6) load_stream_fours(codes, byte + half * 12, half == 1, fours);
        else load_fours(codes, byte + half * 16, fours);
#pragma GCC unroll 8
        for (unsigned i = 0; i < 8; i++) {
            const __m512i v = fours[i / 2];
            _mm512_store_si512(tile + (half * 8 + (int)i) * BSMI_PAIR_NUMBERS,
                               fp6                          ? fp6_pair(v, i % 2, table, scales)
                               : kind == BSMI_BF16_OF_INT8 ? int8_pair(v, i % 2, scales)
                                                            : fp8_pair(kind, v, i % 2, table, scales, largest));
        }
    }
}

/* 16 rows of 64 bytes each. */
AVX512_INLINE void transpose_rows(const uint8_t *const *rows, int64_t byte, uint16_t *tile)
{
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; quarter++) {
        __m512i fours[4];
        load_fours(rows, byte + quarter * 16, fours);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) _mm512_store_si512(tile + (quarter * 4 + i) * BSMI_PAIR_NUMBERS, fours[i]);
    }
}

/* fp16, by way of row tiles. */
AVX512_INLINE void fp16_columns(const struct bsmi_bf16_rows *rows, int64_t slice, uint16_t *tile, uint16_t *second_tile)
{
    _Alignas(64) uint16_t row_tiles[2][BSMI_TILE_NUMBERS];
    const uint8_t *pointers[BSMI_TILE_ROWS];
    bsmi_bf16_decode_slice(BSMI_BF16_OF_FP16, rows, slice, row_tiles[0], row_tiles[1]);
    for (int r = 0; r < BSMI_TILE_ROWS; r++) pointers[r] = (const uint8_t *)(row_tiles[0] + r * BSMI_SLICE);
    transpose_rows(pointers, 0, tile);
    transpose_rows(pointers, sizeof row_tiles[0], second_tile);
}

/* 16 rows of a slice, the i-th of its lines, into a column tile; not of fp16. */
AVX512_INLINE void bsmi_bf16_decode_columns(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                                            const struct bsmi_bf16_lines *lines, int i, uint16_t *tile)
{
    const int64_t byte = (int64_t)i * bf16_slice_bytes(kind);
    __m512i largest = _mm512_setzero_si512();
    switch (kind) {
    case BSMI_BF16_OF_FP4:
    case BSMI_BF16_OF_FP4_BLOCK16:
    case BSMI_BF16_OF_NVFP4: fp4_columns(kind, rows, slice, lines->rows, byte, tile); break;
    case BSMI_BF16_OF_BF16: transpose_rows(lines->rows, 0, tile); return;
    default: byte_columns(kind, rows, slice, lines->rows, byte, tile, &largest); break;
    }
    if (rows->nan_scales || (bf16_kind_has_specials(kind) && fp8_has_specials(kind, largest)))
        bsmi_bf16_mend(rows, slice, true, tile);
}

#endif
