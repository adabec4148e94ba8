/* The picture of demo: error of the product against bits per element, and speeds as bars. */
#include "cli/plot/chart.h"
#include "demo.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 1200, LABEL_SIZE = 13 };
static const double scatter_left = 96, scatter_right = 640, top = 172, bottom = 612;
static const double names_right = 852, bars_left = 864, bars_right = 1076;

/* Families differ in colour and in shape. */
enum family { FAMILY_MX, FAMILY_NVFP4, FAMILY_UNSCALED, FAMILY_MIXED, FAMILIES };
static const struct { const char *name, *colour; enum svg_marker marker; } families[FAMILIES] = {
    { "MX: a power of two for 16 or 32 elements", SVG_BLUE, SVG_DOT },
    { "NVFP4: an e4m3 scale for 16, and one for the tensor", SVG_VERMILION, SVG_SQUARE },
    { "no block scale", SVG_GREEN, SVG_DIAMOND },
    { "A wide, B narrow", SVG_PURPLE, SVG_TRIANGLE },
};

static enum family family_of(const struct demo_row *row)
{
    const bsm_scale scale = bsm_format_get((int)row->a)->scale;
    if (row->a != row->b) return FAMILY_MIXED;
    return scale == BSM_E8M0 ? FAMILY_MX : scale == BSM_UE4M3 ? FAMILY_NVFP4 : FAMILY_UNSCALED;
}

/* Placing labels --------------------------------------------------------------------------------------------------- */

struct box { double left, top, right, bottom; };

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

/* Boxes that are taken: markers first, then labels. */
struct page { struct box taken[2 * DEMO_ROWS]; int count; };

static bool is_free(const struct page *page, const struct box *box)
{
    for (int i = 0; i < page->count; i++)
        if (overlap(box, &page->taken[i])) return false;
    return box->left > scatter_left && box->right < scatter_right + 24 && box->top > top - 6 && box->bottom < bottom;
}

/* Around the marker at x, y, near places before far ones; the last one where none is free. */
static struct box place_label(struct page *page, double x, double y, double width)
{
    static const struct { double side, dy; } places[] = {
        { 1, 0 },   { -1, 0 }, { 1, -14 }, { 1, 14 }, { -1, -14 }, { -1, 14 },
        { 0, -18 }, { 0, 18 }, { 1, -28 }, { 1, 28 }, { -1, -28 }, { -1, 28 },
    };
    struct box box = { 0 };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const double left = places[i].side > 0 ? x + 10 : places[i].side < 0 ? x - 10 - width : x - width / 2;
        box = (struct box) { left, y + places[i].dy - 8, left + width, y + places[i].dy + 8 };
        if (is_free(page, &box)) break;
    }
    page->taken[page->count++] = box;
    return box;
}

/* Scatter ---------------------------------------------------------------------------------------------------------- */

/* fp32 has no error to speak of, and would stretch both axes. */
static bool drawn(const struct demo_row *row) { return row->bits < 32 && isfinite(row->error) && row->error > 0; }

static bool error_axis(const struct demo *demo, struct chart_axis *axis)
{
    double low = INFINITY, high = 0;
    for (int i = 0; i < demo->count; i++)
        if (drawn(&demo->row[i]))
            low = fmin(low, 100 * demo->row[i].error), high = fmax(high, 100 * demo->row[i].error);
    if (!(high > 0)) return false;
    chart_axis_decades(axis, low / 1.1, high * 1.1);
    axis->at_low = bottom, axis->at_high = top;
    return true;
}

static void scatter(const struct demo *demo, FILE *file)
{
    struct chart_axis error = { 0 };
    struct chart_axis bits = { .low = 3.6, .high = 18.5, .logarithmic = 1, .at_low = scatter_left,
                               .at_high = scatter_right,
                               .ticks = { 4, 6, 8, 10, 12, 16 }, .tick_count = 6 };
    const struct svg_font heading = { .size = 15, .bold = 1 }, label = { .size = LABEL_SIZE };
    struct page page = { 0 };
    svg_text(file, 32, top - 24, &heading, "Size and error");
    if (!error_axis(demo, &error)) return;
    chart_draw_y(file, &error, scatter_left, scatter_right, "error of the product (%)");
    chart_draw_x(file, &bits, top, bottom, "bits per element, scales included (mean of A and B)");
    for (int i = 0; i < demo->count; i++) {
        const struct demo_row *row = &demo->row[i];
        if (!drawn(row)) continue;
        const double x = chart_position(&bits, row->bits), y = chart_position(&error, 100 * row->error);
        page.taken[page.count++] = (struct box) { x - 8, y - 8, x + 8, y + 8 };
    }
    for (int i = 0; i < demo->count; i++) {
        const struct demo_row *row = &demo->row[i];
        if (!drawn(row)) continue;
        const double x = chart_position(&bits, row->bits), y = chart_position(&error, 100 * row->error);
        const struct box box = place_label(&page, x, y, svg_text_width(row->name, LABEL_SIZE, 0));
        svg_mark(file, families[family_of(row)].marker, x, y, 6.5, families[family_of(row)].colour);
        const int on_the_left = box.right < x, centred = !on_the_left && box.left < x;
        struct svg_font font = label;
        font.anchor = on_the_left ? SVG_END : centred ? SVG_MIDDLE : SVG_START;
        svg_text(file,
                 on_the_left ? box.right
                 : centred   ? x
                             : box.left,
                 (box.top + box.bottom) / 2 + 4.5, &font, row->name);
    }
}

