/* One row of A by prepacked rows of mxfp8 by dot products of bf16 (vdpbf16ps): the bits of bf16_tiles_amx.c.
 *
 * A chain of tdpbf16ps adds every second column of K, each with one rounding; vdpbf16ps adds a pair likewise, the upper
 * one first.  So columns 0 and 2 of each four, and 1 and 3, are pairs (panels.h), and 16 rows of B have their chains in
 * a vector each.  The scale of a block, which is a slice, is a power of two: it is multiplied into the slice's sum,
 * exactly.
 *
 * Normal 8-bit floats are moved to where bf16 has them, times a power of two that is taken off the sum.  A block with
 * zeros or subnormal numbers, which its scale tells, has those looked up.
 *
 * Of B as it is stored two cache lines of each of four rows, four slices, are transposed, so that a vector has the same
 * columns of each slice of each row; numbers of A are there once for each row, and sums are turned to slices of 16
 * rows.  Whether all codes are normal numbers is seen in the lines.  Rows that this is not for go to
 * bf16_few_rows_amx.c. */
#if defined(__x86_64__)
#include "panels.h"
#include "row_numbers.h"
#include "stored_scales.h"

#include "core/core.h"
#include "cpu/kernels.h"
#include "cpu/x86/bf16/bf16_dot_avx512.h"

enum {
    STRIP = BSMI_PANEL_ROWS, SLICES = BSMI_PANEL_SLICES, FOURS = BSMI_SLICE / 4, VECTOR = 64,
    LESS = 32,                            /* binades less than fp8_numbers lifts: sums stay finite */
};

static inline int lift_of(enum bsmi_bf16_kind kind) { return bf16_lift(kind) - LESS; }

/* A group of four slices of A for B as it is stored: a quarter of a vector is a slice, the same pair four times. */
struct spread_group { _Alignas(64) uint16_t even[FOURS][VECTOR / 2], odd[FOURS][VECTOR / 2]; };

struct one_row {
    struct bsmi_row_numbers row;
    _Alignas(64) uint16_t pairs[BSMI_ROW_SLICES][BSMI_SLICE];    /* columns 2, 0, 3, 1 of each four */
    _Alignas(64) uint16_t subnormal[32];  /* numbers of codes below the least normal one, as fp8_numbers wants them */
    struct spread_group spread[BSMI_ROW_SLICES / SLICES];
    _Alignas(64) uint8_t last_bytes[STRIP][BSMI_ROW_GROUP];      /* of B as it is stored */
    const uint8_t *last_rows[STRIP];
    struct bsmi_byte_rows codes;
    struct bsmi_scale_code_rows scales;
};

/* 8-bit floats in the upper bytes of words, times 2^lift_of. */
DOT_INLINE __m512i numbers_of(enum bsmi_bf16_kind kind, bool special, __m512i codes, __m512i subnormal)
{
    const bool e4m3 = kind == BSMI_BF16_OF_E4M3;
    if (special) {
        const __m512i words = _mm512_srai_epi16(codes, 8);
        __m512i largest = _mm512_setzero_si512();
        return fp8_numbers(kind, words, _mm512_slli_epi16(words, e4m3 ? 4 : 5), subnormal,
                           _mm512_set1_epi16(LESS << 7), &largest);
    }
    return _mm512_ternarylogic_epi32(_mm512_srai_epi16(codes, e4m3 ? 4 : 3),
                                     _mm512_set1_epi16((short)(e4m3 ? 0x87f0 : 0x8fe0)),
                                     _mm512_set1_epi16((160 - LESS) << 7), 0xea);
}

/* The sum of a slice, times 2^lift_of. */
DOT_INLINE __m512 sum_slice(enum bsmi_bf16_kind kind, bool special, const uint8_t *codes, const uint16_t *pairs,
                            __m512i subnormal)
{
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int i = 0; i < FOURS; i++) {
        const __m512i fours = _mm512_load_si512(codes + i * VECTOR);
        bsmi_ask_ahead(codes + i * VECTOR);
        add_pairs(&even, numbers_of(kind, special, fours, subnormal), broadcast_pair(pairs + 4 * i));
        add_pairs(&odd, numbers_of(kind, special, _mm512_slli_epi16(fours, 8), subnormal),
                  broadcast_pair(pairs + 4 * i + 2));
    }
    return _mm512_add_ps(even, odd);
}

DOT __attribute__((noinline)) static __m512 sum_special_slice(enum bsmi_bf16_kind kind, const uint8_t *codes,
                                                              const uint16_t *pairs, const uint16_t *subnormal)
{
    const __m512i table = _mm512_load_si512(subnormal);
    return kind == BSMI_BF16_OF_E4M3 ? sum_slice(BSMI_BF16_OF_E4M3, true, codes, pairs, table)
                                     : sum_slice(BSMI_BF16_OF_E5M2, true, codes, pairs, table);
}

