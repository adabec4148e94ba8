/* The comparisons of verify and demo: every kind of difference is found where it is, and nothing else. */
#include "test.h"
#include "cli/matrices/compare.h"

#include <float.h>
#include <math.h>

enum { M = 5, N = 7, PITCH = 9 };
static const struct compare_shape shape = { M, N, PITCH };
static const uint32_t fill = 0xffc0bad0;

struct product { float got[M * PITCH], want[M * N]; double sum[M * N], magnitude[M * N]; };

static void put_bits(float *value, uint32_t bits) { memcpy(value, &bits, sizeof bits); }

/* Values between 1 and 2 of both signs; magnitudes twice as large. */
static struct product make(struct test *t)
{
    struct product p;
    for (int i = 0; i < M * PITCH; i++) put_bits(&p.got[i], fill);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float value;
            put_bits(&value, 0x3f800000 | (uint32_t)(rnd(t) & 0x807fffff));
            p.got[i * PITCH + j] = p.want[i * N + j] = value;
            p.sum[i * N + j] = (double)value, p.magnitude[i * N + j] = 2 * fabs((double)value);
        }
    return p;
}

static struct difference bound(const struct product *p, int64_t roundings, double *worst)
{
    return compare_bound(shape, p->got, p->sum, p->magnitude, (struct compare_limit){ .roundings = roundings }, worst);
}

static void equal_products_agree(struct test *t)
{
    const struct product p = make(t);
    double worst = 0;
    CHECK(t, !compare_bits(shape, p.got, p.want).found);
    CHECK(t, !bound(&p, 1, &worst).found);
    CHECK(t, worst == 0);
    CHECK(t, !compare_gaps(shape, p.got, fill).found);
}

static void every_flipped_bit_is_found(struct test *t)
{
    const struct product p = make(t);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            for (int bit = 0; bit < 32; bit++) {
                struct product q = p;
                uint32_t bits;
                memcpy(&bits, &q.got[i * PITCH + j], sizeof bits);
                put_bits(&q.got[i * PITCH + j], bits ^ (uint32_t)1 << bit);
                const struct difference d = compare_bits(shape, q.got, q.want);
                if (!d.found || d.i != i || d.j != j || d.count != 1 || d.want_bits != bits ||
                    d.got_bits != (bits ^ (uint32_t)1 << bit))
                    FAIL(t, "bit %d of [%d,%d]: found %d at [%d,%d], count %d", bit, i, j, (int)d.found, (int)d.i,
                         (int)d.j, (int)d.count);
            }
}

static void zeros_and_nans_are_compared_by_bits(struct test *t)
{
    struct product p = make(t);
    p.got[0] = 0, p.want[0] = -0.0f;
    CHECK(t, compare_bits(shape, p.got, p.want).found);
    put_bits(&p.got[0], 0x7fc00000), put_bits(&p.want[0], 0x7fc00000);
    CHECK(t, !compare_bits(shape, p.got, p.want).found);
    put_bits(&p.got[0], 0xffc00000);
    CHECK(t, compare_bits(shape, p.got, p.want).found);
}

static void differences_are_counted_and_the_first_is_kept(struct test *t)
{
    struct product p = make(t);
    p.got[1 * PITCH + 6] += 8, p.got[3 * PITCH + 0] += 8, p.got[4 * PITCH + 6] += 8;
    const struct difference d = compare_bits(shape, p.got, p.want), e = bound(&p, 4, NULL);
    CHECK(t, d.found && d.i == 1 && d.j == 6 && d.count == 3);
    CHECK(t, e.found && e.i == 1 && e.j == 6 && e.count == 3 && e.allowed > 0);
}

/* One term: |got - sum| may be 2^-24 / (1 - 2^-24) of the magnitude, and no more. */
static void the_bound_is_sharp(struct test *t)
{
    struct product p = make(t);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            struct product q = p;
            double worst = 0;
            const double value = (double)p.got[i * PITCH + j], size = 1024;
            q.magnitude[i * N + j] = size;
            q.sum[i * N + j] = value + 0.999 * 0x1p-24 * size;
            CHECK(t, !bound(&q, 1, &worst).found);
            CHECK(t, worst > 0.99 && worst < 1);
            q.sum[i * N + j] = value - 1.001 * 0x1p-24 * size;
            CHECK(t, bound(&q, 1, &worst).found);
            CHECK(t, worst > 1 && worst < 1.01);
            CHECK(t, !bound(&q, 2, NULL).found);
        }
}

/* What lies below the normal numbers: an absolute part beside the bound, which worst leaves out.  No bound where sums
 * overflow. */
static void the_bound_has_a_least_part(struct test *t)
{
    struct product p = make(t);
    double worst = 0;
    p.sum[0] = (double)p.got[0] + 0x1.8p-24 * p.magnitude[0];
    const struct compare_limit just = { .roundings = 1, .least = 0x1p-25 * p.magnitude[0] };
    const struct compare_limit less = { .roundings = 1, .least = 0x1p-26 * p.magnitude[0] };
    CHECK(t, !compare_bound(shape, p.got, p.sum, p.magnitude, just, &worst).found && worst > 0.99 && worst < 1.01);
    CHECK(t, compare_bound(shape, p.got, p.sum, p.magnitude, less, NULL).found);
    p.magnitude[0] = (double)INFINITY, p.got[0] = NAN;
    CHECK(t, !compare_bound(shape, p.got, p.sum, p.magnitude, less, NULL).found);
}

