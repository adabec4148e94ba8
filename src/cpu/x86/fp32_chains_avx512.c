/* Any pair, with AVX-512: S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j]), k ascending.
 *
 * Panels hold decoded elements times their scales in fp32, which is exact (halves.h); chunks with larger scales take
 * the guarded path.  Register tile: 14 rows x 32 columns; 28 accumulators, 2 vectors of B, 1 of A: 31 of 32
 * registers. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "matrix/rows.h"
#include "words_avx512.h"

enum { ROWS = 14, COLUMNS = 32, CHUNK = 2 * BSMI_CHUNK, BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK };

/* 16 more keep the rows in different sets of a cache. */
struct a_panel { _Alignas(64) float values[ROWS][CHUNK + 16]; };
struct b_panel { float values[CHUNK][COLUMNS]; };

/* Packing ---------------------------------------------------------------------------------------------------------- */

/* 32 codes from k on, as they are stored; k is a multiple of 32. */
AVX512_INLINE struct thirty_two load_thirty_two(bsm_element element, const uint8_t *row, int64_t k)
{
    if (bits_of(element) == 6) return decode_stream(element, row + k / 4 * 3);
    if (bits_of(element) == 8)
        return decode_thirty_two(element, _mm256_loadu_si256((const __m256i *)(const void *)(row + k)));
    const __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(row + k / 2)));
    const __m256i codes = _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4)), _mm256_set1_epi8(15));
    return decode_thirty_two(element, upper_bytes_of_e2m1(codes));
}

AVX512_INLINE void pack_rows(bsm_element element, const struct bsmi_part *part, const uint8_t *const *rows,
                             const float *factors, struct a_panel *panel)
{
    const int bits = bsmi_factor_bits(part);
    for (int r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < part->length; k += 32) {
            const struct thirty_two v = load_thirty_two(element, rows[r], k);
            const float *const factor = factors + r;
            float *const to = panel->values[r] + k;
            _mm512_storeu_ps(to, _mm512_mul_ps(v.low, _mm512_set1_ps(factor[(k >> bits) * ROWS])));
            _mm512_storeu_ps(to + 16, _mm512_mul_ps(v.high, _mm512_set1_ps(factor[((k + 16) >> bits) * ROWS])));
        }
}

AVX512 static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
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

/* Up to 64 of K of 16 columns, decoded in the order of the panel. */
AVX512_INLINE void store_columns(bsm_element element, bsmi_wide_words words, int64_t count, int bits,
                                 const float *factors, float *to)
{
    for (int64_t q = 0; 16 * q < count; q++) {
        const uint16_t *at = wide_words_of_sixteen(element, words, q);
        const __m512 factor = _mm512_loadu_ps(factors + (16 * q >> bits) * COLUMNS);
        const int64_t some = BSMI_MIN(16, count - 16 * q);
#pragma GCC unroll 4
        for (int64_t i = 0; i < some; i++, to += COLUMNS, at += BSMI_WIDE_TO_NEXT)
            _mm512_store_ps(to, _mm512_mul_ps(decode_wide(element, at), factor));
    }
}

AVX512_INLINE void pack_columns(bsm_element element, const struct bsmi_part *part, const struct bsmi_element_rows *rows,
                                const float *factors, struct b_panel *panel)
{
    const int bits = bsmi_factor_bits(part), within = BSMI_MIN(bits, 6);       /* of BSMI_WORD_GROUP at most */
    _Alignas(64) bsmi_wide_words words;
    for (int64_t k = 0; k < part->length; k += BSMI_WORD_GROUP)
        for (int c = 0; c < COLUMNS; c += 16) {
            transpose_wide(element, bsmi_row_pointers(rows) + c, k, words);
            store_columns(element, words, BSMI_MIN(BSMI_WORD_GROUP, part->length - k), within,
                          factors + (k >> bits) * COLUMNS + c, panel->values[k] + c);
        }
}

AVX512_INLINE void make_wide_factors(bsm_element element, const struct bsmi_part *part, float (*factors)[COLUMNS])
{
    const struct bsmi_matrix *m = part->operand.matrix;
    if (m->block != 0) pack_scales_by_column(part, m->block, factors);
    const __m512 factor = _mm512_set1_ps(wide_factor(element));
    for (int64_t i = 0; i < bsmi_ceil_div(part->length, bsmi_factor_block(part)); i++)
        for (int c = 0; c < COLUMNS; c += 16)
            _mm512_storeu_ps(factors[i] + c,
                             m->block != 0 ? _mm512_mul_ps(_mm512_loadu_ps(factors[i] + c), factor) : factor);
}

AVX512 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    (void)exact_block;
    if (part->operand.matrix->bits > 8) {
        bsmi_pack_wide_columns(part, COLUMNS, panel->values[0]);
        return;
    }
    struct bsmi_element_rows rows;
    float factors[BLOCKS][COLUMNS];
    bsmi_element_rows(part, COLUMNS, &rows);
    make_wide_factors(part->operand.matrix->element, part, factors);
    BSMI_BY_ELEMENT(part->operand.matrix->element, pack_columns, part, &rows, factors[0], panel)
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

AVX512_INLINE void multiply_rows(int rows, int64_t length, const struct a_panel *a, const struct b_panel *b,
                                 float *sums, int64_t pitch)
{
    __m512 acc[ROWS][2];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        acc[i][0] = _mm512_load_ps(sums + i * pitch);
        acc[i][1] = _mm512_load_ps(sums + i * pitch + 16);
    }
    for (int64_t k = 0; k < length; k++) {
        const __m512 b0 = _mm512_load_ps(b->values[k]), b1 = _mm512_load_ps(b->values[k] + 16);
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            const __m512 row = _mm512_set1_ps(a->values[i][k]);
            acc[i][0] = _mm512_fmadd_ps(row, b0, acc[i][0]);
            acc[i][1] = _mm512_fmadd_ps(row, b1, acc[i][1]);
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        _mm512_store_ps(sums + i * pitch, acc[i][0]);
        _mm512_store_ps(sums + i * pitch + 16, acc[i][1]);
    }
}

AVX512 static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *b, float *sums,
                            int64_t pitch)
{
    (void)exact_block;
    if (rows > 8) multiply_rows(14, length, a, b, sums, pitch);
    else if (rows > 4) multiply_rows(8, length, a, b, sums, pitch);
    else multiply_rows(4, length, a, b, sums, pitch);
}

const struct bsmi_microkernel bsmi_fp32_chains_avx512 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .prepacks_b = true, .prepacked_from = 33,
    .fits = bsmi_halves_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_fp32_chains_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
