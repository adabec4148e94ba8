/* Panels of tiles of bf16: bf16_tiles_avx512.h. */
#if defined(__x86_64__)
#include "bf16_columns_avx512.h"
#include "bf16_tables.h"
#include "bf16_tiles_avx512.h"

#include "core/core.h"
#include "matrix/rows.h"

enum { NAN_SCALE = 255, BF16_NAN = 0x7fc0, E8M0_BIAS = 127 };

static enum bsmi_bf16_kind kind_of(const struct bsmi_matrix *m)
{
    switch (m->element) {
    case BSM_E2M1:
        return m->scale == BSM_UE4M3 ? BSMI_BF16_OF_NVFP4 : m->block == 16 ? BSMI_BF16_OF_FP4_BLOCK16
                                                                           : BSMI_BF16_OF_FP4;
    case BSM_E2M3: return BSMI_BF16_OF_E2M3;
    case BSM_E3M2: return BSMI_BF16_OF_E3M2;
    case BSM_E4M3: return BSMI_BF16_OF_E4M3;
    case BSM_E5M2: return BSMI_BF16_OF_E5M2;
    case BSM_INT8: return BSMI_BF16_OF_INT8;
    case BSM_BF16: return BSMI_BF16_OF_BF16;
    default: return BSMI_BF16_OF_FP16;
    }
}

/* Making rows ready -------------------------------------------------------------------------------------------------*/

/* What makes scales out of codes, a row a word. */
struct scale_maker {
    __m512i bases;                        /* of nvfp4 none; of int8 what to subtract from a code; else what the code is
                                             subtracted from, in both words */
    __m512i missing;                      /* all ones in words of rows that are missing or fallback rows */
};

AVX512 static struct scale_maker make_scale_maker(const struct bsmi_part *part, enum bsmi_bf16_kind kind)
{
    const __mmask16 rows = (__mmask16)((1u << part->count) - 1);
    const __m256i given =
        part->exponents == NULL ? _mm256_setzero_si256() : _mm256_maskz_loadu_epi16(rows, part->exponents);
    const __m512i exponents = _mm512_cvtepi16_epi32(given), lift = _mm512_set1_epi32(bf16_lift(kind) + E8M0_BIAS),
                  bases = _mm512_add_epi32(exponents, lift);
    const __mmask16 there = _mm512_mask_cmpneq_epi32_mask(rows, exponents, _mm512_set1_epi32(BSMI_FALLBACK_ROW));
    return (struct scale_maker){
        kind == BSMI_BF16_OF_INT8 ? _mm512_add_epi32(exponents, _mm512_set1_epi32(6))
                                  : _mm512_mask_blend_epi16(0xaaaaaaaa, bases, _mm512_slli_epi32(bases, 16)),
        _mm512_maskz_set1_epi32((__mmask16)~there, -1),
    };
}

/* Codes of nvfp4's scales as fp32. */
AVX512_INLINE __m512i ue4m3_numbers(__m512i codes)
{
    const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi32(0x7f)), nan = _mm512_set1_epi32(0x7fc00000);
    const __m512i normal =
        _mm512_add_epi32(_mm512_slli_epi32(magnitude, 20), _mm512_set1_epi32((127 - 7) << 23));
    const __m512 subnormal = _mm512_mul_ps(_mm512_cvtepi32_ps(magnitude), _mm512_set1_ps(0x1p-9F));
    const __mmask16 is_subnormal = _mm512_testn_epi32_mask(codes, _mm512_set1_epi32(0x78)),
                    is_nan = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7f));
    return _mm512_mask_mov_epi32(_mm512_mask_mov_epi32(normal, is_subnormal, _mm512_castps_si512(subnormal)), is_nan,
                                 nan);
}

