/* Races between the CTAs or clusters of one grid: each wrong kernel is reported in whatever order they run; its right
 * twin never. */
#include "tests/support/harness.h"
#include "machine/core/report.h"
#include "machine/run/schedules.h"

/* %rd60: data, at 0 and further on; a flag at 512; a counter at 516.  %r1 CTA, %r2 thread, %p1 CTA 0, %p2 thread 0,
 * %p3 both. */
static const char begin[] =
    ".shared .align 16 .b8 s[256]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r1, 0; "
    "setp.eq.u32 %p2, %r2, 0; and.pred %p3, %p1, %p2; mad.wide.u32 %rd1, %r2, 4, %rd60; mov.u32 %r3, s;\n";
#define RELEASE "st.release.gpu.global.u32 [%rd60+512], 1;"
#define POLL(load) "W: ld." load ".global.u32 %r5, [%rd60+512]; setp.eq.u32 %p4, %r5, 0; @%p4 bra W;\n"
#define MAIN(writer, reader) "@!%p2 bra END; @!%p1 bra READ;\n" writer " bra END;\nREAD: " reader "\nEND:"
#define FILL "mad.lo.u32 %r4, %r2, 4, %r3; st.shared.u32 [%r4], %r1; fence.proxy.async; bar.sync 0; @!%p2 bra END;\n"
#define BULK(operation) FILL operation " [%rd60], [%r3], 128; cp.async.bulk.commit_group; " \
                        "cp.async.bulk.wait_group 0; END:"
