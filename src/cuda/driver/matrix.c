/* Checked descriptions as kernels take them. */
#include "matrix.h"

struct bsmi_device_layout bsmi_cuda_layout(const struct bsmi_scale_map *map)
{
    return (struct bsmi_device_layout){
        .kind = (int32_t)map->layout.kind,
        .pitch = map->layout.pitch,
        .tile_rows = map->layout.tile_rows,
        .tile_columns = map->layout.tile_columns,
        .rows = map->rows,
        .columns = map->columns,
        .padded_rows = map->padded_rows,
        .padded_columns = map->padded_columns,
    };
}

struct bsmi_device_matrix bsmi_cuda_matrix(const struct bsmi_matrix *m)
{
    return (struct bsmi_device_matrix){
        .data = m->data,
        .scales = m->scales,
        .tensor_scale = m->tensor_scale,
        .tensor_scale_divides = m->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES,
        .element = (int32_t)m->element,
        .scale = (int32_t)m->scale,
        .block = m->block,
        .bits = m->bits,
        .packing = (int32_t)m->packing,
        .rows = m->rows,
        .columns = m->columns,
        .batch = m->batch,
        .row_bytes = m->row_bytes,
        .batch_bytes = m->batch_bytes,
        .scale_batch_bytes = m->scale_batch_bytes,
        .layout = bsmi_cuda_layout(&m->map),
    };
}

struct bsmi_device_reals bsmi_cuda_reals(const struct bsmi_reals *r)
{
    return (struct bsmi_device_reals){
        .data = r->data, .type = (int32_t)r->type, .rows = r->rows, .columns = r->columns, .batch = r->batch,
        .row_stride = r->row_stride, .column_stride = r->column_stride, .batch_stride = r->batch_stride,
    };
}

int32_t bsmi_cuda_recipe(bsm_recipe recipe, bsm_scale scale)
{
    if (recipe != BSM_RECIPE_DEFAULT) return (int32_t)recipe;
    return scale == BSM_E8M0 ? BSM_RECIPE_RCEIL : scale == BSM_UE4M3 ? BSM_RECIPE_NEAREST : BSM_RECIPE_DEFAULT;
}
