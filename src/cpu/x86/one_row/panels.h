/* B prepacked for one row of A: 16 of its rows side by side, so that a vector has the same columns of K of each, and
 * the codes of 128 columns of K with their scales behind them.  A strip of 16 rows is one stream of memory, in the
 * order in which it is read, which is all that a CPU asks for well.
 *
 * Codes: words of 32 bits, [columns of K of a word][row].  A word has eight codes of 4 bits, two a byte, the even one
 * low, or four of 8 bits, with column 3, 2, 1, 0 of the four in its bytes 0, 1, 2, 3: so columns 0 and 2, and 1 and 3,
 * are the halves of a word, the first one above, which vdpbf16ps adds first.
 *
 * Scales: e8m0: [row][block], codes of blocks that need no exponent of their rows (row_exponents.h).  Of a block of
 * zeros alone the code is that of 1.  BSMI_PANEL_SCALE_OUTSIDE: the row has an exponent, falls back or is NaN, and B is
 * read as it is stored.  BSMI_PANEL_SPECIAL more: a block of 8-bit floats that are not all normal numbers.  e4m3:
 * [block][row], without signs. */
#ifndef BSMI_ONE_ROW_PANELS_H
#define BSMI_ONE_ROW_PANELS_H

#include "cpu/pack.h"
#include "cpu/x86/upcoming.h"

enum {
    BSMI_PANEL_ROWS = 16, BSMI_PANEL_COLUMNS = 128, BSMI_PANEL_SLICES = BSMI_PANEL_COLUMNS / 32,
    BSMI_PANEL_CODES = BSMI_PANEL_ROWS * BSMI_PANEL_COLUMNS,
    BSMI_PANEL_SCALE_OUTSIDE = 0, BSMI_PANEL_SPECIAL = 96, BSMI_PANEL_LEAST_SPECIAL = 192,
    BSMI_PANEL_FAR = 8192, BSMI_PANEL_NEAR = 1024,    /* bytes ahead that are asked for */
};

struct bsmi_fp4_panel { uint8_t codes[BSMI_PANEL_CODES / 2], scales[BSMI_PANEL_ROWS][BSMI_PANEL_SLICES]; };
struct bsmi_fp8_panel { uint8_t codes[BSMI_PANEL_CODES], scales[BSMI_PANEL_ROWS][BSMI_PANEL_SLICES]; };
struct bsmi_nvfp4_panel { uint8_t codes[BSMI_PANEL_CODES / 2], scales[2 * BSMI_PANEL_SLICES][BSMI_PANEL_ROWS]; };

/* The panel of a column of the tile, a multiple of 16 columns of the product on, and a k, a multiple of 128; NULL: B is
 * not prepacked. */
static inline const void *bsmi_panel_of(const struct bsmi_tile *tile, size_t bytes, int64_t column, int64_t k)
{
    const int64_t panels = (tile->k + BSMI_PANEL_COLUMNS - 1) / BSMI_PANEL_COLUMNS;
    if (tile->prepacked_b == NULL) return NULL;
    return tile->prepacked_b
           + (size_t)((tile->column + column) / BSMI_PANEL_ROWS * panels + k / BSMI_PANEL_COLUMNS) * bytes;
}

/* What a kernel reads first of B: the tile's first strip of `rows` rows, as panels or as it is stored. */
static inline struct bsmi_upcoming bsmi_first_of_row(const struct bsmi_tile *tile, size_t panel_bytes, int64_t rows,
                                                     int64_t k, int64_t length)
{
    const void *const panel = bsmi_panel_of(tile, panel_bytes, 0, k);
    if (panel == NULL) return bsmi_find_upcoming(tile, 0, rows, k, length);
    return bsmi_upcoming_stretch(panel, (length + BSMI_PANEL_COLUMNS - 1) / BSMI_PANEL_COLUMNS * (int64_t)panel_bytes);
}

/* Asks for lines of the stream that is read: one far ahead into the second-level cache, where memory has the time that
 * it takes, one near into the first, so that none of the places for lines under way is held by a load that waits.  A
 * line at a time: more at once take those places, and what comes behind them waits too. */
__attribute__((always_inline)) static inline void bsmi_ask_ahead(const void *line)
{
    __builtin_prefetch((const void *)((uintptr_t)line + BSMI_PANEL_FAR), 0, 2);
    __builtin_prefetch((const void *)((uintptr_t)line + BSMI_PANEL_NEAR), 0, 3);
}

#endif
