/* Misused wgmma: each wrong kernel is reported within 20 schedules, and its right twin under none of 100. */
#include "tests/support/harness.h"
#include "machine/core/report.h"

/* A lies at s, 64 rows of 32 bytes without a swizzle; B at s + 2048, 8 or 16 rows.  %rd1, %rd2, %rd3: descriptors of A,
 * B, B with 16. %r1 = s, %r2 = tid, %r3 = warp, %r4 = s + 16 * tid, %r6: 16 bytes of the warp's own rows of A; %p1:
 * true, %p2: warp 3, %p4: thread 0. */
static const char begin[] =
    ".shared .align 1024 .b8 s[4096]; mov.u32 %r1, s; mov.u32 %r2, %tid.x; shr.u32 %r3, %r2, 5; shl.b32 %r4, %r2, 4; "
    "add.u32 %r4, %r4, %r1;\n"
    "and.b32 %r5, %r1, 0x3ffff; shr.u32 %r5, %r5, 4; cvt.u64.u32 %rd1, %r5; or.b64 %rd1, %rd1, 0x0000000800400000; "
    "add.u64 %rd2, %rd1, 128;\n"
    "and.b64 %rd2, %rd2, 0xffffffff0000ffff; or.b64 %rd2, %rd2, 0x0000000000080000; mov.u64 %rd3, %rd2; "
    "setp.ge.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r3, 3; setp.eq.u32 %p4, %r2, 0;\n"
    "and.b32 %r6, %r2, 16; shl.b32 %r6, %r6, 6; and.b32 %r7, %r2, 15; shl.b32 %r8, %r3, 4; add.u32 %r7, %r7, %r8; "
    "shl.b32 %r7, %r7, 4; "
    "add.u32 %r6, %r6, %r7; add.u32 %r6, %r6, %r1;\n";

#define STORE "st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2}; st.shared.v4.u32 [%r4+2048], {%r2, %r2, %r2, %r2};\n"
#define PROXY "fence.proxy.async;\n"
#define BAR   "bar.sync 0;\n"
#define FILL  STORE PROXY BAR
#define FIRST_FILLS \
    "setp.lt.u32 %p5, %r3, 4; @%p5 st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2}; @%p5 st.shared.v4.u32 [%r4+2048], " \
    "{%r2, %r2, %r2, %r2};\n" PROXY BAR
/* Thread 0 copies 4096 bytes from p0 to s; %r12 is an mbarrier. */
#define COPY \
    ".shared .align 8 .b64 bar; mov.u32 %r12, bar; @%p4 mbarrier.init.shared.b64 [%r12], 1; fence.proxy.async; " \
    "bar.sync 0;\n" NEXT_COPY(0)
#define NEXT_COPY(n) \
    "@!%p4 bra C" #n "; mbarrier.arrive.expect_tx.shared.b64 _, [%r12], 4096; " \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd60], 4096, [%r12]; C" #n ":\n"
#define ARRIVED_AGAIN "V: mbarrier.try_wait.parity.shared.b64 %p6, [%r12], 1; @!%p6 bra V;\n"
#define ARRIVED "W: mbarrier.try_wait.parity.shared.b64 %p6, [%r12], 0; @!%p6 bra W;\n"
#define FENCE     "wgmma.fence.sync.aligned;\n"
#define COMMIT    "wgmma.commit_group.sync.aligned;\n"
#define WAIT(n)   "wgmma.wait_group.sync.aligned " #n ";\n"
#define MMA_TO(d) "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " d ", %rd1, %rd2, %p1, 1, 1, 0, 0;\n"
#define MMA       MMA_TO("{%f0, %f1, %f2, %f3}")
#define MMA_A \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, {%r20, %r21, %r22, %r23}, %rd2, %p1, " \
    "1, 1, 0;\n"
#define USE "add.f32 %f9, %f0, %f1;\n"

struct example {
    const char *what, *text;
    uint32_t block;
    enum report_code code;
    const char *words;
};

