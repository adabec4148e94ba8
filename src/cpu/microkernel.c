/* The loops around register tiles: chunks of K, panels of columns of B, panels of rows of A. */
#include "microkernel.h"

#include "core/core.h"
#include "matrix/rows.h"

enum { GUARDED_ROWS = 192, GUARDED_COLUMNS = 256 };

/* A's panels of several chunks of K are made at once while they fit a second-level cache beside the rest: with few rows
 * each row of B is then read from one end to the other, as memory likes it. */
enum { STRETCH_BYTES = 192 * 1024, STRETCH_CHUNKS = 16 };

static size_t a_panels_bytes(const struct bsmi_microkernel *micro, int64_t rows)
{
    return (size_t)bsmi_ceil_div(rows, micro->rows) * micro->a_bytes;
}

static int64_t stretch_chunks(const struct bsmi_microkernel *micro, int64_t rows)
{
    const int64_t chunks = (int64_t)(STRETCH_BYTES / BSMI_MAX(a_panels_bytes(micro, rows), 1));
    return BSMI_MAX(1, BSMI_MIN(chunks, STRETCH_CHUNKS));
}

size_t bsmi_microkernel_scratch_bytes(const struct bsmi_microkernel *micro, int64_t rows, int64_t columns)
{
    const size_t all = STRETCH_CHUNKS * a_panels_bytes(micro, rows);
    const size_t a_panels = BSMI_MAX(a_panels_bytes(micro, rows), BSMI_MIN(all, STRETCH_BYTES));
    const size_t guarded = micro->guarded == NULL ? 0
                               : micro->guarded_scratch_bytes(BSMI_MIN(rows, GUARDED_ROWS),
                                                              BSMI_MIN(columns, GUARDED_COLUMNS));
    return BSMI_MAX(micro->b_bytes + a_panels, guarded);
}

/* One more than the largest finite code, as a byte: 0 stands for NaN, which is NaN on every path. */
static uint8_t behind_largest(const uint8_t *codes, int64_t count)
{
    uint8_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t next = (uint8_t)(codes[i] + 1);
        largest = BSMI_MAX(largest, next);
    }
    return largest;
}

bool bsmi_part_e8m0_at_most(const struct bsmi_part *part, int most)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    if (m->scale != BSM_E8M0) return true;
    const int64_t count = bsmi_ceil_div(part->length, m->block), first = part->k / m->block;
    const bool linear = m->map.layout.kind == BSM_LAYOUT_LINEAR;
    for (int64_t r = 0; r < part->count; r++) {
        uint8_t codes[256];
        const int64_t row = bsmi_source_column(part->first + r, part->split),
                      at_once = linear ? count : (int64_t)sizeof codes;
        for (int64_t s = 0; s < count; s += at_once) {
            const int64_t some = BSMI_MIN(count - s, at_once);
            if (!linear) bsmi_row_scales(m, part->batch, row, first + s, some, codes);
            const uint8_t *scales = linear ? bsmi_scale_pointer(m, part->batch, row, first + s) : codes;
            if (behind_largest(scales, some) > most + 1) return false;
        }
    }
    return true;
}

static struct bsmi_part rows_of(const struct bsmi_part *part, int64_t first, int64_t most)
{
    struct bsmi_part rows = *part;
    rows.first += first;
    rows.count = BSMI_MIN(most, part->count - first);
    rows.exponents = bsmi_exponents_from(part->exponents, first);
    return rows;
}

static struct bsmi_part chunk_of(const struct bsmi_part *part, int64_t k, int64_t most)
{
    struct bsmi_part chunk = *part;
    chunk.k += k;
    chunk.length = BSMI_MIN(most, part->length - k);
    return chunk;
}

/* Rows of the next register tile, of `left`: two even ones at the end in place of a whole one and a very small one. */
static int64_t rows_at_once(const struct bsmi_microkernel *micro, int64_t left)
{
    if (left > micro->rows && left <= 2 * micro->even_rows) return micro->even_rows;
    return BSMI_MIN(micro->rows, left);
}

static void clear_sums(const struct bsmi_tile *tile, int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    for (int64_t i = row; i < row + rows; i++)
        memset(tile->sums + i * tile->sums_pitch + column, 0, (size_t)columns * sizeof(float));
}

