/* Products of bf16 rows by AMX's tiles: TDPBF16PS multiplies 16 rows by 16 columns, 32 of K at a time.
 *
 * A tile of S is cut into strips of 32 columns and of 32 rows, two of which are in work at a time.  Of B, a stretch of
 * K of all the tile's columns is packed at once and stays in the second-level cache (1 MiB of its 2: 1,024 of K of 512
 * columns); of A, a chunk of K of the rows in work, beside it.  So A is packed once for each 512 columns, B, which is
 * dearer (the unit wants pairs of k of 16 columns side by side), once for all rows of the tile.
 *
 * Register tile: 2 x 2 tiles of sums, two tiles of A, two of B: four products for four loads.  A product takes 16
 * cycles, a load 8 from the first-level cache.  Both operands come from the second-level one, which limits this loop to
 * some 63 % of the unit; shorter chunks, of which one operand stays nearer, cost more in sums loaded and stored than
 * they save.  Sums whose rows are 4 KiB apart need a page each: hence matrices of 256 columns of them.
 *
 * Rows whose sums are final go on at once, while they are near; with one stretch of K the next rows' sums lie in the
 * same place.
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
    SLICES_AHEAD = 2, HEIGHT = 64, CHUNK = 1024, MOST_STRETCH = 2048, A_BYTES = HEIGHT * CHUNK * 2, B_BYTES = 1 << 20,
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
    bool at_once;                         /* sums are final after their first stretch */
    unsigned char *a_panels, *b_panels;
    void *finish_scratch;
};

/* Some rows of the tile, at most HEIGHT, and their sums. */
struct rows { int64_t first, count; float *sums; };

static int64_t padded_columns(const struct bsmi_tile *tile) { return bsmi_round_up(tile->columns, STRIP); }

static struct job make_job(const struct bsmi_tile *tile, unsigned char *scratch)
{
    struct job job = { .tile = tile, .a_terms = bsmi_bf16_terms(tile->a.matrix->element),
                       .b_terms = bsmi_bf16_terms(tile->b.matrix->element),
                       .a_panels = scratch, .b_panels = scratch + A_BYTES,
                       .finish_scratch = scratch + A_BYTES + B_BYTES };
    const int64_t chunk = CHUNK / job.a_terms, column_bytes = 2 * job.b_terms * BSMI_MAX(STRIP, padded_columns(tile));
    const int64_t most = BSMI_MIN(MOST_STRETCH, B_BYTES / column_bytes);
    job.chunk = BSMI_MIN(chunk, most);
    job.stretch = most / job.chunk * job.chunk;
    job.at_once = tile->finish != NULL && tile->k <= job.stretch;
    return job;
}

static size_t panel_bytes(int terms, int64_t length)
{
    return (size_t)(bsmi_ceil_div(length, SLICE) * terms * SLICE_BYTES);
}

static void pack_b(const struct job *job, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    unsigned char *panel = job->b_panels;
    for (int64_t j = 0; j < t->columns; j += STRIP, panel += panel_bytes(job->b_terms, length)) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + j, BSMI_MIN(STRIP, t->columns - j), t->split, k,
                                        length, bsmi_exponents_from(job->exponents.b, j) };
        bsmi_bf16_column_tiles_avx512(&part, SIXTEENS, job->b_terms, (uint16_t *)(void *)panel);
    }
}

static void pack_a(const struct job *job, const struct rows *rows, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    unsigned char *panel = job->a_panels;
    for (int64_t i = 0; i < rows->count; i += STRIP, panel += panel_bytes(job->a_terms, length)) {
        const int64_t count = BSMI_MIN(STRIP, rows->count - i);
        const struct bsmi_part part = { t->a, t->a_batch, t->row + rows->first + i, count, 0, k, length,
                                        bsmi_exponents_from(job->exponents.a, rows->first + i) };
        bsmi_bf16_row_tiles_avx512(&part, (int)bsmi_ceil_div(count, 16), job->a_terms, (uint16_t *)(void *)panel);
    }
}

