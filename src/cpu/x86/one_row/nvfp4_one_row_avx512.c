/* One row of A by rows of nvfp4: the bits of bf16_tiles_amx.c.
 *
 * A slice's two chains are computed as they are, by fused multiply-adds of fp32, of 16 rows at a time.  A scale of
 * nvfp4 is multiplied into the number of A, not into that of B, which has to be looked up for each: 8 bits by 4 are
 * exact in fp32, and so the product that the fused multiply-add rounds into the chain is the one of the tiles.  No sum
 * is less than 2^-126 but 0: A's numbers are at least 2^-60.  The first block of most slices takes fewer steps: its
 * sums are integers times the scale (int8_digits_avx512.h).
 *
 * B as it is stored is made panels on the way, 16 rows by 128 columns at a time, of which two lie in the first-level
 * cache; the next rows are asked for meanwhile.  Rows that this is not for go to bf16_few_rows_amx.c. */
#if defined(__x86_64__)
#include "int8_digits_avx512.h"
#include "panels.h"
#include "row_numbers.h"

#include "core/core.h"
#include "cpu/code_rows.h"
#include "cpu/kernels.h"
#include "cpu/x86/bf16/bf16_columns_avx512.h"
#include "cpu/x86/upcoming.h"

#define DOT __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni")))
#define DOT_INLINE DOT __attribute__((always_inline)) static inline

enum { STRIP = BSMI_PANEL_ROWS, SLICES = BSMI_PANEL_SLICES, WORDS_OF_SLICE = 4, WORD_BYTES = 64,
       NAN_SCALE = 0x7f, SUBNORMAL_LIFT = 120 };

struct one_row {
    _Alignas(64) struct bsmi_nvfp4_panel panels[2];          /* of B as it is stored */
    struct bsmi_nibble_rows codes;
    struct bsmi_scale_code_rows scales;
    struct bsmi_row_numbers row;
    _Alignas(64) float numbers[BSMI_ROW_SLICES][BSMI_SLICE];
    struct bsmi_first_blocks first;
};

/* e4m3 without a sign at the place of fp32's fields, which is 2^-120 times the scale, also where that is subnormal. */
AVX512_INLINE __m512 scale_numbers(const uint8_t *codes)
{
    const __m512i words = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes));
    return _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(words, 20)),
                         _mm512_castsi512_ps(_mm512_set1_epi32((127 + SUBNORMAL_LIFT) << 23)));
}

/* Eight columns of K of 16 rows. */
AVX512_INLINE void add_word(const uint8_t *codes, __m512 scale, const float *a, __m512 *even, __m512 *odd)
{
    const __m512 values = _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6);
    const __m512i words = _mm512_load_si512(codes);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {                     /* vpermps looks at four bits */
        const __m512 b = _mm512_permutexvar_ps(k == 0 ? words : _mm512_srli_epi32(words, (unsigned)(4 * k)), values),
                     scaled = _mm512_mul_ps(scale, _mm512_set1_ps(a[k]));
        if (k % 2 == 0) *even = _mm512_fmadd_ps(scaled, b, *even);
        else *odd = _mm512_fmadd_ps(scaled, b, *odd);
    }
}

/* Both chains of the first 16 columns of K, two words of codes. */
DOT_INLINE void sum_first_block(const uint8_t *codes, __m512 scale, const struct bsmi_first_blocks *a, int64_t slice,
                                __m512 chains[2])
{
    const __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4,
                                                               0));
    const __m512 unit = _mm512_mul_ps(scale, _mm512_set1_ps(a->half_units[slice]));
    __m512i sums[2][BSMI_FIRST_DIGITS] = { { _mm512_set1_epi32(a->offsets[slice][0]), _mm512_setzero_si512() },
                                           { _mm512_set1_epi32(a->offsets[slice][1]), _mm512_setzero_si512() } };
#pragma GCC unroll 2
    for (int w = 0; w < WORDS_OF_SLICE / 2; w++) {
        const __m512i words = _mm512_load_si512(codes + w * WORD_BYTES),
                      b[2] = { _mm512_permutexvar_epi8(words, table),
                               _mm512_permutexvar_epi8(_mm512_srli_epi16(words, 4), table) };
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            int32_t four;
            memcpy(&four, a->digits[slice][i / 2][i % 2] + 4 * w, sizeof four);
            sums[i / 2][i % 2] = _mm512_dpbusd_epi32(sums[i / 2][i % 2], b[i / 2], _mm512_set1_epi32(four));
        }
    }
