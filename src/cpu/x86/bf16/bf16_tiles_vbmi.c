/* Panels of tiles of bf16 (bf16_tiles_avx512.h) with AVX-512's permutations of bytes: for AMX, whose machines have
 * them.  Rows are read a cache line at a time, as bf16_rows_vbmi.h does, and what is packed next is asked for
 * meanwhile: 16 rows at once are more streams than a CPU foresees. */
#if defined(__x86_64__)
#include "bf16_rows_vbmi.h"
#include "bf16_tiles_avx512.h"

#include "core/core.h"

/* The line at `byte` of the 16 rows behind these, into the second-level cache.  Nothing is read. */
AVX512_INLINE void ask_for_next_rows(const struct bsmi_bf16_rows *rows, int64_t byte)
{
    const uintptr_t apart = (uintptr_t)rows->codes[1] - (uintptr_t)rows->codes[0];
#pragma GCC unroll 16
    for (int r = 0; r < BSMI_TILE_ROWS; r++)
        __builtin_prefetch((const void *)((uintptr_t)rows->codes[r] + BSMI_TILE_ROWS * apart + (uintptr_t)byte), 0, 2);
}

/* Whether every row is decoded: the others are zeros, which the way of normal 8-bit floats does not make. */
static bool decodes_all(const struct bsmi_part *part)
{
    if (part->count < BSMI_TILE_ROWS) return false;
    for (int r = 0; part->exponents != NULL && r < BSMI_TILE_ROWS; r++)
        if (part->exponents[r] == BSMI_FALLBACK_ROW) return false;
    return true;
}

/* 8-bit floats: whether they are normal numbers is looked at. */
VBMI_INLINE void copy_lines_of(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, bool all, int64_t slice,
                               int count, struct bsmi_bf16_lines *lines)
{
    bsmi_bf16_copy_lines(kind, false, rows, slice, count, lines);
    lines->normal = lines->normal && all;
}

/* Row tiles -------------------------------------------------------------------------------------------------------- */

VBMI_INLINE void fill_row_tiles(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows,
                                struct bsmi_bf16_places places, uint16_t *tile)
{
    const int64_t slices = bsmi_ceil_div(rows->part.length, BSMI_SLICE);
    const int at_once = bf16_slices_of_lines(kind);
    const bool all = decodes_all(&rows->part);
    struct bsmi_bf16_lines lines;
    for (int64_t s = 0; s < slices; s += at_once) {
        const int count = (int)BSMI_MIN(at_once, slices - s);
        if (!bf16_kind_is_wide(kind)) copy_lines_of(kind, rows, all, s, count, &lines);
        for (int i = 0; i < count; i++, tile += places.to_next_slice) {
            if (bf16_kind_is_wide(kind)) bsmi_bf16_decode_slice(kind, rows, s, tile, tile + places.to_second);
            else bsmi_bf16_decode_lines(kind, false, rows, s + i, &lines, i, tile);
        }
    }
}

/* Column tiles ----------------------------------------------------------------------------------------------------- */

/* Codes of 4 bits: vpmultishiftqb moves the codes of two columns of a row to where both bytes of their numbers are
 * looked up, and vpermb is one operation where vpermw is two. */

/* Lower and then upper bytes of the numbers of 16 codes. */
VBMI_INLINE __m512i bytes_of_table(const uint16_t *table)
{
    const __m256i numbers = _mm256_load_si256((const __m256i *)(const void *)table);
    return _mm512_zextsi256_si512(_mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm256_cvtepi16_epi8(numbers)), _mm256_cvtepi16_epi8(_mm256_srli_epi16(numbers, 8)), 1));
}

VBMI_INLINE void fp4_columns_by_bytes(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                                      const uint8_t *const *codes, int64_t byte, uint16_t *tile)
{
    const bool two_blocks = kind == BSMI_BF16_OF_FP4_BLOCK16;
    const uint32_t (*const scales)[BSMI_TILE_ROWS] = rows->scales + (two_blocks ? 2 * slice : slice);
    const __m512i table = bytes_of_table(rows->table);
    __m512i fours[4];
    load_fours(codes, byte, fours);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512i of_block = _mm512_load_si512(scales[two_blocks ? i / 2 : 0]);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const __m512i places = _mm512_set1_epi64(0x2424202004040000 + j * 0x0808080808080808);
            const __m512i found = fp4_numbers_of_table(_mm512_multishift_epi64_epi8(places, fours[i]), table);
            _mm512_store_si512(tile + (4 * i + j) * BSMI_PAIR_NUMBERS, _mm512_subs_epu16(found, of_block));
        }
    }
}

