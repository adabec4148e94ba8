/* Rows as bf16 numbers: number * 2^-exponent of the row is exact in bf16, and products and sums of such rows stay
 * within fp32's normal numbers.
 *
 * A row's exponent is 0 if its nonzero numbers lie within [2^-40, 2^41), or may: the range is told from the scales of
 * the blocks that are not all zeros, and from the range of the element.  Else it is the middle of the row's range, if
 * that spans at most 80 binades.  Rows that span more are fallback rows: their sums are those of the portable order.
 * So are rows of bf16 that hold a subnormal number, which the units take for zero. */
#ifndef BSMI_ROW_EXPONENTS_H
#define BSMI_ROW_EXPONENTS_H

#include "tile.h"

enum { BSMI_FALLBACK_ROW = INT16_MIN };

/* bf16 numbers that are multiplied for one of the element: 2 for fp16, 1 for the others, 0 where bf16 will not do.
 * The two terms of fp16 have its sign, and neither of them is zero unless the number is, so that an infinity of the
 * other operand stays one: the number cut off to eight significant bits and the rest; where there is no rest, two
 * halves. */
static inline int bsmi_bf16_terms(bsm_element element) { return element == BSM_FP32 ? 0 : element == BSM_FP16 ? 2 : 1; }

/* Of rows [first, first + count) of an operand, virtual columns where split != 0; the range is that of the row's
 * first k columns, which are all that the product sums over.
 * beside_bf16: the other operand is bf16, whose numbers are of any size: a row with an exponent of its own would take
 * products out of fp32's range that lie within, and is a fallback row. */
void bsmi_row_exponents(const struct bsmi_operand *operand, bool beside_bf16, int64_t batch, int64_t first,
                        int64_t count, int64_t split, int64_t k, int16_t *exponents);

/* e8m0 codes with which no number of a block leaves [2^-40, 2^41), least and most. */
struct bsmi_scale_bounds { uint8_t least, most; };
struct bsmi_scale_bounds bsmi_scale_bounds(bsm_element element);

/* Block s of a row, of which the first k columns count, has elements that are zeros and no others. */
bool bsmi_block_is_zero(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t s, int64_t k);

/* Those of a tile's rows of A and of its columns; NULL where all of them are 0. */
struct bsmi_bf16_exponents { const int16_t *a, *b; };

/* Those of rows from `first` on. */
static inline const int16_t *bsmi_exponents_from(const int16_t *exponents, int64_t first)
{
    return exponents == NULL ? NULL : exponents + first;
}

#endif
