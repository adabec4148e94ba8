/* Evaluates the formulas of bsm_layout_formula: + * / % ( ) ceil(a/b), numbers, r s R S TR TC pitch.  A comma ends
 * one. */
#ifndef LAYOUT_FORMULA_H
#define LAYOUT_FORMULA_H

#include <stdbool.h>
#include <stdint.h>

struct formula_values { int64_t r, s, R, S, pitch, TR, TC; };

/* false when the text is no formula. */
bool formula_evaluate(const char *text, const struct formula_values *values, int64_t *result);

#endif
