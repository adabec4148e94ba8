/* Clocks, and what is made of samples. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double thread_seconds(void) { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }
double wall_seconds(void) { return seconds_of(CLOCK_MONOTONIC); }

double best_of(const double *seconds, int rounds)
{
    double best = INFINITY;
    for (int i = 0; i < rounds; i++) best = fmin(best, seconds[i]);
    return best;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double paired_ratio(const double *peer, const double *ours, int rounds)
{
    double ratios[MOST_ROUNDS];
    for (int i = 0; i < rounds; i++) ratios[i] = peer[i] / ours[i];
    qsort(ratios, (size_t)rounds, sizeof *ratios, ascending);
    return rounds % 2 == 1 ? ratios[rounds / 2] : (ratios[rounds / 2 - 1] + ratios[rounds / 2]) / 2;
}
