/* Programmatic launches run beside the grid in front of them: what they see of it before griddepcontrol.wait, and
 * behind. */
#include "tests/support/harness.h"
#include "machine/core/report.h"
#include "machine/run/schedules.h"

/* Entries with a pointer: 64 words that a grid of two CTAs of 32 threads fills, then 64 words to which they are
 * copied. */
static const char head[] = ".version 8.3\n.target sm_90\n.address_size 64\n";
static const char entry[] =
    ".visible .entry %s(.param .u64 p)\n{\n.reg .b64 %%a<6>; .reg .b32 %%r<10>; .reg .pred %%p<4>;\n"
    "ld.param.u64 %%a0, [p]; mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%r2, %%r1, 32, %%r0; "
    "mad.wide.u32 %%a1, %%r2, 4, %%a0; setp.eq.u32 %%p0, %%r1, 0;\n%s\nret;\n}\n";

#define LAUNCH "griddepcontrol.launch_dependents;\n"
#define WAIT   "griddepcontrol.wait;\n"
#define LINGER "mov.u32 %r3, 0; LOOP: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 500; @%p1 bra LOOP;\n"
#define WRITE  "st.global.u32 [%a1], 7;\n"
#define READ   "ld.global.u32 %r4, [%a1];\n"
#define KEEP   "st.global.u32 [%a1+256], %r4;\n"
/* each thread adds to the word of its mirror image in the other CTA */
#define MIRROR \
    "xor.b32 %r5, %r2, 63; mad.wide.u32 %a2, %r5, 4, %a0; ld.global.u32 %r4, [%a1]; mad.lo.u32 %r4, %r4, 3, %r2; " \
    "st.global.u32 [%a2+256], %r4;\n"
#define MIRROR_BACK \
    "xor.b32 %r5, %r2, 63; mad.wide.u32 %a2, %r5, 4, %a0; ld.global.u32 %r4, [%a1+256]; " \
    "mad.lo.u32 %r4, %r4, 5, %r2; st.global.u32 [%a2], %r4;\n"

static const struct { const char *name, *body; } kernels[] = {
    { "writes_late", LAUNCH LINGER WRITE },
    { "writes_and_ends", LINGER WRITE },
    { "writes_late_in_one", "@!%p0 bra OTHER;\n" LAUNCH "OTHER:\n" LINGER WRITE },
    { "reads_early", READ WAIT KEEP },
    { "reads", WAIT READ KEEP },
    { "polls", "POLL: ld.relaxed.gpu.global.u32 %r4, [%a1]; setp.ne.u32 %p1, %r4, 7; @%p1 bra POLL;\n" KEEP },
    { "mirrors", LAUNCH WAIT MIRROR },
    { "mirrors_back", LAUNCH LINGER WAIT MIRROR_BACK },
    { "traps", WAIT "trap;" },
    { "traps_late", LAUNCH LINGER "trap;" },
    { "traps_early", LINGER "trap;" },
};
enum { KERNELS = sizeof kernels / sizeof kernels[0], MOST = 8 };

static bool open_kernels(struct test *t, struct sim *sim)
{
    static char text[16384];
    int used = snprintf(text, sizeof text, "%s", head);
    for (int i = 0; i < KERNELS; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, entry, kernels[i].name, kernels[i].body);
    return sim_open(t, sim, "sm_90a", text);
}

struct trial { const char *names[MOST]; enum schedule schedule; uint64_t seed; uint32_t threads; bool apart, watched; };

static bool run(struct sim *sim, const struct trial *trial, uint32_t got[128])
{
    const uint64_t out = sim_buffer(sim, NULL, 512);
    struct launch launches[MOST];
    uint32_t count = 0;
    for (; count < MOST && trial->names[count] != NULL; count++)
        launches[count] = (struct launch){ .image = &sim->image,
                                           .function = ptx_function(sim->module, trial->names[count]),
                                           .grid = { 2, 1, 1 }, .block = { 32, 1, 1 },
                                           .parameters = (const uint8_t *)&out };
    struct machine_options *o = &sim->machine.options;
    o->schedule = trial->schedule, o->seed = trial->seed, o->threads = trial->threads;
    o->overlap = !trial->apart;
    if (!trial->watched) o->rule[RULE_DEPENDENT_GRID] = RULE_OFF;
    const bool ran = machine_run_all(&sim->machine, launches, count, &sim->report);
    sim_read(sim, out, got, 512);
    return ran;
}

enum sight { NOTHING_YET, ALL_OF_IT };

/* What the second kernel has read. */
static void sees(struct test *t, struct trial trial, enum sight sight)
{
    struct sim sim;
    uint32_t got[128], right = 0;
    if (!open_kernels(t, &sim)) return;
    if (!run(&sim, &trial, got)) FAIL(t, "%s, %s: %s", trial.names[0], trial.names[1], sim.report.text);
    for (int i = 0; i < 64; i++) CHECK(t, got[i] == 7), right += got[64 + i] == (sight == ALL_OF_IT ? 7 : 0);
    if (right != 64)
        FAIL(t, "%s, %s, %s, %u threads: %u of 64 words are as they should be", trial.names[0], trial.names[1],
             schedule_name(trial.schedule), trial.threads, right);
    sim_close(&sim);
}

