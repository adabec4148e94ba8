/* Axes and SVG: ticks are round, few, and hold the data; every text is well-formed XML. */
#include "test.h"
#include "cli/plot/chart.h"

#include <math.h>
#include <stdlib.h>

static void check_axis(struct test *t, const struct chart_axis *axis, double low, double high)
{
    const double slack = 1e-9 * (high - low);
    if (axis->tick_count < 2 || axis->tick_count > CHART_TICKS)
        FAIL(t, "%d ticks for %g .. %g", axis->tick_count, low, high);
    if (axis->low > low + slack || axis->high < high - slack)
        FAIL(t, "%g .. %g does not hold %g .. %g", axis->low, axis->high, low, high);
    if (axis->ticks[0] < axis->low - slack || axis->ticks[axis->tick_count - 1] > axis->high + slack)
        FAIL(t, "ticks outside the axis");
    for (int i = 1; i < axis->tick_count; i++)
        if (axis->ticks[i] <= axis->ticks[i - 1]) FAIL(t, "tick %d of %g .. %g does not ascend", i, low, high);
}

static void linear_axes_hold_the_data(struct test *t)
{
    struct chart_axis axis;
    for (int i = 0; i < 20000; i++) {
        const double scale = pow(10, (double)rnd_between(t, -12, 12)), low = rnd_normal(t) * scale,
                     high = low + fabs(rnd_normal(t)) * scale + 1e-6 * scale;
        chart_axis_round(&axis, low, high, (int)rnd_between(t, 2, 12));
        check_axis(t, &axis, low, high);
    }
    chart_axis_round(&axis, 0, 47.3, 5);
    CHECK(t, axis.low == 0 && axis.high == 50 && axis.tick_count == 6);
    chart_axis_round(&axis, 3, 3, 5);
    check_axis(t, &axis, 3, 3);
    chart_axis_round(&axis, 0, 0, 5);
    check_axis(t, &axis, 0, 0);
}

static void logarithmic_axes_hold_the_data(struct test *t)
{
    struct chart_axis axis;
    for (int i = 0; i < 20000; i++) {
        const double low = pow(10, 20 * (double)rnd_below(t, 1000) / 1000 - 10),
                     high = low * pow(10, 5 * (double)rnd_between(t, 1, 1000) / 1000);
        chart_axis_decades(&axis, low, high);
        check_axis(t, &axis, low, high);
    }
    chart_axis_decades(&axis, 3, 60);
    CHECK(t, axis.low == 2 && axis.high == 100 && axis.tick_count == 6);
}

static void positions_are_on_the_page(struct test *t)
{
    struct chart_axis axis = { .low = 1, .high = 100, .logarithmic = 1, .at_low = 500, .at_high = 100 };
    CHECK(t, chart_position(&axis, 1) == 500 && fabs(chart_position(&axis, 100) - 100) < 1e-9);
    CHECK(t, fabs(chart_position(&axis, 10) - 300) < 1e-9);
    axis.logarithmic = 0;
    CHECK(t, fabs(chart_position(&axis, 50.5) - 300) < 1e-9);
}

static void tick_texts_are_short(struct test *t)
{
    static const struct { double value; const char *text; } cases[] = {
        { 0, "0" },          { 0.5, "0.5" },    { 512, "512" },     { 4096, "4096" }, { 10000, "10k" },
        { 32768, "32.77k" }, { 2.5e6, "2.5M" }, { -20000, "-20k" }, { 1e9, "1G" },    { 0.002, "0.002" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        chart_tick_text(cases[i].value, text, sizeof text);
        if (strcmp(text, cases[i].text) != 0) FAIL(t, "%g is \"%s\", not \"%s\"", cases[i].value, text, cases[i].text);
    }
}

/* What svg_text puts between its tags. */
static void text_content(const char *text, char *content, size_t bytes)
{
    char *page = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&page, &size);
    svg_text(file, 0, 0, &(struct svg_font) { .size = 10 }, text);
    fclose(file);
    const char *start = strchr(page, '>') + 1;
    snprintf(content, bytes, "%.*s", (int)(strrchr(page, '<') - start), start);
    free(page);
}

static void texts_are_escaped(struct test *t)
{
    static const struct { const char *text, *content; } cases[] = {
        { "a < b & c > d", "a &lt; b &amp; c &gt; d" },
        { "\001\n\177", "???" },
        { "\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x9c\x93 \xf0\x9f\x98\x80" },
        { "\xff" "a", "?a" },
        { "\xc3", "?" },
        { "\xc0\xaf", "??" },
        { "\xed\xa0\x80", "???" },
        { "\xe2\x9c", "??" },
        { "\xef\xbf\xbf", "???" },
        { "\xf4\x90\x80\x80", "????" },
        { "\xe0\x80\x80", "???" },
        { "\x80", "?" }, { "\xc3\xc3\xa9", "?\xc3\xa9" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char content[128];
        text_content(cases[i].text, content, sizeof content);
        if (strcmp(content, cases[i].content) != 0)
            FAIL(t, "case %zu is \"%s\", not \"%s\"", i, content, cases[i].content);
    }
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) count++;
    return count;
}

/* Long series are drawn in pieces: every point is there, joints twice. */
static void every_point_is_drawn(struct test *t)
{
    for (int points = 1; points <= 1600; points = points * 3 / 2 + 1) {
        double x[2048], y[2048];
        for (int i = 0; i < points; i++) x[i] = i, y[i] = 1 + i % 7;
        const struct chart chart = { .title = "title", .subtitle = "subtitle", .x_label = "x", .y_label = "y",
                                     .series_count = 1,
                                     .series = { { "series", SVG_BLUE, SVG_DOT, points, x, y } } };
        char *page = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&page, &size);
        chart_lines(file, &chart);
        fclose(file);
        int commas = 0;
        for (const char *line = strstr(page, "<polyline"); line != NULL; line = strstr(line + 1, "<polyline"))
            for (const char *c = line; *c != '/'; c++) commas += *c == ',';
        const int pieces = count_of(page, "<polyline");
        if (commas != points + pieces - 1) FAIL(t, "%d points in %d pieces for %d", commas, pieces, points);
        CHECK(t, strstr(page, "nan") == NULL && strstr(page, "inf") == NULL);
        free(page);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(linear_axes_hold_the_data), TEST(logarithmic_axes_hold_the_data),
        TEST(positions_are_on_the_page), TEST(tick_texts_are_short),
        TEST(texts_are_escaped),         TEST(every_point_is_drawn),
    };
    return TEST_MAIN(argc, argv, cases);
}
