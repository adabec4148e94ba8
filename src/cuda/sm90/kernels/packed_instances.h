/* The instances of the GEMM kernels that read panels, each for MXFP4 and for NVFP4: bsmi_gemm_CODES_TILE, for a person
 * cuda_wgmma_CODES_TILE.
 *
 *   rows          of D that a CTA makes; of columns it makes 64
 *   groups        warpgroups that take turns at a tile
 *   stages        of the ring of A's rows
 *   panel_stages  of the ring of panels
 *
 *    tile             rows groups stages panel_stages */
#ifndef BSMI_SM90_PACKED_INSTANCES_H
#define BSMI_SM90_PACKED_INSTANCES_H

#include "cuda/sm90/operand/panel_layout.h"

#define BSMI_SM90_PACKED(X)              \
    X(16x64_prepacked,   16, 3, 6, 7)       \
    X(32x64_prepacked,   32, 3, 4, 6)       \
    X(64x64_prepacked,   64, 2, 3, 4)

/* Columns of K, at most. */
enum { BSMI_MOST_PANEL_COLUMNS = 1 << 30 };

/* Of their shared memory: what kernels and the table of kernels agree on.  Sums on their way to D, and rows left out, share a place. */
enum { BSMI_SM90_PACKED_CHUNKS = 6912 };
#define BSMI_SM90_PACKED_BYTES(block, rows, groups, stages, panel_stages)                                                             \
    ((stages) * (BSMI_PANEL_STEPS * (rows) * BSMI_K_STEP * 2 + 16) + (panel_stages) * (BSMI_PANEL_TURN_BYTES(block) + 16) +            \
     (rows) * 64 * 4 + BSMI_SM90_PACKED_CHUNKS + (groups) * 12 * ((rows) + 64))

#endif
