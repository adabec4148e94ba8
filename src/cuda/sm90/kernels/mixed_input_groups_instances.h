/* The instances of the mixed-input GEMM kernels for groups of rows of A, with prepacked weights: the columns are those
 * of BSMI_SM90_MIXED_INPUT_ROWS, and rows the most that a tile has.  bsmi_gemm_CODES_TILE, each for MXFP4 and for
 * NVFP4. */
#ifndef BSMI_SM90_MIXED_INPUT_GROUPS_INSTANCES_H
#define BSMI_SM90_MIXED_INPUT_GROUPS_INSTANCES_H

#include "mixed_input_instances.h"

/* Of a box of A's rows: a tile loads as many boxes as its rows want. */
enum { BSMI_GROUPS_BOX_ROWS = 16 };

/*    tile                   rows g st codes */
#define BSMI_SM90_MIXED_INPUT_GROUPS(X) \
    X(64x256_groups_prepacked, 64, 4, 8, 2)

#endif
