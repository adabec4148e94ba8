/* Drawing into an SVG file: shapes, text, and how wide a text is.
 *
 * Coordinates are pixels, y grows downwards.  `paint` is a list of SVG attributes such as "fill='#fff'"; texts are
 * escaped, paints are not.  Plain attributes instead of style sheets, so that every viewer and converter draws the
 * same. */
#ifndef CLI_SVG_H
#define CLI_SVG_H

#include <stdio.h>

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

struct svg_font {
    double size;                          /* pixels */
    enum svg_anchor anchor;
    const char *colour;                   /* NULL: nearly black */
    int bold;
    double turn;                          /* degrees, clockwise, around the text's own position */
};

/* A page with a white background; title and description are what screen readers and tooltips say. */
void svg_begin(FILE *file, double width, double height, const char *title, const char *description);
void svg_end(FILE *file);

void svg_line(FILE *file, double x1, double y1, double x2, double y2, const char *paint);
void svg_rectangle(FILE *file, double x, double y, double width, double height, const char *paint);
void svg_circle(FILE *file, double x, double y, double radius, const char *paint);
void svg_polyline(FILE *file, const double *x, const double *y, int count, const char *paint);
void svg_polygon(FILE *file, const double *x, const double *y, int count, const char *paint);

/* The baseline starts (or is centred, or ends) at x, y. */
void svg_text(FILE *file, double x, double y, const struct svg_font *font, const char *text);
__attribute__((format(printf, 5, 6))) void svg_textf(FILE *file, double x, double y, const struct svg_font *font,
                                                     const char *format, ...);

/* About how many pixels a text takes: layout needs it, and the fonts of the viewer are not known. */
double svg_text_width(const char *text, double size, int bold);

/* A title and a line of explanation below it, at the top of a page; both shrink until they fit its width. */
void svg_heading(FILE *file, double width, const char *title, const char *subtitle);

/* A sign for one point of a series; shapes differ so that colour is not needed to tell them apart. */
enum svg_marker { SVG_DOT, SVG_SQUARE, SVG_DIAMOND, SVG_TRIANGLE, SVG_MARKERS };
void svg_mark(FILE *file, enum svg_marker marker, double x, double y, double radius, const char *colour);

/* The colours of Okabe and Ito ("Color Universal Design", 2008), which colour-blind readers can tell apart. */
#define SVG_BLUE       "#0072B2"
#define SVG_ORANGE     "#E69F00"
#define SVG_GREEN      "#009E73"
#define SVG_VERMILION  "#D55E00"
#define SVG_PURPLE     "#CC79A7"
#define SVG_SKY        "#56B4E9"
#define SVG_INK        "#1f2328"
#define SVG_GREY       "#59636e"
#define SVG_FAINT      "#e4e7eb"
#define SVG_AXIS       "#8c959f"

#endif
