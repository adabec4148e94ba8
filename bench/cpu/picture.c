/* The table as a drawing: one bar a row, from 1 to the ratio, on a logarithmic axis; a line where the ratio should
 * reach. */
#include "bench.h"
#include "cli/plot/chart.h"

#include <math.h>

enum { WIDTH = 980, BAR = 13, STEP = 18, GAP = 12 };
static const double top = 130, bars_left = 330, bars_right = 880;
static const char *const colours[KIND_COUNT] = { SVG_BLUE, SVG_GREEN, SVG_ORANGE, SVG_PURPLE };
static const char *const legends[KIND_COUNT] = { "BLAS on fp32 held", "reading the weights", "one thread",
                                                 "memcpy of as many bytes" };

static void draw_row(FILE *file, const struct chart_axis *axis, const struct row *row, double y)
{
    char what[96], shape[96], paint[48];
    const double one = chart_position(axis, 1), end = chart_position(axis, row_ratio(row)),
                 reach = chart_position(axis, row->work.reach);
    row_names(row, what, shape, sizeof what);
    const struct svg_font label = { .size = 12, .anchor = SVG_END }, figure = { .size = 12, .colour = SVG_GREY };
    svg_textf(file, bars_left - 10, y + BAR - 2, &label, "%s  %s", what, shape);
    snprintf(paint, sizeof paint, "fill=\"%s\"", colours[row->work.kind]);
    svg_rectangle(file, fmin(one, end), y, fabs(end - one), BAR, paint);
    svg_line(file, reach, y - 2, reach, y + BAR + 2, "stroke=\"" SVG_INK "\" stroke-width=\"1.6\"");
    svg_textf(file, bars_right + 10, y + BAR - 2, &figure, "%.2f", row_ratio(row));
}

static void draw_axis(FILE *file, const struct chart_axis *axis, double from, double to)
{
    static const double ticks[] = { 0.1, 0.2, 0.5, 1, 2, 5, 10, 20 };
    const struct svg_font tick = { .size = 11, .anchor = SVG_MIDDLE, .colour = SVG_GREY };
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; i++) {
        if (ticks[i] < axis->low || ticks[i] > axis->high) continue;
        const double x = chart_position(axis, ticks[i]);
        svg_line(file, x, from, x, to,
                 ticks[i] < 1 || ticks[i] > 1 ? "stroke=\"" SVG_FAINT "\"" : "stroke=\"" SVG_AXIS "\"");
        svg_textf(file, x, to + 16, &tick, "%g", ticks[i]);
    }
}

/* Bars in the order of the table, a gap where the kind changes; without a file only the height. */
static double draw_bars(FILE *file, const struct table *t, const struct chart_axis *axis, double y)
{
    int before = -1;
    for (int i = 0; i < t->count; i++) {
        if (!t->rows[i].measured) continue;
        if (before >= 0 && before != (int)t->rows[i].work.kind) y += GAP;
        if (file != NULL) draw_row(file, axis, &t->rows[i], y);
        before = (int)t->rows[i].work.kind;
        y += STEP;
    }
    return y;
}

void report_picture(const struct table *t, FILE *file)
{
    char title[256], about[512];
    struct chart_axis axis;
    double low = 0.5, high = 2;
    for (int i = 0; i < t->count; i++) {
        if (!t->rows[i].measured) continue;
        low = fmin(low, row_ratio(&t->rows[i])), high = fmax(high, fmax(row_ratio(&t->rows[i]), t->rows[i].work.reach));
    }
    chart_axis_decades(&axis, low, high);
    axis.low = low / 1.1, axis.high = high * 1.1;
    axis.at_low = bars_left, axis.at_high = bars_right;
    const double end = draw_bars(NULL, t, &axis, top);
    snprintf(title, sizeof title, "blockscale on %s, %s", t->machine, t->date);
    snprintf(about, sizeof about,
             "at %s; %s; %s; best of %d alternating rounds, load %s; %d thread%s but for the orange bars", t->commit,
             t->cpu, t->peer[0] != '\0' ? t->peer : "no BLAS library", t->rounds, t->load, t->base,
             t->base == 1 ? "" : "s");
    svg_begin(file, WIDTH, end + 60, title, about);
    svg_heading(file, WIDTH, title, about);
    for (int i = 0; i < KIND_COUNT; i++) {
        const double x = 32 + 230.0 * i;
        svg_mark(file, SVG_SQUARE, x, 104, 6, colours[i]);
        svg_textf(file, x + 14, 108, &(struct svg_font){ .size = 12 }, "over %s", legends[i]);
    }
    draw_axis(file, &axis, top - 6, end);
    draw_bars(file, t, &axis, top);
    svg_text(file, 32, end + 40, &(struct svg_font){ .size = 12, .colour = SVG_GREY },
             "Bars: the peer's time over ours; to the right of 1 ours is faster. The black line is what is to be "
             "reached.");
    svg_end(file);
}
