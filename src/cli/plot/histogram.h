/* How often each scale of blocks occurs. */
#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include "chart.h"
#include "cli/cli.h"

/* A table with bars; histogram has 256 counts, by code. */
void histogram_print(bsm_scale scale, const int64_t *histogram);

/* A page with one panel below the other. */
struct histogram_panel { const char *name; bsm_scale scale; const int64_t *histogram; };
void histogram_draw(FILE *file, const char *title, const char *subtitle, const struct histogram_panel *panels,
                    int count);

#endif
