/* The last step: fp32 values into D, rounded once, or quantized in blocks. */
#ifndef BSMI_STORE_H
#define BSMI_STORE_H

#include "quantize/block/block.h"

/* D, and what storing into it needs. */
struct bsmi_destination {
    const struct bsmi_matrix *matrix;
    float tensor_scale;
    bool saturate;                        /* of an unscaled D of 8 bits */
    uint32_t features;                    /* BSM_CPU_ bits that may be used */
    struct bsmi_block_quantizer quantizer;           /* of a block format */
};

/* Values of row `row` of matrix `batch` of D from column `column`, a multiple of 64. */
void bsmi_store_row(const struct bsmi_destination *to, int64_t batch, int64_t row, int64_t column, int64_t count,
                    const float *t);

/* The same of factor * sums, for a D of fp32, bf16 or fp16 without a tensor scale.  A large D's lines are written past
 * the caches (stream.h). */
bool bsmi_stores_reals(const struct bsmi_matrix *d);
bool bsmi_is_stored_past_caches(const struct bsmi_matrix *d);
void bsmi_store_scaled(const struct bsmi_destination *to, int64_t batch, int64_t row, int64_t column, int64_t count,
                       float factor, const float *sums);

#if defined(__x86_64__)
/* The same of `count` numbers from `to` on, with AVX-512. */
void bsmi_store_scaled_avx512(bsm_element element, bool past_caches, int64_t count, float factor, const float *sums,
                              void *to);
#endif

#endif
