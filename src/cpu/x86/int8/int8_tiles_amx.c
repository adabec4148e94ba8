/* Products of small integers by AMX's tiles, with the bits of bf16_tiles_amx.c: TDPBSSD multiplies 16 rows by 16
 * columns, 64 of K in the 16 cycles that 32 take as bf16.  tiles_amx.h has the loops around it.
 *
 * A tile of S goes this way where its rows are rows of int8 numbers whose sums fp32 holds (int8_rows_avx512.h).  Then
 * the sums of the bf16 tiles are exact, in their order as in any, and so are these, as 32-bit integers; times the
 * powers of two of both rows they are the same fp32 numbers, +0 where they are zero.  Other tiles are computed as bf16:
 * an element's bits depend on its two rows alone, whichever way its tile goes. */
#if defined(__x86_64__)
#include "core/core.h"
#include "cpu/kernels.h"
#include "cpu/x86/halves_avx512.h"
#include "cpu/x86/tiles_amx.h"
#include "int8_rows_avx512.h"
#include "int8_tiles_avx512.h"

/* What sums are multiplied by: a row's, a column's, the latter up to whole strips. */
struct factors { const float *rows, *columns; };

BSMI_AMX_INLINE void multiply_sixteens(int sixteens, const struct bsmi_amx_strip *strip)
{
    const unsigned char *a = strip->a, *b = strip->b;
    bsmi_amx_begin_sums(sixteens, strip);
    for (int64_t s = 0; s < strip->slices; s++) {
        bsmi_amx_ask_ahead(strip, s);
        BSMI_AMX_MULTIPLY_SLICE(BSMI_TILE_DOT_INT8, sixteens, a, b);
        a += sixteens * BSMI_TILE_BYTES, b += BSMI_AMX_SLICE_BYTES;
    }
    bsmi_amx_end_sums(sixteens, strip);
}

/* Integers, in place, into numbers: exactly.  One factor after the other: one of a row of zeros may be large. */
AVX512 static void convert_sums(const struct factors *factors, const struct bsmi_amx_strip *strip)
{
    const __m512 columns[2] = { _mm512_loadu_ps(factors->columns + strip->column),
                                _mm512_loadu_ps(factors->columns + strip->column + 16) };
    for (int i = 0; i < 16 * strip->sixteens; i++) {
        float *const sums = strip->sums + i * strip->pitch;
        const __m512 row = _mm512_set1_ps(factors->rows[strip->row + i]);
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            const __m512 number = _mm512_cvtepi32_ps(_mm512_load_si512(sums + 16 * j));
            _mm512_store_ps(sums + 16 * j, _mm512_mul_ps(_mm512_mul_ps(number, columns[j]), row));
        }
    }
}

BSMI_AMX static void multiply(const struct bsmi_amx_job *job, const struct bsmi_amx_strip *strip)
{
    if (strip->sixteens == 2) multiply_sixteens(2, strip);
    else multiply_sixteens(1, strip);
    if (strip->last) convert_sums(job->argument, strip);
}

static void pack_a(const struct bsmi_part *part, int sixteens, int terms, void *panel)
{
    (void)terms;
    bsmi_int8_row_tiles_avx512(part, sixteens, panel);
}

static void pack_b(const struct bsmi_part *part, int sixteens, int terms, void *panel)
{
    (void)terms;
    bsmi_int8_column_tiles_avx512(part, sixteens, panel);
}

/* Scratch: codes of least scales, exponents, factors, the loops'.  Rows are strips of 32, as columns are. */

static size_t least_bytes(int64_t rows, int64_t columns) { return bsmi_bf16_exponents_bytes(rows, columns); }

static size_t factors_bytes(int64_t rows, int64_t columns)
{
    const int64_t numbers = bsmi_round_up(rows, BSMI_AMX_STRIP) + bsmi_round_up(columns, BSMI_AMX_STRIP);
    return (size_t)bsmi_round_up(numbers * (int64_t)sizeof(float), BSMI_ALIGNMENT);
}

static struct factors make_factors(const struct bsmi_tile *tile, const int16_t *least,
                                   const struct bsmi_bf16_exponents *exponents, float *memory)
{
    float *const columns = memory + bsmi_round_up(tile->rows, BSMI_AMX_STRIP);
    memset(memory, 0, factors_bytes(tile->rows, tile->columns));
    bsmi_int8_row_factors(tile->a.matrix->element, least, exponents->a, tile->rows, memory);
    bsmi_int8_row_factors(tile->b.matrix->element, least + tile->rows, exponents->b, tile->columns, columns);
    return (struct factors){ memory, columns };
}

void bsmi_int8_tiles_amx(const struct bsmi_tile *tile, void *scratch)
{
    static const struct bsmi_amx_kernel kernel = { BSMI_INT8_SLICE, pack_a, pack_b, multiply };
    int16_t *const least = scratch;
    unsigned char *memory = (unsigned char *)scratch + least_bytes(tile->rows, tile->columns);
    if (tile->k == 0 || !bsmi_int8_rows_find(tile, least)) {
        bsmi_bf16_tiles_amx(tile, scratch);
        return;
    }
    const struct bsmi_bf16_exponents exponents = bsmi_bf16_find_exponents(tile, memory);
    memory += bsmi_bf16_exponents_bytes(tile->rows, tile->columns);
    const struct factors factors = make_factors(tile, least, &exponents, (float *)(void *)memory);
    memory += factors_bytes(tile->rows, tile->columns);
    const struct bsmi_amx_job job = { &kernel, tile, exponents, least, least + tile->rows, 1, 1, &factors };
    bsmi_amx_sum(&job, memory);
}

size_t bsmi_int8_tiles_amx_scratch_bytes(int64_t rows, int64_t columns)
{
    return least_bytes(rows, columns) + factors_bytes(rows, columns) + bsmi_bf16_tiles_amx_scratch_bytes(rows, columns);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
