/* From any layout to any other. */
#include "core/core.h"
#include "request.h"

#include <inttypes.h>

/* One side of a conversion. */
struct side {
    struct bsmi_scale_map map;
    unsigned char *data;
};

static bsm_status open_side(const char *name, const char *layout_name, const bsm_scales *scales, struct side *side)
{
    if (scales == NULL) return bsmi_fail(BSM_EINVAL, "%s is NULL", name);
    const bsm_status status =
        bsmi_scale_map_make(layout_name, &scales->layout, scales->rows, scales->columns, &side->map);
    if (status != BSM_OK) return status;
    if (scales->data == NULL && side->map.bytes > 0)
        return bsmi_fail(BSM_EINVAL, "%s->data is NULL: it must hold %" PRId64 " bytes", name, side->map.bytes);
    side->data = scales->data;
    return BSM_OK;
}

static bool same_layout(const bsm_scale_layout *a, const bsm_scale_layout *b)
{
    return a->kind == b->kind && a->pitch == b->pitch && a->tile_rows == b->tile_rows
           && a->tile_columns == b->tile_columns;
}

static bool overlap(const struct side *a, const struct side *b)
{
    const uintptr_t from = (uintptr_t)a->data, to = (uintptr_t)b->data;
    return from < to + (uintptr_t)b->map.bytes && to < from + (uintptr_t)a->map.bytes;
}

/* Offsets are sums of a row's and a column's part (layout.h), so that a scale costs two additions. */
static void copy_scales(const struct side *from, const struct side *to)
{
    enum { COLUMNS = 256 };
    int64_t from_column[COLUMNS], to_column[COLUMNS];
    const int64_t rows = from->map.rows, columns = from->map.columns;
    for (int64_t first = 0; first < columns; first += COLUMNS) {
        const int64_t count = BSMI_MIN(columns - first, COLUMNS);
        for (int64_t i = 0; i < count; i++) {
            from_column[i] = bsmi_scale_at(&from->map, 0, first + i);
            to_column[i] = bsmi_scale_at(&to->map, 0, first + i);
        }
        for (int64_t row = 0; row < rows; row++) {
            const unsigned char *source = from->data + bsmi_scale_at(&from->map, row, 0);
            unsigned char *destination = to->data + bsmi_scale_at(&to->map, row, 0);
            for (int64_t i = 0; i < count; i++) destination[to_column[i]] = source[from_column[i]];
        }
    }
}

static bsm_status check(const bsm_scales *from, const bsm_scales *to, struct side *source, struct side *destination)
{
    bsm_status status = open_side("from", "from->layout", from, source);
    if (status == BSM_OK) status = open_side("to", "to->layout", to, destination);
    if (status != BSM_OK) return status;
    if (from->rows != to->rows || from->columns != to->columns)
        return bsmi_fail(BSM_EINVAL,
                         "from has %" PRId64 " rows x %" PRId64 " columns of scales, to has %" PRId64 " x %" PRId64
                         ": they must be equal",
                         from->rows, from->columns, to->rows, to->columns);
    if (same_layout(&source->map.layout, &destination->map.layout))
        return bsmi_fail(BSM_EINVAL,
                         "from and to are both in layout %s: the scales already are where they should be; copy the "
                         "bytes with memcpy if you need them twice",
                         bsm_layout_name((int)to->layout.kind));
    if (overlap(source, destination))
        return bsmi_fail(BSM_EINVAL,
                         "from and to overlap: from has %" PRId64 " bytes at %p, to has %" PRId64 " bytes at %p; "
                         "convert into another buffer",
                         source->map.bytes, from->data, destination->map.bytes, to->data);
    return BSM_OK;
}

bsm_status bsm_scales_convert(const bsm_scales *from, const bsm_scales *to)
{
    struct side source, destination;
    const bsm_status status = check(from, to, &source, &destination);
    if (status != BSM_OK || destination.map.bytes == 0) return status;
    copy_scales(&source, &destination);
    bsmi_scale_clear_padding(&destination.map, destination.data);
    return BSM_OK;
}

bsm_status bsm_scales_convert_on(bsm_context *context, const bsm_scales *from, const bsm_scales *to)
{
    struct side source, destination;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (context->device == NULL) return bsm_scales_convert(from, to);
    const bsm_status status = check(from, to, &source, &destination);
    if (status != BSM_OK || destination.map.bytes == 0) return status;
    const struct bsmi_convert_request request = { source.map, destination.map, source.data, destination.data };
    return context->device->calls->convert_scales(context, &request);
}
