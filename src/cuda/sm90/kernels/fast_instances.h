/* The kernels of BSM_COMPUTE_FAST: bsmi_gemm_fast_TILE, cuda_wgmma_fast_TILE; columns as in gemm_instances.h. */
#ifndef BSMI_SM90_FAST_INSTANCES_H
#define BSMI_SM90_FAST_INSTANCES_H

#include "gemm_instances.h"

/*    tile         rows cols groups cluster stages d_box_bytes */
#define BSMI_SM90_FAST(X) X(128x192_2x1, 128, 192, 2, 2, 1, 5, 64)

#endif
