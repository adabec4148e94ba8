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

enum {
    BSMI_PANEL_ROWS = 16, BSMI_PANEL_COLUMNS = 128, BSMI_PANEL_SLICES = BSMI_PANEL_COLUMNS / 32,
    BSMI_PANEL_CODES = BSMI_PANEL_ROWS * BSMI_PANEL_COLUMNS,
    BSMI_PANEL_SCALE_OUTSIDE = 0, BSMI_PANEL_SPECIAL = 96, BSMI_PANEL_LEAST_SPECIAL = 192,
    BSMI_PANEL_AHEAD = 8192,              /* bytes ahead of what is read that are asked for */
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

/* Asks for what lies ahead of `bytes` bytes. */
__attribute__((always_inline)) static inline void bsmi_ask_ahead(const void *panel, int bytes)
{
#pragma GCC unroll 64
    for (int i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)panel + BSMI_PANEL_AHEAD + (uintptr_t)i), 0, 2);
}

#endif
