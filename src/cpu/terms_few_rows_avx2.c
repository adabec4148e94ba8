/* Codes of at most 8 bits for B and a few rows of any A, with AVX2, FMA and F16C, k ascending:
 *
 *     S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j])
 *
 * B is read as it is stored, once for four rows of A: codes of 16 columns by 32 of K are transposed as bytes and made words, which
 * wait in the first-level cache, and decoded (halves.h) on their way into the fused multiply-adds.  Registers: 2 sums for each row
 * (4 of a single row), as many vectors of factors, 1 of decoded elements.  A was decoded and scaled before; chunks with larger
 * scales take the guarded road. */
#if defined(__x86_64__)
#include "halves_avx2.h"

enum { ROWS = 4, COLUMNS = 32, STEP = 16, CHUNK = 512, BLOCKS = CHUNK / BSMI_SHORTEST_RUN, GROUP = 32 };

/* Elements times their scales; rows that are missing are not written. */
struct a_panel { _Alignas(64) float values[ROWS][CHUNK]; };

struct b_panel {
    _Alignas(64) float factors[BLOCKS][COLUMNS];
    struct bsmi_byte_rows bytes;          /* pointers to the matrix's own bytes, if its codes are bytes */
    bsm_element element;
    int block_bits;                       /* a factor serves 2^block_bits of K */
};

static void scale_row(const struct bsmi_part *row, float *values)
{
    const int64_t block = row->operand.matrix->block;
    float scales[BLOCKS];
    if (block == 0) return;
    bsmi_scale_rows(row, (int)block, 1, scales);
    for (int64_t k = 0; k < row->length; k++) values[k] *= scales[k / block];
}

static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int run, void *memory)
{
    struct a_panel *panel = memory;
    (void)b, (void)run;
    for (int64_t r = 0; r < part->count; r++) {
        struct bsmi_part row = *part;
        row.first += r, row.count = 1;
        bsmi_row_elements(part->operand.matrix, part->operand.values, part->batch, row.first, part->k, part->length,
                          panel->values[r]);
        scale_row(&row, panel->values[r]);
    }
}

AVX2 static void pack_b(const struct bsmi_part *part, int run, void *memory)
{
    struct b_panel *panel = memory;
    const struct bsmi_matrix *m = part->operand.matrix;
    const float factor = bsmi_half_factors[m->element];
    (void)run;
    panel->element = m->element;
    panel->block_bits = __builtin_ctz(m->block == 0 ? (unsigned)CHUNK : (unsigned)m->block);
    bsmi_byte_rows(part, COLUMNS, &panel->bytes);
    if (m->block != 0) pack_scales_by_column(part, m->block, panel->factors);
    for (int64_t i = 0; i < bsmi_ceil_div(part->length, (int64_t)1 << panel->block_bits); i++)
        for (int c = 0; c < COLUMNS; c++) panel->factors[i][c] = m->block != 0 ? panel->factors[i][c] * factor : factor;
}

/* 16 columns by 32 of K as words: words[k][half of the columns][k, k + 16][column]. */
typedef uint16_t transposed[16][2][2][8];

AVX2_INLINE void transpose(bsm_element element, const uint8_t *const *from, int64_t k, transposed words)
{
    __m256i v[16];
#pragma GCC unroll 16
    for (int c = 0; c < 16; c++) v[c] = upper_bytes(element, _mm256_loadu_si256((const __m256i *)(const void *)(from[c] + k)));
    transpose_bytes(v);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const struct words w = widen(element, v[i]);
        _mm256_store_si256((__m256i *)(void *)words[i][0], w.first);
        _mm256_store_si256((__m256i *)(void *)words[i][1], w.second);
    }
}

/* Up to 16 of K, the first or the second of a group, with `columns` columns. */
AVX2_INLINE void add_sixteen(bsm_element element, int rows, int columns, int64_t count, int second, transposed *words,
                             const float *factors, const float *a, __m256 acc[ROWS][4])
{
    __m256 factor[4];
#pragma GCC unroll 4
    for (int j = 0; j < columns / 8; j++) factor[j] = _mm256_load_ps(factors + 8 * j);
    for (int64_t i = 0; i < count; i++)
#pragma GCC unroll 4
        for (int j = 0; j < columns / 8; j++) {
            const __m256 b = _mm256_mul_ps(decode_eight(element, words[j / 2][i][j % 2][second]), factor[j]);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) acc[r][j] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + r * CHUNK + i), b, acc[r][j]);
        }
}

AVX2_INLINE void multiply_step(bsm_element element, int rows, int columns, int64_t length, const struct a_panel *a,
                               const struct b_panel *b, int column, float *sums, int64_t pitch)
{
    const uint8_t *const *from = b->bytes.rows + column;
    __m256 acc[ROWS][4];
    _Alignas(32) transposed words[2];
#pragma GCC unroll 16
    for (int i = 0; i < rows * columns / 8; i++)
        acc[i / (columns / 8)][i % (columns / 8)] = _mm256_load_ps(sums + i / (columns / 8) * pitch + i % (columns / 8) * 8);
    for (int64_t k = 0; k < length; k += GROUP) {
        if (k % 64 == 0) bsmi_prefetch_rows(from, columns, k + CHUNK);
        for (int c = 0; c < columns / 16; c++) transpose(element, from + 16 * c, k, words[c]);
        const float *first = b->factors[k >> b->block_bits] + column, *second = b->factors[(k + 16) >> b->block_bits] + column;
        add_sixteen(element, rows, columns, BSMI_MIN(16, length - k), 0, words, first, a->values[0] + k, acc);
        if (k + 16 < length)
            add_sixteen(element, rows, columns, BSMI_MIN(16, length - k - 16), 1, words, second, a->values[0] + k + 16, acc);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows * columns / 8; i++)
        _mm256_store_ps(sums + i / (columns / 8) * pitch + i % (columns / 8) * 8, acc[i / (columns / 8)][i % (columns / 8)]);
}

/* Four sums at least that do not wait for one another. */
AVX2_INLINE void multiply_element(bsm_element element, int64_t rows, int64_t length, const void *a, const struct b_panel *b,
                                  float *sums, int64_t pitch)
{
    if (rows == 1) {
        multiply_step(element, 1, COLUMNS, length, a, b, 0, sums, pitch);
        return;
    }
    for (int column = 0; column < COLUMNS; column += STEP, sums += STEP) {
        if (rows == 2) multiply_step(element, 2, STEP, length, a, b, column, sums, pitch);
        else multiply_step(element, 4, STEP, length, a, b, column, sums, pitch);
    }
}

AVX2 static void multiply(int64_t rows, int64_t length, int run, const void *a, const void *right, float *sums, int64_t pitch)
{
    const struct b_panel *b = right;
    (void)run;
    BSMI_BY_ELEMENT(b->element, multiply_element, rows, length, a, b, sums, pitch)
}

const struct bsmi_panels bsmi_few_terms_panels_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel), .b_bytes = sizeof(struct b_panel),
    .fits = bsmi_halves_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_terms_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};

size_t bsmi_few_terms_scratch_avx2(int64_t rows, int64_t columns)
{
    return bsmi_panels_scratch_bytes(&bsmi_few_terms_panels_avx2, rows, columns);
}
void bsmi_few_terms_sum_avx2(const struct bsmi_tile *tile, void *scratch)
{
    bsmi_panels_sum(&bsmi_few_terms_panels_avx2, tile, scratch);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
