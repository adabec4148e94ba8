/* Exact non-negative numbers n * 2^e, compared and multiplied as integers. */
#ifndef BSM_TEST_EXACT_H
#define BSM_TEST_EXACT_H

#include <math.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 wide_integer;

struct exact { wide_integer n; int e; };  /* n odd, or 0 */

static inline struct exact exact_normal(wide_integer n, int e)
{
    while (n != 0 && n % 2 == 0) n /= 2, e++;
    return (struct exact){ n, n == 0 ? 0 : e };
}

/* Any finite double >= 0. */
static inline struct exact exact_of(double value)
{
    int e;
    const double fraction = frexp(value, &e);
    return exact_normal((wide_integer)(uint64_t)ldexp(fraction, 53), e - 53);
}

/* The caller keeps the bits of both together within 128. */
static inline struct exact exact_times(struct exact a, struct exact b) { return exact_normal(a.n * b.n, a.e + b.e); }

static inline struct exact exact_power_of_two(int e) { return (struct exact){ 1, e }; }

static inline int exact_bits(wide_integer n)
{
    int bits = 0;
    for (; n != 0; n /= 2) bits++;
    return bits;
}

/* -1, 0, 1 as a is less than, equal to, greater than b. */
static inline int exact_compare(struct exact a, struct exact b)
{
    if (a.n == 0 || b.n == 0) return (a.n != 0) - (b.n != 0);
    const int top_a = exact_bits(a.n) + a.e, top_b = exact_bits(b.n) + b.e;
    if (top_a != top_b) return top_a < top_b ? -1 : 1;
    /* Equal leading positions: the smaller exponent has the longer integer, so aligning does not overflow. */
    if (a.e > b.e) a.n <<= a.e - b.e;
    else b.n <<= b.e - a.e;
    return a.n < b.n ? -1 : a.n > b.n;
}

#endif
