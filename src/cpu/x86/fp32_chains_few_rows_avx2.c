/* Codes of at most 8 bits for B and a few rows of any A, with AVX2, FMA and F16C, k ascending:
 *
 *     S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j])
 *
 * B is read as it is stored, once for eight rows of A: codes of 8 columns by 64 of K are transposed and made words
 * (words_avx2.h), which wait in the first-level cache and are decoded on their way into the fused multiply-adds.
 * Registers: 2 sums for each of four rows, or 4 of a single one, 2 (4) factors or decoded elements.  A was decoded and
 * scaled before; chunks with larger scales take the guarded path.
 *
 * Factors are folded into the sums where that gives the same bits (folding_avx2.h): sums are divided by a block's
 * before it and multiplied by it behind. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "folding_avx2.h"
#include "matrix/rows.h"
#include "words_avx2.h"

enum {
    ROWS = 8, ROWS_AT_ONCE = 4, COLUMNS = 32, STEP = 16, CHUNK = 2048, BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK,
    GROUP = BSMI_WORD_GROUP,
};

/* Elements times their scales; rows that are missing are not written. */
struct a_panel {
    _Alignas(64) float values[ROWS][CHUNK];
    bool foldable;
};

struct b_panel {
    _Alignas(64) float scales[BLOCKS][COLUMNS];
    struct bsmi_element_rows rows;        /* pointers to the matrix's own bytes, if its codes are packed like this */
    bsm_element element;
    float factor;                         /* of the element; times a scale it makes the factor of a block */
    int block_bits;                       /* a scale serves 2^block_bits of K */
    bool foldable;
};

/* Packing ---------------------------------------------------------------------------------------------------------- */

AVX2 static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *panel = memory;
    (void)b, (void)exact_block;
    panel->foldable = true;
    for (int64_t r = 0; r < part->count; r++) {
        struct bsmi_part row = *part;
        row.first += r, row.count = 1;
        bsmi_row_elements(part->operand.matrix, part->operand.values, part->batch, row.first, part->k, part->length,
                          panel->values[r]);
        bsmi_scale_row(&row, panel->values[r]);
        panel->foldable = panel->foldable && row_folds(panel->values[r], part->length);
    }
}

AVX2 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    const struct bsmi_matrix *m = part->operand.matrix;
    (void)exact_block;
    panel->element = m->element;
    panel->factor = bsmi_half_factors[m->element];
    panel->block_bits = __builtin_ctz(m->block == 0 ? (unsigned)CHUNK : (unsigned)m->block);
    bsmi_element_rows(part, COLUMNS, &panel->rows);
    if (m->block != 0) pack_scales_by_column(part, m->block, panel->scales);
    for (int c = 0; c < COLUMNS && m->block == 0; c++) panel->scales[0][c] = 1;
    const int64_t blocks = bsmi_ceil_div(part->length, (int64_t)1 << panel->block_bits);
    panel->foldable = scales_fold(m->scale, panel->scales[0], blocks * COLUMNS, panel->factor);
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* The factors of 8 columns. */
AVX2_INLINE __m256 load_factors(const struct b_panel *b, const float *scales)
{
    return _mm256_mul_ps(_mm256_load_ps(scales), _mm256_set1_ps(b->factor));
}

/* 1 / f of powers of two. */
AVX2_INLINE __m256 inverse(__m256 f)
{
    return _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32(254 << 23), _mm256_castps_si256(f)));
}

/* One k. */
AVX2_INLINE void add_k(bsm_element element, bool folded, int rows, int columns, const uint16_t *at,
                       const __m256 factor[4], const float *a, __m256 acc[ROWS_AT_ONCE][4])
{
    enum { NEXT_COLUMNS = 2 * sizeof(bsmi_words) / sizeof(uint16_t) };         /* 8 columns have words of two groups of
                                                                                  32 */
#pragma GCC unroll 4
    for (int j = 0; j < columns / 8; j++) {
        const __m256 h = decode_eight(element, at + j * NEXT_COLUMNS);
        const __m256 b = folded ? h : _mm256_mul_ps(h, factor[j]);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) acc[r][j] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + r * CHUNK), b, acc[r][j]);
    }
}

