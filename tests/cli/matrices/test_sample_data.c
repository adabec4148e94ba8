/* The made-up matrices: the same on every run, and with the statistics that are promised. */
#include "test.h"
#include "cli/matrices/sample_data.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 200, COLUMNS = 1000 };

static double moment(const float *data, int64_t count, int power)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += pow((double)data[i], power);
    return sum / (double)count;
}

/* Recorded once: the generator must not change, or yesterday's demo is no longer today's. */
static void bits_are_what_they_were(struct test *t)
{
    CHECK(t, sample_bits(1, 0, 0) == UINT64_C(0xb18a02f46d8d86c3));
    CHECK(t, sample_bits(1, 7, 12345678901) == UINT64_C(0x9cf9a85e24a9c82e));
}

static void bits_depend_on_everything(struct test *t)
{
    const uint64_t bits = sample_bits(5, 6, 7);
    CHECK(t, bits != sample_bits(6, 6, 7) && bits != sample_bits(5, 7, 7) && bits != sample_bits(5, 6, 8) &&
                 bits != sample_bits(6, 5, 7));
    for (uint64_t i = 0; i < 10000; i++) {
        const double u = sample_uniform(rnd(t), i, rnd(t));
        if (!(u >= 0 && u < 1)) FAIL(t, "%g is not in [0, 1)", u);
        if (!isfinite(sample_normal(rnd(t), i, rnd(t)))) FAIL(t, "an infinite normal number");
    }
}

static void weights_are_gaussian(struct test *t)
{
    float *data = malloc(ROWS * COLUMNS * sizeof *data);
    sample_weights(t->seed, ROWS, COLUMNS, data);
    const double variance = moment(data, ROWS * COLUMNS, 2);
    CHECK(t, fabs(moment(data, ROWS * COLUMNS, 1)) < 5 * sqrt(variance / (ROWS * COLUMNS)));
    CHECK(t, fabs(variance * COLUMNS - 1) < 0.03);
    CHECK(t, fabs(moment(data, ROWS * COLUMNS, 4) / (variance * variance) - 3) < 0.2);
    free(data);
}

/* One column in a hundred or so is 20 to 60 times as large; the others have Student's kurtosis, which is above Gauss'
 * 3. */
static void activations_have_outlier_channels_and_a_tail(struct test *t)
{
    float *data = malloc(ROWS * COLUMNS * sizeof *data), *column = malloc(ROWS * sizeof *column),
          *rest = malloc(ROWS * COLUMNS * sizeof *rest);
    int64_t outliers = 0, others = 0;
    sample_activations(t->seed, ROWS, COLUMNS, data);
    for (int64_t c = 0; c < COLUMNS; c++) {
        for (int64_t r = 0; r < ROWS; r++) column[r] = data[r * COLUMNS + c];
        const double size = sqrt(moment(column, ROWS, 2));
        if (size > 10) {
            outliers++;
            if (!(size < 120)) FAIL(t, "column %d has root mean square %g", (int)c, size);
        } else {
            for (int64_t r = 0; r < ROWS; r++) rest[others++] = column[r];
        }
        if (c == 5) CHECK(t, size > 10);
    }
    CHECK(t, outliers >= 3 && outliers <= 25);
    const double variance = moment(rest, others, 2);
    CHECK(t, fabs(variance - 5.0 / 3) < 0.1);      /* of Student's t with 5 degrees of freedom */
    CHECK(t, moment(rest, others, 4) / (variance * variance) > 4.5);
    free(data), free(column), free(rest);
}

static void the_seed_decides(struct test *t)
{
    float a[64], b[64], c[64];
    sample_activations(1, 4, 16, a), sample_activations(1, 4, 16, b), sample_activations(2, 4, 16, c);
    CHECK(t, memcmp(a, b, sizeof a) == 0 && memcmp(a, c, sizeof a) != 0);
    sample_weights(1, 4, 16, a), sample_weights(1, 4, 16, b), sample_weights(2, 4, 16, c);
    CHECK(t, memcmp(a, b, sizeof a) == 0 && memcmp(a, c, sizeof a) != 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(bits_are_what_they_were), TEST(bits_depend_on_everything), TEST(weights_are_gaussian),
        TEST(activations_have_outlier_channels_and_a_tail), TEST(the_seed_decides),
    };
    return TEST_MAIN(argc, argv, cases);
}
