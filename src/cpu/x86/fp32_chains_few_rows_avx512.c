/* Codes of at most 8 bits for B and 2 to 8 rows of any A, with AVX-512, k ascending:
 *
 *     S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j])
 *
 * B is read as it is stored, once: codes of 16 columns by 64 of K are transposed and made words (words_avx512.h), which
 * wait in the first-level cache and are decoded on their way into the fused multiply-adds.  Registers: 2 sums for each
 * of eight rows, 2 factors, 2 decoded vectors.  A was decoded and scaled before; chunks with larger scales take the
 * guarded path.
 *
 * Factors are folded into the sums where that gives the same bits (folding_avx2.h); from one block to the next sums are
 * multiplied by the quotient of their factors. */
#if defined(__x86_64__)
#include "cpu/kernels.h"
#include "folding_avx2.h"
#include "matrix/rows.h"
#include "words_avx512.h"

enum {
    ROWS = 8, HALF = 32, HALVES = 2, COLUMNS = HALVES * HALF, CHUNK = 1024, BLOCKS = CHUNK / BSMI_SHORTEST_BLOCK,
    STEP = BSMI_WORD_GROUP,
};

/* Elements times their scales, [k][row]; few rows lie closer, 2 or 4 of them side by side. */
struct a_panel {
    _Alignas(64) float values[CHUNK * ROWS];
    bool foldable;
};

struct half {
    _Alignas(64) float scales[BLOCKS][HALF];
    struct bsmi_element_rows rows;        /* pointers to the matrix's own bytes, if its codes are packed like this */
};

struct b_panel {
    struct half halves[HALVES];
    bsm_element element;
    int block_bits;                       /* a scale serves 2^block_bits of K */
    bool scaled, foldable;
    int64_t k;                            /* where the chunk begins */
    intptr_t to_next;                     /* from the pointer of a row to the beginning of the row COLUMNS on */
    unsigned pieces;                      /* of 1,024 of K, in a row */
};

/* Packing ---------------------------------------------------------------------------------------------------------- */

/* Rows side by side. */
static int width_of(int64_t rows) { return rows > 4 ? ROWS : rows > 2 ? 4 : 2; }

AVX512 static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int exact_block, void *memory)
{
    struct a_panel *panel = memory;
    const int width = width_of(part->count);
    float values[CHUNK];
    (void)b, (void)exact_block;
    panel->foldable = true;
    for (int64_t r = 0; r < width; r++) {
        struct bsmi_part row = *part;
        row.first += BSMI_MIN(r, part->count - 1), row.count = 1; /* rows that are missing repeat the last */
        bsmi_row_elements(part->operand.matrix, part->operand.values, part->batch, row.first, part->k, part->length,
                          values);
        bsmi_scale_row(&row, values);
        panel->foldable = panel->foldable && row_folds(values, part->length);
        for (int64_t k = 0; k < part->length; k++) panel->values[k * width + r] = values[k];
    }
}

/* Columns that are missing repeat the last. */
static struct bsmi_part half_of(const struct bsmi_part *part, int64_t first)
{
    struct bsmi_part half = *part;
    half.first += BSMI_MIN(first, part->count - 1);
    half.count = BSMI_MAX(1, BSMI_MIN(HALF, part->count - first));
    return half;
}

AVX512 static void pack_b(const struct bsmi_part *part, int exact_block, void *memory)
{
    struct b_panel *panel = memory;
    const struct bsmi_matrix *m = part->operand.matrix;
    (void)exact_block;
    panel->element = m->element;
    panel->scaled = m->block != 0;
    panel->block_bits = __builtin_ctz(m->block == 0 ? (unsigned)CHUNK : (unsigned)m->block);
    panel->foldable = true;
    for (int h = 0; h < HALVES; h++) {
        struct half *const half = &panel->halves[h];
        const struct bsmi_part columns = half_of(part, h * HALF);
        bsmi_element_rows(&columns, HALF, &half->rows);
        if (!panel->scaled) continue;
        pack_scales_by_column(&columns, m->block, half->scales);
        panel->foldable = panel->foldable
                          && scales_fold(m->scale, half->scales[0], bsmi_ceil_div(part->length, m->block) * HALF,
                                         wide_factor(m->element));
    }
    const uint8_t *const *const rows = bsmi_row_pointers(&panel->halves[0].rows);
    panel->to_next = (intptr_t)((uintptr_t)rows[2] - (uintptr_t)rows[0]) * (COLUMNS / 2) - part->k * m->bits / 8;
    panel->k = part->k;
    panel->pieces = (unsigned)bsmi_ceil_div(m->columns, CHUNK);
}

/* Multiplying ------------------------------------------------------------------------------------------------------ */

/* The factors of 16 columns from k on. */
AVX512_INLINE __m512 load_factors(bsm_element element, const struct b_panel *b, int column, int64_t k)
{
    const __m512 factor = _mm512_set1_ps(wide_factor(element));
    return b->scaled ? _mm512_mul_ps(
               _mm512_load_ps(b->halves[column / HALF].scales[k >> b->block_bits] + column % HALF), factor)
                     : factor;
}

/* 1 / f of powers of two. */
AVX512_INLINE __m512 inverse(__m512 f)
{
    return _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_set1_epi32(254 << 23), _mm512_castps_si512(f)));
}

/* 16 columns by 64 of K into words, while as many bytes of the next panel's rows are asked for, row by row as memory
 * likes it. */
