#include "layout_map.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    KNOWN = 65536,                        /* rows, columns and bytes that are looked at, unless all are wanted */
    FEW_ROWS = 20, FEW_COLUMNS = 16, FEW_LINES = 12,         /* are all shown */
    MOST_ROWS = 40, MOST_COLUMNS = 16, MOST_LINES = 40
};

int64_t layout_map_offset(const struct layout_map *map, int64_t row, int64_t column)
{
    int64_t offset = -1;
    (void)bsm_scale_offset(&map->layout, map->rows, map->columns, row, column, &offset);
    return offset;
}

/* Numbers the pieces: a run of positions with one step between neighbours, which does not leave the matrix. */
static int64_t *number_pieces(const struct cli *cli, const int64_t *offsets, int64_t count, int64_t inside)
{
    int64_t *piece = cli_memory(cli, count, sizeof *piece);
    for (int64_t first = 0, number = 0; first < count; number++) {
        int64_t end = first + 1;
        const int64_t limit = first < inside && inside < count ? inside : count;
        while (end < limit && offsets[end] - offsets[end - 1] == offsets[first + 1] - offsets[first]) end++;
        for (int64_t i = first; i < end; i++) piece[i] = number;
        first = end;
    }
    return piece;
}

static void show(struct layout_list *list, int64_t index) { list->shown[list->count++].index = index; }

/* Of each piece the first two and the last; all of it when it is short. */
static void show_pieces(struct layout_list *list, const int64_t *piece, int64_t count)
{
    for (int64_t first = 0, end; first < count; first = end) {
        end = first + 1;
        while (end < count && piece[end] == piece[first]) end++;
        for (int64_t i = first; i < end; i++)
            if (end - first <= 4 || i < first + 2 || i == end - 1) show(list, i);
    }
}

/* Keeps the head and the last few (tail). */
static void shorten(struct layout_list *list, int most, int tail)
{
    if (list->count <= most) return;
    const int head = most - tail;
    for (int i = 0; i < tail; i++) list->shown[head + i] = list->shown[list->count - tail + i];
    list->count = most;
}

static void note_gaps(struct layout_list *list, const int64_t *piece, int64_t known)
{
    for (int i = 1; i < list->count; i++) {
        struct layout_shown *this = &list->shown[i];
        const int64_t before = list->shown[i - 1].index;
        this->omitted = this->index - before - 1;
        this->other_piece = this->index >= known || piece[this->index] != piece[before];
    }
}

/* known: how many of count have a piece number; the last is shown even if it has none. */
static struct layout_list choose(const struct cli *cli, const int64_t *piece, int64_t known, int64_t count, int few,
                                 int most, bool all)
{
    struct layout_list list = { .shown = cli_memory(cli, known + 1, sizeof *list.shown) };
    if (all || count <= few) {
        for (int64_t i = 0; i < known; i++) show(&list, i);
    } else {
        show_pieces(&list, piece, known);
        if (known < count) show(&list, count - 1);
        shorten(&list, most, known < count ? 1 : 4);
    }
    note_gaps(&list, piece, known);
    return list;
}

static void find_pieces(const struct cli *cli, bool all, struct layout_map *map)
{
    map->known_rows = all || map->padded_rows < KNOWN ? map->padded_rows : KNOWN;
    map->known_columns = all || map->padded_columns < KNOWN ? map->padded_columns : KNOWN;
    int64_t *row_offsets = cli_memory(cli, map->known_rows, sizeof *row_offsets);
    int64_t *column_offsets = cli_memory(cli, map->known_columns, sizeof *column_offsets);
    for (int64_t row = 0; row < map->known_rows; row++) row_offsets[row] = layout_map_offset(map, row, 0);
    for (int64_t column = 0; column < map->known_columns; column++)
        column_offsets[column] = layout_map_offset(map, 0, column);
    map->row_piece = number_pieces(cli, row_offsets, map->known_rows, map->rows);
    map->column_piece = number_pieces(cli, column_offsets, map->known_columns, map->columns);
    map->row_list = choose(cli, map->row_piece, map->known_rows, map->padded_rows, FEW_ROWS, MOST_ROWS, all);
    map->column_list =
        choose(cli, map->column_piece, map->known_columns, map->padded_columns, FEW_COLUMNS, MOST_COLUMNS, all);
    free(row_offsets), free(column_offsets);
}