DOT_INLINE __m512 add_panel(enum bsmi_bf16_kind kind, const struct bsmi_fp8_panel *panel, const struct one_row *m,
                            int64_t slice, __m512 total)
{
    const __m512 lowered = _mm512_castsi512_ps(_mm512_set1_epi32((127 - lift_of(kind)) << 23));
    const __m512i given = _mm512_load_si512(panel->scales);
    const __mmask64 special = _mm512_cmpge_epu8_mask(given, _mm512_set1_epi8((char)BSMI_PANEL_LEAST_SPECIAL));
    const __m512i scales = _mm512_mask_sub_epi8(given, special, given, _mm512_set1_epi8(BSMI_PANEL_SPECIAL));
    bsmi_ask_ahead(panel->scales);
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        const uint8_t *const codes = panel->codes + s * FOURS * VECTOR;
        const __m512 sum = (special & 0x1111111111111111ULL << s) == 0
                               ? sum_slice(kind, false, codes, m->pairs[slice + s], _mm512_setzero_si512())
                               : sum_special_slice(kind, codes, m->pairs[slice + s], m->subnormal);
        total = _mm512_fmadd_ps(_mm512_mul_ps(sum, lowered), scales_of_byte(scales, s), total);
    }
    return total;
}

/* One strip of columns, all of the stretch; false: there are rows of B that this is not for. */
DOT_INLINE bool add_strip(enum bsmi_bf16_kind kind, const struct bsmi_tile *t, const struct one_row *m, int64_t column,
                          int64_t k, int64_t length)
{
    const struct bsmi_fp8_panel *panel = bsmi_panel_of(t, sizeof *panel, column, k);
    float *const sums = t->sums + column;             /* whole strips */
    __m512 total = k > 0 ? _mm512_loadu_ps(sums) : _mm512_setzero_ps();
    __m512i least = _mm512_set1_epi8(-1);
    for (int64_t c = 0; c < length; c += BSMI_PANEL_COLUMNS, panel++) {
        total = add_panel(kind, panel, m, c / BSMI_SLICE, total);
        least = _mm512_min_epu8(least, _mm512_load_si512(panel->scales));
    }
    _mm512_storeu_ps(sums, total);
    return _mm512_cmpeq_epi8_mask(least, _mm512_set1_epi8(BSMI_PANEL_SCALE_OUTSIDE)) == 0;
}

/* B as it is stored ------------------------------------------------------------------------------------------------ */

/* What a kernel of stored rows has seen: 8-bit floats' magnitudes as bytes, and scales. */
struct seen { __m512i largest; struct bsmi_seen_scales scales; };

DOT static void spread_group(const uint16_t (*pairs)[BSMI_SLICE], struct spread_group *to)
{
    for (int s = 0; s < SLICES; s++)
        for (int i = 0; i < FOURS; i++) {
            int32_t even, odd;
            memcpy(&even, pairs[s] + 4 * i, sizeof even);
            memcpy(&odd, pairs[s] + 4 * i + 2, sizeof odd);
            _mm_store_si128((__m128i *)(void *)to->even[i] + s, _mm_set1_epi32(even));
            _mm_store_si128((__m128i *)(void *)to->odd[i] + s, _mm_set1_epi32(odd));
        }
}

/* Four columns of four slices of four rows, in their order, which turned halves put as pairs want them. */
DOT_INLINE void add_fours(enum bsmi_bf16_kind kind, bool special, __m512i fours, const struct spread_group *a, int i,
                          __m512i subnormal, __m512 chains[2])
{
    const __m512i turned = _mm512_rol_epi32(fours, 16);
    add_pairs(&chains[0], numbers_of(kind, special, _mm512_slli_epi16(turned, 8), subnormal),
              _mm512_load_si512(a->even[i]));
    add_pairs(&chains[1], numbers_of(kind, special, turned, subnormal), _mm512_load_si512(a->odd[i]));
}

