/* The instances of the GEMM kernels of gemm_integers.cu, in the columns of gemm_instances.h: of each tile one kernel for rows of 8-bit
 * integers, bsmi_gemm_integers_TILE, for a person cuda_wgmma_integers_TILE, and one for bf16 rows that takes its place where integers do
 * not serve, bsmi_gemm_rest_TILE, cuda_wgmma_rest_TILE.
 *
 *    tile         rows cols groups cluster stages d_box_bytes */
#ifndef BSMI_SM90_INTEGER_INSTANCES_H
#define BSMI_SM90_INTEGER_INSTANCES_H

#define BSMI_SM90_GEMM_INTEGERS(X) X(128x256_2x1, 128, 256, 2, 2, 1, 4, 128)

#endif
