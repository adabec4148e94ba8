/* Drawing into an SVG file, see svg.h. */
#include "svg.h"
#include "cli/io/mask.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define FONTS \
    "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', Arial, sans-serif"

/* Text between tags.  File names reach titles: what XML 1.0 has no place for (control characters, malformed UTF-8)
 * becomes a question mark. */
static void put_escaped(FILE *file, const char *text)
{
    for (int bytes; *text != '\0'; text += bytes) {
        const int32_t c = mask_character(text, &bytes);
        if (c == '&') fputs("&amp;", file);
        else if (c == '<') fputs("&lt;", file);
        else if (c == '>') fputs("&gt;", file);
        else if (c < 0x20 || c == 0x7f || c == 0xfffe || c == 0xffff) fputs(bytes == 3 ? "???" : "?", file);
        else fwrite(text, 1, (size_t)bytes, file);
    }
}

/* Two decimals are finer than any screen; zeros at the end and "-0" only make the file longer. */
static void put_number(FILE *file, const char *name, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.2f", isfinite(value) && fabs(value) < 1e9 ? value : 0);
    char *end = text + strlen(text);
    while (end[-1] == '0') *--end = '\0';
    if (end[-1] == '.') *--end = '\0';
    fprintf(file, " %s=\"%s\"", name, strcmp(text, "-0") == 0 ? "0" : text);
}

void svg_begin(FILE *file, double width, double height, const char *title, const char *description)
{
    fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"");
    put_number(file, "width", width);
    put_number(file, "height", height);
    fprintf(file, " viewBox=\"0 0 %.0f %.0f\" role=\"img\" font-family=\"%s\">\n<title>", width, height, FONTS);
    put_escaped(file, title);
    fprintf(file, "</title>\n<desc>");
    put_escaped(file, description);
    fprintf(file, "</desc>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n");
}

void svg_end(FILE *file) { fprintf(file, "</svg>\n"); }

void svg_line(FILE *file, double x1, double y1, double x2, double y2, const char *paint)
{
    fprintf(file, "<line");
    put_number(file, "x1", x1);
    put_number(file, "y1", y1);
    put_number(file, "x2", x2);
    put_number(file, "y2", y2);
    fprintf(file, " %s/>\n", paint);
}

void svg_rectangle(FILE *file, double x, double y, double width, double height, const char *paint)
{
    fprintf(file, "<rect");
    put_number(file, "x", x);
    put_number(file, "y", y);
    put_number(file, "width", fmax(width, 0));
    put_number(file, "height", fmax(height, 0));
    fprintf(file, " %s/>\n", paint);
}

void svg_circle(FILE *file, double x, double y, double radius, const char *paint)
{
    fprintf(file, "<circle");
    put_number(file, "cx", x);
    put_number(file, "cy", y);
    put_number(file, "r", radius);
    fprintf(file, " %s/>\n", paint);
}

static void put_points(FILE *file, const char *tag, const double *x, const double *y, int count, const char *paint)
{
    fprintf(file, "<%s points=\"", tag);
    for (int i = 0; i < count; i++) fprintf(file, "%s%.2f,%.2f", i == 0 ? "" : " ", x[i], y[i]);
    fprintf(file, "\" %s/>\n", paint);
}

void svg_polyline(FILE *file, const double *x, const double *y, int count, const char *paint)
{
    put_points(file, "polyline", x, y, count, paint);
}

void svg_polygon(FILE *file, const double *x, const double *y, int count, const char *paint)
{
    put_points(file, "polygon", x, y, count, paint);
}

void svg_text(FILE *file, double x, double y, const struct svg_font *font, const char *text)
{
    static const char *const anchors[] = { "start", "middle", "end" };
    fprintf(file, "<text");
    put_number(file, "x", x);
    put_number(file, "y", y);
    put_number(file, "font-size", font->size);
    fprintf(file, " fill=\"%s\"", font->colour != NULL ? font->colour : SVG_INK);
    if (font->anchor != SVG_START) fprintf(file, " text-anchor=\"%s\"", anchors[font->anchor]);
    if (font->bold) fprintf(file, " font-weight=\"600\"");
    if (font->turn != 0) fprintf(file, " transform=\"rotate(%.0f %.2f %.2f)\"", font->turn, x, y);
    fputc('>', file);
    put_escaped(file, text);
    fprintf(file, "</text>\n");
}

void svg_textf(FILE *file, double x, double y, const struct svg_font *font, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    svg_text(file, x, y, font, text);
}

void svg_heading(FILE *file, double width, const char *title, const char *subtitle)
{
    const double room = width - 64, title_width = svg_text_width(title, 21, 1),
                 subtitle_width = svg_text_width(subtitle, 14, 0);
    svg_text(file, 32, 44, &(struct svg_font) { .size = 21 * fmin(1, room / title_width), .bold = 1 }, title);
    svg_text(file, 32, 69, &(struct svg_font) { .size = 14 * fmin(1, room / subtitle_width),
                                                .colour = SVG_GREY }, subtitle);
}

/* Widths in hundredths of the font size, a little wider than Arial and DejaVu Sans have on average, so that boxes sized
 * with them hold the text. */
static int letter_width(unsigned char c)
{
    if (strchr("iljI.,:;'|!", c) != NULL) return 32;
    if (strchr("ftr()[]/ -\"", c) != NULL) return 40;
    if (strchr("mwMW%@", c) != NULL) return 92;
    if (c >= 'A' && c <= 'Z') return 70;
    return 60;
}

double svg_text_width(const char *text, double size, int bold)
{
    int width = 0;
    for (const char *c = text; *c != '\0'; c++)
        /* one per UTF-8 character */
        if (((unsigned char)*c & 0xc0) != 0x80) width += letter_width((unsigned char)*c);
    return width / 100.0 * size * (bold ? 1.06 : 1);
}

void svg_mark(FILE *file, enum svg_marker marker, double x, double y, double radius, const char *colour)
{
    char paint[128];
    snprintf(paint, sizeof paint, "fill=\"%s\" stroke=\"#ffffff\" stroke-width=\"1.2\"", colour);
    const double r = radius;
    switch (marker) {
    case SVG_SQUARE: svg_rectangle(file, x - 0.88 * r, y - 0.88 * r, 1.76 * r, 1.76 * r, paint); break;
    case SVG_DIAMOND:
        svg_polygon(file, (const double[]){ x, x + 1.25 * r, x, x - 1.25 * r },
                    (const double[]){ y - 1.25 * r, y, y + 1.25 * r, y }, 4, paint);
        break;
    case SVG_TRIANGLE:
        svg_polygon(file, (const double[]){ x, x + 1.15 * r, x - 1.15 * r },
                    (const double[]){ y - 1.25 * r, y + 0.9 * r, y + 0.9 * r }, 3, paint);
        break;
    default: svg_circle(file, x, y, r, paint);
    }
}
