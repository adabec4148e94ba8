/* The loops around products of panels by AMX: tiles_amx.h.
 *
 * A tile of S is cut into strips of 32 columns and of 32 rows, two of which are in work at a time.  Of B, a stretch of
 * K of all the tile's columns is packed at once and stays in the second-level cache (1 MiB of its 2: 1,024 of K of 512
 * columns of bf16, 2,048 of int8); of A, a chunk of K of the rows in work, beside it.  So A is packed once for each 512
 * columns, B, which is dearer (the unit wants words of 16 columns side by side), once for all rows of the tile.
 *
 * Register tile: 2 x 2 tiles of sums, two tiles of A, two of B: four products for four loads.  A product takes 16
 * cycles, in which the second-level cache gives some 768 of the 1,024 bytes of a tile.  So 32 rows of a chunk of K of A
 * (32 KiB) stay in the first-level cache while all columns of B pass, and B's tiles go past it, whose places they would
 * only take; none is asked for ahead: both take more than they give.  Chunks are short for that, and sums are loaded
 * and stored for each: the next ones come as these go, tile by tile.  Six tiles of sums (48 rows), with five tiles for
 * six products, save no more.  Sums whose rows are 4 KiB apart need a page each: hence matrices of 256 columns of them.
 *
 * What lies farther away is asked for meanwhile: codes that are packed next, and the next sums, which are more than a
 * second-level cache holds when K has several stretches.
 *
 * Rows whose sums are final go on at once, while they are near; with one stretch of K the next rows' sums lie in the
 * same place. */
#if defined(__x86_64__)
#include "tiles_amx.h"

#include "core/core.h"
#include "cpu/code_rows.h"

enum { STRIP = BSMI_AMX_STRIP, HEIGHT = BSMI_AMX_HEIGHT, SLICE_BYTES = BSMI_AMX_SLICE_BYTES,
       A_BYTES = 64 << 10, B_BYTES = 1 << 20, LINE = 64, MOST_LINES = 4,
       LENGTH_UNIT = BSMI_CHUNK / 2 /* of chunks of K: where parts may begin */ };

struct loop {
    const struct bsmi_amx_job *job;
    int64_t chunk, stretch;               /* columns of K of a panel of A, of B */
    bool at_once;                         /* sums are final after their first stretch */
    unsigned char *a_panels, *b_panels;
    void *finish_scratch;
};

/* Some rows of the tile, at most HEIGHT, and their sums. */
struct rows { int64_t first, count; float *sums; };

static struct loop make_loop(const struct bsmi_amx_job *job, unsigned char *scratch)
{
    const struct bsmi_tile *tile = job->tile;
    struct loop loop = { .job = job, .a_panels = scratch, .b_panels = scratch + A_BYTES,
                         .finish_scratch = scratch + A_BYTES + B_BYTES };
    const int64_t bytes = BSMI_TILE_ROW_BYTES / job->kernel->slice,            /* of a number */
                  chunk = A_BYTES / (HEIGHT * bytes * job->a_terms),
                  column_bytes = bytes * job->b_terms * BSMI_MAX(STRIP, bsmi_round_up(tile->columns, STRIP)),
                  most = BSMI_MIN(BSMI_ROW_CHUNK, B_BYTES / column_bytes) / LENGTH_UNIT * LENGTH_UNIT;
    loop.chunk = BSMI_MIN(chunk, most);
    loop.stretch = most / loop.chunk * loop.chunk;
    loop.at_once = tile->finish != NULL && tile->k <= loop.stretch;
    return loop;
}

static int64_t slices_of(const struct loop *loop, int64_t length)
{
    return bsmi_ceil_div(length, loop->job->kernel->slice);
}

static size_t panel_bytes(const struct loop *loop, int terms, int64_t length)
{
    return (size_t)(slices_of(loop, length) * terms * SLICE_BYTES);
}

static void pack_b(const struct loop *loop, int64_t k, int64_t length)
{
    const struct bsmi_amx_job *job = loop->job;
    const struct bsmi_tile *t = job->tile;
    unsigned char *panel = loop->b_panels;
    const size_t strip_bytes = panel_bytes(loop, job->b_terms, length);
    for (int64_t j = 0; j < t->columns; j += STRIP, panel += strip_bytes) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + j, BSMI_MIN(STRIP, t->columns - j), t->split, k,
                                        length, bsmi_exponents_from(job->of_b, j) };
        job->kernel->pack_b(&part, BSMI_AMX_SIXTEENS, job->b_terms, panel);
    }
}

static void pack_a(const struct loop *loop, const struct rows *rows, int64_t k, int64_t length)
{
    const struct bsmi_amx_job *job = loop->job;
    const struct bsmi_tile *t = job->tile;
    unsigned char *panel = loop->a_panels;
    for (int64_t i = 0; i < rows->count; i += STRIP, panel += panel_bytes(loop, job->a_terms, length)) {
        const int64_t count = BSMI_MIN(STRIP, rows->count - i);
        const struct bsmi_part part = { t->a, t->a_batch, t->row + rows->first + i, count, 0, k, length,
                                        bsmi_exponents_from(job->of_a, rows->first + i) };
        job->kernel->pack_a(&part, (int)bsmi_ceil_div(count, 16), job->a_terms, panel);
    }
}