DOT_INLINE __m512 sum_words(enum bsmi_bf16_kind kind, bool special, const __m512i words[2][4],
                            const struct spread_group *a, __m512i subnormal)
{
    __m512 chains[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
#pragma GCC unroll 8
    for (int i = 0; i < FOURS; i++) add_fours(kind, special, words[i / 4][i % 4], a, i, subnormal, chains);
    return _mm512_add_ps(chains[0], chains[1]);
}

DOT __attribute__((noinline)) static __m512 sum_special_words(enum bsmi_bf16_kind kind, const __m512i words[2][4],
                                                              const struct spread_group *a, const uint16_t *subnormal)
{
    const __m512i table = _mm512_load_si512(subnormal);
    return kind == BSMI_BF16_OF_E4M3 ? sum_words(BSMI_BF16_OF_E4M3, true, words, a, table)
                                     : sum_words(BSMI_BF16_OF_E5M2, true, words, a, table);
}

/* Two lines of each of four rows times a group of A: lane 4 s + r has slice s of row r, times 2^lift_of. */
DOT_INLINE __m512 sum_lines(enum bsmi_bf16_kind kind, const uint8_t *const *rows, int64_t byte,
                            const struct spread_group *a, const uint16_t *subnormal, __m512i *largest)
{
    const __m512i magnitude = _mm512_set1_epi8(0x7f),
                  least_normal = _mm512_set1_epi8(kind == BSMI_BF16_OF_E4M3 ? 0x08 : 0x04);
    __m512i words[2][4], least = magnitude;
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        const uint8_t *const line = rows[r] + byte;
        const __m512i lines[2] = { _mm512_loadu_si512(line), _mm512_loadu_si512(line + VECTOR) };
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            const __m512i magnitudes = _mm512_and_si512(lines[i], magnitude);
            __builtin_prefetch((const void *)((uintptr_t)line + (uintptr_t)((2 + i) * VECTOR)), 0, 3);
            least = _mm512_min_epu8(least, magnitudes);
            *largest = _mm512_max_epu8(*largest, magnitudes);
        }
        words[0][r] = _mm512_shuffle_i32x4(lines[0], lines[1], 0x88);    /* the first halves of slices */
        words[1][r] = _mm512_shuffle_i32x4(lines[0], lines[1], 0xdd);
    }
    transpose_sixteens(words[0]);
    transpose_sixteens(words[1]);
    return _mm512_cmplt_epu8_mask(least, least_normal) == 0
               ? sum_words(kind, false, (const __m512i(*)[4])words, a, _mm512_setzero_si512())
               : sum_special_words(kind, (const __m512i(*)[4])words, a, subnormal);
}

/* What rows do not fill of a group, with zeros behind: K is no multiple of four slices. */
static void copy_last_bytes(struct one_row *m, int64_t byte, int64_t bytes)
{
    memset(m->last_bytes, 0, sizeof m->last_bytes);
    for (int r = 0; r < STRIP; r++) {
        m->last_rows[r] = m->last_bytes[r];
        memcpy(m->last_bytes[r], m->codes.rows[r] + byte, (size_t)bytes);
    }
}

/* A chunk of K, from column `chunk` of the stretch on. */
DOT_INLINE __m512 add_stored(enum bsmi_bf16_kind kind, const struct bsmi_part *part, struct one_row *m, int64_t chunk,
                             const struct bsmi_stored_scales *scales, struct seen *seen, __m512 total)
{
    const __m512 lowered = _mm512_castsi512_ps(_mm512_set1_epi32((127 - lift_of(kind)) << 23));
    const int64_t blocks = bsmi_scale_code_rows(part, STRIP, &m->scales), whole = part->length / BSMI_ROW_GROUP,
                  groups = bsmi_ceil_div(part->length, BSMI_ROW_GROUP);
    __m512i fours[4];
    bsmi_byte_rows(part, STRIP, &m->codes);
    if (groups > whole) copy_last_bytes(m, whole * BSMI_ROW_GROUP, part->length - whole * BSMI_ROW_GROUP);
    for (int64_t g = 0; g < groups; g++) {
        const uint8_t *const *const rows = g < whole ? m->codes.rows : m->last_rows;
        __m512i sums[4];
        if (g % 4 == 0)
            bsmi_load_stored_scales(scales, m->scales.rows, g * SLICES, blocks, &seen->scales, fours);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++) {
            sums[r] = _mm512_castps_si512(sum_lines(kind, rows + 4 * r, g < whole ? g * BSMI_ROW_GROUP : 0,
                                                    &m->spread[chunk / BSMI_ROW_GROUP + g], m->subnormal,
                                                    &seen->largest));
        }
        transpose_quarters(sums);
#pragma GCC unroll 4
        for (int s = 0; s < SLICES; s++)
            total = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_castsi512_ps(sums[s]), lowered),
                                    scales_of_byte(fours[g % 4], s), total);
    }
    return total;
}

/* One strip of columns, all of the stretch; false: there are rows of B that this is not for. */
DOT_INLINE bool add_stored_strip(enum bsmi_bf16_kind kind, const struct bsmi_tile *t, struct one_row *m,
                                 struct bsmi_stored_scales *scales, int64_t column, int64_t k, int64_t length)
{
    const __m512i most = _mm512_set1_epi8(kind == BSMI_BF16_OF_E4M3 ? 0x7e : 0x7b);
    struct seen seen = { _mm512_setzero_si512(), { _mm512_setzero_si512(), _mm512_setzero_si512() } };
    float *const sums = t->sums + column;             /* whole strips */
    __m512 total = k > 0 ? _mm512_loadu_ps(sums) : _mm512_setzero_ps();
    for (int64_t c = 0; c < length; c += BSMI_ROW_CHUNK) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + column, BSMI_MIN(STRIP, t->columns - column),
                                        t->split, k + c, BSMI_MIN(BSMI_ROW_CHUNK, length - c), NULL };
        bsmi_ask_for_scales(t, column + STRIP, STRIP, part.k, part.length);
        total = add_stored(kind, &part, m, c, scales, &seen, total);
    }
    _mm512_storeu_ps(sums, total);
    return _mm512_cmpgt_epu8_mask(seen.largest, most) == 0 && bsmi_stored_scales_will_do(scales, &seen.scales);
}

