/* Machine code to instructions. */
#ifndef GFXSIM_DECODE_DECODE_H
#define GFXSIM_DECODE_DECODE_H

#include "instruction.h"

/* Decodes the instruction at `pc` of `bytes` bytes of code.  False: it is none that a row has, or it does not end
 * before the code does; in->row is NULL then, in->bytes what can be told. */
bool decode(struct insn *in, const uint8_t *code, uint32_t bytes, uint32_t pc);

/* Its text as llvm-objdump writes it; branch targets as numbers. */
enum { INSTRUCTION_TEXT = 256 };
void instruction_text(const struct insn *in, char text[INSTRUCTION_TEXT]);

#endif
