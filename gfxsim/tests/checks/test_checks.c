/* Each check: a kernel that breaks it, with the report's kind and words, and a twin that does not. */
#include "support/object.h"
#include "support/simulate.h"

#include <stdlib.h>

enum { THREADS = 128 };
static const struct { const char *name; uint32_t words; uint32_t word[64]; } kernels[] = {
#include "kernels/golden_checks.h"
};

/* REPORT_NONE: it is right. */
struct expected { const char *kernel; enum report_code code; const char *words; };
static const struct expected all[] = {
    { "load_not_waited", REPORT_PENDING, "reads v2, which a load under way will write: no s_waitcnt vmcnt" },
    { "load_waited", REPORT_NONE, "" },
    { "second_load_not_waited", REPORT_PENDING, "reads v3" }, { "first_load_waited", REPORT_NONE, "" },
    { "overwrites_pending", REPORT_PENDING, "writes v2" }, { "overwrites_delivered", REPORT_NONE, "" },
    { "scalar_load_not_waited", REPORT_PENDING, "reads s8, which a scalar load" },
    { "scalar_load_waited", REPORT_NONE, "" },
    { "scalar_loads_counted", REPORT_PENDING, "reads s8, which a scalar load" },
    { "lds_read_not_waited", REPORT_PENDING, "no s_waitcnt lgkmcnt" }, { "lds_read_waited", REPORT_NONE, "" },
    { "no_barrier", REPORT_RACE, "no s_barrier of both lies between" }, { "barrier", REPORT_NONE, "" },
    { "barrier_without_wait", REPORT_RACE, "that wave has not waited for it" },
    { "overwrites_what_others_read", REPORT_RACE, "no s_barrier of both lies between" },
    { "overwrites_behind_barrier", REPORT_NONE, "" },
    { "to_lds_not_waited", REPORT_RACE, "this wave itself has not waited" }, { "to_lds_waited", REPORT_NONE, "" },
    { "to_lds_of_others", REPORT_RACE, "global_load_lds_dword" }, { "to_lds_of_others_waited", REPORT_NONE, "" },
    { "to_lds_over_own_read", REPORT_RACE, "this wave itself has not waited" },
    { "to_lds_over_own_read_waited", REPORT_NONE, "" },
    { "to_lds_at_the_end", REPORT_ASYNC, "ends the wave while a load from memory to LDS" },
    { "to_lds_without_m0", REPORT_UNINITIALISED, "as the LDS address (M0)" },
    { "undefined_store", REPORT_UNINITIALISED, "byte 0 of v2 as what it stores" },
    { "undefined_half", REPORT_UNINITIALISED, "byte 0 of v2 as what it stores" },
    { "undefined_half_unused", REPORT_NONE, "" },
    { "undefined_address", REPORT_UNINITIALISED, "byte 0 of v3 as an address" },
    { "undefined_branch", REPORT_UNINITIALISED, "branches on SCC" }, { "defined_branch", REPORT_NONE, "" },
    { "undefined_lds", REPORT_UNINITIALISED, "v2 as what it stores" },
    { "undefined_product", REPORT_UNINITIALISED, "v6 as B of a product" }, { "defined_product", REPORT_NONE, "" },
    { "outside_of_memory", REPORT_OUT_OF_BOUNDS,
      "the nearest allocation below has 516 bytes, of which this is number 516" },
    { "inside_of_memory", REPORT_NONE, "" }, { "inside_of_lds", REPORT_NONE, "" },
    { "outside_of_lds", REPORT_MISALIGNED, "no multiple of 4" },
      { "outside_of_lds_end", REPORT_OUT_OF_BOUNDS, "has 4096 bytes" },
    { "outside_of_arguments", REPORT_OUT_OF_BOUNDS, "behind the end of the kernel's arguments" },
    { "writes_arguments", REPORT_OUT_OF_BOUNDS, "in code or in the kernel's arguments" },
    { "outside_of_buffer", REPORT_NONE, "" },
    { "misaligned", REPORT_MISALIGNED, "no multiple of 8" }, { "aligned", REPORT_NONE, "" },
    { "barrier_missed", REPORT_BARRIER, "while wave 0 has ended without coming to it" },
    { "barriers_apart", REPORT_BARRIER, "where this wave waits, while wave 0 waits at" },
    { "product_stored_at_once", REPORT_HAZARD, "7 wait states behind the matrix instruction that writes it; 8" },
    { "product_stored_in_time", REPORT_NONE, "" }, { "product_as_a", REPORT_HAZARD, "8 are demanded" },
    { "product_as_c", REPORT_NONE, "" },
    { "lane_read_at_once", REPORT_HAZARD, "1 are demanded" }, { "lane_read_in_time", REPORT_NONE, "" },
    { "scalar_used_at_once", REPORT_HAZARD, "2 are demanded" },
    { "address_used_at_once", REPORT_HAZARD, "5 are demanded" },
    { "m0_used_at_once", REPORT_HAZARD, "the scalar instruction that writes M0; 1" },
    { "reciprocal_used_at_once", REPORT_HAZARD, "1 are demanded" }, { "reciprocal_used_in_time", REPORT_NONE, "" },
    { "dpp_at_once", REPORT_HAZARD, "2 are demanded" }, { "dpp_in_time", REPORT_NONE, "" },
    { "product_with_lanes_off", REPORT_DIVERGENCE, "EXEC is 0x1" },
    { "transposed_with_lanes_off", REPORT_DIVERGENCE, "EXEC is 0x1" },
    { "endless", REPORT_STEPS, "its limit: an endless loop" },
    { "unknown", REPORT_ILLEGAL, "0xbf9fffff" }, { "runs_away", REPORT_ILLEGAL, "outside of the code" },
    { "register_that_is_not_there", REPORT_ILLEGAL, "names v63, and the kernel's descriptor gives a wave 32" },
    { "atomics", REPORT_NONE, "" }, { "conflicts", REPORT_NONE, "" }, { "conflicts_none", REPORT_NONE, "" },
    { "partial_count", REPORT_PENDING, "reads v3" }, { "partial_count_enough", REPORT_NONE, "" },
    { "permute_not_waited", REPORT_PENDING, "no s_waitcnt lgkmcnt" }, { "permute_waited", REPORT_NONE, "" },
    { "wait_in_a_branch_not_taken", REPORT_PENDING, "writes v2" }, { "wait_behind_a_branch", REPORT_NONE, "" },
    { "lanes_that_are_off", REPORT_PENDING, "reads v2" }, { "lanes_that_are_off_waited", REPORT_NONE, "" },
    { "load_under_a_product", REPORT_PENDING, "writes v8" }, { "load_in_front_of_a_product", REPORT_NONE, "" },
    { "product_of_pending", REPORT_PENDING, "reads v4" },
    { "product_of_accumulators_pending", REPORT_PENDING, "reads a0" },
    { "load_over_a_product", REPORT_HAZARD, "8 are demanded" }, { "load_over_a_product_in_time", REPORT_NONE, "" },
    { "atomic_not_waited", REPORT_PENDING, "reads v2" }, { "buffer_load_not_waited", REPORT_PENDING, "reads v2" },
    { "scratch_not_waited", REPORT_PENDING, "no s_waitcnt vmcnt" }, { "scratch_waited", REPORT_NONE, "" },
    { "scratch_undefined", REPORT_UNINITIALISED, "v2 as what it stores" },
    { "outside_of_scratch", REPORT_OUT_OF_BOUNDS, "offset 0x3d of scratch memory, and a lane has 64" },
    { "flat_waited_by_one", REPORT_PENDING, "no s_waitcnt vmcnt(0) and lgkmcnt(0)" },
    { "flat_waited_by_both", REPORT_NONE, "" }, { "flat_makes_counts_useless", REPORT_PENDING, "reads v4" },
    { "to_lds_partial_count", REPORT_RACE, "this wave itself has not waited" },
    { "to_lds_partial_count_enough", REPORT_NONE, "" },
    { "to_lds_over_reads_of_others", REPORT_RACE, "has not waited for it" },
    { "to_lds_over_reads_of_others_waited", REPORT_NONE, "" },
    { "write_over_to_lds_of_others", REPORT_RACE, "global_load_lds_dword" },
    { "atomics_then_read", REPORT_RACE, "by 0x" }, { "atomics_then_barrier", REPORT_NONE, "" },
    { "atomics_on_what_nobody_wrote", REPORT_UNINITIALISED, "v3 as what it stores" },
    { "writes_code", REPORT_OUT_OF_BOUNDS, "in code or in the kernel's arguments" },
    { "to_lds_misaligned", REPORT_MISALIGNED, "LDS address 0x2 (M0)" },
    { "misaligned_short", REPORT_MISALIGNED, "no multiple of 2" },
    { "misaligned_wide", REPORT_MISALIGNED, "no multiple of 16" },
    { "transposed_with_all_lanes", REPORT_NONE, "" },
    { "lane_number_at_once", REPORT_HAZARD, "4 are demanded" }, { "lane_number_in_time", REPORT_NONE, "" },
    { "swap_at_once", REPORT_HAZARD, "2 are demanded" }, { "swap_in_time", REPORT_NONE, "" },
    { "exec_then_dpp", REPORT_HAZARD, "5 are demanded" },
    { "half_used_at_once", REPORT_HAZARD, "1 are demanded" }, { "half_used_in_time", REPORT_NONE, "" },
    { "product_in_part_as_c", REPORT_HAZARD, "6 are demanded" }, { "product_in_part_as_c_in_time", REPORT_NONE, "" },
    { "product_as_a_in_time", REPORT_NONE, "" }, { "address_used_in_time", REPORT_NONE, "" },
    { "m0_used_in_time", REPORT_NONE, "" },
    { "division_at_once", REPORT_HAZARD, "4 are demanded" }, { "division_in_time", REPORT_NONE, "" },
    { "index_undefined", REPORT_UNINITIALISED, "M0 as the index of registers" }, { "index_defined", REPORT_NONE, "" },
    { "index_outside", REPORT_ILLEGAL, "names v40" }, { "clamped_product", REPORT_ILLEGAL, "no saturated form" },
    { "loop_that_ends", REPORT_NONE, "" },
    { "lower_half_moved", REPORT_NONE, "" }, { "upper_half_moved", REPORT_UNINITIALISED, "byte 1" },
    { "skipped_store", REPORT_NONE, "" }, { "skipped_by_nobody", REPORT_UNINITIALISED, "v2" },
    { "rounding_not_there", REPORT_ILLEGAL, "sets FLOAT_MODE 0xf5" },
    { "hardware_not_there", REPORT_ILLEGAL, "it has MODE alone" },
    { "cmpx_then_dpp", REPORT_HAZARD, "5 are demanded" },
    { "cmpx_undefined", REPORT_UNINITIALISED, "writes EXEC" },
};