/* Offsets grow from the first column (row) to any other of the same row (column), so that only rows and columns that
 * begin among the known bytes can lie there. */
static void find_owners(const struct cli *cli, bool all, struct layout_map *map)
{
    map->known_bytes = all || map->bytes < KNOWN ? map->bytes : KNOWN;
    map->owners = cli_memory(cli, map->known_bytes, sizeof *map->owners);
    int64_t *near = cli_memory(cli, map->known_columns, sizeof *near), near_count = 0;
    for (int64_t i = 0; i < map->known_bytes; i++) map->owners[i].row = -1;
    for (int64_t column = 0; column < map->known_columns; column++)
        if (layout_map_offset(map, 0, column) < map->known_bytes) near[near_count++] = column;
    for (int64_t row = 0; row < map->known_rows; row++) {
        const bool row_is_near = layout_map_offset(map, row, 0) < map->known_bytes;
        for (int64_t i = 0; i < near_count && row_is_near; i++) {
            const int64_t offset = layout_map_offset(map, row, near[i]);
            if (offset < map->known_bytes) map->owners[offset] = (struct layout_owner){ row, near[i] };
        }
    }
    free(near);
}

/* A line that shows the layout's grain: a row, a block, or else 16 bytes as in every dump of memory. */
static int64_t natural_line(const struct layout_map *map)
{
    switch (map->layout.kind) {
    case BSM_LAYOUT_LINEAR: return map->pitch <= 32 ? map->pitch : 16;
    case BSM_LAYOUT_TILES:
        return map->layout.tile_columns >= 4 && map->layout.tile_columns <= 32 ? map->layout.tile_columns : 16;
    case BSM_LAYOUT_GGUF_MXFP4: return 17;
    case BSM_LAYOUT_GGUF_NVFP4: return 36;
    default: return 16;
    }
}

int64_t layout_line_end(const struct layout_map *map, int64_t line)
{
    const int64_t end = (line + 1) * map->line_bytes;
    return end < map->known_bytes ? end : map->known_bytes;
}

int64_t layout_foreign_bytes(const struct layout_map *map, int64_t byte, int64_t end)
{
    int64_t count = 0;
    while (byte + count < end && map->owners[byte + count].row < 0) count++;
    return count;
}

/* Whether line + 1 is `line` moved within the same pieces; by how much. */
static bool moves(const struct layout_map *map, int64_t line, struct layout_owner *by)
{
    bool first = true;
    for (int64_t i = line * map->line_bytes; i < (line + 1) * map->line_bytes; i++) {
        if (i + map->line_bytes >= map->known_bytes) return false;
        const struct layout_owner a = map->owners[i], b = map->owners[i + map->line_bytes];
        if ((a.row < 0) != (b.row < 0)) return false;
        if (a.row < 0) continue;
        if (map->row_piece[a.row] != map->row_piece[b.row]) return false;
        if (map->column_piece[a.column] != map->column_piece[b.column]) return false;
        if (!first && (b.row - a.row != by->row || b.column - a.column != by->column)) return false;
        *by = (struct layout_owner){ b.row - a.row, b.column - a.column };
        first = false;
    }
    return true;
}

