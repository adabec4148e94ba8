/* Timing in alternating rounds, see measure.h. */
#include "measure.h"
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seconds of `calls` calls; negative when one failed. */
static double sample(const struct contender *contender, int calls)
{
    const double start = cli_seconds();
    for (int i = 0; i < calls; i++)
        if (!contender->run(contender->argument)) return -1;
    return fmax(cli_seconds() - start, 1e-9);
}

int measure(struct contender *const *contenders, int count, int rounds, double sample_seconds)
{
    enum { CALLS_MAX = 100000 };
    for (int i = 0; i < count; i++) {
        struct contender *c = contenders[i];
        double once = sample(c, 1);                   /* touches the memory and makes the workspace */
        if (once >= 0 && once < sample_seconds) once = sample(c, 1);
        if (once < 0) return i;
        c->calls = (int)fmin(fmax(ceil(sample_seconds / once), 1), CALLS_MAX);
        c->rounds = rounds;
        c->wall = c->processor = 0;
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            struct contender *c = contenders[i];
            const double processor = cli_processor_seconds(), seconds = sample(c, c->calls);
            if (seconds < 0) return i;
            c->seconds[round] = seconds / c->calls;
            c->wall += seconds, c->processor += cli_processor_seconds() - processor;
        }
    return -1;
}

double measure_best(const struct contender *contender)
{
    double best = INFINITY;
    for (int i = 0; i < contender->rounds; i++) best = fmin(best, contender->seconds[i]);
    return best;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double measure_median(const struct contender *contender)
{
    double values[MEASURE_ROUNDS];
    memcpy(values, contender->seconds, sizeof values);
    return median(values, contender->rounds);
}

double measure_paired_ratio(const struct contender *reference, const struct contender *contender)
{
    double values[MEASURE_ROUNDS] = { 0 };
    for (int i = 0; i < contender->rounds; i++) values[i] = reference->seconds[i] / contender->seconds[i];
    return median(values, contender->rounds);
}
