/* Layouts and shapes for the tests of what fits which copy: buffers of scales that simulators are given. */
#ifndef LAYOUT_FIT_CASES_H
#define LAYOUT_FIT_CASES_H

#include "shapes.h"
#include "test.h"

#include "blockscale/scale_copy.h"

#include <stdlib.h>

enum { FIT_LAYOUTS = VARIANTS + 6, FIT_BUFFER = 40960 };

static inline bsm_scale_layout fit_layout(int number, int64_t columns)
{
    static const int64_t more[][3] = { { 0, 128, 4 }, { 0, 128, 16 }, { 0, 2, 4 }, { 0, 4, 4 }, { 0, 256, 4 },
                                       { 48, 0, 0 } };
    if (number < VARIANTS) return variant(number, columns);
    const int64_t *x = more[number - VARIANTS];
    if (x[0] > 0) return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = x[0] };
    return (bsm_scale_layout){ .kind = BSM_LAYOUT_TILES, .tile_rows = x[1], .tile_columns = x[2] };
}

/* One layout of one shape: numbers at random where scales lie, and something else everywhere else. */
struct fit_case {
    bsm_scale_layout layout;
    int64_t rows, columns, padded_rows, padded_columns;
    unsigned char code[512][32];          /* of (row, column), padding included */
    unsigned char buffer[FIT_BUFFER];
    char name[96];
};

static inline int64_t fit_offset(const struct fit_case *c, int64_t row, int64_t column)
{
    int64_t offset = -1;
    (void)bsm_scale_offset(&c->layout, c->rows, c->columns, row, column, &offset);
    return offset;
}

/* low, high: of the numbers. */
static inline void fit_case_make(struct test *t, struct fit_case *c, int number, int64_t rows, int64_t columns, int low,
                                 int high)
{
    c->layout = fit_layout(number, columns);
    c->rows = rows, c->columns = columns;
    if (bsm_scale_padded(&c->layout, rows, columns, &c->padded_rows, &c->padded_columns) != BSM_OK)
        FAIL(t, "%s", bsm_last_error());
    if (c->padded_rows > 512 || c->padded_columns > 100 || (c->padded_columns > 32 && c->layout.tile_columns != 100))
        FAIL(t, "a case of %d rows x %d columns", (int)c->padded_rows, (int)c->padded_columns);
    snprintf(c->name, sizeof c->name, "%s pitch %d tiles %dx%d, %d rows x %d columns",
             bsm_layout_name((int)c->layout.kind), (int)c->layout.pitch, (int)c->layout.tile_rows,
             (int)c->layout.tile_columns, (int)rows, (int)columns);
    for (int i = 0; i < FIT_BUFFER; i++) c->buffer[i] = (unsigned char)rnd(t);
    for (int64_t r = 0; r < c->padded_rows; r++)
        for (int64_t s = 0; s < c->padded_columns && s < 32; s++) {
            const unsigned char code = (unsigned char)rnd_between(t, low, high);
            const int64_t at = fit_offset(c, r, s);
            if (at < 0 || at >= FIT_BUFFER) FAIL(t, "%s: (%d, %d) lies at %d", c->name, (int)r, (int)s, (int)at);
            else c->code[r][s] = c->buffer[at] = code;
        }
}

static inline bsm_scale_fit fit_of(struct test *t, const struct fit_case *c, bsm_scale_copy copy)
{
    bsm_scale_fit fit = { .struct_size = sizeof fit };
    if (bsm_scale_layout_fits(&c->layout, c->rows, c->columns, copy, &fit) != BSM_OK)
        FAIL(t, "%s: %s", c->name, bsm_last_error());
    return fit;
}

/* Every layout at every shape. */
static inline void fit_each(struct test *t, int low, int high, int *fits, int *does_not,
                            bool (*check)(struct test *t, const struct fit_case *c))
{
    static const int64_t shapes[][2] = { { 256, 8 }, { 130, 6 }, { 40, 16 } };
    struct fit_case *c = malloc(sizeof *c);
    if (c == NULL) abort();
    for (int number = 0; number < FIT_LAYOUTS; number++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            fit_case_make(t, c, number, shapes[i][0], shapes[i][1], low, high);
            if (check(t, c)) ++*fits;
            else ++*does_not;
        }
    free(c);
}

#endif
