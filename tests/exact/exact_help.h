/* For the tests of the exact product: operands made of codes, and a second opinion that shares no code with the
 * library.
 *
 * The second opinion: an element and a scale are decoded with ldexp from the formats' definitions, a product of two
 * scaled values is one double (at most 53 bits, between 2^-298 and 2^272: exact), and a sum is a column of counters,
 * one per bit position.  A rounded result is right if the exact sum lies between the midpoints to its two
 * neighbours. */
#ifndef BSM_EXACT_HELP_H
#define BSM_EXACT_HELP_H

#include "blockscale.h"
#include "test.h"

/* Decoding by definition. */
double element_value(bsm_element element, uint32_t code);
double scale_value(bsm_scale scale, uint8_t code);

/* An operand in memory that ends at a guard page; everything that holds no code and no scale is `fill`. */
struct operand {
    bsm_matrix matrix;
    double *values;                       /* rows x columns, scale included; filled by operand_decode */
};

/* All codes 0 and all scales 1.  The first has DEFAULT packing, linear scales, tight rows, and 0xff for fill. */
struct operand operand_make(bsm_format format, int64_t rows, int64_t columns);
struct operand operand_make_packed(bsm_format format, int64_t rows, int64_t columns, bsm_packing packing,
                                   bsm_scale_layout layout, int64_t extra_pitch, int fill);
void operand_free(struct operand *o);
void operand_set(struct operand *o, int64_t row, int64_t column, uint32_t code);
void operand_set_scale(struct operand *o, int64_t row, int64_t scale_column, uint8_t code);
/* Random codes: finite ones, or any; and random scales between two codes. */
void operand_fill(struct test *t, struct operand *o, bool finite, int scale_low, int scale_high);
void operand_decode(struct operand *o);   /* reads every code and scale back, one by one, and decodes them by
                                             definition */

/* One column.  All codes of an element, or of one wider than 8 bits a choice of some 300; scales are 1. */
struct operand column_of_codes(struct test *t, bsm_format format);
/* One code, the smallest positive or the largest, under every scale; without scales two rows, one with each code. */
struct operand column_of_scales(bsm_format format, bool largest);

/* Calls check for every pair of formats with all their codes (with every scale of both), K = 1. */
typedef void pair_check(struct test *t, bsm_context *context, struct operand *a, struct operand *b);
void for_every_pair_of_codes(struct test *t, pair_check *check);
void for_every_pair_of_scales(struct test *t, pair_check *check);

/* The exact sum of doubles within 2^-400 .. 2^400. */
enum { COUNTERS = 1000, COUNTERS_ONE = 500 };   /* counter COUNTERS_ONE counts units of 1 */
struct counters { int64_t count[COUNTERS]; };
void counters_add(struct counters *sum, double value, int64_t times);
int counters_sign(const struct counters *sum);

/* Whether `bits` is the nearest number of `type` to the sum, ties to even, and +0 for an exact zero. */
bool rounded_rightly(const struct counters *sum, bsm_real type, uint64_t bits);

/* Whether `bits` is the sum (or the sum of magnitudes) over k of a[row] b[column], decoded; also non-finite ones. */
bool product_is_right(const struct operand *a, int64_t row, const struct operand *b, int64_t column, bool magnitude,
                      bsm_real type, uint64_t bits);

uint64_t nan_bits(bsm_real type);
uint64_t infinity_bits(bsm_real type, bool negative);
uint64_t load_bits(bsm_real type, const void *data, int64_t index);

/* A tight M x N result. */
bsm_real_matrix result_of(bsm_real type, int64_t rows, int64_t columns, void *data);

bsm_context *context_or_stop(int threads);

#endif
