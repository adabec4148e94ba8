/* The families of instructions.  A new one: a file with its rows and handlers, a line here, a line in families.c. */
#ifndef CUDASIM_INSTRUCTIONS_FAMILIES_H
#define CUDASIM_INSTRUCTIONS_FAMILIES_H

#include "ptx/table.h"

extern const struct family family_integer, family_extended, family_bits, family_logic, family_compare, family_move, family_convert, family_memory,
    family_atomic, family_control, family_barrier, family_warp, family_float;

#endif
