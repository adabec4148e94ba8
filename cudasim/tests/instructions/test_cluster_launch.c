/* clusterlaunchcontrol: every tile of a grid is worked on once, by whoever takes it, and what is reported of misuse. */
#include <stdlib.h>

#include "tests/support/schedules.h"
#include "machine/run/schedules.h"

enum { MOST_TILES = 256 };

/* Threads of a CTA: %r1, the first has !%p1.  The response at [%r3], its mbarrier at [%r2]; the tile in %r10 to
 * %r12. */
#define BEGIN \
    ".shared .align 16 .b8 r[32]; .shared .align 8 .b64 bar; mov.u32 %r1, %tid.x; mov.u32 %r2, bar; mov.u32 %r3, r; " \
    "setp.ne.u32 %p1, %r1, 0; mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ctaid.y; mov.u32 %r12, %ctaid.z; mov.u32 %r20, " \
    "0; " \
    "@%p1 bra READY; mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; " \
    "READY: barrier.cluster.arrive; barrier.cluster.wait;\n"
/* p0[tile] += 1; p1 += 1 for each that was taken over. */
#define WORK \
    "mov.u32 %r13, %nctaid.x; mov.u32 %r14, %nctaid.y; mad.lo.u32 %r15, %r12, %r14, %r11; mad.lo.u32 %r15, %r15, " \
    "%r13, %r10; " \
    "mul.wide.u32 %rd1, %r15, 4; add.u64 %rd1, %rd1, %rd60; @!%p1 red.global.add.u32 [%rd1], 1;\n"
#define EXPECT "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 _, [%r2], 16;\n"
#define TRY    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r3], [%r2];\n"
#define TRY_ALL \
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 " \
    "[%r3], [%r2];\n"
#define WAIT(label) \
    label ": mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], %r20; @!%p2 bra " label \
          "; xor.b32 %r20, %r20, " \
          "1;\n"
#define READ  "ld.shared.b128 %q1, [%r3];\n"
#define QUERY "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p3, %q1;\n"
#define FENCE "fence.proxy.async.shared::cta;\n"

/* One CTA a cluster.  The coordinates by one instruction, or by three. */
#define LOOP(get) \
    BEGIN "LOOP: bar.sync 0; @%p1 bra GO;\n" EXPECT TRY "GO:\n" WORK WAIT("W") READ QUERY \
        "@!%p3 bra END;\n" get "@!%p1 red.global.add.u32 [%rd61], 1;\n" FENCE "bra LOOP; END:"
#define GET_ALL "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r10, %r11, %r12, _}, %q1;\n"
#define GET_EACH \
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r10, %q1; " \
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r11, %q1; " \
    "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r12, %q1;\n"

/* A cluster, as the manual's example does it, relaxed arrivals and all: its first CTA asks for all. */
#define CLUSTER_LOOP \
    BEGIN "barrier.cluster.arrive.relaxed;\nLOOP: barrier.cluster.wait; @%p1 bra GO;\n" EXPECT \
          "mov.u32 %r16, %cluster_ctarank; setp.eq.u32 %p4, %r16, 0;\n@%p4 " TRY_ALL "GO:\n" WORK WAIT("W") READ QUERY \
        "@!%p3 bra END;\n" GET_ALL \
        "mov.u32 %r17, %cluster_ctaid.x; add.u32 %r10, %r10, %r17; mov.u32 %r17, %cluster_ctaid.y; " \
        "add.u32 %r11, %r11, %r17;\n@!%p1 red.global.add.u32 [%rd61], 1;\n" FENCE \
        "barrier.cluster.arrive.relaxed; bra LOOP; END:"

struct shape {
    uint32_t grid[3], cluster[3];
};

static bool run(struct sim *sim, const struct shape *shape, uint32_t block, const uint64_t parameters[4])
{
    struct launch launch = { .image = &sim->image,
                             .function = ptx_function(sim->module, "k"),
                             .block = { block, 1, 1 },
                             .parameters = (const uint8_t *)parameters };
    memcpy(launch.grid, shape->grid, sizeof launch.grid);
    memcpy(launch.cluster, shape->cluster, sizeof launch.cluster);
    return machine_run(&sim->machine, &launch, &sim->report);
}

