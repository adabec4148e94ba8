/* Any pair, with AVX2, FMA and F16C: S[i][j] = fma(a[i][k] sA[i], b[j][k] sB[j], S[i][j]), k ascending.
 *
 * Panels hold decoded elements times their scales in fp32, which is exact (halves.h); chunks with larger scales take the guarded
 * road.  Register tile: 6 rows x 16 columns; 12 accumulators, 2 vectors of B, 1 of A. */
#if defined(__x86_64__)
#include "halves.h"
#include "lanes_avx2.h"

#define F16C __attribute__((target("avx2,fma,f16c")))
#define F16C_INLINE F16C __attribute__((always_inline)) static inline

enum { ROWS = 6, COLUMNS = 16, CHUNK = BSMI_CHUNK, BLOCKS = CHUNK / BSMI_SHORTEST_RUN, GROUP = 32 };

struct a_panel { _Alignas(64) float values[ROWS][CHUNK + 16]; };      /* 16 more keep the rows in different sets of a cache */
struct b_panel { float values[CHUNK][COLUMNS]; };

/* Packing --------------------------------------------------------------------------------------------------------------- */

struct sixteen { __m256 low, high; };

/* 16 codes, without scale and factor. */
F16C_INLINE struct sixteen decode(const struct bsmi_terms_source *s, __m128i codes)
{
    if (s->integers)
        return (struct sixteen){ _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
                                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(codes, codes))) };
    const __m256i words = _mm256_cvtepu8_epi16(codes),
                  magnitude = _mm256_and_si256(words, _mm256_set1_epi16((short)s->form.magnitude));
    const __m256i sign = _mm256_and_si256(words, _mm256_set1_epi16((short)s->form.sign));
    const __m256i nan = _mm256_cmpeq_epi16(magnitude, _mm256_set1_epi16(s->form.nan != 0 ? (short)s->form.nan : -1));
    const __m256i halves = _mm256_or_si256(_mm256_or_si256(_mm256_sll_epi16(magnitude, _mm_cvtsi32_si128(s->form.magnitude_shift)),
                                                           _mm256_sll_epi16(sign, _mm_cvtsi32_si128(s->form.sign_shift))),
                                           _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
    return (struct sixteen){ _mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                             _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)) };
}

F16C static void pack_a(const struct bsmi_part *part, const struct bsmi_operand *b, int run, void *memory)
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
        for (int64_t k = 0; k < part->length; k += 16) {
            const struct sixteen v = decode(&s, _mm_loadu_si128((const __m128i *)(const void *)(bytes.rows[r] + k)));
            const __m256 factor = _mm256_set1_ps(factors[k / s.block * ROWS + r]);
            _mm256_storeu_ps(panel->values[r] + k, _mm256_mul_ps(v.low, factor));
            _mm256_storeu_ps(panel->values[r] + k + 8, _mm256_mul_ps(v.high, factor));
        }
}

F16C_INLINE void store_columns(const struct bsmi_terms_source *s, __m128i codes, const float *factors, float *to)
{
    const struct sixteen v = decode(s, codes);
    _mm256_store_ps(to, _mm256_mul_ps(v.low, _mm256_loadu_ps(factors)));
    _mm256_store_ps(to + 8, _mm256_mul_ps(v.high, _mm256_loadu_ps(factors + 8)));
}

/* Codes are transposed as bytes, 16 columns of B by 32 of K at a time, and decoded in the order of the panel. */
F16C static void pack_b(const struct bsmi_part *part, int run, void *memory)
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
    for (int64_t k = 0; k < part->length; k += GROUP) {
        __m256i v[16];
        if (k % 64 == 0) bsmi_prefetch_rows(bytes.rows, COLUMNS, k + CHUNK);
        for (int c = 0; c < 16; c++) v[c] = _mm256_loadu_si256((const __m256i *)(const void *)(bytes.rows[c] + k));
        transpose_bytes(v);
        const float *first = factors + k / s.block * COLUMNS, *second = factors + (k + 16) / s.block * COLUMNS;
        for (int i = 0; i < 16; i++) store_columns(&s, _mm256_castsi256_si128(v[i]), first, panel->values[k + i]);
        if (k + 16 >= part->length) break;
        for (int i = 0; i < 16; i++) store_columns(&s, _mm256_extracti128_si256(v[i], 1), second, panel->values[k + 16 + i]);
    }
}

/* Multiplying ----------------------------------------------------------------------------------------------------------- */

F16C static void multiply(int64_t length, int run, const void *left, const void *right, float *sums, int64_t pitch)
{
    const struct a_panel *a = left;
    const struct b_panel *b = right;
    __m256 acc[ROWS][2];
    (void)run;
#pragma GCC unroll 6
    for (int i = 0; i < ROWS; i++) {
        acc[i][0] = _mm256_load_ps(sums + i * pitch);
        acc[i][1] = _mm256_load_ps(sums + i * pitch + 8);
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < length; k++) {
        const __m256 b0 = _mm256_load_ps(b->values[k]), b1 = _mm256_load_ps(b->values[k] + 8);
#pragma GCC unroll 6
        for (int i = 0; i < ROWS; i++) {
            const __m256 row = _mm256_broadcast_ss(&a->values[i][k]);
            acc[i][0] = _mm256_fmadd_ps(row, b0, acc[i][0]);
            acc[i][1] = _mm256_fmadd_ps(row, b1, acc[i][1]);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < ROWS; i++) {
        _mm256_store_ps(sums + i * pitch, acc[i][0]);
        _mm256_store_ps(sums + i * pitch + 8, acc[i][1]);
    }
}

const struct bsmi_panels bsmi_terms_panels_avx2 = {
    .rows = ROWS, .columns = COLUMNS, .chunk = CHUNK, .a_bytes = sizeof(struct a_panel), .b_bytes = sizeof(struct b_panel),
    .fits = bsmi_halves_fit, .pack_a = pack_a, .pack_b = pack_b, .multiply = multiply,
    .guarded = bsmi_tile_add_terms_avx2_fma, .guarded_scratch_bytes = bsmi_tile_scratch_avx2_fma,
};

size_t bsmi_terms_scratch_avx2(int64_t rows, int64_t columns)
{
    return bsmi_panels_scratch_bytes(&bsmi_terms_panels_avx2, rows, columns);
}
void bsmi_terms_sum_avx2(const struct bsmi_tile *tile, void *scratch) { bsmi_panels_sum(&bsmi_terms_panels_avx2, tile, scratch); }
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
