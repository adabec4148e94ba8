/* For handlers: loops over lanes.  BINARY(expression of a and b) writes operand 0 from operands 1 and 2, cut to the
 * type's width. */
#ifndef CUDASIM_INSTRUCTIONS_TABLE_LANES_H
#define CUDASIM_INSTRUCTIONS_TABLE_LANES_H

#include "machine/core/machine.h"

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Values as the type of the instruction sees them. */
static inline uint32_t insn_bits(const struct insn *in) { return type_bits((enum ptx_type)in->type[0]); }

/* A loop over lanes; where all of them run, one that the compiler makes vectors of. */
#define EACH_LANE(l, lanes, ...) \
    do { \
        if ((lanes) == UINT32_MAX) \
            for (uint32_t l = 0; l < LANES; l++) __VA_ARGS__ \
        else FOR_LANES(l, lanes) __VA_ARGS__ \
    } while (0)

#define UNARY(expression) \
    do { \
        uint64_t *d_row = destination(w, in, 0); \
        const uint64_t *a_row = source(w, in, 1); \
        const uint64_t mask = in->mask; \
        EACH_LANE(l, lanes, { \
            const uint64_t a = a_row[l] & mask; \
            d_row[l] = (uint64_t)(expression) & mask; \
        }); \
        return TRAP_NONE; \
    } while (0)

#define BINARY(expression) \
    do { \
        uint64_t *d_row = destination(w, in, 0); \
        const uint64_t *a_row = source(w, in, 1), *b_row = source(w, in, 2); \
        const uint64_t mask = in->mask; \
        EACH_LANE(l, lanes, { \
            const uint64_t a = a_row[l] & mask, b = b_row[l] & mask; \
            d_row[l] = (uint64_t)(expression) & mask; \
        }); \
        return TRAP_NONE; \
    } while (0)

#define TERNARY(expression) \
    do { \
        uint64_t *d_row = destination(w, in, 0); \
        const uint64_t *a_row = source(w, in, 1), *b_row = source(w, in, 2), *c_row = source(w, in, 3); \
        const uint64_t mask = in->mask; \
        EACH_LANE(l, lanes, { \
            const uint64_t a = a_row[l] & mask, b = b_row[l] & mask, c = c_row[l] & mask; \
            d_row[l] = (uint64_t)(expression) & mask; \
        }); \
        return TRAP_NONE; \
    } while (0)

#endif
