/* A tcgen05.mma with all its operands: drawn at random, placed in images of shared and tensor memory, and worked out.
 * Written from the manual's tables and the published models, not from machine/. */
#ifndef CUDASIM_TESTS_SUPPORT_TCGEN05_CASE_H
#define CUDASIM_TESTS_SUPPORT_TCGEN05_CASE_H

#include "machine/mma/instruction_descriptor.h"
#include "test.h"

enum { CASE_M = 256, CASE_N = 256, CASE_A_K = 64, CASE_K = 128, CASE_CELLS = 128 * 512, CASE_SHARED = 96 * 1024 };

/* How a matrix lies: bytes, and the number in bits 63..61. */
struct case_matrix { uint32_t start, leading, stride, mode; bool mn_major; };

struct mma_case {
    struct tcgen05_form form;
    uint32_t m, n, k, a_k;
    enum tensor_format fa, fb;
    bool signed_a, signed_b, saturate, half, negate_a, negate_b, ue4m3, accumulate;
    uint32_t sfa_id, sfb_id, selector, down;
    struct case_matrix at_a, at_b;
    uint32_t d, cells_a, sfa, sfb, metadata;                 /* addresses of tensor memory */
    uint32_t disabled[8];
    bool masked;
    uint64_t zero_mask;
    bool zero[CASE_N];
    /* operands */
    /* index in k, and its 4 bits of metadata */
    uint32_t a[CASE_M][CASE_A_K], index[CASE_M][CASE_A_K], bits[CASE_M][CASE_A_K];
    uint32_t b[CASE_N][CASE_K];
    uint32_t scale_a[CASE_M][4], scale_b[CASE_N][4];
    uint32_t old[CASE_M][CASE_N];
};

/* Draws all that the form, m and n leave open.  whole: small whole numbers and scales of 1, whose sums are exact. */
void case_draw(struct test *t, struct mma_case *c, bool whole);
uint32_t case_descriptor(const struct mma_case *c);
uint64_t case_matrix_descriptor(const struct case_matrix *m);
/* The statement; registers: %r20 d, %r21 or %rd20 A, %rd21 B, %r22 descriptor, %r23 and %r25 scales, %r24 metadata,
 * %r30.. lanes, %p5 enable-input-d, %rd22 zero-column mask. */
void case_statement(const struct mma_case *c, char *text, size_t size);

/* Writes the operands of one CTA. */
void case_place(const struct mma_case *c, uint32_t cta, uint8_t *shared, uint32_t *cells);

/* Where element (i, j) of D lies. */
void case_d_place(const struct mma_case *c, uint32_t i, uint32_t j, uint32_t *cta, uint32_t *lane, uint32_t *column);
/* What it becomes. */
uint32_t case_result(const struct mma_case *c, uint32_t i, uint32_t j);
/* The same of whole numbers, by integers alone. */
uint32_t case_whole_result(const struct mma_case *c, uint32_t i, uint32_t j);

#endif
