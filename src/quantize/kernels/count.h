/* Counting what a kernel quantized: from the numbers, and from the codes and scales that came of them. */
#ifndef BSMI_QUANTIZE_COUNT_H
#define BSMI_QUANTIZE_COUNT_H

#include "rows.h"

/* Fills in rows->values, for calls of bsmi_count_unit. */
void bsmi_count_prepare(struct bsmi_block_rows *rows);

/* Adds the counts of a unit's blocks, piece by piece, with the bits that bsmi_quantize_piece gives them.  Not for
 * fp64 sources and presets, whose quotients follow other rules, nor for blocks that share a scale. */
void bsmi_count_unit(const struct bsmi_block_rows *rows, const struct bsmi_walk *walk, int64_t unit,
                     struct bsmi_block_stats *stats);

#endif