/* 2^(code - base), as fp32; 0 where that is small, or too large for int8_numbers: scales of blocks of zeros alone. */
AVX512_INLINE __m512i power_of_two_numbers(__m512i codes, __m512i bases)
{
    const __m512i field = _mm512_sub_epi32(codes, bases);
    const __mmask16 normal = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(field, _mm512_set1_epi32(1)),
                                                     _mm512_set1_epi32(127 + 64));
    return _mm512_maskz_slli_epi32(normal, field, 23);
}

/* Byte `byte` of the words: codes of a block. */
AVX512_INLINE __m512i make_scales(enum bsmi_bf16_kind kind, bool for_columns, const struct scale_maker *maker,
                                  __m512i fours, int byte)
{
    const bool numbers = kind == BSMI_BF16_OF_NVFP4 || kind == BSMI_BF16_OF_INT8;
    const char none = -1, again = numbers ? none : 0;
    const __m512i places = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, none, again, none, 4, none, (char)(again | 4), none, 8, none, (char)(again | 8), none, 12, none,
        (char)(again | 12), none));
    const __m512i at = _mm512_add_epi8(places, _mm512_set1_epi32(numbers ? byte : byte * 0x10001)),
                  codes = _mm512_shuffle_epi8(fours, at);
    if (kind == BSMI_BF16_OF_NVFP4) {
        const __m512i magnitudes = _mm512_and_si512(codes, _mm512_set1_epi32(0x7f));
        return _mm512_andnot_si512(maker->missing,
                                   for_columns ? ue4m3_numbers(codes) : _mm512_slli_epi32(magnitudes, 5));
    }
    if (kind == BSMI_BF16_OF_INT8)
        return _mm512_andnot_si512(maker->missing, power_of_two_numbers(codes, maker->bases));
    return _mm512_or_si512(maker->missing, _mm512_slli_epi16(_mm512_sub_epi16(maker->bases, codes), 7));
}

/* Bytes behind the last of `left` are zeros. */
AVX512_INLINE __m512i first_bytes(__m512i fours, int64_t left)
{
    return left >= 4 ? fours : _mm512_and_si512(fours, _mm512_set1_epi32((1 << 8 * left) - 1));
}

/* Returns whether an e8m0 scale is NaN; those of nvfp4 are numbers among others. */
AVX512_INLINE bool make_block_scales(enum bsmi_bf16_kind kind, bool for_columns, const struct scale_maker *maker,
                                     const uint8_t *const *codes, int64_t blocks, uint32_t (*scales)[BSMI_TILE_ROWS])
{
    __m512i largest = _mm512_setzero_si512();
    for (int64_t first = 0; first < blocks; first += BSMI_SCALE_GROUP) {
        __m512i fours[4];
        load_fours(codes, first, fours);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            if (first + 4 * i >= blocks) break;
            const __m512i four = first_bytes(fours[i], blocks - first - 4 * i);
            largest = _mm512_max_epu8(largest, four);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++)
                _mm512_store_si512(scales[first + 4 * i + j], make_scales(kind, for_columns, maker, four, j));
        }
    }
    return kind != BSMI_BF16_OF_NVFP4 && _mm512_cmpeq_epi8_mask(largest, _mm512_set1_epi8((char)NAN_SCALE)) != 0;
}

AVX512 static bool make_all_scales(enum bsmi_bf16_kind kind, bool for_columns, const struct scale_maker *maker,
                                   const uint8_t *const *codes, int64_t blocks, uint32_t (*scales)[BSMI_TILE_ROWS])
{
    switch (kind) {                       /* the other kinds differ in their bases alone */
    case BSMI_BF16_OF_NVFP4:
        return for_columns ? make_block_scales(BSMI_BF16_OF_NVFP4, true, maker, codes, blocks, scales)
                           : make_block_scales(BSMI_BF16_OF_NVFP4, false, maker, codes, blocks, scales);
    case BSMI_BF16_OF_INT8: return make_block_scales(BSMI_BF16_OF_INT8, true, maker, codes, blocks, scales);
    default: return make_block_scales(BSMI_BF16_OF_FP4, true, maker, codes, blocks, scales);
    }
}

