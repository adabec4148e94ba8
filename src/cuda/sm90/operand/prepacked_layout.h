/* Prepacked weights: codes of four bits with their scales in the order in which the mixed-input GEMM kernels read them,
 * as bsmi_prepack writes them.  Host and kernels agree on this layout; docs/design/prepacked.md has the order of bits.
 *
 * Exponents of B's rows come first, an int32_t each, matrix by matrix; then, for every 64 rows of a matrix, K slices of
 * 384 columns: codes of all rows, then their scales.  Rows and columns beyond the matrix have codes 0. */
#ifndef BSMI_SM90_PREPACKED_LAYOUT_H
#define BSMI_SM90_PREPACKED_LAYOUT_H

#include <stdint.h>

enum {
    BSMI_PREPACKED_ROWS = 64,             /* of a tile */
    BSMI_PREPACKED_STEPS = 6,             /* of 64 columns in a slice */
    BSMI_PREPACKED_COLUMNS = 64 * BSMI_PREPACKED_STEPS,
    BSMI_PREPACKED_LEAST_SLICES = 3,      /* each of the warpgroups that share a tile has one */
    BSMI_PREPACKED_CODE_BYTES = BSMI_PREPACKED_ROWS * BSMI_PREPACKED_COLUMNS / 2,
    BSMI_PREPACKED_STEP_BYTES = BSMI_PREPACKED_CODE_BYTES / BSMI_PREPACKED_STEPS   /* of codes */
};

/* BSM_ORDER_SPLIT_K: K of more than so many columns has two parts, whole slices, of which the first has as many as the
 * second or one more. */
enum { BSMI_K_PARTS = 2, BSMI_SPLIT_K_COLUMNS = 2 * BSMI_PREPACKED_COLUMNS };

#define BSMI_FIRST_PART_SLICES(slices) (((slices) + 1) / BSMI_K_PARTS)

/* block: 32 or 16 columns have a scale. */
#define BSMI_PREPACKED_SLICE_BYTES(block) \
    (BSMI_PREPACKED_CODE_BYTES + BSMI_PREPACKED_ROWS * BSMI_PREPACKED_COLUMNS / (block))

/* Slices of a tile. */
static inline int64_t bsmi_prepacked_slices(int64_t columns)
{
    const int64_t slices = (columns + BSMI_PREPACKED_COLUMNS - 1) / BSMI_PREPACKED_COLUMNS;
    return slices < BSMI_PREPACKED_LEAST_SLICES ? BSMI_PREPACKED_LEAST_SLICES : slices;
}

#endif
