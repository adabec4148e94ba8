/* What atomics and the engines' reductions do to one element in memory. */
#ifndef CUDASIM_INSTRUCTIONS_MEMORY_REDUCTION_H
#define CUDASIM_INSTRUCTIONS_MEMORY_REDUCTION_H

#include "ptx/ptx.h"

enum reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_INC, REDUCE_DEC, REDUCE_AND, REDUCE_OR, REDUCE_XOR,
                 REDUCE_EXCH,
                 REDUCE_CAS };

/* The operation among the instruction's modifiers (.add, .min, ...).  For prepare functions. */
enum reduction reduction_of(const struct insn *in);

/* ftz: subnormal operands and results become zero; shared: of shared memory, where f64 sums treat NaN otherwise. */
struct reducer { enum reduction operation; enum ptx_type type; bool ftz, shared; };

/* *host = operation(*host, b), for cas: *host == b ? c : *host; by compare and swap of the type's width, so that other
 * host threads see each update whole.  Returns what was there. */
uint64_t reduction_update(struct reducer reducer, uint8_t *host, uint64_t b, uint64_t c);

#endif
