/* Products of a few rows, at most 64, by AMX's tiles: the bits of bf16_tiles_amx.c.
 *
 * B is read once, as it is stored: 16 of its rows and 32 columns of K are decoded at a time into a row tile of bf16,
 * which is the *first* operand of TDPBF16PS, so that nothing is transposed on the way.  The rows of A are column tiles,
 * the second operand, packed once for a stretch of K and read by every strip of B; up to 8 rows have tiles of fewer
 * columns.  Products commute, so the sums are those of the other order; they come out transposed, [column][row], and
 * are turned once a stretch.
 *
 * Two sixteens of B's rows are in work at a time for up to 32 rows of A, one for more: four tiles of sums at most, of
 * which each waits 52 cycles for itself.  What vectors store cannot be forwarded to a load of a tile; it has to be in
 * the cache first, and it is written there in order.  So what is decoded goes through a ring of four KiB, and is
 * multiplied three KiB later; in a larger ring loads would wait for stores whose addresses are 4 KiB away.  Codes are
 * copied a cache line of each row at a time: rows often lie so that few of their lines fit the first-level cache
 * together.
 *
 * The codes of the next strip are asked for meanwhile: 32 rows are more streams than a CPU foresees.  It does
 * foresee 16 of codes of more than 4 bits: for a single row of A one sixteen of such is in work, decoded where it
 * lies. */
#if defined(__x86_64__)
#include "bf16_columns_avx512.h"
#include "bf16_rows_vbmi.h"
#include "bf16_tiles_avx512.h"
#include "core/core.h"
#include "cpu/bf16_sums.h"
#include "cpu/kernels.h"
#include "cpu/x86/amx.h"
#include "cpu/x86/upcoming.h"

#define UNIT \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,amx-tile,amx-bf16,amx-int8")))
#define UNIT_INLINE UNIT __attribute__((always_inline)) static inline

enum {
    SIXTEEN = BSMI_TILE_ROWS, MOST_B = 2, MOST_A = 4, MOST_TERMS = 2, SLICE = BSMI_SLICE, CHUNK = BSMI_ROW_CHUNK,
    RING = 4, BEHIND = 3, A_BYTES = 1 << 20,
};

/* Scratch of a tile. */
struct few_rows {
    _Alignas(64) unsigned char ring[RING * MOST_TERMS * BSMI_TILE_BYTES];
    struct bsmi_bf16_lines lines[MOST_B];
    _Alignas(64) float turned[MOST_B * SIXTEEN][MOST_A * SIXTEEN];           /* sums[column][row] */
    struct bsmi_bf16_rows b[MOST_B];
    _Alignas(64) unsigned char a[A_BYTES];
};

struct job {
    const struct bsmi_tile *tile;
    struct bsmi_bf16_exponents exponents;
    struct few_rows *memory;
    int a_sixteens, a_columns;            /* of a tile of A: 16, or fewer of a single one */
    int b_sixteens, a_terms;
    int64_t stretch;                      /* columns of K of A's panel */
    int64_t slice_bytes;                  /* of A's panel */
};

/* Slices ----------------------------------------------------------------------------------------------------------- */

/* What is constant in a loop over slices. */
struct shape { enum bsmi_bf16_kind kind; int a_sixteens, b_sixteens, a_terms, b_terms; };

/* A single row by codes of more than 4 bits: they are decoded where they lie, and not asked for. */
UNIT_INLINE bool is_direct(const struct shape *is) { return is->a_sixteens == 1 && is->b_sixteens == 1; }

/* A sixteen of B's rows times one or two of A's, of one term each.  Sums: tile 2 which + a of two sixteens of B.  Tiles
 * of A lie where the first sixteen loaded them, unless other terms came in between. */