/* How many tiles other clusters took over. */
static uint32_t check_tiles(struct test *t, const char *device, const char *text, const struct shape *shape,
                            uint64_t schedule, uint32_t threads)
{
    struct sim sim;
    uint32_t tile[MOST_TILES], taken = 0;
    if (!sim_open(t, &sim, device, text)) return 0;
    use_schedule(&sim, schedule);
    sim.machine.options.threads = threads;
    const uint64_t p[4] = { sim_buffer(&sim, NULL, sizeof tile), sim_buffer(&sim, NULL, 4) };
    if (!run(&sim, shape, 64, p))
        FAIL(t, "schedule %llu, %u threads: %s", (unsigned long long)schedule, threads, sim.report.text);
    sim_read(&sim, p[0], tile, sizeof tile);
    sim_read(&sim, p[1], &taken, 4);
    const uint32_t tiles = shape->grid[0] * shape->grid[1] * shape->grid[2];
    for (uint32_t i = 0; i < MOST_TILES; i++)
        if (tile[i] != (i < tiles))
            FAIL(t, "schedule %llu, %u threads: tile %u was worked on %u times", (unsigned long long)schedule, threads,
                 i, tile[i]);
    sim_close(&sim);
    return taken;
}

/* Some schedules leave nothing to take over, some everything but what began first. */
static void check_schedules(struct test *t, const char *device, const char *text, const struct shape *shape)
{
    const uint32_t tiles = shape->grid[0] * shape->grid[1] * shape->grid[2];
    const uint32_t ctas = shape->cluster[0] * shape->cluster[1] * shape->cluster[2];
    uint32_t least = tiles, most = 0;
    for (uint64_t s = 0; s < 100; s++) {
        const uint32_t taken = check_tiles(t, device, text, shape, s, 1 + (uint32_t)(s % 3 == 2) * 3);
        if (taken < least) least = taken;
        if (taken > most) most = taken;
    }
    if (least != 0 || most != tiles - ctas) FAIL(t, "%u to %u of %u tiles were taken over", least, most, tiles);
}

static void every_tile_is_worked_on_once(struct test *t)
{
    check_schedules(t, "sm_100a", LOOP(GET_ALL), &(struct shape){ { 23, 1, 1 }, { 1, 1, 1 } });
    check_schedules(t, "sm_120a", LOOP(GET_EACH), &(struct shape){ { 3, 4, 5 }, { 1, 1, 1 } });
}

static void clusters_take_over_clusters(struct test *t)
{
    check_schedules(t, "sm_100a", CLUSTER_LOOP, &(struct shape){ { 24, 1, 1 }, { 2, 1, 1 } });
    check_schedules(t, "sm_103a", CLUSTER_LOOP, &(struct shape){ { 4, 4, 2 }, { 2, 2, 1 } });
}

/* ---- misuse ---- */

#define ONCE(before, behind) BEGIN "bar.sync 0; @%p1 bra GO;\n" before TRY "GO:\n" WAIT("W") behind
/* Two requests into one buffer; between them what is said. */
#define TWICE(between) \
    BEGIN "bar.sync 0; @%p1 bra GO;\n" EXPECT TRY "GO:\n" WAIT("W") READ between \
        "bar.sync 0; @%p1 bra ON;\n" EXPECT TRY "ON:\n" WAIT("X")

/* The same in a cluster of two, whose CTAs arrive relaxed. */
#define RELAXED_TWICE(between) \
    BEGIN "mov.u32 %r16, %cluster_ctarank; setp.ne.u32 %p4, %r16, 0; @%p1 bra GO;\n" EXPECT "@!%p4 " TRY_ALL \
          "GO:\n" WAIT("W") READ between "barrier.cluster.arrive.relaxed; barrier.cluster.wait; @%p1 bra ON;\n" EXPECT \
                                         "@!%p4 " TRY_ALL \
                                         "ON:\n" WAIT("X") "barrier.cluster.arrive; barrier.cluster.wait;"

