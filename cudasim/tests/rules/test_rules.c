/* Rules and their levels: a kernel that breaks one is stopped, or told of once and goes on with the effect that its
 * right twin has, or goes on silently; the twin breaks nothing. */
#include "examples.h"

#include "machine/async/tensor_map.h"
#include "machine/check/dependent.h"
#include "machine/run/launch.h"
#include "machine/run/schedules.h"
#include "tests/support/harness.h"

#include <stdlib.h>

enum { SCHEDULES = 20 };

static char told[4096];
static uint32_t tellings;
static void tell(const char *text)
{
    tellings++;
    snprintf(told, sizeof told, "%s", text);
}

struct outcome {
    bool ran, left;                       /* to its end; the right numbers */
    uint32_t tellings;
    uint64_t count, others;               /* of the rule; of all others */
};

static uint64_t map_over(struct sim *sim, uint64_t numbers)
{
    _Alignas(64) uint8_t map[TENSOR_MAP_BYTES];
    char sentence[256];
    const uint64_t extent = NUMBERS;
    const uint32_t box = BOX, step = 1;
    if (tensor_map_encode_tiled(sim->machine.device, map, TENSOR_MAP_U32, 1, numbers, &extent, NULL, &box, &step, 0, 0,
                                0, 0, sentence, sizeof sentence) != 0)
        abort();
    return sim_buffer(sim, map, sizeof map);
}

/* One launch, or a chain of two. */
static bool launch(struct sim *sim, const struct rule_example *e, const uint64_t parameters[4])
{
    const uint64_t first[4] = { parameters[0], parameters[3], parameters[2], parameters[3] },
                   second[4] = { parameters[3], parameters[1], parameters[2], parameters[3] };
    struct launch l = { .image = &sim->image, .function = ptx_function(sim->module, "k"),
                        .grid = { e->ctas * (1 + e->more_clusters), 1, 1 },
                        .block = { e->block, 1, 1 }, .cluster = { e->ctas, 1, 1 },
                        .parameters = (const uint8_t *)(e->chained ? first : parameters) };
    if (!machine_run(&sim->machine, &l, &sim->report) || !e->chained) return sim->report.code == REPORT_NONE;
    const struct grids_in_flight flight = sim->machine.in_flight;
    l.parameters = (const uint8_t *)second;
    l.beside = &flight;
    return machine_run(&sim->machine, &l, &sim->report);
}

/* Twice on one machine: what goes on is told once. */
static struct outcome run(struct test *t, enum rule rule, const struct rule_example *e, const char *text,
                          const struct machine_options *options)
{
    struct outcome o = { .ran = false };
    struct rule_book book = { .tell = tell };
    struct sim sim;
    uint32_t numbers[NUMBERS], got[NUMBERS];
    const uint8_t zeros[SCRATCH_BYTES] = { 0 };
    for (uint32_t i = 0; i < NUMBERS; i++) numbers[i] = rule_example_number(i);
    if (!sim_open(t, &sim, e->device, text)) return o;
    const uint64_t in = sim_buffer(&sim, numbers, sizeof numbers), out = sim_buffer(&sim, zeros, sizeof got),
                   parameters[4] = { in, out, map_over(&sim, in), sim_buffer(&sim, zeros, sizeof zeros) };
    sim.machine.options = *options;
    sim.machine.rule_book = &book;
    tellings = 0;
    o.ran = launch(&sim, e, parameters) && launch(&sim, e, parameters);
    sim_read(&sim, out, got, sizeof got);
    o.left = rule_example_left(e, got);
    o.tellings = tellings;
    for (int i = 0; i < RULE_COUNT; i++) *(i == (int)rule ? &o.count : &o.others) += atomic_load(&book.count[i]);
    if (!o.ran) snprintf(told, sizeof told, "%s", sim.report.text);
    sim_close(&sim);
    return o;
}

static void a_rule_has_a_kernel_that_breaks_it_and_a_twin(struct test *t)
{
    for (int i = 0; i < RULE_COUNT; i++) {
        const struct rule_example *e = &rule_examples[i];
        if (e->wrong == NULL || e->right == NULL || e->results == 0)
            FAIL(t, "%s: no example in examples.c", rule_name((enum rule)i));
    }
}

static struct machine_options at_schedule(uint64_t number)
{
    struct machine_options options = machine_default_options();
    options.seed = number;
    options.schedule = number == 0 ? SCHEDULE_EARLIEST : number == 1 ? SCHEDULE_LATEST : SCHEDULE_RANDOM;
    return options;
}

