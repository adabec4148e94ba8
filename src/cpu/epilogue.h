/* From S to D: scaling, C, bias, activation, gating, and storing. */
#ifndef BSMI_EPILOGUE_H
#define BSMI_EPILOGUE_H

#include "product/product.h"
#include "quantize/block/block.h"

/* What an epilogue needs besides the product, read once before the tasks start. */
struct bsmi_epilogue {
    const struct bsmi_product *product;
    bool reads_c;
    float tensor_scale_a, tensor_scale_b, tensor_scale_d;
    struct bsmi_block_quantizer quantizer;           /* of a block format D */
};
void bsmi_epilogue_make(const struct bsmi_product *product, struct bsmi_epilogue *epilogue);

/* Where a tile lies.  row counts the rows of D, over all groups; columns are virtual, as in kernels.h, and column is a
 * multiple of 128.  matrix numbers the batch or the group. */
struct bsmi_epilogue_tile {
    int64_t matrix, row, rows, column, columns;
    const float *sums;
    int64_t sums_pitch;
};

/* Scratch memory for tiles of at most `columns` columns. */
size_t bsmi_epilogue_scratch_bytes(int64_t columns);

/* Writes the tile's part of D.  Default floating-point mode.  amax_bits: raised to the largest |t|, as the bits of a float
 * without its sign, so that NaN is larger than everything. */
void bsmi_epilogue_run(const struct bsmi_epilogue *epilogue, const struct bsmi_epilogue_tile *tile, void *scratch,
                       uint32_t *amax_bits);

/* activation.c */
void bsmi_activate(bsm_activation activation, float *t, int64_t count);
/* t[j] = act(t[2j]) * t[2j + 1], for pairs of neighbours. */
void bsmi_activate_gated(bsm_activation activation, float *t, int64_t pairs);

/* store.c: values of row `row` of matrix `batch` of D from column `column`, a multiple of 64. */
void bsmi_store_row(const struct bsmi_epilogue *epilogue, int64_t batch, int64_t row, int64_t column, int64_t count,
                    const float *t);

/* The same of factor * sums, for a D that keeps fp32 numbers as they are.  A large D's lines are written past the caches (stream.h). */
bool bsmi_stores_fp32(const struct bsmi_matrix *d);
bool bsmi_is_stored_past_caches(const struct bsmi_matrix *d);
void bsmi_store_scaled(const struct bsmi_matrix *d, int64_t batch, int64_t row, int64_t column, int64_t count, float factor,
                       const float *sums);

#endif
