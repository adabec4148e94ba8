/* From S to D: scaling, C, bias, activation, gating, and storing. */
#ifndef BSMI_EPILOGUE_H
#define BSMI_EPILOGUE_H

#include "product/product.h"
#include "epilogue/store.h"

/* What an epilogue needs besides the product, read once before the tasks start. */
struct bsmi_epilogue {
    const struct bsmi_product *product;
    bool reads_c;
    float tensor_scale_a, tensor_scale_b;
    struct bsmi_destination d;
};
/* features: BSM_CPU_ bits that may be used. */
void bsmi_epilogue_make(const struct bsmi_product *product, uint32_t features, struct bsmi_epilogue *epilogue);

/* Where a tile lies.  row counts the rows of D, over all groups; columns are virtual, as in tile.h, and column is a
 * multiple of 128.  matrix numbers the batch or the group. */
struct bsmi_epilogue_tile {
    int64_t matrix, row, rows, column, columns;
    const float *sums;
    int64_t sums_pitch;
};

/* Scratch memory for tiles of at most `columns` columns. */
size_t bsmi_epilogue_scratch_bytes(int64_t columns);

/* Writes the tile's part of D.  Default floating-point mode.  amax_bits: raised to the largest |t|, as the bits of a
 * float without its sign, so that NaN is larger than everything. */
void bsmi_epilogue_run(const struct bsmi_epilogue *epilogue, const struct bsmi_epilogue_tile *tile, void *scratch,
                       uint32_t *amax_bits);

#endif
