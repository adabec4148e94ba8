/* What int8_rows_avx512.h says.  Scales are looked at 16 rows and 16 blocks at a time. */
#if defined(__x86_64__)
#include "int8_rows_avx512.h"

#include "core/core.h"
#include "cpu/code_rows.h"
#include "cpu/x86/bf16/bf16_columns_avx512.h"
#include "matrix/rows.h"

enum { ROWS = 16, NAN_SCALE = 255, E8M0_BIAS = 127 };

/* The unit of the grid is 2^-grid. */
struct integers { int grid, largest, span; };

static struct integers integers_of(bsm_element element)
{
    switch (element) {
    case BSM_E2M1: return (struct integers){ 1, 12, 3 };
    case BSM_E2M3: return (struct integers){ 3, 60, 1 };
    default: return (struct integers){ 6, 128, 0 };
    }
}

/* Of some blocks of a row: the least and the largest code of their scales, and the sum of 4^(code - least), which is
 * right where they span at most 3. */
struct scales { int least, most; double fours; };
static const struct scales no_scales = { NAN_SCALE, 0, 0 };

/* In units of another least code. */
static double in_units(const struct scales *s, int least)
{
    return s->fours == 0 ? 0 : s->fours * bsmi_double_power_of_two(2 * (s->least - least));
}

static struct scales join(const struct scales *a, const struct scales *b)
{
    const int least = BSMI_MIN(a->least, b->least);
    return (struct scales){ least, BSMI_MAX(a->most, b->most), in_units(a, least) + in_units(b, least) };
}

/* Sixteen rows ------------------------------------------------------------------------------------------------------*/

/* Four rows a vector, one in each quarter (load_sixteens): which bytes are codes of `left` blocks. */
AVX512_INLINE __mmask64 first_of_quarters(int64_t left)
{
    return 0x0001000100010001ULL * (left >= 16 ? 0xffffu : (1u << left) - 1);
}

/* Every byte of a quarter becomes the least (largest) one of its bytes. */
AVX512_INLINE __m512i least_of_quarters(__m512i v)
{
    v = _mm512_min_epu8(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
    v = _mm512_min_epu8(v, _mm512_shuffle_epi32(v, _MM_PERM_CDAB));
    v = _mm512_min_epu8(v, _mm512_rol_epi32(v, 16));
    return _mm512_min_epu8(v, _mm512_rol_epi32(v, 8));
}

AVX512_INLINE __m512i largest_of_quarters(__m512i v)
{
    const __m512i ones = _mm512_set1_epi8(-1);
    return _mm512_xor_si512(least_of_quarters(_mm512_xor_si512(v, ones)), ones);
}

/* 4^(code - least), in bytes: 0 behind the last. */
AVX512_INLINE __m512i fours_of(__m512i codes, __m512i least, __mmask64 there)
{
    const __m512i powers = _mm512_set1_epi32(1 | 4 << 8 | 16 << 16 | 64 << 24);
    const __m512i shifts = _mm512_and_si512(_mm512_sub_epi8(codes, least), _mm512_set1_epi8(3));
    return _mm512_maskz_shuffle_epi8(there, powers, shifts);
}

AVX512_INLINE void find_ends(const uint8_t *const *rows, int64_t blocks, __m512i least[4], __m512i most[4])
{
    const __m512i all = _mm512_set1_epi8(-1);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) least[i] = all, most[i] = _mm512_setzero_si512();
    for (int64_t s = 0; s < blocks; s += 16) {
        const __mmask64 there = first_of_quarters(blocks - s);
        __m512i codes[4];
        load_sixteens(rows, s, codes);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            least[i] = _mm512_mask_min_epu8(least[i], there, least[i], codes[i]);
            most[i] = _mm512_mask_max_epu8(most[i], there, most[i], codes[i]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) least[i] = least_of_quarters(least[i]), most[i] = largest_of_quarters(most[i]);
}

/* Two numbers in each quarter. */
AVX512_INLINE void sum_fours(const uint8_t *const *rows, int64_t blocks, const __m512i least[4], __m512i sums[4])
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) sums[i] = _mm512_setzero_si512();
    for (int64_t s = 0; s < blocks; s += 16) {
        const __mmask64 there = first_of_quarters(blocks - s);
        __m512i codes[4];
        load_sixteens(rows, s, codes);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            sums[i] = _mm512_add_epi64(sums[i], _mm512_sad_epu8(fours_of(codes[i], least[i], there),
                                                                _mm512_setzero_si512()));
    }
}