static void choose_lines(const struct cli *cli, bool all, struct layout_map *map)
{
    map->line_bytes = natural_line(map);
    map->line_count = (map->bytes - 1) / map->line_bytes + 1;
    const int64_t known = (map->known_bytes - 1) / map->line_bytes + 1;
    int64_t *piece = cli_memory(cli, known, sizeof *piece);
    struct layout_owner step = { 0, 0 }, by = { 0, 0 };
    for (int64_t line = 1, start = 0; line < known; line++) {
        const bool moved = moves(map, line - 1, &by), same_step = by.row == step.row && by.column == step.column;
        const bool goes_on = moved && (line - 1 == start || same_step);
        piece[line] = piece[line - 1] + !goes_on;
        if (!goes_on) start = line;
        step = by;
    }
    map->line_list = choose(cli, piece, known, map->line_count, FEW_LINES, MOST_LINES, all);
    if (known < map->line_count) map->line_list.count--;           /* nobody knows the last line's owners */
    map->lines_omitted = map->line_count - 1 - map->line_list.shown[map->line_list.count - 1].index;
    free(piece);
}

void layout_text(const bsm_scale_layout *layout, char *text, size_t bytes)
{
    const char *name = bsm_layout_name((int)layout->kind);
    if (layout->tile_rows > 0)
        snprintf(text, bytes, "%s:%" PRId64 "x%" PRId64, name, layout->tile_rows, layout->tile_columns);
    else if (layout->pitch == BSM_PITCH_PADDED_16) snprintf(text, bytes, "sm120_padded");
    else if (layout->pitch > 0) snprintf(text, bytes, "%s:%" PRId64, name, layout->pitch);
    else snprintf(text, bytes, "%s", name);
}

const char *layout_foreign_name(const struct layout_map *map)
{
    return map->layout.kind == BSM_LAYOUT_LINEAR ? "between rows" : "of elements";
}

static int64_t value_of(const struct layout_map *map, int64_t row, int64_t column, const char *word, size_t length)
{
    const struct { const char *name; int64_t value; } values[] = {
        { "r", row }, { "s", column }, { "R", map->rows }, { "S", map->columns }, { "pitch", map->pitch },
        { "TR", map->layout.tile_rows }, { "TC", map->layout.tile_columns },
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strlen(values[i].name) == length && memcmp(values[i].name, word, length) == 0) return values[i].value;
    return -1;
}

void layout_example(const struct layout_map *map, int64_t row, int64_t column, char *text, size_t bytes)
{
    size_t used = 0;
    for (const char *p = bsm_layout_formula((int)map->layout.kind); *p != '\0' && *p != ','; ) {
        size_t length = 0;
        while (isalpha((unsigned char)p[length])) length++;
        const int64_t value = value_of(map, row, column, p, length);
        if (length == 0) length = 1;
        if (value >= 0) used += (size_t)snprintf(text + used, bytes - used, "%" PRId64, value);
        else used += (size_t)snprintf(text + used, bytes - used, "%.*s", (int)length, p);
        if (used >= bytes) return;
        p += length;
    }
    snprintf(text + used, bytes - used, " = %" PRId64, layout_map_offset(map, row, column));
}

int layout_map_make(const struct cli *cli, const bsm_scale_layout *layout, int64_t rows, int64_t columns, bool all,
                    struct layout_map *map)
{
    *map = (struct layout_map){ .layout = *layout, .rows = rows, .columns = columns };
    bsm_status status = bsm_scale_padded(layout, rows, columns, &map->padded_rows, &map->padded_columns);
    if (status == BSM_OK) status = bsm_scale_bytes(layout, rows, columns, &map->bytes);
    if (status != BSM_OK) return cli_library_failed(cli, NULL, status);
    map->pitch = map->rows > 1 ? layout_map_offset(map, 1, 0) : map->bytes;
    find_pieces(cli, all, map);
    find_owners(cli, all, map);
    choose_lines(cli, all, map);
    return CLI_DONE;
}

void layout_map_free(struct layout_map *map)
{
    free(map->row_list.shown), free(map->column_list.shown), free(map->line_list.shown);
    free(map->row_piece), free(map->column_piece), free(map->owners);
}