#define STORE "cp.async.bulk.global.shared::cta.bulk_group"
#define ADD   "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
#define LOAD \
    ".shared .align 8 .b64 bar; @!%p2 bra END; @%p1 bra WRITE; mov.u32 %r7, bar; mbarrier.init.shared.b64 [%r7], 1; " \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r7], 128; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx" \
    "::bytes [%r3], [%rd60], 128, [%r7];\nV: mbarrier.try_wait.parity.shared.b64 %p5, [%r7], 0; @!%p5 bra V; " \
    "bra END;\nWRITE: st.global.u32 [%rd60+"

static const struct example { const char *what, *text; uint32_t ctas; bool races; } examples[] = {
    { "each CTA its own", "mad.wide.u32 %rd2, %r1, 128, %rd1; st.global.u32 [%rd2], %r1;", 4, false },
    { "two writers", "st.global.u32 [%rd1], %r1;", 2, true },
    { "two writers of one value", "st.global.u32 [%rd1], 7;", 2, false },
    { "neighbouring bytes",
      "@%p2 cvt.u64.u32 %rd2, %r1; @%p2 add.u64 %rd2, %rd2, %rd60; @%p2 st.global.u8 [%rd2], %r1;",
      4, false },
    { "a writer and a reader", "@%p1 st.global.u32 [%rd1], 7; @!%p1 ld.global.u32 %r5, [%rd1];", 2, true },
    { "readers", "ld.global.u32 %r5, [%rd1];", 4, false },
    { "atomics", "red.global.add.u32 [%rd60], 1;", 4, false },
    { "an atomic and a weak read", "@%p1 red.global.add.u32 [%rd60], 1; @!%p1 ld.global.u32 %r5, [%rd60];", 2, true },
    { "relaxed and volatile",
      "@%p1 st.relaxed.gpu.global.u32 [%rd60], 1; @!%p1 ld.volatile.global.u32 %r5, [%rd60];", 2, false },
    { "release and acquire",
      MAIN("st.global.u32 [%rd60], 7; " RELEASE, POLL("acquire.gpu") "ld.global.u32 %r5, [%rd60];"), 2, false },
    { "what lies behind the release",
      MAIN(RELEASE " st.global.u32 [%rd60], 7;", POLL("acquire.gpu") "ld.global.u32 %r5, [%rd60];"), 2, true },
    { "relaxed with fences",
      MAIN("st.global.u32 [%rd60], 7; fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd60+512], 1;",
           POLL("relaxed.gpu") "fence.acq_rel.gpu; ld.global.u32 %r5, [%rd60];"), 2, false },
    { "the writer's fence is missing",
      MAIN("st.global.u32 [%rd60], 7; st.relaxed.gpu.global.u32 [%rd60+512], 1;",
           POLL("relaxed.gpu") "fence.acq_rel.gpu; ld.global.u32 %r5, [%rd60];"), 2, true },
    { "the reader's fence is missing",
      MAIN("st.global.u32 [%rd60], 7; fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd60+512], 1;",
           POLL("relaxed.gpu") "ld.global.u32 %r5, [%rd60];"), 2, true },
    { "the last CTA adds up",
      "mad.wide.u32 %rd2, %r1, 4, %rd60; @%p2 st.global.u32 [%rd2], %r1; membar.gl; @!%p2 bra END;\n"
      "atom.global.add.u32 %r5, [%rd60+516], 1; membar.gl; setp.ne.u32 %p4, %r5, 3; @%p4 bra END;\n"
      "ld.global.u32 %r6, [%rd60]; ld.global.u32 %r7, [%rd60+4]; ld.global.u32 %r8, [%rd60+8]; "
      "ld.global.u32 %r9, [%rd60+12]; END:", 4, false },
    { "the last CTA adds up, and nobody has a fence",
      "mad.wide.u32 %rd2, %r1, 4, %rd60; @%p2 st.global.u32 [%rd2], %r1; @!%p2 bra END;\n"
      "atom.global.add.u32 %r5, [%rd60+516], 1; setp.ne.u32 %p4, %r5, 3; @%p4 bra END;\n"
      "ld.global.u32 %r6, [%rd60]; ld.global.u32 %r7, [%rd60+4]; END:", 4, true },
    { "a barrier of the grid, twice",
      "mov.u32 %r9, 4; mad.wide.u32 %rd2, %r1, 4, %rd60; xor.b32 %r10, %r1, 3; mad.wide.u32 %rd3, %r10, 4, %rd60;\n"
      "TURN: @%p2 st.global.u32 [%rd2], %r1; bar.sync 0; @!%p2 bra MET; fence.acq_rel.gpu; "
      "red.relaxed.gpu.global.add.u32 [%rd60+516], 1;\nS: ld.relaxed.gpu.global.u32 %r5, [%rd60+516]; "
      "setp.lt.u32 %p4, %r5, %r9; @%p4 bra S; fence.acq_rel.gpu;\nMET: bar.sync 0; ld.global.u32 %r6, [%rd3]; "
      "bar.sync 0; @!%p2 bra MET2; fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%rd60+516], 1; "
      "add.u32 %r9, %r9, 4;\nS2: ld.relaxed.gpu.global.u32 %r5, [%rd60+516]; setp.lt.u32 %p4, %r5, %r9; @%p4 bra S2; "
      "fence.acq_rel.gpu; add.u32 %r9, %r9, 4;\nMET2: bar.sync 0; add.u32 %r11, %r11, 1; setp.lt.u32 %p5, %r11, 2; "
      "@%p5 bra TURN;", 4, false },
    { "engines that store", BULK(STORE), 2, true },
    { "engines that add", BULK(ADD), 2, false },
    { "an engine reads what another CTA writes", LOAD "64], 7; END:", 2, true },
    { "an engine reads beside it", LOAD "128], 7; END:", 2, false },
};

/* What a run with that schedule gives: order of CTAs on one host thread, and on several. */
static bool run(struct test *t, const struct example *e, uint64_t s, bool watched, struct report *report)
{
    static const struct { enum schedule schedule; uint32_t threads, sms; } ways[] = {
        { SCHEDULE_EARLIEST, 1, 4 }, { SCHEDULE_LATEST, 1, 4 }, { SCHEDULE_RANDOM, 1, 4 }, { SCHEDULE_RANDOM, 2, 4 },
    };
    struct sim sim;
    char text[8192];
    snprintf(text, sizeof text, "%s%s", begin, e->text);
    if (!sim_open(t, &sim, "sm_90a", text)) return false;
    sim.machine.options.schedule = ways[s % 4].schedule, sim.machine.options.threads = ways[s % 4].threads;
    sim.machine.options.seed = s;
    if (!watched) sim.machine.options.rule[RULE_CLUSTER_RACE] = RULE_OFF;
    const uint64_t out = sim_buffer(&sim, NULL, 1024);
    const bool ran = sim_run(&sim, "k", e->ctas, 32, 0, &out, 1);
    *report = sim.report;
    sim_close(&sim);
    return ran;
}

static void every_order_tells_the_same(struct test *t)
{
    struct report report;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        for (uint64_t s = 0; s < 12; s++) {
            /* of two host threads neither may see the other's mark yet: a race may be missed there, never invented */
            const bool ran = run(t, e, s, true, &report), several = s % 4 == 3;
            if (!e->races && !ran) FAIL(t, "%s, schedule %d: %s", e->what, (int)s, report.text);
            if (e->races && ran && !several) FAIL(t, "%s, schedule %d: no report", e->what, (int)s);
            if (e->races && !ran && strstr(report.text, "rule     cluster-race") == NULL)
                FAIL(t, "%s, schedule %d: %s", e->what, (int)s, report.text);
        }
        if (!run(t, e, 0, false, &report)) FAIL(t, "%s, off: %s", e->what, report.text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_order_tells_the_same) };
    return TEST_MAIN(argc, argv, cases);
}
