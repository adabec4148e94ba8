/* Panels: weights of four bits in the order in which the GEMM kernels of packed.cuh read them, as bsmi_pack writes them.  What host and
 * kernels agree on; docs/design/prepacked.md has the order of bits.
 *
 * Exponents of B's rows first, an int32_t each, matrix by matrix, then for every 64 rows of a matrix turns of 384 columns of K: codes of
 * all rows, then their scales.  Rows and columns that there are not have codes 0. */
#ifndef BSMI_SM90_PANEL_LAYOUT_H
#define BSMI_SM90_PANEL_LAYOUT_H

#include <stdint.h>

enum {
    BSMI_PANEL_ROWS = 64,
    BSMI_PANEL_STEPS = 6,                 /* of 64 columns in a turn */
    BSMI_PANEL_COLUMNS = 64 * BSMI_PANEL_STEPS,
    BSMI_PANEL_LEAST_TURNS = 3,           /* warpgroups that take turns at a tile have one each */
    BSMI_PANEL_CODE_BYTES = BSMI_PANEL_ROWS * BSMI_PANEL_COLUMNS / 2
};

/* block: 32 or 16 columns have a scale. */
#define BSMI_PANEL_TURN_BYTES(block) (BSMI_PANEL_CODE_BYTES + BSMI_PANEL_ROWS * BSMI_PANEL_COLUMNS / (block))

static inline int64_t bsmi_panel_turns(int64_t columns)
{
    const int64_t turns = (columns + BSMI_PANEL_COLUMNS - 1) / BSMI_PANEL_COLUMNS;
    return turns < BSMI_PANEL_LEAST_TURNS ? BSMI_PANEL_LEAST_TURNS : turns;
}

#endif
