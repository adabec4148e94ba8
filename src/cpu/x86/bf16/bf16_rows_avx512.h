/* 32 columns of one row as a vector of bf16 numbers times their scales, with AVX-512 F, BW, DQ and VL: the first CPUs
 * with dot products of bf16 have no permutations of bytes.  For kernels that decode weights on their way, and for
 * packers.
 *
 * A code of 4 or 6 bits looks its magnitude up in 32 words (vpermw looks at the low five bits of each index).  8-bit
 * floats are moved to where bf16 has them, and their subnormal numbers alone looked up.  Looked-up numbers are times
 * 2^bf16_lift, whose exponents are higher than any wanted; vpsubusw then takes the scale off the exponents: it
 * saturates, so that zeros stay zeros.  What is no number is mended afterwards, out of line: NaN scales, and NaN and
 * infinities of 8-bit floats, which the largest magnitude tells of. */
#ifndef BSMI_BF16_ROWS_AVX512_H
#define BSMI_BF16_ROWS_AVX512_H

#include "cpu/row_exponents.h"
#include "cpu/x86/halves_avx512.h"
#include "cpu/x86/words_avx2.h"

enum { BSMI_SLICE = 32, BSMI_TILE_ROWS = 16, BSMI_TILE_NUMBERS = BSMI_SLICE * BSMI_TILE_ROWS };

/* What decoding depends on: element, scale and block. */
enum bsmi_bf16_kind {
    BSMI_BF16_OF_FP4,                     /* e2m1: e8m0 scales of 32 or of 16; nvfp4 */
    BSMI_BF16_OF_FP4_BLOCK16,
    BSMI_BF16_OF_NVFP4,
    BSMI_BF16_OF_E2M3,
    BSMI_BF16_OF_E3M2,
    BSMI_BF16_OF_E4M3,                    /* scaled or not, as the next two */
    BSMI_BF16_OF_E5M2,
    BSMI_BF16_OF_INT8,
    BSMI_BF16_OF_BF16,
    BSMI_BF16_OF_FP16,
};

/* Calls function(kind, ...) with the kind as a constant. */
#define BSMI_BY_BF16_KIND(kind, function, ...) \
    switch (kind) { \
    case BSMI_BF16_OF_FP4: function(BSMI_BF16_OF_FP4, __VA_ARGS__); break; \
    case BSMI_BF16_OF_FP4_BLOCK16: function(BSMI_BF16_OF_FP4_BLOCK16, __VA_ARGS__); break; \
    case BSMI_BF16_OF_NVFP4: function(BSMI_BF16_OF_NVFP4, __VA_ARGS__); break; \
    case BSMI_BF16_OF_E2M3: function(BSMI_BF16_OF_E2M3, __VA_ARGS__); break; \
    case BSMI_BF16_OF_E3M2: function(BSMI_BF16_OF_E3M2, __VA_ARGS__); break; \
    case BSMI_BF16_OF_E4M3: function(BSMI_BF16_OF_E4M3, __VA_ARGS__); break; \
    case BSMI_BF16_OF_E5M2: function(BSMI_BF16_OF_E5M2, __VA_ARGS__); break; \
    case BSMI_BF16_OF_INT8: function(BSMI_BF16_OF_INT8, __VA_ARGS__); break; \
    case BSMI_BF16_OF_BF16: function(BSMI_BF16_OF_BF16, __VA_ARGS__); break; \
    default: function(BSMI_BF16_OF_FP16, __VA_ARGS__); break; \
    }

