/* Products of a few rows, at most 64, by AMX's tiles: the bits of bf16_tiles_amx.c.
 *
 * B is read once, as it is stored: 16 of its rows and 32 columns of K are decoded at a time into a row tile of bf16,
 * which is the *first* operand of TDPBF16PS, so that nothing is transposed on the way.  The rows of A are column tiles,
 * the second operand, packed once for a stretch of K and read by every strip of B.  Products commute, so the sums are
 * those of the other order; they come out transposed, [column][row], and are turned once a stretch.
 *
 * Two sixteens of B's rows are in work at a time for up to 32 rows of A, one for more: four tiles of sums at most, of
 * which each waits 52 cycles for itself.  What vectors store cannot be forwarded to a load of a tile; it has to be in
 * the cache first.  So what is decoded goes through a ring of four KiB, and is multiplied three KiB later; in a larger
 * ring loads would wait for stores whose addresses are 4 KiB away.
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
    RING = 4, BEHIND = 3, A_BYTES = 1 << 20,
};

/* Scratch of a tile. */
struct few_rows {
    _Alignas(64) unsigned char ring[RING * MOST_TERMS * BSMI_TILE_BYTES];
    _Alignas(64) float turned[MOST_B * SIXTEEN][MOST_A * SIXTEEN];           /* sums[column][row] */
    struct bsmi_bf16_rows b[MOST_B];
    _Alignas(64) unsigned char a[A_BYTES];
};

struct job {
    const struct bsmi_tile *tile;
    struct bsmi_bf16_exponents exponents;
    struct few_rows *memory;
    int a_sixteens, b_sixteens, a_terms;
    int64_t stretch;                      /* columns of K of A's panel */
};

/* Codes of the next strip's rows: some of their lines are asked for in each slice, row by row, as memory likes it. */
struct upcoming {
    const unsigned char *rows[MOST_B * SIXTEEN];
    int64_t row_bytes, at;                /* of the stretch; at: in row `row`, what is asked for next */
    int row, count, lines_a_slice;
};

/* Slices ----------------------------------------------------------------------------------------------------------- */

UNIT_INLINE void prefetch(struct upcoming *next)
{
    for (int i = 0; i < next->lines_a_slice && next->row < next->count; i++) {
        __builtin_prefetch((const void *)((uintptr_t)next->rows[next->row] + (uintptr_t)next->at), 0, 2);
        next->at += 64;
        if (next->at >= next->row_bytes) next->at = 0, next->row++;
    }
}

