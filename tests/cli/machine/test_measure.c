/* Timing: best, median, paired ratios, alternation, and a contender that fails. */
#include "test.h"
#include "cli/machine/measure.h"

#include <math.h>

static struct contender timed(int rounds, const double *seconds)
{
    struct contender contender = { .name = "timed", .rounds = rounds };
    memcpy(contender.seconds, seconds, (size_t)rounds * sizeof *seconds);
    return contender;
}

static void statistics(struct test *t)
{
    const struct contender odd = timed(5, (double[]) { 5, 1, 4, 2, 3 }), even = timed(4, (double[]) { 8, 2, 4, 6 });
    const struct contender one = timed(1, (double[]) { 7 });
    CHECK(t, measure_best(&odd) == 1 && measure_median(&odd) == 3);
    CHECK(t, measure_best(&even) == 2 && measure_median(&even) == 5);
    CHECK(t, measure_best(&one) == 7 && measure_median(&one) == 7);
    CHECK(t, odd.seconds[0] == 5);                   /* the order of rounds is kept */
}

/* The paired ratio compares the same moment: a slow round of both does not count. */
static void ratios_are_paired(struct test *t)
{
    const struct contender reference = timed(3, (double[]) { 2, 20, 4 }), twice = timed(3, (double[]) { 1, 10, 2 });
    CHECK(t, measure_paired_ratio(&reference, &twice) == 2);
    CHECK(t, measure_paired_ratio(&twice, &reference) == 0.5);
    const struct contender mixed = timed(3, (double[]) { 2, 5, 1 });
    CHECK(t, measure_paired_ratio(&reference, &mixed) == 4);
}

struct log { char order[256]; int calls; };
struct worker { struct log *log; char letter; int until; };

static bool work(void *argument)
{
    struct worker *worker = argument;
    if (worker->log->calls < 255) worker->log->order[worker->log->calls] = worker->letter;
    worker->log->calls++;
    return worker->until == 0 || --worker->until > 0;
}

static void rounds_alternate(struct test *t)
{
    struct log log = { .calls = 0 };
    struct worker a = { &log, 'a', 0 }, b = { &log, 'b', 0 };
    struct contender first = { .run = work, .argument = &a }, second = { .run = work, .argument = &b };
    CHECK(t, measure((struct contender *[]) { &first, &second }, 2, 3, 0) == -1);
    CHECK(t, first.calls == 1 && second.calls == 1 && first.rounds == 3);
    CHECK(t, log.calls >= 6 && strcmp(log.order + log.calls - 6, "ababab") == 0);
    for (int i = 0; i < 3; i++) CHECK(t, first.seconds[i] > 0 && second.seconds[i] > 0);
}

static void short_calls_are_repeated(struct test *t)
{
    struct log log = { .calls = 0 };
    struct worker a = { &log, 'a', 0 };
    struct contender only = { .run = work, .argument = &a };
    CHECK(t, measure((struct contender *[]) { &only }, 1, 2, 0.001) == -1);
    CHECK(t, only.calls > 10 && log.calls >= 2 * only.calls);
}

static void a_failure_is_named(struct test *t)
{
    for (int until = 1; until < 6; until++) {
        struct log log = { .calls = 0 };
        struct worker a = { &log, 'a', 0 }, b = { &log, 'b', until };
        struct contender first = { .run = work, .argument = &a }, second = { .run = work, .argument = &b };
        CHECK(t, measure((struct contender *[]) { &first, &second }, 2, 10, 0) == 1);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(statistics),         TEST(ratios_are_paired), TEST(rounds_alternate), TEST(short_calls_are_repeated),
        TEST(a_failure_is_named),
    };
    return TEST_MAIN(argc, argv, cases);
}
