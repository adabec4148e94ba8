/* One row of A by prepacked rows of nvfp4: the bits of bf16_tiles_amx.c.
 *
 * A slice's two chains are computed as they are, by fused multiply-adds of fp32, of 16 rows at a time.  A scale of
 * nvfp4 is multiplied into the number of A, not into that of B, which has to be looked up for each: 8 bits by 4 are
 * exact in fp32, and so the product that the fused multiply-add rounds into the chain is the one of the tiles.  No sum
 * is less than 2^-126 but 0: A's numbers are at least 2^-60.  The first block of most slices takes fewer steps: its
 * sums are integers times the scale (int8_digits_avx512.h).
 *
 * B as it is stored, and rows that this is not for, go to bf16_few_rows_amx.c. */
#if defined(__x86_64__)
#include "panels.h"
#include "row_numbers.h"

#include "core/core.h"
#include "cpu/kernels.h"
#include "cpu/x86/int8/int8_digits_avx512.h"

#define DOT __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vnni")))
#define DOT_INLINE DOT __attribute__((always_inline)) static inline

enum { STRIP = BSMI_PANEL_ROWS, SLICES = BSMI_PANEL_SLICES, WORDS_OF_SLICE = 4, WORD_BYTES = 64,
       NAN_SCALE = 0x7f, SUBNORMAL_LIFT = 120 };

struct one_row {
    struct bsmi_row_numbers row;
    _Alignas(64) float numbers[BSMI_ROW_SLICES][BSMI_SLICE];
    struct bsmi_first_blocks first;
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

/* Both chains of the first 16 columns of K, two words of codes. */
DOT_INLINE void sum_first_block(const uint8_t *codes, __m512 scale, const struct bsmi_first_blocks *a, int64_t slice,
                                __m512 chains[2])
{
    const __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4,
                                                               0));
    const __m512 unit = _mm512_mul_ps(scale, _mm512_set1_ps(a->half_units[slice]));
    __m512i sums[2][BSMI_FIRST_DIGITS] = { { _mm512_set1_epi32(a->offsets[slice][0]), _mm512_setzero_si512() },
                                           { _mm512_set1_epi32(a->offsets[slice][1]), _mm512_setzero_si512() } };
#pragma GCC unroll 2
    for (int w = 0; w < WORDS_OF_SLICE / 2; w++) {
        const __m512i words = _mm512_load_si512(codes + w * WORD_BYTES),
                      b[2] = { _mm512_permutexvar_epi8(words, table),
                               _mm512_permutexvar_epi8(_mm512_srli_epi16(words, 4), table) };
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            int32_t four;
            memcpy(&four, a->digits[slice][i / 2][i % 2] + 4 * w, sizeof four);
            sums[i / 2][i % 2] = _mm512_dpbusd_epi32(sums[i / 2][i % 2], b[i / 2], _mm512_set1_epi32(four));
        }
    }
#pragma GCC unroll 2
    for (int parity = 0; parity < 2; parity++)
        chains[parity] = _mm512_mul_ps(
            _mm512_cvtepi32_ps(_mm512_add_epi32(sums[parity][0], _mm512_slli_epi32(sums[parity][1], 8))), unit);
}

DOT_INLINE __m512 add_panel(const struct bsmi_nvfp4_panel *panel, const struct one_row *m, int64_t slice, __m512 total)
{
    bsmi_ask_ahead(panel, sizeof *panel);
#pragma GCC unroll 4
    for (int s = 0; s < SLICES; s++) {
        const uint8_t *const codes = panel->codes + s * WORDS_OF_SLICE * WORD_BYTES;
        const float *const a = m->numbers[slice + s];
        const __m512 scales[2] = { scale_numbers(panel->scales[2 * s]), scale_numbers(panel->scales[2 * s + 1]) };
        __m512 chains[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
        if (m->first.whole[slice + s]) {
            sum_first_block(codes, scales[0], &m->first, slice + s, chains);
        } else {
            add_word(codes, scales[0], a, &chains[0], &chains[1]);
            add_word(codes + WORD_BYTES, scales[0], a + 8, &chains[0], &chains[1]);
        }
        add_word(codes + 2 * WORD_BYTES, scales[1], a + 16, &chains[0], &chains[1]);
        add_word(codes + 3 * WORD_BYTES, scales[1], a + 24, &chains[0], &chains[1]);
        total = _mm512_add_ps(total, _mm512_add_ps(chains[0], chains[1]));
    }
    return total;
}

/* One strip of columns, all of the stretch; false: it has a NaN scale. */
DOT static bool add_strip(const struct bsmi_tile *t, const struct one_row *m, int64_t column, int64_t k,
                             int64_t length)
{
    const struct bsmi_nvfp4_panel *panel = bsmi_panel_of(t, sizeof *panel, column, k);
    float *const sums = t->sums + column;             /* whole strips */
    __m512 total = k > 0 ? _mm512_loadu_ps(sums) : _mm512_setzero_ps();
    __m512i most = _mm512_setzero_si512();
    for (int64_t c = 0; c < length; c += BSMI_PANEL_COLUMNS, panel++) {
        total = add_panel(panel, m, c / BSMI_SLICE, total);
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
        bsmi_first_blocks_make(&m->row, whole / BSMI_SLICE, &m->first);
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
