/* One instruction over many operands: the text of the instruction, its result's register, and what the host
 * computes. */
#ifndef CUDASIM_TESTS_SUPPORT_OPERATE_H
#define CUDASIM_TESTS_SUPPORT_OPERATE_H

#include "harness.h"

typedef uint64_t reference(uint64_t a, uint64_t b, uint64_t c);

/* text reads a, b, c in %rd1-3, %r1-3, %rs1-3, %f1-3, %fd1-3 (the low bits of the same 64) and %p1-3 (the lowest bit),
 * and writes register 9 of the kind: 'd' %rd9, 'r' %r9, 's' %rs9, 'f' %f9, 'F' %fd9, 'p' %p9. */
struct operation { const char *text; char kind; reference *want; };

struct operands { const uint64_t *a, *b, *c; int count; };

/* Runs it on every operand and compares with the reference; reports the first few that differ. */
void operate(struct test *t, const char *device, const struct operation *operation, const struct operands *operands);

/* All pairs of the boundary values of integers (or floats of the width 16, 32, 64), with c drawn from them: up to
 * `most`. */
int boundary_integers(struct test *t, uint64_t *a, uint64_t *b, uint64_t *c, int most);
int boundary_floats(struct test *t, uint32_t width, uint64_t *a, uint64_t *b, uint64_t *c, int most);

#define REFERENCE(name, expression) \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c) \
    { \
        (void)a, (void)b, (void)c; \
        return (uint64_t)(expression); \
    }

#endif
