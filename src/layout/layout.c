/* The table of layouts, the checks that all of them share, sizes and offsets. */
#include "layout.h"

#include "layouts.h"

#include <inttypes.h>

/* A number without a layout is NULL. */
static const struct bsmi_layout *const layouts[BSM_LAYOUT_COUNT] = {
    [BSM_LAYOUT_LINEAR] = &bsmi_layout_linear,
    [BSM_LAYOUT_128X4] = &bsmi_layout_128x4,
    [BSM_LAYOUT_8X4] = &bsmi_layout_8x4,
    [BSM_LAYOUT_TILES] = &bsmi_layout_tiles,
    [BSM_LAYOUT_CDNA4_16] = &bsmi_layout_cdna4_16,
    [BSM_LAYOUT_CDNA4_32] = &bsmi_layout_cdna4_32,
    [BSM_LAYOUT_AITER] = &bsmi_layout_aiter,
    [BSM_LAYOUT_DEEPGEMM] = &bsmi_layout_deepgemm,
    [BSM_LAYOUT_GGUF_MXFP4] = &bsmi_layout_gguf_mxfp4,
    [BSM_LAYOUT_GGUF_NVFP4] = &bsmi_layout_gguf_nvfp4,
};

const struct bsmi_layout *bsmi_layout_get(int kind)
{
    return kind >= 0 && kind < BSM_LAYOUT_COUNT ? layouts[kind] : NULL;
}

const char *bsm_layout_name(int layout)
{
    const struct bsmi_layout *found = bsmi_layout_get(layout);
    return found != NULL ? found->name : NULL;
}

const char *bsm_layout_about(int layout)
{
    const struct bsmi_layout *found = bsmi_layout_get(layout);
    return found != NULL ? found->about : NULL;
}

const char *bsm_layout_formula(int layout)
{
    const struct bsmi_layout *found = bsmi_layout_get(layout);
    return found != NULL ? found->formula : NULL;
}

/* "layout" is a pointer to the struct, "a->scale_layout" is the struct. */
static const char *member_of(const char *name) { return strstr(name, "->") != NULL ? "." : "->"; }

/* Parameters that the layout does not use are 0, those that it needs are there. */
static bsm_status check_parameters(const char *name, const bsm_scale_layout *layout, const struct bsmi_layout *about)
{
    const struct { const char *field; int64_t value; bool used, needed; } parameters[] = {
        { "pitch", layout->pitch, about->row_block_bytes > 0, false },
        { "tile_rows", layout->tile_rows, about->pad_rows == 0, true },
        { "tile_columns", layout->tile_columns, about->pad_columns == 0, true },
    };
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        const int64_t value = parameters[i].value;
        if (!parameters[i].used && value != 0)
            return bsmi_fail(BSM_EINVAL, "%s%s%s=%" PRId64 ": the layout %s has no %s, set it to 0", name,
                             member_of(name), parameters[i].field, value, about->name, parameters[i].field);
        if (parameters[i].used && parameters[i].needed && value <= 0)
            return bsmi_fail(BSM_EINVAL, "%s%s%s=%" PRId64 ": %s need tile_rows > 0 and tile_columns > 0", name,
                             member_of(name), parameters[i].field, value, about->name);
    }
    return BSM_OK;
}

static bool round_up_overflows(int64_t count, int64_t multiple, int64_t *rounded)
{
    return bsmi_mul_overflows(bsmi_ceil_div(count, multiple), multiple, rounded);
}

static bsm_status too_large(const struct bsmi_layout *about, int64_t rows, int64_t columns)
{
    return bsmi_fail(BSM_EOVERFLOW,
                     "%" PRId64 " rows x %" PRId64 " columns of scales in layout %s: more than an int64_t counts", rows,
                     columns, about->name);
}

/* Everything of a map except its bytes, and a pitch of 0 as it was given. */
static bsm_status resolve_shape(const char *name, const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                                struct bsmi_scale_map *map)
{
    if (layout == NULL) return bsmi_fail(BSM_EINVAL, "%s is NULL", name);
    const struct bsmi_layout *about = bsmi_layout_get((int)layout->kind);
    if (about == NULL)
        return bsmi_fail(BSM_EINVAL, "%s%skind=%d: no layout has this number, see bsm_layout", name, member_of(name),
                         (int)layout->kind);
    const bsm_status status = check_parameters(name, layout, about);
    if (status != BSM_OK) return status;
    if (rows < 0) return bsmi_fail(BSM_EINVAL, "rows=%" PRId64 " of scales: rows must be >= 0", rows);
    if (columns < 0) return bsmi_fail(BSM_EINVAL, "columns=%" PRId64 " of scales: columns must be >= 0", columns);
    map->layout = *layout;
    map->rows = rows, map->columns = columns, map->bytes = 0;
    map->offset = about->offset;
    if (round_up_overflows(rows, about->pad_rows > 0 ? about->pad_rows : layout->tile_rows, &map->padded_rows)
        || round_up_overflows(columns, about->pad_columns > 0 ? about->pad_columns : layout->tile_columns,
                              &map->padded_columns))
        return too_large(about, rows, columns);
    return BSM_OK;
}

