/* Products of a few rows, at most 64, by AMX's tiles: the bits of bf16_tiles_amx.c.
 *
 * B is read once, as it is stored: 16 of its rows and 32 columns of K are decoded at a time into a row tile of bf16,
 * which is the *first* operand of TDPBF16PS, so that nothing is transposed on the way.  The rows of A are column tiles,
 * the second operand, packed once for a stretch of K and read by every strip of B.  Products commute, so the sums are
 * those of the other order; they come out transposed, [column][row], and are turned once a stretch.
 *
 * Two sixteens of B's rows are in work by turns for up to 32 rows of A, one for more: four tiles of sums at most, of
 * which each waits 52 cycles for itself.  What vectors store cannot be forwarded to a load of a tile; it has to be in
 * the cache first.  So two slices of a sixteen are decoded while those before them are multiplied.  Both together are
 * 4 KiB: a load that is 4 KiB behind a store would wait for it.
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
    SIXTEEN = BSMI_TILE_ROWS, MOST_B = 2, MOST_A = 4, SLICE = BSMI_SLICE, CHUNK = BSMI_ROW_CHUNK,
    A_BYTES = 1 << 20,
};

/* Scratch of a tile. */
struct few_rows {
    _Alignas(64) unsigned char ring[2][2 * BSMI_TILE_BYTES];
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

/* Codes of the next strip's rows: their lines are asked for, some rows a slice, until all of them were. */
struct upcoming {
    const unsigned char *rows[MOST_B * SIXTEEN];
    int64_t slice_bytes;
    int slices_a_line, rows_a_slice;      /* a power of two; 0: there is no next strip */
};

/* Slices ----------------------------------------------------------------------------------------------------------- */

UNIT_INLINE void prefetch(const struct upcoming *next, int64_t slice)
{
    const int64_t part = slice & (next->slices_a_line - 1), at = (slice - part) * next->slice_bytes;
    const unsigned char *const *const rows = next->rows + part * next->rows_a_slice;
    for (int r = 0; r < next->rows_a_slice; r++)
        __builtin_prefetch((const void *)((uintptr_t)rows[r] + (uintptr_t)at), 0, 2);
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
    int a_terms;
    int64_t before, slices;               /* before: slices of the stretch in front of it */
    const struct upcoming *next;
};

/* What is decoded at a time: a sixteen of B's rows in two slices, so that lines of codes are looked at seldom (16 rows
 * that lie some KiB apart may have few places in a cache); of fp16 both terms of one slice. */
struct piece { int which; int64_t slice, number; };

UNIT_INLINE unsigned char *slot(const struct chunk *c, const struct piece *p)
{
    return c->memory->ring[p->number % 2];
}

/* Eight rows of a piece that has two slices. */
UNIT_INLINE void decode_rows(enum bsmi_bf16_kind kind, const struct chunk *c, const struct piece *p, int first,
                             __m512i largest[2])
{
    uint16_t *const tiles = (uint16_t *)(void *)slot(c, p);
    const struct bsmi_bf16_rows *const rows = &c->memory->b[p->which];
    const __m512i table = _mm512_load_si512(rows->table);
#pragma GCC unroll 8
    for (int r = first; r < first + SIXTEEN / 2; r++)
        for (int i = 0; i < 2; i++)
            _mm512_store_si512(tiles + i * BSMI_TILE_NUMBERS + r * SLICE,
                               bf16_decode_row(kind, rows, r, p->slice + i, table, &largest[i]));
}

UNIT_INLINE void mend(enum bsmi_bf16_kind kind, const struct chunk *c, const struct piece *p, const __m512i largest[2])
{
    uint16_t *const tiles = (uint16_t *)(void *)slot(c, p);
    const struct bsmi_bf16_rows *const rows = &c->memory->b[p->which];
    for (int i = 0; i < 2; i++)
        if (rows->nan_scales || (bf16_kind_has_specials(kind) && fp8_has_specials(kind, largest[i])))
            bsmi_bf16_mend(rows, p->slice + i, false, tiles + i * BSMI_TILE_NUMBERS);
}

/* Terms of A are the outer ones, as in bf16_tiles_amx.c. */
UNIT_INLINE void multiply(int a_sixteens, int b_sixteens, int b_terms, const struct chunk *c, const struct piece *p)
{
    const int64_t slices = BSMI_MIN(2 / b_terms, c->slices - p->slice);
    const unsigned char *b = slot(c, p), *a = c->a + p->slice * c->a_terms * a_sixteens * BSMI_TILE_BYTES;
    for (int64_t s = 0; s < slices; s++, b += b_terms * BSMI_TILE_BYTES)
        for (int i = 0; i < c->a_terms; i++, a += a_sixteens * BSMI_TILE_BYTES)
            for (int j = 0; j < b_terms; j++) {
                if (b_sixteens == 1) multiply_one(b + j * BSMI_TILE_BYTES, a);
                else multiply_one_of_two(p->which, a_sixteens, b + j * BSMI_TILE_BYTES, a);
            }
}

UNIT_INLINE void decode_slice(enum bsmi_bf16_kind kind, const struct chunk *c, const struct piece *p, int i)
{
    uint16_t *const tiles = (uint16_t *)(void *)slot(c, p) + i * BSMI_TILE_NUMBERS;
    bsmi_bf16_decode_slice(kind, &c->memory->b[p->which], p->slice + i, tiles, tiles + BSMI_TILE_NUMBERS);
}

/* Decodes a piece, and multiplies the one before it meanwhile. */
UNIT_INLINE void decode_and_multiply(enum bsmi_bf16_kind kind, int a_sixteens, int b_sixteens, const struct chunk *c,
                                     const struct piece *now, const struct piece *before)
{
    const int b_terms = kind == BSMI_BF16_OF_FP16 ? 2 : 1;
    const bool two = b_terms == 1 && now->slice + 1 < c->slices, by_rows = two && !bf16_kind_is_wide(kind);
    __m512i largest[2] = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    if (by_rows) decode_rows(kind, c, now, 0, largest);
    else decode_slice(kind, c, now, 0);
    if (now->number > 0) multiply(a_sixteens, b_sixteens, b_terms, c, before);
    if (by_rows) decode_rows(kind, c, now, SIXTEEN / 2, largest), mend(kind, c, now, largest);
    else if (two) decode_slice(kind, c, now, 1);
}

/* A's next slices into the first-level cache. */
UNIT_INLINE void prefetch_a(const struct chunk *c, int64_t slice, int64_t slice_bytes)
{
    const unsigned char *const from = c->a + slice * slice_bytes;
    for (int64_t i = 0; i < slice_bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)i));
}

