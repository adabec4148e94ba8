/* The way through a matrix, see walk.h. */
#include "walk.h"

#include "core/core.h"

bsm_status bsmi_shapes_equal(struct bsmi_shape source, struct bsmi_shape destination)
{
    const struct { const char *field; int64_t source, destination; } sizes[] = {
        { "rows", source.rows, destination.rows }, { "columns", source.columns, destination.columns },
        { "batch", source.batch, destination.batch } };
    for (int i = 0; i < 3; i++)
        if (sizes[i].source != sizes[i].destination)
            return bsmi_fail(BSM_EINVAL, "source->%s=%lld, destination->%s=%lld: the shapes must be equal",
                             sizes[i].field, (long long)sizes[i].source, sizes[i].field,
                             (long long)sizes[i].destination);
    return BSM_OK;
}

struct bsmi_walk bsmi_walk_make(struct bsmi_shape shape)
{
    struct bsmi_walk walk = { .rows = shape.rows, .columns = shape.columns, .units_per_task = 1 };
    if (shape.rows == 0 || shape.columns == 0 || shape.batch == 0) return walk;
    walk.row_groups = bsmi_ceil_div(shape.rows, BSMI_WALK_ROWS);
    walk.spans = bsmi_ceil_div(shape.columns, BSMI_WALK_SPAN);
    walk.units = shape.batch * walk.row_groups * walk.spans;      /* no more than there are elements, which were
                                                                     counted */
    walk.units_per_task = bsmi_ceil_div(walk.units, BSMI_WALK_TASKS);
    walk.tasks = bsmi_ceil_div(walk.units, walk.units_per_task);
    return walk;
}

struct bsmi_walk_place bsmi_walk_start(const struct bsmi_walk *walk, int64_t task)
{
    const int64_t first = task * walk->units_per_task;
    return (struct bsmi_walk_place){ first, BSMI_MIN(first + walk->units_per_task, walk->units), 0 };
}

struct bsmi_walk_area bsmi_walk_area(const struct bsmi_walk *walk, int64_t unit)
{
    const int64_t span = unit % walk->spans, group = unit / walk->spans % walk->row_groups;
    struct bsmi_walk_area area = { .batch = unit / walk->spans / walk->row_groups };
    area.row = group * BSMI_WALK_ROWS, area.rows = BSMI_MIN(walk->rows - area.row, BSMI_WALK_ROWS);
    area.k = span * BSMI_WALK_SPAN, area.columns = BSMI_MIN(walk->columns - area.k, BSMI_WALK_SPAN);
    return area;
}

bool bsmi_walk_next(const struct bsmi_walk *walk, struct bsmi_walk_place *place, struct bsmi_piece *piece)
{
    if (place->unit >= place->end_unit) return false;
    const struct bsmi_walk_area area = bsmi_walk_area(walk, place->unit);
    const int64_t offset = place->step / area.rows * BSMI_PIECE;

    piece->batch = area.batch;
    piece->row = area.row + place->step % area.rows;
    piece->k = area.k + offset;
    piece->count = BSMI_MIN(area.columns - offset, BSMI_PIECE);

    place->step++;
    if (place->step == area.rows * bsmi_ceil_div(area.columns, BSMI_PIECE)) {
        place->step = 0;
        place->unit++;
    }
    return true;
}
