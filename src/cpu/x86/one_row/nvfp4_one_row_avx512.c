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

/* A group of four slices of A for B as it is stored: a quarter of a vector is a slice, the same number four times. */
struct spread_group {
    _Alignas(64) float numbers[BSMI_SLICE][16];              /* where the group is whole, those of second blocks */
    int8_t digits[WORDS_OF_SLICE / 2][2][BSMI_FIRST_DIGITS][WORD_BYTES];
    int32_t offsets[2][16];
    float half_units[16];
    bool whole;                           /* all four first blocks are integers */
};

struct one_row {
    _Alignas(64) uint8_t last_lines[STRIP][WORD_BYTES];      /* of B as it is stored */
    const uint8_t *last_rows[STRIP];
    struct bsmi_nibble_rows codes;
    struct bsmi_scale_code_rows scales;
    struct bsmi_row_numbers row;
    _Alignas(64) float numbers[BSMI_ROW_SLICES][BSMI_SLICE];
    struct bsmi_first_blocks first;
    struct spread_group spread[BSMI_ROW_SLICES / SLICES];
};

/* e4m3 without a sign, in words, at the place of fp32's fields, which is 2^-120 times the scale, also where that is
 * subnormal. */
AVX512_INLINE __m512 scale_numbers(__m512i words)
{
    return _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(words, 20)),
                         _mm512_castsi512_ps(_mm512_set1_epi32((127 + SUBNORMAL_LIFT) << 23)));
}

/* Numbers of A are the same in all lanes, or spread. */
AVX512_INLINE __m512 number_of(const float *a, int i, bool spread)
{
    return spread ? _mm512_load_ps(a + 16 * i) : _mm512_set1_ps(a[i]);
}

/* Eight columns of K, of 16 rows or `count` times of four slices of four rows: a chain waits four cycles for each of
 * its steps. */
AVX512_INLINE void add_words(int count, const __m512i *words, const __m512 *scales, const float *a, bool spread,
                             __m512 (*chains)[2])
{
    const __m512 values = _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++)
#pragma GCC unroll 2
        for (int i = 0; i < count; i++) {             /* vpermps looks at four bits */
            const __m512i moved = k == 0 ? words[i] : _mm512_srli_epi32(words[i], (unsigned)(4 * k));
            const __m512 scaled = _mm512_mul_ps(scales[i], number_of(a, k, spread));
            chains[i][k % 2] = _mm512_fmadd_ps(scaled, _mm512_permutexvar_ps(moved, values), chains[i][k % 2]);
        }
}

/* Sums of a first block as integers, [parity][digit], from its offsets on: a word of codes more. */
DOT_INLINE void add_integers(__m512i words, const __m512i digits[2][BSMI_FIRST_DIGITS],
                             __m512i sums[2][BSMI_FIRST_DIGITS])
{
    const __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4,
                                                               0)),
                  b[2] = { _mm512_permutexvar_epi8(words, table),
                           _mm512_permutexvar_epi8(_mm512_srli_epi16(words, 4), table) };
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i *const sum = &sums[i / 2][i % 2];
        *sum = _mm512_dpbusd_epi32(*sum, b[i / 2], digits[i / 2][i % 2]);
    }
}

DOT_INLINE void chains_of_integers(const __m512i sums[2][BSMI_FIRST_DIGITS], __m512 unit, __m512 chains[2])
{
#pragma GCC unroll 2
    for (int parity = 0; parity < 2; parity++)
        chains[parity] = _mm512_mul_ps(
            _mm512_cvtepi32_ps(_mm512_add_epi32(sums[parity][0], _mm512_slli_epi32(sums[parity][1], 8))), unit);
}

/* Both chains of the first 16 columns of K, two words of codes. */
DOT_INLINE void sum_first_block(__m512i word, __m512i next_word, __m512 scale, const struct bsmi_first_blocks *a,
                                int64_t slice, __m512 chains[2])
{
    const __m512 unit = _mm512_mul_ps(scale, _mm512_set1_ps(a->half_units[slice]));
    __m512i sums[2][BSMI_FIRST_DIGITS] = { { _mm512_set1_epi32(a->offsets[slice][0]), _mm512_setzero_si512() },
                                           { _mm512_set1_epi32(a->offsets[slice][1]), _mm512_setzero_si512() } };
#pragma GCC unroll 2
    for (int w = 0; w < WORDS_OF_SLICE / 2; w++) {
        __m512i digits[2][BSMI_FIRST_DIGITS];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            int32_t four;
            memcpy(&four, a->digits[slice][i / 2][i % 2] + 4 * w, sizeof four);
            digits[i / 2][i % 2] = _mm512_set1_epi32(four);
        }
        add_integers(w == 0 ? word : next_word, (const __m512i(*)[BSMI_FIRST_DIGITS])digits, sums);
    }
    chains_of_integers((const __m512i(*)[BSMI_FIRST_DIGITS])sums, unit, chains);
}

