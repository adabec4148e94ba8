/* Addresses of memory instructions, and the file-by-file use of them: vector_memory.c, flat.c, atomics.c. */
#ifndef GFXSIM_INSTRUCTIONS_VECTOR_MEMORY_H
#define GFXSIM_INSTRUCTIONS_VECTOR_MEMORY_H

#include "machine/machine.h"

/* What a lane touches: its address, and how many of its dwords lie in the buffer (all, of global memory). */
struct target { uint64_t address[LANES]; uint8_t dwords[LANES]; };

/* The first operand of this role; NULL: none. */
const struct operand *operand_of(const struct insn *in, char role);
/* Addresses of global and buffer instructions, all of them in memory; false after a report. */
bool find_target(struct wave *w, const struct insn *in, uint32_t bytes, bool writes, struct target *t);
/* These bytes are allocated, and may be written; false after a report. */
bool in_memory(struct wave *w, const struct insn *in, uint32_t lane, uint64_t address, uint64_t bytes, bool writes);

/* ---- atomic operations (atomics.c) ---- */

enum atomic { ATOMIC_SWAP, ATOMIC_COMPARE, ATOMIC_ADD, ATOMIC_SUB, ATOMIC_SMIN, ATOMIC_UMIN, ATOMIC_SMAX, ATOMIC_UMAX,
              ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR, ATOMIC_INC, ATOMIC_DEC, ATOMIC_ADD_FLOAT, ATOMIC_MIN_FLOAT,
              ATOMIC_MAX_FLOAT, ATOMIC_ADD_F16, ATOMIC_ADD_BF16 };
/* `detail` of a row: bytes, and the operation above bit 16. */
#define ATOMIC_DETAIL(bytes, how) ((uint32_t)(bytes) | (uint32_t)(how) << 16)

/* A lane's 4 or 8 bytes of registers from this row on. */
static inline uint64_t register_value(const struct wave *w, uint32_t row, uint32_t lane, uint32_t bytes)
{
    return w->vgpr[row][lane] | (bytes == 8 ? (uint64_t)w->vgpr[row + 1][lane] << 32 : 0);
}
/* What is in memory afterwards; `bytes` 4 or 8. */
uint64_t atomic_combined(enum atomic how, uint32_t bytes, uint64_t old, uint64_t value, uint64_t compare);
/* The run function of atomics on memory. */
run_function atomic_run;

#endif
