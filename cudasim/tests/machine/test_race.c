/* Happens-before: each wrong kernel is reported whatever the schedule is; its right twin never. */
#include "tests/support/harness.h"

/* Registers: %r3 = tid, %r4 = 4 * tid, %r1 = address of s, %r5 = s + 4 * tid, %r6 = s + 4 * (tid ^ 32), %p1: tid ==
 * 0. */
static const char begin[] =
    ".shared .align 16 .b8 s[4096]; .shared .align 4 .b32 flag; mov.u32 %r3, %tid.x; shl.b32 %r4, %r3, 2; "
    "mov.u32 %r1, s;\n"
    "add.u32 %r5, %r1, %r4; xor.b32 %r7, %r4, 128; add.u32 %r6, %r1, %r7; setp.eq.u32 %p1, %r3, 0; mov.u32 %r8, "
    "flag;\n";

struct example {
    const char *what, *text;
    uint32_t block;
    enum report_code code;                /* REPORT_NONE: a right kernel */
    const char *words;
};

static const struct example examples[] = {
    { "neighbour with a barrier", "st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r9, [%r6];", 64, REPORT_NONE,
      "" },
    { "neighbour with a barrier on one side only",
      "st.shared.u32 [%r5], %r3; bar.sync 0; st.shared.u32 [%r5], %r3; ld.shared.u32 %r9, [%r6];", 64, REPORT_RACE,
      "the byte" },
    { "write after read with no barrier",
      "st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r9, [%r6]; st.shared.u32 [%r5], %r9;", 64, REPORT_RACE,
      "no barrier or other synchronisation" },
    { "write after read with a barrier",
      "st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r9, [%r6]; bar.sync 0; st.shared.u32 [%r5], %r9;", 64,
      REPORT_NONE, "" },
    { "two writers", "st.shared.u32 [%r1], %r3; setp.ge.u32 %p2, %r3, 32; @%p2 st.shared.u32 [%r1], %r3;", 64,
      REPORT_RACE, "overwrites the byte" },
    { "two writers of one value", "st.shared.u32 [%r1], 7; bar.sync 0; ld.shared.u32 %r9, [%r1];", 64, REPORT_NONE,
      "" },
    { "two writers of one value, and a reader", "st.shared.u32 [%r1], 7; bar.warp.sync -1; ld.shared.u32 %r9, [%r1];",
      64, REPORT_RACE, "the byte" },
    { "lanes of one instruction", "st.shared.u32 [%r1], %r3;", 32, REPORT_NONE, "" },
    { "lanes of a warp, no bar.warp.sync", "@%p1 st.shared.u32 [%r1], %r3; ld.shared.u32 %r9, [%r1];", 32, REPORT_RACE,
      "written by CTA rank 0 warp 0 lane 0" },
    { "lanes of a warp with bar.warp.sync",
      "@%p1 st.shared.u32 [%r1], %r3; bar.warp.sync -1; ld.shared.u32 %r9, [%r1];", 32, REPORT_NONE, "" },
    { "bytes of one word by two threads",
      "add.u32 %r9, %r1, %r3; st.shared.u8 [%r9], %r3; bar.warp.sync -1; ld.shared.u8 %r9, [%r9];", 64, REPORT_NONE,
      "" },
    { "atomics do not race", "@%p1 st.shared.u32 [%r1], 0; bar.sync 0; atom.shared.add.u32 %r9, [%r1], 1;", 96,
      REPORT_NONE, "" },
    { "a plain read of an atomic's word",
      "@%p1 st.shared.u32 [%r1], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra A; "
      "ld.shared.u32 %r9, [%r1]; bra B; A: red.shared.add.u32 [%r1], 1; B:",
      64, REPORT_RACE, "the byte at shared address" },
    { "a flag: release and acquire",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; "
      "R: ld.acquire.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; ld.shared.u32 %r9, [%r1]; bra E; "
      "W: @%p1 st.shared.u32 [%r1], 7; @%p1 st.release.cta.shared.u32 [%r8], 1; E:",
      64, REPORT_NONE, "" },
    { "a flag: relaxed with fences",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; "
      "R: ld.relaxed.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; fence.acq_rel.cta; "
      "ld.shared.u32 %r9, [%r1]; bra E; W: @%p1 st.shared.u32 [%r1], 7; fence.acq_rel.cta; "
      "@%p1 st.relaxed.cta.shared.u32 [%r8], 1; E:",
      64, REPORT_NONE, "" },
    { "a flag: the writer's fence is missing",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; "
      "R: ld.relaxed.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; fence.acq_rel.cta; "
      "ld.shared.u32 %r9, [%r1]; bra E; W: @%p1 st.shared.u32 [%r1], 7; @%p1 st.relaxed.cta.shared.u32 [%r8], 1; E:",
      64, REPORT_RACE, "reads the byte" },
    { "a flag: the reader's fence is missing",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; "
      "R: ld.relaxed.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; ld.shared.u32 %r9, [%r1]; bra E; "
      "W: @%p1 st.shared.u32 [%r1], 7; fence.acq_rel.cta; @%p1 st.relaxed.cta.shared.u32 [%r8], 1; E:",
      64, REPORT_RACE, "reads the byte" },
    { "a flag: a write behind the fence, and a read of what lies before it",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; "
      "R: ld.relaxed.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; fence.acq_rel.cta; "
      "ld.shared.u32 %r9, [%r1]; bra E; W: @%p1 st.shared.u32 [%r1], 7; fence.acq_rel.cta; "
      "@%p1 st.shared.u32 [%r1+8], 8; @%p1 st.relaxed.cta.shared.u32 [%r8], 1; E:",
      64, REPORT_NONE, "" },
    { "a flag: a write behind the fence is read",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; "
      "R: ld.relaxed.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; fence.acq_rel.cta; "
      "ld.shared.u32 %r9, [%r1+8]; bra E; W: @%p1 st.shared.u32 [%r1], 7; fence.acq_rel.cta; "
      "@%p1 st.shared.u32 [%r1+8], 8; @%p1 st.relaxed.cta.shared.u32 [%r8], 1; E:",
      64, REPORT_RACE, "reads the byte at shared address 0x408" },
    { "a flag: what another thread wrote is known before the fence",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 64; @%p2 bra W; "
      "R: ld.relaxed.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; fence.acq_rel.cta; "
      "ld.shared.u32 %r9, [%r1+128]; bra E; W: st.shared.u32 [%r5], 7; bar.sync 1, 64; fence.acq_rel.cta; "
      "@%p1 st.shared.u32 [%r1], 8; @%p1 st.relaxed.cta.shared.u32 [%r8], 1; E:",
      96, REPORT_NONE, "" },
    { "a flag: what another thread wrote is known behind the fence only",
      "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 64; @%p2 bra W; "
      "R: ld.relaxed.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; fence.acq_rel.cta; "
      "ld.shared.u32 %r9, [%r1+128]; bra E; W: st.shared.u32 [%r5], 7; fence.acq_rel.cta; bar.sync 1, 64; "
      "@%p1 st.shared.u32 [%r1], 8; @%p1 st.relaxed.cta.shared.u32 [%r8], 1; E:",
      96, REPORT_RACE, "reads the byte" },
    { "a fenced mbarrier, another made behind the fence",
      "@%p1 mbarrier.init.shared.b64 [%r1], 1; fence.mbarrier_init.release.cluster; "
      "@%p1 mbarrier.init.shared.b64 [%r1+8], 1; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned; "
      "setp.eq.u32 %p2, %r3, 32; @%p2 mbarrier.arrive.shared.b64 %rd1, [%r1];",
      64, REPORT_NONE, "" },
    { "the mbarrier made behind the fence",
      "@%p1 mbarrier.init.shared.b64 [%r1], 1; fence.mbarrier_init.release.cluster; "
      "@%p1 mbarrier.init.shared.b64 [%r1+8], 1; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned; "
      "setp.eq.u32 %p2, %r3, 32; @%p2 mbarrier.arrive.shared.b64 %rd1, [%r1+8];",
      64, REPORT_RACE, "the byte at shared address 0x408" },
    { "the cluster's barrier waits for those who are left, whoever has arrived and exited",
      "@%p1 st.shared.u32 [%r1], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; barrier.cluster.arrive; "
      "setp.ne.u32 %p3, %r3, 32; @%p3 exit; barrier.cluster.wait; ld.shared.u32 %r9, [%r1]; exit; "
      "W: @%p1 st.shared.u32 [%r1], 7; barrier.cluster.arrive; barrier.cluster.wait;",
      96, REPORT_NONE, "" },
    { "one arrives at the cluster's barrier and does not wait",
      "@%p1 st.shared.u32 [%r1], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; barrier.cluster.arrive; "
      "setp.ne.u32 %p3, %r3, 32; @%p3 exit; ld.shared.u32 %r9, [%r1]; exit; "
      "W: @%p1 st.shared.u32 [%r1], 7; barrier.cluster.arrive; barrier.cluster.wait;",
      96, REPORT_RACE, "the byte at shared address 0x400" },
    { "named barriers order only who takes part",
      "st.shared.u32 [%r5], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 64; st.shared.u32 [%r5], %r3; @%p2 bar.sync 1, 64; "
      "@!%p2 bar.sync 2, 32; setp.ge.u32 %p3, %r3, 64; @%p3 ld.shared.u32 %r9, [%r1+128];",
      96, REPORT_RACE, "the byte" },
    { "global memory stored by an engine for all lanes of a warp",
      "st.shared.u32 [%r5], %r3; fence.proxy.async; bar.sync 0; setp.ge.u32 %p2, %r3, 32; @%p2 bra E; "
      "cp.async.bulk.global.shared::cta.bulk_group [%rd60], [%r1], 256; cp.async.bulk.commit_group; "
      "cp.async.bulk.wait_group 0; E:",
      64, REPORT_NONE, "" },
    { "global memory stored by an engine for two warps",
      "st.shared.u32 [%r5], %r3; fence.proxy.async; bar.sync 0; cp.async.bulk.global.shared::cta.bulk_group [%rd60], "
      "[%r1], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
      64, REPORT_ASYNC, "overwrites the byte at global address" },
    { "global memory with a barrier",
      "cvt.u64.u32 %rd1, %r4; add.u64 %rd2, %rd1, %rd60; cvt.u64.u32 %rd3, %r7; "
      "add.u64 %rd4, %rd3, %rd60; mov.u32 %r9, %ctaid.x; setp.ne.u32 %p2, %r9, 0; @%p2 exit; "
      "st.global.u32 [%rd2], %r3; bar.sync 0; ld.global.u32 %r9, [%rd4];",
      64, REPORT_NONE, "" },
    { "global memory with no barrier",
      "cvt.u64.u32 %rd1, %r4; add.u64 %rd2, %rd1, %rd60; cvt.u64.u32 %rd3, %r7; "
      "add.u64 %rd4, %rd3, %rd60; mov.u32 %r9, %ctaid.x; setp.ne.u32 %p2, %r9, 0; @%p2 exit; "
      "st.global.u32 [%rd2], %r3; bar.sync 0; st.global.u32 [%rd4], %r3; ld.global.u32 %r9, [%rd2];",
      64, REPORT_RACE, "at global address" },
    { "a producer arrives, a consumer waits",
      "setp.lt.u32 %p2, %r3, 32; @%p2 bra P; bar.sync 1, 64; ld.shared.u32 %r9, [%r6]; bra E; "
      "P: st.shared.u32 [%r5], %r3; bar.arrive 1, 64; E:",
      64, REPORT_NONE, "" },
};

