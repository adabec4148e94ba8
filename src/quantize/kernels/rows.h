/* Rows of blocks through a kernel of kernels.h. */
#ifndef BSMI_ROWS_H
#define BSMI_ROWS_H

#include "matrix/reals.h"
#include "table.h"
#include "quantize/walk/walk.h"

/* What codes are worth: elements and scales. */
struct bsmi_code_values { float elements[256], scales[256]; };

struct bsmi_block_rows {
    const struct bsmi_reals *source;
    const struct bsmi_matrix *destination;
    const struct bsmi_block_quantizer *quantizer;
    const struct bsmi_quantize_kernel *kernel;    /* not the last of the table */
    struct bsmi_block_coding coding;
    struct bsmi_code_values values;       /* for counting (count.h) alone */
};

/* The numbers of a piece as floats: where they lie, or in `copy`. */
const float *bsmi_piece_numbers(const struct bsmi_block_rows *rows, const struct bsmi_piece *piece, float *copy);

/* Quantizes an area of at most BSMI_WALK_ROWS x BSMI_WALK_SPAN.  Default floating-point mode. */
void bsmi_quantize_area(const struct bsmi_block_rows *rows, const struct bsmi_walk_area *area);

#endif
