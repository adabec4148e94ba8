/* The layouts with the parameters that tests give them. */
#ifndef LAYOUT_SHAPES_H
#define LAYOUT_SHAPES_H

#include "layout/layout.h"

/* An initializer: KIND(AITER), KIND(LINEAR, .pitch = 5). */
#define KIND(...) { .kind = BSM_LAYOUT_##__VA_ARGS__ }

enum { NO_LAYOUT = 4, VARIANTS = BSM_LAYOUT_COUNT + 6 };   /* a number between layouts that is none */

/* Every layout once with plain parameters (in the place of the number that is none, linear rows padded to 16 bytes),
 * then pitched ones and further tiles.  Pitches depend on the columns. */
static inline bsm_scale_layout variant(int number, int64_t columns)
{
    const int64_t blocks = (columns + 3) / 4;
    switch (number) {
    case NO_LAYOUT: return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = BSM_PITCH_PADDED_16 };
    case BSM_LAYOUT_TILES: return (bsm_scale_layout){ .kind = BSM_LAYOUT_TILES, .tile_rows = 32, .tile_columns = 8 };
    case BSM_LAYOUT_COUNT: return (bsm_scale_layout){ .kind = BSM_LAYOUT_LINEAR, .pitch = columns + 7 };
    case BSM_LAYOUT_COUNT + 1: return (bsm_scale_layout){ .kind = BSM_LAYOUT_TILES, .tile_rows = 3, .tile_columns = 5 };
    case BSM_LAYOUT_COUNT + 2: return (bsm_scale_layout){ .kind = BSM_LAYOUT_TILES, .tile_rows = 200,
                                                          .tile_columns = 1 };
    case BSM_LAYOUT_COUNT + 3: return (bsm_scale_layout){ .kind = BSM_LAYOUT_TILES, .tile_rows = 1,
                                                          .tile_columns = 100 };
    case BSM_LAYOUT_COUNT + 4: return (bsm_scale_layout){ .kind = BSM_LAYOUT_GGUF_MXFP4, .pitch = columns * 17 + 17 };
    case BSM_LAYOUT_COUNT + 5: return (bsm_scale_layout){ .kind = BSM_LAYOUT_GGUF_NVFP4, .pitch = blocks * 36 + 5 };
    default: return (bsm_scale_layout){ .kind = (bsm_layout)number };
    }
}

#endif
