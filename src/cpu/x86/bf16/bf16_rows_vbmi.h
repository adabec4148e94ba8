/* Rows of bf16 as bf16_rows_avx512.h makes them, faster, for kernels that decode weights on their way: out of copies of
 * their cache lines, and with AVX-512's permutations of bytes (VBMI), which every CPU with tiles has.
 *
 * Codes of 4 bits are looked up with their scale: 16 codes have 32 bytes, the lower halves of their numbers and then
 * the upper ones, and vpermb finds both halves of 32 numbers at once.  A line is put in order first, so that
 * vpmultishiftqb moves all codes of a slice to where they are looked up.  That is three vector operations and a
 * quarter, two and a quarter of which only one port of Intel's cores has; vpermw is two operations there, and words and
 * scales take one more.
 *
 * 8-bit floats are moved to where bf16 has them.  Zeros, subnormal numbers, NaN and infinities want more than that;
 * lines that have one, which is seldom, are decoded as elsewhere. */
#ifndef BSMI_BF16_ROWS_VBMI_H
#define BSMI_BF16_ROWS_VBMI_H

#include "bf16_columns_avx512.h"
#include "bf16_tables.h"

#define VBMI __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))
#define VBMI_INLINE VBMI __attribute__((always_inline, unused)) static inline

AVX512_INLINE bool bf16_kind_is_fp4(enum bsmi_bf16_kind kind)
{
    return kind == BSMI_BF16_OF_FP4 || kind == BSMI_BF16_OF_FP4_BLOCK16 || kind == BSMI_BF16_OF_NVFP4;
}

/* Where a block's products lie: bytes from the table's first (bf16_tables.h). */
AVX512_INLINE uint32_t product_place(const struct bsmi_bf16_rows *rows, int64_t block, int row)
{
    return (uint16_t)rows->scales[block][row];
}

AVX512_INLINE __m512i load_products(const uint8_t *at)
{
    return _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

/* A line of four slices, so that every eight bytes hold the codes of four numbers of each: two bytes a slice. */
VBMI_INLINE __m512i fours_of_slices(__m512i line)
{
    const __m512i in_slice = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 16, 17, 32, 33, 48, 49, 2, 3, 18, 19, 34, 35,
                                                                  50, 51)),
                  quarter = _mm512_setr_epi32(0, 0, 0, 0, 0x04040404, 0x04040404, 0x04040404, 0x04040404, 0x08080808,
                                              0x08080808, 0x08080808, 0x08080808, 0x0c0c0c0c, 0x0c0c0c0c, 0x0c0c0c0c,
                                              0x0c0c0c0c);
    return _mm512_permutexvar_epi8(_mm512_add_epi8(in_slice, quarter), line);
}

/* Where the codes of slice i begin in such eight bytes: a bit for each byte of its numbers. */
VBMI_INLINE __m512i places_in_fours(int i)
{
    return _mm512_set1_epi64(0x0c0c080804040000 + i * 0x1010101010101010);
}

/* 16 bytes of codes, each number's code at the lower end of both of its bytes. */
VBMI_INLINE __m512i spread_codes(const uint8_t *codes)
{
    return _mm512_srlv_epi16(spread_nibbles(codes), _mm512_set1_epi32(4 << 16));
}

/* Such codes of a block that has a table. */
VBMI_INLINE __m512i fp4_numbers_of_table(__m512i codes, __m512i table)
{
    const __m512i half = _mm512_set1_epi16(0x1000);
    return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(codes, _mm512_set1_epi8(15), half, 0xea), table);
}

/* Such codes of a slice, a block of 32 or two of 16. */
VBMI_INLINE __m512i fp4_numbers_by_bytes(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int row,
                                         int64_t slice, __m512i codes)
{
    const uint8_t *const products = rows->product_bytes;
    __m512i table, half = _mm512_set1_epi16(0x1000);
    if (kind == BSMI_BF16_OF_FP4) {
        table = load_products(products + product_place(rows, slice, row));
    } else {
        const uint8_t *const second = products + product_place(rows, 2 * slice + 1, row);
        table = _mm512_inserti64x4(load_products(products + product_place(rows, 2 * slice, row)),
                                   _mm256_loadu_si256((const __m256i *)(const void *)second), 1);
        half = _mm512_setr_epi32(0x10001000, 0x10001000, 0x10001000, 0x10001000, 0x10001000, 0x10001000, 0x10001000,
                                 0x10001000, 0x30203020, 0x30203020, 0x30203020, 0x30203020, 0x30203020, 0x30203020,
                                 0x30203020, 0x30203020);
    }
    return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(codes, _mm512_set1_epi8(15), half, 0xea), table);
}

/* Least and largest magnitude, as codes, of normal numbers of an 8-bit float. */
AVX512_INLINE int least_normal(enum bsmi_bf16_kind kind) { return kind == BSMI_BF16_OF_E4M3 ? 0x08 : 0x04; }
AVX512_INLINE int largest_normal(enum bsmi_bf16_kind kind) { return kind == BSMI_BF16_OF_E4M3 ? 0x7e : 0x7b; }

