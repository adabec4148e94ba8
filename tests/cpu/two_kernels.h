/* Two kernels' sums of a tile, bit for bit, and what tests of such kernels set in their operands. */
#ifndef TWO_KERNELS_H
#define TWO_KERNELS_H

#include "cpu/pack.h"
#include "cpu/table.h"
#include "naive.h"

/* The kernel, if this machine runs it. */
const struct bsmi_kernel *kernel_named(const char *name);

int64_t blocks_of(const struct operand *o);
void set_scale(struct test *t, struct operand *o, int64_t row, int64_t s, int code);
void set_code(struct test *t, struct operand *o, int64_t row, int64_t k, uint32_t code);
void fill_block(struct test *t, struct operand *o, int64_t row, int64_t s, uint32_t code);

/* Which part of the operands; in_parts: sums in several matrices, for kernels that know of them. */
struct where { int64_t first_row, first_column, split; bool in_parts; };

/* How the second kernel went: where units are emulated the numbers of products of tiles tell. */
enum way { UNKNOWN, AS_BF16, AS_INT8, WITHOUT_TILES };

/* Sums and scratch are as large as they must be, and guarded.  Fails where a bit differs. */
enum way compare_kernels(struct test *t, const char *first, const char *second, const struct operand *a,
                         const struct operand *b, struct where at);

/* The same, the second one's B prepacked; first_column is a multiple of 16. */
enum way compare_prepacked(struct test *t, const char *first, const char *second, const struct operand *a,
                           const struct operand *b, struct where at);

/* The same of sums that are there: any NaN is like any other. */
void compare_sums(struct test *t, const struct operand *a, const struct operand *b, int64_t columns, int64_t count,
                  const float *want, const float *got);

#endif
