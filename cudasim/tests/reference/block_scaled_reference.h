/* Block-scaled products once more, from the definitions: exact, and as the published model of the tensor cores sums.
 * Written from the descriptions, in doubles, which hold every term exactly; not from machine/. */
#ifndef CUDASIM_TESTS_REFERENCE_BLOCK_SCALED_REFERENCE_H
#define CUDASIM_TESTS_REFERENCE_BLOCK_SCALED_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/mma/tensor_core.h"
#include "machine/mma/tensor_core_fp4.h"

/* The value of a scale's code (the sign bit of ue4m3 is not looked at), NaN included. */
double block_scale_value(enum tensor_scale_format format, uint32_t code);

/* ---- a whole product ---- */

/* A, or B by its columns: codes row by row, of e2m1 two in a byte (the low half first), of the other formats one;
 * scales row by row. */
struct block_matrix {
    enum tensor_format format;
    enum tensor_scale_format scale;
    uint32_t block;                       /* elements that share a scale */
    const uint8_t *codes, *scales;
    size_t pitch, scale_pitch;            /* bytes of a row */
};
uint32_t block_code(const struct block_matrix *m, size_t row, size_t k);
double block_value(const struct block_matrix *m, size_t row, size_t k);

/* The exact sum of the K products of row i of A and row j of B (long double: exact for values near 1, else to 64
 * bits). */
struct block_sum {
    long double sum, magnitude;           /* of the products, of their absolute values */
    double alignment;                     /* 2^e of the largest exponent that a term is aligned by */
};
struct block_sum block_dot(const struct block_matrix *a, size_t i, const struct block_matrix *b, size_t j,
                           size_t length);

/* How far a chain of instructions may be from the exact sum by the model: each cuts its terms and c to the given
 * fraction bits of the largest, and its sum to 24 bits.  each: products (or groups of e2m1) of an instruction. */
double block_bound(const struct block_sum *s, size_t instructions, size_t each, int fraction_bits);

/* ---- one instruction, bit by bit ---- */

/* Kinds mxf4 and mxf4nvf4: codes of e2m1 and of the scales, one for each `block` elements of `length`.  Of a sparse A
 * the kept elements alone, in both. */
uint32_t block_model_fp4(const uint32_t *a, const uint32_t *b, enum tensor_scale_format format, const uint32_t *sa,
                         const uint32_t *sb, int length, int block, uint32_t c);
/* Kinds mxf8f6f4 and (scales 127) f8f6f4: one code of ue8m0 each; half: c and the result are f16. */
uint32_t block_model_bytes(enum tensor_format fa, const uint32_t *a, enum tensor_format fb, const uint32_t *b,
                           uint32_t sa, uint32_t sb, int length, bool half, uint32_t c);

#endif