/* The job ---------------------------------------------------------------------------------------------------------- */

DOT_INLINE bool add_strips_of(enum bsmi_bf16_kind kind, const struct bsmi_tile *t, struct one_row *m,
                              struct bsmi_stored_scales *scales, int64_t k, int64_t length)
{
    bool good = true;
    for (int64_t j = 0; good && j < t->columns; j += STRIP)
        good = t->prepacked_b != NULL ? add_strip(kind, t, m, j, k, length)
                                      : add_stored_strip(kind, t, m, scales, j, k, length);
    return good;
}

DOT static bool add_strips(const struct bsmi_tile *t, struct one_row *m, struct bsmi_stored_scales *scales, int64_t k,
                           int64_t length)
{
    return t->b.matrix->element == BSM_E4M3 ? add_strips_of(BSMI_BF16_OF_E4M3, t, m, scales, k, length)
                                            : add_strips_of(BSMI_BF16_OF_E5M2, t, m, scales, k, length);
}

/* Codes below the least normal one are these many units, of 2^-9 (e4m3) or 2^-16 (e5m2). */
static void make_subnormal(const struct bsmi_tile *t, uint16_t *table)
{
    const bool e4m3 = t->b.matrix->element == BSM_E4M3;
    const float unit = e4m3 ? 0x1p31F : 0x1p32F;      /* 2^(40 - 9), 2^(48 - 16) */
    for (int code = 0; code < 32; code++) table[code] = (uint16_t)(bsmi_float_bits((float)(code % 8) * unit) >> 16);
}

DOT static bool add_stretches(const struct bsmi_tile *t, struct one_row *m)
{
    const __m512i places = _mm512_add_epi16(
        _mm512_set1_epi64(0x0001000300000002),
        _mm512_setr_epi64(0, 0x0004000400040004, 0x0008000800080008, 0x000c000c000c000c, 0x0010001000100010,
                          0x0014001400140014, 0x0018001800180018, 0x001c001c001c001c));
    struct bsmi_stored_scales scales = { t, bsmi_scale_bounds(t->b.matrix->element), m + 1, false };
    make_subnormal(t, m->subnormal);
    for (int64_t k = 0; k < t->k; k += BSMI_ROW_LENGTH) {
        const int64_t length = BSMI_MIN(BSMI_ROW_LENGTH, t->k - k);
        const bool kept = bsmi_row_is_kept(t);
        struct bsmi_upcoming first = bsmi_first_of_row(t, sizeof(struct bsmi_fp8_panel), STRIP, k, length);
        if (!kept && !bsmi_row_numbers_make(t, k, length, &first, &m->row)) return false;
        for (int64_t s = 0; !kept && s < bsmi_round_up(length, BSMI_ROW_GROUP) / BSMI_SLICE; s++)
            _mm512_store_si512(m->pairs[s], _mm512_permutexvar_epi16(places, _mm512_load_si512(m->row.numbers[s])));
        for (int64_t s = 0; !kept && t->prepacked_b == NULL && s < bsmi_round_up(length, BSMI_ROW_GROUP) / BSMI_SLICE;
             s += SLICES)
            spread_group((const uint16_t(*)[BSMI_SLICE])m->pairs + s, &m->spread[s / SLICES]);
        bsmi_keep_row(t, t->k <= BSMI_ROW_LENGTH);
        if (!add_strips(t, m, &scales, k, length)) return false;
    }
    return true;
}

void bsmi_bf16_dot_one_row_avx512(const struct bsmi_tile *tile, void *scratch)
{
    const bool done = tile->rows == 1 && tile->k > 0
                      && (bsmi_row_is_kept(tile) || !bsmi_row_has_exponent(tile)) && add_stretches(tile, scratch);
    if (done) return;
    bsmi_keep_row(tile, false);
    bsmi_bf16_few_rows_amx(tile, scratch);
}

size_t bsmi_bf16_dot_one_row_avx512_scratch_bytes(int64_t rows, int64_t columns)
{
    return BSMI_MAX(sizeof(struct one_row) + bsmi_bf16_exponents_bytes(rows, columns),
                    bsmi_bf16_few_rows_amx_scratch_bytes(rows, columns));
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
