/* The picture of a layout: on the left the matrix of scales with the byte of each, on the right memory with the scale
 * that lies at each byte.  A piece that the layout moves as a whole has one hue in both; higher columns of it are
 * darker. */
#include "picture.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MARGIN = 28, CELL_HEIGHT = 20, GAP = 18, SEAM = 4, PANELS_APART = 56, HEADER = 172, FOOTER = 70,
       FOREIGN_MOST = 150 };

/* Places and sizes that both panels need. */
struct drawing {
    const struct layout_map *map;
    FILE *file;
    double left_cell, right_cell;         /* widths */
    double left_x, left_width, right_width, right_x, height, width;
};

/* Text of digits and small letters at 11 px, as a monospaced font sets it. */
static double text_width(const char *text) { return 6.7 * (double)strlen(text); }

static int digits(int64_t n)
{
    char text[32];
    return snprintf(text, sizeof text, "%" PRId64, n);
}

/* Colours ---------------------------------------------------------------------------------------------------------- */

static int channel(double linear)
{
    const double bounded = linear < 0 ? 0 : linear > 1 ? 1 : linear;
    return (int)lrint(255 * (bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * pow(bounded, 1 / 2.4) - 0.055));
}

/* OKLCH to sRGB (Ottosson's Oklab matrices): equal lightness looks equally light in every hue. */
static void oklch(double lightness, double chroma, double hue_degrees, int rgb[3])
{
    const double hue = hue_degrees * 3.14159265358979 / 180, a = chroma * cos(hue), b = chroma * sin(hue);
    const double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
    const double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
    const double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
    rgb[0] = channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s);
    rgb[1] = channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s);
    rgb[2] = channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s);
}

/* Where in its piece a column is: 0 first, 1 last. */
static double place_in_piece(const struct layout_map *map, int64_t column)
{
    if (column >= map->known_columns) return 0;
    int64_t first = column, last = column;
    while (first > 0 && map->column_piece[first - 1] == map->column_piece[column]) first--;
    while (last + 1 < map->known_columns && map->column_piece[last + 1] == map->column_piece[column]) last++;
    return last > first ? (double)(column - first) / (double)(last - first) : 0;
}

/* Hues of neighbouring pieces are far apart: 135 and 62 degrees walk the circle without meeting soon. */
static void piece_colour(const struct layout_map *map, int64_t row, int64_t column, int rgb[3])
{
    const int64_t down = row < map->known_rows ? map->row_piece[row] : 0;
    const int64_t across = column < map->known_columns ? map->column_piece[column] : 0;
    const double hue = fmod(250 + 135 * (double)(down % 360) + 62 * (double)(across % 360), 360);
    oklch(0.92 - 0.14 * place_in_piece(map, column), 0.085, hue, rgb);
}

/* Shapes ----------------------------------------------------------------------------------------------------------- */

static void text(const struct drawing *d, double x, double y, const char *style, const char *words)
{
    fprintf(d->file, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style);
    for (; *words != '\0'; words++) {
        if (*words == '&') fprintf(d->file, "&amp;");
        else if (*words == '<') fprintf(d->file, "&lt;");
        else fputc(*words, d->file);
    }
    fprintf(d->file, "</text>\n");
}

