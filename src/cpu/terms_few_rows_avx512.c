/* Codes of at most 8 bits for B and a few rows of any A, with AVX-512: terms_few_rows_avx2.c, 32 columns by 16 of K at a time. */
#if defined(__x86_64__)
#include "few_terms.h"
#include "halves_avx512.h"

enum { ROWS = BSMI_FEW_ROWS, COLUMNS = 32, CHUNK = BSMI_FEW_CHUNK, LINE = BSMI_BYTE_GROUP };

/* A line of each row at once: rows at a pitch of 4 KiB share one set of a first-level cache, which cannot keep 32 lines until the
 * last 16 bytes of each are read.  What comes a chunk later is asked into the second level. */
AVX512_INLINE void copy_lines(const uint8_t *const *rows, int64_t k, uint8_t (*lines)[LINE])
{
    for (int c = 0; c < COLUMNS; c++) {
        _mm512_store_si512(lines[c], _mm512_loadu_si512(rows[c] + k));
        __builtin_prefetch((const void *)((uintptr_t)rows[c] + (uintptr_t)(k + CHUNK)), 0, 2);
    }
}

AVX512_INLINE void multiply_rows(bsm_element element, int rows, int64_t length, const struct bsmi_few_a *a,
                                 const struct bsmi_few_b *b, float *sums, int64_t pitch)
{
    const uint8_t *const *from = b->bytes.rows;
    _Alignas(64) uint8_t lines[COLUMNS][LINE];
    __m512 acc[ROWS][2];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) acc[r][0] = _mm512_load_ps(sums + r * pitch), acc[r][1] = _mm512_load_ps(sums + r * pitch + 16);
    for (int64_t k = 0; k < length; k += 16) {
        __m256i v[16];
        _Alignas(32) uint8_t codes[16][COLUMNS];
        const float *factors = b->factors[k >> b->block_bits];
        const __m512 factor0 = _mm512_load_ps(factors), factor1 = _mm512_load_ps(factors + 16);
        const int64_t count = BSMI_MIN(16, length - k);
        if (k % LINE == 0) copy_lines(from, k, lines);
#pragma GCC unroll 16
        for (int c = 0; c < 16; c++) v[c] = upper_bytes(element, load_two(lines[c] + k % LINE, lines[c + 16] + k % LINE));
        transpose_bytes(v);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) _mm256_store_si256((__m256i *)(void *)codes[i], v[i]);
        for (int64_t i = 0; i < count; i++) {
            const struct thirty_two d = decode_thirty_two(element, _mm256_load_si256((const __m256i *)(const void *)codes[i]));
            const __m512 b0 = _mm512_mul_ps(d.low, factor0), b1 = _mm512_mul_ps(d.high, factor1);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const __m512 row = _mm512_set1_ps(a->values[r][k + i]);
                acc[r][0] = _mm512_fmadd_ps(row, b0, acc[r][0]);
                acc[r][1] = _mm512_fmadd_ps(row, b1, acc[r][1]);
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) _mm512_store_ps(sums + r * pitch, acc[r][0]), _mm512_store_ps(sums + r * pitch + 16, acc[r][1]);
}

AVX512_INLINE void multiply_element(bsm_element element, int64_t rows, int64_t length, const void *a, const struct bsmi_few_b *b,
                                    float *sums, int64_t pitch)
{
    if (rows == 1) multiply_rows(element, 1, length, a, b, sums, pitch);
    else if (rows == 2) multiply_rows(element, 2, length, a, b, sums, pitch);
    else multiply_rows(element, 4, length, a, b, sums, pitch);
}

AVX512 static void multiply(int64_t rows, int64_t length, int run, const void *a, const void *right, float *sums, int64_t pitch)
{
    const struct bsmi_few_b *b = right;
    (void)run;
    BSMI_BY_ELEMENT(b->element, multiply_element, rows, length, a, b, sums, pitch)
}

const struct bsmi_panels bsmi_few_terms_panels_avx512 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct bsmi_few_a), .b_bytes = sizeof(struct bsmi_few_b),
    .fits = bsmi_halves_fit, .pack_a = bsmi_few_terms_pack_a, .pack_b = bsmi_few_terms_pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_terms_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};

size_t bsmi_few_terms_scratch_avx512(int64_t rows, int64_t columns)
{
    return bsmi_panels_scratch_bytes(&bsmi_few_terms_panels_avx512, rows, columns);
}
void bsmi_few_terms_sum_avx512(const struct bsmi_tile *tile, void *scratch)
{
    bsmi_panels_sum(&bsmi_few_terms_panels_avx512, tile, scratch);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
