/* blockscale layout: where every scale lies, as a table, as JSON, or as a picture. */
#include "fits.h"
#include "picture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

struct settings {
    bsm_scale_layout layout;
    int64_t rows, columns;
    int fits;
    const char *svg;
    bool all;
};

static const struct settings defaults = { .rows = 256, .columns = 8, .fits = NO_COPY };

static const struct cli_option options[] = {
    { "NAME", 0, NULL, "the layout, as 128x4, linear:PITCH, tiles:ROWSxCOLUMNS", CLI_LAYOUT(struct settings, layout),
      .required = true },
    { "--rows", 'r', "R", "rows of the matrix", CLI_INTEGER(struct settings, rows), .low = 1, .high = INT64_MAX },
    { "--cols", 'c', "C", "columns of scales: K divided by the block, rounded up",
      CLI_INTEGER(struct settings, columns), .low = 1, .high = INT64_MAX },
    { "--fits", 0, "COPY", "whether the copy takes these scales as they lie, and the rule that breaks; or all copies",
      CLI_CHOICE(struct settings, fits, &layout_copies) },
    { "--svg", 0, "FILE", "draw the map", CLI_TEXT(struct settings, svg) },
    { "--all", 0, NULL, "show every row, column and byte", CLI_FLAG(struct settings, all) },
    { .name = NULL }
};

enum { INDENT = 10 };

__attribute__((format(printf, 2, 3))) static void print_fact(const char *name, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%-*s", INDENT, name);
    cli_print_wrapped(stdout, text, INDENT, INDENT);
}

static void print_summary(const struct layout_map *map)
{
    const int kind = (int)map->layout.kind;
    char name[64], example[512];
    layout_text(&map->layout, name, sizeof name);
    print_fact("layout", "%s: %s", name, bsm_layout_about(kind));
    print_fact("formula", "byte of (row r, column s) of R x S: %s", bsm_layout_formula(kind));
    printf("shape     %" PRId64 " rows x %" PRId64 " columns of scales, padded to %" PRId64 " x %" PRId64 "\n",
           map->rows, map->columns, map->padded_rows, map->padded_columns);
    const int64_t scales = map->rows * map->columns, positions = map->padded_rows * map->padded_columns;
    printf("size      %" PRId64 " bytes: %" PRId64 " scales, %" PRId64 " of padding", map->bytes, scales,
           positions - scales);
    if (map->bytes > positions) printf(", %" PRId64 " %s", map->bytes - positions, layout_foreign_name(map));
    printf("\n");
    layout_example(map, map->rows - 1, map->columns - 1, example, sizeof example);
    print_fact("example", "row %" PRId64 ", column %" PRId64 ": %s", map->rows - 1, map->columns - 1, example);
}

static void row_of_dots(struct cli_table *table, int columns)
{
    for (int i = 0; i < columns; i++) cli_table_cell(table, "%s", "⋮");
}

static int digits(int64_t number) { return snprintf(NULL, 0, "%" PRId64, number); }

/* How many of the shown columns from `first` on a page holds: at least one. */
static int columns_of_page(const struct layout_map *map, int first)
{
    enum { GAP = 2, DOTS = 3, PARENTHESES = 2 };
    const struct layout_list *columns = &map->column_list;
    const int cell = digits(map->bytes) + PARENTHESES + GAP;
    int width = digits(map->padded_rows) > 3 ? digits(map->padded_rows) : 3, count = 0;
    for (int j = first; j < columns->count; j++, count++) {
        width += cell + (columns->shown[j].omitted > 0 ? DOTS : 0);
        if (width > CLI_PAGE_WIDTH && count > 0) break;
    }
    return count;
}

