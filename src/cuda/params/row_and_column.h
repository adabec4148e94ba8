/* What host and kernel of bsm_quantize_both agree on, as kernels.h does for the others. */
#ifndef BSMI_ROW_AND_COLUMN_PARAMETERS_H
#define BSMI_ROW_AND_COLUMN_PARAMETERS_H

#include "kernels.h"

/* Kernel bsmi_quantize_row_and_column: a matrix of bf16 and its transpose, each with the bits of bsmi_quantize, from
 * one read. columns.source is rows.source with its rows and columns exchanged.  rows.source: one matrix, column_stride
 * 1, data and row_stride multiples of 16 bytes, rows and columns of BSMI_ROW_AND_COLUMN_ROWS and
 * BSMI_ROW_AND_COLUMN_COLUMNS.  Destinations: MXFP8, MXFP4 or NVFP4, scales in a layout without tiles of any size and
 * in less than 2^31 bytes; codes of 8 bits a byte each, those of 4 bits two a byte; to nearest, no policies; data and
 * row_bytes multiples of 16, row_bytes less than 2^31.  A tensor scale that is computed is that of rows, after
 * bsmi_amax, as for bsmi_quantize; this kernel puts it into columns.computed too, of the same format and use. Any grid
 * of BSMI_ROW_AND_COLUMN_THREADS threads a CTA: CTAs stride over tiles. */
enum { BSMI_ROW_AND_COLUMN_THREADS = 128, BSMI_ROW_AND_COLUMN_ROWS = 64, BSMI_ROW_AND_COLUMN_COLUMNS = 128 };
struct bsmi_row_and_column_parameters { struct bsmi_quantize_parameters rows, columns; };

/* Kernels bsmi_quantize_row_and_column_powers and bsmi_order_scales, one behind the other: the same for destinations
 * that are MXFP8 of E4M3 or MXFP4, without tensor scales, rows and columns of the source multiples of
 * BSMI_ROW_AND_COLUMN_POWERS; scales linear, from multiples of 32 bytes on, as are their pitches.  The first leaves
 * scales in the order of tiles: both_powers.cuh. Grids of BSMI_ROW_AND_COLUMN_THREADS threads a CTA: of the first any,
 * CTAs stride over BSMI_ROW_AND_COLUMN_CHUNK tiles, and those that are more take one each from the last; of the second
 * bsmi_row_and_column_regions of both. Kernel bsmi_quantize_row_and_column_quotients: the first of them for NVFP4 with
 * tensor scales that are not computed here. */
enum { BSMI_ROW_AND_COLUMN_POWERS = 1024, BSMI_ROW_AND_COLUMN_CHUNK = 2 };

/* Neighbouring scales of a line that are put in order together, of so many that it has: 32, 64 or 128. */
BSMI_HOST_DEVICE static inline uint32_t bsmi_row_and_column_width(int64_t scales)
{
    const uint32_t least = (uint32_t)(scales & -scales);
    return least < 128 ? least : 128;
}

/* Those of 128 lines. */
BSMI_HOST_DEVICE static inline int64_t bsmi_row_and_column_regions(const struct bsmi_device_layout *scales)
{
    return scales->rows / BSMI_ROW_AND_COLUMN_COLUMNS * (scales->columns / bsmi_row_and_column_width(scales->columns));
}

#endif
