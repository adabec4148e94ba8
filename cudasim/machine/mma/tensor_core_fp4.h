/* The numerics of e2m1 products with block scales: the kinds mxf4 and mxf4nvf4 of mma.sync and tcgen05.mma.
 *
 * The model is that of [X] (tensor_core.h).  A group of 16 products that share both scales is summed exactly and
 * multiplied by the significands of its scales; its exponent is the sum of theirs, even if the sum is zero.  All groups
 * and c are aligned to the largest exponent, at least -126, cut toward zero to 35 bits behind its point and summed; the
 * sum is cut to f32.  A NaN among the scales, or as c, gives 0x7fffffff.  The model says nothing of an infinite c: here
 * it is the result.  The sign bit of ue4m3 is not looked at.
 *
 * Use: tensor_fp4_clear, then tensor_fp4_set and tensor_fp4_scale for what there is, then tensor_fp4_dot or
 * tensor_fp4_multiply. */
#ifndef CUDASIM_MACHINE_MMA_TENSOR_CORE_FP4_H
#define CUDASIM_MACHINE_MMA_TENSOR_CORE_FP4_H

#include <stdbool.h>
#include <stdint.h>

enum tensor_scale_format { TENSOR_UE8M0, TENSOR_UE4M3 };

/* A group has 16 elements; where A is sparse 32, of which 16 are kept and the others stay zero. */
/* the last: of a row, at most */
enum { TENSOR_FP4_GROUP = 16, TENSOR_FP4_SPARSE_GROUP = 32, TENSOR_FP4_GROUPS = 16 };

/* Rows of A or columns of B. */
struct tensor_fp4 {
    uint32_t rows, groups, width;         /* groups of a row, elements of a group */
    int16_t *twice;                       /* [rows][groups * width]: twice the element, an integer of at most 12 */
    uint8_t *significand;                 /* [rows][groups]: of the scale, in eighths, below 16 */
    int16_t *exponent;                    /* [rows][groups]: of the scale */
    bool *nan;                            /* [rows]: one of its scales is a NaN */
};

#define TENSOR_FP4_STORAGE(name, ROWS, GROUPS, WIDTH) \
    struct { \
        int16_t twice[(ROWS) * (GROUPS) * (WIDTH)]; \
        uint8_t significand[(ROWS) * (GROUPS)]; \
        int16_t exponent[(ROWS) * (GROUPS)]; \
        bool nan[ROWS]; \
    } name
#define TENSOR_FP4_PANEL(storage) \
    (struct tensor_fp4) \
    { \
        .twice = (storage).twice, .significand = (storage).significand, .exponent = (storage).exponent, \
        .nan = (storage).nan \
    }

/* All elements zero, all scales 1. */
void tensor_fp4_clear(struct tensor_fp4 *panel, uint32_t rows, uint32_t groups, uint32_t width);
/* The low four bits of code. */
void tensor_fp4_set(struct tensor_fp4 *panel, uint32_t row, uint32_t k, uint32_t code);
/* The low eight bits of code. */
void tensor_fp4_scale(struct tensor_fp4 *panel, uint32_t row, uint32_t group, enum tensor_scale_format format,
                      uint32_t code);

/* c + the sum of all products of two rows; c and the result are codes of f32.  plain: no model, but a chain of fma in
 * f32, rising k. */
uint32_t tensor_fp4_dot(const struct tensor_fp4 *a, uint32_t row_a, const struct tensor_fp4 *b, uint32_t row_b,
                        uint32_t c, bool plain);
/* d[i * b->rows + j] += row i of A times row j of B, for all i and j. */
void tensor_fp4_multiply(const struct tensor_fp4 *a, const struct tensor_fp4 *b, bool plain, uint32_t *d);

#endif
