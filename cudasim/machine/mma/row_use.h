/* Which instruction used which register of a warp: wgmma owns the registers of a product until it has been waited
 * for. */
#ifndef CUDASIM_MACHINE_MMA_ROW_USE_H
#define CUDASIM_MACHINE_MMA_ROW_USE_H

#include "wgmma_product.h"

/* What wgmma and others have done with a row of registers.  fence: the warp's count of wgmma.fence at that time. */
struct row_use {
    uint32_t touched_fence, touched_line; /* by another instruction */
    uint32_t product_fence, product_line, shape;   /* by a product: its accumulator, or (shape 0) its A */
    uint32_t pending, pending_line;       /* products that have not been waited for */
    uint32_t loading_line;                /* of a tcgen05.ld that has not been waited for; 0: none */
    uint32_t copied;                      /* 0: the load writes the row; else lanes whose value was moved from one that
                                             it writes */
};

/* For a warp that has executed wgmma.fence or tcgen05.ld: an instruction of another kind uses its operands. */
trap rows_touch(struct warp *w, const struct insn *in, uint32_t lanes);
/* A product is going to use its operands: reports registers that were used since the last wgmma.fence, then marks
 * them. */
trap rows_claim(struct warp *w, const struct insn *in, const struct wgmma_form *form);
void rows_release(struct warp *w, const struct wgmma_part *part);
/* tcgen05.ld writes the registers of a vector until tcgen05.wait::ld: nobody else may use them, but mov may copy what
 * is to come.  Compilers move registers in front of the wait and ptxas makes no instruction of it; what counts is where
 * the value is computed with, compared or stored. */
trap rows_load(struct warp *w, const struct insn *in, const struct operand *vector);
void rows_loaded(struct warp *w);
/* Makes room for all the rows that the warp has; false: no host memory. */
bool rows_watch(struct warp *w);

#endif