/* 8-bit floats without scales: as if all codes were those of 1. */
AVX512 static void make_unit_scales(const struct scale_maker *maker, int64_t slices,
                                    uint32_t (*scales)[BSMI_TILE_ROWS])
{
    const __m512i made = make_scales(BSMI_BF16_OF_E4M3, true, maker, _mm512_set1_epi32(E8M0_BIAS), 0);
    for (int64_t s = 0; s < slices; s++) _mm512_store_si512(scales[s], made);
}

/* Of fp8 subnormal numbers alone are looked up. */
AVX512 static void make_table(const struct bsmi_operand *o, enum bsmi_bf16_kind kind, uint16_t *table)
{
    const bool fp4 = kind == BSMI_BF16_OF_FP4 || kind == BSMI_BF16_OF_FP4_BLOCK16;
    const __m512 lift = _mm512_set1_ps(bsmi_float_power_of_two(bf16_lift(kind)));
    for (int i = 0; i < 32; i += 16) {
        const __m512 values = _mm512_loadu_ps(o->values + (fp4 ? 0 : i));
        const __mmask16 nonzero = _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        const __m512i bits = _mm512_castps_si512(_mm512_maskz_mul_ps(nonzero, values, lift));
        _mm256_store_si256((__m256i *)(void *)(table + i), _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
    }
}

/* Codes of 4 bits in other orders than two a byte, the first one low: 16 bytes have a slice. */

AVX512_INLINE __m128i swap_nibbles(__m128i bytes)
{
    const __m128i low = _mm_set1_epi8(15);
    return _mm_or_si128(_mm_slli_epi16(_mm_and_si128(bytes, low), 4), _mm_and_si128(_mm_srli_epi16(bytes, 4), low));
}

/* GGUF's: the low nibbles of 16 bytes of mxfp4, of 8 of nvfp4, are the first codes, the high ones the next. */
AVX512_INLINE __m128i join_gguf_nibbles(bool mxfp4, __m128i bytes)
{
    const __m128i low = _mm_set1_epi8(15), pair = _mm_set1_epi16(1 | 16 << 8);
    const __m128i first = _mm_maddubs_epi16(_mm_and_si128(bytes, low), pair),
                  next = _mm_maddubs_epi16(_mm_and_si128(_mm_srli_epi16(bytes, 4), low), pair),
                  joined = _mm_packus_epi16(first, next);
    return mxfp4 ? joined : _mm_shuffle_epi32(joined, _MM_SHUFFLE(3, 1, 2, 0));
}

/* Where slice s of a row that begins at a multiple of 64 lies: of GGUF's mxfp4 blocks of 17 bytes hold 32 codes behind
 * a scale, of its nvfp4 blocks of 36 hold 64 behind four. */
AVX512_INLINE __m128i ordered_slice(const struct bsmi_matrix *m, const uint8_t *row, int64_t s)
{
    const bool mxfp4 = m->format == BSM_MXFP4, swapped = m->packing == BSM_PACKING_HIGH_FIRST;
    const uint8_t *const from = swapped ? row + s * 16 : mxfp4 ? row + s * 17 + 1 : row + s / 2 * 36 + 4 + s % 2 * 16;
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
    return swapped ? swap_nibbles(bytes) : join_gguf_nibbles(mxfp4, bytes);
}

static bool is_reordered(const struct bsmi_part *part)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    return (m->packing == BSM_PACKING_HIGH_FIRST || m->packing == BSM_PACKING_GGUF)
           && part->k % BSMI_NIBBLE_GROUP == 0 && part->length % BSMI_NIBBLE_GROUP == 0;
}

AVX512 static void reorder_rows(const struct bsmi_part *part, struct bsmi_bf16_rows *rows)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    const int64_t first = part->k / BSMI_SLICE, end = first + part->length / BSMI_SLICE;
    for (int64_t r = 0; r < BSMI_TILE_ROWS; r++) {
        rows->codes[r] = rows->memory.of.nibbles.copies[BSMI_MIN(r, part->count - 1)];
        if (r >= part->count) continue;
        const uint8_t *const row = bsmi_row(m, part->batch, bsmi_source_column(part->first + r, part->split));
        uint8_t *to = rows->memory.of.nibbles.copies[r];
        for (int64_t s = first; s < end; s++, to += 16)
            _mm_storeu_si128((__m128i *)(void *)to, ordered_slice(m, row, s));
    }
}