#pragma GCC unroll 2
    for (int parity = 0; parity < 2; parity++)
        chains[parity] = _mm512_mul_ps(
            _mm512_cvtepi32_ps(_mm512_add_epi32(sums[parity][0], _mm512_slli_epi32(sums[parity][1], 8))), unit);
}

DOT_INLINE __m512 add_panel(const struct bsmi_nvfp4_panel *panel, const struct one_row *m, int64_t slice, __m512 total,
                            bool ask)
{
    if (ask) bsmi_ask_ahead(panel->scales), bsmi_ask_ahead(panel->scales[SLICES]);
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        const uint8_t *const codes = panel->codes + s * WORDS_OF_SLICE * WORD_BYTES;
        const float *const a = m->numbers[slice + s];
        for (int w = 0; ask && w < WORDS_OF_SLICE; w++) bsmi_ask_ahead(codes + w * WORD_BYTES);
        const __m512 scales[2] = { scale_numbers(panel->scales[2 * s]), scale_numbers(panel->scales[2 * s + 1]) };
        __m512 chains[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
        if (m->first.whole[slice + s]) {
            sum_first_block(codes, scales[0], &m->first, slice + s, chains);
        } else {
            add_word(codes, scales[0], a, &chains[0], &chains[1]);
            add_word(codes + WORD_BYTES, scales[0], a + 8, &chains[0], &chains[1]);
        }
        add_word(codes + 2 * WORD_BYTES, scales[1], a + 16, &chains[0], &chains[1]);
        add_word(codes + 3 * WORD_BYTES, scales[1], a + 24, &chains[0], &chains[1]);
        total = _mm512_add_ps(total, _mm512_add_ps(chains[0], chains[1]));
    }
    return total;
}

/* B as it is stored ------------------------------------------------------------------------------------------------ */

/* Scales of four blocks of each row into [block][row], without signs; `there` of them, others are 0. */
DOT_INLINE void store_block_scales(__m512i fours, int64_t there, uint8_t (*to)[BSMI_PANEL_ROWS])
{
    const __m512i places = _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60)),
        _mm512_setr_epi32(0, 0, 0, 0, 0x01010101, 0x01010101, 0x01010101, 0x01010101, 0x02020202, 0x02020202,
                          0x02020202, 0x02020202, 0x03030303, 0x03030303, 0x03030303, 0x03030303));
    const __mmask64 all = ~(__mmask64)0, left = there >= 4 ? all : there <= 0 ? 0 : all >> (64 - 16 * there);
    _mm512_store_si512(to, _mm512_maskz_permutexvar_epi8(left, places,
                                                         _mm512_and_si512(fours, _mm512_set1_epi8(0x7f))));
}

/* Group `group` of 128 columns of a chunk that has `length` columns and `blocks` blocks. */
DOT_INLINE void make_panel(const struct one_row *m, int64_t group, int64_t length, int64_t blocks,
                           const __m512i scales[2], struct bsmi_upcoming *next, struct bsmi_nvfp4_panel *panel)
{
    const int64_t first = group * BSMI_PANEL_COLUMNS, block = first / BSMI_SHORTEST_BLOCK;
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        __m512i words[WORDS_OF_SLICE] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                                          _mm512_setzero_si512() };
        bsmi_ask_for_upcoming(next, BSMI_PANEL_ROWS * BSMI_PANEL_COLUMNS / 2 / SLICES);
        if (first + s * BSMI_SLICE < length) load_fours(m->codes.rows, (first + s * BSMI_SLICE) / 2, words);
#pragma GCC unroll 4
        for (int w = 0; w < WORDS_OF_SLICE; w++)
            _mm512_store_si512(panel->codes + (s * WORDS_OF_SLICE + w) * WORD_BYTES, words[w]);
    }
    store_block_scales(scales[0], blocks - block, panel->scales);
    store_block_scales(scales[1], blocks - block - 4, panel->scales + 4);
}

/* Panels ----------------------------------------------------------------------------------------------------------- */

struct strip { __m512 total; __m512i most; };        /* the largest scale */

DOT_INLINE struct strip add_to(struct strip strip, const struct bsmi_nvfp4_panel *panel, const struct one_row *m,
                               int64_t slice, bool ask)
{
    const __m512i most = _mm512_max_epu8(_mm512_load_si512(panel->scales), _mm512_load_si512(panel->scales[SLICES]));
    return (struct strip){ add_panel(panel, m, slice, strip.total, ask), _mm512_max_epu8(strip.most, most) };
}

DOT static struct strip add_prepacked(const struct bsmi_nvfp4_panel *panel, const struct one_row *m, int64_t length,
                                      struct strip strip)
{
    for (int64_t c = 0; c < length; c += BSMI_PANEL_COLUMNS, panel++) {
        strip = add_to(strip, panel, m, c / BSMI_SLICE, true);
    }
    return strip;
}