static size_t build(const char *name, uint8_t *file)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0) return object_build(file, kernels[i].word, kernels[i].words);
    return 0;
}

/* Runs a kernel in a machine; in: 4 bytes more than the threads read, out: exactly theirs. */
static bool start(struct simulation *s, struct test *t, const char *name, const struct machine_options *o, bool *ok)
{
    uint8_t *file = malloc(OBJECT_MOST);
    const size_t bytes = file == NULL ? 0 : build(name, file);
    if (bytes == 0) FAIL(t, "%s: no such kernel", name);
    const bool opened = bytes != 0 && simulation_open(s, t, file, bytes, o);
    free(file);
    if (!opened) return false;
    uint32_t numbers[THREADS + 1];
    for (uint32_t i = 0; i <= THREADS; i++) numbers[i] = 1000 + i;
    const uint64_t arguments[2] = { simulation_put(s, numbers, sizeof numbers), simulation_put(s, NULL, 4 * THREADS) };
    *ok = simulation_run(s, "k", 1, THREADS, 0, arguments, sizeof arguments);
    return true;
}

static void try(struct test *t, const struct expected *e, enum schedule schedule, uint64_t seed)
{
    struct simulation s = { 0 };
    struct machine_options o = test_options();
    bool ok;
    o.schedule = schedule, o.seed = seed, o.step_limit = 10000;
    if (start(&s, t, e->kernel, &o, &ok)) {
        if (e->code == REPORT_NONE && !ok) FAIL(t, "%s is right, and gives\n%s", e->kernel, s.report.text);
        else if (e->code != REPORT_NONE && ok) FAIL(t, "%s is wrong, and gives no report", e->kernel);
        else if (!ok && (s.report.code != e->code || strstr(s.report.text, e->words) == NULL))
            FAIL(t, "%s: wanted %s \"%s\", got\n%s", e->kernel, report_code_name(e->code), e->words, s.report.text);
    }
    simulation_close(&s);
}