/* Up to 16 rows of a part, made ready. */
struct bsmi_bf16_rows {
    enum bsmi_bf16_kind kind;
    bool nan_scales;
    const uint8_t *codes[BSMI_TILE_ROWS];
    _Alignas(64) uint16_t table[32];      /* magnitudes of codes (of e2m1 with signs), times 2^bf16_lift */
    const uint16_t (*products)[16];       /* nvfp4: of each scale the numbers of all codes */
    const uint8_t *product_bytes;         /* of codes of 4 bits, as bytes (bf16_tables.h) */
    /* [block][row]: int8: fp32 numbers times 2^-6; nvfp4: for columns fp32 numbers, for rows how many bytes on their
     * products are; else in both words what to subtract. */
    _Alignas(64) uint32_t scales[BSMI_SCALE_CODES][BSMI_TILE_ROWS];
    struct bsmi_part part;
    struct bsmi_element_rows memory;
    struct bsmi_scale_code_rows scale_codes;
};

/* Rows [first, first + 16) of the part, as far as there are such: at least one.  for_columns: column tiles are made of
 * them, for which nvfp4's scales have to be numbers. */
void bsmi_bf16_rows_make(const struct bsmi_part *part, int64_t first, bool for_columns, struct bsmi_bf16_rows *rows);

/* NaN and infinities of a slice into its tile: [row][column], or [column / 2][row][column % 2]. */
void bsmi_bf16_mend(const struct bsmi_bf16_rows *rows, int64_t slice, bool column_tile, uint16_t *tile);

static inline int bf16_lift(enum bsmi_bf16_kind kind)
{
    return kind == BSMI_BF16_OF_E4M3 ? 40 : kind == BSMI_BF16_OF_E5M2 ? 48 : 64;
}

/* Codes -------------------------------------------------------------------------------------------------------------*/

AVX512_INLINE __m512i broadcast_sixteen(const uint8_t *bytes)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)bytes));
}

/* Each byte of a row into both bytes of both words of its two codes of 4 bits: where those come from, in each
 * quarter. */
AVX512_INLINE __m512i places_of_nibbles(void)
{
    return _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)),
        _mm512_setr_epi32(0, 0, 0, 0, 0x04040404, 0x04040404, 0x04040404, 0x04040404, 0x08080808, 0x08080808,
                          0x08080808, 0x08080808, 0x0c0c0c0c, 0x0c0c0c0c, 0x0c0c0c0c, 0x0c0c0c0c));
}

AVX512_INLINE __m512i spread_nibbles(const uint8_t *bytes)
{
    return _mm512_shuffle_epi8(broadcast_sixteen(bytes), places_of_nibbles());
}

/* Codes of 6 bits at the upper ends of words.  Each quarter of the vector has 8 codes out of 6 bytes; the upper half's
 * come from a load 8 bytes on. */
AVX512_INLINE __m512i spread_stream(const uint8_t *bytes)
{
    const __m512i in_quarter = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 1, 2, 1, 2, 3, 4, 3, 4, 4, 5, 4, 5));
    const __m512i places = _mm512_add_epi8(
        in_quarter, _mm512_setr_epi32(0, 0, 0, 0, 0x06060606, 0x06060606, 0x06060606, 0x06060606, 0x04040404,
                                      0x04040404, 0x04040404, 0x04040404, 0x0a0a0a0a, 0x0a0a0a0a, 0x0a0a0a0a,
                                      0x0a0a0a0a));
    const __m512i both = _mm512_mask_broadcast_i32x4(broadcast_sixteen(bytes), 0xff00,
                                                     _mm_loadu_si128((const __m128i *)(const void *)(bytes + 8)));
    return _mm512_sllv_epi16(_mm512_shuffle_epi8(both, places), _mm512_set1_epi64(10 | 4LL << 16 | 6LL << 32));
}

/* Numbers -----------------------------------------------------------------------------------------------------------*/

AVX512_INLINE __m512i with_signs_of(__m512i magnitude, __m512i words)
{
    return _mm512_ternarylogic_epi32(magnitude, words, _mm512_set1_epi16((short)0x8000), 0xf8);
}

/* Upper halves of two vectors of fp32 numbers that bf16 holds: of each pair of words the lower is the first's. */
AVX512_INLINE __m512i join_upper_halves(__m512 lower, __m512 upper)
{
    return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(lower), 16), _mm512_castps_si512(upper));
}

