/* Checked descriptions as kernels take them: device/matrix.h. */
#ifndef BSMI_CUDA_MATRIX_H
#define BSMI_CUDA_MATRIX_H

#include "cuda/params/kernels.h"
#include "device/matrix.h"

static inline struct bsmi_device_layout bsmi_cuda_layout(const struct bsmi_scale_map *map)
{
    return bsmi_device_layout_of(map);
}

static inline struct bsmi_device_matrix bsmi_cuda_matrix(const struct bsmi_matrix *m)
{
    return bsmi_device_matrix_of(m);
}

static inline struct bsmi_device_reals bsmi_cuda_reals(const struct bsmi_reals *r) { return bsmi_device_reals_of(r); }

static inline int32_t bsmi_cuda_recipe(bsm_recipe recipe, bsm_scale scale)
{
    return bsmi_device_recipe_of(recipe, scale);
}

#endif
