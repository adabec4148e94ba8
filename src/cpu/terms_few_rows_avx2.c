/* Codes of at most 8 bits for B and a few rows of any A, with AVX2, FMA and F16C, k ascending:
 *
 *     S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j])
 *
 * B is read as it is stored, once for four rows of A: codes of 16 columns by 32 of K are transposed as bytes, and decoded
 * (halves.h) on their way into the fused multiply-adds.  Registers: 2 sums for each row, 2 vectors of decoded elements, 2 of
 * factors; the transposed codes wait in the first-level cache.  A was decoded and scaled before; chunks with larger scales take the
 * guarded road. */
#if defined(__x86_64__)
#include "few_terms.h"
#include "halves_avx2.h"

enum { ROWS = BSMI_FEW_ROWS, COLUMNS = 32, STEP = 16, CHUNK = BSMI_FEW_CHUNK, BLOCKS = BSMI_FEW_BLOCKS, GROUP = 32 };

static void scale_row(const struct bsmi_part *row, float *values)
{
    const int64_t block = row->operand.matrix->block;
    float scales[BLOCKS];
    if (block == 0) return;
    bsmi_scale_rows(row, (int)block, 1, scales);
    for (int64_t k = 0; k < row->length; k++) values[k] *= scales[k / block];
}

void bsmi_few_terms_pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int run, void *memory)
{
    struct bsmi_few_a *panel = memory;
    (void)b, (void)run;
    for (int64_t r = 0; r < part->count; r++) {
        struct bsmi_part row = *part;
        row.first += r, row.count = 1;
        bsmi_row_elements(part->operand.matrix, part->operand.values, part->batch, row.first, part->k, part->length,
                          panel->values[r]);
        scale_row(&row, panel->values[r]);
    }
}

AVX2 void bsmi_few_terms_pack_b(const struct bsmi_part *part, int run, void *memory)
{
    struct bsmi_few_b *panel = memory;
    const struct bsmi_matrix *m = part->operand.matrix;
    const float factor = bsmi_half_factors[m->element];
    (void)run;
    panel->element = m->element;
    panel->block_bits = __builtin_ctz(m->block == 0 ? (unsigned)CHUNK : (unsigned)m->block);
    bsmi_byte_rows(part, COLUMNS, &panel->bytes);
    if (m->block != 0) pack_scales_by_column(part, m->block, panel->factors);
    for (int64_t i = 0; i < bsmi_ceil_div(part->length, (int64_t)1 << panel->block_bits) * COLUMNS; i++)
        panel->factors[0][i] = m->block != 0 ? panel->factors[0][i] * factor : factor;
}

/* Up to 16 of K: their transposed codes lie 32 bytes apart. */
AVX2_INLINE void add_sixteen(bsm_element element, int rows, int64_t count, const uint8_t *codes, const float *factors,
                             const float *a, __m256 acc[ROWS][2])
{
    const __m256 factor0 = _mm256_load_ps(factors), factor1 = _mm256_load_ps(factors + 8);
    for (int64_t i = 0; i < count; i++) {
        const struct sixteen v = decode_sixteen(element, _mm_load_si128((const __m128i *)(const void *)(codes + 32 * i)));
        const __m256 b0 = _mm256_mul_ps(v.low, factor0), b1 = _mm256_mul_ps(v.high, factor1);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const __m256 row = _mm256_broadcast_ss(a + r * CHUNK + i);
            acc[r][0] = _mm256_fmadd_ps(row, b0, acc[r][0]);
            acc[r][1] = _mm256_fmadd_ps(row, b1, acc[r][1]);
        }
    }
}

AVX2_INLINE void multiply_step(bsm_element element, int rows, int64_t length, const struct bsmi_few_a *a,
                               const struct bsmi_few_b *b, int column, float *sums, int64_t pitch)
{
    const uint8_t *const *from = b->bytes.rows + column;
    __m256 acc[ROWS][2];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) acc[r][0] = _mm256_load_ps(sums + r * pitch), acc[r][1] = _mm256_load_ps(sums + r * pitch + 8);
    for (int64_t k = 0; k < length; k += GROUP) {
        __m256i v[16];
        _Alignas(32) uint8_t codes[16][32];
        if (k % 64 == 0) bsmi_prefetch_rows(from, STEP, k + CHUNK);
#pragma GCC unroll 16
        for (int c = 0; c < 16; c++) v[c] = upper_bytes(element, _mm256_loadu_si256((const __m256i *)(const void *)(from[c] + k)));
        transpose_bytes(v);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) _mm256_store_si256((__m256i *)(void *)codes[i], v[i]);
        const float *first = b->factors[k >> b->block_bits] + column, *second = b->factors[(k + 16) >> b->block_bits] + column;
        add_sixteen(element, rows, BSMI_MIN(16, length - k), codes[0], first, a->values[0] + k, acc);
        if (k + 16 < length)
            add_sixteen(element, rows, BSMI_MIN(16, length - k - 16), codes[0] + 16, second, a->values[0] + k + 16, acc);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) _mm256_store_ps(sums + r * pitch, acc[r][0]), _mm256_store_ps(sums + r * pitch + 8, acc[r][1]);
}

AVX2_INLINE void multiply_element(bsm_element element, int64_t rows, int64_t length, const void *a, const struct bsmi_few_b *b,
                                  float *sums, int64_t pitch)
{
    for (int column = 0; column < COLUMNS; column += STEP, sums += STEP) {
        if (rows == 1) multiply_step(element, 1, length, a, b, column, sums, pitch);
        else if (rows == 2) multiply_step(element, 2, length, a, b, column, sums, pitch);
        else multiply_step(element, 4, length, a, b, column, sums, pitch);
    }
}

AVX2 static void multiply(int64_t rows, int64_t length, int run, const void *a, const void *right, float *sums, int64_t pitch)
{
    const struct bsmi_few_b *b = right;
    (void)run;
    BSMI_BY_ELEMENT(b->element, multiply_element, rows, length, a, b, sums, pitch)
}

const struct bsmi_panels bsmi_few_terms_panels_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct bsmi_few_a), .b_bytes = sizeof(struct bsmi_few_b),
    .fits = bsmi_halves_fit, .pack_a = bsmi_few_terms_pack_a, .pack_b = bsmi_few_terms_pack_b, .multiply = multiply,
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
