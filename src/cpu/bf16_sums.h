/* What sums by units of bf16 numbers need around them.  Their operands are rows of bf16, each row times a power of two
 * of its own (row_exponents.h); a row that bf16 cannot hold so is a fallback row, and what is computed of it has the
 * portable order. */
#ifndef BSMI_BF16_SUMS_H
#define BSMI_BF16_SUMS_H

#include "microkernel.h"

size_t bsmi_bf16_exponents_bytes(int64_t rows, int64_t columns);
struct bsmi_bf16_exponents bsmi_bf16_find_exponents(const struct bsmi_tile *tile, void *memory);

/* Puts the exponents back into the tile's sums, each with one rounding, and computes what belongs to fallback rows. */
size_t bsmi_bf16_finish_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_bf16_finish(const struct bsmi_tile *tile, const struct bsmi_bf16_exponents *exponents, void *scratch);

/* Both around the sums of a microkernel whose panels are such rows. */
size_t bsmi_bf16_microkernel_scratch_bytes(const struct bsmi_microkernel *micro, int64_t rows, int64_t columns);
void bsmi_bf16_microkernel_sum(const struct bsmi_microkernel *micro, const struct bsmi_tile *tile, void *scratch);

#endif
