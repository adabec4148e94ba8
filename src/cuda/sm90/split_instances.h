/* The instances of the GEMM kernels that decode codes of four bits in registers and divide K, for BSM_ORDER_ANY alone, each
 * for MXFP4 and for NVFP4: bsmi_gemm_CODES_TILE_split, for a person cuda_wgmma_CODES_TILE_splitC, where C CTAs of a cluster
 * divide K, 1 or 2: the same kernel.
 *
 *   rows      of D that a CTA makes; of columns it makes 64
 *   groups    warpgroups of a CTA that divide K
 *   stages    of the ring
 *   columns   of K, at most: scales of a tile lie in shared memory
 *
 *    tile   rows groups stages columns */
#ifndef BSMI_SM90_SPLIT_INSTANCES_H
#define BSMI_SM90_SPLIT_INSTANCES_H

#define BSMI_SM90_SPLITS(X)         \
    X(16x64,  16, 3, 6, 20480)

/* Of their shared memory: what kernels and the table of kernels agree on.  Sums on their way to D, and rows left out, share a
 * place. */
#define BSMI_SM90_SPLIT_CHUNKS 6912
#define BSMI_SM90_SPLIT_BYTES(block, rows, groups, stages, columns)                                                                    \
    ((stages) * (4 * (rows) * BSMI_K_STEP * 2 + 64 * 128 + 16) + (groups) * (rows) * 64 * 4 + BSMI_SM90_SPLIT_CHUNKS +                          \
     64 * ((columns) / (block) + 16) + 64 * 4 + 8 * 4 + 16 + (groups) * 12 * ((rows) + 64) + 4 * 4 * 8)

#endif