static const struct misuse misuses[] = {
    { ONCE(EXPECT, READ QUERY), NULL, 0, 1, 64 },
    { TWICE(FENCE), NULL, 0, 1, 64 },
    { TWICE("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;"), NULL, 0, 1, 64 },
    { TWICE(""), "which was read through the generic proxy", REPORT_PROXY + ALWAYS, 1, 64 },
    /* the fence of the thread that asks covers what it knows */
    { BEGIN "bar.sync 0; @%p1 bra GO;\n" EXPECT TRY "GO:\n" WAIT("W") READ "bar.sync 0; @%p1 bra ON;\n" FENCE EXPECT TRY
                                                                           "ON:\n" WAIT("X"),
      NULL, 0, 1, 64 },
    /* others still read while the next request is made */
    { BEGIN "bar.sync 0; @%p1 bra GO;\n" EXPECT TRY "GO:\n" WAIT("W") READ FENCE "@%p1 bra ON;\n" EXPECT TRY
                                                                                 "ON:\n" WAIT("X"),
      "no barrier or other synchronisation orders", REPORT_RACE, 1, 64 },
    /* the buffer was written by the generic proxy */
    { BEGIN "@%p1 bra GO; mov.u64 %rd5, 0; st.shared.u64 [%r3], %rd5;\n" EXPECT TRY "GO:\n" WAIT("W") READ QUERY,
      "was written through the generic proxy", REPORT_PROXY + ALWAYS, 1, 64 },
    { BEGIN "@%p1 bra GO; mov.u64 %rd5, 0; st.shared.u64 [%r3], %rd5;\n" FENCE EXPECT TRY "GO:\n" WAIT("W") READ QUERY,
      NULL, 0, 1, 64 },
    /* a response that has not been waited for */
    { BEGIN "@%p1 bra GO;\n" EXPECT TRY READ "GO:\n" WAIT("W") READ QUERY, "has not waited for it",
      REPORT_ASYNC + ALWAYS, 1, 64 },
    { BEGIN "@%p1 bra END;\n" EXPECT TRY "END:", "exited without waiting", REPORT_ASYNC, 1, 64 },
    { BEGIN "@%p1 bra GO;\n mbarrier.arrive.shared::cta.b64 _, [%r2];\n" TRY "GO:\n" WAIT("W") READ QUERY, "",
      REPORT_ASYNC, 1, 64 },
    { BEGIN "@%p1 bra GO;\n mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 32;\n" TRY "GO:\n" WAIT("W") READ QUERY,
      "", REPORT_DEADLOCK, 1, 64 },
    /* after an observed failure */
    { BEGIN "@%p1 bra END; mov.u32 %r21, 0;\nLOOP:" EXPECT TRY WAIT("W") READ QUERY FENCE
      "add.u32 %r21, %r21, 1; "
      "setp.lt.u32 %p5, %r21, 20; @%p5 bra LOOP; END:",
      "observed that a request failed", REPORT_ILLEGAL + ALWAYS, 1, 64 },
    { BEGIN "@%p1 bra END; mov.u32 %r21, 0;\nLOOP:" EXPECT TRY WAIT("W") READ QUERY FENCE
      "add.u32 %r21, %r21, 1; @!%p3 bra END; "
      "setp.lt.u32 %p5, %r21, 20; @%p5 bra LOOP; END:",
      NULL, 0, 1, 64 },
    /* places */
    { ONCE(EXPECT "add.u32 %r3, %r3, 8;\n", READ), "no multiple of 16", REPORT_MISALIGNED + ALWAYS, 1, 64 },
    { ONCE(EXPECT "add.u32 %r3, %r3, 16;\n", ""), NULL, 0, 1, 64 },
    { ONCE(EXPECT "add.u32 %r3, %r3, 4096;\n", ""), "", REPORT_OUT_OF_BOUNDS + ALWAYS, 1, 64 },
    { BEGIN "@%p1 bra GO;\n" EXPECT "add.u32 %r2, %r2, 8;\n" TRY "GO:", "", REPORT_OUT_OF_BOUNDS + ALWAYS, 1, 64 },
    { BEGIN "@%p1 bra GO;\n" EXPECT "mov.u32 %r2, %r3; add.u32 %r2, %r2, 16;\n" TRY "GO:", "no mbarrier.init",
      REPORT_BARRIER + ALWAYS, 1, 64 },
    { BEGIN "@%p1 bra GO; cvt.u64.u32 %rd5, %r3; cvta.shared.u64 %rd5, %rd5; cvt.u64.u32 %rd6, %r2; "
            "cvta.shared.u64 %rd6, %rd6;\n" EXPECT
            "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd5], [%rd6];\nGO:\n" WAIT("W")
                READ QUERY,
      NULL, 0, 1, 64 },
    { BEGIN "@%p1 bra GO;\n" EXPECT
            "clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 [%rd62], [%rd62];\nGO:",
      "not in the shared memory of its own CTA", REPORT_OUT_OF_BOUNDS + ALWAYS, 1, 64 },
    { BEGIN "mov.u64 %rd5, 1; mov.b128 %q1, {%rd5, %rd5};\n" QUERY, "no response of", REPORT_ILLEGAL + ALWAYS, 1, 64 },
    { BEGIN "mov.u64 %rd5, 0; mov.u64 %rd6, 1; mov.b128 %q1, {%rd5, %rd6};\n" QUERY, "no response of",
      REPORT_ILLEGAL + ALWAYS, 1, 64 },
    /* a program's own zeros are no cluster; a request behind them has failed nowhere */
    { BEGIN "mov.u64 %rd5, 0; mov.b128 %q1, {%rd5, %rd5};\n" QUERY "@%p3 trap; @%p1 bra GO;\n" EXPECT TRY
            "GO:\n" WAIT("W") READ QUERY,
      NULL, 0, 1, 64 },
    { BEGIN "mov.u64 %rd5, 0; mov.b128 %q1, {%rd5, %rd5};\n"
            "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r9, %q1;\n",
      "no response of", REPORT_ILLEGAL + ALWAYS, 1, 64 },
    /* clusters */
    { BEGIN "mov.u32 %r16, %cluster_ctarank; setp.ne.u32 %p4, %r16, 0; @%p1 bra GO;\n" EXPECT "@!%p4 " TRY_ALL
            "GO:\n" WAIT("W") READ QUERY "barrier.cluster.arrive; barrier.cluster.wait;",
      NULL, 0, 2, 64 },
    { BEGIN "mov.u32 %r16, %cluster_ctarank; setp.ne.u32 %p4, %r16, 0; @%p4 bra END; barrier.cluster.arrive; "
            "barrier.cluster.wait; @%p1 bra GO;\n" EXPECT TRY_ALL "GO:\n" WAIT("W") READ QUERY "END:",
      "of which rank 1 has exited", REPORT_ILLEGAL + ALWAYS, 2, 64 },
    { BEGIN "mov.u32 %r16, %cluster_ctarank; setp.ne.u32 %p4, %r16, 0; @%p4 bra END; @%p1 bra GO;\n" EXPECT TRY
            "GO:\n" WAIT("W") READ QUERY "END:",
      NULL, 0, 2, 64 },
    /* a relaxed arrival is enough behind the fence, and only there */
    { RELAXED_TWICE(FENCE), NULL, 0, 2, 64 },
    { RELAXED_TWICE(""), "no barrier or other synchronisation orders", REPORT_RACE, 2, 64 },
    /* to the CTA that asks alone */
    { BEGIN "mov.u32 %r16, %cluster_ctarank; setp.ne.u32 %p4, %r16, 0; @%p1 bra GO;\n" EXPECT "@!%p4 " TRY
            "GO:\n" WAIT("W") READ QUERY "barrier.cluster.arrive; barrier.cluster.wait;",
      "", REPORT_DEADLOCK, 2, 64 },
};

