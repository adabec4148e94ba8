/* One tcgen05.mma (PTX ISA 9.7.16.10): what it was issued with, where its operands lie, and the arithmetic.
 *
 * A pair of CTAs does an instruction in halves: each CTA holds its rows of A and D, half of B's columns, and all scales
 * that its rows and B's columns need.  What follows counts rows in one CTA. */
#ifndef CUDASIM_MACHINE_MMA_TCGEN05_PRODUCT_H
#define CUDASIM_MACHINE_MMA_TCGEN05_PRODUCT_H

#include "instruction_descriptor.h"
#include "machine/core/machine.h"
#include "matrix_descriptor.h"
#include "tensor_core_fp4.h"
#include "machine/tensor/tensor_pipe.h"

enum { MMA_ROWS = 128, MMA_COLUMNS = 256, MMA_K = 128, MMA_A_K = 64, MMA_SCALES = 4, MMA_ROW_CELLS = 8 };

/* An address of tensor memory.  Bits 31..23 belong to no lane: CuTe keeps a byte index in them. */
struct tensor_place { uint32_t lane, column; };
static inline struct tensor_place tensor_place_of(uint32_t address)
{
    return (struct tensor_place){ address >> 16 & 127, address & 0xffff };
}

/* The operands of an instruction; NULL: it has none. */
struct tcgen05_instruction {
    struct tcgen05_form form;
    const struct operand *d, *a, *b, *metadata, *descriptor, *disabled, *sfa, *sfb, *accumulate, *zero_mask;
    uint8_t scale_down;
};

struct tcgen05_product {
    const struct tcgen05_form *form;
    struct mma_shape shape;
    struct cta *cta[2];                   /* the even one first */
    struct matrix_layout a, b;
    struct tensor_place d, a_cells, sfa, sfb, metadata;
    bool accumulates;
    uint8_t scale_down;                   /* D counts as D * 2^-scale_down */
    uint32_t disabled[2][TENSOR_LANES / 32];                /* lanes of each CTA that keep what they hold */
    uint32_t zero[MMA_COLUMNS / 32];      /* columns of B that count as zero */
};

static inline uint32_t product_rows(const struct tcgen05_product *p) { return p->shape.m / p->form->ctas; }

/* Where its operands are while it is computed. */
struct tcgen05_workspace {
    uint32_t a[MMA_ROWS * MMA_A_K];       /* codes, [row][a_k] */
    uint8_t index[MMA_ROWS * MMA_A_K];    /* where a sparse A's elements stand in k */
    uint32_t b[MMA_COLUMNS * MMA_K];      /* codes, [column][k] */
    uint8_t sfa[MMA_ROWS][MMA_SCALES], sfb[MMA_COLUMNS][MMA_SCALES];
    uint32_t d[MMA_ROWS * MMA_COLUMNS];   /* [row][n] */
    union {
        struct { TENSOR_STORAGE(a, MMA_ROWS, MMA_A_K); TENSOR_STORAGE(b, MMA_COLUMNS, MMA_A_K); } real;
        struct {
            TENSOR_FP4_STORAGE(a, MMA_ROWS, MMA_SCALES, TENSOR_FP4_SPARSE_GROUP);
            TENSOR_FP4_STORAGE(b, MMA_COLUMNS, MMA_SCALES, TENSOR_FP4_SPARSE_GROUP);
        } fp4;
        struct { int16_t a[MMA_ROWS * MMA_A_K], b[MMA_COLUMNS * MMA_A_K]; } integer;
    } panel;
};

#endif