/* e2m1 in words whose low five bits are a code and anything. */
AVX512_INLINE __m512i fp4_numbers(__m512i words, __m512i table, __m512i scales)
{
    return _mm512_subs_epu16(_mm512_permutexvar_epi16(words, table), scales);
}

/* Codes of 6 bits at the upper ends of words. */
AVX512_INLINE __m512i fp6_numbers(__m512i words, __m512i table, __m512i scales)
{
    const __m512i magnitude = _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 10), table);
    return with_signs_of(_mm512_subs_epu16(magnitude, scales), words);
}

/* 8-bit floats whose codes are the lower bytes of `words`, whose signs are the upper ends of them, and whose magnitudes
 * end at bit 4 (e4m3), bit 5 (e5m2) of `moved`.  160 << 7 shares no bit with a magnitude. */
AVX512_INLINE __m512i fp8_numbers(enum bsmi_bf16_kind kind, __m512i words, __m512i moved, __m512i table,
                                  __m512i scales, __m512i *largest)
{
    const bool e4m3 = kind == BSMI_BF16_OF_E4M3;
    const __m512i lifted = _mm512_ternarylogic_epi32(moved, _mm512_set1_epi16(e4m3 ? 0x07f0 : 0x0fe0),
                                                     _mm512_set1_epi16(160 << 7), 0xea);
    const __mmask32 subnormal = _mm512_testn_epi16_mask(words, _mm512_set1_epi16(e4m3 ? 0x78 : 0x7c));
    *largest = _mm512_max_epu16(*largest, lifted);
    const __m512i magnitude = _mm512_mask_permutexvar_epi16(lifted, subnormal, words, table);
    return with_signs_of(_mm512_subs_epu16(magnitude, scales), words);
}

/* Whether one of them was NaN or infinite. */
AVX512_INLINE bool fp8_has_specials(enum bsmi_bf16_kind kind, __m512i largest)
{
    const short least = (short)(160 << 7 | (kind == BSMI_BF16_OF_E4M3 ? 0x7f << 4 : 0x7c << 5));
    return _mm512_cmpge_epu16_mask(largest, _mm512_set1_epi16(least)) != 0;
}

/* e2m1 times nvfp4's scales: the first block's products are words 0 .. 15 of the table, the second's the others. */
AVX512_INLINE __m512i nvfp4_numbers(const uint8_t *bytes, const uint8_t *products, uint16_t first, uint16_t second)
{
    const __m512i table = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_load_si256((const __m256i *)(const void *)(products + first))),
        _mm256_load_si256((const __m256i *)(const void *)(products + second)), 1);
    const __m512i words = _mm512_srlv_epi16(spread_nibbles(bytes), _mm512_set1_epi32(4 << 16));
    const __m512i block = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0x100010, 0x100010, 0x100010, 0x100010, 0x100010,
                                            0x100010, 0x100010, 0x100010);
    return _mm512_permutexvar_epi16(_mm512_ternarylogic_epi32(words, _mm512_set1_epi16(15), block, 0xea), table);
}

/* int8 by way of fp32: a code with its sign turned, c + 128, in the low bits of 2^23; then one fused multiply-add with
 * a scale is exact. */
AVX512_INLINE __m512 int8_numbers(__m512i turned, __m512 scale)
{
    const __m512 number =
        _mm512_castsi512_ps(_mm512_ternarylogic_epi32(turned, _mm512_set1_epi32(0xff), _mm512_set1_epi32(0x4b000000),
                                                      0xea));
    return _mm512_fmsub_ps(number, scale, _mm512_mul_ps(scale, _mm512_set1_ps(0x1p23F + 128)));
}

AVX512_INLINE __m512i int8_row(const uint8_t *bytes, float scale)
{
    const __m256i turned = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)bytes),
                                            _mm256_set1_epi8((char)0x80));
    const __m512i words = _mm512_cvtepu8_epi16(turned);
    const __m512 scales = _mm512_set1_ps(scale);
    return join_upper_halves(int8_numbers(words, scales), int8_numbers(_mm512_srli_epi32(words, 16), scales));
}

