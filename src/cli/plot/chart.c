/* Axes with round ticks, and a line chart, see chart.h. */
#include "chart.h"

#include <math.h>
#include <string.h>

/* The smallest of 1, 2, 2.5, 5, 10 times a power of ten that is at least `step`. */
static double round_step(double step)
{
    const double power = pow(10, floor(log10(step)));
    static const double steps[] = { 1, 2, 2.5, 5 };
    for (int i = 0; i < 4; i++)
        if (step <= steps[i] * power * (1 + 1e-9)) return steps[i] * power;
    return 10 * power;
}

void chart_axis_round(struct chart_axis *axis, double low, double high, int wanted)
{
    if (!(high > low)) high = low + (low != 0 ? fabs(low) : 1);
    double step = round_step((high - low) / wanted);
    double first = floor(low / step + 1e-9), last = ceil(high / step - 1e-9);
    while (last - first + 1 > CHART_TICKS) {
        step = round_step(step * 1.5);
        first = floor(low / step + 1e-9), last = ceil(high / step - 1e-9);
    }
    axis->low = first * step, axis->high = last * step, axis->logarithmic = 0;
    axis->tick_count = 0;
    for (double i = first; i <= last; i++) axis->ticks[axis->tick_count++] = i * step;
}

void chart_axis_decades(struct chart_axis *axis, double low, double high)
{
    static const double steps[] = { 1, 2, 5 };
    axis->logarithmic = 1, axis->tick_count = 0;
    const int first = (int)floor(log10(low)), last = (int)floor(log10(high)) + 1;
    const int stride = last - first > 4 ? 3 : 1;            /* many decades: powers of ten alone */
    double below = pow(10, first), above = pow(10, last);
    for (int i = 0; i < 3 * (last - first) + 1; i += stride) {
        const double tick = steps[i % 3] * pow(10, first + i / 3);
        if (tick <= low * (1 + 1e-9)) below = tick;
        if (tick >= high * (1 - 1e-9) && tick < above) above = tick;
    }
    for (int i = 0; i < 3 * (last - first) + 1 && axis->tick_count < CHART_TICKS; i += stride) {
        const double tick = steps[i % 3] * pow(10, first + i / 3);
        if (tick >= below * (1 - 1e-9) && tick <= above * (1 + 1e-9)) axis->ticks[axis->tick_count++] = tick;
    }
    axis->low = below, axis->high = above;
}

double chart_position(const struct chart_axis *axis, double value)
{
    const double part = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                                          : (value - axis->low) / (axis->high - axis->low);
    return axis->at_low + part * (axis->at_high - axis->at_low);
}

void chart_tick_text(double value, char *text, size_t bytes)
{
    static const struct { double unit; const char *letter; } units[] = { { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } };
    for (int i = 0; i < 3 && fabs(value) >= 1e4; i++)
        if (fabs(value) >= units[i].unit) {
            snprintf(text, bytes, "%.4g%s", value / units[i].unit, units[i].letter);
            return;
        }
    snprintf(text, bytes, "%.6g", value);
}

void chart_draw_y(FILE *file, const struct chart_axis *axis, double left, double right, const char *label)
{
    const struct svg_font font = { .size = 13, .anchor = SVG_END, .colour = SVG_GREY };
    double widest = 0;
    for (int i = 0; i < axis->tick_count; i++) {
        char text[32];
        chart_tick_text(axis->ticks[i], text, sizeof text);
        const double y = chart_position(axis, axis->ticks[i]);
        svg_line(file, left, y, right, y, i == 0 ? "stroke=\"" SVG_AXIS "\"" : "stroke=\"" SVG_FAINT "\"");
        svg_text(file, left - 10, y + 4.5, &font, text);
        widest = fmax(widest, svg_text_width(text, font.size, 0));
    }
    const struct svg_font turned = { .size = 14, .anchor = SVG_MIDDLE, .colour = SVG_INK, .turn = -90 };
    svg_text(file, left - 10 - widest - 16, (axis->at_low + axis->at_high) / 2, &turned, label);
}

void chart_draw_x(FILE *file, const struct chart_axis *axis, double top, double bottom, const char *label)
{
    const struct svg_font font = { .size = 13, .anchor = SVG_MIDDLE, .colour = SVG_GREY };
    double free_from = -1e9;
    for (int i = 0; i < axis->tick_count; i++) {
        char text[32];
        chart_tick_text(axis->ticks[i], text, sizeof text);
        const double x = chart_position(axis, axis->ticks[i]), half = svg_text_width(text, font.size, 0) / 2;
        svg_line(file, x, top, x, bottom, "stroke=\"" SVG_FAINT "\"");
        svg_line(file, x, bottom, x, bottom + 5, "stroke=\"" SVG_AXIS "\"");
        if (x - half < free_from + 6) continue;         /* labels never touch: the tick stays, its number is left out */
        svg_text(file, x, bottom + 20, &font, text);
        free_from = x + half;
    }
    svg_line(file, fmin(axis->at_low, axis->at_high), bottom, fmax(axis->at_low, axis->at_high), bottom,
             "stroke=\"" SVG_AXIS "\"");
    const struct svg_font centred = { .size = 14, .anchor = SVG_MIDDLE, .colour = SVG_INK };
    svg_text(file, (axis->at_low + axis->at_high) / 2, bottom + 44, &centred, label);
}

