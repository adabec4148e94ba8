/* Checked descriptions as kernels take them. */
#include "matrix.h"

struct bsmi_device_layout bsmi_device_layout_of(const struct bsmi_scale_map *map)
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

struct bsmi_device_matrix bsmi_device_matrix_of(const struct bsmi_matrix *m)
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
        .layout = bsmi_device_layout_of(&m->map),
    };
}

struct bsmi_device_reals bsmi_device_reals_of(const struct bsmi_reals *r)
{
    return (struct bsmi_device_reals){
        .data = r->data, .type = (int32_t)r->type, .rows = r->rows, .columns = r->columns, .batch = r->batch,
        .row_stride = r->row_stride, .column_stride = r->column_stride, .batch_stride = r->batch_stride,
    };
}

struct bsmi_expand_parameters bsmi_device_expand_of(const struct bsmi_matrix *from, const struct bsmi_matrix *to)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(from);
    return (struct bsmi_expand_parameters){
        .stored = bsmi_device_matrix_of(&stored),
        .to = bsmi_device_matrix_of(to),
        .metadata = from->metadata,
        .metadata_row_bytes = from->metadata_row_bytes,
        .metadata_batch_bytes = from->metadata_batch_bytes,
        .unit = bsmi_sparse_unit(from),
    };
}

struct bsmi_convert_scales_parameters bsmi_device_expand_scales_of(const struct bsmi_matrix *from,
                                                                   const struct bsmi_matrix *to)
{
    return (struct bsmi_convert_scales_parameters){
        .from = from->scales,
        .to = to->scales,
        .from_layout = bsmi_device_layout_of(&from->map),
        .to_layout = bsmi_device_layout_of(&to->map),
        .batch = to->batch,
        .from_batch_bytes = from->scale_batch_bytes,
        .to_batch_bytes = to->scale_batch_bytes,
        .repeat = 2,
    };
}

int32_t bsmi_device_recipe_of(bsm_recipe recipe, bsm_scale scale)
{
    if (recipe != BSM_RECIPE_DEFAULT) return (int32_t)recipe;
    return scale == BSM_E8M0 ? BSM_RECIPE_RCEIL : scale == BSM_UE4M3 ? BSM_RECIPE_NEAREST : BSM_RECIPE_DEFAULT;
}

static void fill_addends(const struct bsmi_product *p, struct bsmi_epilogue_parameters *e)
{
    e->beta = p->beta;
    if (p->has_c) {
        e->c = p->c.data, e->c_element = (int32_t)p->c.element, e->c_row_bytes = p->c.row_bytes;
        e->c_batch_bytes = p->c.batch == 1 ? 0 : p->c.batch_bytes;
    }
    e->bias = p->bias, e->bias_type = (int32_t)p->bias_type, e->bias_per = (int32_t)p->bias_per;
    e->bias_batch_pitch = p->bias_batch_pitch;
}

void bsmi_device_fill_epilogue(const struct bsmi_product *p, struct bsmi_epilogue_parameters *e)
{
    e->alpha = p->alpha, e->alpha_per = (int32_t)p->alpha_per;
    e->tensor_scale_a = p->a.tensor_scale, e->a_divides = p->a.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES;
    e->tensor_scale_b = p->b.tensor_scale, e->b_divides = p->b.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES;
    fill_addends(p, e);
    e->activation = (int32_t)p->activation, e->gate = (int32_t)p->gate;
    e->d = bsmi_device_matrix_of(&p->d);
    e->d_recipe = bsmi_device_recipe_of(p->d_recipe, p->d.scale), e->d_nonfinite = (int32_t)p->d_nonfinite;
    e->d_no_saturate = p->d_no_saturate;
    e->amax = (uint32_t *)(void *)p->amax;
}