static void a_read_before_the_wait_is_early(struct test *t)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        if (threads == 1)
            sees(t, (struct trial){ { "writes_late", "reads_early" }, SCHEDULE_EARLIEST, 1, 1, false, false },
                 NOTHING_YET);
        for (enum schedule s = SCHEDULE_RANDOM; s <= SCHEDULE_LATEST; s++) {
            sees(t, (struct trial){ { "writes_late", "reads" }, s, 1, threads, false, true }, ALL_OF_IT);
            sees(t, (struct trial){ { "writes_late", "reads_early" }, s, 1, threads, true, false }, ALL_OF_IT);
            sees(t, (struct trial){ { "writes_and_ends", "reads_early" }, s, 1, threads, false, false }, ALL_OF_IT);
            sees(t, (struct trial){ { "writes_late_in_one", "polls" }, s, 1, threads, false, false }, ALL_OF_IT);
            sees(t, (struct trial){ { "writes_late", "polls" }, s, 1, threads, false, false }, ALL_OF_IT);
        }
        sees(t, (struct trial){ { "writes_late", "reads_early" }, SCHEDULE_LATEST, 1, threads, false, false },
             ALL_OF_IT);
    }
}

/* All CTAs have to let it begin: of the one that ends without it all is seen. */
static void the_last_cta_decides(struct test *t)
{
    for (enum schedule s = SCHEDULE_RANDOM; s <= SCHEDULE_LATEST; s++) {
        struct sim sim;
        uint32_t got[128];
        if (!open_kernels(t, &sim)) return;
        const struct trial trial = { { "writes_late_in_one", "reads_early" }, s, 1, 2, false, false };
        if (!run(&sim, &trial, got)) FAIL(t, "%s", sim.report.text);
        for (int i = 32; i < 64; i++) CHECK(t, got[64 + i] == 7);
        sim_close(&sim);
    }
}

static void each_waits_for_the_one_before(struct test *t)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            struct sim sim;
            uint32_t got[128], first[64] = { 0 }, second[64] = { 0 };
            if (!open_kernels(t, &sim)) return;
            const struct trial trial = {
                { "mirrors", "mirrors_back", "mirrors", "mirrors_back", "mirrors", "mirrors_back", "mirrors" },
                seed <= 2 ? (enum schedule)seed : SCHEDULE_RANDOM, seed, threads, false, true
            };
            if (!run(&sim, &trial, got)) FAIL(t, "%s", sim.report.text);
            for (int turn = 0; turn < 7; turn++)
                for (uint32_t i = 0; i < 64; i++)
                    if (turn % 2 == 0) second[i ^ 63] = first[i] * 3 + i;
                    else first[i ^ 63] = second[i] * 5 + i;
            CHECK(t, memcmp(got, first, sizeof first) == 0 && memcmp(got + 64, second, sizeof second) == 0);
            sim_close(&sim);
        }
}

/* The reports: whoever comes later, the reader or the writer, is told. */
static void reports(struct test *t, struct trial trial, enum report_code code, const char *words)
{
    struct sim sim;
    uint32_t got[128];
    if (!open_kernels(t, &sim)) return;
    if (run(&sim, &trial, got) || sim.report.code != code || strstr(sim.report.text, words) == NULL)
        FAIL(t, "%s, %s, %s: wanted \"%s\", got %s", trial.names[0], trial.names[1], schedule_name(trial.schedule),
             words, sim.report.text);
    sim_close(&sim);
}

static void what_is_wrong_is_reported(struct test *t)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        for (uint64_t seed = 1; seed <= 6; seed++)
            reports(t, (struct trial){ { "writes_late", "reads_early" }, SCHEDULE_RANDOM, seed, threads, false, true },
                    REPORT_RACE, "griddepcontrol.wait");
        reports(t, (struct trial){ { "writes_late", "reads_early" }, SCHEDULE_LATEST, 1, threads, false, true },
                REPORT_RACE, "written by kernel writes_late, launched before");
        reports(t, (struct trial){ { "writes_late", "traps" }, SCHEDULE_RANDOM, 1, threads, false, true }, REPORT_TRAP,
                "kernel traps");
        reports(t, (struct trial){ { "writes_late", "traps_early" }, SCHEDULE_RANDOM, 1, threads, false, true },
                REPORT_TRAP, "kernel traps_early");
        reports(t, (struct trial){ { "traps_late", "reads" }, SCHEDULE_RANDOM, 1, threads, false, true }, REPORT_TRAP,
                "kernel traps_late");
    }
    reports(t, (struct trial){ { "writes_late", "reads_early" }, SCHEDULE_EARLIEST, 1, 1, false, true }, REPORT_RACE,
            "overwrites the byte at global address");
    reports(t, (struct trial){ { "writes_late", "reads_early" }, SCHEDULE_EARLIEST, 1, 1, false, true }, REPORT_RACE,
            "read by kernel reads_early, launched behind this one");
}

static void schedules_disagree_on_early_reads(struct test *t)
{
    for (int early = 0; early < 2; early++) {
        struct sim sim;
        uint32_t got[128];
        if (!open_kernels(t, &sim)) return;
        sim.machine.options.schedules = 4;
        const struct trial trial = { { "writes_late", early ? "reads_early" : "reads" }, SCHEDULE_RANDOM, 1, 2, false,
                                     !early };
        const bool ran = run(&sim, &trial, got);
        if (early) CHECK(t, !ran && sim.report.code == REPORT_SCHEDULES);
        else if (!ran) FAIL(t, "%s", sim.report.text);
        sim_close(&sim);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(a_read_before_the_wait_is_early), TEST(the_last_cta_decides), TEST(each_waits_for_the_one_before),
        TEST(what_is_wrong_is_reported), TEST(schedules_disagree_on_early_reads),
    };
    return TEST_MAIN(argc, argv, cases);
}
