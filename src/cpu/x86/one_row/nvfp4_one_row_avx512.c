/* One row of A by prepacked rows of nvfp4: the bits of bf16_tiles_amx.c.
 *
 * A slice's two chains are computed as they are, by fused multiply-adds of fp32, of 16 rows at a time.  A scale of
 * nvfp4 is multiplied into the number of A, not into that of B, which has to be looked up for each: 8 bits by 4 are
 * exact in fp32, and so the product that the fused multiply-add rounds into the chain is the one of the tiles.  No sum
 * is less than 2^-126 but 0: A's numbers are at least 2^-60.
 *
 * B as it is stored, and rows that this is not for, go to bf16_few_rows_amx.c. */
#if defined(__x86_64__)
#include "panels.h"
#include "row_numbers.h"

#include "core/core.h"
#include "cpu/kernels.h"

enum { STRIP = BSMI_PANEL_ROWS, SLICES = BSMI_PANEL_SLICES, WORDS_OF_SLICE = 4, NAN_SCALE = 0x7f, SUBNORMAL_LIFT = 120 };

struct one_row {
    struct bsmi_row_numbers row;
    _Alignas(64) float numbers[BSMI_ROW_SLICES][BSMI_SLICE];
};

/* e4m3 without a sign at the place of fp32's fields, which is 2^-120 times the scale, also where that is subnormal. */
AVX512_INLINE __m512 scale_numbers(const uint8_t *codes)
{
    const __m512i words = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes));
    return _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(words, 20)),
                         _mm512_castsi512_ps(_mm512_set1_epi32((127 + SUBNORMAL_LIFT) << 23)));
}

/* Eight columns of K of 16 rows. */
AVX512_INLINE void add_word(const uint8_t *codes, __m512 scale, const float *a, __m512 *even, __m512 *odd)
{
    const __m512 values = _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6);
    const __m512i words = _mm512_load_si512(codes);
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++) {                     /* vpermps looks at four bits */
        const __m512 b = _mm512_permutexvar_ps(k == 0 ? words : _mm512_srli_epi32(words, (unsigned)(4 * k)), values),
                     scaled = _mm512_mul_ps(scale, _mm512_set1_ps(a[k]));
        if (k % 2 == 0) *even = _mm512_fmadd_ps(scaled, b, *even);
        else *odd = _mm512_fmadd_ps(scaled, b, *odd);
    }
}

AVX512_INLINE __m512 add_panel(const struct bsmi_nvfp4_panel *panel, const float (*a)[BSMI_SLICE], __m512 total)
{
    bsmi_ask_ahead(panel, sizeof *panel);
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
#pragma GCC unroll 4
        for (int w = 0; w < WORDS_OF_SLICE; w++)
            add_word(panel->codes + (s * WORDS_OF_SLICE + w) * 4 * BSMI_PANEL_ROWS,
                     scale_numbers(panel->scales[2 * s + w / 2]), a[s] + 8 * w, &even, &odd);
        total = _mm512_add_ps(total, _mm512_add_ps(even, odd));
    }
    return total;
}

/* One strip of columns, all of the stretch; false: it has a NaN scale. */
AVX512 static bool add_strip(const struct bsmi_tile *t, const struct one_row *m, int64_t column, int64_t k,
                             int64_t length)
{
    const struct bsmi_nvfp4_panel *panel = bsmi_panel_of(t, sizeof *panel, column, k);
    float *const sums = t->sums + column;             /* whole strips */
    __m512 total = k > 0 ? _mm512_loadu_ps(sums) : _mm512_setzero_ps();
    __m512i most = _mm512_setzero_si512();
    for (int64_t c = 0; c < length; c += BSMI_PANEL_COLUMNS, panel++) {
        total = add_panel(panel, m->numbers + c / BSMI_SLICE, total);
        most = _mm512_max_epu8(most, _mm512_max_epu8(_mm512_load_si512(panel->scales),
                                                     _mm512_load_si512(panel->scales[SLICES])));
    }
    _mm512_storeu_ps(sums, total);
    return _mm512_cmpeq_epi8_mask(most, _mm512_set1_epi8(NAN_SCALE)) == 0;
}

AVX512 static bool add_stretches(const struct bsmi_tile *t, struct one_row *m)
{
    for (int64_t k = 0; k < t->k; k += BSMI_ROW_LENGTH) {
        const int64_t length = BSMI_MIN(BSMI_ROW_LENGTH, t->k - k), whole = bsmi_round_up(length, BSMI_ROW_GROUP);
        if (!bsmi_row_numbers_make(t, k, length, &m->row)) return false;
        for (int64_t i = 0; i < whole; i += BSMI_SLICE / 2)
            _mm512_store_ps(m->numbers[0] + i,
                            _mm512_castsi512_ps(_mm512_slli_epi32(
                                _mm512_cvtepu16_epi32(_mm256_load_si256(
                                    (const __m256i *)(const void *)(m->row.numbers[0] + i))), 16)));
        for (int64_t j = 0; j < t->columns; j += STRIP)
            if (!add_strip(t, m, j, k, length)) return false;
    }
    return true;
}

void bsmi_nvfp4_one_row_avx512(const struct bsmi_tile *tile, void *scratch)
{
    const bool done = tile->prepacked_b != NULL && tile->rows == 1 && tile->k > 0 && !bsmi_row_has_exponent(tile)
                      && add_stretches(tile, scratch);
    if (!done) bsmi_bf16_few_rows_amx(tile, scratch);
}

size_t bsmi_nvfp4_one_row_avx512_scratch_bytes(int64_t rows, int64_t columns)
{
    return BSMI_MAX(sizeof(struct one_row), bsmi_bf16_few_rows_amx_scratch_bytes(rows, columns));
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
