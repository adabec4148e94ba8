/* Statements from the table: a form of a row with operands, ready to stand in the body of an entry. */
#ifndef CUDASIM_TESTS_SUPPORT_SPELL_H
#define CUDASIM_TESTS_SUPPORT_SPELL_H

#include "calibrate/forms/forms.h"

enum { STATEMENT = 4096 };

/* The registers that the statements name, for the head of an entry with a parameter p0, a .param variable `passed`
 * of 64 bytes, and a .const one, `constants`. */
#define SPELL_REGISTERS \
    ".reg .b8 %b<16>; .reg .b16 %h<32>; .reg .b32 %w<160>; .reg .b64 %l<32>; .reg .b128 %q<8>; .reg .pred %p<16>;"

/* How many ways there are to choose constants, lengths of vectors and operands that may be left out; 0: calls and
 * tables of labels, which need more than a statement. */
uint32_t spell_variants(const struct form *f);

/* One of them, "{ add.s32 %w1, %w2, %w3; }".  `first` is the number of its first register. */
void spell(const struct form *f, uint32_t variant, uint32_t first, char text[STATEMENT]);

#endif