static void add_guarded(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile, int64_t k, int64_t length,
                        void *scratch)
{
    if (k == 0) clear_sums(tile, 0, 0, tile->rows, tile->columns);
    for (int64_t j = 0; j < tile->columns; j += GUARDED_COLUMNS)
        for (int64_t i = 0; i < tile->rows; i += GUARDED_ROWS) {
            struct bsmi_tile part = *tile;
            part.row += i, part.column += j;
            part.rows = BSMI_MIN(GUARDED_ROWS, tile->rows - i);
            part.columns = BSMI_MIN(GUARDED_COLUMNS, tile->columns - j);
            part.sums += i * tile->sums_pitch + j;
            micro->guarded(&part, k, k + length, scratch);
        }
}

/* Sums are in no near cache when they are wanted: they are prefetched one register tile ahead. */
static void prefetch_sums(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile, int64_t row,
                          int64_t column)
{
    if (row >= tile->rows) row = 0, column += micro->columns;
    if (column >= tile->columns) return;
    const float *sums = tile->sums + row * tile->sums_pitch + column;
    for (int64_t i = 0; i < micro->rows; i++)
        for (int64_t j = 0; j < micro->columns; j += 16) __builtin_prefetch(sums + i * tile->sums_pitch + j, 1);
}

/* B's prepacked panels, NULL where B as it is stored is faster. */
static const unsigned char *prepacked_panels(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile)
{
    return tile->rows >= micro->prepacked_from ? tile->prepacked_b : NULL;
}

/* Where the next panel of B comes from, and how much of it each register tile asks for while this panel multiplies. */
struct next_panel {
    struct bsmi_part part;                /* of no rows: there is none, or the kernel asks by itself */
    const unsigned char *prepacked;            /* NULL: it is packed out of the part */
    int64_t rows, bytes;                  /* of the part, of a prepacked panel: for each register tile */
};

static struct next_panel find_next(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile,
                                   const struct bsmi_part *columns, int64_t k)
{
    const int64_t times = bsmi_ceil_div(tile->rows, micro->rows);
    const unsigned char *const prepacked = prepacked_panels(micro, tile);
    struct next_panel next = { .part = chunk_of(columns, k + micro->chunk, micro->chunk),
                               .rows = bsmi_ceil_div(micro->columns, times),
                               .bytes = bsmi_round_up((int64_t)micro->b_bytes / times, 64) };
    if (next.part.length <= 0) {          /* of the next columns */
        next.part = chunk_of(columns, 0, micro->chunk);
        next.part.first += micro->columns;
        next.part.count = BSMI_MIN(micro->columns, tile->column + tile->columns - next.part.first);
    }
    if (!micro->prepacks_b || next.part.count <= 0) next.part.count = 0;
    else if (prepacked != NULL)
        next.prepacked = prepacked + bsmi_panel_offset(micro, tile->k, next.part.first, next.part.k);
    /* a CPU foresees it, and so much at once stalls */
    if (next.prepacked != NULL && times == 1) next.part.count = 0, next.prepacked = NULL;
    return next;
}

/* Into the second-level cache.  Nothing is read, and what lies behind a matrix's end does no harm. */
static void ask_for(const unsigned char *from, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)i), 0, 2);
}

/* Rows [first, end) of the part and their scales. */
static void ask_for_rows(const struct bsmi_part *part, int64_t first, int64_t end)
{
    const struct bsmi_matrix *m = part->operand.matrix;
    /* A line of linear scales serves more than one panel. */
    const bool scales = m->block != 0 && m->map.layout.kind == BSM_LAYOUT_LINEAR && part->k / m->block % 64 == 0;
    for (int64_t r = first; r < BSMI_MIN(end, part->count); r++) {
        const int64_t row = bsmi_source_column(part->first + r, part->split);
        ask_for(bsmi_row(m, part->batch, row) + part->k * m->bits / 8, part->length * m->bits / 8);
        if (scales) ask_for(bsmi_scale_pointer(m, part->batch, row, part->k / m->block), 1);
    }
}

/* What register tile number `time` asks for. */
static void prefetch_next(const struct bsmi_microkernel *micro, const struct next_panel *next, int64_t time)
{
    if (next->prepacked == NULL) ask_for_rows(&next->part, time * next->rows, (time + 1) * next->rows);
    else if (time * next->bytes < (int64_t)micro->b_bytes) ask_for(next->prepacked + time * next->bytes, next->bytes);
}

