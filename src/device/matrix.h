/* Checked descriptions as kernels take them. */
#ifndef BSMI_DEVICE_MATRIX_H
#define BSMI_DEVICE_MATRIX_H

#include "blockscale/quantize.h"
#include "device/parameters.h"
#include "matrix/reals.h"
#include "product/product.h"

struct bsmi_device_layout bsmi_device_layout_of(const struct bsmi_scale_map *map);
struct bsmi_device_matrix bsmi_device_matrix_of(const struct bsmi_matrix *m);
struct bsmi_device_reals bsmi_device_reals_of(const struct bsmi_reals *r);

/* The copy `to` of a sparse matrix with all its elements: its codes, and its scales, each of which stands for twice as
 * many columns in `from`. */
struct bsmi_expand_parameters bsmi_device_expand_of(const struct bsmi_matrix *from, const struct bsmi_matrix *to);
struct bsmi_convert_scales_parameters bsmi_device_expand_scales_of(const struct bsmi_matrix *from,
                                                                   const struct bsmi_matrix *to);

/* DEFAULT as the format resolves it. */
int32_t bsmi_device_recipe_of(bsm_recipe recipe, bsm_scale scale);

/* The part of the epilogue that does not depend on how S is made: alpha, tensor scales, beta C, bias, activation, gate,
 * D and amax. */
void bsmi_device_fill_epilogue(const struct bsmi_product *product, struct bsmi_epilogue_parameters *epilogue);

#endif
