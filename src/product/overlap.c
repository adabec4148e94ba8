/* What a product writes must not overlap anything else, but D may be C. */
#include "product.h"
#include "core/core.h"
#include "matrix/regions.h"
#include "matrix/written.h"

static bool d_is_c(const struct bsmi_product *p)
{
    return p->has_c && p->gate == BSM_GATE_NONE && p->c.data == p->d.data && p->c.format == p->d.format &&
           p->c.row_bytes == p->d.row_bytes && p->c.batch == p->d.batch &&
           (p->d.batch == 1 || p->c.batch_bytes == p->d.batch_bytes);
}

static bsm_status check_pair(const struct bsmi_product *p, const struct bsmi_region *x, const struct bsmi_region *y)
{
    if (!bsmi_regions_meet(x, y)) return BSM_OK;
    const bool c_and_d = p->has_c && y->start == (uintptr_t)p->c.data && strcmp(y->name, "c->data") == 0
                         && strcmp(x->name, "d->data") == 0;
    return bsmi_fail(BSM_EINVAL, "%s=%p overlaps %s=%p: what is written must not overlap anything else%s", x->name,
                     (void *)x->start, y->name, (void *)y->start,
                     c_and_d ? "; D may be C itself only with the same data, format and pitches, and not gated" : "");
}

static void add_read(struct bsmi_regions *read, const struct bsmi_product *p)
{
    bsmi_regions_add_matrix(read, "a->data", "a->scales", &p->a);
    bsmi_regions_add_bytes(read, "a->tensor_scale", p->a.tensor_scale, (int64_t)sizeof(float));
    if (!p->b_alone) bsmi_regions_add_matrix(read, "b->data", "b->scales", &p->b);
    bsmi_regions_add_metadata(read, "a->metadata", &p->a);
    bsmi_regions_add_metadata(read, "b->metadata", &p->b);
    bsmi_regions_add_bytes(read, "b->tensor_scale", p->b.tensor_scale, (int64_t)sizeof(float));
    bsmi_regions_add_bytes(read, "d->tensor_scale", p->d.tensor_scale, (int64_t)sizeof(float));
    if (p->bias != NULL) {
        const int64_t size = (int64_t)bsm_real_bytes((int)p->bias_type),
                      matrices = p->groups > 0 ? p->groups : p->batch;
        bsmi_regions_add(read,
                         (struct bsmi_region){ "bias", (uintptr_t)p->bias, matrices,
                                               matrices > 1 ? bsmi_region_bytes(p->bias_batch_pitch, size) : 0, 1, 0,
                                               bsmi_region_bytes(p->bias_per == BSM_PER_ROW ? p->m : p->n, size) });
    }
    const int64_t alphas = p->alpha_per == BSM_PER_ROW ? p->m : p->alpha_per == BSM_PER_COLUMN ? p->n
                           : p->alpha_per == BSM_PER_BATCH ? (p->groups > 0 ? p->groups : p->batch) : 1;
    bsmi_regions_add_bytes(read, "alpha", p->alpha, bsmi_region_bytes(alphas, (int64_t)sizeof(float)));
    bsmi_regions_add_bytes(read, "beta", p->beta, (int64_t)sizeof(float));
    if (p->groups > 0)
        bsmi_regions_add_bytes(read, "group_rows", p->group_rows,
                               bsmi_region_bytes(p->groups, (int64_t)sizeof *p->group_rows));
    if (p->column_groups > 0)
        bsmi_regions_add_bytes(read, "group_columns", p->group_columns,
                               bsmi_region_bytes(p->column_groups, (int64_t)sizeof *p->group_columns));
}

static void add_written(struct bsmi_regions *written, const struct bsmi_product *p)
{
    bsmi_regions_add_matrix(written, "d->data", "d->scales", &p->d);
    if (p->amax != NULL) bsmi_regions_add_bytes(written, "amax", p->amax, (int64_t)sizeof(float));
}

bsm_status bsmi_product_check_overlap(const struct bsmi_product *p)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    bsm_status status = bsmi_matrix_check_written("d", &p->d);
    add_written(&written, p);
    add_read(&read, p);
    if (p->has_c && !d_is_c(p)) bsmi_regions_add_matrix(&read, "c->data", "", &p->c);
    for (int i = 0; i < written.count && status == BSM_OK; i++) {
        for (int j = 0; j < read.count && status == BSM_OK; j++) status = check_pair(p, &written.all[i], &read.all[j]);
        for (int j = 0; j < i && status == BSM_OK; j++) status = check_pair(p, &written.all[i], &written.all[j]);
    }
    return status;
}

bsm_status bsmi_product_check_panels(const struct bsmi_product *p, size_t panels_bytes)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    add_written(&written, p);
    bsmi_regions_add_bytes(&read, "b_panels", p->b_panels, (int64_t)panels_bytes);
    return bsmi_regions_check(&written, &read);
}

bsm_status bsmi_product_check_unpacked(const struct bsmi_product *p, size_t panels_bytes)
{
    struct bsmi_regions written = { .count = 0 }, read = { .count = 0 };
    const bsm_status status = bsmi_matrix_check_written("b", &p->b);
    if (status != BSM_OK) return status;
    bsmi_regions_add_matrix(&written, "b->data", "b->scales", &p->b);
    bsmi_regions_add_bytes(&read, "b_panels", p->b_panels, (int64_t)panels_bytes);
    return bsmi_regions_check(&written, &read);
}

bsm_status bsmi_product_check_apart(const struct bsmi_product *p, size_t panels_bytes, const char *name,
                                    const void *memory, size_t bytes)
{
    struct bsmi_regions written = { .count = 0 }, others = { .count = 0 };
    bsmi_regions_add_bytes(&written, name, memory, (int64_t)bytes);
    bsmi_regions_add_bytes(&others, "b_panels", p->b_panels, (int64_t)panels_bytes);
    add_read(&others, p);
    add_written(&others, p);
    if (p->has_c) bsmi_regions_add_matrix(&others, "c->data", "", &p->c);
    return bsmi_regions_check(&written, &others);
}