UNIT_INLINE void multiply_one_of_two(int which, bool load_a, int a_sixteens, const unsigned char *b,
                                     const unsigned char *a, ptrdiff_t a_row_bytes)
{
    if (load_a) BSMI_TILE_LOAD(6, a, a_row_bytes);
    if (load_a && a_sixteens == 2) BSMI_TILE_LOAD(7, a + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    if (which == 0) {
        BSMI_TILE_LOAD(4, b, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_BF16(0, 4, 6);
        if (a_sixteens == 2) BSMI_TILE_DOT_BF16(1, 4, 7);
    } else {
        BSMI_TILE_LOAD(5, b, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_DOT_BF16(2, 5, 6);
        if (a_sixteens == 2) BSMI_TILE_DOT_BF16(3, 5, 7);
    }
}

/* One of B's times one of A's, or three or four. */
UNIT_INLINE void multiply_one(int a_sixteens, const unsigned char *b, const unsigned char *a, ptrdiff_t a_row_bytes)
{
    if (a_sixteens == 1) {
        BSMI_TILE_LOAD(4, b, BSMI_TILE_ROW_BYTES);
        BSMI_TILE_LOAD(6, a, a_row_bytes);
        BSMI_TILE_DOT_BF16(0, 4, 6);
        return;
    }
    BSMI_TILE_LOAD(4, b, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_LOAD(5, a, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(0, 4, 5);
    BSMI_TILE_LOAD(6, a + BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(1, 4, 6);
    BSMI_TILE_LOAD(7, a + 2 * BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(2, 4, 7);
    if (a_sixteens == 3) return;
    BSMI_TILE_LOAD(5, a + 3 * BSMI_TILE_BYTES, BSMI_TILE_ROW_BYTES);
    BSMI_TILE_DOT_BF16(3, 4, 5);
}

/* A chunk of K of a strip. */
struct chunk {
    struct few_rows *memory;
    const unsigned char *a;               /* A's panel from the chunk's first slice on */
    int64_t a_slice_bytes, a_row_bytes, slices;
    struct bsmi_upcoming *next;
};

/* A sixteen of B's rows in a slice goes into the ring as number `slice * b_sixteens + which`, and leaves it three
 * numbers later.  Second terms lie in a ring of their own. */
enum { TO_SECOND_TERM = RING * BSMI_TILE_BYTES };

UNIT_INLINE unsigned char *slot(const struct shape *is, const struct chunk *c, int64_t slice, int which)
{
    return c->memory->ring + (slice * is->b_sixteens + which) % RING * BSMI_TILE_BYTES;
}

UNIT_INLINE void decode(const struct shape *is, const struct chunk *c, int64_t slice, int which)
{
    const int at_once = bf16_slices_of_lines(is->kind);
    const struct bsmi_bf16_rows *const rows = &c->memory->b[which];
    struct bsmi_bf16_lines *const lines = &c->memory->lines[which];
    unsigned char *const tile = slot(is, c, slice, which);
    uint16_t *const first = (uint16_t *)(void *)tile, *const second = (uint16_t *)(void *)(tile + TO_SECOND_TERM);
    if (slice >= c->slices) return;
    if (bf16_kind_is_wide(is->kind)) {
        bsmi_bf16_decode_slice(is->kind, rows, slice, first, second);
        return;
    }
    if (slice % at_once == 0)
        bsmi_bf16_copy_lines(is->kind, is_direct(is), rows, slice, (int)BSMI_MIN(at_once, c->slices - slice), lines);
    bsmi_bf16_decode_lines(is->kind, is_direct(is), rows, slice, lines, (int)(slice % at_once), first);
}

/* Terms of A are the outer ones, as in bf16_tiles_amx.c. */
UNIT_INLINE void multiply(const struct shape *is, const struct chunk *c, int64_t slice, int which)
{
    if (slice < 0 || slice >= c->slices) return;
    const unsigned char *a = c->a + slice * c->a_slice_bytes;
    for (int i = 0; i < is->a_terms; i++, a += c->a_slice_bytes / is->a_terms)
        for (int j = 0; j < is->b_terms; j++) {
            const unsigned char *const b = slot(is, c, slice, which) + j * TO_SECOND_TERM;
            if (is->b_sixteens == 1) multiply_one(is->a_sixteens, b, a, (ptrdiff_t)c->a_row_bytes);
            else multiply_one_of_two(which, j == 0 && (which == 0 || is->a_terms > 1), is->a_sixteens, b, a,
                                     (ptrdiff_t)c->a_row_bytes);
        }
}

UNIT_INLINE void add_slices(const struct shape *is, const struct chunk *c)
{
    for (int64_t s = 0; s < c->slices + BEHIND; s++) {
        if (!is_direct(is))
            bsmi_ask_for_upcoming(c->next, is->b_sixteens * SIXTEEN * bf16_slice_bytes(is->kind));
        decode(is, c, s, 0);
        if (is->b_sixteens == 1) {
            multiply(is, c, s - BEHIND, 0);
        } else {
            multiply(is, c, s - 2, 1);
            decode(is, c, s, 1);
            multiply(is, c, s - 1, 0);
        }
    }
}

UNIT_INLINE void add_slices_of_terms(enum bsmi_bf16_kind kind, int a_sixteens, int a_terms, int b_sixteens,
                                     const struct chunk *c)
{
    const struct shape shape = { kind, a_sixteens, b_sixteens, a_terms,
                                 kind == BSMI_BF16_OF_FP16 ? 2 : 1 };
    add_slices(&shape, c);
}

UNIT_INLINE void add_slices_of_rows(enum bsmi_bf16_kind kind, int a_sixteens, int a_terms, int b_sixteens,
                                    const struct chunk *c)
{
    if (a_terms == 1) add_slices_of_terms(kind, a_sixteens, 1, b_sixteens, c);
    else add_slices_of_terms(kind, a_sixteens, 2, b_sixteens, c);
}

UNIT_INLINE void add_slices_of(enum bsmi_bf16_kind kind, const struct job *job, const struct chunk *c)
{
    switch (job->a_sixteens) {
    case 1:
        if (job->b_sixteens == 1) add_slices_of_rows(kind, 1, job->a_terms, 1, c);
        else add_slices_of_rows(kind, 1, job->a_terms, MOST_B, c);
        break;
    case 2: add_slices_of_rows(kind, 2, job->a_terms, MOST_B, c); break;
    case 3: add_slices_of_rows(kind, 3, job->a_terms, 1, c); break;
    default: add_slices_of_rows(kind, 4, job->a_terms, 1, c); break;
    }
}

UNIT static void add_chunk(const struct job *job, const struct chunk *chunk)
{
    BSMI_BY_BF16_KIND(chunk->memory->b[0].kind, add_slices_of, job, chunk)
}

/* Sums ------------------------------------------------------------------------------------------------------------- */

enum { TURNED_PITCH = MOST_A * SIXTEEN * sizeof(float) };

static struct bsmi_tile_configuration configuration_of(const struct job *job)
{
    struct bsmi_tile_configuration tiles = BSMI_WHOLE_TILES;
    static const int of_a_columns[] = { 0, 1, 2, 3, 6, 7 };
    for (size_t i = 0; job->a_sixteens == 1 && i < sizeof of_a_columns / sizeof of_a_columns[0]; i++)
        tiles.row_bytes[of_a_columns[i]] = (uint16_t)(job->a_columns * 4);
    return tiles;
}

UNIT static void clear_sums(void)
{
    BSMI_TILE_ZERO(0);
    BSMI_TILE_ZERO(1);
    BSMI_TILE_ZERO(2);
    BSMI_TILE_ZERO(3);
}

UNIT static void load_sums(const struct job *job)
{
    const float *const sums = job->memory->turned[0], *const other = job->memory->turned[SIXTEEN];
    const bool two = job->b_sixteens == 2;
    BSMI_TILE_LOAD(0, sums, TURNED_PITCH);
    if (two) BSMI_TILE_LOAD(2, other, TURNED_PITCH);
    if (job->a_sixteens == 1) return;
    BSMI_TILE_LOAD(1, sums + 16, TURNED_PITCH);
    if (two) BSMI_TILE_LOAD(3, other + 16, TURNED_PITCH);
    if (two) return;
    BSMI_TILE_LOAD(2, sums + 32, TURNED_PITCH);
    BSMI_TILE_LOAD(3, sums + 48, TURNED_PITCH);
}

UNIT static void store_sums(const struct job *job)
{
    float *const sums = job->memory->turned[0], *const other = job->memory->turned[SIXTEEN];
    const bool two = job->b_sixteens == 2;
    BSMI_TILE_STORE(0, sums, TURNED_PITCH);
    if (two) BSMI_TILE_STORE(2, other, TURNED_PITCH);
    if (job->a_sixteens == 1) return;
    BSMI_TILE_STORE(1, sums + 16, TURNED_PITCH);
    if (two) BSMI_TILE_STORE(3, other + 16, TURNED_PITCH);
    if (two) return;
    BSMI_TILE_STORE(2, sums + 32, TURNED_PITCH);
    BSMI_TILE_STORE(3, sums + 48, TURNED_PITCH);
}

/* The strip's sums, of columns [column, column + count), into the tile's: 16 columns by four rows at a time. */
UNIT static void turn_back(const struct job *job, int64_t column, int64_t count)
{
    const struct bsmi_tile *t = job->tile;
    for (int64_t j = 0; j < count; j += SIXTEEN) {
        const __mmask16 there = (__mmask16)(0xffff >> (SIXTEEN - BSMI_MIN(SIXTEEN, count - j)));
        const uint8_t *columns[SIXTEEN];
        for (int c = 0; c < SIXTEEN; c++) columns[c] = (const uint8_t *)job->memory->turned[j + c];
        for (int64_t i = 0; i < t->rows; i += 4) {
            __m512i fours[4];
            load_fours(columns, i * (int64_t)sizeof(float), fours);
            for (int64_t r = 0; r < BSMI_MIN(4, t->rows - i); r++)
                _mm512_mask_storeu_ps(t->sums + (i + r) * t->sums_pitch + column + j, there,
                                      _mm512_castsi512_ps(fours[r]));
        }
    }
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

/* Columns of the tiles of A: as many as a tile of one row has need of, from a few forms. */
static int columns_of_a(int64_t rows)
{
    int columns = 1;
    while (columns < SIXTEEN && columns < rows) columns *= 2;
    return columns;
}

static struct job make_job(const struct bsmi_tile *tile, struct few_rows *memory)
{
    const int sixteens = (int)BSMI_MAX(1, bsmi_ceil_div(tile->rows, SIXTEEN));
    struct job job = { .tile = tile, .memory = memory, .a_sixteens = sixteens, .a_columns = columns_of_a(tile->rows),
                       .b_sixteens = sixteens > 2 || (tile->rows == 1 && tile->b.matrix->bits > 4) ? 1 : MOST_B,
                       .a_terms = bsmi_bf16_terms(tile->a.matrix->element) };
    const int64_t wide = (int64_t)sixteens * job.a_terms * BSMI_TILE_BYTES;
    job.slice_bytes = wide * job.a_columns / SIXTEEN;
    job.stretch = A_BYTES / wide * SLICE / CHUNK * CHUNK;
    return job;
}

/* Tiles of fewer columns than 16: the columns that there are, closer together. */
static void narrow(const struct job *job, int64_t length)
{
    const int64_t rows = bsmi_ceil_div(length, SLICE) * job->a_terms * SIXTEEN, bytes = job->a_columns * 4;
    unsigned char *const a = job->memory->a;
    for (int64_t i = 1; bytes < BSMI_TILE_ROW_BYTES && i < rows; i++)
        memmove(a + i * bytes, a + i * BSMI_TILE_ROW_BYTES, (size_t)bytes);
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
    narrow(job, length);
}

/* One strip of columns, all of the stretch. */
static void add_strip(const struct job *job, int64_t column, int64_t k, int64_t length)
{
    const struct bsmi_tile *t = job->tile;
    const int64_t width = job->b_sixteens * SIXTEEN, count = BSMI_MIN(width, t->columns - column);
    struct bsmi_upcoming next = bsmi_find_upcoming(t, column + width, width, k, length);
    if (k > 0) turn(job, column, count), load_sums(job);
    else clear_sums();
    for (int64_t c = 0; c < length; c += CHUNK) {
        const struct bsmi_part part = { t->b, t->b_batch, t->column + column, count, t->split, k + c,
                                        BSMI_MIN(CHUNK, length - c),
                                        bsmi_exponents_from(job->exponents.b, column) };
        for (int i = 0; i < job->b_sixteens; i++)     /* the last strip may have one: it is taken twice */
            bsmi_bf16_rows_make(&part, count > i * SIXTEEN ? i * SIXTEEN : 0, false, &job->memory->b[i]);
        bsmi_ask_for_scales(t, column + width, width, part.k, part.length);
        add_chunk(job, &(struct chunk){
                           .memory = job->memory, .a = job->memory->a + c / SLICE * job->slice_bytes,
                           .a_slice_bytes = job->slice_bytes, .slices = bsmi_ceil_div(part.length, SLICE),
                           .a_row_bytes = job->a_sixteens == 1 ? job->a_columns * 4 : BSMI_TILE_ROW_BYTES,
                           .next = &next,
                       });
    }
    store_sums(job);
    turn_back(job, column, count);
}

UNIT void bsmi_bf16_few_rows_amx(const struct bsmi_tile *tile, void *scratch)
{
    unsigned char *const memory = (unsigned char *)scratch + bsmi_bf16_exponents_bytes(tile->rows, tile->columns);
    struct job job = make_job(tile, (struct few_rows *)(void *)memory);
    const struct bsmi_tile_configuration tiles = configuration_of(&job);
    job.exponents = bsmi_bf16_find_exponents(tile, scratch);
    if (tile->k == 0) bsmi_clear_sums(tile);
    BSMI_TILE_CONFIGURE(&tiles);
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
