/* Operands of the kinds f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4 of mma.sync: elements that lie in bytes, and the scales
 * that selectors name (PTX ISA 9.7.14.3). */
#ifndef CUDASIM_INSTRUCTIONS_MMA_BLOCK_SCALE_H
#define CUDASIM_INSTRUCTIONS_MMA_BLOCK_SCALE_H

#include "fragment.h"
#include "machine/mma/tensor_core_fp4.h"

enum { MOST_SCALES = 4, SCALED_NAN = 0x7fffffff };

/* The scales of an instruction: how many a row has, 0: none; two operands each, the word of the lane and {byte,
 * thread}. */
struct scale_form { uint32_t count; enum tensor_scale_format format; int operand_a, operand_b; };

/* Bytes to codes: e2m1 lies in bits 5:2, e3m2 and e2m3 in bits 5:0; the others are ignored. */
void codes_of_bytes(enum tensor_format format, uint32_t *code, uint32_t count);

/* Of an instruction whose scales are the given operands. */
struct scale_form scale_form_of(const struct insn *in, int operand_a, int operand_b);
/* NULL, or what is wrong with selectors that are constants. */
const char *scales_refused(const struct insn *in, const struct scale_form *f);

/* code[row][j]: scale j of each row of A (16 rows) or column of B (8).  Only the lanes that the selectors name are
 * looked at. */
trap scales_read(struct warp *w, const struct insn *in, const struct scale_form *f, uint32_t rows,
                 uint8_t code[][MOST_SCALES]);

/* Multiplies the rows by their scale of ue8m0, one each; nan[row] where it is a NaN. */
void scales_apply(struct tensor_panel *panel, uint8_t code[][MOST_SCALES], bool *nan);

#endif