DOT_INLINE void sum_spread_first_block(__m512i word, __m512i next_word, __m512 scale, const struct spread_group *a,
                                       __m512 chains[2])
{
    __m512i sums[2][BSMI_FIRST_DIGITS] = { { _mm512_load_si512(a->offsets[0]), _mm512_setzero_si512() },
                                           { _mm512_load_si512(a->offsets[1]), _mm512_setzero_si512() } };
#pragma GCC unroll 2
    for (int w = 0; w < WORDS_OF_SLICE / 2; w++) {
        __m512i digits[2][BSMI_FIRST_DIGITS];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) digits[i / 2][i % 2] = _mm512_load_si512(a->digits[w][i / 2][i % 2]);
        add_integers(w == 0 ? word : next_word, (const __m512i(*)[BSMI_FIRST_DIGITS])digits, sums);
    }
    chains_of_integers((const __m512i(*)[BSMI_FIRST_DIGITS])sums, _mm512_mul_ps(scale, _mm512_load_ps(a->half_units)),
                       chains);
}

AVX512_INLINE __m512 panel_scales(const uint8_t *codes)
{
    return scale_numbers(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes)));
}

DOT_INLINE __m512 add_panel(const struct bsmi_nvfp4_panel *panel, const struct one_row *m, int64_t slice, __m512 total)
{
    bsmi_ask_ahead(panel->scales), bsmi_ask_ahead(panel->scales[SLICES]);
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        const uint8_t *const codes = panel->codes + s * WORDS_OF_SLICE * WORD_BYTES;
        const float *const a = m->numbers[slice + s];
        const __m512 first = panel_scales(panel->scales[2 * s]), second = panel_scales(panel->scales[2 * s + 1]);
        __m512 chains[1][2] = { { _mm512_setzero_ps(), _mm512_setzero_ps() } };
        __m512i words[WORDS_OF_SLICE];
#pragma GCC unroll 4
        for (int w = 0; w < WORDS_OF_SLICE; w++) {
            bsmi_ask_ahead(codes + w * WORD_BYTES);
            words[w] = _mm512_load_si512(codes + w * WORD_BYTES);
        }
        if (m->first.whole[slice + s]) {
            sum_first_block(words[0], words[1], first, &m->first, slice + s, chains[0]);
        } else {
            add_words(1, &words[0], &first, a, false, chains);
            add_words(1, &words[1], &first, a + 8, false, chains);
        }
        add_words(1, &words[2], &second, a + 16, false, chains);
        add_words(1, &words[3], &second, a + 24, false, chains);
        total = _mm512_add_ps(total, _mm512_add_ps(chains[0][0], chains[0][1]));
    }
    return total;
}

struct strip { __m512 total; __m512i most; };        /* the largest scale */

DOT static struct strip add_prepacked(const struct bsmi_nvfp4_panel *panel, const struct one_row *m, int64_t length,
                                      struct strip strip)
{
    for (int64_t c = 0; c < length; c += BSMI_PANEL_COLUMNS, panel++) {
        const __m512i most = _mm512_max_epu8(_mm512_load_si512(panel->scales),
                                             _mm512_load_si512(panel->scales[SLICES]));
        strip = (struct strip){ add_panel(panel, m, c / BSMI_SLICE, strip.total), _mm512_max_epu8(strip.most, most) };
    }
    return strip;
}

/* B as it is stored ------------------------------------------------------------------------------------------------ */

/* A number of a slice four times. */
AVX512_INLINE void spread_word(int32_t word, int s, void *to)
{
    _mm_store_si128((__m128i *)to + s, _mm_set1_epi32(word));
}

AVX512_INLINE void spread_number(float number, int s, float *to) { _mm_store_ps(to + 4 * s, _mm_set1_ps(number)); }

DOT static void spread_group(const struct one_row *m, int64_t slice, struct spread_group *to)
{
    const struct bsmi_first_blocks *const a = &m->first;
    to->whole = true;
    for (int s = 0; s < SLICES; s++) to->whole &= a->whole[slice + s];
    for (int s = 0; s < SLICES; s++) {
        for (int k = to->whole ? BSMI_FIRST_BLOCK : 0; k < BSMI_SLICE; k++)
            spread_number(m->numbers[slice + s][k], s, to->numbers[k]);
        for (int w = 0; w < WORDS_OF_SLICE / 2; w++)
            for (int i = 0; i < 4; i++) {
                int32_t four;
                memcpy(&four, a->digits[slice + s][i / 2][i % 2] + 4 * w, sizeof four);
                spread_word(four, s, to->digits[w][i / 2][i % 2]);
            }
        for (int parity = 0; parity < 2; parity++)
            spread_word(a->offsets[slice + s][parity], s, to->offsets[parity]);
        spread_number(a->half_units[slice + s], s, to->half_units);
    }
}

/* Of four rows 16 blocks' scales, without signs; those behind the last are 0. */
DOT_INLINE __m512i load_scales(const uint8_t *const *rows, int64_t block, int64_t blocks)
{
    const int64_t there = BSMI_MIN(16, blocks - block);
    const __mmask64 kept = 0x0001000100010001ULL * ((1u << there) - 1);
    const __m512i all = four_sixteens(rows[0] + block, rows[1] + block, rows[2] + block, rows[3] + block);
    return _mm512_and_si512(_mm512_maskz_mov_epi8(kept, all), _mm512_set1_epi8(0x7f));
}

