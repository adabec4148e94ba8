/* Products of a few rows, at most 64, by AMX's tiles: the bits of bf16_tiles_amx.c.
 *
 * B is read once, as it is stored: 16 of its rows and 32 columns of K are decoded at a time into a row tile of bf16,
 * which is the *first* operand of TDPBF16PS, so that nothing is transposed on the way.  The rows of A are column tiles,
 * the second operand, packed once for a stretch of K and read by every strip of B.  Products commute, so the sums are
 * those of the other order; they come out transposed, [column][row], and are turned once a stretch.
 *
 * Two sixteens of B's rows are in work at a time for up to 32 rows of A, one for more: four tiles of sums at most, of
 * which each waits 52 cycles for itself.  What vectors store cannot be forwarded to a load of a tile; it has to be in
 * the cache first.  So decoded slices go through a ring, and are multiplied three slices later.
 *
 * The codes of the next strip are asked for meanwhile: 32 rows are more streams than a CPU foresees. */
#if defined(__x86_64__)
#include "amx.h"
#include "bf16_rows_avx512.h"
#include "bf16_tiles_avx512.h"
#include "core/core.h"
#include "cpu/bf16_sums.h"
#include "cpu/kernels.h"
#include "matrix/rows.h"

#define UNIT __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16,amx-int8")))
#define UNIT_INLINE UNIT __attribute__((always_inline)) static inline

enum {
    SIXTEEN = BSMI_TILE_ROWS, MOST_B = 2, MOST_A = 4, MOST_TERMS = 2, SLICE = BSMI_SLICE, CHUNK = BSMI_ROW_CHUNK,
    RING = 4, BEHIND = 3, SLOT_BYTES = MOST_B * MOST_TERMS * BSMI_TILE_BYTES, A_BYTES = 1 << 20,
};

/* Scratch of a tile. */
struct few_rows {
    _Alignas(64) unsigned char ring[RING][SLOT_BYTES];
    _Alignas(64) float turned[MOST_B * SIXTEEN][MOST_A * SIXTEEN];           /* sums[column][row] */
    struct bsmi_bf16_rows b[MOST_B];
    _Alignas(64) unsigned char a[A_BYTES];
};

struct job {
    const struct bsmi_tile *tile;
    struct bsmi_bf16_exponents exponents;
    struct few_rows *memory;
    int a_sixteens, b_sixteens, a_terms, b_terms;
    int64_t stretch;                      /* columns of K of A's panel */
};

/* Codes of the next strip's rows: their lines are asked for, some rows a slice, until all of them were. */
struct upcoming {
    const unsigned char *rows[MOST_B * SIXTEEN];
    int count, slices_a_line;
    int64_t slice_bytes;
};

/* Slices ----------------------------------------------------------------------------------------------------------- */

UNIT_INLINE void prefetch(const struct upcoming *next, int64_t slice)
{
    const int part = (int)(slice % next->slices_a_line), rows = next->count / next->slices_a_line;
    const int64_t at = (slice - part) * next->slice_bytes;
    for (int r = part * rows; r < (part + 1) * rows; r++)
        __builtin_prefetch((const void *)((uintptr_t)next->rows[r] + (uintptr_t)at), 0, 2);
}

