/* Timing several ways to do the same, in alternating rounds: a machine that slows down for a moment slows all of
 * them. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include <stdbool.h>

enum { MEASURE_ROUNDS = 1000 };

/* One of the things to time.  run returns false when it failed. */
struct contender {
    const char *name;
    bool (*run)(void *argument);
    void *argument;
    int calls;                            /* of one sample */
    int rounds;
    double seconds[MEASURE_ROUNDS];       /* of one call, by round */
    double wall, processor;               /* seconds of all rounds: by the clock, and of processor time */
};

/* Warms every contender up, chooses how many calls make a sample of at least sample_seconds, and takes one sample of
 * each in every round.  rounds <= MEASURE_ROUNDS.  Returns the index of a contender that failed, -1 when none did. */
int measure(struct contender *const *contenders, int count, int rounds, double sample_seconds);

double measure_best(const struct contender *contender);
double measure_median(const struct contender *contender);
/* How many times as fast `contender` is as `reference`, round by round, and of that the median. */
double measure_paired_ratio(const struct contender *reference, const struct contender *contender);

#endif
