/* Which bytes arguments cover. */
#include "regions.h"

#include "core/core.h"

void bsmi_regions_add(struct bsmi_regions *list, struct bsmi_region r)
{
    if (r.start != 0 && r.batch > 0 && r.rows > 0 && r.row_bytes > 0) list->all[list->count++] = r;
}

int64_t bsmi_region_bytes(int64_t count, int64_t size)
{
    int64_t bytes;
    return bsmi_mul_overflows(count, size, &bytes) ? INT64_MAX : bytes;
}

void bsmi_regions_add_bytes(struct bsmi_regions *list, const char *name, const void *start, int64_t bytes)
{
    bsmi_regions_add(list, (struct bsmi_region){ name, (uintptr_t)start, 1, 0, 1, 0, bytes });
}

void bsmi_regions_add_matrix(struct bsmi_regions *list, const char *data, const char *scales,
                             const struct bsmi_matrix *m)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    bsmi_regions_add(list, (struct bsmi_region){ data, (uintptr_t)m->data, m->batch, m->batch_bytes, stored.rows,
                                                 m->row_bytes, stored.rows == 0 ? 0 : bsmi_row_used_bytes(&stored) });
    if (m->scale == BSM_UNSCALED || m->packing == BSM_PACKING_GGUF || m->rows == 0 || m->columns == 0) return;
    if (m->map.layout.kind == BSM_LAYOUT_LINEAR) {
        const int64_t pitch = m->map.layout.pitch != 0 ? m->map.layout.pitch : m->scale_columns;
        bsmi_regions_add(list, (struct bsmi_region){ scales, (uintptr_t)m->scales, m->batch, m->scale_batch_bytes,
                                                     m->rows, pitch, m->scale_columns });
    } else {
        bsmi_regions_add(list, (struct bsmi_region){ scales, (uintptr_t)m->scales, m->batch, m->scale_batch_bytes, 1, 0,
                                                     m->map.bytes });
    }
}

void bsmi_regions_add_metadata(struct bsmi_regions *list, const char *metadata, const struct bsmi_matrix *m)
{
    if (m->sparsity == BSM_SPARSITY_NONE) return;
    bsmi_regions_add(list, (struct bsmi_region){ metadata, (uintptr_t)m->metadata, m->batch, m->metadata_batch_bytes,
                                                 m->rows, m->metadata_row_bytes, bsmi_metadata_row_bytes(m) });
}

/* One that repeats nothing has no stride: callers may give any. */
struct dimension { int64_t count, stride; };
static struct dimension dimension(int64_t count, int64_t stride)
{
    return (struct dimension){ count, count > 1 ? stride : 0 };
}

/* The same elements from the lowest on; returns the number of its lowest element. */
static int64_t upwards(struct dimension *d)
{
    const int64_t lowest = d->stride < 0 ? (d->count - 1) * d->stride : 0;
    if (d->stride < 0) d->stride = -d->stride;
    if (d->stride == 0) d->count = 1;
    return lowest;
}

void bsmi_regions_add_reals(struct bsmi_regions *list, const char *data, const struct bsmi_reals *r)
{
    if (r->rows == 0 || r->columns == 0) return;
    struct dimension inner = dimension(r->columns, r->column_stride), outer = dimension(r->rows, r->row_stride),
                     batch = dimension(r->batch, r->batch_stride);
    if ((inner.stride != 1 && inner.stride != -1 && inner.count > 1) || outer.count == 1) {
        const struct dimension columns = inner;
        inner = outer, outer = columns;
    }
    const int64_t size = (int64_t)bsm_real_bytes((int)r->type);
    const int64_t lowest = upwards(&inner) + upwards(&outer) + upwards(&batch);
    if (inner.stride > 1) {
        inner.count =
            (batch.count - 1) * batch.stride + (outer.count - 1) * outer.stride + (inner.count - 1) * inner.stride + 1;
        outer = batch = dimension(1, 0);
    }
    bsmi_regions_add(list, (struct bsmi_region){ data, (uintptr_t)r->data + (uintptr_t)(lowest * size), batch.count,
                                                 batch.stride * size, outer.count, outer.stride * size,
                                                 bsmi_region_bytes(inner.count, size) });
}

static bsm_status check_pair(const struct bsmi_region *x, const struct bsmi_region *y)
{
    if (!bsmi_regions_meet(x, y)) return BSM_OK;
    return bsmi_fail(BSM_EINVAL, "%s=%p overlaps %s=%p: what is written must not overlap anything else", x->name,
                     (void *)x->start, y->name, (void *)y->start);
}

bsm_status bsmi_regions_check(const struct bsmi_regions *written, const struct bsmi_regions *read)
{
    bsm_status status = BSM_OK;
    for (int i = 0; i < written->count && status == BSM_OK; i++) {
        for (int j = 0; j < read->count && status == BSM_OK; j++) status = check_pair(&written->all[i], &read->all[j]);
        for (int j = 0; j < i && status == BSM_OK; j++) status = check_pair(&written->all[i], &written->all[j]);
    }
    return status;
}
