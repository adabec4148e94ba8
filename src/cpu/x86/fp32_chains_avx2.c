/* Any pair, with AVX2, FMA and F16C: S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j]), k ascending.
 *
 * Panels hold decoded elements times their scales in fp32, which is exact (halves.h); chunks with larger scales take
 * the guarded path.  Register tile: 6 rows x 16 columns; 12 accumulators, 2 vectors of B, 1 of A. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "matrix/rows.h"
#include "words_avx2.h"

enum { ROWS = 6, COLUMNS = 16, CHUNK = 2 * BSMI_CHUNK, BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK, GROUP = BSMI_WORD_GROUP };

/* 16 more keep the rows in different sets of a cache. */
struct a_panel { _Alignas(64) float values[ROWS][CHUNK + 16]; };
struct b_panel { float values[CHUNK][COLUMNS]; };

/* Packing ---------------------------------------------------------------------------------------------------------- */

/* 32 codes from k on, as they are stored, one a byte; k is a multiple of 32. */
AVX2_INLINE __m256i load_bytes(bsm_element element, const uint8_t *row, int64_t k)
{
    if (bits_of(element) == 8) return _mm256_loadu_si256((const __m256i *)(const void *)(row + k));
    if (bits_of(element) == 4) {
        const __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(row + k / 2)));
        return _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4)), _mm256_set1_epi8(15));
    }
    /* Words of two codes each, of which every other begins at bit 4: the rest is moved there. */
    const __m256i words = _mm256_mullo_epi16(load_stream(row + k / 4 * 3), _mm256_set1_epi32(1 << 16 | 16));
    const __m256i first = _mm256_and_si256(_mm256_srli_epi16(words, 4), _mm256_set1_epi16(0x3f));
    return _mm256_or_si256(first, _mm256_and_si256(_mm256_srli_epi16(words, 2), _mm256_set1_epi16(0x3f00)));
}

AVX2_INLINE void store_scaled(struct sixteen v, float factor, float *to)
{
    _mm256_storeu_ps(to, _mm256_mul_ps(v.low, _mm256_set1_ps(factor)));
    _mm256_storeu_ps(to + 8, _mm256_mul_ps(v.high, _mm256_set1_ps(factor)));
}

AVX2_INLINE void pack_rows(bsm_element element, const struct bsmi_part *part, const uint8_t *const *rows,
                           const float *factors, struct a_panel *panel)
{
    const int bits = bsmi_factor_bits(part);
    for (int r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < part->length; k += 32) {
            const __m256i bytes = upper_bytes(element, load_bytes(element, rows[r], k));
            const float *const factor = factors + r;
            float *const to = panel->values[r] + k;
            store_scaled(decode_sixteen(element, _mm256_castsi256_si128(bytes)), factor[(k >> bits) * ROWS], to);
            store_scaled(decode_sixteen(element, _mm256_extracti128_si256(bytes, 1)), factor[((k + 16) >> bits) * ROWS],
                         to + 16);
        }
}

AVX2 static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *panel = memory;
    const struct bsmi_matrix *m = part->operand.matrix;
    (void)b, (void)exact_block;
    if (m->bits > 8) {
        for (int r = 0; r < part->count; r++)
            bsmi_row_elements(m, NULL, part->batch, part->first + r, part->k, part->length, panel->values[r]);
        return;
    }
    struct bsmi_element_rows rows;
    float factors[BLOCKS * ROWS];
    bsmi_element_rows(part, ROWS, &rows);
    bsmi_make_factors(part, ROWS, factors);
    BSMI_BY_ELEMENT(m->element, pack_rows, part, bsmi_row_pointers(&rows), factors, panel)
}

/* Up to 32 of K of 8 columns, decoded in the order of the panel. */
AVX2_INLINE void store_columns(bsm_element element, bsmi_words words, int64_t count, int bits, const float *factors,
                               float *to)
{
    for (int64_t q = 0; 16 * q < count; q++) {
        const uint16_t *at = words_of_sixteen(element, words, q);
        const float *of_block = factors + (16 * q >> bits) * COLUMNS;
        const __m256 factor = _mm256_loadu_ps(of_block);
        const int64_t some = BSMI_MIN(16, count - 16 * q);
#pragma GCC unroll 2
        for (int64_t i = 0; i < some; i++, to += COLUMNS, at += words_to_next(element))
            _mm256_store_ps(to, _mm256_mul_ps(decode_eight(element, at), factor));
    }
}

AVX2_INLINE void pack_columns(bsm_element element, const struct bsmi_part *part, const struct bsmi_element_rows *rows,
                              const float *factors, struct b_panel *panel)
{
    const int bits = bsmi_factor_bits(part), within = BSMI_MIN(bits, 5);
    _Alignas(64) bsmi_words words[2];
    for (int64_t k = 0; k < part->length; k += GROUP)
        for (int c = 0; c < COLUMNS; c += 8) {
            bsmi_transpose_group(part->operand.matrix->element, bsmi_row_pointers(rows) + c, k, words);
            for (int64_t i = k; i < BSMI_MIN(k + GROUP, part->length); i += 32)
                store_columns(element, words[i / 32 % 2], BSMI_MIN(32, part->length - i), within,
                              factors + (i >> bits) * COLUMNS + c, panel->values[i] + c);
        }
}

AVX2 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    (void)exact_block;
    if (part->operand.matrix->bits > 8) {
        bsmi_pack_wide_columns(part, COLUMNS, panel->values[0]);
        return;
    }
    struct bsmi_element_rows rows;
    float factors[BLOCKS * COLUMNS];
    bsmi_element_rows(part, COLUMNS, &rows);
    bsmi_make_factors(part, COLUMNS, factors);
    BSMI_BY_WORDS(part->operand.matrix->element, pack_columns, part, &rows, factors, panel)
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

AVX2_INLINE void multiply_rows(int rows, int64_t length, const struct a_panel *a, const struct b_panel *b, float *sums,
                               int64_t pitch)
{
    __m256 acc[ROWS][2];
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        acc[i][0] = _mm256_load_ps(sums + i * pitch);
        acc[i][1] = _mm256_load_ps(sums + i * pitch + 8);
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < length; k++) {
        const __m256 b0 = _mm256_load_ps(b->values[k]), b1 = _mm256_load_ps(b->values[k] + 8);
#pragma GCC unroll 6
        for (int i = 0; i < rows; i++) {
            const __m256 row = _mm256_broadcast_ss(&a->values[i][k]);
            acc[i][0] = _mm256_fmadd_ps(row, b0, acc[i][0]);
            acc[i][1] = _mm256_fmadd_ps(row, b1, acc[i][1]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
        _mm256_store_ps(sums + i * pitch, acc[i][0]);
        _mm256_store_ps(sums + i * pitch + 8, acc[i][1]);
    }
}

AVX2 static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *b, float *sums,
                          int64_t pitch)
{
    (void)exact_block;
    if (rows > 4) multiply_rows(6, length, a, b, sums, pitch);
    else if (rows > 2) multiply_rows(4, length, a, b, sums, pitch);
    else multiply_rows(2, length, a, b, sums, pitch);
}

const struct bsmi_microkernel bsmi_fp32_chains_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .even_rows = 4, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel), .prepacks_b = true, .prepacked_from = 33,
    .fits = bsmi_halves_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_fp32_chains_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