static bool run(struct test *t, const struct example *e, uint64_t seed, enum schedule schedule, struct report *report)
{
    char text[4096];
    struct sim sim;
    snprintf(text, sizeof text, "%s%s", begin, e->text);
    if (!sim_open(t, &sim, "sm_90a", text)) return true;
    sim.machine.options.seed = seed;
    sim.machine.options.schedule = schedule;
    sim.machine.options.rule[RULE_CLUSTER_RACE] = RULE_OFF;       /* both CTAs write to the same places */
    const uint64_t out = sim_buffer(&sim, NULL, 4096);
    const bool ok = sim_run(&sim, "k", 2, e->block, 0, &out, 1);
    *report = sim.report;
    sim_close(&sim);
    return ok;
}

static enum schedule schedule_of(uint64_t i)
{
    return i == 0 ? SCHEDULE_EARLIEST : i == 1 ? SCHEDULE_LATEST : SCHEDULE_RANDOM;
}

static void every_schedule_tells_the_same(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *e = &examples[i];
        const uint64_t schedules = e->code == REPORT_NONE ? 100 : 20;
        for (uint64_t s = 0; s < schedules; s++) {
            struct report report = { .code = REPORT_NONE };
            const bool ok = run(t, e, t->seed + s, schedule_of(s), &report);
            if (ok != (e->code == REPORT_NONE)
                || (!ok && (report.code != e->code || strstr(report.sentence, e->words) == NULL))) {
                FAIL(t, "%s, schedule %llu: %s", e->what, (unsigned long long)s, ok ? "no report" : report.text);
                break;
            }
        }
    }
}

