/* What a product takes on a GEMM instance, as far as it is known. */
#ifndef BSMI_CUDA_COST_H
#define BSMI_CUDA_COST_H

#include "cuda/gemm/multiply.h"

/* Tiles of clusters: of groups as many as are to be expected. */
int64_t bsmi_cuda_cost_tiles(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product);

/* Of instance number `gemm`, in nanoseconds; 0: not known. */
double bsmi_cuda_cost(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *product);

/* Of those among them that are for compute capability 12.x. */
double bsmi_geforce_cost(const struct bsmi_cuda_gpu *gpu, int gemm, const struct bsmi_product *product);

#endif
