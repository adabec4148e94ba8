/* A row of A as integers of three digits, for products with rows of e2m1 by dot products of int8.
 *
 * A slice is 32 columns of K, the block of the other operand.  Its numbers are integers, of up to 22 bits, times the
 * slice's unit, wherever that is exact while 12 times the sum of the magnitudes of its even columns is at most 2^24,
 * and that of its odd ones: 12 is the largest e2m1 number, in halves.  Then no sum of some of those products has more
 * than 24 bits, and sums by tdpbf16ps are exact.  Other slices are `hard`: their digits are anything.
 *
 * A group is four slices, a cache line of e2m1 codes: 64 even columns of K in low nibbles, 64 odd ones in high nibbles.
 * A group's digits lie in that order, the least one first. */
#ifndef BSMI_INT8_DIGITS_AVX512_H
#define BSMI_INT8_DIGITS_AVX512_H

#include "row_numbers.h"

enum {
    BSMI_DIGITS = 3, BSMI_GROUP_SLICES = 4, BSMI_GROUP = BSMI_ROW_GROUP,
    BSMI_DIGITS_LENGTH = BSMI_ROW_LENGTH, BSMI_DIGITS_GROUPS = BSMI_DIGITS_LENGTH / BSMI_GROUP,
    BSMI_OFFSET_OF_FP4 = 12,              /* added to twice a number of e2m1, so that it is none below 0 */
};

struct bsmi_digits {
    _Alignas(64) int8_t digits[BSMI_DIGITS_GROUPS][2][BSMI_DIGITS][BSMI_GROUP / 2];     /* of even and odd columns */
    _Alignas(64) float numbers[BSMI_DIGITS_GROUPS * BSMI_GROUP_SLICES][2][BSMI_SLICE / 2];   /* of hard slices */
    int32_t offsets[BSMI_DIGITS_GROUPS * BSMI_GROUP_SLICES];  /* what the offset of e2m1 makes of a slice, negated */
    float half_units[BSMI_DIGITS_GROUPS * BSMI_GROUP_SLICES];
    uint8_t hard[BSMI_DIGITS_GROUPS];     /* a bit a slice */
    uint8_t counts[BSMI_DIGITS_GROUPS];   /* digits of which not all are 0: up to the last one, at least one */
    struct bsmi_row_numbers row;
};

/* Columns [k, k + length) of the tile's only row, at most BSMI_DIGITS_LENGTH, from a multiple of BSMI_GROUP on; the
 * last group is filled up with zeros.  false: it has NaN, an infinity, or a magnitude out of [2^-60, 2^60].  b: as in
 * row_numbers.h. */
bool bsmi_digits_make(const struct bsmi_tile *tile, int64_t k, int64_t length, struct bsmi_upcoming *b,
                      struct bsmi_digits *digits);

/* The first 16 columns of each slice alone, for rows of nvfp4, whose scales are no powers of two: integers of two
 * digits, where no partial sum of products with e2m1 times 15, the largest significand of a scale, has more than 24
 * bits.  The chains of the slice then have exact sums behind these columns, whatever the scale is. */
enum { BSMI_FIRST_DIGITS = 2, BSMI_FIRST_BLOCK = BSMI_SLICE / 2 };

struct bsmi_first_blocks {
    int8_t digits[BSMI_ROW_SLICES][2][BSMI_FIRST_DIGITS][BSMI_FIRST_BLOCK / 2];       /* of even and odd columns */
    int32_t offsets[BSMI_ROW_SLICES][2];
    float half_units[BSMI_ROW_SLICES];
    bool whole[BSMI_ROW_SLICES];          /* false: it is no such integers */
};

void bsmi_first_blocks_make(const struct bsmi_row_numbers *row, int64_t slices, struct bsmi_upcoming *b,
                            struct bsmi_first_blocks *blocks);

#endif