AVX512_INLINE void transpose_step(bsm_element element, const struct b_panel *b, int column, int64_t k,
                                  bsmi_wide_words words)
{
    const int bytes = 1024 / 8 * bits_of(element);
    const unsigned piece = (unsigned)((b->k + k) / STEP * (COLUMNS / 16) + column / 16), row = piece / b->pieces;
    const uint8_t *const next = bsmi_row_pointers(&b->halves[row / HALF % HALVES].rows)[row % HALF];
    const uintptr_t from = (uintptr_t)next + (uintptr_t)b->to_next + (uintptr_t)(piece % b->pieces * (unsigned)bytes);
#pragma GCC unroll 4
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch((const void *)(from + (uintptr_t)i), 0, 1);
    transpose_wide(element, bsmi_row_pointers(&b->halves[column / HALF].rows) + column % HALF, k, words);
}

/* `count` of K, at most 16, of 16 q on, with `rows` rows side by side and 32 columns. */
AVX512_INLINE void add_sixteen(bsm_element element, bool folded, int rows, int64_t q, int64_t count,
                               bsmi_wide_words *words, const __m512 factor[2], const float *a, __m512 acc[ROWS][2])
{
    const uint16_t *at = wide_words_of_sixteen(element, words[0], q);
#pragma GCC unroll 2
    for (int64_t i = 0; i < count; i++, a += rows, at += BSMI_WIDE_TO_NEXT) {
        __m512 v[2];
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const __m512 h = decode_wide(element, at + j * (int)(sizeof(bsmi_wide_words) / sizeof(uint16_t)));
            v[j] = folded ? h : _mm512_mul_ps(h, factor[j]);
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++) acc[r][j] = _mm512_fmadd_ps(_mm512_set1_ps(a[r]), v[j], acc[r][j]);
    }
}

/* Up to 64 of K from k on.  Folded sums are in units of `unit`, which becomes that of the last block. */
AVX512_INLINE void add_step(bsm_element element, bool folded, int rows, int64_t k, int64_t count,
                            bsmi_wide_words *words, const struct b_panel *b, int column, const float *a, __m512 unit[2],
                            __m512 acc[ROWS][2])
{
    __m512 factor[2];
    for (int64_t i = 0; i < count; i += 16) {
        if (i == 0 || (i & (((int64_t)1 << b->block_bits) - 1)) == 0)
#pragma GCC unroll 2
            for (int j = 0; j < 2; j++) {
                factor[j] = load_factors(element, b, column + 16 * j, k + i);
                if (!folded) continue;
                const __m512 quotient = _mm512_mul_ps(unit[j], inverse(factor[j]));
                unit[j] = factor[j];
#pragma GCC unroll 8
                for (int r = 0; r < rows; r++) acc[r][j] = _mm512_mul_ps(acc[r][j], quotient);
            }
        add_sixteen(element, folded, rows, i / 16, BSMI_MIN(16, count - i), words, factor, a + i * rows, acc);
    }
}

AVX512_INLINE void load_sums(int rows, const float *sums, int64_t pitch, __m512 acc[ROWS][2])
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) acc[r][j] = _mm512_load_ps(sums + r * pitch + 16 * j);
}

/* Times the unit, with which they are what they stand for. */
AVX512_INLINE void store_sums(int rows, const __m512 unit[2], __m512 acc[ROWS][2], float *sums, int64_t pitch)
{
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) _mm512_store_ps(sums + r * pitch + 16 * j, _mm512_mul_ps(acc[r][j], unit[j]));
}

/* 32 columns, 64 of K at a time.  Between them folded sums are kept as they are. */
AVX512_INLINE void multiply_half(bsm_element element, bool folded, int rows, int64_t length, const struct a_panel *a,
                                 const struct b_panel *b, int column, float *sums, int64_t pitch)
{
    _Alignas(64) bsmi_wide_words words[HALF / 16];
    const __m512 one[2] = { _mm512_set1_ps(1), _mm512_set1_ps(1) };
    __m512 unit[2] = { one[0], one[1] };
    for (int64_t k = 0; k < length; k += STEP) {
        __m512 acc[ROWS][2];
        for (int j = 0; j < 2; j++) transpose_step(element, b, column + 16 * j, k, words[j]);
        load_sums(rows, sums, pitch, acc);
        add_step(element, folded, rows, k, BSMI_MIN(STEP, length - k), words, b, column, a->values + k * rows, unit,
                 acc);
        store_sums(rows, k + STEP < length ? one : unit, acc, sums, pitch);
    }
}

AVX512_INLINE void multiply_element(bsm_element element, bool folded, int width, int64_t length,
                                    const struct a_panel *a, const struct b_panel *b, float *sums, int64_t pitch)
{
    for (int column = 0; column < COLUMNS; column += HALF, sums += HALF) switch (width) {
        case 2: multiply_half(element, folded, 2, length, a, b, column, sums, pitch); break;
        case 4: multiply_half(element, folded, 4, length, a, b, column, sums, pitch); break;
        default: multiply_half(element, folded, ROWS, length, a, b, column, sums, pitch);
        }
}

AVX512 static void multiply(int64_t rows, int64_t length, int exact_block, const void *left, const void *right,
                            float *sums, int64_t pitch)
{
    const struct a_panel *a = left;
    const struct b_panel *b = right;
    (void)exact_block;
    if (a->foldable && b->foldable && sums_fold(rows, COLUMNS, sums, pitch)) {
        BSMI_BY_ELEMENT(b->element, multiply_element, true, width_of(rows), length, a, b, sums, pitch)
    } else {
        BSMI_BY_ELEMENT(b->element, multiply_element, false, width_of(rows), length, a, b, sums, pitch)
    }
}

_Static_assert(sizeof(struct a_panel) % 64 == 0 && sizeof(struct b_panel) % 64 == 0,
               "panels follow one another at vectors' alignment");

const struct bsmi_microkernel bsmi_fp32_chains_few_rows_avx512 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel),
    .b_bytes = sizeof(struct b_panel),
    .fits = bsmi_halves_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_fp32_chains_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
