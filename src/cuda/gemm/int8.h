/* MXFP4 times MXFP4 as integers of 8 bits: the rows that the kernels of sm90/kernels/shared_memory_int8 multiply. */
#ifndef BSMI_CUDA_INTEGERS_H
#define BSMI_CUDA_INTEGERS_H

#include "cuda/driver/launch.h"
#include "matrix/matrix.h"

/* Of an operand, in the workspace. */
struct bsmi_integers { int64_t padded_columns, batch_pitch; size_t rows_at; };

/* The rule that an operand does not keep, or NULL if its rows may go as integers. */
const char *bsmi_integers_rule(const struct bsmi_matrix *matrix);

/* Bytes of its rows, or -1 on overflow. */
int64_t bsmi_integers_bytes(const struct bsmi_matrix *matrix, struct bsmi_integers *integers);

/* An operand, and where its rows and their exponents go. */
struct bsmi_integers_of {
    const char *name;
    const struct bsmi_matrix *matrix;
    const struct bsmi_integers *integers;
    void *rows;
    int32_t *exponents;
};

/* Puts making the rows of both operands into the queue.  *flags: how many CTAs say in `unfit` whether one of their rows does not
 * fit.
 * Fails with BSM_EALIGN for data that are not aligned as those of the plan were. */
bsm_status bsmi_integers_make(struct bsmi_cuda_queue *queue, const struct bsmi_integers_of *a, const struct bsmi_integers_of *b,
                              uint32_t *unfit, int32_t *flags);

/* The map of its rows, as numbers of 16 bits: two integers each. */
bsm_status bsmi_integers_map(const struct bsmi_cuda_gpu *gpu, const struct bsmi_integers_of *of, int box_rows,
                             struct bsmi_tensor_map *map);

#endif
