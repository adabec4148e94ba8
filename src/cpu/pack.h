/* Operands into panels: decoded, and in the order in which the register tiles read them. */
#ifndef BSMI_PACK_H
#define BSMI_PACK_H

#include "tile.h"

enum {
    BSMI_CHUNK = 256,                     /* columns of K that are packed at a time: a multiple of every block */
    BSMI_SHORTEST_BLOCK = 16,
    BSMI_CHUNK_BLOCKS = BSMI_CHUNK / BSMI_SHORTEST_BLOCK,
};

/* The part of one operand that goes into panels: rows [first, first + count), columns [k, k + length), length <=
 * BSMI_CHUNK, k a multiple of BSMI_CHUNK / 2.  Rows are virtual columns of the product where split != 0. */
struct bsmi_part {
    struct bsmi_operand operand;
    int64_t batch, first, count, split, k, length;
    const int16_t *exponents;             /* of its rows (row_exponents.h), for panels of bf16; NULL: 0 */
};

/* Exponents of the scales of a part: every finite nonzero scale is an integer below 2^8 times a power of two, at least
 * 2^lowest and below 2^(highest + 1).  Unscaled: 0 and 0.  Without such scales highest < lowest. */
struct bsmi_scale_range { int lowest, highest; };
struct bsmi_scale_range bsmi_part_scale_range(const struct bsmi_part *part);

/* true if element * scale is exact in fp32 for every element of a part with these scales. */
bool bsmi_scaled_elements_fit(const struct bsmi_operand *operand, struct bsmi_scale_range range);

/* Panels of `width` rows: element (r, k) of the part lies at panel[r / width * length * width + k * width + r % width].
 * Rows behind the part's last, up to a whole panel, are something that may be computed with. */
void bsmi_pack_elements(const struct bsmi_part *part, int width, float *panels);          /* without scales */
/* times scale, if that fits */
void bsmi_pack_scaled(const struct bsmi_part *part, int width, float *panels);
/* Times scale, exact.  Returns an exponent e such that every finite packed number is a multiple of 2^e. */
int bsmi_pack_scaled_wide(const struct bsmi_part *part, int width, double *panels);

/* The same of scales: one for each exact block of `exact_block` columns (a divisor of the block), ceil(length /
 * exact_block) of them. */
void bsmi_pack_scales(const struct bsmi_part *part, int exact_block, int width, float *panels);

#endif