static void every_check_catches_its_kernel_and_no_other(struct test *t)
{
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        try(t, &all[i], SCHEDULE_EARLIEST, 1);
        try(t, &all[i], SCHEDULE_LATEST, 1);
        for (uint64_t seed = 1; seed < 6; seed++) try(t, &all[i], SCHEDULE_RANDOM, seed);
    }
}

static void every_kernel_is_expected(struct test *t)
{
    const size_t count = sizeof kernels / sizeof kernels[0];
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < sizeof all / sizeof all[0] && strcmp(all[k].kernel, kernels[i].name) != 0) k++;
        if (k == sizeof all / sizeof all[0]) FAIL(t, "%s is in no list", kernels[i].name);
    }
}

static void switches_switch_checks_off(struct test *t)
{
    static const struct { const char *kernel; int which; } off[] = {
        { "no_barrier", 0 }, { "undefined_store", 1 }, { "product_stored_at_once", 2 }, { "barrier_missed", 3 } };
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        struct simulation s = { 0 };
        struct machine_options o = test_options();
        bool ok = false;
        o.check_races = off[i].which != 0;
        o.check_uninitialised = off[i].which != 1;
        o.check_hazards = off[i].which != 2;
        o.same_barrier = off[i].which != 3;
        if (start(&s, t, off[i].kernel, &o, &ok) && !ok) FAIL(t, "%s, switched off: %s", off[i].kernel, s.report.text);
        simulation_close(&s);
    }
}