AVX512 static void look_at_scales(const uint8_t *const *rows, int64_t blocks, struct scales *found)
{
    __m512i least[4], most[4], sums[4];
    find_ends(rows, blocks, least, most);
    sum_fours(rows, blocks, least, sums);
    for (int i = 0; i < 4; i++) {                    /* quarter q of vector i has row 4 q + i */
        _Alignas(64) uint8_t low[4][16], high[4][16];
        _Alignas(64) uint64_t fours[4][2];
        _mm512_store_si512(low, least[i]);
        _mm512_store_si512(high, most[i]);
        _mm512_store_si512(fours, sums[i]);
        for (int q = 0; q < 4; q++)
            found[4 * q + i] = (struct scales){ low[q][0], high[q][0], (double)(fours[q][0] + fours[q][1]) };
    }
}

/* Of a row that has scales apart from one another: without those of blocks of zeros. */
static struct scales of_nonzero_blocks(const struct bsmi_matrix *m, int64_t batch, int64_t row, int span, int64_t k)
{
    struct scales all = no_scales;
    for (int64_t s = 0; s * m->block < k; s++) {
        uint8_t code;
        bsmi_row_scales(m, batch, row, s, 1, &code);
        if (bsmi_block_is_zero(m, batch, row, s, k)) continue;
        const struct scales one = { code, code, 1 };
        all = join(&all, &one);
        if (all.most - all.least > span) break;
    }
    return all;
}

/* The tile ----------------------------------------------------------------------------------------------------------*/

/* Rows [first, first + count) of an operand, the tile's K. */
struct rows { const struct bsmi_operand *operand; int64_t batch, first, count, split, k; };

static void scales_of_sixteen(const struct rows *rows, int64_t first, int64_t count, struct scales *all)
{
    struct bsmi_scale_code_rows codes;
    for (int r = 0; r < ROWS; r++) all[r] = no_scales;
    for (int64_t k = 0; k < rows->k; k += BSMI_ROW_CHUNK) {
        const struct bsmi_part part = { *rows->operand, rows->batch, rows->first + first, count, rows->split, k,
                                        BSMI_MIN(BSMI_ROW_CHUNK, rows->k - k), NULL };
        struct scales some[ROWS];
        look_at_scales(codes.rows, bsmi_scale_code_rows(&part, ROWS, &codes), some);
        for (int r = 0; r < ROWS; r++) all[r] = join(&all[r], &some[r]);
    }
}

/* The largest n of the rows; negative if one of them is no row of int8. */
static double find_rows(const struct rows *rows, int16_t *least)
{
    const struct bsmi_matrix *m = rows->operand->matrix;
    const struct integers integers = integers_of(m->element);
    double most = 0;
    for (int64_t i = 0; i < rows->count; i += ROWS) {
        const int64_t count = BSMI_MIN(ROWS, rows->count - i);
        struct scales found[ROWS];
        scales_of_sixteen(rows, i, count, found);
        for (int64_t r = 0; r < count; r++) {
            struct scales *const s = &found[r];
            if (s->most == NAN_SCALE) return -1;
            if (s->most - s->least > integers.span)
                *s = of_nonzero_blocks(m, rows->batch, bsmi_source_column(rows->first + i + r, rows->split),
                                       integers.span, rows->k);
            if (s->most - s->least > integers.span) return -1;
            least[i + r] = (int16_t)s->least;
            most = BSMI_MAX(most, s->fours);
        }
    }
    return most * m->block * integers.largest * integers.largest;
}

bool bsmi_int8_rows_find(const struct bsmi_tile *tile, int16_t *least)
{
    const struct rows a = { &tile->a, tile->a_batch, tile->row, tile->rows, 0, tile->k },
                      b = { &tile->b, tile->b_batch, tile->column, tile->columns, tile->split, tile->k };
    const double of_a = find_rows(&a, least), of_b = of_a < 0 ? -1 : find_rows(&b, least + tile->rows);
    return of_b >= 0 && of_a * of_b <= 0x1p48;
}

void bsmi_int8_row_factors(bsm_element element, const int16_t *least, const int16_t *exponents, int64_t count,
                           float *factors)
{
    const int grid = integers_of(element).grid;
    for (int64_t r = 0; r < count; r++) {
        const int exponent = least[r] - E8M0_BIAS - grid - (exponents == NULL ? 0 : exponents[r]);
        factors[r] = bsmi_float_power_of_two(BSMI_MAX(-126, BSMI_MIN(exponent, 127)));
    }
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
