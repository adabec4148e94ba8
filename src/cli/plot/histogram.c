/* How often each scale occurs: as text, and as a picture. */
#include "histogram.h"

#include <inttypes.h>
#include <string.h>

/* A bar of the histogram: the codes [first, first + count). */
struct bar {
    int first, count;
    int64_t blocks;
};

static bool is_nan(bsm_scale scale, int code) { return scale == BSM_E8M0 ? code == 255 : code % 128 == 127; }

/* e8m0 has a bar per code; ue4m3 one per exponent, since its 127 codes would fill pages.  NaN has its own. */
static int bar_width(bsm_scale scale, int first)
{
    if (scale != BSM_UE4M3 || is_nan(scale, first)) return 1;
    return is_nan(scale, first + 7) ? 7 : 8;
}

static int make_bars(bsm_scale scale, const int64_t *histogram, struct bar *bars)
{
    int count = 0;
    for (int first = 0, width; first < 256; first += width) {
        width = bar_width(scale, first);
        struct bar bar = { first, width, 0 };
        for (int i = 0; i < width; i++) bar.blocks += histogram[first + i];
        if (bar.blocks > 0) bars[count++] = bar;
    }
    return count;
}

static void bar_label(bsm_scale scale, const struct bar *bar, char *text, size_t room)
{
    const double low = (double)bsm_scale_decode(scale, (uint8_t)bar->first);
    const double high = (double)bsm_scale_decode(scale, (uint8_t)(bar->first + bar->count - 1));
    if (is_nan(scale, bar->first)) snprintf(text, room, "NaN");
    else if (scale == BSM_E8M0) snprintf(text, room, "2^%d", bar->first - 127);
    else snprintf(text, room, "%g .. %g", low, high);
}

void histogram_print(bsm_scale scale, const int64_t *histogram)
{
    enum { BAR_WIDTH = 40 };
    static const struct cli_column columns[] = {
        { "code", CLI_LEFT }, { "scale", CLI_RIGHT }, { "blocks", CLI_RIGHT }, { "share", CLI_LEFT }
    };
    struct bar bars[256];
    const int count = make_bars(scale, histogram, bars);
    int64_t most = 1;
    for (int i = 0; i < count; i++)
        if (bars[i].blocks > most) most = bars[i].blocks;
    struct cli_table *table = cli_table_new(columns, 4);
    for (int i = 0; i < count; i++) {
        char label[64], bar[3 * BAR_WIDTH + 1] = "";
        bar_label(scale, &bars[i], label, sizeof label);
        const int length = 1 + (int)((double)bars[i].blocks / (double)most * (BAR_WIDTH - 1)); /* one block is seen */
        /* a full block, U+2588 */
        for (int j = 0; j < length; j++) memcpy(bar + 3 * j, "\xe2\x96\x88", 4);
        if (bars[i].count == 1) cli_table_cell(table, "0x%02x", bars[i].first);
        else cli_table_cell(table, "0x%02x-0x%02x", bars[i].first, bars[i].first + bars[i].count - 1);
        cli_table_cell(table, "%s", label);
        cli_table_cell(table, "%" PRId64, bars[i].blocks);
        cli_table_cell(table, "%s", bar);
    }
    printf("\nscales:\n");
    cli_table_print(table, stdout);
    cli_table_free(table);
}

/* Pictures --------------------------------------------------------------------------------------------------------- */

enum { WIDTH = 960, PANEL = 300, TOP = 92, LEFT = 72, RIGHT = 24, AXIS = 44 };

/* From the left, where bars of codes that are missing have a place too. */
static int bar_place(bsm_scale scale, const struct bar *bar)
{
    return scale == BSM_UE4M3 ? bar->first / 8 + is_nan(scale, bar->first) : bar->first;
}

static void draw_panel(FILE *file, double top, const struct histogram_panel *panel)
{
    static const struct svg_font label = { .size = 12, .anchor = SVG_MIDDLE, .colour = SVG_GREY },
                                 name = { .size = 14, .bold = 1 };
    struct bar bars[256];
    const int count = make_bars(panel->scale, panel->histogram, bars);
    const int first = count > 0 ? bar_place(panel->scale, &bars[0]) : 0;
    const int places = count > 0 ? bar_place(panel->scale, &bars[count - 1]) - first + 1 : 1;
    const double step = (double)(WIDTH - LEFT - RIGHT) / places, bottom = top + PANEL - AXIS;
    struct chart_axis axis = { .at_low = bottom, .at_high = top + 24 };
    int64_t most = 1;
    for (int i = 0; i < count; i++)
        if (bars[i].blocks > most) most = bars[i].blocks;
    chart_axis_round(&axis, 0, (double)most, 5);
    chart_draw_y(file, &axis, LEFT, WIDTH - RIGHT, "blocks");
    svg_text(file, LEFT, top + 12, &name, panel->name);
    for (int i = 0; i < count; i++) {
        char text[64];
        const int place = bar_place(panel->scale, &bars[i]) - first;
        const double left = LEFT + place * step, high = chart_position(&axis, (double)bars[i].blocks);
        svg_rectangle(file, left + 0.1 * step, high, 0.8 * step, bottom - high, "fill='" SVG_BLUE "'");
        bar_label(panel->scale, &bars[i], text, sizeof text);
        if (places <= 24 || place % (places / 12) == 0) svg_text(file, left + step / 2, bottom + 18, &label, text);
    }
}

void histogram_draw(FILE *file, const char *title, const char *subtitle, const struct histogram_panel *panels,
                    int count)
{
    svg_begin(file, WIDTH, TOP + PANEL * count, title, subtitle);
    svg_heading(file, WIDTH, title, subtitle);
    for (int i = 0; i < count; i++) draw_panel(file, TOP + PANEL * i, &panels[i]);
    svg_end(file);
}
