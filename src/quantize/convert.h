/* Unscaled destinations: element by element. */
#ifndef BSMI_CONVERT_H
#define BSMI_CONVERT_H

#include "matrix/matrix.h"
#include "quantize/block/block.h"

struct bsmi_converter {
    bsm_element element;
    bsm_rounding rounding;
    uint64_t seed;
    bool saturate;                        /* e4m3 and e5m2, unless asked not to; bf16, fp16 and fp32 overflow to
                                             infinity */
    double tensor_scale;
    bool tensor_scale_divides;
    bool wide;                            /* numbers may have more bits than fp32 */
};

/* Converts count (at most BSMI_PIECE) values and stores them at column k of a row.  index: as in
 * bsmi_quantize_block. */
void bsmi_convert_row(const struct bsmi_converter *converter, const struct bsmi_matrix *m, int64_t batch, int64_t row,
                      int64_t k, const double *x, int count, uint64_t index, struct bsmi_block_stats *stats);

#endif