/* A sixteen of B's rows times A's, of one term each.  Sums: tile 2 which + a of two sixteens of B. */
UNIT_INLINE void multiply_one_of_two(int which, int a_sixteens, const unsigned char *b, const unsigned char *a)
{
    if (which == 0) {
        BSMI_TILE_LOAD(4, b, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_LOAD(6, a, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_BF16(0, 4, 6);
        if (a_sixteens == 1) return;
        BSMI_TILE_LOAD(7, a + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_BF16(1, 4, 7);
    } else {
        BSMI_TILE_LOAD(5, b, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_LOAD(6, a, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_BF16(2, 5, 6);
        if (a_sixteens == 1) return;
        BSMI_TILE_LOAD(7, a + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_BF16(3, 5, 7);
    }
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

/* A chunk of K of a strip. */
struct chunk {
    struct few_rows *memory;
    const unsigned char *a;               /* A's panel from the chunk's first slice on */
    int64_t slices;
    struct upcoming *next;
};

/* A sixteen of B's rows in a slice goes into the ring as number `slice * b_sixteens + which`, and leaves it three
 * numbers later. */
UNIT_INLINE unsigned char *slot(const struct chunk *c, int b_terms, int64_t number)
{
    return c->memory->ring + number % RING * b_terms * BSMI_TILE_BYTES;
}

UNIT_INLINE void decode(enum bsmi_bf16_kind kind, int b_sixteens, const struct chunk *c, int64_t slice, int which)
{
    unsigned char *const tile = slot(c, kind == BSMI_BF16_OF_FP16 ? 2 : 1, slice * b_sixteens + which);
    if (slice >= c->slices) return;
    bsmi_bf16_decode_slice(kind, &c->memory->b[which], slice, (uint16_t *)(void *)tile,
                           (uint16_t *)(void *)(tile + BSMI_TILE_BYTES));
}

/* Terms of A are the outer ones, as in bf16_tiles_amx.c. */
UNIT_INLINE void multiply(int a_sixteens, int b_sixteens, int a_terms, int b_terms, const struct chunk *c,
                          int64_t slice, int which)
{
    if (slice < 0 || slice >= c->slices) return;
    const unsigned char *const b = slot(c, b_terms, slice * b_sixteens + which);
    const unsigned char *a = c->a + slice * a_terms * a_sixteens * BSMI_TILE_BYTES;
    for (int i = 0; i < a_terms; i++, a += a_sixteens * BSMI_TILE_BYTES)
        for (int j = 0; j < b_terms; j++) {
            if (b_sixteens == 1) multiply_one(b + j * BSMI_TILE_BYTES, a);
            else multiply_one_of_two(which, a_sixteens, b + j * BSMI_TILE_BYTES, a);
        }
}

/* A's next slices into the first-level cache. */
UNIT_INLINE void prefetch_a(const struct chunk *c, int64_t slice, int64_t slice_bytes)
{
    const unsigned char *const from = c->a + (slice + 1) * slice_bytes;
    for (int64_t i = 0; i < slice_bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)i));
}

UNIT_INLINE void add_slices(enum bsmi_bf16_kind kind, int a_sixteens, int b_sixteens, int a_terms,
                            const struct chunk *c)
{
    const int b_terms = kind == BSMI_BF16_OF_FP16 ? 2 : 1;
    for (int64_t s = 0; s < c->slices + BEHIND; s++) {
        prefetch(c->next);
        prefetch_a(c, s, (int64_t)a_terms * a_sixteens * BSMI_TILE_BYTES);
        decode(kind, b_sixteens, c, s, 0);
        if (b_sixteens == 1) {
            multiply(a_sixteens, 1, a_terms, b_terms, c, s - BEHIND, 0);
        } else {
            multiply(a_sixteens, 2, a_terms, b_terms, c, s - 2, 1);
            decode(kind, b_sixteens, c, s, 1);
            multiply(a_sixteens, 2, a_terms, b_terms, c, s - 1, 0);
        }
    }
}

UNIT_INLINE void add_slices_of_terms(enum bsmi_bf16_kind kind, int a_sixteens, int b_sixteens, int a_terms,
                                     const struct chunk *c)
{
    if (a_terms == 1) add_slices(kind, a_sixteens, b_sixteens, 1, c);
    else add_slices(kind, a_sixteens, b_sixteens, 2, c);
}

UNIT_INLINE void add_slices_of(enum bsmi_bf16_kind kind, const struct job *job, const struct chunk *c)
{
    if (job->a_sixteens == 1) add_slices_of_terms(kind, 1, 2, job->a_terms, c);
    else if (job->a_sixteens == 2) add_slices_of_terms(kind, 2, 2, job->a_terms, c);
    else add_slices_of_terms(kind, 4, 1, job->a_terms, c);
}

/* `before` slices of the stretch lie in front of the chunk. */
UNIT static void add_chunk(const struct job *job, int64_t before, int64_t slices, struct upcoming *next)
{
    const struct chunk chunk = {
        job->memory, job->memory->a + before * job->a_terms * job->a_sixteens * BSMI_TILE_BYTES, slices, next,
    };
    BSMI_BY_BF16_KIND(job->memory->b[0].kind, add_slices_of, job, &chunk)
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
                       .a_terms = bsmi_bf16_terms(tile->a.matrix->element) };
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

static struct upcoming find_upcoming(const struct job *job, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    const struct bsmi_matrix *m = t->b.matrix;
    const int64_t left = BSMI_MAX(0, t->columns - column);
    struct upcoming next = { .row_bytes = length * m->bits / 8,
                             .count = (int)BSMI_MIN(job->b_sixteens * SIXTEEN, left) };
    next.lines_a_slice = job->b_sixteens * SIXTEEN * SLICE * m->bits / 8 / 64;
    for (int r = 0; r < next.count; r++)
        next.rows[r] = bsmi_row(m, t->b_batch, bsmi_source_column(t->column + column + r, t->split)) + k * m->bits / 8;
    return next;
}

/* One strip of columns, all of the stretch. */
static void add_strip(const struct job *job, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    const int64_t width = job->b_sixteens * SIXTEEN, count = BSMI_MIN(width, t->columns - column);
    struct upcoming next = find_upcoming(job, column + width, k, length);
    if (k > 0) turn(job, column, count), load_sums(job);
    else clear_sums();
    for (int64_t c = 0; c < length; c += CHUNK) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + column, count, t->split, k + c,
                                        BSMI_MIN(CHUNK, length - c),
                                        bsmi_exponents_from(job->exponents.b, column) };
        for (int i = 0; i < job->b_sixteens; i++)     /* the last strip may have one: it is taken twice */
            bsmi_bf16_rows_make(&part, count > i * SIXTEEN ? i * SIXTEEN : 0, &job->memory->b[i]);
        add_chunk(job, c / SLICE, bsmi_ceil_div(part.length, SLICE), &next);
    }
    store_sums(job);
    turn_back(job, column, count);
}

UNIT void bsmi_bf16_few_rows_amx(const struct bsmi_tile *tile, void *scratch)
{
    static const struct bsmi_tile_configuration whole = BSMI_WHOLE_TILES;
    unsigned char *const memory = (unsigned char *)scratch + bsmi_bf16_exponents_bytes(tile->rows, tile->columns);
    struct job job = make_job(tile, (struct few_rows *)(void *)memory);
    job.exponents = bsmi_bf16_find_exponents(tile, scratch);
    if (tile->k == 0) bsmi_clear_sums(tile);
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