/* Codes of what is packed next: the rows' next chunk, else the first one of the rows behind them. */
static struct bsmi_upcoming find_next(const struct loop *loop, const struct rows *rows, int64_t k, int64_t c,
                                      int64_t length)
{
    const struct bsmi_tile *t = loop->job->tile;
    const bool same_rows = c + loop->chunk < length;
    const int64_t from = same_rows ? c + loop->chunk : 0, row = rows->first + (same_rows ? 0 : rows->count),
                  count = BSMI_MIN(HEIGHT, t->rows - row);
    return bsmi_find_upcoming_rows(&t->a, t->a_batch, t->row + row, count, 0, k + from,
                                   BSMI_MIN(loop->chunk, length - from));
}

/* So many bytes a slice that all of it has been asked for in the end; not more than a few lines, for which the unit
 * would wait. */
static int ask_bytes(const struct loop *loop, const struct rows *rows, const struct bsmi_upcoming *next,
                     int64_t length)
{
    const int64_t strips = bsmi_ceil_div(rows->count, STRIP) * bsmi_ceil_div(loop->job->tile->columns, STRIP),
                  lines = next->count * bsmi_ceil_div(next->row_bytes, LINE);
    return LINE * (int)BSMI_MIN(MOST_LINES, bsmi_ceil_div(lines, strips * slices_of(loop, length)));
}

static float *sums_of(const struct bsmi_tile *t, const struct rows *rows, int64_t row, int64_t column)
{
    return rows->sums + (bsmi_sums_at(t, row, column) - t->sums);
}

/* 32 of the rows, from row i on, times all columns, in a chunk [k, k + length) of K: b_bytes from a strip of columns to
 * the next one. */
static void multiply_rows(const struct loop *loop, const struct rows *rows, int64_t i, const unsigned char *b,
                          size_t b_bytes, int64_t k, int64_t length, struct bsmi_upcoming *next, int ask)
{
    const struct bsmi_amx_job *job = loop->job;
    const struct bsmi_tile *t = job->tile;
    struct bsmi_amx_strip strip = {
        .sixteens = rows->count - i > 16 ? 2 : 1,
        .a = loop->a_panels + (size_t)(i / STRIP) * panel_bytes(loop, job->a_terms, length), .b = b,
        .slices = slices_of(loop, length), .first = k == 0, .last = k + length == t->k,
        .sums = sums_of(t, rows, i, 0), .pitch = t->sums_pitch, .row = rows->first + i, .next = next,
        .ask_bytes = ask,
    };
    for (int64_t j = 0; j < t->columns; j += STRIP) {
        strip.column = j;
        strip.goes_on = j + STRIP < t->columns;
        float *const next_sums = strip.goes_on             ? sums_of(t, rows, i, j + STRIP)
                                 : i + STRIP < rows->count ? sums_of(t, rows, i + STRIP, 0)
                                                           : NULL;
        strip.next_sums = next_sums;
        job->kernel->multiply(job, &strip);
        strip.b += b_bytes, strip.sums = next_sums, strip.begun = strip.goes_on;
    }
}

/* A stretch of K of some rows. */
static void add_rows(const struct loop *loop, const struct rows *rows, int64_t k, int64_t length)
{
    const int b_terms = loop->job->b_terms;
    const size_t strip_bytes = panel_bytes(loop, b_terms, length);
    for (int64_t c = 0; c < length; c += loop->chunk) {
        const int64_t some = BSMI_MIN(loop->chunk, length - c);
        const unsigned char *b = loop->b_panels + panel_bytes(loop, b_terms, c);
        pack_a(loop, rows, k + c, some);
        struct bsmi_upcoming next = find_next(loop, rows, k, c, length);
        const int ask = ask_bytes(loop, rows, &next, some);
        for (int64_t i = 0; i < rows->count; i += STRIP)
            multiply_rows(loop, rows, i, b, strip_bytes, k + c, some, &next, ask);
    }
}

static void finish_rows(const struct loop *loop, const struct rows *rows)
{
    const struct bsmi_bf16_exponents *all = &loop->job->exponents,
                                     exponents = { bsmi_exponents_from(all->a, rows->first), all->b };
    struct bsmi_tile part = *loop->job->tile;
    part.row += rows->first, part.rows = rows->count, part.sums = rows->sums;
    bsmi_bf16_finish(&part, &exponents, loop->finish_scratch);
    if (part.finish != NULL) part.finish(part.finish_argument, rows->first, rows->count, rows->sums);
}

static void add_stretch(const struct loop *loop, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = loop->job->tile;
    pack_b(loop, k, length);
    for (int64_t i = 0; i < t->rows; i += HEIGHT) {
        const struct rows rows = { i, BSMI_MIN(HEIGHT, t->rows - i),
                                   t->sums + (loop->at_once ? 0 : i * t->sums_pitch) };
        add_rows(loop, &rows, k, length);
        if (k + length == t->k) finish_rows(loop, &rows);
    }
}

BSMI_AMX void bsmi_amx_sum(const struct bsmi_amx_job *job, void *scratch)
{
    static const struct bsmi_tile_configuration whole = BSMI_WHOLE_TILES;
    const struct loop loop = make_loop(job, scratch);
    const int64_t depth = job->tile->k;
    BSMI_TILE_CONFIGURE(&whole);
    for (int64_t k = 0; k < depth; k += loop.stretch) add_stretch(&loop, k, BSMI_MIN(loop.stretch, depth - k));
    BSMI_TILE_RELEASE();
}

/* At most 1,024 columns: two terms of a chunk of 256 of them fill B's share. */
size_t bsmi_amx_scratch_bytes(int64_t rows, int64_t columns)
{
    return A_BYTES + B_BYTES + bsmi_bf16_finish_scratch_bytes(BSMI_MIN(rows, HEIGHT), columns);
}
#else
typedef int bsmi_not_x86_64;              /* a translation unit needs a declaration */
#endif