/* The rows times a strip of columns, in a chunk of K. */
BSMI_AMX static void multiply_strip(const struct job *job, const struct rows *rows, const unsigned char *b,
                                    float *sums, bool first, int64_t length)
{
    const int64_t pitch = job->tile->sums_pitch, slices = bsmi_ceil_div(length, SLICE);
    struct panels p = { job->a_panels, b };
    for (int64_t i = 0; i < rows->count; i += STRIP, p.a += panel_bytes(job->a_terms, length)) {
        float *const at = sums + i * pitch;
        if (rows->count - i > 16) multiply_sixteens(2, job->a_terms, job->b_terms, slices, p, first, at, pitch);
        else multiply_sixteens(1, job->a_terms, job->b_terms, slices, p, first, at, pitch);
    }
}

/* A stretch of K of some rows. */
static void add_rows(const struct job *job, const struct rows *rows, int64_t k, int64_t length)
{
    const size_t strip_bytes = panel_bytes(job->b_terms, length);
    for (int64_t c = 0; c < length; c += job->chunk) {
        const int64_t some = BSMI_MIN(job->chunk, length - c);
        const unsigned char *b = job->b_panels + panel_bytes(job->b_terms, c);
        pack_a(job, rows, k + c, some);
        for (int64_t j = 0; j < job->tile->columns; j += STRIP, b += strip_bytes)
            multiply_strip(job, rows, b, rows->sums + (bsmi_sums_at(job->tile, 0, j) - job->tile->sums), k + c == 0,
                           some);
    }
}

static void finish_rows(const struct job *job, const struct rows *rows)
{
    struct bsmi_tile part = *job->tile;
    const struct bsmi_bf16_exponents exponents = { bsmi_exponents_from(job->exponents.a, rows->first),
                                                   job->exponents.b };
    part.row += rows->first, part.rows = rows->count, part.sums = rows->sums;
    bsmi_bf16_finish(&part, &exponents, job->finish_scratch);
    if (part.finish != NULL) part.finish(part.finish_argument, rows->first, rows->count, rows->sums);
}

static void add_stretch(const struct job *job, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    pack_b(job, k, length);
    for (int64_t i = 0; i < t->rows; i += HEIGHT) {
        const struct rows rows = { i, BSMI_MIN(HEIGHT, t->rows - i),
                                   t->sums + (job->at_once ? 0 : i * t->sums_pitch) };
        add_rows(job, &rows, k, length);
        if (k + length == t->k) finish_rows(job, &rows);
    }
}

BSMI_AMX void bsmi_bf16_tiles_amx(const struct bsmi_tile *tile, void *scratch)
{
    static const struct bsmi_tile_configuration whole = BSMI_WHOLE_TILES;
    struct job job = make_job(tile, (unsigned char *)scratch + bsmi_bf16_exponents_bytes(tile->rows, tile->columns));
    job.exponents = bsmi_bf16_find_exponents(tile, scratch);
    if (tile->k == 0) {
        bsmi_clear_sums(tile);
        if (tile->finish != NULL) tile->finish(tile->finish_argument, 0, tile->rows, tile->sums);
        return;
    }
    BSMI_TILE_CONFIGURE(&whole);
    for (int64_t k = 0; k < tile->k; k += job.stretch) add_stretch(&job, k, BSMI_MIN(job.stretch, tile->k - k));
    BSMI_TILE_RELEASE();
}

/* At most 1,024 columns: two terms of a chunk of 256 of them fill B's share. */
size_t bsmi_bf16_tiles_amx_scratch_bytes(int64_t rows, int64_t columns)
{
    return bsmi_bf16_exponents_bytes(rows, columns) + A_BYTES + B_BYTES +
           bsmi_bf16_finish_scratch_bytes(BSMI_MIN(rows, HEIGHT), columns);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
