/* Elements of at most 8 bits by way of fp16: every element but int8 is an fp16 number times a power of two, and its
 * code's bits are that number's, moved.  vcvtph2ps then gives fp32, subnormal numbers included, without the penalty
 * that fp32 subnormals have. */
#ifndef BSMI_HALVES_H
#define BSMI_HALVES_H

#include "cpu/code_rows.h"
#include "cpu/microkernel.h"

/* Value = fp16 number * factor; the fp16 number is a multiple of 2^-17. */
static const float bsmi_half_factors[BSM_ELEMENT_COUNT] = {
    [BSM_E4M3] = 0x1p8F,  [BSM_E5M2] = 1, [BSM_E3M2] = 0x1p12F,
    [BSM_E2M3] = 0x1p14F, [BSM_E2M1] = 1, [BSM_INT8] = 0x1p-6F
};

/* The code's exponent ends one bit lower than the upper byte of an fp16 number has it: 3 bits of fraction. */
static inline bool bsmi_half_is_moved(bsm_element element) { return element == BSM_E4M3 || element == BSM_E2M3; }

/* With e8m0 scales of at most 2^111 scale * factor stays within fp32, and element times scale, below 2^16 * 2^111
 * (e5m2), too; it is a multiple of 2^-143 and has at most 12 bits, hence exact. */
enum { BSMI_MOST_SCALE_OF_HALVES = 111 + 127 };

static inline bool bsmi_halves_fit(const struct bsmi_part *a, const struct bsmi_part *b)
{
    return bsmi_part_e8m0_at_most(a, BSMI_MOST_SCALE_OF_HALVES) && bsmi_part_e8m0_at_most(b, BSMI_MOST_SCALE_OF_HALVES);
}

/* Columns of K that share a factor; elements of more than 8 bits have no block and are not packed by way of fp16. */
static inline int64_t bsmi_factor_block(const struct bsmi_part *part)
{
    const int block = part->operand.matrix->block;
    return block == 0 ? BSMI_CHUNK : block;
}

/* Its logarithm: packers count blocks by the vector, which is no time to divide. */
static inline int bsmi_factor_bits(const struct bsmi_part *part)
{
    return __builtin_ctzll((unsigned long long)bsmi_factor_block(part));
}

/* Factors of the part's blocks, [block][row], for `width` rows. */
static inline void bsmi_make_factors(const struct bsmi_part *part, int width, float *factors)
{
    const int64_t block = bsmi_factor_block(part), blocks = bsmi_ceil_div(part->length, block);
    const float factor = bsmi_half_factors[part->operand.matrix->element];
    const bool scaled = part->operand.matrix->block != 0;
    if (scaled) bsmi_scale_rows(part, (int)block, width, factors);
    for (int64_t i = 0; i < blocks * width; i++) factors[i] = scaled ? factors[i] * factor : factor;
}

/* A row of decoded elements times its scales. */
static inline void bsmi_scale_row(const struct bsmi_part *row, float *values)
{
    const int64_t block = row->operand.matrix->block;
    float scales[BSMI_ROW_CHUNK / BSMI_SHORTEST_BLOCK];
    if (block == 0) return;
    bsmi_scale_rows(row, (int)block, 1, scales);
    for (int64_t first = 0; first < row->length; first += block)
        for (int64_t k = first; k < BSMI_MIN(first + block, row->length); k++) values[k] *= scales[first / block];
}

/* Elements of more than 8 bits into a panel of `width` columns, [k][column]. */
static inline void bsmi_pack_wide_columns(const struct bsmi_part *part, int width, float *panel)
{
    for (int64_t k = 0; k < part->length; k += BSMI_CHUNK) {
        struct bsmi_part piece = *part;
        piece.k += k, piece.length = BSMI_MIN(BSMI_CHUNK, part->length - k);
        bsmi_pack_elements(&piece, width, panel + k * width);
    }
}

#endif