/* Normal 8-bit floats; see fp8_normal_numbers. */
VBMI_INLINE __m512i fp8_normal_pair(enum bsmi_bf16_kind kind, __m512i fours, unsigned j, __m512i scales)
{
    const bool e4m3 = kind == BSMI_BF16_OF_E4M3;
    const __m512i words = pick_bytes(fours, 2 * j, 2 * j, 2 * j + 1, 2 * j + 1);
    const __m512i lifted = _mm512_ternarylogic_epi32(_mm512_srai_epi16(words, e4m3 ? 4 : 3),
                                                     _mm512_set1_epi16((short)(e4m3 ? 0x87f0 : 0x8fe0)),
                                                     _mm512_set1_epi16(160 << 7), 0xea);
    return _mm512_sub_epi16(lifted, scales);
}

VBMI_INLINE void fp8_normal_columns(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                                    const uint8_t *const *codes, int64_t byte, uint16_t *tile)
{
    const __m512i scales = _mm512_load_si512(rows->scales[slice]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        __m512i fours[4];
        load_fours(codes, byte + half * 16, fours);
#pragma GCC unroll 8
        for (unsigned i = 0; i < 8; i++)
            _mm512_store_si512(tile + (half * 8 + (int)i) * BSMI_PAIR_NUMBERS,
                               fp8_normal_pair(kind, fours[i / 2], i % 2, scales));
    }
}

/* 16 rows of a slice, the i-th of its lines. */
VBMI_INLINE void decode_columns(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows, int64_t slice,
                                const struct bsmi_bf16_lines *lines, int i, uint16_t *tile)
{
    const int64_t byte = (int64_t)i * bf16_slice_bytes(kind);
    const bool fp4 = kind == BSMI_BF16_OF_FP4 || kind == BSMI_BF16_OF_FP4_BLOCK16;
    if (bf16_kind_has_specials(kind) && lines->normal)
        fp8_normal_columns(kind, rows, slice, lines->rows, byte, tile);
    else if (fp4 && !rows->nan_scales) fp4_columns_by_bytes(kind, rows, slice, lines->rows, byte, tile);
    else bsmi_bf16_decode_columns(kind, rows, slice, lines, i, tile);
}

VBMI_INLINE void fill_column_tiles(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows,
                                   struct bsmi_bf16_places places, uint16_t *tile)
{
    const int64_t slices = bsmi_ceil_div(rows->part.length, BSMI_SLICE);
    const int at_once = bf16_slices_of_lines(kind);
    const bool all = decodes_all(&rows->part);
    struct bsmi_bf16_lines lines;
    for (int r = 0; r < BSMI_TILE_ROWS; r++) lines.rows[r] = lines.bytes[r];
    for (int64_t s = 0; s < slices; s += at_once) {
        const int count = (int)BSMI_MIN(at_once, slices - s);
        ask_for_next_rows(rows, s * bf16_slice_bytes(kind));
        if (bf16_kind_has_specials(kind)) copy_lines_of(kind, rows, all, s, count, &lines);
        else if (kind != BSMI_BF16_OF_FP16) bsmi_bf16_read_lines(kind, rows, s, count, &lines);
        for (int i = 0; i < count; i++, tile += places.to_next_slice) {
            if (kind == BSMI_BF16_OF_FP16) fp16_columns(rows, s, tile, tile + places.to_second);
            else decode_columns(kind, rows, s + i, &lines, i, tile);
        }
    }
}

/* Panels ----------------------------------------------------------------------------------------------------------- */

VBMI static void row_tiles(const struct bsmi_bf16_rows *rows, struct bsmi_bf16_places places, uint16_t *tiles)
{
    BSMI_BY_BF16_KIND(rows->kind, fill_row_tiles, rows, places, tiles)
}

VBMI static void column_tiles(const struct bsmi_bf16_rows *rows, struct bsmi_bf16_places places, uint16_t *tiles)
{
    BSMI_BY_BF16_KIND(rows->kind, fill_column_tiles, rows, places, tiles)
}

void bsmi_bf16_row_tiles_vbmi(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles)
{
    bsmi_bf16_fill_panel(part, sixteens, terms, false, row_tiles, tiles);
}

void bsmi_bf16_column_tiles_vbmi(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles)
{
    bsmi_bf16_fill_panel(part, sixteens, terms, true, column_tiles, tiles);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