/* `count` of K, at most 32, that share their factors, from 16 q of a group of 32 on. */
AVX2_INLINE void add_block(bsm_element element, bool folded, int rows, int columns, int64_t q, int64_t count,
                           bsmi_words *words, const struct b_panel *b, const float *scales, const float *a, float *sums,
                           int64_t pitch)
{
    __m256 factor[4], acc[ROWS_AT_ONCE][4];
#pragma GCC unroll 4
    for (int j = 0; j < columns / 8; j++) {
        factor[j] = load_factors(b, scales + 8 * j);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const __m256 sum = _mm256_load_ps(sums + r * pitch + 8 * j);
            acc[r][j] = folded ? _mm256_mul_ps(sum, inverse(factor[j])) : sum;
        }
    }
    for (; count > 0; count -= 16, q++) {
        const uint16_t *at = words_of_sixteen(element, words[0], q);
        const int64_t some = BSMI_MIN(count, 16);
#pragma GCC unroll 2
        for (int64_t i = 0; i < some; i++, a++, at += words_to_next(element))
            add_k(element, folded, rows, columns, at, factor, a, acc);
    }
#pragma GCC unroll 4
    for (int j = 0; j < columns / 8; j++)
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            _mm256_store_ps(sums + r * pitch + 8 * j, folded ? _mm256_mul_ps(acc[r][j], factor[j]) : acc[r][j]);
}

/* A group of 64 of K, or what is left of it, with `rows` rows of A. */
AVX2_INLINE void add_group(bsm_element element, bool folded, int rows, int columns, int64_t k, int64_t count,
                           bsmi_words *words, const struct b_panel *b, int column, const float *a, float *sums,
                           int64_t pitch)
{
    const int64_t unit = BSMI_MIN((int64_t)1 << b->block_bits, 32);
    for (int64_t i = 0; i < count; i += unit)
        add_block(element, folded, rows, columns, i % 32 / 16, BSMI_MIN(unit, count - i), words + i / 32, b,
                  b->scales[(k + i) >> b->block_bits] + column, a + k + i, sums, pitch);
}

AVX2_INLINE void multiply_step(bsm_element element, bool folded, int64_t rows, int columns, int64_t length,
                               const struct a_panel *a, const struct b_panel *b, int column, float *sums, int64_t pitch)
{
    const uint8_t *const *from = bsmi_row_pointers(&b->rows) + column;
    _Alignas(64) bsmi_words words[8];
    for (int64_t k = 0; k < length; k += GROUP) {
        const int64_t count = BSMI_MIN(GROUP, length - k);
        for (int c = 0; c < columns / 8; c++) bsmi_transpose_group(b->element, from + 8 * c, k, words + 2 * c);
        for (int64_t r = 0; r < rows; r += ROWS_AT_ONCE) {
            const float *values = a->values[r];
            if (rows - r <= 2)
                add_group(element, folded, 2, STEP, k, count, words, b, column, values, sums + r * pitch, pitch);
            else add_group(element, folded, 4, STEP, k, count, words, b, column, values, sums + r * pitch, pitch);
        }
    }
}

AVX2_INLINE void multiply_element(bsm_element element, bool folded, int64_t rows, int64_t length, const void *a,
                                  const struct b_panel *b, float *sums, int64_t pitch)
{
    for (int column = 0; column < COLUMNS; column += STEP)
        multiply_step(element, folded, rows, STEP, length, a, b, column, sums + column, pitch);
}

/* A single row takes 32 columns at once, since fewer sums would wait for one another.  8 of K are multiplied and 8
 * columns by 32 of the K to come are transposed alternately, in steps short enough that a CPU does both at once. */
typedef bsmi_words row_words[COLUMNS / 8];            /* of 32 of K */

AVX2_INLINE void transpose_columns(bsm_element element, const uint8_t *const *rows, int64_t k, bsmi_words words)
{
    if (k % (bits_of(element) == 4 ? 128 : 64) == 0)
        bsmi_prefetch_rows(rows, 8, k / 8 * bits_of(element) + BSMI_ROWS_AHEAD);
    transpose_words(element, rows, k, words);
}

