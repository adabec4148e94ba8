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

static inline double twice(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, 8);
    return d;
}
static inline uint64_t bits_of(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}

/* Of numbers of all types; a NaN gives way. */
static inline double least(double a, double b)
{
    return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b;
}
static inline double most(double a, double b)
{
    return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b;
}
static inline double middle(double a, double b, double c)
{
    return a != a || b != b || c != c ? least(least(a, b), c) : most(least(a, b), least(most(a, b), c));
}

static inline uint32_t looked_up(uint32_t table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (int i = 0; i < 8; i++)
        if (table >> i & 1) result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
    return result;
}
static inline uint32_t truth_table(const struct insn *in)
{
    return (uint32_t)in->omod << 6 | (uint32_t)in->abs << 3 | in->neg;
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