/* Sums: tile 2 b + a of two sixteens of B, tile a of one. */
UNIT_INLINE void multiply_two(int a_sixteens, const unsigned char *b, const unsigned char *a)
{
    BSMI_TILE_LOAD(4, b, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_LOAD(6, a, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(0, 4, 6);
    BSMI_TILE_LOAD(5, b + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(2, 5, 6);
    if (a_sixteens == 1) return;
    BSMI_TILE_LOAD(7, a + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(1, 4, 7);
    BSMI_TILE_DOT_BF16(3, 5, 7);
}

UNIT_INLINE void multiply_one(const unsigned char *b, const unsigned char *a)
{
    BSMI_TILE_LOAD(4, b, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_LOAD(5, a, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(0, 4, 5);
    BSMI_TILE_LOAD(6, a + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(1, 4, 6);
    BSMI_TILE_LOAD(7, a + 2 * BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(2, 4, 7);
    BSMI_TILE_LOAD(5, a + 3 * BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(3, 4, 5);
}

/* Terms of A are the outer ones, as in bf16_tiles_amx.c. */
UNIT_INLINE void multiply_slice(int a_sixteens, int b_sixteens, int a_terms, int b_terms, const unsigned char *b,
                                const unsigned char *a)
{
    for (int i = 0; i < a_terms; i++, a += a_sixteens * BSMI_TILE_BYTES)
        for (int j = 0; j < b_terms; j++) {
            const unsigned char *const term = b + j * b_sixteens * BSMI_TILE_BYTES;
            if (b_sixteens == 2) multiply_two(a_sixteens, term, a);
            else multiply_one(term, a);
        }
}

UNIT_INLINE void decode_slice(enum bsmi_bf16_kind kind, int b_sixteens, const struct bsmi_bf16_rows *rows,
                              int64_t slice, unsigned char *slot)
{
    for (int i = 0; i < b_sixteens; i++) {
        unsigned char *const tile = slot + i * BSMI_TILE_BYTES;
        bsmi_bf16_decode_slice(kind, &rows[i], slice, (uint16_t *)(void *)tile,
                               (uint16_t *)(void *)(tile + b_sixteens * BSMI_TILE_BYTES));
    }
}

/* A chunk of K of a strip: `before` slices of the stretch lie in front of it. */
UNIT_INLINE void add_slices(enum bsmi_bf16_kind kind, int a_sixteens, int b_sixteens, const struct job *job,
                            int64_t before, int64_t slices, const struct upcoming *next)
{
    const int a_terms = job->a_terms, b_terms = kind == BSMI_BF16_OF_FP16 ? 2 : 1;
    const ptrdiff_t a_bytes = (ptrdiff_t)a_terms * a_sixteens * BSMI_TILE_BYTES;
    struct few_rows *const memory = job->memory;
    const unsigned char *a = memory->a + before * a_bytes;
    for (int64_t s = 0; s < slices + BEHIND; s++) {
        if (s < slices) {
            decode_slice(kind, b_sixteens, memory->b, s, memory->ring[s % RING]);
            if (next->count > 0) prefetch(next, before + s);
        }
        if (s < BEHIND) continue;
        const unsigned char *const b = memory->ring[(s - BEHIND) % RING];
        if (a_terms == 1) multiply_slice(a_sixteens, b_sixteens, 1, b_terms, b, a);
        else multiply_slice(a_sixteens, b_sixteens, 2, b_terms, b, a);
        a += a_bytes;
    }
}

UNIT_INLINE void add_slices_of(enum bsmi_bf16_kind kind, const struct job *job, int64_t before, int64_t slices,
                               const struct upcoming *next)
{
    if (job->a_sixteens == 1) add_slices(kind, 1, 2, job, before, slices, next);
    else if (job->a_sixteens == 2) add_slices(kind, 2, 2, job, before, slices, next);
    else add_slices(kind, 4, 1, job, before, slices, next);
}

UNIT static void add_chunk(const struct job *job, int64_t before, int64_t slices, const struct upcoming *next)
{
    BSMI_BY_BF16_KIND(job->memory->b[0].kind, add_slices_of, job, before, slices, next)
}

/* Sums ------------------------------------------------------------------------------------------------------------- */

#define ROW_OF_SUMS(b) job->memory->turned[(b) * SIXTEEN]
enum { TURNED_PITCH = MOST_A * SIXTEEN * sizeof(float) };

UNIT static void clear_sums(void)
{
    BSMI_TILE_ZERO(0);
    BSMI_TILE_ZERO(1);
    BSMI_TILE_ZERO(2);
    BSMI_TILE_ZERO(3);
}

UNIT static void load_sums(const struct job *job)
{
    const int two = job->b_sixteens == 2;
    BSMI_TILE_LOAD(0, ROW_OF_SUMS(0), TURNED_PITCH);
    BSMI_TILE_LOAD(1, ROW_OF_SUMS(0) + 16, TURNED_PITCH);
    BSMI_TILE_LOAD(2, two ? ROW_OF_SUMS(1) : ROW_OF_SUMS(0) + 32, TURNED_PITCH);
    BSMI_TILE_LOAD(3, two ? ROW_OF_SUMS(1) + 16 : ROW_OF_SUMS(0) + 48, TURNED_PITCH);
}

UNIT static void store_sums(const struct job *job)
{
    const int two = job->b_sixteens == 2;
    BSMI_TILE_STORE(0, ROW_OF_SUMS(0), TURNED_PITCH);
    BSMI_TILE_STORE(1, ROW_OF_SUMS(0) + 16, TURNED_PITCH);
    BSMI_TILE_STORE(2, two ? ROW_OF_SUMS(1) : ROW_OF_SUMS(0) + 32, TURNED_PITCH);
    BSMI_TILE_STORE(3, two ? ROW_OF_SUMS(1) + 16 : ROW_OF_SUMS(0) + 48, TURNED_PITCH);
}

/* The strip's sums, of columns [column, column + count), out of `turned` or into it. */
static void turn_back(const struct job *job, int64_t column, int64_t count)
{
    const struct bsmi_tile *t = job->tile;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < count; j++)
            t->sums[i * t->sums_pitch + column + j] = job->memory->turned[j][i];
}

static void turn(const struct job *job, int64_t column, int64_t count)
{
    const struct bsmi_tile *t = job->tile;
    memset(job->memory->turned, 0, sizeof job->memory->turned);
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < count; j++)
            job->memory->turned[j][i] = t->sums[i * t->sums_pitch + column + j];
}

/* The job ---------------------------------------------------------------------------------------------------------- */

static struct job make_job(const struct bsmi_tile *tile, struct few_rows *memory)
{
    const int sixteens = (int)bsmi_ceil_div(tile->rows, SIXTEEN);
    struct job job = { .tile = tile, .memory = memory, .a_sixteens = sixteens > 2 ? MOST_A : BSMI_MAX(1, sixteens),
                       .b_sixteens = sixteens > 2 ? 1 : MOST_B,
                       .a_terms = bsmi_bf16_terms(tile->a.matrix->element),
                       .b_terms = bsmi_bf16_terms(tile->b.matrix->element) };
    job.stretch = A_BYTES / (job.a_sixteens * job.a_terms * BSMI_TILE_BYTES) * SLICE / CHUNK * CHUNK;
    return job;
}

static void pack_a(const struct job *job, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    for (int64_t c = 0; c < length; c += CHUNK) {
        const struct bsmi_part part = { t->a, t->a_batch, t->row, t->rows, 0, k + c, BSMI_MIN(CHUNK, length - c),
                                        job->exponents.a };
        const size_t before = bsmi_bf16_panel_bytes(job->a_sixteens, job->a_terms, c);
        bsmi_bf16_column_tiles_avx512(&part, job->a_sixteens, job->a_terms,
                                      (uint16_t *)(void *)(job->memory->a + before));
    }
}

static struct upcoming find_upcoming(const struct job *job, int64_t column, int64_t k)
{
    const struct bsmi_tile *t = job->tile;
    const struct bsmi_matrix *m = t->b.matrix;
    struct upcoming next = { .slice_bytes = SLICE * m->bits / 8 };
    next.slices_a_line = m->bits == 4 ? 4 : m->bits <= 8 ? 2 : 1;
    if (column + job->b_sixteens * SIXTEEN > t->columns) return next;
    next.count = job->b_sixteens * SIXTEEN;
    for (int r = 0; r < next.count; r++)
        next.rows[r] = bsmi_row(m, t->b_batch, bsmi_source_column(t->column + column + r, t->split)) + k * m->bits / 8;
    return next;
}

/* One strip of columns, all of the stretch. */
static void add_strip(const struct job *job, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    const int64_t width = job->b_sixteens * SIXTEEN, count = BSMI_MIN(width, t->columns - column);
    const struct upcoming next = find_upcoming(job, column + width, k);
    if (k > 0) turn(job, column, count), load_sums(job);
    else clear_sums();
    for (int64_t c = 0; c < length; c += CHUNK) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + column, count, t->split, k + c,
                                        BSMI_MIN(CHUNK, length - c),
                                        job->exponents.b == NULL ? NULL : job->exponents.b + column };
        for (int i = 0; i < job->b_sixteens; i++)     /* the last strip may have one: it is taken twice */
            bsmi_bf16_rows_make(&part, count > i * SIXTEEN ? i * SIXTEEN : 0, &job->memory->b[i]);
        add_chunk(job, c / SLICE, bsmi_ceil_div(part.length, SLICE), &next);
    }
    store_sums(job);
    turn_back(job, column, count);
}

static void clear(const struct bsmi_tile *t)
{
    for (int64_t i = 0; i < t->rows; i++)
        memset(t->sums + i * t->sums_pitch, 0, (size_t)t->columns * sizeof(float));
}

UNIT void bsmi_bf16_few_rows_amx(const struct bsmi_tile *tile, void *scratch)
{
    static const struct bsmi_tile_configuration whole = BSMI_WHOLE_TILES;
    unsigned char *const memory = (unsigned char *)scratch + bsmi_bf16_exponents_bytes(tile->rows, tile->columns);
    struct job job = make_job(tile, (struct few_rows *)(void *)memory);
    job.exponents = bsmi_bf16_find_exponents(tile, scratch);
    if (tile->k == 0) clear(tile);
    BSMI_TILE_CONFIGURE(&whole);
    for (int64_t k = 0; k < tile->k; k += job.stretch) {
        const int64_t length = BSMI_MIN(job.stretch, tile->k - k);
        pack_a(&job, k, length);
        for (int64_t j = 0; j < tile->columns; j += job.b_sixteens * SIXTEEN) add_strip(&job, j, k, length);
    }
    BSMI_TILE_RELEASE();
    bsmi_bf16_finish(tile, &job.exponents, memory);
}

size_t bsmi_bf16_few_rows_amx_scratch_bytes(int64_t rows, int64_t columns)
{
    return bsmi_bf16_exponents_bytes(rows, columns) +
           BSMI_MAX(sizeof(struct few_rows), bsmi_bf16_finish_scratch_bytes(rows, columns));
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