/* One strip of columns: panel by panel of B, which is used from the first-level cache. */
static void add_strip(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile,
                      const struct bsmi_part *columns, int64_t j, unsigned char *b_panel)
{
    const int exact_block = bsmi_exact_block_length(tile->a.matrix, tile->b.matrix);
    const unsigned char *a_panel = b_panel + micro->b_bytes, *const prepacked = prepacked_panels(micro, tile);
    for (int64_t k = 0; k < columns->length; k += micro->chunk) {
        const struct bsmi_part chunk = chunk_of(columns, k, micro->chunk);
        const struct next_panel next = find_next(micro, tile, columns, k);
        const void *b = b_panel;
        if (prepacked != NULL) b = prepacked + bsmi_panel_offset(micro, tile->k, chunk.first, chunk.k);
        else micro->pack_b(&chunk, exact_block, b_panel);
        int64_t time = 0;
        for (int64_t i = 0, rows; i < tile->rows; i += rows, a_panel += micro->a_bytes) {
            rows = rows_at_once(micro, tile->rows - i);
            if (chunk.k == 0) clear_sums(tile, i, j, micro->rows, micro->columns);
            prefetch_sums(micro, tile, i + rows, j);
            prefetch_next(micro, &next, time++);
            micro->multiply(rows, chunk.length, exact_block, a_panel, b, tile->sums + i * tile->sums_pitch + j,
                            tile->sums_pitch);
        }
    }
}

/* A is packed once and stays in a second-level cache. */
static void add_stretch(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile, const struct bsmi_part *a,
                        const struct bsmi_part *b, unsigned char *b_panel)
{
    const int exact_block = bsmi_exact_block_length(tile->a.matrix, tile->b.matrix);
    unsigned char *a_panel = b_panel + micro->b_bytes;
    for (int64_t k = 0; k < a->length; k += micro->chunk) {
        const struct bsmi_part chunk = chunk_of(a, k, micro->chunk);
        for (int64_t i = 0; i < tile->rows; i += rows_at_once(micro, tile->rows - i), a_panel += micro->a_bytes) {
            const struct bsmi_part rows = rows_of(&chunk, i, rows_at_once(micro, tile->rows - i));
            /* The next tile's, where rows are long: short ones come of themselves, sooner. */
            if (tile->a.matrix->bits > 8) ask_for_rows(&chunk, i + rows.count, i + 2 * rows.count);
            micro->pack_a(&rows, &tile->b, exact_block, a_panel);
        }
    }
    for (int64_t j = 0; j < tile->columns; j += micro->columns) {
        const struct bsmi_part columns = rows_of(b, j, micro->columns);
        add_strip(micro, tile, &columns, j, b_panel);
    }
}

static void add_part(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile,
                     const struct bsmi_bf16_exponents *exponents, int64_t k, int64_t length, void *scratch)
{
    const struct bsmi_part a = { tile->a, tile->a_batch, tile->row, tile->rows, 0, k, length, exponents->a };
    const struct bsmi_part b = { tile->b,    tile->b_batch, tile->column, tile->columns,
                                 tile->split, k,            length,       exponents->b };
    if (micro->guarded == NULL || micro->fits(&a, &b)) {
        add_stretch(micro, tile, &a, &b, scratch);
    } else if (length <= micro->chunk) {
        add_guarded(micro, tile, k, length, scratch);
    } else {                              /* chunk by chunk: only some of them may need the guarded path */
        for (int64_t i = 0; i < length; i += micro->chunk)
            add_part(micro, tile, exponents, k + i, BSMI_MIN(micro->chunk, length - i), scratch);
    }
}

void bsmi_microkernel_sum_rows(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile,
                               const struct bsmi_bf16_exponents *exponents, void *scratch)
{
    const int64_t stretch = stretch_chunks(micro, tile->rows) * micro->chunk;
    if (tile->k == 0) clear_sums(tile, 0, 0, tile->rows, tile->columns);
    for (int64_t k = 0; k < tile->k; k += stretch)
        add_part(micro, tile, exponents, k, BSMI_MIN(stretch, tile->k - k), scratch);
}

void bsmi_microkernel_sum(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile, void *scratch)
{
    bsmi_microkernel_sum_rows(micro, tile, &(struct bsmi_bf16_exponents){ NULL, NULL }, scratch);
}