static const struct example examples[] = {
    /* right */
    { "one product", FILL FENCE MMA COMMIT WAIT(0) USE, 128, REPORT_NONE, "" },
    { "four in one accumulator", FILL FENCE MMA MMA MMA MMA COMMIT WAIT(0) USE, 128, REPORT_NONE, "" },
    { "two groups, one awaited",
      FILL FENCE MMA COMMIT MMA_TO("{%f4, %f5, %f6, %f7}") COMMIT WAIT(1) USE WAIT(0) "add.f32 %f9, %f4, %f5;", 128,
      REPORT_NONE, "" },
    { "A in registers, twice",
      "mov.u32 %r20, 1; mov.u32 %r21, 1; mov.u32 %r22, 1; mov.u32 %r23, 1;\n" FILL FENCE MMA_A MMA_A COMMIT WAIT(
          0) "mov.u32 %r20, 2;",
      128, REPORT_NONE, "" },
    { "A written again behind a fence",
      FILL FENCE MMA_A COMMIT WAIT(0) "mov.u32 %r20, 2;\n" FENCE MMA_A COMMIT WAIT(0) USE, 128, REPORT_NONE, "" },
    { "results used, then a fence", FILL FENCE MMA COMMIT WAIT(0) USE FENCE MMA COMMIT WAIT(0) USE, 128, REPORT_NONE,
      "" },
    { "two warpgroups", FIRST_FILLS FENCE MMA COMMIT WAIT(0) USE BAR FIRST_FILLS, 256, REPORT_NONE, "" },
    { "memory written after the wait and a barrier", FILL FENCE MMA COMMIT WAIT(0) BAR STORE, 128, REPORT_NONE, "" },
    { "a warp's wait is for all of the product", FILL FENCE MMA COMMIT WAIT(0) "xor.b32 %r4, %r4, 512;\n" STORE, 128,
      REPORT_NONE, "" },
    { "rows of A by the warp that reads them",
      FILL FENCE MMA COMMIT WAIT(0) BAR "st.shared.v4.u32 [%r6], {%r2, %r2, %r2, %r2};\n" PROXY
                                        "bar.warp.sync -1;\n" FENCE MMA COMMIT WAIT(0) USE,
      128, REPORT_NONE, "" },
    { "accumulators of another shape behind a fence",
      FILL FENCE MMA FENCE "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, "
                           "%f7}, %rd1, %rd3, %p1, 1, 1, 0, 0;\n" COMMIT WAIT(0) USE,
      128, REPORT_NONE, "" },
    { "an empty group", FILL FENCE COMMIT MMA COMMIT WAIT(0) USE, 128, REPORT_NONE, "" },
    { "one warpgroup of two",
      FIRST_FILLS "setp.ge.u32 %p3, %r3, 4; @%p3 bra E;\n" FENCE MMA COMMIT WAIT(0) USE "E:", 256, REPORT_NONE, "" },
    { "sparse",
      FILL "mov.u32 %r10, 0x44444444;\n" FENCE
           "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %r10, "
           "0, %p1, 1, 1, 0, 0;\n" COMMIT WAIT(0) USE,
      128, REPORT_NONE, "" },
    { "a copy that was waited for", COPY ARRIVED FENCE MMA COMMIT WAIT(0) USE, 128, REPORT_NONE, "" },
    { "the next copy behind the wait", COPY ARRIVED FENCE MMA COMMIT WAIT(0) USE NEXT_COPY(1) ARRIVED_AGAIN, 128,
      REPORT_NONE, "" },
    /* registers */
    { "no fence", FILL MMA COMMIT WAIT(0) USE, 128, REPORT_ASYNC, "no wgmma.fence lies before it" },
    { "accumulator written behind the fence", FILL FENCE "mov.f32 %f2, 0f00000000;\n" MMA COMMIT WAIT(0) USE, 128,
      REPORT_ASYNC, "takes an accumulator in a register that was used at PTX line" },
    { "A written behind the fence", FILL FENCE "mov.u32 %r22, 0;\n" MMA_A COMMIT WAIT(0) USE, 128, REPORT_ASYNC,
      "takes elements of A" },
    { "accumulator read, no fence before the next", FILL FENCE MMA COMMIT WAIT(0) USE MMA COMMIT WAIT(0), 128,
      REPORT_ASYNC, "no wgmma.fence lies" },
    { "accumulators of another shape",
      FILL FENCE MMA "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, "
                     "%rd1, %rd3, %p1, 1, 1, 0, 0;\n" COMMIT WAIT(0) USE,
      128, REPORT_ASYNC, "of another shape" },
    { "result read before the wait", FILL FENCE MMA COMMIT USE WAIT(0), 128, REPORT_ASYNC,
      "is an accumulator of the wgmma.mma_async" },
    { "result written before the wait", FILL FENCE MMA COMMIT "mov.f32 %f3, 0f00000000;\n" WAIT(0), 128, REPORT_ASYNC,
      "uses a register" },
    { "A overwritten before the wait", FILL FENCE MMA_A COMMIT "mov.u32 %r23, 0;\n" WAIT(0), 128, REPORT_ASYNC,
      "holds elements of A" },
    { "A read before the wait", FILL FENCE MMA_A COMMIT "add.u32 %r9, %r23, 1;\n" WAIT(0), 128, REPORT_ASYNC,
      "holds elements of A" },
    { "a wait that allows one group too many", FILL FENCE MMA COMMIT WAIT(1) USE WAIT(0), 128, REPORT_ASYNC,
      "uses a register" },
    { "a product that no group holds", FILL FENCE MMA WAIT(0) USE COMMIT WAIT(0), 128, REPORT_ASYNC,
      "uses a register" },
    { "a result as the next one's A",
      FILL FENCE "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%r20, %r21, %r22, %r23}, %rd1, %rd3, %p1, 1, 1, "
                 "0, 0;\n" FENCE MMA_A COMMIT WAIT(0),
      128, REPORT_ASYNC, "no wgmma.wait_group has waited" },
    /* shared memory */
    { "no proxy fence", STORE BAR FENCE MMA COMMIT WAIT(0) USE, 128, REPORT_PROXY,
      "no fence.proxy.async lies between" },
    { "a proxy fence on the wrong side of the barrier",
      STORE BAR "@%p4 fence.proxy.async;\n" FENCE MMA COMMIT WAIT(0) USE, 128, REPORT_PROXY, "reads" },
    { "no barrier", FILL STORE PROXY FENCE MMA COMMIT WAIT(0) USE, 128, REPORT_RACE, "at shared address" },
    { "rows of A by another warp, and no barrier",
      FILL FENCE MMA COMMIT WAIT(0) BAR "st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2};\n" PROXY
                                        "bar.warp.sync -1;\n" FENCE MMA COMMIT WAIT(0) USE,
      128, REPORT_RACE, "at shared address" },
    { "memory overwritten before the wait", FILL FENCE MMA COMMIT STORE WAIT(0) USE, 128, REPORT_ASYNC,
      "at shared address" },
    { "memory overwritten after a wait for another group", FILL FENCE MMA COMMIT MMA COMMIT WAIT(1) BAR STORE WAIT(0),
      128, REPORT_ASYNC, "overwrites the byte" },
    { "memory that nothing wrote",
      "st.shared.v4.u32 [%r4], {%r2, %r2, %r2, %r2};\n" PROXY BAR FENCE MMA COMMIT WAIT(0) USE, 128,
      REPORT_UNINITIALISED, "of which nothing has written" },
    { "a copy that was not waited for", FILL COPY FENCE MMA COMMIT WAIT(0) USE ARRIVED, 128, REPORT_ASYNC, "" },
    { "the next copy before the wait", COPY ARRIVED FENCE MMA COMMIT NEXT_COPY(1) WAIT(0) USE ARRIVED_AGAIN, 128,
      REPORT_ASYNC, "at shared address" },
    { "the next copy behind another warp's wait", COPY ARRIVED FENCE MMA COMMIT WAIT(0) NEXT_COPY(1) ARRIVED_AGAIN, 256,
      REPORT_ASYNC, "at shared address" },
    /* groups left behind */
    { "the end before the commit", FILL FENCE MMA, 128, REPORT_ASYNC, "wgmma.commit_group is missing" },
    { "the end before the wait", FILL FENCE MMA COMMIT, 128, REPORT_ASYNC, "has not been waited for" },
    /* the warpgroup */
    { "three warps", FILL "@%p2 bra E;\n" FENCE MMA COMMIT WAIT(0) USE "E:", 128, REPORT_DIVERGENCE, "warp" },
    { "a CTA of three warps", FILL FENCE MMA COMMIT WAIT(0) USE, 96, REPORT_DIVERGENCE,
      "needs a warpgroup of four warps" },
    { "another product in warp 3", FILL FENCE "@%p2 bra B;\n" MMA "bra C; B:\n" MMA "C:\n" COMMIT WAIT(0) USE, 128,
      REPORT_DIVERGENCE, "in its place" },
    { "a warp that waits elsewhere", FILL "@%p2 bar.sync 1, 64;\n" FENCE MMA COMMIT WAIT(0) USE, 128, REPORT_DEADLOCK,
      "to which warp 3 has not come" },
    { "a lane that has exited", FILL "setp.eq.u32 %p3, %r2, 40; @%p3 exit;\n" FENCE MMA COMMIT WAIT(0), 128,
      REPORT_DIVERGENCE, "all 32 lanes of the warp must take part" },
    { "some lanes", FILL "setp.lt.u32 %p3, %r2, 40; @%p3 bra E;\n" FENCE MMA COMMIT WAIT(0) "E:", 128,
      REPORT_DIVERGENCE, "" },
    { "another descriptor in warp 3", FILL "@%p2 add.u64 %rd1, %rd1, 2;\n" FENCE MMA COMMIT WAIT(0), 128,
      REPORT_ILLEGAL, "descriptor of A" },
    { "another descriptor in a lane", FILL "@%p4 add.u64 %rd2, %rd2, 2;\n" FENCE MMA COMMIT WAIT(0), 128,
      REPORT_ILLEGAL, "not the same in all lanes" },
    { "another scale-d in warp 3", FILL "@%p2 setp.ne.u32 %p1, %r2, %r2;\n" FENCE MMA COMMIT WAIT(0), 128,
      REPORT_ILLEGAL, "predicate scale-d" },
    /* descriptors */
    { "a bit of no field", FILL "or.b64 %rd1, %rd1, 0x0000400000000000;\n" FENCE MMA COMMIT WAIT(0), 128,
      REPORT_ILLEGAL, "belong to no field" },
    { "a base offset without a swizzle", FILL "or.b64 %rd2, %rd2, 0x0002000000000000;\n" FENCE MMA COMMIT WAIT(0), 128,
      REPORT_ILLEGAL, "but no swizzle" },
    { "A behind the end", FILL "add.u64 %rd1, %rd1, 129;\n" FENCE MMA COMMIT WAIT(0), 128, REPORT_OUT_OF_BOUNDS,
      "reads 16 bytes of A" },
    { "B before the start", FILL "and.b64 %rd2, %rd2, 0xffffffffffff0000;\n" FENCE MMA COMMIT WAIT(0), 128,
      REPORT_OUT_OF_BOUNDS, "reads 16 bytes of B" },
    { "more of K than a swizzle holds",
      FILL
      "or.b64 %rd2, %rd2, 0xc000000000000000; mov.u32 %r10, 0x44444444;\n" FENCE
      "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %r10, 0, %p1, 1, 1, 0, "
      "0;\n" COMMIT WAIT(0),
      128, REPORT_ILLEGAL, "which a 32-byte swizzle does not hold" },
    { "metadata that no row may have",
      FILL
      "mov.u32 %r10, 0x44444404;\n" FENCE
      "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %r10, 0, %p1, 1, 1, 0, "
      "0;\n" COMMIT WAIT(0),
      128, REPORT_ILLEGAL, "metadata" },
};
enum { EXAMPLES = sizeof examples / sizeof examples[0], WRONG_SCHEDULES = 20, RIGHT_SCHEDULES = 100 };

