/* The instances of the GEMM kernels that read panels, each for MXFP4 and for NVFP4: bsmi_gemm_CODES_TILE, for a person
 * cuda_wgmma_CODES_TILE.
 *
 *   rows          of D that a CTA makes; of columns it makes 64
 *   stages        of the ring of A's rows
 *   panel_stages  of the ring of panels
 *
 *    tile             rows stages panel_stages */
#ifndef BSMI_SM90_PACKED_INSTANCES_H
#define BSMI_SM90_PACKED_INSTANCES_H

#include "panel_layout.h"

#define BSMI_SM90_PACKED(X)              \
    X(16x64_packed,  16, 8, 8)           \
    X(32x64_packed,  32, 6, 8)           \
    X(64x64_packed,  64, 4, 6)

/* Warpgroups that take turns at a tile; columns of K, at most. */
enum { BSMI_SM90_PACKED_GROUPS = 3, BSMI_MOST_PANEL_COLUMNS = 1 << 30 };

/* Of their shared memory: what kernels and the table of kernels agree on.  Sums on their way to D, and rows left out, share a place. */
#define BSMI_SM90_PACKED_CHUNKS(rows) ((rows) < 32 ? 6912 : 4 * 32 * 80)
#define BSMI_SM90_PACKED_BYTES(block, rows, stages, panel_stages)                                                                    \
    ((stages) * (4 * (rows) * BSMI_K_STEP * 2 + 16) + (panel_stages) * (BSMI_PANEL_TURN_BYTES(block) + 16) + (rows) * 64 * 4 +        \
     BSMI_SM90_PACKED_CHUNKS(rows) + BSMI_SM90_PACKED_GROUPS * (12 * ((rows) + 64) + 4 * 8))

#endif