static void misuse_is_reported(struct test *t)
{
    check_misuses(t, "sm_100a", "", misuses, sizeof misuses / sizeof *misuses, NULL);
}

/* What get_first_ctaid gives for a request that failed is not defined: not the same under all schedules. */
static void a_failed_response_has_no_coordinates(struct test *t)
{
    uint32_t got[2] = { 0 };
    for (uint64_t s = 0; s < 2; s++) {
        struct sim sim;
        if (!sim_open(t, &sim, "sm_100a", ONCE(EXPECT, READ GET_ALL "@!%p1 st.global.u32 [%rd60], %r10;"))) return;
        use_schedule(&sim, 10 + s);
        const uint64_t p[4] = { sim_buffer(&sim, NULL, 4) };
        if (!run(&sim, &(struct shape){ { 1, 1, 1 }, { 1, 1, 1 } }, 32, p)) FAIL(t, "%s", sim.report.text);
        sim_read(&sim, p[0], &got[s], 4);
        sim_close(&sim);
    }
    CHECK(t, got[0] != got[1]);
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const struct {
        const char *device, *text;
    } forms[] = {
        { "sm_90a", TRY },
        { "sm_90a", QUERY },
        { "sm_100a", "clusterlaunchcontrol.try_cancel.shared::cta.mbarrier::complete_tx::bytes.b128 [%r3], [%r2];" },
        { "sm_100a", "clusterlaunchcontrol.try_cancel.async.shared::cluster.mbarrier::complete_tx::bytes.b128 [%r3], "
                     "[%r2];" },
        { "sm_100a", "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 _, %q1;" },
        { "sm_100a", "clusterlaunchcontrol.query_cancel.get_first_ctaid.b32.b128 %r1, %q1;" },
        { "sm_100a", "clusterlaunchcontrol.query_cancel.get_first_ctaid::w.b32.b128 %r1, %q1;" },
        { "sm_100a", "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, %r3}, %q1;" },
        { "sm_100a", "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %rd1;" },
    };
    struct sim sim;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        CHECK(t, sim_refused(t, &sim, forms[i].device, forms[i].text));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(every_tile_is_worked_on_once),         TEST(clusters_take_over_clusters),         TEST(misuse_is_reported),
        TEST(a_failed_response_has_no_coordinates), TEST(forms_that_do_not_exist_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
