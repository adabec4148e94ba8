/* Codes of the rows that are next, asked for while others are computed: some lines at a time, row by row, as memory
 * likes it.  Kernels that read many rows at once have more streams than a CPU foresees. */
#ifndef BSMI_UPCOMING_H
#define BSMI_UPCOMING_H

#include "core/core.h"
#include "cpu/tile.h"
#include "matrix/rows.h"

enum { BSMI_MOST_UPCOMING = 64 };

struct bsmi_upcoming {
    const unsigned char *rows[BSMI_MOST_UPCOMING];
    int64_t row_bytes, at;                /* of columns [k, k + length); at: in row `row`, what is asked for next */
    int row, count;
};

/* Rows [first, first + count) of an operand; virtual columns where split != 0. */
static inline struct bsmi_upcoming bsmi_find_upcoming_rows(const struct bsmi_operand *o, int64_t batch, int64_t first,
                                                           int64_t count, int64_t split, int64_t k, int64_t length)
{
    const struct bsmi_matrix *m = o->matrix;
    struct bsmi_upcoming next;
    next.row_bytes = length * m->bits / 8, next.at = 0, next.row = 0;
    next.count = (int)count;
    for (int r = 0; r < next.count; r++)
        next.rows[r] = bsmi_row(m, batch, bsmi_source_column(first + r, split)) + k * m->bits / 8;
    return next;
}

/* Rows of B of columns [column, column + width) of the tile, as far as there are such. */
static inline struct bsmi_upcoming bsmi_find_upcoming(const struct bsmi_tile *t, int64_t column, int64_t width,
                                                      int64_t k, int64_t length)
{
    const int64_t count = BSMI_MIN(width, BSMI_MAX(0, t->columns - column));
    return bsmi_find_upcoming_rows(&t->b, t->b_batch, t->column + column, count, t->split, k, length);
}

/* A single stretch of memory. */
static inline struct bsmi_upcoming bsmi_upcoming_stretch(const void *first, int64_t bytes)
{
    return (struct bsmi_upcoming){ .rows = { first }, .row_bytes = bytes, .count = 1 };
}

/* Where the next `bytes` to ask for are; what is behind a row's end is of the next one.  0: nothing is left. */
static inline uintptr_t bsmi_take_upcoming(struct bsmi_upcoming *next, int bytes)
{
    if (next->row >= next->count) return 0;
    const uintptr_t at = (uintptr_t)next->rows[next->row] + (uintptr_t)next->at;
    next->at += bytes;
    if (next->at >= next->row_bytes) next->at = 0, next->row++;
    return at;
}

__attribute__((always_inline)) static inline void bsmi_ask_for_upcoming(struct bsmi_upcoming *next, int bytes)
{
    const uintptr_t at = bsmi_take_upcoming(next, bytes);
    if (at == 0) return;
#pragma GCC unroll 32
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch((const void *)(at + (uintptr_t)i), 0, 2);
}

/* Asks for the scales of such rows, where they lie row by row. */
static inline void bsmi_ask_for_scales(const struct bsmi_tile *t, int64_t column, int64_t width, int64_t k,
                                       int64_t length)
{
    const struct bsmi_matrix *m = t->b.matrix;
    const int64_t count = BSMI_MIN(width, t->columns - column);
    if (m->block == 0 || m->map.layout.kind != BSM_LAYOUT_LINEAR || t->split != 0 || count <= 0) return;
    const uint8_t *row = bsmi_scale_pointer(m, t->b_batch, t->column + column, k / m->block);
    for (int64_t r = 0; r < count; r++, row += m->map.layout.pitch)
        for (int64_t i = 0; i < length / m->block; i += 64) __builtin_prefetch(row + i, 0, 2);
}

#endif
