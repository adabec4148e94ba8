/* Panels of tiles of int8: int8_tiles_avx512.h.
 *
 * vpmultishiftqb puts codes of 4 and 6 bits at the lower ends of bytes, with other codes above them; vpermb, which
 * looks at six bits of each byte, makes them integers.  A code of 4 bits has its block's shift in the other two of the
 * six: 64 integers for 16 codes by four shifts.  Integers of 6-bit codes are doubled where the shift is 1. */
#if defined(__x86_64__)
#include "int8_tiles_avx512.h"

#include "core/core.h"
#include "cpu/x86/bf16/bf16_columns_avx512.h"

#define VBMI __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))
#define VBMI_INLINE VBMI __attribute__((always_inline)) static inline

enum { ROWS = 16, TILE_BYTES = 1024, E2M1_BYTES = 32, E2M3_BYTES = 48, INT8_BYTES = 64 };

/* Integers of codes: of e2m1 by shift and code, in halves; of e2m3 by code, in eighths. */
static const _Alignas(64) int8_t e2m1_integers[64] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12,
    0, 2, 4, 6, 8, 12, 16, 24, 0, -2, -4, -6, -8, -12, -16, -24,
    0, 4, 8, 12, 16, 24, 32, 48, 0, -4, -8, -12, -16, -24, -32, -48,
    0, 8, 16, 24, 32, 48, 64, 96, 0, -8, -16, -24, -32, -48, -64, -96,
};
static const _Alignas(64) int8_t e2m3_integers[64] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60,
    0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15,
    -16, -18, -20, -22, -24, -26, -28, -30, -32, -36, -40, -44, -48, -52, -56, -60,
};

/* Up to 16 rows of a part, made ready. */
struct rows {
    const uint8_t *const *codes;
    /* [block][row], in all bytes of a word: what e2m1's codes are completed by in bits 4 and 5; of e2m3 all ones where
     * integers are doubled. */
    _Alignas(64) uint32_t shifts[BSMI_SCALE_CODES][ROWS];
    struct bsmi_element_rows memory;
    struct bsmi_scale_code_rows scale_codes;
};

/* What differs: the element, and e2m1's blocks of 16. */
enum kind { OF_E2M1, OF_E2M1_BLOCK16, OF_E2M3, OF_INT8 };

static enum kind kind_of(const struct bsmi_matrix *m)
{
    switch (m->element) {
    case BSM_E2M1: return m->block == 16 ? OF_E2M1_BLOCK16 : OF_E2M1;
    case BSM_E2M3: return OF_E2M3;
    default: return OF_INT8;
    }
}

#define BY_KIND(kind, function, ...) \
    switch (kind) { \
    case OF_E2M1: function(OF_E2M1, __VA_ARGS__); break; \
    case OF_E2M1_BLOCK16: function(OF_E2M1_BLOCK16, __VA_ARGS__); break; \
    case OF_E2M3: function(OF_E2M3, __VA_ARGS__); break; \
    default: function(OF_INT8, __VA_ARGS__); break; \
    }

VBMI_INLINE bool is_e2m1(enum kind kind) { return kind == OF_E2M1 || kind == OF_E2M1_BLOCK16; }

VBMI_INLINE int bytes_of_slice(enum kind kind)
{
    return is_e2m1(kind) ? E2M1_BYTES : kind == OF_E2M3 ? E2M3_BYTES : INT8_BYTES;
}

/* Blocks of zeros may have any scales: the shift of a zero is no matter. */
VBMI static void make_shifts(enum kind kind, const struct bsmi_part *part, int64_t blocks, struct rows *rows)
{
    const __mmask16 there = (__mmask16)((1u << part->count) - 1);
    const __m512i least = _mm512_mullo_epi32(_mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(there, part->exponents)),
                                             _mm512_set1_epi32(0x01010101));
    for (int64_t first = 0; first < blocks; first += BSMI_SCALE_GROUP) {
        __m512i fours[4];
        load_fours(rows->scale_codes.rows, first, fours);
        for (int i = 0; i < BSMI_SCALE_GROUP; i++) {
            const unsigned byte = (unsigned)i % 4;
            const __m512i shift = _mm512_sub_epi8(pick_bytes(fours[i / 4], byte, byte, byte, byte), least);
            _mm512_store_si512(rows->shifts[first + i],
                               is_e2m1(kind) ? _mm512_slli_epi16(shift, 4)
                                             : _mm512_sub_epi8(_mm512_setzero_si512(),
                                                               _mm512_and_si512(shift, _mm512_set1_epi8(1))));
        }
    }
}

static void make_rows(enum kind kind, const struct bsmi_part *part, struct rows *rows)
{
    bsmi_element_rows(part, ROWS, &rows->memory);
    rows->codes = bsmi_row_pointers(&rows->memory);
    if (kind != OF_INT8) make_shifts(kind, part, bsmi_scale_code_rows(part, ROWS, &rows->scale_codes), rows);
}

