/* Whether a plan that was made for one product serves another. */
#include "product.h"
#include "core/core.h"

static bsm_status differ(const char *field, int64_t planned, int64_t given)
{
    return bsmi_fail(BSM_EINVAL, "%s=%lld, but the plan was made for %lld: only pointers, group_rows and "
                                 "group_columns may change; make another plan", field,
                     (long long)given, (long long)planned);
}

struct field { const char *name; int64_t planned, given; };

static bsm_status compare(const char *matrix, const struct field *fields, int count)
{
    for (int i = 0; i < count; i++)
        if (fields[i].planned != fields[i].given) {
            char name[64] = { 0 };
            strncat(name, matrix, 31);
            strncat(name, fields[i].name, 31);
            return differ(name, fields[i].planned, fields[i].given);
        }
    return BSM_OK;
}

static bsm_status same_matrix(const char *name, const struct bsmi_matrix *x, const struct bsmi_matrix *y)
{
    const struct field fields[] = {
        { "format", (int64_t)x->format, (int64_t)y->format },
        { "packing", (int64_t)x->packing, (int64_t)y->packing },
        { "major", (int64_t)x->major, (int64_t)y->major },
        { "rows", x->rows, y->rows },
        { "columns", x->columns, y->columns },
        { "batch", x->batch, y->batch },
        { "pitch", x->pitch, y->pitch },
        { "batch_pitch (in bytes)", x->batch_bytes, y->batch_bytes },
        { "scale_layout.kind", (int64_t)x->map.layout.kind, (int64_t)y->map.layout.kind },
        { "scale_layout.pitch", x->map.layout.pitch, y->map.layout.pitch },
        { "scale_layout.tile_rows", x->map.layout.tile_rows, y->map.layout.tile_rows },
        { "scale_layout.tile_columns", x->map.layout.tile_columns, y->map.layout.tile_columns },
        { "scale_batch_pitch", x->scale_batch_bytes, y->scale_batch_bytes },
        { "sparsity", (int64_t)x->sparsity, (int64_t)y->sparsity },
        { "metadata_pitch", x->metadata_row_bytes, y->metadata_row_bytes },
        { "metadata_batch_pitch", x->metadata_batch_bytes, y->metadata_batch_bytes },
        { "tensor_scale_use", (int64_t)x->tensor_scale_use, (int64_t)y->tensor_scale_use },
    };
    return compare(name, fields, (int)(sizeof fields / sizeof fields[0]));
}

bsm_status bsmi_product_same_shape(const struct bsmi_product *x, const struct bsmi_product *y)
{
    const struct field fields[] = {
        { "alpha_per", (int64_t)x->alpha_per, (int64_t)y->alpha_per },
        { "activation", (int64_t)x->activation, (int64_t)y->activation },
        { "gate", (int64_t)x->gate, (int64_t)y->gate },
        { "d_recipe", (int64_t)x->d_recipe, (int64_t)y->d_recipe },
        { "d_nonfinite", (int64_t)x->d_nonfinite, (int64_t)y->d_nonfinite },
        { "d_no_saturate", x->d_no_saturate, y->d_no_saturate },
        { "groups", x->groups, y->groups },
        { "groups (of columns)", x->column_groups, y->column_groups },
        { "compute", (int64_t)x->compute, (int64_t)y->compute },
        { "order", (int64_t)x->order, (int64_t)y->order },
    };
    bsm_status status = same_matrix("a->", &x->a, &y->a);
    if (status == BSM_OK) status = same_matrix("b->", &x->b, &y->b);
    if (status == BSM_OK) status = same_matrix("d->", &x->d, &y->d);
    if (status == BSM_OK && x->has_c && y->has_c) status = same_matrix("c->", &x->c, &y->c);
    if (status == BSM_OK) status = compare("product->", fields, (int)(sizeof fields / sizeof fields[0]));
    if (status != BSM_OK || x->bias == NULL || y->bias == NULL) return status;
    const struct field bias[] = {
        { "bias_type", (int64_t)x->bias_type, (int64_t)y->bias_type },
        { "bias_per", (int64_t)x->bias_per, (int64_t)y->bias_per },
        { "bias_batch_pitch", x->bias_batch_pitch, y->bias_batch_pitch },
    };
    return compare("product->", bias, (int)(sizeof bias / sizeof bias[0]));
}
