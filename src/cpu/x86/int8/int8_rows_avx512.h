/* Rows of small integers whose products sum exactly in 32-bit integers and in fp32 alike, told from their scales.
 *
 * e2m1, e2m3 and int8 are integers of at most 12, 60 and 128 on a grid.  A row of them whose e8m0 scales span few
 * binades is a row of int8 numbers times one power of two, its least scale times the grid: 12 << 3 and 60 << 1 are int8
 * numbers, so e2m1 may span 3 binades, e2m3 1, int8 none.  Blocks of zeros count for nothing, whatever their scale is.
 *
 * With n of a row the sum over its blocks of length * largest^2 * 4^(scale - least), the Cauchy-Schwarz inequality says
 * that the products of a row of A and of B have magnitudes whose sum is at most sqrt(n_A n_B).  While that is at most
 * 2^24, every sum of some of the products is an integer that fp32 holds: sums are exact in any order. */
#ifndef BSMI_INT8_ROWS_AVX512_H
#define BSMI_INT8_ROWS_AVX512_H

#include "cpu/tile.h"

/* Scales of all rows of A and of all columns of the tile span so few binades, none of them is NaN, and largest n_A
 * times largest n_B is at most 2^48.  least: the code of each row's least scale, of A's rows, then of columns. */
bool bsmi_int8_rows_find(const struct bsmi_tile *tile, int16_t *least);

/* 2^(least scale, grid and -exponent) of each row: of rows of zeros something finite.  exponents: NULL, or what
 * row_exponents.h takes off. */
void bsmi_int8_row_factors(bsm_element element, const int16_t *least, const int16_t *exponents, int64_t count,
                           float *factors);

#endif
