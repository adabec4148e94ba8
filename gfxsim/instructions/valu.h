/* Vector arithmetic: a handler works out all 64 lanes of a result from rows of its sources; valu.c fetches the
 * sources (with what DPP, SDWA, neg and abs do to them) and writes what EXEC lets through. */
#ifndef GFXSIM_INSTRUCTIONS_VALU_H
#define GFXSIM_INSTRUCTIONS_VALU_H

#include <math.h>
#include <string.h>

#include "machine/machine.h"

enum { MOST_SOURCES = 4, MOST_RESULT = 32 };

struct lanes {
    struct wave *w;
    const struct insn *in;
    uint64_t lanes;                       /* that execute it */
    const uint32_t *s[MOST_SOURCES];      /* rows [dword][LANES], in the order of the row's words */
    const uint64_t (*s_defined[MOST_SOURCES])[4];         /* by dword */
    uint32_t *d;                          /* the result; for words `x` what was there before */
    uint64_t (*d_defined)[4];
    uint64_t mask_in, mask_out;
    bool mask_in_defined;
};

/* instructions/valu.c: the run function of every row that has `lanes`. */
run_function valu_run;

static inline float as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline uint32_t as_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}
static inline uint64_t pair(const uint32_t *row, uint32_t lane)
{
    return row[lane] | (uint64_t)row[LANES + lane] << 32;
}
static inline void set_pair(uint32_t *row, uint32_t lane, uint64_t value)
{
    row[lane] = (uint32_t)value;
    row[LANES + lane] = (uint32_t)(value >> 32);
}

/* One expression a lane over A, B, C (bits), FA, FB, FC (floats), SA, SB, SC (signed). */
#define LANES_OF(name, expression) \
    static void name(struct lanes *x) \
    { \
        for (uint32_t l = 0; l < LANES; l++) x->d[l] = (uint32_t)(expression); \
    }
#define A  (x->s[0][l])
#define B  (x->s[1][l])
#define C  (x->s[2][l])
#define SA ((int32_t)A)
#define SB ((int32_t)B)
#define SC ((int32_t)C)
#define FA as_float(A)
#define FB as_float(B)
#define FC as_float(C)
#define WA pair(x->s[0], l)
#define WB pair(x->s[1], l)
#define WC pair(x->s[2], l)
#define WIDE_OF(name, expression) \
    static void name(struct lanes *x) \
    { \
        for (uint32_t l = 0; l < LANES; l++) set_pair(x->d, l, (uint64_t)(expression)); \
    }

#endif
