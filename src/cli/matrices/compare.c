/* Comparing a product with what it must be, see compare.h. */
#include "compare.h"

#include <math.h>
#include <string.h>

enum { CANONICAL_NAN = 0x7fc00000 };

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void note(struct difference *difference, struct difference here)
{
    const int64_t count = difference->count + 1;
    if (!difference->found) *difference = here;
    difference->found = true, difference->count = count;
}

static void compare_words(struct difference *difference, int64_t i, int64_t j, float got, uint32_t want)
{
    if (bits_of(got) == want) return;
    note(difference, (struct difference){ .i = i, .j = j, .got = (double)got, .want = (double)float_of(want),
                                          .got_bits = bits_of(got), .want_bits = want });
}

struct difference compare_bits(struct compare_shape shape, const float *got, const float *want)
{
    struct difference difference = { 0 };
    for (int64_t i = 0; i < shape.m; i++)
        for (int64_t j = 0; j < shape.n; j++)
            compare_words(&difference, i, j, got[i * shape.pitch + j], bits_of(want[i * shape.n + j]));
    return difference;
}

struct difference compare_bound(struct compare_shape shape, const float *got, const double *sum,
                                const double *magnitude, struct compare_limit limit, double *worst)
{
    const double units = (double)limit.roundings * COMPARE_EPS, gamma = units / (1 - units);
    struct difference difference = { 0 };
    for (int64_t i = 0; i < shape.m; i++)
        for (int64_t j = 0; j < shape.n; j++) {
            const float here = got[i * shape.pitch + j];
            const double want = sum[i * shape.n + j], size = magnitude[i * shape.n + j];
            if (!isfinite(want)) {
                compare_words(&difference, i, j, here, isnan(want) ? CANONICAL_NAN : bits_of((float)want));
                continue;
            }
            if (isinf(size)) continue;
            const double least = limit.least + (limit.more != NULL ? limit.more[i * shape.n + j] : 0);
            const double error = fabs((double)here - want), allowed = gamma * size + least;
            if (!(error <= allowed))
                note(&difference, (struct difference) { .i = i, .j = j, .got = (double)here, .want = want,
                                                        .allowed = allowed,
                                                        .got_bits = bits_of(here), .want_bits = bits_of((float)want) });
            const double units_off = error <= least ? 0 : (error - least) / (COMPARE_EPS * size);
            if (worst != NULL && !(units_off <= *worst)) *worst = isnan(units_off) ? (double)INFINITY : units_off;
        }
    return difference;
}

/* Whether `got` is `sum`, below fp32's normal numbers, cut up to `cuts` times. */
static bool is_cut(uint32_t got, double sum, int cuts)
{
    const double units = fabs(sum) * 0x1p149, whole = floor(units);
    const uint32_t magnitude = got & 0x7fffffff;
    if (sum == 0 || !(units < 0x1p23) || (double)magnitude > whole || (double)magnitude <= units - cuts) return false;
    return magnitude == 0 ? got == 0 : (got >> 31 != 0) == (sum < 0);
}

struct difference compare_cut(struct compare_shape shape, const float *got, const float *want, const double *sum,
                              int cuts)
{
    struct difference difference = { 0 };
    for (int64_t i = 0; i < shape.m; i++)
        for (int64_t j = 0; j < shape.n; j++)
            if (!is_cut(bits_of(got[i * shape.pitch + j]), sum[i * shape.n + j], cuts))
                compare_words(&difference, i, j, got[i * shape.pitch + j], bits_of(want[i * shape.n + j]));
    return difference;
}

struct difference compare_flushed(struct compare_shape shape, const float *got, const float *want, const double *sum,
                                  double flushed)
{
    struct difference difference = { 0 };
    for (int64_t i = 0; i < shape.m; i++)
        for (int64_t j = 0; j < shape.n; j++)
            if (!(fabs((double)got[i * shape.pitch + j] - sum[i * shape.n + j]) < flushed))
                compare_words(&difference, i, j, got[i * shape.pitch + j], bits_of(want[i * shape.n + j]));
    return difference;
}

struct difference compare_gaps(struct compare_shape shape, const float *got, uint32_t fill)
{
    struct difference difference = { 0 };
    for (int64_t i = 0; i < shape.m; i++)
        for (int64_t j = shape.n; j < shape.pitch; j++)
            compare_words(&difference, i, j, got[i * shape.pitch + j], fill);
    return difference;
}