static void check_levels(struct test *t, enum rule rule, const struct rule_example *e, uint64_t schedule)
{
    const char *name = rule_name(rule);
    struct machine_options options = at_schedule(schedule);
    char line[64];
    snprintf(line, sizeof line, "\n  rule     %s\n", name);
    rules_all(options.rule, RULE_STOP);
    struct outcome o = run(t, rule, e, e->right, &options);
    if (!o.ran || !o.left) FAIL(t, "%s: the right one: %s", name, o.ran ? "other numbers" : told);
    CHECK(t, o.count == 0 && o.others == 0 && o.tellings == 0);
    o = run(t, rule, e, e->wrong, &options);
    if (o.ran || strstr(told, line) == NULL) FAIL(t, "%s: stop: %s", name, o.ran ? "no report" : told);
    CHECK(t, o.count == 0 && o.others == 0 && o.tellings == 0);
    rules_all(options.rule, RULE_REPORT);
    o = run(t, rule, e, e->wrong, &options);
    if (!o.ran || !o.left || o.tellings != 1 || o.count < 2 || o.count % 2 != 0 || o.others != 0
        || strstr(told, line) == NULL)
        FAIL(t, "%s: report: %u told, %" PRIu64 " counted, %" PRIu64 " of other rules, %s numbers: %s", name,
             o.tellings, o.count, o.others, o.left ? "right" : "other", told);
    rules_all(options.rule, RULE_STOP);
    options.rule[rule] = RULE_OFF;
    o = run(t, rule, e, e->wrong, &options);
    if (!o.ran || !o.left) FAIL(t, "%s: off: %s", name, o.ran ? "other numbers" : told);
    CHECK(t, o.tellings == 0 && o.count == 0 && o.others == 0);
}

static void levels_decide_what_becomes_of_a_kernel(struct test *t)
{
    for (int i = 0; i < RULE_COUNT; i++)
        for (uint64_t s = 0; rule_examples[i].wrong != NULL && s < SCHEDULES; s++)
            check_levels(t, (enum rule)i, &rule_examples[i], s);
    for (uint64_t s = 0; s < SCHEDULES; s++) check_levels(t, RULE_TENSORMAP_FENCE, &acquire_example, s);
}

/* Without races watched no rule is. */
static void nothing_is_told_where_races_are_not_watched(struct test *t)
{
    for (int i = 0; i < RULE_COUNT; i++) {
        struct machine_options options = at_schedule(2);
        rules_all(options.rule, RULE_STOP);
        options.check_races = false;
        if (rule_examples[i].wrong == NULL) continue;
        const struct outcome o = run(t, (enum rule)i, &rule_examples[i], rule_examples[i].wrong, &options);
        if (!o.ran) FAIL(t, "%s: %s", rule_name((enum rule)i), told);
    }
}

static void words_are_read(struct test *t)
{
    uint8_t level[RULE_COUNT];
    const char *wrong = NULL;
    int length = 0;
    rules_default(level);
    CHECK(t, level[RULE_RACE] == RULE_STOP && level[RULE_READ_PROXY_FENCE] == RULE_REPORT);
    CHECK(t, rules_read(level, "", &wrong, &length));
    CHECK(t, rules_read(level, "race:off,read-proxy-fence:stop,ended-cta-read:report", &wrong, &length));
    CHECK(t, level[RULE_RACE] == RULE_OFF && level[RULE_READ_PROXY_FENCE] == RULE_STOP);
    CHECK(t, level[RULE_ENDED_CTA_READ] == RULE_REPORT && level[RULE_OPERATION_WAIT] == RULE_STOP);
    static const char *const refused[] = { "race", "race:", "race:of", "race:offf", ":off", "rac:off", "race:off:off",
                                           "race=off", ",", "race:off,,", "Race:off" };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (rules_read(level, refused[i], &wrong, &length)) FAIL(t, "%s is taken", refused[i]);
    CHECK(t, !rules_read(level, "race:off,races:off,race:stop", &wrong, &length));
    CHECK(t, length == 9 && strncmp(wrong, "races:off", 9) == 0);
}

static void a_book_tells_once_a_line(struct test *t)
{
    static struct rule_book book;
    char line[256];
    CHECK(t, !rule_book_line(&book, line, sizeof line));
    CHECK(t, rule_book_enter(&book, RULE_RACE, "k", 7) && !rule_book_enter(&book, RULE_RACE, "k", 7));
    CHECK(t, rule_book_enter(&book, RULE_RACE, "k", 8) && rule_book_enter(&book, RULE_RACE, "j", 7));
    CHECK(t, rule_book_enter(&book, RULE_OPERATION_WAIT, "k", 7));
    CHECK(t, rule_book_line(&book, line, sizeof line) && strcmp(line, "race 4, operation-wait 1") == 0);
    uint32_t shown = 3;
    for (uint32_t i = 0; i < 100; i++) shown += rule_book_enter(&book, RULE_RACE, "many", i);
    CHECK(t, shown == MOST_RULE_LINES);   /* the others are counted, and hide no other rule */
    CHECK(t, rule_book_enter(&book, RULE_OPERATION_WAIT, "k", 8));
    CHECK(t, rule_book_line(&book, line, sizeof line)
             && strcmp(line, "race 104 (16 lines shown, others not), operation-wait 2") == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(a_rule_has_a_kernel_that_breaks_it_and_a_twin),
                                              TEST(levels_decide_what_becomes_of_a_kernel),
                                              TEST(nothing_is_told_where_races_are_not_watched), TEST(words_are_read),
                                              TEST(a_book_tells_once_a_line) };
    return TEST_MAIN(argc, argv, cases);
}