/* One scale or one byte of padding.  Hovering tells everything about it. */
static void scale_cell(const struct drawing *d, double x, double y, double width, int64_t row, int64_t column,
                       const char *label)
{
    const bool padding = layout_is_padding(d->map, row, column);
    int rgb[3];
    piece_colour(d->map, row, column, rgb);
    fprintf(d->file, "<g><title>row %" PRId64 ", column %" PRId64 ": byte %" PRId64 "%s</title>", row, column,
            layout_map_offset(d->map, row, column), padding ? ", padding" : "");
    fprintf(d->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"#%02x%02x%02x\"/>", x, y, width,
            CELL_HEIGHT, (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
    if (padding)
        fprintf(d->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"padding\"/>", x, y, width,
                CELL_HEIGHT);
    text(d, x + width / 2, y + 14, padding ? "cell faint" : "cell", label);
    fprintf(d->file, "</g>\n");
}

static void foreign_cell(const struct drawing *d, double x, double y, double width, int64_t count)
{
    char label[64];
    if (width < FOREIGN_MOST) snprintf(label, sizeof label, "%" PRId64, count);
    else snprintf(label, sizeof label, "%" PRId64 " bytes %s", count, layout_foreign_name(d->map));
    fprintf(d->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"foreign\"/>", x, y, width,
            CELL_HEIGHT);
    text(d, x + width / 2, y + 14, "cell faint", label);
}

/* What is omitted, between the rows or lines around it. */
static void draw_gap(const struct drawing *d, double x, double y, int64_t omitted, const char *what)
{
    char words[64];
    if (omitted <= 0) return;
    snprintf(words, sizeof words, "⋮  %" PRId64 " more %s%s", omitted, what, omitted > 1 ? "s" : "");
    text(d, x + 12, y + 12, "gap", words);
}

static double space_before(const struct layout_shown *shown)
{
    return shown->omitted > 0 ? GAP : shown->other_piece ? SEAM : 0;
}

static double list_height(const struct layout_list *list)
{
    double height = 0;
    for (int i = 0; i < list->count; i++) height += CELL_HEIGHT + space_before(&list->shown[i]);
    return height;
}

/* The matrix ------------------------------------------------------------------------------------------------------- */

static double left_x(const struct drawing *d, int shown_column)
{
    double x = d->left_x + d->left_cell * shown_column;
    for (int j = 0; j <= shown_column; j++) x += space_before(&d->map->column_list.shown[j]);
    return x;
}

static void draw_column_labels(const struct drawing *d)
{
    char label[32];
    for (int j = 0; j < d->map->column_list.count; j++) {
        const struct layout_shown column = d->map->column_list.shown[j];
        snprintf(label, sizeof label, j == 0 ? "s=%" PRId64 : "%" PRId64, column.index);
        text(d, left_x(d, j) + d->left_cell / 2, HEADER - 7, "cell faint", label);
        if (column.omitted > 0) text(d, left_x(d, j) - GAP / 2.0, HEADER - 7, "cell faint", "…");
    }
}

static void draw_matrix(const struct drawing *d)
{
    char label[32];
    double y = HEADER;
    draw_column_labels(d);
    for (int i = 0; i < d->map->row_list.count; i++, y += CELL_HEIGHT) {
        const struct layout_shown row = d->map->row_list.shown[i];
        draw_gap(d, left_x(d, 0), y, row.omitted, "row");
        y += space_before(&row);
        snprintf(label, sizeof label, i == 0 ? "r=%" PRId64 : "%" PRId64, row.index);
        text(d, d->left_x - 8, y + 14, "label", label);
        for (int j = 0; j < d->map->column_list.count; j++) {
            const int64_t column = d->map->column_list.shown[j].index;
            snprintf(label, sizeof label, "%" PRId64, layout_map_offset(d->map, row.index, column));
            scale_cell(d, left_x(d, j), y, d->left_cell, row.index, column, label);
        }
    }
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

static bool same_piece(const struct layout_map *map, struct layout_owner a, struct layout_owner b)
{
    return a.row >= 0 && b.row >= 0 && map->row_piece[a.row] == map->row_piece[b.row] &&
           map->column_piece[a.column] == map->column_piece[b.column];
}

/* One cell of a line of memory: a byte with an owner, or all the bytes without one that follow. */
struct memory_cell { int64_t byte, count; struct layout_owner owner; double x, width; };

/* The first cell has count 0 and the line's first byte; false behind the last. */
static bool next_memory_cell(const struct drawing *d, int64_t end, struct memory_cell *cell)
{
    const bool first = cell->count == 0;
    const struct layout_owner before = cell->owner;
    cell->byte += cell->count;
    cell->x += cell->width;
    if (cell->byte >= end) return false;
    const int64_t foreign = layout_foreign_bytes(d->map, cell->byte, end);
    cell->count = foreign > 0 ? foreign : 1;
    cell->owner = d->map->owners[cell->byte];
    cell->width = fmin((double)cell->count * d->right_cell, foreign > 0 ? FOREIGN_MOST : d->right_cell);
    if (!first && !same_piece(d->map, before, cell->owner)) cell->x += SEAM;
    return true;
}

static double line_width(const struct drawing *d, int64_t line)
{
    struct memory_cell cell = { .byte = line * d->map->line_bytes };
    while (next_memory_cell(d, layout_line_end(d->map, line), &cell)) continue;
    return cell.x;
}

/* +0 +1 ... over the bytes of the first line. */
static void draw_byte_labels(const struct drawing *d)
{
    struct memory_cell cell = { .x = d->right_x };
    char label[32];
    while (next_memory_cell(d, layout_line_end(d->map, 0), &cell)) {
        snprintf(label, sizeof label, "+%" PRId64, cell.byte);
        text(d, cell.x + cell.width / 2, HEADER - 7, "cell faint", label);
    }
}

static void draw_line(const struct drawing *d, int64_t line, double y)
{
    struct memory_cell cell = { .byte = line * d->map->line_bytes, .x = d->right_x };
    char label[64];
    while (next_memory_cell(d, layout_line_end(d->map, line), &cell)) {
        snprintf(label, sizeof label, "%" PRId64 ",%" PRId64, cell.owner.row, cell.owner.column);
        if (cell.owner.row < 0) foreign_cell(d, cell.x, y, cell.width, cell.count);
        else scale_cell(d, cell.x, y, cell.width, cell.owner.row, cell.owner.column, label);
    }
}

static void draw_memory(const struct drawing *d)
{
    char label[32];
    double y = HEADER;
    draw_byte_labels(d);
    for (int i = 0; i < d->map->line_list.count; i++, y += CELL_HEIGHT) {
        const struct layout_shown line = d->map->line_list.shown[i];
        draw_gap(d, d->right_x, y, line.omitted, "line");
        y += space_before(&line);
        snprintf(label, sizeof label, "%" PRId64, line.index * d->map->line_bytes);
        text(d, d->right_x - 8, y + 14, "label", label);
        draw_line(d, line.index, y);
    }
    draw_gap(d, d->right_x, y, d->map->lines_omitted, "line");
}

/* The page --------------------------------------------------------------------------------------------------------- */

static void draw_heading(const struct drawing *d)
{
    const struct layout_map *map = d->map;
    const int kind = (int)map->layout.kind;
    char line[512], name[64];
    layout_text(&map->layout, name, sizeof name);
    snprintf(line, sizeof line, "%s: where the scales of %" PRId64 " rows × %" PRId64 " columns lie", name, map->rows,
             map->columns);
    text(d, MARGIN, 40, "title", line);
    text(d, MARGIN, 62, "words", bsm_layout_about(kind));
    snprintf(line, sizeof line, "byte of (r, s) of R × S:  %s", bsm_layout_formula(kind));
    text(d, MARGIN, 84, "formula", line);
    snprintf(line, sizeof line, "byte of (%" PRId64 ", %" PRId64 "):  ", map->rows - 1, map->columns - 1);
    layout_example(map, map->rows - 1, map->columns - 1, line + strlen(line), sizeof line - strlen(line));
    text(d, MARGIN, 102, "formula", line);
    text(d, d->left_x, HEADER - 26, "heading", "The matrix: every scale, and its byte");
    snprintf(line, sizeof line, "Memory, %" PRId64 " bytes a line: every byte, and its row,column", map->line_bytes);
    text(d, d->right_x, HEADER - 26, "heading", line);
}

static void draw_legend(const struct drawing *d, double y)
{
    const struct layout_map *map = d->map;
    const int64_t padding = map->padded_rows * map->padded_columns - map->rows * map->columns;
    const int64_t foreign = map->bytes - map->padded_rows * map->padded_columns;
    char line[256];
    double x = MARGIN;
    snprintf(line, sizeof line, "%" PRId64 " bytes, padded to %" PRId64 " × %" PRId64
             ".  One colour: a piece that moves as a whole, darker to its right.", map->bytes, map->padded_rows,
             map->padded_columns);
    text(d, x, y + 14, "words", line);
    y += 26;
    if (padding > 0) {
        fprintf(d->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"30\" height=\"%d\" fill=\"#eef0f4\"/>", x, y,
                CELL_HEIGHT);
        fprintf(d->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"30\" height=\"%d\" class=\"padding\"/>", x, y,
                CELL_HEIGHT);
        snprintf(line, sizeof line, "padding, %" PRId64 " bytes: always zero", padding);
        text(d, x + 38, y + 14, "words", line);
        x += 38 + 20 + text_width(line);
    }
    if (foreign > 0) {
        fprintf(d->file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"30\" height=\"%d\" class=\"foreign\"/>", x, y,
                CELL_HEIGHT);
        snprintf(line, sizeof line, "%" PRId64 " bytes %s: left alone", foreign, layout_foreign_name(map));
        text(d, x + 38, y + 14, "words", line);
    }
}

static void draw_page(const struct drawing *d)
{
    fprintf(d->file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f "
                     "%.0f\">\n",
            d->width, d->height, d->width, d->height);
    fprintf(d->file,
            "<style>\n"
            "text { fill: #1c2330; font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif }\n"
            ".title { font-size: 21px; font-weight: 600 } .words { font-size: 12.5px; fill: #4a5364 }\n"
            ".formula { font-size: 12.5px; font-family: ui-monospace, 'DejaVu Sans Mono', monospace }\n"
            ".heading { font-size: 13.5px; font-weight: 600 }\n"
            ".cell { font-size: 11px; font-family: ui-monospace, 'DejaVu Sans Mono', monospace; text-anchor: middle }\n"
            ".label { font-size: 11px; font-family: ui-monospace, 'DejaVu Sans Mono', monospace; text-anchor: end }\n"
            ".label { fill: #4a5364 } .gap { font-size: 10.5px; fill: #6b7385 } .faint { fill: #6b7385 }\n"
            "rect { stroke: #ffffff; stroke-width: 1 } .padding { fill: url(#hatch) } .foreign { fill: #e9ebef }\n"
            "</style>\n"
            "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
            "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#ffffff\" fill-opacity=\"0.62\" "
            "stroke=\"none\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#b4bac6\" "
            "stroke-width=\"1.4\"/></pattern>\n");
    fprintf(d->file, "<rect width=\"%.0f\" height=\"%.0f\" style=\"fill: #ffffff; stroke: none\"/>\n", d->width,
            d->height);
}

void layout_picture(const struct layout_map *map, FILE *file)
{
    struct drawing d = { .map = map, .file = file };
    const char *formula = bsm_layout_formula((int)map->layout.kind);
    const double labels = 6.7 * (digits(map->known_rows - 1) + 1 + digits(map->padded_columns - 1)) + 10;
    d.left_cell = fmax(34, 6.7 * digits(map->bytes - 1) + 10);
    d.right_cell = fmax(34, labels);
    d.left_x = MARGIN + fmax(60, 6.7 * digits(map->padded_rows - 1) + 10);
    d.left_width = left_x(&d, map->column_list.count - 1) + d.left_cell;
    d.right_x = fmax(d.left_width, d.left_x + 260) + PANELS_APART + 6.7 * digits(map->bytes);
    for (int i = 0; i < map->line_list.count; i++)
        d.right_width = fmax(d.right_width, line_width(&d, map->line_list.shown[i].index));
    d.width = fmax(d.right_x + fmax(d.right_width, 440), MARGIN + 7.6 * (double)strlen(formula) + 200) + MARGIN;
    const double left_height = list_height(&map->row_list);
    const double right_height = list_height(&map->line_list) + (map->lines_omitted > 0 ? GAP : 0);
    d.height = HEADER + fmax(left_height, right_height) + FOOTER;
    draw_page(&d);
    draw_heading(&d);
    draw_matrix(&d);
    draw_memory(&d);
    draw_legend(&d, d.height - FOOTER + 14);
    fprintf(file, "</svg>\n");
}
