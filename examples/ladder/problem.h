/* A problem of the ladder on the host: operands, their scales in every layout that a step wants, and what the product
 * must be. */
#ifndef LADDER_PROBLEM_H
#define LADDER_PROBLEM_H

#include <blockscale.h>

/* What the ladder multiplies. */
struct ladder_format {
    const char *name, *suffix; /* on the command line; of the kernels' names */
    bsm_format a, b;
    int64_t block_k, instruction_k; /* elements of K: of 128 bytes in shared memory, of one instruction */
    bool a_is_padded, b_is_padded; /* e2m1 beside e4m3: TMA spreads it to a byte each */
};
enum { LADDER_FORMATS = 5 };
extern const struct ladder_format ladder_formats[LADDER_FORMATS];
const struct ladder_format *ladder_format_of(const char *name);

enum data { WHOLE_NUMBERS, NORMAL_NUMBERS };

/* One operand: rows x K codes, linear scales, the same scales in contiguous tiles of 128 rows, and packed as 128x4.
 * Linear rows go on with zeros to the end of a tile of K, which threads read whole. */
struct operand {
    bsm_matrix matrix;
    int64_t data_bytes, linear_bytes, linear_pitch, tile_bytes, packed_bytes, scale_columns;
    uint8_t *tiles, *packed;
};

struct problem {
    const struct ladder_format *format;
    int64_t m, n, k;
    int64_t block_n, block_k; /* of the kernels */
    enum data data;
    bool d_is_half;                       /* D is fp16, sums rounded once to nearest */
    struct operand a, b;
};

/* Fills in what the operands hold; the fields up to `d_is_half` are given.  Ends the program, with the library's
 * sentence, if that is not possible. */
void problem_make(struct problem *problem, bsm_context *context);
void problem_free(struct problem *problem);

/* D, m rows d_pitch floats apart (of fp16 D its values), against the exact product: whole numbers bit by bit, others
 * within the bound of tensor cores that cut each term and each sum off (examples/ladder/README.md).  Large problems:
 * some of the rows. Returns the elements that differ, and prints the first. */
int64_t problem_verify(const struct problem *problem, bsm_context *context, const float *d, int64_t d_pitch);

/* Ends the program with a sentence. */
__attribute__((format(printf, 1, 2), noreturn)) void stop(const char *format, ...);

#endif