/* Bars ------------------------------------------------------------------------------------------------------------- */

static void bars(const struct demo *demo, FILE *file)
{
    struct chart_axis speed;
    double high = 0;
    for (int i = 0; i < demo->count; i++) high = fmax(high, demo_gflops(demo, &demo->row[i]));
    chart_axis_round(&speed, 0, high, 4);
    speed.at_low = bars_left, speed.at_high = bars_right;
    svg_text(file, names_right - 140, top - 24, &(struct svg_font){ .size = 15, .bold = 1 },
             "Speed, and how many times that of fp32");
    chart_draw_x(file, &speed, top, bottom, "GFLOP/s");

    const double step = (bottom - top) / demo->count, height = fmin(step * 0.66, 20);
    const double fp32 = chart_position(&speed, demo_gflops(demo, &demo->row[demo->fp32]));
    const struct svg_font name = { .size = LABEL_SIZE, .anchor = SVG_END },
                          value = { .size = 12.5, .colour = SVG_GREY };
    for (int i = 0; i < demo->count; i++) {
        const struct demo_row *row = &demo->row[i];
        const double y = top + step * (i + 0.5), gflops = demo_gflops(demo, row);
        char paint[64];
        snprintf(paint, sizeof paint, "fill=\"%s\"", families[family_of(row)].colour);
        svg_rectangle(file, bars_left, y - height / 2, chart_position(&speed, gflops) - bars_left, height, paint);
        svg_text(file, names_right, y + 4.5, &name, row->name);
        svg_textf(file, bars_right + 12, y + 4.5, &value, "%.2f  (%.2fx)", gflops, demo_ratio(demo, row));
    }
    svg_line(file, fp32, top, fp32, bottom, "stroke=\"" SVG_INK "\" stroke-dasharray=\"4 3\"");
    svg_text(file, fp32, top - 6, &(struct svg_font) { .size = 12, .anchor = SVG_MIDDLE, .colour = SVG_GREY }, "fp32");
}

/* Page ------------------------------------------------------------------------------------------------------------- */

static void legend(FILE *file, double y)
{
    const struct svg_font font = { .size = 13, .colour = SVG_INK };
    double x = 40;
    for (int i = 0; i < FAMILIES; i++) {
        svg_mark(file, families[i].marker, x, y - 4.5, 6.5, families[i].colour);
        svg_text(file, x + 14, y, &font, families[i].name);
        x += 14 + svg_text_width(families[i].name, font.size, 0) + 26;
    }
}

/* One small line; names of files may be long, so it shrinks until it fits. */
static void note(FILE *file, double y, const char *text)
{
    const double size = 12 * fmin(1, (WIDTH - 64) / svg_text_width(text, 12, 0));
    svg_text(file, 32, y, &(struct svg_font) { .size = size, .colour = SVG_GREY }, text);
}

void demo_picture(const struct demo *demo, FILE *file)
{
    const char *title = "Block-scaled formats: how many bits, how much error, how fast";
    const char *subtitle =
        "Left: lower is more exact, further left is smaller. Right: longer is faster; "
        "the dashed line is the fp32 product.";
    const int version = bsm_version();
    const double height = bottom + 106;
    svg_begin(file, WIDTH, height, title, subtitle);
    svg_heading(file, WIDTH, title, subtitle);
    legend(file, 101);
    scatter(demo, file);
    bars(demo, file);
    char text[768];
    snprintf(text, sizeof text,
             "A: %lld x %lld, %s.  B: %lld x %lld, %s.  fp32 itself (32 bits) is left out on the left: %s",
             (long long)demo->a.rows, (long long)demo->a.columns, demo->a.about, (long long)demo->b.rows,
             (long long)demo->b.columns, demo->b.about, "its error is that of sums alone.");
    note(file, height - 34, text);
    snprintf(text, sizeof text, "%s, %d thread%s; best of %d rounds, quantizing not counted; blockscale %d.%d.%d",
             demo->machine, demo->threads, demo->threads == 1 ? "" : "s", demo->rounds, version / 10000,
             version / 100 % 100, version % 100);
    note(file, height - 14, text);
    svg_end(file);
}