/* Codes at the lower ends of bytes into integers; shifts: of each. */
VBMI_INLINE __m512i integers(enum kind kind, __m512i codes, __m512i shifts)
{
    const __m512i table = _mm512_load_si512(is_e2m1(kind) ? e2m1_integers : e2m3_integers);
    if (is_e2m1(kind))
        return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi32(_mm512_set1_epi8(15), codes, shifts, 0xca), table);
    const __m512i once = _mm512_permutexvar_epi8(codes, table);
    return _mm512_add_epi8(once, _mm512_and_si512(once, shifts));
}

/* Row tiles ---------------------------------------------------------------------------------------------------------*/

/* The shifts of a row's slice, in the order of its columns: words 2 i, 2 i + 1, 2 i + 8 and 2 i + 9 have columns [16 i,
 * 16 i + 16). */
VBMI_INLINE __m512i shifts_of_row(enum kind kind, const struct rows *rows, int64_t slice, int row)
{
    if (kind == OF_E2M1_BLOCK16) {
        const uint32_t (*const of)[ROWS] = rows->shifts + 4 * slice;
        const __m512i first = _mm512_set1_epi32((int)of[0][row]),
                      two = _mm512_mask_set1_epi32(first, 0x0c0c, (int)of[1][row]),
                      three = _mm512_mask_set1_epi32(two, 0x3030, (int)of[2][row]);
        return _mm512_mask_set1_epi32(three, 0xc0c0, (int)of[3][row]);
    }
    const uint32_t (*const of)[ROWS] = rows->shifts + 2 * slice;
    return _mm512_mask_set1_epi32(_mm512_set1_epi32((int)of[0][row]), 0xf0f0, (int)of[1][row]);
}

VBMI_INLINE __m512i row_of_e2m1(const uint8_t *codes)
{
    const __m512i places = _mm512_setr_epi64(0x1c1814100c080400, 0x1c1814100c080400, 0x1c1814100c080400,
                                             0x1c1814100c080400, 0x3c3834302c282420, 0x3c3834302c282420,
                                             0x3c3834302c282420, 0x3c3834302c282420);
    return _mm512_multishift_epi64_epi8(
        places, _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(const void *)codes)));
}

/* Eight codes are six bytes. */
VBMI_INLINE __m512i row_of_e2m3(const uint8_t *codes)
{
    const __m512i sixes = _mm512_add_epi8(
        _mm512_set1_epi64(0x0505050403020100),
        _mm512_setr_epi64(0, 0x0c0c0c0c0c0c0c0c, 0x1818181818181818, 0x2424242424242424, 0x0606060606060606,
                          0x1212121212121212, 0x1e1e1e1e1e1e1e1e, 0x2a2a2a2a2a2a2a2a));
    const __m512i bytes = _mm512_maskz_loadu_epi8(~(__mmask64)0 >> (64 - E2M3_BYTES), codes);
    return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x2a241e18120c0600),
                                        _mm512_permutexvar_epi8(sixes, bytes));
}

VBMI_INLINE __m512i decode_row(enum kind kind, const struct rows *rows, int64_t slice, int row)
{
    const uint8_t *const codes = rows->codes[row] + slice * bytes_of_slice(kind);
    if (kind == OF_INT8)
        return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), _mm512_loadu_si512(codes));
    return integers(kind, is_e2m1(kind) ? row_of_e2m1(codes) : row_of_e2m3(codes),
                    shifts_of_row(kind, rows, slice, row));
}

/* to_next: bytes from the tile of a slice to that of the next one. */
VBMI_INLINE void fill_row_tiles(enum kind kind, const struct rows *rows, int64_t slices, int64_t to_next, int8_t *tile)
{
    for (int64_t s = 0; s < slices; s++, tile += to_next) {
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++) _mm512_store_si512(tile + 64 * r, decode_row(kind, rows, s, r));
    }
}

VBMI static void row_tiles(enum kind kind, const struct rows *rows, int64_t slices, int64_t to_next, int8_t *tile)
{
    BY_KIND(kind, fill_row_tiles, rows, slices, to_next, tile)
}

/* Column tiles ------------------------------------------------------------------------------------------------------*/

/* Where columns [4 quad, 4 quad + 4) of a slice lie in a column tile. */
VBMI_INLINE int8_t *at_quad(int8_t *tile, int quad)
{
    return tile + 64 * (quad / 2 % 2 * 8 + quad / 4 * 2 + quad % 2);
}

/* Eight codes of 4 bits of each row: two quads. */
VBMI_INLINE void two_quads_of_e2m1(enum kind kind, __m512i eights, __m512i shifts, int8_t *tile, int quad)
{
    const __m512i first = _mm512_set1_epi64(0x2c2824200c080400), second = _mm512_set1_epi64(0x3c3834301c181410);
    _mm512_store_si512(at_quad(tile, quad), integers(kind, _mm512_multishift_epi64_epi8(first, eights), shifts));
    _mm512_store_si512(at_quad(tile, quad + 1), integers(kind, _mm512_multishift_epi64_epi8(second, eights), shifts));
}