/* Sums in units of their factors, and back. */
AVX2_INLINE void fold(bool folded, const struct b_panel *b, int64_t k, __m256 factor[4], __m256 acc[4])
{
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        factor[j] = load_factors(b, b->scales[k >> b->block_bits] + 8 * j);
        if (folded) acc[j] = _mm256_mul_ps(acc[j], inverse(factor[j]));
    }
}

AVX2_INLINE void unfold(bool folded, const __m256 factor[4], __m256 acc[4])
{
#pragma GCC unroll 4
    for (int j = 0; j < 4 && folded; j++) acc[j] = _mm256_mul_ps(acc[j], factor[j]);
}

AVX2_INLINE void add_row_k(bsm_element element, bool folded, row_words words, int64_t k, const __m256 factor[4],
                           const float *a, __m256 acc[4])
{
    const __m256 value = _mm256_broadcast_ss(a + k);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        const __m256 h =
            decode_eight(element, words_of_sixteen(element, words[j], k / 16) + k % 16 * words_to_next(element));
        acc[j] = _mm256_fmadd_ps(value, folded ? h : _mm256_mul_ps(h, factor[j]), acc[j]);
    }
}

/* 32 of K from k on and the words of the next 32, or the last `count` of them. */
AVX2_INLINE void add_row_group(bsm_element element, bool folded, int64_t k, int64_t count, bool last,
                               const struct a_panel *a, const struct b_panel *b, row_words words, row_words next,
                               __m256 acc[4])
{
    const float *const row = a->values[0] + k;
    __m256 factor[4];
    fold(folded, b, k, factor, acc);
#pragma GCC unroll 4
    for (int step = 0; step < 4; step++) {
        const int64_t first = 8 * step, end = last ? BSMI_MIN(first + 8, count) : first + 8;
        if (first >= end) break;
        if (step == 2 && b->block_bits == 4) {
            unfold(folded, factor, acc);
            fold(folded, b, k + 16, factor, acc);
        }
#pragma GCC unroll 8
        for (int64_t i = first; i < end; i++) add_row_k(element, folded, words, i, factor, row, acc);
        if (!last) transpose_columns(element, bsmi_row_pointers(&b->rows) + first, k + 32, next[step]);
    }
    unfold(folded, factor, acc);
}

AVX2_INLINE void multiply_row(bsm_element element, bool folded, int64_t length, const struct a_panel *a,
                              const struct b_panel *b, float *sums)
{
    _Alignas(64) row_words words[2];
    __m256 acc[4];
    int64_t k = 0;
    for (int j = 0; j < 4; j++) {
        acc[j] = _mm256_load_ps(sums + 8 * j);
        transpose_columns(element, bsmi_row_pointers(&b->rows) + 8 * j, 0, words[0][j]);
    }
    for (; k + 32 < length; k += 32)
        add_row_group(element, folded, k, 32, false, a, b, words[k / 32 % 2], words[(k / 32 + 1) % 2], acc);
    add_row_group(element, folded, k, length - k, true, a, b, words[k / 32 % 2], NULL, acc);
    for (int j = 0; j < 4; j++) _mm256_store_ps(sums + 8 * j, acc[j]);
}

AVX2 static void multiply(int64_t rows, int64_t length, int exact_block, const void *a, const void *right, float *sums,
                          int64_t pitch)
{
    const struct b_panel *b = right;
    const bool folded = ((const struct a_panel *)a)->foldable && b->foldable && sums_fold(rows, COLUMNS, sums, pitch);
    (void)exact_block;
    if (rows == 1) {
        if (folded) {
            BSMI_BY_ELEMENT(b->element, multiply_row, true, length, a, b, sums)
        } else {
            BSMI_BY_ELEMENT(b->element, multiply_row, false, length, a, b, sums)
        }
    } else if (folded) {
        BSMI_BY_WORDS(b->element, multiply_element, true, rows, length, a, b, sums, pitch)
    } else {
        BSMI_BY_WORDS(b->element, multiply_element, false, rows, length, a, b, sums, pitch)
    }
}

const struct bsmi_microkernel bsmi_fp32_chains_few_rows_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .fits = bsmi_halves_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_fp32_chains_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
