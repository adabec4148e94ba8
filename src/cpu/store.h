/* The last step: fp32 values into D, rounded once, or quantized in blocks. */
#ifndef BSMI_STORE_H
#define BSMI_STORE_H

#include "quantize/block/block.h"

/* D, and what storing into it needs. */
struct bsmi_destination {
    const struct bsmi_matrix *matrix;
    float tensor_scale;
    bool saturate;                        /* of an unscaled D of 8 bits */
    struct bsmi_block_quantizer quantizer;           /* of a block format */
};

/* Values of row `row` of matrix `batch` of D from column `column`, a multiple of 64. */
void bsmi_store_row(const struct bsmi_destination *to, int64_t batch, int64_t row, int64_t column, int64_t count,
                    const float *t);

/* The same of factor * sums, for a D that keeps fp32 numbers as they are.  A large D's lines are written past the
 * caches (stream.h). */
bool bsmi_stores_fp32(const struct bsmi_matrix *d);
bool bsmi_is_stored_past_caches(const struct bsmi_matrix *d);
void bsmi_store_scaled(const struct bsmi_matrix *d, int64_t batch, int64_t row, int64_t column, int64_t count,
                       float factor, const float *sums);

#endif