/* Rows --------------------------------------------------------------------------------------------------------------*/

AVX512_INLINE float bf16_scale_number(const struct bsmi_bf16_rows *rows, int64_t block, int row)
{
    float scale;
    memcpy(&scale, &rows->scales[block][row], sizeof scale);
    return scale;
}

/* Of how many slices a row's cache line is read at once; their bytes divide 64, but for elements of 6 bits. */
AVX512_INLINE int bf16_slices_of_lines(enum bsmi_bf16_kind kind)
{
    switch (kind) {
    case BSMI_BF16_OF_FP4:
    case BSMI_BF16_OF_FP4_BLOCK16:
    case BSMI_BF16_OF_NVFP4: return 4;
    case BSMI_BF16_OF_BF16:
    case BSMI_BF16_OF_FP16: return 1;
    default: return 2;
    }
}

AVX512_INLINE int bf16_slice_bytes(enum bsmi_bf16_kind kind)
{
    return kind == BSMI_BF16_OF_E2M3 || kind == BSMI_BF16_OF_E3M2 ? 24 : 64 / bf16_slices_of_lines(kind);
}

/* 32 numbers of a row of codes.  codes: the row's of this slice; table: rows->table; largest: of fp8_numbers, of the
 * rows so far. */
AVX512_INLINE __m512i bf16_decode_row(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int row,
                                      int64_t slice, const uint8_t *codes, __m512i table, __m512i *largest)
{
    const __m512i to_low = _mm512_set1_epi32(4 << 16);
    __m512i scales;
    switch (kind) {
    case BSMI_BF16_OF_FP4:
        scales = _mm512_set1_epi32((int)rows->scales[slice][row]);
        return fp4_numbers(_mm512_srlv_epi16(spread_nibbles(codes), to_low), table, scales);
    case BSMI_BF16_OF_FP4_BLOCK16:
        scales = _mm512_mask_set1_epi32(_mm512_set1_epi32((int)rows->scales[2 * slice][row]), 0xff00,
                                        (int)rows->scales[2 * slice + 1][row]);
        return fp4_numbers(_mm512_srlv_epi16(spread_nibbles(codes), to_low), table, scales);
    case BSMI_BF16_OF_NVFP4:
        return nvfp4_numbers(codes, (const uint8_t *)rows->products,
                             (uint16_t)rows->scales[2 * slice][row], (uint16_t)rows->scales[2 * slice + 1][row]);
    case BSMI_BF16_OF_E2M3:
    case BSMI_BF16_OF_E3M2:
        scales = _mm512_set1_epi32((int)rows->scales[slice][row]);
        return fp6_numbers(spread_stream(codes), table, scales);
    case BSMI_BF16_OF_E4M3:
    case BSMI_BF16_OF_E5M2: {
        scales = _mm512_set1_epi32((int)rows->scales[slice][row]);
        const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)codes));
        return fp8_numbers(kind, words, _mm512_slli_epi16(words, kind == BSMI_BF16_OF_E4M3 ? 4 : 5), table, scales,
                           largest);
    }
    default: return int8_row(codes, bf16_scale_number(rows, slice, row));
    }
}

/* fp16 as two terms (row_exponents.h). */
struct bf16_terms { __m512i first, second; };

