/* Products of bf16 rows by AMX's tiles: TDPBF16PS multiplies 16 rows by 16 columns, 32 of K at a time.
 *
 * A tile of S is cut into strips of 32 rows and of 32 columns.  Of B, a stretch of K of all the tile's columns is
 * packed at once and stays in the second-level cache (1 MiB of its 2); of A, a strip and a chunk of K of 512 (32 KiB),
 * which stays in the first-level cache while all strips of B pass.  So both are packed few times: A once for each 1,024
 * or so columns, B, which is dearer (the unit wants pairs of k of 16 columns side by side), once for all rows of the
 * tile.
 *
 * Register tile: 2 x 2 tiles of sums, two tiles of A, two of B: four products for four loads.  A product takes 16
 * cycles, a load 8 from the first-level cache; so those loads are hidden, and B is asked for two slices ahead.  Sums
 * are loaded and stored once a chunk: 8 of 136 operations on tiles.
 *
 * The order of sums is the unit's (docs/guide/numerics.md): slices of 32 columns of K ascending from the first one on,
 * however K is cut here, so that an element's bits depend on nothing but its rows. */
#if defined(__x86_64__)
#include "amx.h"
#include "bf16_tiles_avx512.h"
#include "core/core.h"
#include "cpu/bf16_sums.h"
#include "cpu/kernels.h"

#define AMX_INLINE BSMI_AMX __attribute__((always_inline)) static inline

enum {
    STRIP = 32, SIXTEENS = STRIP / 16, SLICE = 32, SLICE_BYTES = SIXTEENS * BSMI_TILE_BYTES,
    SLICES_AHEAD = 2, CHUNK = 512, MOST_STRETCH = 2048, A_BYTES = STRIP * CHUNK * 2, B_BYTES = 1 << 20,
};

/* Register tiles --------------------------------------------------------------------------------------------------- */

/* What a register tile reads: slices of A's panel (rows: 16 or 32 of them) and of B's, term by term. */
struct panels { const unsigned char *a, *b; };

AMX_INLINE void load_sums(int sixteens, const float *sums, ptrdiff_t pitch)
{
    BSMI_TILE_LOAD(0, sums, pitch);
    BSMI_TILE_LOAD(1, sums + 16, pitch);
    if (sixteens == 1) return;
    BSMI_TILE_LOAD(2, (const unsigned char *)sums + 16 * pitch, pitch);
    BSMI_TILE_LOAD(3, (const unsigned char *)(sums + 16) + 16 * pitch, pitch);
}

AMX_INLINE void clear_sums(int sixteens)
{
    BSMI_TILE_ZERO(0);
    BSMI_TILE_ZERO(1);
    if (sixteens == 1) return;
    BSMI_TILE_ZERO(2);
    BSMI_TILE_ZERO(3);
}

AMX_INLINE void store_sums(int sixteens, float *sums, ptrdiff_t pitch)
{
    BSMI_TILE_STORE(0, sums, pitch);
    BSMI_TILE_STORE(1, sums + 16, pitch);
    if (sixteens == 1) return;
    BSMI_TILE_STORE(2, (unsigned char *)sums + 16 * pitch, pitch);
    BSMI_TILE_STORE(3, (unsigned char *)(sums + 16) + 16 * pitch, pitch);
}

/* A slice of B into the first-level cache.  Nothing is read, and what lies behind the panel does no harm. */
AMX_INLINE void ask_for_b(const unsigned char *b)
{
#pragma GCC unroll 32
    for (int i = 0; i < SLICE_BYTES; i += 64) __builtin_prefetch((const void *)((uintptr_t)b + (uintptr_t)i));
}

