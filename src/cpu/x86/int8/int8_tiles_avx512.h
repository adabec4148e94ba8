/* Operands as tiles of int8, by AVX-512 with VBMI, which every CPU with AMX has: rows that int8_rows_avx512.h found.
 *
 * A slice is 64 columns of K.  A row tile is 16 rows of a slice, 64 bytes each; a column tile is the same as
 * [column / 4][row][column % 4], the form of the second operand of tdpbssd.  Both have 1 KiB.  Columns have another
 * order than in the matrix, the same in both: of each 16 the first eight come before the last eight of any, since so
 * vectors of codes of 4 bits decode.  Sums of integers do not mind. */
#ifndef BSMI_INT8_TILES_AVX512_H
#define BSMI_INT8_TILES_AVX512_H

#include "cpu/pack.h"

enum { BSMI_INT8_SLICE = 64 };

/* The part's rows, at most 16 * sixteens of them, as integers on the grid of the row's least scale: part->exponents has
 * the least scales' codes.  At most BSMI_ROW_CHUNK columns, from a multiple of 64 on.  Columns behind the last, and
 * sixteens of rows that are missing altogether, are zeros; other missing rows repeat the last one.  The tile of slice s
 * and sixteen i is number s * sixteens + i.  tiles: aligned to 64 bytes. */
void bsmi_int8_row_tiles_avx512(const struct bsmi_part *part, int sixteens, int8_t *tiles);
void bsmi_int8_column_tiles_avx512(const struct bsmi_part *part, int sixteens, int8_t *tiles);

#endif
