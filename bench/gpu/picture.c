/* The table as a drawing: one bar a row, from 1 to the ratio, on a logarithmic axis; a line where the ratio should reach. */
#include "table.h"
#include "cli/plot/chart.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 1360, BAR = 11, BAR_STEP = 14, GROUP_GAP = 7, PANEL_GAP = 62, MOST_KINDS = 3 };
static const double top = 152, names_width = 250, bars_width = 330;

struct kind {
    enum section section;
    const char *colour, *name;
};
struct panel {
    const char *title;
    double left;
    int kinds;
    struct kind kind[MOST_KINDS];
};

static const struct panel products = { "Large products",
                                       32,
                                       3,
                                       { { SECTION_PREPARED, SVG_BLUE, "cuBLAS on bf16 dequantized beforehand" },
                                         { SECTION_DEQUANTIZED, SVG_ORANGE, "dequantize, then cuBLAS" },
                                         { SECTION_TRITON, SVG_GREEN, "Triton dot_scaled" } } };
static const struct panel others = { "Quantizing, layouts, error",
                                     32,
                                     3,
                                     { { SECTION_QUANTIZE, SVG_SKY, "device copy of the bytes that quantizing moves" },
                                       { SECTION_CONVERT, SVG_PURPLE, "the same, for scale layouts" },
                                       { SECTION_ERROR, SVG_VERMILION, "error of cuBLAS (its error over ours)" } } };
static const struct panel small = { "Few rows", 704, 1, { { SECTION_SMALL, SVG_ORANGE, "dequantize, then cuBLAS" } } };

static const struct kind *kind_of(const struct panel *panel, const struct row *row)
{
    for (int i = 0; i < panel->kinds; i++)
        if (panel->kind[i].section == row->section && row->served && row->ratio > 0 && isfinite(row->ratio)) return &panel->kind[i];
    return NULL;
}

/* Wide enough for every bar, its number and 1; false where there is no bar. */
static bool panel_axis(const struct table *table, const struct panel *panel, struct chart_axis *axis)
{
    double low = 0.8, high = 1.25;
    bool any = false;
    for (int i = 0; i < table->count; i++) {
        if (kind_of(panel, &table->rows[i]) == NULL) continue;
        any = true;
        low = fmin(low, table->rows[i].ratio), high = fmax(high, table->rows[i].ratio);
    }
    chart_axis_decades(axis, low, high);
    axis->low = low / 1.12, axis->high = high * 1.12;
    axis->at_low = panel->left + names_width, axis->at_high = axis->at_low + bars_width;
    return any;
}

static bool same_work(const struct row *a, const struct row *b)
{
    return strcmp(a->work, b->work) == 0 && strcmp(a->shape, b->shape) == 0;
}

static void draw_bar(FILE *file, const struct chart_axis *axis, const struct row *row, const char *colour, double y)
{
    char paint[48];
    const double one = chart_position(axis, 1), end = chart_position(axis, row->ratio), reach = table_sections[row->section].reach;
    const struct svg_font number = { .size = 11, .colour = SVG_GREY };
    snprintf(paint, sizeof paint, "fill=\"%s\"", colour);
    svg_rectangle(file, fmin(one, end), y, fabs(end - one), BAR, paint);
    if (reach >= axis->low && reach <= axis->high)
        svg_line(file, chart_position(axis, reach), y - 1.5, chart_position(axis, reach), y + BAR + 1.5,
                 "stroke=\"" SVG_INK "\" stroke-width=\"1.4\"");
    svg_textf(file, axis->at_high + 8, y + BAR - 1, &number, "%.2f", row->ratio);
}

static void draw_axis(FILE *file, const struct chart_axis *axis, double from, double to)
{
    static const double ticks[] = { 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 4, 5, 7, 10 };
    double last = -100;
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        if (ticks[i] < axis->low || ticks[i] > axis->high) continue;
        const double x = chart_position(axis, ticks[i]);
        svg_line(file, x, from, x, to, ticks[i] < 1 || ticks[i] > 1 ? "stroke=\"" SVG_FAINT "\"" : "stroke=\"" SVG_AXIS "\"");
        if (x - last < 26) continue;
        svg_textf(file, x, to + 14, &(struct svg_font){ .size = 11, .anchor = SVG_MIDDLE, .colour = SVG_GREY }, "%g", ticks[i]);
        last = x;
    }
}

/* Where the panel that starts at y ends; draws only with a file. */
static double draw_bars(FILE *file, const struct table *table, const struct panel *panel, const struct chart_axis *axis, double y)
{
    const struct row *before = NULL;
    for (int i = 0; i < table->count; i++) {
        const struct row *row = &table->rows[i];
        const struct kind *kind = kind_of(panel, row);
        if (kind == NULL) continue;
        const bool starts = before == NULL || !same_work(before, row);
        if (starts && before != NULL && panel->kinds > 1) y += GROUP_GAP;
        if (file != NULL && starts)
            svg_textf(file, axis->at_low - 8, y + BAR - 1, &(struct svg_font){ .size = 12, .anchor = SVG_END }, "%s  %s", row->work,
                      row->shape);
        if (file != NULL) draw_bar(file, axis, row, kind->colour, y);
        y += BAR_STEP;
        before = row;
    }
    return y;
}

/* Where the panel ends. */
static double draw_panel(FILE *file, const struct table *table, const struct panel *panel, double y)
{
    struct chart_axis axis;
    if (!panel_axis(table, panel, &axis)) return y;
    const double bars = y + 24 + 17 * panel->kinds, end = draw_bars(NULL, table, panel, &axis, bars);
    if (file == NULL) return end + PANEL_GAP;
    svg_text(file, panel->left, y, &(struct svg_font){ .size = 15, .bold = 1 }, panel->title);
    for (int i = 0; i < panel->kinds; i++) {
        const struct section_about *about = &table_sections[panel->kind[i].section];
        svg_mark(file, SVG_SQUARE, panel->left + 8, y + 17 * (i + 1), 6, panel->kind[i].colour);
        svg_textf(file, panel->left + 22, y + 17 * (i + 1) + 4.5, &(struct svg_font){ .size = 12 }, "%s: reach %.2f, aim %.2f",
                  panel->kind[i].name, about->reach, about->aim);
    }
    draw_axis(file, &axis, bars - 4, end);
    draw_bars(file, table, panel, &axis, bars);
    return end + PANEL_GAP;
}

void table_picture(const struct table *table, FILE *file)
{
    char title[320], about[512];
    const double left_end = draw_panel(NULL, table, &others, draw_panel(NULL, table, &products, top)),
                 right_end = draw_panel(NULL, table, &small, top);
    snprintf(title, sizeof title, "blockscale on %s, %s", table->machine, table->date);
    snprintf(about, sizeof about, "at %s; %s; medians of %d rounds, ours and the peer in turn, operands cold in L2", table->commit,
             table->peers, table->rounds);
    svg_begin(file, WIDTH, fmax(left_end, right_end), title, about);
    svg_heading(file, WIDTH, title, about);
    svg_text(file, 32, 108, &(struct svg_font){ .size = 13, .colour = SVG_GREY },
             "Bars: the peer's time over ours. To the right of 1 ours is faster (for errors: smaller). The black line is what is "
             "to be reached.");
    draw_panel(file, table, &others, draw_panel(file, table, &products, top));
    draw_panel(file, table, &small, top);
    svg_end(file);
}