/* A chunk of K, from column `chunk` of the stretch on. */
DOT static struct strip add_stored(const struct bsmi_part *part, struct one_row *m, int64_t chunk,
                                   struct bsmi_upcoming *next, struct strip strip)
{
    const int64_t blocks = bsmi_scale_code_rows(part, STRIP, &m->scales),
                  groups = bsmi_ceil_div(part->length, BSMI_PANEL_COLUMNS);
    __m512i fours[4];
    bsmi_nibble_rows(part, STRIP, &m->codes);
    for (int64_t g = 0; g < groups; g++) {
        struct bsmi_nvfp4_panel *const panel = &m->panels[g % 2];
        if (g % 2 == 0) load_fours(m->scales.rows, g * 2 * SLICES, fours);
        make_panel(m, g, part->length, blocks, fours + g % 2 * 2, next, panel);
        strip = add_to(strip, panel, m, chunk / BSMI_SLICE + g * SLICES, false);
    }
    return strip;
}

/* One strip of columns, all of the stretch; false: it has a NaN scale. */
DOT static bool add_strip(const struct bsmi_tile *t, struct one_row *m, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_nvfp4_panel *const panel = bsmi_panel_of(t, sizeof *panel, column, k);
    float *const sums = t->sums + column;             /* whole strips */
    struct strip strip = { k > 0 ? _mm512_loadu_ps(sums) : _mm512_setzero_ps(), _mm512_setzero_si512() };
    if (panel != NULL) {
        strip = add_prepacked(panel, m, length, strip);
    } else {
        struct bsmi_upcoming next = bsmi_find_upcoming(t, column + STRIP, STRIP, k, length);
        for (int64_t c = 0; c < length; c += BSMI_ROW_CHUNK) {
            const struct bsmi_part part = { t->b, t->b_batch, t->column + column,
                                            BSMI_MIN(STRIP, t->columns - column), t->split, k + c,
                                            BSMI_MIN(BSMI_ROW_CHUNK, length - c), NULL };
            bsmi_ask_for_scales(t, column + STRIP, STRIP, part.k, part.length);
            strip = add_stored(&part, m, c, &next, strip);
        }
    }
    _mm512_storeu_ps(sums, strip.total);
    return _mm512_cmpeq_epi8_mask(strip.most, _mm512_set1_epi8(NAN_SCALE)) == 0;
}

AVX512 static bool add_stretches(const struct bsmi_tile *t, struct one_row *m)
{
    for (int64_t k = 0; k < t->k; k += BSMI_ROW_LENGTH) {
        const int64_t length = BSMI_MIN(BSMI_ROW_LENGTH, t->k - k), whole = bsmi_round_up(length, BSMI_ROW_GROUP);
        const bool kept = bsmi_row_is_kept(t);
        struct bsmi_upcoming first = bsmi_first_of_row(t, sizeof(struct bsmi_nvfp4_panel), STRIP, k, length);
        if (!kept && !bsmi_row_numbers_make(t, k, length, &first, &m->row)) return false;
        for (int64_t i = 0; !kept && i < whole; i += BSMI_SLICE / 2)
            _mm512_store_ps(m->numbers[0] + i,
                            _mm512_castsi512_ps(_mm512_slli_epi32(
                                _mm512_cvtepu16_epi32(_mm256_load_si256(
                                    (const __m256i *)(const void *)(m->row.numbers[0] + i))), 16)));
        if (!kept) bsmi_first_blocks_make(&m->row, whole / BSMI_SLICE, &first, &m->first);
        bsmi_keep_row(t, t->k <= BSMI_ROW_LENGTH);
        for (int64_t j = 0; j < t->columns; j += STRIP)
            if (!add_strip(t, m, j, k, length)) return false;
    }
    return true;
}

void bsmi_nvfp4_one_row_avx512(const struct bsmi_tile *tile, void *scratch)
{
    const bool done = tile->rows == 1 && tile->k > 0
                      && (bsmi_row_is_kept(tile) || !bsmi_row_has_exponent(tile)) && add_stretches(tile, scratch);
    if (done) return;
    bsmi_keep_row(tile, false);
    bsmi_bf16_few_rows_amx(tile, scratch);
}

size_t bsmi_nvfp4_one_row_avx512_scratch_bytes(int64_t rows, int64_t columns)
{
    return BSMI_MAX(sizeof(struct one_row), bsmi_bf16_few_rows_amx_scratch_bytes(rows, columns));
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