/* Lane 4 s + r: of slice s of row r its first or second block's, of the first eight blocks of `scales`. */
DOT_INLINE __m512 scales_of_slices(__m512i scales, int second)
{
    const __m512i firsts = _mm512_setr_epi32(0, 16, 32, 48, 2, 18, 34, 50, 4, 20, 36, 52, 6, 22, 38, 54),
                  places = _mm512_add_epi32(firsts, _mm512_set1_epi32(second));
    return scale_numbers(_mm512_maskz_permutexvar_epi8(0x1111111111111111ULL, places, scales));
}

/* Lines of eight rows times a group of A. */
DOT_INLINE void sum_lines(const uint8_t *const *rows, int64_t byte, const __m512 first[2], const __m512 second[2],
                          const struct spread_group *a, __m512i sums[2])
{
    __m512 chains[2][2];
    __m512i words[WORDS_OF_SLICE][2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i lines[4];
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++) {
            const uint8_t *const line = rows[4 * i + r] + byte;
            __builtin_prefetch((const void *)((uintptr_t)line + WORD_BYTES), 0, 3);
            lines[r] = _mm512_loadu_si512(line);
        }
        transpose_sixteens(lines);
#pragma GCC unroll 4
        for (int w = 0; w < WORDS_OF_SLICE; w++) words[w][i] = lines[w];
        chains[i][0] = chains[i][1] = _mm512_setzero_ps();
    }
    if (a->whole) {
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) sum_spread_first_block(words[0][i], words[1][i], first[i], a, chains[i]);
    } else {
        add_words(2, words[0], first, a->numbers[0], true, chains);
        add_words(2, words[1], first, a->numbers[8], true, chains);
    }
    add_words(2, words[2], second, a->numbers[16], true, chains);
    add_words(2, words[3], second, a->numbers[24], true, chains);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) sums[i] = _mm512_castps_si512(_mm512_add_ps(chains[i][0], chains[i][1]));
}

/* Lines of a group that rows do not fill, with zeros behind: K is no multiple of four slices. */
static void copy_last_lines(struct one_row *m, int64_t byte, int64_t bytes)
{
    memset(m->last_lines, 0, sizeof m->last_lines);
    for (int r = 0; r < STRIP; r++) {
        m->last_rows[r] = m->last_lines[r];
        memcpy(m->last_lines[r], m->codes.rows[r] + byte, (size_t)bytes);
    }
}

/* A chunk of K, from column `chunk` of the stretch on. */
DOT static struct strip add_stored(const struct bsmi_part *part, struct one_row *m, int64_t chunk,
                                   struct bsmi_upcoming *next, struct strip strip)
{
    const int64_t blocks = bsmi_scale_code_rows(part, STRIP, &m->scales), whole = part->length / BSMI_PANEL_COLUMNS,
                  groups = bsmi_ceil_div(part->length, BSMI_PANEL_COLUMNS);
    bsmi_nibble_rows(part, STRIP, &m->codes);
    if (groups > whole) copy_last_lines(m, whole * WORD_BYTES, (part->length - whole * BSMI_PANEL_COLUMNS + 1) / 2);
    __m512i scales[4] = { _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(),
                          _mm512_setzero_si512() };
    for (int64_t g = 0; g < groups; g++) {
        const uint8_t *const *const rows = g < whole ? m->codes.rows : m->last_rows;
        const int64_t byte = g < whole ? g * WORD_BYTES : 0;
        const struct spread_group *const a = &m->spread[chunk / BSMI_PANEL_COLUMNS + g];
        __m512i sums[4];
#pragma GCC unroll 2
        for (int r = 0; r < 4; r += 2) {
            __m512 first[2], second[2];
            bsmi_ask_for_upcoming(next, 8 * WORD_BYTES);
#pragma GCC unroll 2
            for (int i = 0; i < 2; i++) {
                if (g % 2 == 0) {
                    scales[r + i] = load_scales(m->scales.rows + 4 * (r + i), g * 2 * SLICES, blocks);
                    strip.most = _mm512_max_epu8(strip.most, scales[r + i]);
                }
                const __m512i now = scales[r + i], of_group = g % 2 == 0 ? now : _mm512_bsrli_epi128(now, 8);
                first[i] = scales_of_slices(of_group, 0), second[i] = scales_of_slices(of_group, 1);
            }
            sum_lines(rows + 4 * r, byte, first, second, a, sums + r);
        }
        transpose_quarters(sums);
#pragma GCC unroll 4
        for (int s = 0; s < SLICES; s++) strip.total = _mm512_add_ps(strip.total, _mm512_castsi512_ps(sums[s]));
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
        for (int64_t s = 0; !kept && t->prepacked_b == NULL && s < whole / BSMI_SLICE; s += SLICES)
            spread_group(m, s, &m->spread[s / SLICES]);
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
