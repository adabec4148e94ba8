/* Exact sums: in fp64 where nothing is lost there, otherwise in fixed point. */
#include "sums.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LIMBS = 16, LOWEST = -480 };       /* bit 0 is worth 2^-480; 1024 bits */
typedef uint64_t fixed[LIMBS];

static void add_shifted(fixed sum, uint64_t mantissa, int bit, bool negative)
{
    const int limb = bit / 64, shift = bit % 64;
    uint64_t part[2] = { mantissa << shift, shift == 0 ? 0 : mantissa >> (64 - shift) };
    uint64_t carry = 0;
    for (int i = limb; i < LIMBS; i++) {
        const uint64_t add = i - limb < 2 ? part[i - limb] : 0, old = sum[i];
        if (negative) {
            sum[i] = old - add - carry;
            carry = old < add || (old == add && carry != 0);
        } else {
            sum[i] = old + add + carry;
            carry = sum[i] < old || (carry != 0 && sum[i] == old);
        }
    }
}

static float rounded(fixed sum)
{
    const bool negative = sum[LIMBS - 1] >> 63;
    if (negative) {
        fixed zero = { 0 };
        uint64_t borrow = 0;
        for (int i = 0; i < LIMBS; i++) {
            zero[i] = (uint64_t)0 - sum[i] - borrow;
            borrow = sum[i] != 0 || borrow != 0;
        }
        memcpy(sum, zero, sizeof zero);
    }
    int top = LIMBS - 1;
    while (top >= 0 && sum[top] == 0) top--;
    if (top < 0) return 0.0f;
    const int high = 64 * top + 63 - __builtin_clzll(sum[top]);
    /* 62 bits from the highest on, the last one sticky, make a number that fp32 rounds right */
    uint64_t bits = 0;
    const int low = high - 61 < 0 ? 0 : high - 61;
    for (int i = high; i >= low; i--) bits = bits << 1 | (sum[i / 64] >> i % 64 & 1);
    bool sticky = false;
    for (int i = 0; i < low && !sticky; i++) sticky = sum[i / 64] >> i % 64 & 1;
    /* how many of them fp32 keeps: 24, fewer below 2^-126 */
    const int exponent = high + LOWEST;
    const int kept = exponent >= -126 ? 24 : 24 - (-126 - exponent);
    const int count = high - low + 1;
    if (kept < 0) return negative ? -0.0f : 0.0f;
    if (count > kept) {
        const int cut = count - kept;
        const uint64_t rest = bits & ((UINT64_C(1) << cut) - 1), half = UINT64_C(1) << (cut - 1);
        bits >>= cut;
        if (rest > half || (rest == half && (sticky || (bits & 1) != 0))) bits++;
        bits <<= cut;
    }
    const float f = (float)ldexp((double)bits, low + LOWEST);
    return negative ? -f : f;
}

static float slow_sum(const double *term, int count)
{
    fixed sum = { 0 };
    for (int i = 0; i < count; i++) {
        if (term[i] == 0) continue;
        int e;
        const double m = frexp(fabs(term[i]), &e);
        add_shifted(sum, (uint64_t)ldexp(m, 53), e - 53 - LOWEST, term[i] < 0);
    }
    return rounded(sum);
}

float sum_exact(const double *term, int count)
{
    double sum = 0, lost = 0;
    for (int i = 0; i < count; i++) {
        const double s = sum + term[i], back = s - sum;
        lost += fabs((sum - (s - back)) + (term[i] - back));
        sum = s;
    }
    if (lost == 0 || sum != sum || isinf(sum)) return (float)sum;
    if (lost != lost) return (float)sum;
    return slow_sum(term, count);
}

float sum_group(float c, const double *term, int count)
{
    int most = -1000;
    double plain = c;
    for (int i = -1; i < count; i++) {
        const double t = i < 0 ? (double)c : term[i];
        if (t == 0) continue;
        int e;
        (void)frexp(t, &e);
        if (e > most) most = e;
        if (i >= 0) plain += t;
    }
    if (!isfinite(plain)) return (float)plain;
    if (most == -1000) return c + 0.0f;
    const int last = most - 1 - 24;
    double sum = floor(ldexp((double)c, -last));
    for (int i = 0; i < count; i++) sum += floor(ldexp(term[i], -last));
    return (float)ldexp(sum, last);
}