AVX512_INLINE struct bf16_terms bf16_split(__m512i halves)
{
    const __m512i upper_words = _mm512_setr_epi32(
        0x00030001, 0x00070005, 0x000b0009, 0x000f000d, 0x00130011, 0x00170015, 0x001b0019, 0x001f001d, 0x00230021,
        0x00270025, 0x002b0029, 0x002f002d, 0x00330031, 0x00370035, 0x003b0039, 0x003f003d);
    const __m512 x[2] = { _mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                          _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)) };
    __m512i first[2], second[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const __m512i bits = _mm512_castps_si512(x[i]);
        const __mmask16 whole = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0xffff));
        const __m512 cut = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32((int)0xffff0000)));
        const __m512 half = _mm512_mul_ps(x[i], _mm512_set1_ps(0.5F));
        first[i] = _mm512_castps_si512(_mm512_mask_mov_ps(cut, whole, half));
        second[i] = _mm512_castps_si512(_mm512_mask_mov_ps(_mm512_sub_ps(x[i], cut), whole, half));
    }
    return (struct bf16_terms){ _mm512_permutex2var_epi16(first[0], upper_words, first[1]),
                                _mm512_permutex2var_epi16(second[0], upper_words, second[1]) };
}

/* 32 columns of 16 bits of a row; what is missing is zero. */
AVX512_INLINE __m512i bf16_load_wide(const struct bsmi_bf16_rows *rows, bool whole, int row, int64_t slice)
{
    const int64_t left = rows->part.length - slice * BSMI_SLICE;
    const uint8_t *const codes = rows->codes[row] + slice * BSMI_SLICE * 2;
    if (whole) return _mm512_loadu_si512(codes);
    return _mm512_maskz_loadu_epi16(
        row >= rows->part.count ? 0 : left >= BSMI_SLICE ? 0xffffffff : ((__mmask32)1 << left) - 1, codes);
}

/* Whether neither rows nor columns of the slice are missing. */
AVX512_INLINE bool bf16_slice_is_whole(const struct bsmi_bf16_rows *rows, int64_t slice)
{
    return rows->part.count == BSMI_TILE_ROWS && (slice + 1) * BSMI_SLICE <= rows->part.length;
}

AVX512_INLINE void bf16_copy_slice(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, bool whole,
                                   int64_t slice, uint16_t *tile, uint16_t *second_tile)
{
#pragma GCC unroll 4
    for (int r = 0; r < BSMI_TILE_ROWS; r++) {
        const __m512i numbers = bf16_load_wide(rows, whole, r, slice);
        if (kind == BSMI_BF16_OF_BF16) {
            _mm512_store_si512(tile + r * BSMI_SLICE, numbers);
            continue;
        }
        const struct bf16_terms terms = bf16_split(numbers);
        _mm512_store_si512(tile + r * BSMI_SLICE, terms.first);
        _mm512_store_si512(second_tile + r * BSMI_SLICE, terms.second);
    }
}

AVX512_INLINE bool bf16_kind_is_wide(enum bsmi_bf16_kind kind)
{
    return kind == BSMI_BF16_OF_BF16 || kind == BSMI_BF16_OF_FP16;
}

AVX512_INLINE bool bf16_kind_has_specials(enum bsmi_bf16_kind kind)
{
    return kind == BSMI_BF16_OF_E4M3 || kind == BSMI_BF16_OF_E5M2;
}

/* 16 rows of a slice into a row tile; of fp16 the second terms into second_tile. */
AVX512_INLINE void bsmi_bf16_decode_slice(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                                          uint16_t *tile, uint16_t *second_tile)
{
    if (bf16_kind_is_wide(kind)) {
        if (bf16_slice_is_whole(rows, slice)) bf16_copy_slice(kind, rows, true, slice, tile, second_tile);
        else bf16_copy_slice(kind, rows, false, slice, tile, second_tile);
        return;
    }
    __m512i largest = _mm512_setzero_si512();
    const __m512i table = _mm512_load_si512(rows->table);
    const int bytes = bf16_slice_bytes(kind);
#pragma GCC unroll 16
    for (int r = 0; r < BSMI_TILE_ROWS; r++)
        _mm512_store_si512(tile + r * BSMI_SLICE,
                           bf16_decode_row(kind, rows, r, slice, rows->codes[r] + slice * bytes, table, &largest));
    if (rows->nan_scales || (bf16_kind_has_specials(kind) && fp8_has_specials(kind, largest)))
        bsmi_bf16_mend(rows, slice, false, tile);
}

#endif
