/* Steps of matrix units. */
#include "float_steps.h"

#include <math.h>
#include <stdbool.h>

static const float least_normal = 0x1p-126f;

float flushed(float x) { return fabsf(x) < least_normal ? copysignf(0, x) : x; }

/* fmaf rounds to 2^-149 below 2^-126: what it gives as 2^-126 may be less in 24 bits.  The same 24 binades up, where
 * nothing is subnormal: the factor that is at most 1 and c, which is small here, grow. */
static bool is_below_after_rounding(float a, float b, float c)
{
    const float grown = fabsf(a) <= 1 ? fmaf(a * 0x1p24f, b, c * 0x1p24f) : fmaf(a, b * 0x1p24f, c * 0x1p24f);
    return fabsf(grown) < least_normal * 0x1p24f;
}

float flushing_fma(float a, float b, float c)
{
    a = flushed(a), b = flushed(b), c = flushed(c);
    const float sum = fmaf(a, b, c);
    if (fabsf(sum) == least_normal && is_below_after_rounding(a, b, c)) return copysignf(0, sum);
    return flushed(sum);
}

/* A sum of two fp32 numbers that is below 2^-126 is exact. */
float flushing_add(float a, float b) { return flushed(flushed(a) + flushed(b)); }

/* high + low, where |low| is at most half of high's last bit, rounded to odd in fp32. */
static float rounded_to_odd(double high, double low)
{
    if (high == 0 || isnan(high) || isinf(high)) return (float)high;
    uint64_t bits;
    memcpy(&bits, &high, sizeof bits);
    if (low != 0 && (bits & 1) == 0) {                                /* the neighbour on low's side is odd */
        const double odd = nextafter(high, low > 0 ? INFINITY : -INFINITY);
        memcpy(&bits, &odd, sizeof bits);
    }
    const uint64_t cut_bits = ((uint64_t)1 << 29) - 1;                /* 52 of double less 23 of fp32 */
    const uint64_t kept = (bits & ~cut_bits) | ((bits & cut_bits) != 0 ? cut_bits + 1 : 0);
    double cut;
    memcpy(&cut, &kept, sizeof cut);
    if (fabs(cut) < (double)least_normal) return copysignf(0, (float)high);
    return fabs(cut) >= 0x1p128 ? copysignf(INFINITY, (float)high) : (float)cut;
}

float odd_product(float a, float b) { return rounded_to_odd((double)flushed(a) * (double)flushed(b), 0); }

/* In double, and what that addition lost (Knuth's two sums). */
float odd_sum(float a, float b)
{
    const double x = (double)flushed(a), y = (double)flushed(b), sum = x + y;
    const double of_y = sum - x, of_x = sum - of_y;
    return rounded_to_odd(sum, isfinite(sum) ? (x - of_x) + (y - of_y) : 0);
}