/* got, the sum in units of 2^-149, and how often it may be cut: what is fine. */
static void cut_sums_are_subnormal_and_below(struct test *t)
{
    static const struct { uint32_t got; double units; int cuts; bool fine; } cases[] = {
        { 0x00000005, 5.25, 1, true },  { 0x00000006, 5.25, 1, false }, { 0x00000004, 5.25, 1, false },
        { 0x00000004, 5.25, 2, true },  { 0x00000003, 5.25, 2, false }, { 0x00000005, 5.75, 1, true },
        { 0x00000006, 5.75, 1, true },  { 0x00000007, 5.75, 1, false }, { 0x80000005, -5.75, 1, true },
        { 0x00000005, -5.75, 1, false }, { 0x00000005, 5, 1, true },     { 0x00000004, 5, 1, false },
        { 0x00000000, 0.75, 1, true },  { 0x00000001, 0.75, 1, true },  { 0x80000000, -0.25, 1, true },
        { 0x00000000, -0.75, 1, true }, { 0x80000000, -0.75, 1, false }, { 0x80000000, 0.75, 1, false },
        { 0x00000000, 1, 1, false },    { 0x80000000, 0, 1, false },    { 0x00800000, 8388608, 1, true },
        { 0x007fffff, 8388608, 1, false }, { 0x007fffff, 8388607.5, 1, true },
        { 0x00000000, NAN, 1, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct product p = make(t);
        p.sum[0] = cases[i].units * 0x1p-149, p.want[0] = (float)p.sum[0];
        put_bits(&p.got[0], cases[i].got);
        if (compare_cut(shape, p.got, p.want, p.sum, cases[i].cuts).found == cases[i].fine)
            FAIL(t, "0x%08x for %.8g units, %d cuts", (unsigned)cases[i].got, cases[i].units, cases[i].cuts);
    }
}

static void flushed_products(struct test *t)
{
    static const struct { float got; double sum, flushed; bool fine; } cases[] = {
        { 0, 0x1p-127, 0x1p-126, true },        { -0.0f, 0x1p-127, 0x1p-126, true }, { 0, 0x1p-126, 0x1p-126, false },
        { 0, 0x1p-127, 0, false },              { 0x1p-127f, 0x1p-127, 0, true },    { 1, 1.5, 0x1p-126, false },
        { 0x1p-126f, 0x1.8p-126, 0x1p-126, true }, { NAN, 0, 0x1p-126, false },
    };
    const struct compare_shape shape = { 1, 1, PITCH };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct product p = make(t);
        p.sum[0] = cases[i].sum, p.want[0] = (float)p.sum[0], p.got[0] = cases[i].got;
        if (compare_flushed(shape, p.got, p.want, p.sum, cases[i].flushed).found == cases[i].fine)
            FAIL(t, "%a for %a, flushed below %a", (double)cases[i].got, cases[i].sum, cases[i].flushed);
    }
}

static void nan_is_never_close(struct test *t)
{
    for (int place = 0; place < M * N; place++) {
        const int i = place / N, j = place % N;
        struct product p = make(t);
        double worst = 0;
        put_bits(&p.got[i * PITCH + j], 0x7fc00000);
        CHECK(t, bound(&p, 1000, &worst).found);
        CHECK(t, !(worst <= 1e30));                /* NaN or huge: it does not look like a small error */
        p = make(t);
        p.got[i * PITCH + j] = INFINITY;
        CHECK(t, bound(&p, 1000, NULL).found);
    }
}

static void a_nan_sum_wants_the_canonical_nan(struct test *t)
{
    struct product p = make(t);
    p.sum[8] = -fabs((double)NAN), p.magnitude[8] = (double)NAN;     /* whichever NaN the sum is */
    static const struct { uint32_t bits; bool fine; } cases[] = {
        { 0x7fc00000, true },  { 0xffc00000, false }, { 0x7fc00001, false },
        { 0x7f800001, false }, { 0x7f800000, false }, { 0, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_bits(&p.got[1 * PITCH + 1], cases[i].bits);
        CHECK(t, bound(&p, 100, NULL).found != cases[i].fine);
    }
}

static void an_infinite_sum_wants_that_infinity(struct test *t)
{
    for (int negative = 0; negative < 2; negative++) {
        struct product p = make(t);
        const float infinity = negative ? -INFINITY : INFINITY;
        p.sum[8] = (double)infinity, p.magnitude[8] = (double)INFINITY;
        p.got[1 * PITCH + 1] = infinity;
        CHECK(t, !bound(&p, 100, NULL).found);
        p.got[1 * PITCH + 1] = -infinity;
        CHECK(t, bound(&p, 100, NULL).found);
        p.got[1 * PITCH + 1] = negative ? -FLT_MAX : FLT_MAX;
        CHECK(t, bound(&p, 100, NULL).found);
        p.got[1 * PITCH + 1] = NAN;
        CHECK(t, bound(&p, 100, NULL).found);
    }
}

static void every_gap_is_watched(struct test *t)
{
    for (int i = 0; i < M; i++)
        for (int j = N; j < PITCH; j++) {
            struct product p = make(t);
            p.got[i * PITCH + j] = 0;
            const struct difference d = compare_gaps(shape, p.got, fill);
            CHECK(t, d.found && d.i == i && d.j == j && d.count == 1);
            CHECK(t, !compare_bits(shape, p.got, p.want).found);
        }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(equal_products_agree), TEST(every_flipped_bit_is_found), TEST(zeros_and_nans_are_compared_by_bits),
        TEST(differences_are_counted_and_the_first_is_kept), TEST(the_bound_is_sharp),
        TEST(the_bound_has_a_least_part), TEST(cut_sums_are_subnormal_and_below),
        TEST(flushed_products), TEST(nan_is_never_close),
        TEST(a_nan_sum_wants_the_canonical_nan), TEST(an_infinite_sum_wants_that_infinity), TEST(every_gap_is_watched),
    };
    return TEST_MAIN(argc, argv, cases);
}