/* Codes of at most 8 bits: the matrix's own, or copies. */
static void find_codes(const struct bsmi_part *part, struct bsmi_bf16_rows *rows)
{
    if (is_reordered(part)) {
        reorder_rows(part, rows);
        return;
    }
    bsmi_element_rows(part, BSMI_TILE_ROWS, &rows->memory);
    memcpy(rows->codes, bsmi_row_pointers(&rows->memory), sizeof rows->codes);
}

AVX512 void bsmi_bf16_rows_make(const struct bsmi_part *part, int64_t first, bool for_columns,
                                struct bsmi_bf16_rows *rows)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    struct bsmi_part *const own = &rows->part;
    *own = *part;
    own->first += first;
    own->count = BSMI_MIN(BSMI_TILE_ROWS, part->count - first);
    own->exponents = bsmi_exponents_from(own->exponents, first);
    rows->kind = kind_of(m);
    rows->nan_scales = false;
    if (m->bits > 8) {
        for (int64_t r = 0; r < BSMI_TILE_ROWS; r++) {
            const int64_t row = bsmi_source_column(own->first + BSMI_MIN(r, own->count - 1), own->split);
            rows->codes[r] = bsmi_row(m, own->batch, row) + own->k * m->bits / 8;
        }
        return;
    }
    find_codes(own, rows);
    const struct bsmi_bf16_tables *const tables = bsmi_bf16_tables();
    rows->products = tables->nvfp4;
    rows->product_bytes = rows->kind == BSMI_BF16_OF_NVFP4 ? tables->nvfp4_bytes[0] : tables->fp4_bytes[0];
    if (rows->kind != BSMI_BF16_OF_NVFP4) make_table(&part->operand, rows->kind, rows->table);
    const struct scale_maker maker = make_scale_maker(own, rows->kind);
    if (m->block == 0) {
        make_unit_scales(&maker, bsmi_ceil_div(own->length, BSMI_SLICE), rows->scales);
        return;
    }
    const int64_t blocks = bsmi_scale_code_rows(own, BSMI_TILE_ROWS, &rows->scale_codes);
    rows->nan_scales = make_all_scales(rows->kind, for_columns, &maker, rows->scale_codes.rows, blocks, rows->scales);
}

static uint16_t special_of(const struct bsmi_bf16_rows *rows, int r, int64_t k, uint8_t code, uint16_t number)
{
    const struct bsmi_operand *o = &rows->part.operand;
    const float value = o->values[code];
    if (o->matrix->block != 0 && rows->scale_codes.rows[r][k / o->matrix->block] == NAN_SCALE) return BF16_NAN;
    return isfinite(value) ? number : isnan(value) ? BF16_NAN : (uint16_t)(bsmi_float_bits(value) >> 16);
}

void bsmi_bf16_mend(const struct bsmi_bf16_rows *rows, int64_t slice, bool column_tile, uint16_t *tile)
{
    const struct bsmi_part *part = &rows->part;
    const struct bsmi_matrix *m = part->operand.matrix;
    const int64_t k = slice * BSMI_SLICE, count = BSMI_MIN(BSMI_SLICE, part->length - k);
    for (int r = 0; r < (int)part->count; r++) {
        uint8_t codes[BSMI_SLICE];
        if (part->exponents != NULL && part->exponents[r] == BSMI_FALLBACK_ROW) continue;
        bsmi_row_codes(m, part->batch, bsmi_source_column(part->first + r, part->split), part->k + k, count, codes);
        for (int64_t i = 0; i < count; i++) {
            uint16_t *const at = tile + (column_tile ? i / 2 * (2 * BSMI_TILE_ROWS) + 2 * r + i % 2
                                                     : r * BSMI_SLICE + i);
            *at = special_of(rows, r, k + i, codes[i], *at);
        }
    }
}

