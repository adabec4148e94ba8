/* Any pair, with AVX-512: S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j]), k ascending.
 *
 * Panels hold decoded elements times their scales in fp32, which is exact (halves.h); chunks with larger scales take the guarded
 * road.  Register tile: 14 rows x 32 columns; 28 accumulators, 2 vectors of B, 1 of A: 31 of 32 registers. */
#if defined(__x86_64__)
#include "halves.h"
#include "lanes_avx2.h"

#define AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")))
#define AVX512_INLINE AVX512 __attribute__((always_inline)) static inline

enum { ROWS = 14, COLUMNS = 32, CHUNK = BSMI_CHUNK, BLOCKS = CHUNK / BSMI_SHORTEST_RUN };

struct a_panel { _Alignas(64) float values[ROWS][CHUNK + 16]; };      /* 16 more keep the rows in different sets of a cache */
struct b_panel { float values[CHUNK][COLUMNS]; };

/* Packing --------------------------------------------------------------------------------------------------------------- */

/* 32 codes times factors, into floats. */
AVX512_INLINE void decode(const struct bsmi_terms_source *s, __m256i codes, __m512 factor0, __m512 factor1, float *to)
{
    __m512 low, high;
    if (s->integers) {
        low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(codes)));
        high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(codes, 1)));
    } else {
        const __m512i words = _mm512_cvtepu8_epi16(codes),
                      magnitude = _mm512_and_si512(words, _mm512_set1_epi16((short)s->form.magnitude));
        const __m512i sign = _mm512_and_si512(words, _mm512_set1_epi16((short)s->form.sign));
        const __mmask32 nan = _mm512_cmpeq_epi16_mask(magnitude, _mm512_set1_epi16(s->form.nan != 0 ? (short)s->form.nan : -1));
        const __m512i halves = _mm512_or_si512(_mm512_sll_epi16(magnitude, _mm_cvtsi32_si128(s->form.magnitude_shift)),
                                               _mm512_sll_epi16(sign, _mm_cvtsi32_si128(s->form.sign_shift)));
        const __m512i numbers = _mm512_mask_mov_epi16(halves, nan, _mm512_set1_epi16(0x7e00));
        low = _mm512_cvtph_ps(_mm512_castsi512_si256(numbers));
        high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(numbers, 1));
    }
    _mm512_storeu_ps(to, _mm512_mul_ps(low, factor0));
    _mm512_storeu_ps(to + 16, _mm512_mul_ps(high, factor1));
}

AVX512 static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int run, void *memory)
{
    struct a_panel *panel = memory;
    const struct bsmi_matrix *m = part->operand.matrix;
    (void)b, (void)run;
    if (m->bits > 8) {
        for (int r = 0; r < part->count; r++)
            bsmi_row_elements(m, NULL, part->batch, part->first + r, part->k, part->length, panel->values[r]);
        return;
    }
    const struct bsmi_terms_source s = bsmi_terms_source(part);
    struct bsmi_byte_rows bytes;
    float factors[BLOCKS * ROWS];
    bsmi_byte_rows(part, ROWS, &bytes);
    bsmi_make_factors(part, &s, ROWS, factors);
    for (int r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < part->length; k += 32)
            decode(&s, _mm256_loadu_si256((const __m256i *)(const void *)(bytes.rows[r] + k)),
                   _mm512_set1_ps(factors[k / s.block * ROWS + r]), _mm512_set1_ps(factors[(k + 16) / s.block * ROWS + r]),
                   panel->values[r] + k);
}

/* Codes are transposed as bytes, 32 columns of B by 16 of K at a time, and decoded in the order of the panel. */
AVX512 static void pack_b(const struct bsmi_part *part, int run, void *memory)
{
    struct b_panel *panel = memory;
    (void)run;
    if (part->operand.matrix->bits > 8) {
        bsmi_pack_elements(part, COLUMNS, panel->values[0]);
        return;
    }
    const struct bsmi_terms_source s = bsmi_terms_source(part);
    struct bsmi_byte_rows bytes;
    float factors[BLOCKS * COLUMNS];
    bsmi_byte_rows(part, COLUMNS, &bytes);
    bsmi_make_factors(part, &s, COLUMNS, factors);
    for (int64_t k = 0; k < part->length; k += 16) {
        __m256i v[16];
        if (k % 64 == 0) bsmi_prefetch_rows(bytes.rows, COLUMNS, k + CHUNK);
        for (int c = 0; c < 16; c++) v[c] = load_two(bytes.rows[c] + k, bytes.rows[c + 16] + k);
        transpose_bytes(v);
        const float *of_block = factors + k / s.block * COLUMNS;
        const __m512 factor0 = _mm512_loadu_ps(of_block), factor1 = _mm512_loadu_ps(of_block + 16);
        for (int i = 0; i < 16; i++) decode(&s, v[i], factor0, factor1, panel->values[k + i]);
    }
}

/* Multiplying ----------------------------------------------------------------------------------------------------------- */

AVX512 static void multiply(int64_t length, int run, const void *left, const void *right, float *sums, int64_t pitch)
{
    const struct a_panel *a = left;
    const struct b_panel *b = right;
    __m512 acc[ROWS][2];
    (void)run;
#pragma GCC unroll 14
    for (int i = 0; i < ROWS; i++) {
        acc[i][0] = _mm512_load_ps(sums + i * pitch);
        acc[i][1] = _mm512_load_ps(sums + i * pitch + 16);
    }
    for (int64_t k = 0; k < length; k++) {
        const __m512 b0 = _mm512_load_ps(b->values[k]), b1 = _mm512_load_ps(b->values[k] + 16);
#pragma GCC unroll 14
        for (int i = 0; i < ROWS; i++) {
            const __m512 row = _mm512_set1_ps(a->values[i][k]);
            acc[i][0] = _mm512_fmadd_ps(row, b0, acc[i][0]);
            acc[i][1] = _mm512_fmadd_ps(row, b1, acc[i][1]);
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < ROWS; i++) {
        _mm512_store_ps(sums + i * pitch, acc[i][0]);
        _mm512_store_ps(sums + i * pitch + 16, acc[i][1]);
    }
}

const struct bsmi_panels bsmi_terms_panels_avx512 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel), .b_bytes = sizeof(struct b_panel),
    .fits = bsmi_halves_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_terms_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};

size_t bsmi_terms_scratch_avx512(int64_t rows, int64_t columns)
{
    return bsmi_panels_scratch_bytes(&bsmi_terms_panels_avx512, rows, columns);
}
void bsmi_terms_sum_avx512(const struct bsmi_tile *tile, void *scratch)
{
    bsmi_panels_sum(&bsmi_terms_panels_avx512, tile, scratch);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
