/* Sums near the middle between two fp32 numbers: S + a b is rounded once, by every kernel.
 * K is 2: S = a[0] b[0], exactly, and then D = fma(a[1], b[1], S).  The C library's fmaf is what they are held to. */
#include "blockscale.h"
#include "test.h"

#include <math.h>

enum { CASES = 4000 };

struct fused { float s, a, b; };

static float float_of(uint32_t bits) { float f; memcpy(&f, &bits, sizeof f); return f; }
static uint32_t bits_of(float f) { uint32_t bits; memcpy(&bits, &f, sizeof bits); return bits; }

/* a b is half a unit in the last place of s, times (1 + i 2^-23) (1 + j 2^-23) for small i and j: just below the
 * middle, just above it, or on it; a double cannot hold most of these sums. */
static struct fused near_tie(struct test *t)
{
    const int exponent = (int)rnd_between(t, -90, 90), half = exponent - 24, split = (int)rnd_between(t, -10, 10);
    const float s = ldexpf(1 + ldexpf((float)rnd_below(t, 1 << 23), -23), exponent) * (rnd_below(t, 2) ? 1 : -1);
    const float i = (float)rnd_between(t, -2, 2), j = (float)rnd_between(t, -2, 2);
    struct fused f = { s, ldexpf(1 + ldexpf(i, -23), half / 2 + split),
                       ldexpf(1 + ldexpf(j, -23), half - half / 2 - split) };
    if (rnd_below(t, 2)) f.a = -f.a;
    return f;
}

/* The same where D is subnormal or nearly so. */
static struct fused near_subnormal_tie(struct test *t)
{
    const float s = float_of((uint32_t)rnd_below(t, 3 << 23) | (uint32_t)rnd_below(t, 2) << 31);
    const float i = (float)rnd_between(t, -2, 2), j = (float)rnd_between(t, -2, 2);
    return (struct fused){ s, ldexpf(1 + ldexpf(i, -23), -75 + (int)rnd_between(t, -1, 2)),
                           ldexpf(1 + ldexpf(j, -23), -75) };
}

static struct fused any_numbers(struct test *t)
{
    const int exponent = (int)rnd_between(t, -60, 60);
    struct fused f;
    f.s = float_of((uint32_t)(exponent + 127) << 23 | (uint32_t)rnd_below(t, 1 << 23));
    f.a = float_of((uint32_t)(exponent / 2 + (int)rnd_between(t, -13, 1) + 127) << 23 | (uint32_t)rnd(t) >> 9
                   | (uint32_t)rnd_below(t, 2) << 31);
    f.b =
        float_of((uint32_t)(exponent - exponent / 2 + (int)rnd_between(t, -13, 1) + 127) << 23 | (uint32_t)rnd(t) >> 9);
    return f;
}

/* One product per case: rows of A times rows of B, of which the diagonal is looked at, in tiles of a few rows. */
static void multiply_and_compare(struct test *t, bsm_context *context, int kernel, const struct fused *cases, int count)
{
    enum { ROWS = 20 };
    float a[ROWS][2], b[ROWS][2], d[ROWS][ROWS];
    for (int first = 0; first < count; first += ROWS) {
        const int rows = count - first < ROWS ? count - first : ROWS;
        for (int i = 0; i < rows; i++) {
            a[i][0] = cases[first + i].s, b[i][0] = 1;
            a[i][1] = cases[first + i].a, b[i][1] = cases[first + i].b;
        }
        const bsm_matrix ma = { .struct_size = sizeof ma, .format = BSM_FORMAT_FP32, .rows = rows, .columns = 2,
                                .data = a };
        const bsm_matrix mb = { .struct_size = sizeof mb, .format = BSM_FORMAT_FP32, .rows = rows, .columns = 2,
                                .data = b };
        const bsm_matrix md = { .struct_size = sizeof md, .format = BSM_FORMAT_FP32, .rows = rows, .columns = rows,
                                .data = d, .pitch = ROWS };
        const bsm_matmul product = { .struct_size = sizeof product, .a = &ma, .b = &mb, .d = &md };
        CHECK_OR_RETURN(t, bsm_multiply(context, &product) == BSM_OK);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < rows; j++) {
                const float want = fmaf(a[i][1], b[j][1], a[i][0]);
                if (bits_of(d[i][j]) != bits_of(want))
                    FAIL(t, "%s, case %d, %d: %a + %a * %a gives %a, not %a", bsm_kernel_name(kernel), first + i,
                         first + j, (double)a[i][0], (double)a[i][1], (double)b[j][1], (double)d[i][j], (double)want);
            }
    }
}

static void with_every_kernel(struct test *t, struct fused make(struct test *))
{
    static struct fused cases[CASES];
    int kernels = 0;
    bsm_context *context;
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1 };
    CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK);
    for (int i = 0; i < CASES; i++) cases[i] = make(t);
    for (int kernel = 0; bsm_kernel_name(kernel) != NULL; kernel++) {
        if (!bsm_kernel_serves(context, kernel, BSM_FORMAT_FP32, BSM_FORMAT_FP32)) continue;
        CHECK(t, bsm_context_force_kernel(context, kernel) == BSM_OK);
        multiply_and_compare(t, context, kernel, cases, CASES);
        kernels++;
    }
    CHECK(t, kernels >= 1);
    bsm_context_destroy(context);
}

/* The cases are what they are said to be: a double in between would round many of them twice. */
static void doubles_would_fail(struct test *t)
{
    int wrong = 0;
    for (int i = 0; i < CASES; i++) {
        const struct fused f = near_tie(t);
        wrong += (float)((double)f.s + (double)f.a * (double)f.b) != fmaf(f.a, f.b, f.s);
    }
    CHECK(t, wrong > CASES / 20);
}

static void ties(struct test *t) { with_every_kernel(t, near_tie); }
static void subnormal_ties(struct test *t) { with_every_kernel(t, near_subnormal_tie); }
static void random_numbers(struct test *t) { with_every_kernel(t, any_numbers); }

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(doubles_would_fail), TEST(ties), TEST(subnormal_ties),
                                              TEST(random_numbers) };
    return TEST_MAIN(argc, argv, cases);
}
