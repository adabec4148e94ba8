/* A tile of S, and the operands that it is computed from: what every kernel reads. */
#ifndef BSMI_TILE_H
#define BSMI_TILE_H

#include "matrix/matrix.h"

/* One operand and the value of each of its codes: of elements of at most 8 bits, and of scales. */
struct bsmi_operand {
    const struct bsmi_matrix *matrix;
    const float *values, *scales;
};

/* The row of A that a kernel has made ready in its scratch, where it leaves it for the next tile of the product. */
struct bsmi_kept_row { bool kept; int64_t row, batch; };

/* A tile of S: rows [row, row + rows) of A times columns [column, column + columns) of the product.
 * Columns are virtual: when gates and ups are split in halves, column v is row v/2 of B (even v, a gate) or row
 * split + v/2 (odd v, an up), so that the two halves of a pair always share a tile. */
struct bsmi_tile {
    struct bsmi_operand a, b;
    int64_t a_batch, b_batch;
    int64_t row, rows, column, columns;
    int64_t split;                        /* 0: virtual columns are rows of B */
    int64_t k;
    const unsigned char *prepacked_b;     /* B's matrix as the kernel's panels (prepacked.h); NULL: B as it is stored */
    float *sums;                          /* rows x sums_pitch, whole register tiles, written whole by the kernel;
                                             64-byte aligned */
    int64_t sums_pitch;                   /* a multiple of 16, at least columns in whole register tiles */
    int64_t sums_columns, sums_apart;     /* not 0: of each so many columns the sums lie in a matrix of their own, the
                                             next one's so many numbers on; the pitch is that of such a matrix */
    /* NULL, or what a kernel that knows of it (table.h) calls once for each part of the rows when their sums are
     * final: of rows [row, row + rows) of the tile, which lie at `sums` and are the caller's until it returns. */
    void (*finish)(void *argument, int64_t row, int64_t rows, const float *sums);
    void *finish_argument;
    struct bsmi_kept_row *kept;           /* NULL, or of the thread whose scratch it is */
};

static inline bool bsmi_row_is_kept(const struct bsmi_tile *t)
{
    return t->kept != NULL && t->kept->kept && t->kept->row == t->row && t->kept->batch == t->a_batch;
}

static inline void bsmi_keep_row(const struct bsmi_tile *t, bool kept)
{
    if (t->kept != NULL) *t->kept = (struct bsmi_kept_row){ kept, t->row, t->a_batch };
}

static inline float *bsmi_sums_at(const struct bsmi_tile *tile, int64_t row, int64_t column)
{
    const int64_t of_row = row * tile->sums_pitch;
    if (tile->sums_columns == 0) return tile->sums + of_row + column;
    return tile->sums + column / tile->sums_columns * tile->sums_apart + of_row + column % tile->sums_columns;
}

/* Of a product without columns of K. */
static inline void bsmi_clear_sums(const struct bsmi_tile *tile)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++) *bsmi_sums_at(tile, i, j) = 0;
}

static inline int64_t bsmi_source_column(int64_t column, int64_t split)
{
    return split == 0 ? column : column / 2 + (column % 2) * split;
}

#endif