/* What a descriptor asks of MODE and gfxsim does not do: other flushed denormals, another rounding. */
static void other_modes_are_refused(struct test *t)
{
    static const uint32_t modes[] = { 0x80, 0x30, 0xf1, 0xfc };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct simulation s;
        const struct machine_options o = test_options();
        uint8_t *file = malloc(OBJECT_MOST);
        const size_t bytes = file == NULL ? 0 : build("load_waited", file);
        const uint32_t rsrc1 = 7 | modes[i] << 12;
        if (bytes != 0) memcpy(file + 256 + 48, &rsrc1, 4);
        if (bytes != 0 && simulation_open(&s, t, file, bytes, &o)) {
            const uint64_t arguments[2] = { 0, 0 };
            CHECK(t, !simulation_run(&s, "k", 1, THREADS, 0, arguments, sizeof arguments));
            CHECK(t, s.report.code == REPORT_ILLEGAL && strstr(s.report.sentence, "FLOAT_MODE") != NULL);
            simulation_close(&s);
        } else FAIL(t, "no kernel");
        free(file);
    }
}

/* Late results are seen where a check is not: the wrong kernel's bytes differ between schedules. */
static void schedules_disagree_without_the_check(struct test *t)
{
    struct simulation s = { 0 };
    struct machine_options o = test_options();
    bool ok = true;
    o.check_races = o.check_uninitialised = false;
    o.schedules = 8;
    if (start(&s, t, "to_lds_not_waited", &o, &ok)) {
        CHECK(t, !ok);
        CHECK(t, s.report.code == REPORT_SCHEDULES);
    }
    simulation_close(&s);
}

static void bank_conflicts_are_counted(struct test *t)
{
    struct simulation s = { 0 };
    const struct machine_options o = test_options();
    bool ok;
    if (start(&s, t, "conflicts", &o, &ok)) CHECK(t, ok && s.machine.bank_conflicts == 15);
    simulation_close(&s);
    if (start(&s, t, "conflicts_none", &o, &ok))
        CHECK(t, ok && s.machine.bank_conflicts == 0 && s.machine.lds_accesses == 2);
    simulation_close(&s);
}

static void a_report_says_what_where_and_how_again(struct test *t)
{
    struct simulation s = { 0 };
    struct machine_options o = test_options();
    bool ok;
    o.schedule = SCHEDULE_LATEST;                                         /* wave 1 comes first */
    if (start(&s, t, "no_barrier", &o, &ok)) {
        static const char *const lines[] = { "gfxsim: race\n",
                                             " the byte at LDS address 0x",
                                             ", which wave ",
                                             "(ds_read_b32 v2, v3): no s_barrier of both lies between",
                                             "\n  where    kernel k, workgroup (0,0,0), wave ",
                                             "\n  code     0x",
                                             ": ds_write_b32 v1, v0\n",
                                             "\n  manual   CDNA4 ISA, Data Share Operations\n",
                                             "\n  again    GFXSIM_SCHEDULE=latest GFXSIM_SEED=1\n" };
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            if (strstr(s.report.text, lines[i]) == NULL) FAIL(t, "no \"%s\" in\n%s", lines[i], s.report.text);
    }
    simulation_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_check_catches_its_kernel_and_no_other),
                                              TEST(every_kernel_is_expected),
                                              TEST(switches_switch_checks_off),
                                              TEST(other_modes_are_refused), TEST(schedules_disagree_without_the_check),
                                              TEST(bank_conflicts_are_counted),
                                              TEST(a_report_says_what_where_and_how_again) };
    return TEST_MAIN(argc, argv, cases);
}