/* 32 normal 8-bit floats; see fp8_numbers.  In place of saturating, the subtraction leaves the sign where it is. */
AVX512_INLINE __m512i fp8_normal_numbers(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int row,
                                         int64_t slice, const uint8_t *codes)
{
    const bool e4m3 = kind == BSMI_BF16_OF_E4M3;
    const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)codes));
    const __m512i lifted = _mm512_ternarylogic_epi32(
        _mm512_slli_epi16(words, e4m3 ? 4 : 5), _mm512_set1_epi16((short)(e4m3 ? 0x87f0 : 0x8fe0)),
        _mm512_set1_epi16(160 << 7), 0xea);
    return _mm512_sub_epi32(lifted, _mm512_set1_epi32((int)rows->scales[slice][row]));
}

/* whole: as many slices as lines hold, with 64 bytes of each row. */
VBMI_INLINE void copy_lines(enum bsmi_bf16_kind kind, bool direct, bool whole, const struct bsmi_bf16_rows *rows,
                            int64_t slice, int count, struct bsmi_bf16_lines *lines)
{
    const int bytes = bf16_slice_bytes(kind);
    const __mmask64 there = ~(__mmask64)0 >> (64 - count * bytes);
    const __m512i least = _mm512_set1_epi8((char)least_normal(kind));
    __m512i most = _mm512_setzero_si512();
#pragma GCC unroll 16
    for (int r = 0; r < BSMI_TILE_ROWS; r++) {
        const uint8_t *const codes = rows->codes[r] + slice * bytes;
        const __m512i line = whole ? _mm512_loadu_si512(codes) : _mm512_maskz_loadu_epi8(there, codes);
        if (!direct) _mm512_store_si512(lines->bytes[r], bf16_kind_is_fp4(kind) ? fours_of_slices(line) : line);
        if (!bf16_kind_has_specials(kind)) continue;
        const __m512i magnitude = _mm512_and_si512(line, _mm512_set1_epi8(0x7f));
        most = _mm512_max_epu8(most, _mm512_sub_epi8(magnitude, least));     /* what is less than the least wraps */
    }
    lines->normal = bf16_kind_has_specials(kind) && !rows->nan_scales
                    && _mm512_cmpgt_epu8_mask(most, _mm512_set1_epi8((char)(largest_normal(kind)
                                                                            - least_normal(kind)))) == 0;
}

/* `count` slices from `slice` on, as bsmi_bf16_read_lines; of elements of at most 8 bits.  direct: lines are decoded
 * where they lie, and looked at alone; not of 4 bits. */
VBMI_INLINE void bsmi_bf16_copy_lines(enum bsmi_bf16_kind kind, bool direct, const struct bsmi_bf16_rows *rows,
                                      int64_t slice, int count, struct bsmi_bf16_lines *lines)
{
    if (direct && !bf16_kind_has_specials(kind)) return;
    if (count * bf16_slice_bytes(kind) == 64) copy_lines(kind, direct, true, rows, slice, count, lines);
    else copy_lines(kind, direct, false, rows, slice, count, lines);
}

VBMI_INLINE const uint8_t *codes_of(enum bsmi_bf16_kind kind, bool direct, const struct bsmi_bf16_rows *rows, int row,
                                    int64_t slice, const struct bsmi_bf16_lines *lines, int i)
{
    const int bytes = bf16_slice_bytes(kind);
    return direct ? rows->codes[row] + slice * bytes : lines->bytes[row] + i * bytes;
}

/* 16 rows of a slice, the i-th of its lines, into a row tile. */
VBMI_INLINE void bsmi_bf16_decode_lines(enum bsmi_bf16_kind kind, bool direct, const struct bsmi_bf16_rows *rows,
                                        int64_t slice, const struct bsmi_bf16_lines *lines, int i, uint16_t *tile)
{
    const __m512i table = _mm512_load_si512(rows->table), places = places_in_fours(i);
    __m512i largest = _mm512_setzero_si512();
    if (bf16_kind_has_specials(kind) && lines->normal) {
#pragma GCC unroll 16
        for (int r = 0; r < BSMI_TILE_ROWS; r++)
            _mm512_store_si512(tile + r * BSMI_SLICE,
                               fp8_normal_numbers(kind, rows, r, slice,
                                                  codes_of(kind, direct, rows, r, slice, lines, i)));
        return;
    }
#pragma GCC unroll 16
    for (int r = 0; r < BSMI_TILE_ROWS; r++) {
        const uint8_t *const codes = codes_of(kind, direct, rows, r, slice, lines, i);
        __m512i numbers;
        if (!bf16_kind_is_fp4(kind)) numbers = bf16_decode_row(kind, rows, r, slice, codes, table, &largest);
        else
            numbers = fp4_numbers_by_bytes(kind, rows, r, slice,
                                           _mm512_multishift_epi64_epi8(places, _mm512_load_si512(lines->bytes[r])));
        _mm512_store_si512(tile + r * BSMI_SLICE, numbers);
    }
    if (rows->nan_scales || (bf16_kind_has_specials(kind) && fp8_has_specials(kind, largest)))
        bsmi_bf16_mend(rows, slice, false, tile);
}

#endif
