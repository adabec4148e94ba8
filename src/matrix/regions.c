/* Which bytes arguments cover, and whether two of them meet. */
#include "regions.h"
#include "core/core.h"

void bsmi_regions_add(struct bsmi_regions *list, struct bsmi_region r)
{
    if (r.start != 0 && r.batch > 0 && r.rows > 0 && r.row_bytes > 0) list->all[list->count++] = r;
}

void bsmi_regions_add_bytes(struct bsmi_regions *list, const char *name, const void *start, int64_t bytes)
{
    bsmi_regions_add(list, (struct bsmi_region){ name, (uintptr_t)start, 1, 0, 1, 0, bytes });
}

void bsmi_regions_add_matrix(struct bsmi_regions *list, const char *data, const char *scales, const struct bsmi_matrix *m)
{
    bsmi_regions_add(list, (struct bsmi_region){ data, (uintptr_t)m->data, m->batch, m->batch_bytes, m->rows, m->row_bytes,
                                                 m->rows == 0 ? 0 : bsmi_row_used_bytes(m) });
    if (m->scale == BSM_UNSCALED || m->packing == BSM_PACKING_GGUF || m->rows == 0 || m->columns == 0) return;
    if (m->map.layout.kind == BSM_LAYOUT_LINEAR) {
        const int64_t pitch = m->map.layout.pitch != 0 ? m->map.layout.pitch : m->scale_columns;
        bsmi_regions_add(list, (struct bsmi_region){ scales, (uintptr_t)m->scales, m->batch, m->scale_batch_bytes, m->rows, pitch,
                                                     m->scale_columns });
    } else {
        bsmi_regions_add(list,
                         (struct bsmi_region){ scales, (uintptr_t)m->scales, m->batch, m->scale_batch_bytes, 1, 0, m->map.bytes });
    }
}

void bsmi_regions_add_reals(struct bsmi_regions *list, const char *data, const struct bsmi_reals *r)
{
    if (r->rows == 0 || r->columns == 0) return;
    struct { int64_t count, stride; } inner = { r->columns, r->column_stride }, outer = { r->rows, r->row_stride },
                                      batch = { r->batch, r->batch_stride };
    if ((inner.stride != 1 && inner.stride != -1 && inner.count > 1) || outer.count == 1) {
        inner.count = r->rows, inner.stride = r->row_stride;
        outer.count = r->columns, outer.stride = r->column_stride;
    }
    const int64_t size = (int64_t)bsm_real_bytes((int)r->type);
    int64_t first = 0;                    /* the element at the lowest address */
    if (inner.stride < 0) first += (inner.count - 1) * inner.stride, inner.stride = -inner.stride;
    if (outer.stride < 0) first += (outer.count - 1) * outer.stride, outer.stride = -outer.stride;
    if (batch.stride < 0) first += (batch.count - 1) * batch.stride, batch.stride = -batch.stride;
    if (outer.stride == 0) outer.count = 1;
    if (batch.stride == 0) batch.count = 1;
    if (inner.count == 1 || inner.stride == 0) inner.count = inner.stride = 1;
    if (inner.stride != 1) {
        inner.count = (batch.count - 1) * batch.stride + (outer.count - 1) * outer.stride + (inner.count - 1) * inner.stride + 1;
        outer.count = batch.count = 1;
    }
    bsmi_regions_add(list, (struct bsmi_region){ data, (uintptr_t)(r->data + first * size), batch.count, batch.stride * size,
                                                 outer.count, outer.stride * size, inner.count * size });
}

static int64_t span(const struct bsmi_region *r)
{
    return (r->batch - 1) * r->batch_stride + (r->rows - 1) * r->row_stride + r->row_bytes;
}

/* Distance from y to x, for stretches that are known to lie within INT64_MAX of each other. */
static int64_t distance(uintptr_t x, uintptr_t y) { return (int64_t)(x - y); }

static bool spans_overlap(const struct bsmi_region *x, const struct bsmi_region *y)
{
    return x->start < y->start + (uintptr_t)span(y) && y->start < x->start + (uintptr_t)span(x);
}

/* Does any row of one matrix of y meet the bytes [start, start + bytes)?  offset: start - the matrix's start. */
static bool row_meets(const struct bsmi_region *y, int64_t offset, int64_t bytes)
{
    /* Row i covers [i stride, i stride + row_bytes): it meets if i stride > offset - row_bytes and i stride < offset + bytes. */
    if (y->rows == 1) return offset < y->row_bytes && offset + bytes > 0;
    const int64_t above = offset - y->row_bytes;
    const int64_t first = above < 0 ? 0 : above / y->row_stride + 1;
    return first < y->rows && first * y->row_stride < offset + bytes;
}

/* Exact, row by row; only reached when the spans overlap, as they do where two matrices share rows of one buffer. */
bool bsmi_regions_meet(const struct bsmi_region *x, const struct bsmi_region *y)
{
    if (!spans_overlap(x, y)) return false;
    for (int64_t bx = 0; bx < x->batch; bx++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t by = 0; by < y->batch; by++) {
                const int64_t offset =
                    distance(x->start, y->start) + bx * x->batch_stride + i * x->row_stride - by * y->batch_stride;
                if (row_meets(y, offset, x->row_bytes)) return true;
            }
    return false;
}

static bsm_status check_pair(const struct bsmi_region *x, const struct bsmi_region *y)
{
    if (!bsmi_regions_meet(x, y)) return BSM_OK;
    return bsmi_fail(BSM_EINVAL, "%s=%p overlaps %s=%p: what is written must not overlap anything else", x->name, (void *)x->start,
                     y->name, (void *)y->start);
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
