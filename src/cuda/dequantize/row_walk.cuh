/* The rows of one group of threads: every so many rows of all matrices. */
#ifndef BSMI_ROW_WALK_CUH
#define BSMI_ROW_WALK_CUH

#include "cuda/params/kernels.h"

struct row_walk { int64_t row, matrix, r; };            /* a row, counted through all matrices; and as matrix and row
                                                           within it */

__device__ static inline row_walk walk_to(int64_t rows_of_matrix, int64_t row)
{
    const int64_t matrix = row < rows_of_matrix ? 0 : row / rows_of_matrix;
    return { row, matrix, row - matrix * rows_of_matrix };
}

/* The same where there are less than 2^31 rows and at least one, without divisions on the way: apart = matrices * rows
 * + r. */
struct fast_step { int rows, matrices, r; };
struct fast_walk { int left, matrix, r; };             /* left: rows of the group, this one included */

__device__ static inline fast_step make_fast_step(int rows_of_matrix, int apart)
{
    return { rows_of_matrix, apart / rows_of_matrix, apart % rows_of_matrix };
}

__device__ static inline fast_walk begin_fast_walk(int rows_of_matrix, int all, int first, int apart)
{
    return { first < all ? (all - first - 1) / apart + 1 : 0, first / rows_of_matrix, first % rows_of_matrix };
}

/* True if the row is of the same matrix. */
__device__ static inline bool fast_next(const fast_step &step, fast_walk *w)
{
    w->left--, w->matrix += step.matrices, w->r += step.r;
    if (w->r < step.rows) return step.matrices == 0;
    w->r -= step.rows, w->matrix++;
    return false;
}

#endif
