/* Checked descriptions as kernels take them. */
#ifndef BSMI_CUDA_MATRIX_H
#define BSMI_CUDA_MATRIX_H

#include "blockscale/quantize.h"
#include "cuda/params/kernels.h"
#include "matrix/matrix.h"
#include "matrix/reals.h"

struct bsmi_device_layout bsmi_cuda_layout(const struct bsmi_scale_map *map);
struct bsmi_device_matrix bsmi_cuda_matrix(const struct bsmi_matrix *m);
struct bsmi_device_reals bsmi_cuda_reals(const struct bsmi_reals *r);

/* DEFAULT as the format resolves it. */
int32_t bsmi_cuda_recipe(bsm_recipe recipe, bsm_scale scale);

#endif