static bool run(struct sim *sim, const struct example *e, int schedule)
{
    struct machine_options *o = &sim->machine.options;
    o->schedule = schedule == 0 ? SCHEDULE_EARLIEST : schedule == 1 ? SCHEDULE_LATEST : SCHEDULE_RANDOM;
    o->seed = (uint64_t)schedule;
    o->threads = 1;
    const uint64_t copied = sim_buffer(sim, NULL, 4096);
    return sim_run(sim, "k", 1, e->block, 0, &copied, 1);
}

/* A race with an operation, or, where the other thread comes first, with that thread. */
static bool is_code(enum report_code got, enum report_code wanted)
{
    return got == wanted || (got == REPORT_ASYNC && wanted == REPORT_RACE)
           || (got == REPORT_RACE && wanted == REPORT_ASYNC);
}

/* Misuse is reported under every schedule, not only under one of 20. */
static void examples_are_judged(struct test *t)
{
    for (int i = 0; i < EXAMPLES; i++) {
        const struct example *e = &examples[i];
        struct sim sim;
        char text[8192];
        snprintf(text, sizeof text, "%s%s", begin, e->text);
        if (!sim_open(t, &sim, "sm_90a", text)) continue;
        const int schedules = e->code == REPORT_NONE ? RIGHT_SCHEDULES : WRONG_SCHEDULES;
        for (int s = 0; s < schedules; s++) {
            const bool ran = run(&sim, e, s);
            if (ran == (e->code == REPORT_NONE) &&
                (ran || (is_code(sim.report.code, e->code) && strstr(sim.report.text, e->words) != NULL)))
                continue;
            FAIL(t, "%s, schedule %d: wanted %s \"%s\", got %s", e->what, s, report_code_name(e->code), e->words,
                 ran ? "no report" : sim.report.text);
            break;
        }
        sim_close(&sim);
    }
}