/* One slice of one term of A times one of B. */
AMX_INLINE void multiply_slice(int sixteens, const unsigned char *a, const unsigned char *b)
{
    ask_for_b(b + SLICES_AHEAD * SLICE_BYTES);
    BSMI_TILE_LOAD(6, b, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_LOAD(4, a, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(0, 4, 6);
    BSMI_TILE_LOAD(7, b + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(1, 4, 7);
    if (sixteens == 1) return;
    BSMI_TILE_LOAD(5, a + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(2, 5, 6);
    BSMI_TILE_DOT_BF16(3, 5, 7);
}

AMX_INLINE void multiply_slices(int sixteens, int a_terms, int b_terms, int64_t slices, struct panels p)
{
    for (int64_t s = 0; s < slices; s++) {
        for (int i = 0; i < a_terms; i++)
            for (int j = 0; j < b_terms; j++)
                multiply_slice(sixteens, p.a + i * sixteens * BSMI_TILE_BYTES, p.b + j * SLICE_BYTES);
        p.a += a_terms * sixteens * BSMI_TILE_BYTES, p.b += b_terms * SLICE_BYTES;
    }
}

AMX_INLINE void multiply_terms(int sixteens, int a_terms, int b_terms, int64_t slices, struct panels p)
{
    if (a_terms == 1 && b_terms == 1) multiply_slices(sixteens, 1, 1, slices, p);
    else multiply_slices(sixteens, a_terms, b_terms, slices, p);
}

/* sums[16 or 32][32] (+)= A's panel times B's. */
AMX_INLINE void multiply_sixteens(int sixteens, int a_terms, int b_terms, int64_t slices, struct panels p, bool first,
                                  float *sums, int64_t pitch)
{
    const ptrdiff_t bytes = (ptrdiff_t)(pitch * (int64_t)sizeof(float));
    if (first) clear_sums(sixteens);
    else load_sums(sixteens, sums, bytes);
    multiply_terms(sixteens, a_terms, b_terms, slices, p);
    store_sums(sixteens, sums, bytes);
}

/* The job --------------------------------------------------------------------------------------------------------- */

struct job {
    const struct bsmi_tile *tile;
    struct bsmi_bf16_exponents exponents;
    int a_terms, b_terms;
    int64_t chunk, stretch;               /* columns of K of a panel of A, of B */
    unsigned char *a_panel, *b_panels;
};

static int64_t padded_columns(const struct bsmi_tile *tile) { return bsmi_round_up(tile->columns, STRIP); }

static struct job make_job(const struct bsmi_tile *tile, unsigned char *scratch)
{
    struct job job = { .tile = tile, .a_terms = bsmi_bf16_terms(tile->a.matrix->element),
                       .b_terms = bsmi_bf16_terms(tile->b.matrix->element),
                       .a_panel = scratch, .b_panels = scratch + A_BYTES };
    const int64_t chunk = CHUNK / job.a_terms, column_bytes = 2 * job.b_terms * BSMI_MAX(STRIP, padded_columns(tile));
    const int64_t most = BSMI_MIN(MOST_STRETCH, B_BYTES / column_bytes);
    job.chunk = BSMI_MIN(chunk, most);
    job.stretch = most / job.chunk * job.chunk;
    return job;
}

static size_t b_strip_bytes(const struct job *job, int64_t length)
{
    return (size_t)(bsmi_ceil_div(length, SLICE) * job->b_terms * SLICE_BYTES);
}

static const int16_t *exponents_from(const int16_t *exponents, int64_t first)
{
    return exponents == NULL ? NULL : exponents + first;
}

static void pack_b(const struct job *job, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    unsigned char *panel = job->b_panels;
    for (int64_t j = 0; j < t->columns; j += STRIP, panel += b_strip_bytes(job, length)) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + j, BSMI_MIN(STRIP, t->columns - j), t->split, k,
                                        length, exponents_from(job->exponents.b, j) };
        bsmi_bf16_column_tiles_avx512(&part, SIXTEENS, job->b_terms, (uint16_t *)(void *)panel);
    }
}

static void pack_a(const struct job *job, int64_t row, int64_t rows, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    const struct bsmi_part part = { t->a, t->a_batch, t->row + row, rows, 0, k, length,
                                    exponents_from(job->exponents.a, row) };
    bsmi_bf16_row_tiles_avx512(&part, (int)bsmi_ceil_div(rows, 16), job->a_terms, (uint16_t *)(void *)job->a_panel);
}

/* One strip of rows and one chunk of K, which begins `from_k` columns into the stretch, times all of B. */
BSMI_AMX static void multiply_strip(const struct job *job, int64_t row, int64_t rows, int64_t k, int64_t length,
                                    int64_t from_k, size_t strip_bytes)
{
    const struct bsmi_tile *t = job->tile;
    const int64_t slices = bsmi_ceil_div(length, SLICE);
    struct panels p = { job->a_panel, job->b_panels + b_strip_bytes(job, from_k) };
    float *sums = t->sums + row * t->sums_pitch;
    for (int64_t j = 0; j < t->columns; j += STRIP, p.b += strip_bytes, sums += STRIP) {
        if (rows > 16) multiply_sixteens(2, job->a_terms, job->b_terms, slices, p, k == 0, sums, t->sums_pitch);
        else multiply_sixteens(1, job->a_terms, job->b_terms, slices, p, k == 0, sums, t->sums_pitch);
    }
}

static void add_stretch(const struct job *job, int64_t k, int64_t length)
{
    pack_b(job, k, length);
    for (int64_t i = 0; i < job->tile->rows; i += STRIP) {
        const int64_t rows = BSMI_MIN(STRIP, job->tile->rows - i);
        for (int64_t c = 0; c < length; c += job->chunk) {
            const int64_t some = BSMI_MIN(job->chunk, length - c);
            pack_a(job, i, rows, k + c, some);
            multiply_strip(job, i, rows, k + c, some, c, b_strip_bytes(job, length));
        }
    }
}

static void clear(const struct bsmi_tile *t)
{
    for (int64_t i = 0; i < t->rows; i++)
        memset(t->sums + i * t->sums_pitch, 0, (size_t)t->columns * sizeof(float));
}

BSMI_AMX void bsmi_bf16_tiles_amx(const struct bsmi_tile *tile, void *scratch)
{
    static const struct bsmi_tile_configuration whole = BSMI_WHOLE_TILES;
    const size_t exponents_bytes = bsmi_bf16_exponents_bytes(tile->rows, tile->columns);
    struct job job = make_job(tile, (unsigned char *)scratch + exponents_bytes);
    job.exponents = bsmi_bf16_find_exponents(tile, scratch);
    if (tile->k == 0) clear(tile);
    BSMI_TILE_CONFIGURE(&whole);
    for (int64_t k = 0; k < tile->k; k += job.stretch) add_stretch(&job, k, BSMI_MIN(job.stretch, tile->k - k));
    BSMI_TILE_RELEASE();
    bsmi_bf16_finish(tile, &job.exponents, (unsigned char *)scratch + exponents_bytes);
}

/* At most 1,024 columns: two terms of a chunk of 256 of them fill B's share. */
size_t bsmi_bf16_tiles_amx_scratch_bytes(int64_t rows, int64_t columns)
{
    return bsmi_bf16_exponents_bytes(rows, columns) +
           BSMI_MAX((size_t)A_BYTES + B_BYTES, bsmi_bf16_finish_scratch_bytes(rows, columns));
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
