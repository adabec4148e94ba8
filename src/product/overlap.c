/* What a product writes must not overlap anything else, but D may be C. */
#include "product.h"
#include "core/core.h"

/* batch x rows stretches of row_bytes, batch_stride and row_stride bytes apart. */
struct region { const char *name; uintptr_t start; int64_t batch, batch_stride, rows, row_stride, row_bytes; };

enum { MOST_REGIONS = 16 };
struct regions { struct region all[MOST_REGIONS]; int count; };

static void add(struct regions *list, struct region r)
{
    if (r.start != 0 && r.batch > 0 && r.rows > 0 && r.row_bytes > 0) list->all[list->count++] = r;
}

static void add_bytes(struct regions *list, const char *name, const void *start, int64_t bytes)
{
    add(list, (struct region){ name, (uintptr_t)start, 1, 0, 1, 0, bytes });
}

static void add_matrix(struct regions *list, const char *data, const char *scales, const char *tensor_scale, const struct bsmi_matrix *m)
{
    add(list, (struct region){ data, (uintptr_t)m->data, m->batch, m->batch_bytes, m->rows, m->row_bytes, m->rows == 0 ? 0 : bsmi_row_used_bytes(m) });
    add_bytes(list, tensor_scale, m->tensor_scale, (int64_t)sizeof(float));
    if (m->scale == BSM_UNSCALED || m->packing == BSM_PACKING_GGUF || m->rows == 0 || m->columns == 0) return;
    if (m->map.layout.kind == BSM_LAYOUT_LINEAR) {
        const int64_t pitch = m->map.layout.pitch != 0 ? m->map.layout.pitch : m->scale_columns;
        add(list, (struct region){ scales, (uintptr_t)m->scales, m->batch, m->scale_batch_bytes, m->rows, pitch, m->scale_columns });
    } else {
        add(list, (struct region){ scales, (uintptr_t)m->scales, m->batch, m->scale_batch_bytes, 1, 0, m->map.bytes });
    }
}

static int64_t span(const struct region *r) { return (r->batch - 1) * r->batch_stride + (r->rows - 1) * r->row_stride + r->row_bytes; }

/* Distance from y to x, for stretches that are known to lie within INT64_MAX of each other. */
static int64_t distance(uintptr_t x, uintptr_t y) { return (int64_t)(x - y); }

static bool spans_overlap(const struct region *x, const struct region *y)
{
    return x->start < y->start + (uintptr_t)span(y) && y->start < x->start + (uintptr_t)span(x);
}

/* Does any row of one matrix of y meet the bytes [start, start + bytes)?  offset: start - the matrix's start. */
static bool row_meets(const struct region *y, int64_t offset, int64_t bytes)
{
    /* Row i covers [i stride, i stride + row_bytes): it meets if i stride > offset - row_bytes and i stride < offset + bytes. */
    if (y->rows == 1) return offset < y->row_bytes && offset + bytes > 0;
    const int64_t above = offset - y->row_bytes;
    const int64_t first = above < 0 ? 0 : above / y->row_stride + 1;
    return first < y->rows && first * y->row_stride < offset + bytes;
}

/* Exact, row by row; only reached when the spans overlap, as they do where two matrices share rows of one buffer. */
static bool regions_overlap(const struct region *x, const struct region *y)
{
    if (!spans_overlap(x, y)) return false;
    for (int64_t bx = 0; bx < x->batch; bx++)
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t by = 0; by < y->batch; by++) {
                const int64_t offset = distance(x->start, y->start) + bx * x->batch_stride + i * x->row_stride - by * y->batch_stride;
                if (row_meets(y, offset, x->row_bytes)) return true;
            }
    return false;
}

static bool d_is_c(const struct bsmi_product *p)
{
    return p->has_c && p->gate == BSM_GATE_NONE && p->c.data == p->d.data && p->c.format == p->d.format && p->c.row_bytes == p->d.row_bytes
        && p->c.batch == p->d.batch && (p->d.batch == 1 || p->c.batch_bytes == p->d.batch_bytes);
}

static bsm_status check_pair(const struct bsmi_product *p, const struct region *x, const struct region *y)
{
    if (!regions_overlap(x, y)) return BSM_OK;
    const bool c_and_d = p->has_c && y->start == (uintptr_t)p->c.data && strcmp(y->name, "c->data") == 0 && strcmp(x->name, "d->data") == 0;
    return bsmi_fail(BSM_EINVAL, "%s=%p overlaps %s=%p: what is written must not overlap anything else%s", x->name, (void *)x->start, y->name,
                     (void *)y->start, c_and_d ? "; D may be C itself only with the same data, format and pitches, and not gated" : "");
}

bsm_status bsmi_product_check_overlap(const struct bsmi_product *p)
{
    struct regions written = { .count = 0 }, read = { .count = 0 };
    bsm_status status = bsmi_matrix_check_written("d", &p->d);
    if (status != BSM_OK) return status;
    add_matrix(&written, "d->data", "d->scales", "d->tensor_scale", &p->d);
    /* d's tensor scale is read. */
    for (int i = 0; i < written.count; i++)
        if (strcmp(written.all[i].name, "d->tensor_scale") == 0) {
            read.all[read.count++] = written.all[i];
            written.all[i] = written.all[--written.count];
        }
    if (p->amax != NULL) add_bytes(&written, "amax", p->amax, (int64_t)sizeof(float));
    add_matrix(&read, "a->data", "a->scales", "a->tensor_scale", &p->a);
    add_matrix(&read, "b->data", "b->scales", "b->tensor_scale", &p->b);
    if (p->has_c && !d_is_c(p)) add_matrix(&read, "c->data", "", "", &p->c);
    if (p->bias != NULL) {
        const int64_t size = (int64_t)bsm_real_bytes((int)p->bias_type), matrices = p->groups > 0 ? p->groups : p->batch;
        add(&read, (struct region){ "bias", (uintptr_t)p->bias, matrices, p->bias_batch_pitch * size, 1, 0,
                                    (p->bias_per == BSM_PER_ROW ? p->m : p->n) * size });
    }
    const int64_t alphas = p->alpha_per == BSM_PER_ROW ? p->m : p->alpha_per == BSM_PER_COLUMN ? p->n
                           : p->alpha_per == BSM_PER_BATCH ? (p->groups > 0 ? p->groups : p->batch) : 1;
    add_bytes(&read, "alpha", p->alpha, alphas * (int64_t)sizeof(float));
    add_bytes(&read, "beta", p->beta, (int64_t)sizeof(float));

    for (int i = 0; i < written.count; i++) {
        for (int j = 0; j < read.count; j++) {
            status = check_pair(p, &written.all[i], &read.all[j]);
            if (status != BSM_OK) return status;
        }
        for (int j = 0; j < i; j++) {
            status = check_pair(p, &written.all[i], &written.all[j]);
            if (status != BSM_OK) return status;
        }
    }
    return BSM_OK;
}
