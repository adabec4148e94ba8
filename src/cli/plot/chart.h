/* Axes with round ticks, and a line chart on top of them. */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include "svg.h"

enum { CHART_TICKS = 16, CHART_SERIES = 8 };

/* A range of values and where it lies on the page: value low is at pixel `at_low`. */
struct chart_axis {
    double low, high;
    int logarithmic;
    double at_low, at_high;
    double ticks[CHART_TICKS];
    int tick_count;
};

/* A linear axis over low .. high, widened to round ticks (1, 2, 2.5 or 5 times a power of ten), about `wanted` of
 * them. */
void chart_axis_round(struct chart_axis *axis, double low, double high, int wanted);
/* A logarithmic axis over low .. high (both > 0), with ticks at 1, 2 and 5 times powers of ten. */
void chart_axis_decades(struct chart_axis *axis, double low, double high);
/* The pixel of a value. */
double chart_position(const struct chart_axis *axis, double value);
/* "0.5", "1000"; from 10,000 on with a letter: "10k", "2M". */
void chart_tick_text(double value, char *text, size_t bytes);

/* Grid lines and tick labels; the caller draws what lies on it. */
void chart_draw_y(FILE *file, const struct chart_axis *axis, double left, double right, const char *label);
void chart_draw_x(FILE *file, const struct chart_axis *axis, double top, double bottom, const char *label);

struct chart_series {
    const char *name;
    const char *colour;
    enum svg_marker marker;
    int count;
    const double *x, *y;
};

struct chart {
    const char *title, *subtitle, *note;  /* note: one line below the picture; NULL: none */
    const char *x_label, *y_label;
    int series_count;                     /* 1..CHART_SERIES */
    struct chart_series series[CHART_SERIES];
};

/* A whole page: title, legend, axes, one line a series. */
void chart_lines(FILE *file, const struct chart *chart);

#endif
