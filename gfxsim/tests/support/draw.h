/* Random instructions of a row. */
#ifndef GFXSIM_TESTS_DRAW_H
#define GFXSIM_TESTS_DRAW_H

#include "decode/instruction.h"
#include "test.h"

/* The bits that make it this row; the rest is drawn.  `number` chooses among short and long forms and the like. */
void draw_instruction(struct test *t, const struct family *f, const struct row *r, uint32_t word[4], int number);

#endif
