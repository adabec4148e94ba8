/* How quantizing and dequantizing go through a matrix: in pieces of a row, dealt out to tasks by the shape alone.
 *
 * The deal does not depend on the number of threads, so what tasks sum up, and the order it is added in, does not
 * either.  Sixteen rows advance together, piece by piece, so that the columns of a transposed source stay in the
 * cache. */
#ifndef BSMI_WALK_H
#define BSMI_WALK_H

#include "blockscale/status.h"

enum {
    BSMI_PIECE = 256,                     /* columns of a piece: whole blocks, whole bytes of every packing, whole GGUF
                                             blocks */
    BSMI_WALK_ROWS = 16,
    BSMI_WALK_SPAN = 32 * BSMI_PIECE,     /* columns that a unit of work covers */
    BSMI_WALK_TASKS = 512                 /* at most */
};

struct bsmi_shape { int64_t rows, columns, batch; };

struct bsmi_walk {
    int64_t rows, columns;
    int64_t row_groups, spans, units;     /* a unit is one group of rows by one span of one matrix */
    int64_t tasks, units_per_task;
};

/* Columns [k, k + count) of one row; k is a multiple of BSMI_PIECE. */
struct bsmi_piece { int64_t batch, row, k, count; };

/* What a unit of work covers. */
struct bsmi_walk_area { int64_t batch, row, rows, k, columns; };

/* Where a task is. */
struct bsmi_walk_place { int64_t unit, end_unit, step; };

/* Fails, naming the size that differs. */
bsm_status bsmi_shapes_equal(struct bsmi_shape source, struct bsmi_shape destination);

struct bsmi_walk bsmi_walk_make(struct bsmi_shape shape);
struct bsmi_walk_area bsmi_walk_area(const struct bsmi_walk *walk, int64_t unit);
struct bsmi_walk_place bsmi_walk_start(const struct bsmi_walk *walk, int64_t task);
/* The task's next piece; false when it has no more. */
bool bsmi_walk_next(const struct bsmi_walk *walk, struct bsmi_walk_place *place, struct bsmi_piece *piece);

#endif
