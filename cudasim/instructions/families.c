/* All families, in the order of the manual. */
#include "instructions/families.h"

const struct family *const instruction_families[] = {
    &family_integer,
    &family_move,
    &family_memory,
    &family_control,
    NULL
};