/* Panels ------------------------------------------------------------------------------------------------------------*/

static struct bsmi_bf16_places places_of(int sixteens, int terms)
{
    const int64_t to_second = (int64_t)sixteens * BSMI_TILE_NUMBERS;
    return (struct bsmi_bf16_places){ terms * to_second, to_second };
}

AVX512_INLINE void fill_row_tiles(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows,
                                  struct bsmi_bf16_places places, uint16_t *tiles)
{
    const int64_t slices = bsmi_ceil_div(rows->part.length, BSMI_SLICE);
    for (int64_t s = 0; s < slices; s++, tiles += places.to_next_slice)
        bsmi_bf16_decode_slice(kind, rows, s, tiles, tiles + places.to_second);
}

AVX512 static void row_tiles(const struct bsmi_bf16_rows *rows, struct bsmi_bf16_places places, uint16_t *tiles)
{
    BSMI_BY_BF16_KIND(rows->kind, fill_row_tiles, rows, places, tiles)
}

AVX512_INLINE void fill_column_tiles(enum bsmi_bf16_kind kind, const struct bsmi_bf16_rows *rows,
                                     struct bsmi_bf16_places places, uint16_t *tiles)
{
    const int64_t slices = bsmi_ceil_div(rows->part.length, BSMI_SLICE);
    const int at_once = bf16_slices_of_lines(kind);
    struct bsmi_bf16_lines lines;
    for (int64_t s = 0; s < slices; s += at_once) {
        const int count = (int)BSMI_MIN(at_once, slices - s);
        if (kind != BSMI_BF16_OF_FP16) bsmi_bf16_read_lines(kind, rows, s, count, &lines);
        for (int i = 0; i < count; i++, tiles += places.to_next_slice) {
            if (kind == BSMI_BF16_OF_FP16) fp16_columns(rows, s, tiles, tiles + places.to_second);
            else bsmi_bf16_decode_columns(kind, rows, s + i, &lines, i, tiles);
        }
    }
}

AVX512 static void column_tiles(const struct bsmi_bf16_rows *rows, struct bsmi_bf16_places places, uint16_t *tiles)
{
    BSMI_BY_BF16_KIND(rows->kind, fill_column_tiles, rows, places, tiles)
}

/* Sixteens of rows that are missing altogether. */
static void clear_tiles(int64_t length, struct bsmi_bf16_places places, int terms, uint16_t *tiles)
{
    for (int64_t s = 0; s * BSMI_SLICE < length; s++, tiles += places.to_next_slice)
        for (int t = 0; t < terms; t++)
            memset(tiles + t * places.to_second, 0, BSMI_TILE_NUMBERS * sizeof *tiles);
}

void bsmi_bf16_fill_panel(const struct bsmi_part *part, int sixteens, int terms, bool of_columns,
                          bsmi_bf16_fill *fill, uint16_t *tiles)
{
    struct bsmi_bf16_rows rows;
    const struct bsmi_bf16_places places = places_of(sixteens, terms);
    for (int i = 0; i < sixteens; i++, tiles += BSMI_TILE_NUMBERS) {
        if ((int64_t)i * BSMI_TILE_ROWS >= part->count) {
            clear_tiles(part->length, places, terms, tiles);
            continue;
        }
        bsmi_bf16_rows_make(part, (int64_t)i * BSMI_TILE_ROWS, of_columns, &rows);
        fill(&rows, places, tiles);
    }
}

void bsmi_bf16_row_tiles_avx512(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles)
{
    bsmi_bf16_fill_panel(part, sixteens, terms, false, row_tiles, tiles);
}

void bsmi_bf16_column_tiles_avx512(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles)
{
    bsmi_bf16_fill_panel(part, sixteens, terms, true, column_tiles, tiles);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
