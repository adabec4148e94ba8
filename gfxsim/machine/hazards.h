/* Wait states that the hardware leaves to the assembler (CDNA4 ISA, "Manually Inserted Wait States"; numbers as LLVM
 * 22 has them for gfx950).  A wait state is an instruction, or one of s_nop's. */
#ifndef GFXSIM_MACHINE_HAZARDS_H
#define GFXSIM_MACHINE_HAZARDS_H

#include "machine.h"

/* What reads a register, for the table of wait states. */
enum reader { READER_VALU, READER_DPP, READER_LANE, READER_PERMLANE, READER_MATRIX_AB, READER_MATRIX_C, READER_MEMORY,
              READER_TRANSCENDENTAL };

/* Each is false after a report. */
bool hazard_vgpr(struct wave *w, const struct insn *in, uint32_t row, uint32_t dwords, enum reader reader);
/* A scalar register that a vector instruction reads: as data, as the number of a lane, as an address. */
bool hazard_sgpr_as_data(struct wave *w, const struct insn *in, uint32_t index, uint32_t dwords);
bool hazard_sgpr_as_lane(struct wave *w, const struct insn *in, uint32_t index);
bool hazard_sgpr_as_address(struct wave *w, const struct insn *in, uint32_t index, uint32_t dwords);
bool hazard_m0(struct wave *w, const struct insn *in);
bool hazard_vcc_div_fmas(struct wave *w, const struct insn *in);
bool hazard_exec_dpp(struct wave *w, const struct insn *in);

#endif
