/* The model of units' orders (unit_sums.c) against the instructions in plain C: both were written by themselves. */
#include "test.h"
#include "unit_sums.h"
#include "units/dot_products.h"
#include "units/float_steps.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_DEPTH = 200, SLICE = 32 };

/* bf16 of a random exponent in [first, first + span), none of them subnormal; specials: also zero, infinity, NaN. */
static uint16_t random_bf16(struct test *t, int first, int span, bool specials)
{
    static const uint16_t special[] = { 0x0000, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x8080, 0x3f80, 0x7f7f };
    if (specials && rnd_below(t, 12) == 0) return special[rnd_below(t, 9)];
    return (uint16_t)(rnd_below(t, 2) << 15 | (first + rnd_below(t, span)) << 7 | rnd_below(t, 128));
}

static float step_of_amx(const uint16_t *a, const uint16_t *b, float sum)
{
    float chains[2] = { 0, 0 };
    for (int k = 0; k < SLICE; k++)
        chains[k % 2] = flushing_fma(fp32_of_bf16(a[k]), fp32_of_bf16(b[k]), chains[k % 2]);
    return flushing_add(sum, flushing_add(chains[0], chains[1]));
}

static float by_instructions(enum unit_order order, const uint16_t *a, const uint16_t *b, int padded)
{
    float sum = 0, sums[4] = { 0 };
    for (int k = 0; k < padded; k += SLICE)
        if (order == UNIT_AMX_BF16) sum = step_of_amx(a + k, b + k, sum);
    for (int k = 0; k < padded; k += 2)
        if (order == UNIT_AVX512_BF16) sum = emulated_vdpbf16ps(sum, a + k, b + k);
    for (int k = 0; k < padded && order == UNIT_ARM_BF16; k += 4) {
        const uint16_t x[8] = { a[k], a[k + 1], a[k + 2], a[k + 3] }, y[8] = { b[k], b[k + 1], b[k + 2], b[k + 3] };
        emulated_bfmmla(sums, x, y);
    }
    return order == UNIT_ARM_BF16 ? sums[0] : sum;
}

static void check(struct test *t, int first_a, int first_b, int span, bool specials)
{
    const int depth = (int)rnd_between(t, 1, MOST_DEPTH), padded = (depth + SLICE - 1) / SLICE * SLICE;
    uint16_t a[MOST_DEPTH + SLICE] = { 0 }, b[MOST_DEPTH + SLICE] = { 0 };
    double x[MOST_DEPTH], y[MOST_DEPTH], ones[MOST_DEPTH];
    for (int k = 0; k < depth; k++) {
        a[k] = random_bf16(t, first_a, span, specials), b[k] = random_bf16(t, first_b, span, specials);
        if (k > 0 && rnd_below(t, 3) == 0) a[k] = a[k - 1] ^ 0x8000, b[k] = b[k - 1];       /* cancels, nearly */
        x[k] = (double)fp32_of_bf16(a[k]), y[k] = (double)fp32_of_bf16(b[k]), ones[k] = 1;
    }
    struct unit_rows of_a = unit_rows_make(BSM_FORMAT_BF16, 1, depth, x, ones, true),
                     of_b = unit_rows_make(BSM_FORMAT_BF16, 1, depth, y, ones, true);
    CHECK(t, !unit_falls_back(&of_a, 0, &of_b, 0));
    for (int order = UNIT_AMX_BF16; order < UNIT_ORDERS; order++) {
        const float model = unit_sum((enum unit_order)order, &of_a, 0, &of_b, 0),
                    steps = by_instructions((enum unit_order)order, a, b, padded);
        if (bits_of_fp32(model) != bits_of_fp32(steps) && !(isnan(model) && isnan(steps)))
            FAIL(t, "order %d, exponents %d and %d, K=%d: %a, the instructions give %a", order, first_a, first_b,
                 depth, (double)model, (double)steps);
    }
    unit_rows_free(&of_a), unit_rows_free(&of_b);
}

static void ordinary_numbers(struct test *t)
{
    for (int i = 0; i < 2000; i++) check(t, 120, 120, 12, false);
}

/* Products, and sums that cancel, around 2^-126; and sums that leave fp32. */
static void at_the_ends(struct test *t)
{
    for (int i = 0; i < 4000; i++) check(t, (int)rnd_between(t, 1, 60), (int)rnd_between(t, 60, 80), 8, false);
    for (int i = 0; i < 4000; i++) check(t, 1, 120, 8, false);
    for (int i = 0; i < 1000; i++) check(t, 240, (int)rnd_between(t, 120, 140), 14, false);
}

static void any_numbers(struct test *t)
{
    for (int i = 0; i < 2000; i++) check(t, 1, 1, 254, false);
    for (int i = 0; i < 2000; i++) check(t, 100, 100, 40, true);
}

/* Which rows have an exponent of their own, and which fall back. */
static void ranges_of_rows(struct test *t)
{
    static const struct {
        int low, high;                               /* exponents of two scales of blocks of e2m1: -1 .. 2 */
        bool beside_bf16, fallback;
        int exponent;
    } rows[] = {
        { -39, 38, false, false, 0 },    { -39, 38, true, false, 0 },    { -40, 0, false, false, -20 + 0 },
        { -40, 0, true, true, 0 },       { 0, 39, false, false, 20 },    { 100, 120, false, false, 110 },
        { -127, -50, false, false, -88 }, { -127, -49, false, true, 0 }, { 50, 127, false, false, 89 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double elements[128], scales[128];
        for (int k = 0; k < 128; k++) {
            elements[k] = k < 96 ? 0.5 : 0;                           /* the last block is zeros: it does not count */
            scales[k] = k < 32 ? ldexp(1, rows[i].low)
                        : k < 64 ? ldexp(1, rows[i].high)
                        : k < 96 ? (double)NAN
                                 : 0x1p127;
        }
        struct unit_rows made = unit_rows_make(BSM_MXFP4, 1, 128, elements, scales, rows[i].beside_bf16);
        if (made.fallback[0] != rows[i].fallback || (!rows[i].fallback && made.exponents[0] != rows[i].exponent))
            FAIL(t, "scales 2^%d and 2^%d: fallback %d, exponent %d", rows[i].low, rows[i].high, made.fallback[0],
                 made.exponents[0]);
        unit_rows_free(&made);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(ordinary_numbers), TEST(at_the_ends), TEST(any_numbers),
                                              TEST(ranges_of_rows) };
    return TEST_MAIN(argc, argv, cases);
}