/* Layouts whose rows follow one another at a pitch: the last row ends the buffer, nothing is owed behind it. */
static bsm_status resolve_pitch(const char *name, const struct bsmi_layout *about, struct bsmi_scale_map *map)
{
    int64_t row_bytes;
    if (bsmi_mul_overflows(map->padded_columns / about->pad_columns, about->row_block_bytes, &row_bytes))
        return too_large(about, map->rows, map->columns);
    if (map->layout.kind == BSM_LAYOUT_LINEAR && map->layout.pitch == BSM_PITCH_PADDED_16) {
        if (round_up_overflows(row_bytes, 16, &map->layout.pitch)) return too_large(about, map->rows, map->columns);
    } else if (map->layout.pitch != 0 && map->layout.pitch < row_bytes)
        return bsmi_fail(BSM_EINVAL,
                         "%s%spitch=%" PRId64 ": %" PRId64 " columns in layout %s take %" PRId64
                         " bytes a row; give at least that, or 0 for tight rows",
                         name, member_of(name), map->layout.pitch, map->columns, about->name, row_bytes);
    if (map->layout.pitch == 0) map->layout.pitch = row_bytes;
    if (map->rows == 0 || map->columns == 0) return BSM_OK;
    if (bsmi_mul_overflows(map->rows - 1, map->layout.pitch, &map->bytes)
        || bsmi_add_overflows(map->bytes, row_bytes, &map->bytes))
        return too_large(about, map->rows, map->columns);
    return BSM_OK;
}

bsm_status bsmi_scale_map_make(const char *name, const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                               struct bsmi_scale_map *map)
{
    const bsm_status status = resolve_shape(name, layout, rows, columns, map);
    if (status != BSM_OK) return status;
    const struct bsmi_layout *about = bsmi_layout_get((int)layout->kind);
    if (about->row_block_bytes > 0) return resolve_pitch(name, about, map);
    if (bsmi_mul_overflows(map->padded_rows, map->padded_columns, &map->bytes)) return too_large(about, rows, columns);
    return BSM_OK;
}

bsm_status bsm_scale_padded(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *padded_rows,
                            int64_t *padded_columns)
{
    struct bsmi_scale_map map;
    if (padded_rows == NULL) return bsmi_fail(BSM_EINVAL, "padded_rows is NULL");
    if (padded_columns == NULL) return bsmi_fail(BSM_EINVAL, "padded_columns is NULL");
    const bsm_status status = bsmi_scale_map_make("layout", layout, rows, columns, &map);
    if (status != BSM_OK) return status;
    *padded_rows = map.padded_rows, *padded_columns = map.padded_columns;
    return BSM_OK;
}

bsm_status bsm_scale_bytes(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *bytes)
{
    struct bsmi_scale_map map;
    if (bytes == NULL) return bsmi_fail(BSM_EINVAL, "bytes is NULL");
    const bsm_status status = bsmi_scale_map_make("layout", layout, rows, columns, &map);
    if (status == BSM_OK) *bytes = map.bytes;
    return status;
}

bsm_status bsm_scale_offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row, int64_t column,
                            int64_t *offset)
{
    struct bsmi_scale_map map;
    if (offset == NULL) return bsmi_fail(BSM_EINVAL, "offset is NULL");
    const bsm_status status = bsmi_scale_map_make("layout", layout, rows, columns, &map);
    if (status != BSM_OK) return status;
    if (row < 0 || row >= map.padded_rows)
        return bsmi_fail(BSM_EINVAL,
                         "row=%" PRId64 ": must be at least 0 and below %" PRId64 ", the rows of layout %s with its "
                         "padding",
                         row, map.padded_rows, bsm_layout_name((int)layout->kind));
    if (column < 0 || column >= map.padded_columns)
        return bsmi_fail(BSM_EINVAL,
                         "column=%" PRId64 ": must be at least 0 and below %" PRId64 ", the columns of layout %s with "
                         "its padding",
                         column, map.padded_columns, bsm_layout_name((int)layout->kind));
    *offset = bsmi_scale_at(&map, row, column);
    return BSM_OK;
}

void bsmi_scale_clear_padding(const struct bsmi_scale_map *map, unsigned char *scales)
{
    if (map->bytes == 0) return;
    for (int64_t row = 0; row < map->padded_rows; row++)
        for (int64_t column = row < map->rows ? map->columns : 0; column < map->padded_columns; column++)
            scales[bsmi_scale_at(map, row, column)] = 0;
}
