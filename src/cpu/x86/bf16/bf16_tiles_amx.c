/* Products of bf16 rows by AMX's tiles: TDPBF16PS multiplies 16 rows by 16 columns, 32 of K at a time.  tiles_amx.h has
 * the loops around it.
 *
 * The order of sums is the unit's (docs/guide/numerics.md): slices of 32 columns of K ascending from the first one on,
 * however K is cut here, so that an element's bits depend on nothing but its rows. */
#if defined(__x86_64__)
#include "bf16_tiles_avx512.h"
#include "cpu/kernels.h"
#include "cpu/x86/tiles_amx.h"

enum { SLICE_BYTES = BSMI_AMX_SLICE_BYTES };

/* What a register tile reads: slices of A's panel (rows: 16 or 32 of them) and of B's, term by term. */
struct panels { const unsigned char *a, *b; };

BSMI_AMX_INLINE void multiply_slices(int sixteens, int a_terms, int b_terms, const struct bsmi_amx_strip *strip)
{
    struct panels p = { strip->a, strip->b };
    for (int64_t s = 0; s < strip->slices; s++) {
        bsmi_amx_ask_ahead(strip, s);
        for (int i = 0; i < a_terms; i++)
            for (int j = 0; j < b_terms; j++)
                BSMI_AMX_MULTIPLY_SLICE(BSMI_TILE_DOT_BF16, sixteens, p.a + i * sixteens * BSMI_TILE_BYTES,
                                        p.b + j * SLICE_BYTES);
        p.a += a_terms * sixteens * BSMI_TILE_BYTES, p.b += b_terms * SLICE_BYTES;
    }
}

/* sums[16 or 32][32] (+)= A's panel times B's. */
BSMI_AMX_INLINE void multiply_sixteens(int sixteens, const struct bsmi_amx_job *job,
                                       const struct bsmi_amx_strip *strip)
{
    bsmi_amx_begin_sums(sixteens, strip);
    if (job->a_terms == 1 && job->b_terms == 1) multiply_slices(sixteens, 1, 1, strip);
    else multiply_slices(sixteens, job->a_terms, job->b_terms, strip);
    bsmi_amx_end_sums(sixteens, strip);
}

BSMI_AMX static void multiply(const struct bsmi_amx_job *job, const struct bsmi_amx_strip *strip)
{
    if (strip->sixteens == 2) multiply_sixteens(2, job, strip);
    else multiply_sixteens(1, job, strip);
}

static void pack_a(const struct bsmi_part *part, int sixteens, int terms, void *panel)
{
    bsmi_bf16_row_tiles_vbmi(part, sixteens, terms, panel);
}

static void pack_b(const struct bsmi_part *part, int sixteens, int terms, void *panel)
{
    bsmi_bf16_column_tiles_vbmi(part, sixteens, terms, panel);
}

void bsmi_bf16_tiles_amx(const struct bsmi_tile *tile, void *scratch)
{
    static const struct bsmi_amx_kernel kernel = { BSMI_SLICE, pack_a, pack_b, multiply };
    const struct bsmi_bf16_exponents exponents = bsmi_bf16_find_exponents(tile, scratch);
    const struct bsmi_amx_job job = { &kernel, tile, exponents, exponents.a, exponents.b,
                                      bsmi_bf16_terms(tile->a.matrix->element),
                                      bsmi_bf16_terms(tile->b.matrix->element), NULL };
    if (tile->k == 0) {
        bsmi_clear_sums(tile);
        if (tile->finish != NULL) tile->finish(tile->finish_argument, 0, tile->rows, tile->sums);
        return;
    }
    bsmi_amx_sum(&job, (unsigned char *)scratch + bsmi_bf16_exponents_bytes(tile->rows, tile->columns));
}

size_t bsmi_bf16_tiles_amx_scratch_bytes(int64_t rows, int64_t columns)
{
    return bsmi_bf16_exponents_bytes(rows, columns) + bsmi_amx_scratch_bytes(rows, columns);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
