/* A launch under several schedules: what must agree agrees, what depends on the order of threads is reported, and the
 * report says how it is seen again. */
#include "tests/support/harness.h"
#include "machine/core/global_memory.h"

#include <stdlib.h>

/* Each thread takes a ticket: thread and ticket belong together differently under each schedule. */
static const char tickets[] = "mov.u32 %r1, %tid.x; atom.global.add.u32 %r2, [%rd60], 1; mul.wide.u32 %rd1, %r1, 4;\n"
                              "add.u64 %rd1, %rd1, %rd61; st.global.u32 [%rd1], %r2;\n";
/* The same, but what is written depends on the sum of all tickets alone. */
static const char sums[] = "mov.u32 %r1, %tid.x; atom.global.add.u32 %r2, [%rd60], %r1;\n";

struct setting {
    uint32_t schedules, threads;
};

static bool run(struct test *t, struct sim *sim, const char *text, struct setting s, uint32_t grid, uint32_t block,
                uint64_t out[2])
{
    if (!sim_open(t, sim, "sm_90a", text)) exit(1);
    sim->machine.options.schedules = s.schedules;
    sim->machine.options.threads = s.threads;
    sim->machine.options.check_races = false;
    out[0] = sim_buffer(sim, NULL, 4);
    out[1] = sim_buffer(sim, NULL, 4 * 1024);
    return sim_run(sim, "k", grid, block, 0, out, 2);
}

static void schedules_that_agree_run_from_the_same_memory(struct test *t)
{
    struct sim sim;
    uint64_t out[2];
    uint32_t sum = 0;
    CHECK(t, run(t, &sim, sums, (struct setting){ 20, 2 }, 4, 64, out));
    sim_read(&sim, out[0], &sum, 4);
    CHECK(t, sum == 4 * 64 * 63 / 2); /* and not twenty times that */
    CHECK(t, sim.machine.options.seed == t->seed && sim.machine.grids == 1);
    sim_close(&sim);
}

static const uint8_t *bytes_of(struct sim *sim, uint64_t address)
{
    return global_host(&sim->machine.memory, address, 4 * 1024);
}

/* What the two lines "repeat" of a report say. */
static bool read_repeat(const char **text, enum schedule *schedule, uint64_t *seed)
{
    const char *at = strstr(*text, "  repeat ");
    if (at == NULL) return false;
    char name[16];
    unsigned long long number;
    const char *values = strstr(at, "CUDASIM_SCHEDULE=");
    if (values == NULL || sscanf(values, "CUDASIM_SCHEDULE=%15s CUDASIM_SEED=%llu", name, &number) != 2) return false;
    *schedule = SCHEDULE_RANDOM;
    if (strcmp(name, "earliest") == 0) *schedule = SCHEDULE_EARLIEST;
    if (strcmp(name, "latest") == 0) *schedule = SCHEDULE_LATEST;
    *seed = number;
    *text = values;
    return true;
}

/* Bytes that one run leaves with the schedule and the seed of a report alone. */
static void bytes_alone(struct test *t, const char *text, enum schedule schedule, uint64_t seed, uint8_t *bytes)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    sim.machine.options.schedule = schedule;
    sim.machine.options.rule[RULE_CLUSTER_RACE] = RULE_OFF;
    sim.machine.options.seed = seed;
    sim.machine.options.threads = 1;
    uint64_t out[2] = { sim_buffer(&sim, NULL, 4), sim_buffer(&sim, NULL, 4 * 1024) };
    CHECK(t, sim_run(&sim, "k", 2, 256, 0, out, 2));
    memcpy(bytes, bytes_of(&sim, out[1]), 4 * 1024);
    sim_close(&sim);
}

