/* What a wgmma must give, computed on the host from the manual's formulas and the published models alone: it shares no
 * code with the simulator.  Matrices are arrays of codes; D's elements are 32-bit words (f16: in the low half). */
#ifndef CUDASIM_TESTS_REFERENCE_WGMMA_REFERENCE_H
#define CUDASIM_TESTS_REFERENCE_WGMMA_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

enum element { E_F16, E_BF16, E_TF32, E_E4M3, E_E5M2, E_S8, E_U8, E_B1 };         /* E_B1: words of 32 bits */
enum result { R_F32, R_F16, R_S32 };

uint32_t element_bits(enum element e);

struct shape {
    enum element a, b;
    enum result d;
    uint32_t n, k, a_k;                   /* a_k: elements of a row of A, k or (sparse) half of it */
    bool saturate, negate_a, negate_b;
};

/* d[64][n] = a * b (+ d).  a: [64][a_k], b: [n][k] (by columns of B); column[64][a_k]: where A's elements stand in
 * k. */
void reference_product(const struct shape *s, const uint32_t *a, const uint32_t *column, const uint32_t *b,
                       bool accumulate, uint32_t *d);

/* ---- where an element lies in shared memory ---- */

struct placement {
    bool mn_major;
    uint32_t swizzle;                     /* 0, 32, 64, 128 bytes */
    uint32_t start, leading, stride;      /* bytes, absolute */
    uint32_t pattern;                     /* where the swizzle's pattern begins: its address modulo 1024 */
};
uint32_t place(const struct placement *p, uint32_t bits, uint32_t row, uint32_t k);
uint64_t descriptor(const struct placement *p);

/* ---- fragments: which thread and register holds an element ---- */

struct holder { uint32_t thread, index, shift; };
struct holder holder_of_a(uint32_t bits, uint32_t row, uint32_t k);
struct holder holder_of_d(enum result d, uint32_t row, uint32_t n);

#endif