/* Rows down, columns across; a column of dots where columns are omitted. */
static void print_offsets_of(const struct cli *cli, const struct layout_map *map, int first, int end)
{
    enum { TITLE = 32 };
    const struct layout_list *rows = &map->row_list, *columns = &map->column_list;
    int count = 1;
    struct cli_column *titles = cli_memory(cli, 2 * columns->count + 1, sizeof *titles);
    char (*text)[TITLE] = cli_memory(cli, columns->count, sizeof *text);
    titles[0] = (struct cli_column){ "row", CLI_RIGHT };
    for (int j = first; j < end; j++) {
        if (columns->shown[j].omitted > 0) titles[count++] = (struct cli_column){ "…", CLI_RIGHT };
        snprintf(text[j], TITLE, j == first ? "s=%" PRId64 : "%" PRId64, columns->shown[j].index);
        titles[count++] = (struct cli_column){ text[j], CLI_RIGHT };
    }
    struct cli_table *table = cli_table_new(titles, count);
    for (int i = 0; i < rows->count; i++) {
        const int64_t row = rows->shown[i].index;
        if (rows->shown[i].omitted > 0) row_of_dots(table, count);
        cli_table_cell(table, "%" PRId64, row);
        for (int j = first; j < end; j++) {
            const int64_t column = columns->shown[j].index, offset = layout_map_offset(map, row, column);
            if (columns->shown[j].omitted > 0) cli_table_cell(table, "…");
            if (layout_is_padding(map, row, column)) cli_table_cell(table, "(%" PRId64 ")", offset);
            else cli_table_cell(table, "%" PRId64, offset);
        }
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
    free(titles), free(text);
}

/* In as many tables as it takes to stay within the width of a page. */
static void print_offsets(const struct cli *cli, const struct layout_map *map)
{
    for (int first = 0, count; first < map->column_list.count; first += count) {
        count = columns_of_page(map, first);
        if (first > 0) printf("\n");
        print_offsets_of(cli, map, first, first + count);
    }
}

/* Scales of one row side by side, from `byte`: how many. */
static int64_t row_run(const struct layout_map *map, int64_t byte, int64_t end)
{
    int64_t count = 1;
    const struct layout_owner *first = &map->owners[byte];
    const bool padding = layout_is_padding(map, first->row, first->column);
    while (byte + count < end && first[count].row == first->row &&
           layout_is_padding(map, first->row, first[count].column) == padding)
        count++;
    return count;
}

/* r5 s0-3: row 5, columns 0 to 3; r5 s0,2,4: each of them. */
static void owners_text(const struct layout_map *map, int64_t byte, int64_t count, char *text, size_t room)
{
    const struct layout_owner *first = &map->owners[byte];
    const bool padding = layout_is_padding(map, first->row, first->column);
    size_t used = (size_t)snprintf(text, room, "%sr%" PRId64 " s", padding ? "(" : "", first->row);
    for (int64_t i = 0, end; i < count && used < room; i = end) {
        for (end = i + 1; end < count && first[end].column == first[end - 1].column + 1; end++) continue;
        used += (size_t)snprintf(text + used, room - used, i > 0 ? ",%" PRId64 : "%" PRId64, first[i].column);
        if (end > i + 1 && used < room)
            used += (size_t)snprintf(text + used, room - used, "-%" PRId64, first[end - 1].column);
    }
    if (padding && used < room) snprintf(text + used, room - used, ")");
}

/* A line of memory; what it holds goes on below where the page is too narrow. */
static void print_line(const struct layout_map *map, int64_t line)
{
    const int64_t end = layout_line_end(map, line);
    char text[1024];
    int column = printf("%*" PRId64 " ", INDENT, line * map->line_bytes);
    for (int64_t byte = line * map->line_bytes, count; byte < end; byte += count) {
        count = layout_foreign_bytes(map, byte, end);
        if (count > 0) {
            snprintf(text, sizeof text, "[%" PRId64 " bytes %s]", count, layout_foreign_name(map));
        } else {
            count = row_run(map, byte, end);
            owners_text(map, byte, count, text, sizeof text);
        }
        if (column > INDENT + 1 && column + 2 + cli_text_width(text) > CLI_PAGE_WIDTH)
            column = printf("\n%*s", INDENT + 1, "") - 1;
        column += printf("  %s", text);
    }
    printf("\n");
}

static void print_memory(const struct layout_map *map)
{
    printf("\nWhat lies in memory, %" PRId64 " bytes a line:\n\n%*s\n", map->line_bytes, INDENT, "byte");
    for (int i = 0; i < map->line_list.count; i++) {
        if (map->line_list.shown[i].omitted > 0) printf("%12s\n", "⋮");
        print_line(map, map->line_list.shown[i].index);
    }
    if (map->lines_omitted > 0) printf("%12s\n", "⋮");
}

static void print_json(const struct layout_map *map)
{
    const int kind = (int)map->layout.kind;
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "layout", bsm_layout_name(kind));
    cli_json_text(&json, "about", bsm_layout_about(kind));
    cli_json_text(&json, "formula", bsm_layout_formula(kind));
    cli_json_integer(&json, "pitch", map->layout.pitch < 0 ? map->pitch : map->layout.pitch);
    cli_json_integer(&json, "tile_rows", map->layout.tile_rows);
    cli_json_integer(&json, "tile_columns", map->layout.tile_columns);
    cli_json_integer(&json, "rows", map->rows);
    cli_json_integer(&json, "columns", map->columns);
    cli_json_integer(&json, "padded_rows", map->padded_rows);
    cli_json_integer(&json, "padded_columns", map->padded_columns);
    cli_json_integer(&json, "bytes", map->bytes);
    cli_json_array(&json, "offsets");
    for (int64_t row = 0; row < map->rows; row++) {
        cli_json_array(&json, NULL);
        for (int64_t column = 0; column < map->columns; column++)
            cli_json_integer(&json, NULL, layout_map_offset(map, row, column));
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}

static void print_text(const struct cli *cli, const struct layout_map *map)
{
    print_summary(map);
    printf("\nThe byte of each scale; (in parentheses: padding, bytes that are zero):\n\n");
    print_offsets(cli, map);
    print_memory(map);
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *settings = given;
    struct layout_map map;
    if (settings->fits != NO_COPY && (settings->svg != NULL || settings->all))
        return cli_wrong_usage(cli, "--fits answers in words: leave out %s", settings->svg != NULL ? "--svg" : "--all");
    if (settings->fits != NO_COPY)
        return layout_fits(cli, &settings->layout, settings->rows, settings->columns, settings->fits);
    const int made = layout_map_make(cli, &settings->layout, settings->rows, settings->columns, settings->all, &map);
    if (made != CLI_DONE) return made;
    FILE *picture = settings->svg != NULL ? cli_output(cli, settings->svg) : NULL;
    if (picture != NULL) layout_picture(&map, picture);
    if (cli->json) print_json(&map);
    else print_text(cli, &map);
    layout_map_free(&map);
    return settings->svg != NULL && picture == NULL ? CLI_BAD_INPUT : CLI_DONE;
}

const struct cli_verb cli_verb_layout = {
    .name = "layout", .summary = "where every scale of a layout lies: a table, or a picture",
    .usage = "NAME [--rows R] [--cols C] [options]",
    .about = "Prints the byte of the scale (row, column) in a layout, and what lies in memory, byte after byte. Of "
             "each piece that the layout moves as a whole the first two rows and the last are shown.\n"
             "--svg draws the same. --json lists the byte of every scale, row by row.\n"
             "--fits says whether an instruction can take the scales as they lie: where not, the rule that breaks and "
             "the manual's section, and the exit status is 1.",
    .example = "blockscale layout 128x4 --rows 256 --cols 8\n"
               "blockscale layout 128x4 --rows 256 --cols 8 --svg 128x4.svg\n"
               "blockscale layout tiles:32x8 --rows 33 --cols 90 --json\n"
               "blockscale layout 128x4 --rows 256 --cols 8 --fits tcgen05.cp",
    .options = options, .defaults = &defaults, .settings_bytes = sizeof defaults, .run = run,
};