/* Legend entries in one row, wrapped when the row is full; returns the y below them. */
static double draw_legend(FILE *file, const struct chart *chart, double left, double right, double y)
{
    const struct svg_font font = { .size = 14, .colour = SVG_INK };
    double x = left;
    for (int i = 0; i < chart->series_count; i++) {
        const struct chart_series *series = &chart->series[i];
        const double width = 36 + svg_text_width(series->name, font.size, 0) + 24;
        if (x > left && x + width > right) x = left, y += 24;
        char paint[96];
        snprintf(paint, sizeof paint, "stroke=\"%s\" stroke-width=\"2.5\"", series->colour);
        svg_line(file, x, y - 5, x + 26, y - 5, paint);
        svg_mark(file, series->marker, x + 13, y - 5, 5, series->colour);
        svg_text(file, x + 34, y, &font, series->name);
        x += width;
    }
    return y;
}

static void x_range(const struct chart *chart, struct chart_axis *axis)
{
    double low = INFINITY, high = -INFINITY;
    const struct chart_series *longest = &chart->series[0];
    for (int i = 0; i < chart->series_count; i++) {
        const struct chart_series *series = &chart->series[i];
        if (series->count > longest->count) longest = series;
        for (int j = 0; j < series->count; j++) low = fmin(low, series->x[j]), high = fmax(high, series->x[j]);
    }
    if (longest->count > 12 || longest->count < 2) {
        chart_axis_round(axis, low, high, 8);
        return;
    }
    /* Few points: the sizes that were measured are the ticks. */
    axis->low = low, axis->high = high, axis->logarithmic = 0, axis->tick_count = longest->count;
    memcpy(axis->ticks, longest->x, (size_t)longest->count * sizeof *longest->x);
}

/* From zero, unless the series are so far apart that the lower ones would lie on the axis. */
static void y_range(const struct chart *chart, struct chart_axis *axis)
{
    double low = INFINITY, high = 0;
    for (int i = 0; i < chart->series_count; i++)
        for (int j = 0; j < chart->series[i].count; j++)
            low = fmin(low, chart->series[i].y[j]), high = fmax(high, chart->series[i].y[j]);
    if (low > 0 && high / low > 8) chart_axis_decades(axis, low, high);
    else chart_axis_round(axis, 0, high, 6);
}

static void draw_series(FILE *file, const struct chart_series *series, const struct chart_axis *x,
                        const struct chart_axis *y)
{
    enum { PIECE = 512 };                 /* long lines are drawn in pieces that share a point */
    char paint[128];
    snprintf(paint, sizeof paint, "fill=\"none\" stroke=\"%s\" stroke-width=\"2.5\" stroke-linejoin=\"round\"",
             series->colour);
    for (int from = 0; from < series->count; from += PIECE - 1) {
        double xs[PIECE], ys[PIECE];
        int count = 0;
        for (int i = from; i < series->count && count < PIECE; i++, count++)
            xs[count] = chart_position(x, series->x[i]), ys[count] = chart_position(y, series->y[i]);
        svg_polyline(file, xs, ys, count, paint);
        for (int i = 0; i < count && series->count <= 64; i++)
            svg_mark(file, series->marker, xs[i], ys[i], 5, series->colour);
    }
}

void chart_lines(FILE *file, const struct chart *chart)
{
    const double width = 960, left = 92, right = width - 40, bottom = 500,
                 height = bottom + (chart->note != NULL ? 96 : 68);
    svg_begin(file, width, height, chart->title, chart->subtitle);
    svg_heading(file, width, chart->title, chart->subtitle);
    const double top = draw_legend(file, chart, 32, right, 104) + 26;

    struct chart_axis x, y;
    x_range(chart, &x);
    y_range(chart, &y);
    x.at_low = left + 14, x.at_high = right - 14, y.at_low = bottom, y.at_high = top;
    chart_draw_y(file, &y, left, right, chart->y_label);
    chart_draw_x(file, &x, top, bottom, chart->x_label);
    svg_line(file, left, bottom, right, bottom, "stroke=\"" SVG_AXIS "\"");

    for (int i = 0; i < chart->series_count; i++) draw_series(file, &chart->series[i], &x, &y);
    if (chart->note != NULL)
        svg_text(file, 32, bottom + 76, &(struct svg_font){ .size = 12.5, .colour = SVG_GREY }, chart->note);
    svg_end(file);
}