VBMI_INLINE void columns_of_e2m1(enum kind kind, const struct rows *rows, int64_t slice, const uint8_t *const *codes,
                                 int64_t byte, int8_t *tile)
{
    const int columns = kind == OF_E2M1_BLOCK16 ? 16 : 32;
    const uint32_t (*const shifts)[ROWS] = rows->shifts + slice * (BSMI_INT8_SLICE / columns);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        __m512i eights[4];
        load_fours(codes, byte + 16 * half, eights);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const int k = 32 * half + 8 * i;
            two_quads_of_e2m1(kind, eights[i], _mm512_load_si512(shifts[k / columns]), tile, k / 4);
        }
    }
}

/* Words of three bytes, four codes of 6 bits, and a fourth byte: a quad. */
VBMI_INLINE void columns_of_e2m3(const struct rows *rows, int64_t slice, const uint8_t *const *codes, int64_t byte,
                                 int8_t *tile)
{
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; quarter++) {
        const __m512i shifts = _mm512_load_si512(rows->shifts[2 * slice + quarter / 2]);
        __m512i fours[4];
        load_stream_fours(codes, byte + 12 * quarter, quarter == 3, fours);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm512_store_si512(at_quad(tile, 4 * quarter + i),
                               integers(OF_E2M3, _mm512_multishift_epi64_epi8(_mm512_set1_epi64(0x322c2620120c0600),
                                                                              fours[i]), shifts));
    }
}

VBMI_INLINE void columns_of_int8(const uint8_t *const *codes, int64_t byte, int8_t *tile)
{
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; quarter++) {
        __m512i fours[4];
        load_fours(codes, byte + 16 * quarter, fours);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) _mm512_store_si512(at_quad(tile, 4 * quarter + i), fours[i]);
    }
}

/* Of each row a cache line is read whole, of two slices of e2m1: rows often lie so that few of their lines fit a cache
 * together. */
VBMI_INLINE void fill_column_tiles(enum kind kind, const struct rows *rows, int64_t slices, int64_t to_next,
                                   int8_t *tile)
{
    const int bytes = bytes_of_slice(kind), at_once = is_e2m1(kind) ? 2 : 1;
    struct bsmi_bf16_lines lines;
    for (int r = 0; r < ROWS; r++) lines.rows[r] = lines.bytes[r];
    for (int64_t s = 0; s < slices; s += at_once) {
        const int count = (int)BSMI_MIN(at_once, slices - s);
        const __mmask64 there = ~(__mmask64)0 >> (64 - count * bytes);
#pragma GCC unroll 16
        for (int r = 0; r < ROWS; r++)
            _mm512_store_si512(lines.bytes[r], _mm512_maskz_loadu_epi8(there, rows->codes[r] + s * bytes));
        for (int i = 0; i < count; i++, tile += to_next) {
            if (is_e2m1(kind)) columns_of_e2m1(kind, rows, s + i, lines.rows, (int64_t)i * bytes, tile);
            else if (kind == OF_E2M3) columns_of_e2m3(rows, s, lines.rows, 0, tile);
            else columns_of_int8(lines.rows, 0, tile);
        }
    }
}

VBMI static void column_tiles(enum kind kind, const struct rows *rows, int64_t slices, int64_t to_next, int8_t *tile)
{
    BY_KIND(kind, fill_column_tiles, rows, slices, to_next, tile)
}

/* Panels ------------------------------------------------------------------------------------------------------------*/

static void fill_panel(const struct bsmi_part *part, int sixteens, int8_t *tile,
                       void (*fill)(enum kind, const struct rows *, int64_t, int64_t, int8_t *))
{
    const int64_t slices = bsmi_ceil_div(part->length, BSMI_INT8_SLICE), to_next = (int64_t)sixteens * TILE_BYTES;
    const enum kind kind = kind_of(part->operand.matrix);
    struct rows rows;
    for (int64_t first = 0; first < (int64_t)sixteens * ROWS; first += ROWS, tile += TILE_BYTES) {
        struct bsmi_part sixteen = *part;
        if (first >= part->count) {
            for (int64_t s = 0; s < slices; s++) memset(tile + s * to_next, 0, TILE_BYTES);
            continue;
        }
        sixteen.first += first, sixteen.count = BSMI_MIN(ROWS, part->count - first);
        sixteen.exponents += first;
        make_rows(kind, &sixteen, &rows);
        fill(kind, &rows, slices, to_next, tile);
    }
}

void bsmi_int8_row_tiles_avx512(const struct bsmi_part *part, int sixteens, int8_t *tiles)
{
    fill_panel(part, sixteens, tiles, row_tiles);
}

void bsmi_int8_column_tiles_avx512(const struct bsmi_part *part, int sixteens, int8_t *tiles)
{
    fill_panel(part, sixteens, tiles, column_tiles);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