UNIT_INLINE void add_slices(enum bsmi_bf16_kind kind, int a_sixteens, int b_sixteens, const struct chunk *c)
{
    const int b_terms = kind == BSMI_BF16_OF_FP16 ? 2 : 1, slices_a_piece = 2 / b_terms;
    struct piece before = { 0 };
    int64_t number = 0;
    for (int64_t s = 0; s < c->slices; s += slices_a_piece) {
        for (int i = 0; i < slices_a_piece; i++) {
            prefetch(c->next, c->before + s + i);
            prefetch_a(c, s + slices_a_piece + i, (int64_t)c->a_terms * a_sixteens * BSMI_TILE_BYTES);
        }
        for (int which = 0; which < b_sixteens; which++) {
            const struct piece now = { which, s, number++ };
            decode_and_multiply(kind, a_sixteens, b_sixteens, c, &now, &before);
            before = now;
        }
    }
    multiply(a_sixteens, b_sixteens, b_terms, c, &before);
}

UNIT_INLINE void add_slices_of(enum bsmi_bf16_kind kind, int a_sixteens, const struct chunk *c)
{
    if (a_sixteens == 1) add_slices(kind, 1, 2, c);
    else if (a_sixteens == 2) add_slices(kind, 2, 2, c);
    else add_slices(kind, 4, 1, c);
}

UNIT static void add_chunk(const struct job *job, int64_t before, int64_t slices, const struct upcoming *next)
{
    const struct chunk chunk = {
        job->memory, job->memory->a + before * job->a_terms * job->a_sixteens * BSMI_TILE_BYTES, job->a_terms, before,
        slices, next,
    };
    BSMI_BY_BF16_KIND(job->memory->b[0].kind, add_slices_of, job->a_sixteens, &chunk)
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

static struct upcoming find_upcoming(const struct job *job, int64_t column, int64_t k)
{
    const struct bsmi_tile *t = job->tile;
    const struct bsmi_matrix *m = t->b.matrix;
    struct upcoming next = { .slice_bytes = SLICE * m->bits / 8 };
    next.slices_a_line = m->bits == 4 ? 4 : m->bits <= 8 ? 2 : 1;
    if (column + job->b_sixteens * SIXTEEN > t->columns) return next;
    next.rows_a_slice = job->b_sixteens * SIXTEEN / next.slices_a_line;
    for (int r = 0; r < job->b_sixteens * SIXTEEN; r++)
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