/* What ptxas refuses is refused when the module loads. */
static void illegal_forms_are_refused(struct test *t)
{
#define D4 "{%f0, %f1, %f2, %f3}"
#define A4 "{%r20, %r21, %r22, %r23}"
    static const struct {
        const char *target, *text, *words;
    } refused[] = {
        { "sm_90a", MMA_TO("{%f0, %f1, %f2}"), "D has N/2 registers" },
        { "sm_90a", MMA_TO("{%f0, %f1, %f2, %f3, %f4}"), "D has N/2 registers" },
        { "sm_90a", MMA_TO("{%f0, %f1, %f2, %f2}"), "stands twice" },
        { "sm_90a", MMA_TO("{%f0, %f1, %f2, _}"), "register" },
        { "sm_90", MMA, "needs the target sm_90a" },
        { "sm_100a", MMA, "needs the target sm_90a" },
        { "sm_90a",
          "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3, %f4, %f5}, %rd1, %rd2, %p1, 1, 1, "
          "0, 0;",
          "multiple of 8" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n264k16.f32.bf16.bf16 " D4 ", %rd1, %rd2, %p1, 1, 1, 0, 0;",
          "multiple of 8" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 " A4 ", %rd1, %rd2, %p1;", "multiple of 16" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", %rd1, %rd2, %p1, 1, 1, 0;",
          "missing" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", %rd1, %rd2, 1, 1, 0, 0;", "missing" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", %rd1, %rd2, %p1, 0, 1, 0, 0;",
          "imm-scale-a" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", %rd1, %rd2, %p1, 1, 2, 0, 0;",
          "imm-scale-b" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", %rd1, %rd2, %p1, 1, 1, 2, 0;",
          "imm-trans-a" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", %rd1, %rd2, %p1, 1, 1, 0, -1;",
          "imm-trans-b" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", " A4 ", %rd2, %p1, 1, 1, 0, 0;", "" },
        { "sm_90a",
          "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " D4 ", {%f20, %f21, %f22, %f23}, %rd2, %p1, 1, 1, 0;",
          "" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 " D4 ", %rd1, %rd2, %p1, 1, 1, 0, 0;", "" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {%r0, %r1}, %rd1, %rd2, %p1, 1, 1, 0, 0;",
          "" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 " D4 ", %rd1, %rd2, %p1, 1, 1, 0, 0;",
          "one too many" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 " D4 ", %rd1, %rd2, %p1, 1, 1, 0, 0;",
          "one too many" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.xor.popc " A4 ", %rd1, %rd2, %p1;", ".xor" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n8k256.satfinite.s32.b1.b1.and.popc " A4 ", %rd1, %rd2, %p1;",
          "" },
        { "sm_90a", "wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 " A4 ", " A4 ", %rd2, %p1, 1, 1, 0;",
          "share a register" },
        { "sm_90a",
          "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 " D4 ", %rd1, %rd2, %r9, 2, %p1, 1, 1, 0, 0;",
          "selector" },
        { "sm_90a", "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 " D4 ", %rd1, %rd2, %r9, 1, %p1, 1, 1;",
          "selector" },
        { "sm_90a", "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16 " D4 ", %rd1, %rd2, 5, 0, %p1, 1, 1, 0, 0;",
          "register" },
        { "sm_90a", "wgmma.wait_group.sync.aligned -1;", "" },
        { "sm_90a", "wgmma.wait_group.sync.aligned %r1;", "" },
        { "sm_90a", "wgmma.fence;", "" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim sim;
        if (!sim_refused(t, &sim, refused[i].target, refused[i].text)) FAIL(t, "accepted: %s", refused[i].text);
        else if (strstr(sim.error.text, refused[i].words) == NULL)
            FAIL(t, "wanted \"%s\", got %s", refused[i].words, sim.error.text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(examples_are_judged), TEST(illegal_forms_are_refused) };
    return TEST_MAIN(argc, argv, cases);
}
