#include "views.h"

static int64_t groups(int64_t count, int64_t size) { return (count + size - 1) / size; }

enum axis { ROWS, COLUMNS };

static void add(struct view *view, enum axis axis, int64_t extent, int64_t step)
{
    view->dimension[view->count].extent = extent;
    view->dimension[view->count].row_step = axis == ROWS ? step : 0;
    view->dimension[view->count].column_step = axis == COLUMNS ? step : 0;
    view->dimension[view->count].skip = 0;
    view->count++;
}

static void skip_behind_last(struct view *view, int64_t bytes) { view->dimension[view->count - 1].skip = bytes; }

/* view(R/height, height, S/width, width).permute(0, 2, 1, 3) */
static void add_tiles(struct view *view, int64_t rows, int64_t columns, int64_t height, int64_t width)
{
    add(view, ROWS, groups(rows, height), height);
    add(view, COLUMNS, groups(columns, width), width);
    add(view, ROWS, height, 1);
    add(view, COLUMNS, width, 1);
}

/* Rows at a pitch: `width` scales at the start of every `block` bytes. */
static void add_pitched(struct view *view, int64_t pitch, int64_t rows, int64_t columns, int64_t width, int64_t block)
{
    const int64_t blocks = groups(columns, width);
    add(view, ROWS, rows, 1);
    add(view, COLUMNS, blocks, width);
    skip_behind_last(view, pitch == 0 ? 0 : pitch - blocks * block);
    add(view, COLUMNS, width, 1);
    skip_behind_last(view, block - width);
}

bool view_make(const bsm_scale_layout *layout, int64_t rows, int64_t columns, struct view *view)
{
    view->count = 0;
    switch (layout->kind) {
    case BSM_LAYOUT_LINEAR: /* QuACK on sm_120: rows of 16 ceil(S/16) columns, view(R, 16 ceil(S/16))[:, :S] */
        add_pitched(view, layout->pitch == BSM_PITCH_PADDED_16 ? groups(columns, 16) * 16 : layout->pitch, rows,
                    columns, 1, 1);
        return true;
    case BSM_LAYOUT_128X4: /* torchao to_blocked: view(R/128, 4, 32, S/4, 4).permute(0, 3, 2, 1, 4) */
        add(view, ROWS, groups(rows, 128), 128);
        add(view, COLUMNS, groups(columns, 4), 4);
        add(view, ROWS, 32, 1);
        add(view, ROWS, 4, 32);
        add(view, COLUMNS, 4, 1);
        return true;
    case BSM_LAYOUT_8X4: /* flashinfer quantization_utils.cuh: [R/8, S/4, 8, 4] */
        add_tiles(view, rows, columns, 8, 4);
        return true;
    case BSM_LAYOUT_TILES:
        add_tiles(view, rows, columns, layout->tile_rows, layout->tile_columns);
        return true;
    case BSM_LAYOUT_CDNA4_16: /* Triton and aiter: view(R/32, 2, 16, S/8, 2, 4).permute(0, 3, 5, 2, 4, 1) */
    case BSM_LAYOUT_AITER:
        add(view, ROWS, layout->kind == BSM_LAYOUT_AITER ? groups(rows, 256) * 8 : groups(rows, 32), 32);
        add(view, COLUMNS, groups(columns, 8), 8);
        add(view, COLUMNS, 4, 1);
        add(view, ROWS, 16, 1);
        add(view, COLUMNS, 2, 4);
        add(view, ROWS, 2, 16);
        return true;
    case BSM_LAYOUT_CDNA4_32: /* Triton: view(R/32, 32, S/8, 4, 2).permute(0, 2, 4, 1, 3) */
        add(view, ROWS, groups(rows, 32), 32);
        add(view, COLUMNS, groups(columns, 8), 8);
        add(view, COLUMNS, 2, 1);
        add(view, ROWS, 32, 1);
        add(view, COLUMNS, 4, 2);
        return true;
    case BSM_LAYOUT_DEEPGEMM: /* int32 [S/4, R], rows aligned to 4; the bytes of a word, low first, are 4 columns */
        add(view, COLUMNS, groups(columns, 4), 4);
        add(view, ROWS, groups(rows, 4) * 4, 1);
        add(view, COLUMNS, 4, 1);
        return true;
    case BSM_LAYOUT_GGUF_MXFP4: /* struct { uint8_t e; uint8_t qs[16]; } */
        add_pitched(view, layout->pitch, rows, columns, 1, 17);
        return true;
    case BSM_LAYOUT_GGUF_NVFP4: /* struct { uint8_t d[4]; uint8_t qs[32]; } */
        add_pitched(view, layout->pitch, rows, columns, 4, 36);
        return true;
    case BSM_LAYOUT_COUNT:
        break;
    }
    return false;
}

bool view_next(const struct view *view, struct place *place)
{
    place->byte++;
    for (int d = view->count - 1; d >= 0; d--) {
        place->row += view->dimension[d].row_step;
        place->column += view->dimension[d].column_step;
        if (++place->index[d] < view->dimension[d].extent) return true;
        place->row -= place->index[d] * view->dimension[d].row_step;
        place->column -= place->index[d] * view->dimension[d].column_step;
        place->index[d] = 0;
        place->byte += view->dimension[d].skip;
    }
    return false;
}

bool view_find(const struct view *view, int64_t byte, struct place *place)
{
    int64_t size[VIEW_DIMENSIONS + 1];    /* bytes of one step along the dimension outside: a whole run of this one */
    size[view->count] = 1;
    for (int d = view->count - 1; d >= 0; d--)
        size[d] = view->dimension[d].extent * size[d + 1] + view->dimension[d].skip;
    *place = (struct place){ .byte = byte };
    for (int d = 0; d < view->count; d++) {
        place->index[d] = byte / size[d + 1];
        byte %= size[d + 1];
        if (place->index[d] >= view->dimension[d].extent) return false;
        place->row += place->index[d] * view->dimension[d].row_step;
        place->column += place->index[d] * view->dimension[d].column_step;
    }
    return true;
}
