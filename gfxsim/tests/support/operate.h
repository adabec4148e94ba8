/* One instruction on registers that the test fills: no kernel around it. */
#ifndef GFXSIM_TESTS_OPERATE_H
#define GFXSIM_TESTS_OPERATE_H

#include "simulate.h"

struct operated {
    struct simulation sim;
    struct grid *grid;
    struct workgroup group;
    struct wave *wave;
    struct launch launch;
};

/* A wave of 64 lanes whose registers are all defined (zero), with 4096 bytes of LDS. */
bool operate_open(struct operated *o, struct test *t);
void operate_close(struct operated *o);
/* Runs it, and delivers what it brings.  False after a failure that says why. */
bool operate(struct operated *o, struct test *t, const uint32_t *word, uint32_t words);

/* VOP3: destination and sources as encoded (256 + n: vN). */
enum { V = 256 };
bool operate_vop3(struct operated *o, struct test *t, uint32_t opcode, uint32_t d, uint32_t a, uint32_t b, uint32_t c);

#endif
