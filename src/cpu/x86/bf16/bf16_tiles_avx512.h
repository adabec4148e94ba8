/* Operands as tiles of bf16, by AVX-512 (bf16_rows_avx512.h).
 *
 * A slice is 32 columns of K.  A row tile is 16 rows of a slice, [row][column]; a column tile is the same as
 * [column / 2][row][column % 2], the form of the second operand of tdpbf16ps.  Both have 1 KiB.  In a panel of
 * `sixteens` times 16 rows the tile of slice s, term t (row_exponents.h) and sixteen i is number
 * (s * terms + t) * sixteens + i. */
#ifndef BSMI_BF16_TILES_AVX512_H
#define BSMI_BF16_TILES_AVX512_H

#include "bf16_rows_avx512.h"

/* Bytes of a panel. */
static inline size_t bsmi_bf16_panel_bytes(int sixteens, int terms, int64_t length)
{
    return (size_t)((length + BSMI_SLICE - 1) / BSMI_SLICE) * (size_t)(terms * sixteens) * BSMI_TILE_NUMBERS
           * sizeof(uint16_t);
}

/* The part's rows, at most 16 * sixteens of them, each number times 2^-exponent of its row; at most BSMI_ROW_CHUNK
 * columns, from a multiple of 16 and of the block on.  Rows that are missing, fallback rows of e8m0 scales, and columns
 * behind the last are zeros, whose sign may get lost; behind the last of a block with a NaN scale of nvfp4 also NaN.
 * terms: bsmi_bf16_terms of the element.  tiles: aligned to 64 bytes. */
void bsmi_bf16_row_tiles_avx512(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles);
void bsmi_bf16_column_tiles_avx512(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles);

/* The same, faster, with AVX512_VBMI (bf16_tiles_vbmi.c). */
void bsmi_bf16_row_tiles_vbmi(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles);
void bsmi_bf16_column_tiles_vbmi(const struct bsmi_part *part, int sixteens, int terms, uint16_t *tiles);

/* How either is made: a sixteen of rows after the other by `fill`.  Where its tiles lie: of each slice, of fp16 the
 * second term's. */
struct bsmi_bf16_places { int64_t to_next_slice, to_second; };
typedef void bsmi_bf16_fill(const struct bsmi_bf16_rows *rows, struct bsmi_bf16_places places, uint16_t *tiles);
void bsmi_bf16_fill_panel(const struct bsmi_part *part, int sixteens, int terms, bool of_columns,
                          bsmi_bf16_fill *fill, uint16_t *tiles);

#endif