/* The knowledge of one warp's lanes is one row again after each barrier: what a lane learns alone the others do not
 * know. */
static void what_one_lane_learns_the_others_do_not(struct test *t)
{
    static const struct example wrong = {
        "only lane 0 acquires",
        "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; setp.ne.u32 %p4, %r3, 32; "
        "@%p4 bra L; R: ld.acquire.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; "
        "L: ld.shared.u32 %r9, [%r1]; bra E; W: @%p1 st.shared.u32 [%r1], 7; @%p1 st.release.cta.shared.u32 [%r8], 1; "
        "E:",
        64, REPORT_RACE, "the byte"
    };
    static const struct example right = {
        "lane 0 acquires for its warp",
        "@%p1 st.shared.u32 [%r8], 0; bar.sync 0; setp.lt.u32 %p2, %r3, 32; @%p2 bra W; setp.ne.u32 %p4, %r3, 32; "
        "@%p4 bra L; R: ld.acquire.cta.shared.u32 %r9, [%r8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra R; "
        "L: bar.warp.sync -1; ld.shared.u32 %r9, [%r1]; bra E; W: @%p1 st.shared.u32 [%r1], 7; "
        "@%p1 st.release.cta.shared.u32 [%r8], 1; E:",
        64, REPORT_NONE, ""
    };
    struct report report;
    for (uint64_t s = 0; s < 20; s++) {
        CHECK(t, !run(t, &wrong, s, schedule_of(s), &report));
        if (!run(t, &right, s, schedule_of(s), &report)) FAIL(t, "%s", report.text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_schedule_tells_the_same),
                                              TEST(what_one_lane_learns_the_others_do_not) };
    return TEST_MAIN(argc, argv, cases);
}
