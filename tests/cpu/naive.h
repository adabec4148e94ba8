/* Products the plain way, for comparison: one loop, every rule from matmul.h written out, no code of the library but
 * reading and writing single codes. */
#ifndef NAIVE_H
#define NAIVE_H

#include "blockscale.h"
#include "test.h"

/* A matrix with memory of its own, guarded, and poisoned wherever nothing is owed. */
struct operand {
    union { bsm_matrix m; bsm_sparse_matrix sparse; };
    size_t data_bytes, scale_bytes;
    void *data_copy, *scale_copy;         /* what the buffers held when operand_freeze was called */
};

/* How an operand is laid out; zeros are the defaults. */
struct shape {
    bsm_format format;
    int64_t rows, columns, batch;
    bsm_packing packing;
    bsm_scale_layout layout;
    int64_t extra_pitch, extra_batch_pitch;          /* elements beyond tight, a multiple of 64 */
    bsm_major major;
    bsm_sparsity sparsity;                /* metadata are random ones, a byte more a row than they need */
};

/* One of the packings that the format has, one of the layouts if it has scales (GGUF's packings: their own), and every
 * other time rows that are further apart. */
void shape_in_any_way(struct test *t, struct shape *shape, const bsm_scale_layout *layouts, int count);

/* Memory filled with `poison`; nothing else is written. */
struct operand operand_make(const struct shape *shape, int poison);

/* Columns [first, first + columns) of one matrix as a matrix of its own; first is a multiple of its block. */
struct operand operand_of_columns(const bsm_matrix *m, int64_t first, int64_t columns);
void operand_free(struct operand *o);

/* The same numbers, MN-major. */
struct operand operand_turned(const struct operand *o, bsm_packing packing, int64_t extra_pitch);
/* Any numbers; scales in blocks of 128x4. */
struct operand operand_filled(struct test *t, bsm_format format, int64_t rows, int64_t columns, int64_t batch);
/* The operand itself, in columns that begin at multiples of 64 elements. */
void operand_turn(struct operand *o);

/* The same numbers with their zeros, of a sparse operand; scales linear. */
struct operand operand_expanded(const struct operand *o);

/* Random codes.  small: integers of magnitude at most 4 (times the element's grid), scales of 1, so that sums are exact
 * in fp32; else every code but NaN, infinity and the largest exponents of wide elements; scales within +-4 octaves. */
void operand_fill(struct test *t, struct operand *o, bool small);

/* Remembers the bytes; operand_same fails the test when one has changed since. */
void operand_freeze(struct operand *o);
void operand_check_same(struct test *t, const struct operand *o, const char *name);

/* The value of an element with its scale, without tensor scale: decoded by the test's own arithmetic. */
double naive_element(bsm_element element, uint32_t code);
double naive_scale(bsm_scale scale, uint8_t code);
double operand_value(const bsm_matrix *m, int64_t batch, int64_t row, int64_t column);

/* sum + term rounded once to fp32, in integers. */
float naive_add(float sum, double term);

/* S of the header, in the order of sums that it defines.  column is a row of B. */
float naive_sum(const bsm_matrix *a, int64_t a_batch, int64_t row, const bsm_matrix *b, int64_t b_batch,
                int64_t column);

#endif
