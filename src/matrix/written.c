/* What a function writes must not overlap itself: two threads would write one byte, and the last one would win. */
#include "written.h"

#include "core/core.h"

/* `count` pieces, `stride` apart. */
struct dimension { const char *field; int64_t count, stride; };

/* 0 where nothing is repeated: then the stride may be any. */
static int64_t distance(const struct dimension *d)
{
    if (d->count <= 1) return 0;
    return d->stride < 0 ? -d->stride : d->stride;
}

/* Sorted by distance, each dimension must step over all that lies within the ones before it.  Returns the first that
 * does not, NULL if all do.  Extents were counted before: nothing overflows here. */
static const struct dimension *find_overlap(struct dimension *dimensions, int count, int64_t extent)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && distance(&dimensions[j]) < distance(&dimensions[j - 1]); j--) {
            const struct dimension swapped = dimensions[j];
            dimensions[j] = dimensions[j - 1], dimensions[j - 1] = swapped;
        }
    for (int i = 0; i < count; i++) {
        if (dimensions[i].count <= 1) continue;
        if (distance(&dimensions[i]) < extent) return &dimensions[i];
        extent += (dimensions[i].count - 1) * distance(&dimensions[i]);
    }
    return NULL;
}

static bsm_status fail_overlap(const char *name, const struct dimension *found)
{
    return bsmi_fail(BSM_EINVAL,
                     "%s->%s: elements that are written would lie on one another; let each dimension step over those "
                     "within it",
                     name, found->field);
}

bsm_status bsmi_matrix_check_written(const char *name, const struct bsmi_matrix *m)
{
    if (m->rows == 0 || m->columns == 0) return BSM_OK;
    struct dimension data[] = { { "pitch", m->rows, m->row_bytes }, { "batch_pitch", m->batch, m->batch_bytes } };
    const struct bsmi_matrix stored = bsmi_matrix_stored(m);
    const struct dimension *found = find_overlap(data, 2, bsmi_row_used_bytes(&stored));
    if (found != NULL) return fail_overlap(name, found);
    struct dimension metadata[] = { { "metadata_pitch", m->rows, m->metadata_row_bytes },
                                    { "metadata_batch_pitch", m->batch, m->metadata_batch_bytes } };
    found = m->sparsity == BSM_SPARSITY_NONE ? NULL : find_overlap(metadata, 2, bsmi_metadata_row_bytes(m));
    if (found != NULL) return fail_overlap(name, found);
    if (m->scale == BSM_UNSCALED || m->packing == BSM_PACKING_GGUF) return BSM_OK;
    const bool linear = m->map.layout.kind == BSM_LAYOUT_LINEAR;
    struct dimension scales[] = { { "scale_layout.pitch", linear ? m->rows : 1, m->map.layout.pitch },
                                  { "scale_batch_pitch", m->batch, m->scale_batch_bytes } };
    found = find_overlap(scales, 2, linear ? m->scale_columns : m->map.bytes);
    return found != NULL ? fail_overlap(name, found) : BSM_OK;
}

bsm_status bsmi_reals_check_written(const char *name, const struct bsmi_reals *r)
{
    if (r->rows == 0 || r->columns == 0) return BSM_OK;
    struct dimension elements[] = { { "column_stride", r->columns, r->column_stride },
                                    { "row_stride", r->rows, r->row_stride },
                                    { "batch_stride", r->batch, r->batch_stride } };
    const struct dimension *found = find_overlap(elements, 3, 1);
    return found != NULL ? fail_overlap(name, found) : BSM_OK;
}