static void a_difference_is_reported_and_can_be_repeated(struct test *t, uint32_t threads)
{
    struct sim sim;
    uint64_t out[2];
    CHECK(t, !run(t, &sim, tickets, (struct setting){ 20, threads }, 2, 256, out));
    CHECK(t, sim.report.code == REPORT_SCHEDULES);
    CHECK(t, strstr(sim.report.text, "leaves other bytes under another schedule: the first at offset ") != NULL);
    CHECK(t, strstr(sim.report.text, "kernel k") != NULL);
    CHECK(t, (strstr(sim.report.text, "CUDASIM_THREADS=1 CUDASIM_SCHEDULE") != NULL) == (threads > 1));
    const char *text = sim.report.text;
    enum schedule schedule[2];
    uint64_t seed[2];
    static uint8_t bytes[2][4 * 1024];
    for (int i = 0; i < 2; i++) {
        if (!read_repeat(&text, &schedule[i], &seed[i])) FAIL(t, "%s", sim.report.text);
        else bytes_alone(t, tickets, schedule[i], seed[i], bytes[i]);
    }
    unsigned offset = 0, one = 256, other = 256;
    const char *values = strstr(sim.report.sentence, "; from offset ");
    CHECK_OR_RETURN(t, values != NULL && sscanf(values, "; from offset %u: %2x", &offset, &one) == 2);
    CHECK_OR_RETURN(t, (values = strchr(values, ',')) != NULL && sscanf(values, ", %2x", &other) == 1);
    CHECK(t, bytes[0][offset] == one && bytes[1][offset] == other);
    CHECK(t, memcmp(bytes[0] + offset, bytes[1] + offset, 4) != 0 && memcmp(bytes[0], bytes[1], offset) == 0);
    sim_close(&sim);
}

static void on_one_thread(struct test *t) { a_difference_is_reported_and_can_be_repeated(t, 1); }
static void on_two_threads(struct test *t) { a_difference_is_reported_and_can_be_repeated(t, 2); }

/* A fault in a repetition carries its schedule and seed. */
static void a_report_says_how_it_is_repeated(struct test *t)
{
    struct sim sim;
    uint64_t out[2];
    CHECK(t, !run(t, &sim, "trap;", (struct setting){ 3, 1 }, 1, 1, out));
    CHECK(t, sim.report.code == REPORT_TRAP);
    CHECK(t, strstr(sim.report.text, "  repeat   CUDASIM_SCHEDULE=earliest CUDASIM_SEED=") != NULL);
    sim_close(&sim);
}

static void a_variable_is_named(struct test *t)
{
    struct sim sim;
    uint64_t out[2];
    static const char text[] =
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .global .align 4 .u32 winner[2];\n"
        ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<4>;\n"
        ".reg .pred %p<2>;\n"
        "mov.u32 %r1, %tid.x;\nst.relaxed.gpu.global.u32 [winner+4], %r1;\nret;\n}\n";
    CHECK(t, !run(t, &sim, text, (struct setting){ 20, 1 }, 1, 256, out));
    CHECK(t, strstr(sim.report.sentence, "the first at offset 4 of the 8 bytes") != NULL);
    CHECK(t, strstr(sim.report.sentence, " for winner; ") != NULL);
    sim_close(&sim);
}

/* What a kernel computes does not depend on how many host threads run its CTAs. */
static void results_do_not_depend_on_host_threads(struct test *t)
{
    static const char text[] = ".shared .align 4 .b32 s[64]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; "
                               "shl.b32 %r3, %r1, 2;\n"
                               "mov.u32 %r4, s; add.u32 %r5, %r4, %r3; mad.lo.u32 %r6, %r2, 64, %r1; "
                               "mul.lo.u32 %r7, %r6, %r6;\n"
                               "st.shared.u32 [%r5], %r7; bar.sync 0; xor.b32 %r8, %r3, 252; add.u32 %r8, %r8, %r4;\n"
                               "ld.shared.u32 %r9, [%r8]; mul.wide.u32 %rd1, %r6, 4; add.u64 %rd1, %rd1, %rd61;\n"
                               "st.global.u32 [%rd1], %r9; red.global.add.u32 [%rd60], %r9;\n";
    static uint8_t bytes[3][4 * 1024 + 4];
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct sim sim;
        uint64_t out[2];
        CHECK(t, run(t, &sim, text, (struct setting){ 1, threads }, 16, 64, out));
        sim_read(&sim, out[0], bytes[threads - 1], 4);
        sim_read(&sim, out[1], bytes[threads - 1] + 4, 4 * 1024);
        sim_close(&sim);
    }
    CHECK(t, bytes[0][4] != bytes[0][8]);
    CHECK(t, memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0 && memcmp(bytes[0], bytes[2], sizeof bytes[0]) == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(schedules_that_agree_run_from_the_same_memory),
        TEST(on_one_thread),
        TEST(on_two_threads),
        TEST(a_report_says_how_it_is_repeated),
        TEST(a_variable_is_named),
        TEST(results_do_not_depend_on_host_threads),
    };
    return TEST_MAIN(argc, argv, cases);
}
