/* Reports: what an instruction does wrong, as one block of text. */
#ifndef GFXSIM_MACHINE_REPORT_H
#define GFXSIM_MACHINE_REPORT_H

#include "machine.h"

/* Writes the grid's report (the first counts) and stops it.  The sentence's subject is the instruction. */
__attribute__((format(printf, 5, 6)))
trap wave_fault(struct wave *w, const struct insn *in, uint32_t lane, enum report_code code, const char *format, ...);
/* The same of a launch that no instruction is to blame for. */
__attribute__((format(printf, 3, 4)))
void grid_fault(struct grid *grid, enum report_code code, const char *format, ...);
/* What a program counter shows: the instruction's text. */
void insn_at(const struct wave *w, uint32_t pc, char text[256]);

#endif
