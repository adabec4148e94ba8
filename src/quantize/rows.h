/* Rows of blocks through a kernel of kernels.h. */
#ifndef BSMI_ROWS_H
#define BSMI_ROWS_H

#include "quantize/kernels.h"
#include "quantize/walk.h"

struct bsmi_block_rows {
    const struct bsmi_reals *source;
    const struct bsmi_matrix *destination;
    const struct bsmi_block_quantizer *quantizer;
    const struct bsmi_quantize_kernel *kernel;    /* not the last of the table */
    struct bsmi_block_coding coding;
};

/* Quantizes an area of at most BSMI_WALK_ROWS x BSMI_WALK_SPAN.  Default floating-point mode. */
void bsmi_quantize_area(const struct bsmi_block_rows *rows, const struct bsmi_walk_area *area);

#endif
