/* Copies, shifts and products in the tensor pipe: scales that tcgen05.cp loads, which the next stage overwrites.  Each
 * wrong kernel is reported under every one of the first schedules; its right twin gives the right sum and no report
 * under 100. */
#include "tests/support/schedules.h"

/* Four warps; 4 KiB of e4m3 ones, A and B of every product; scales of 1 (512 bytes at %r13) and of 2 (512 bytes behind
 * them).  D: columns 0 to 15 from %r3 on; %r14, %r15: scales of A and of B, four columns each.  D = 32 for scales of 1,
 * 64 where those of A are 2. */
#define BEGIN \
    ".shared .align 1024 .b8 a[4096]; .shared .align 128 .b8 scales[1024]; .shared .align 8 .b64 bars[2]; " \
    ".shared .align 4 .b32 s; " \
    "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0; setp.eq.u32 %p3, " \
    "%r1, 32; " \
    "setp.ne.u32 %p7, 0, 0; setp.eq.u32 %p8, 0, 0; mov.u32 %r9, bars; mov.u32 %r10, a; mov.u32 %r13, scales; " \
    "mov.u32 %r30, 0x38383838; mov.u32 %r31, 0x7f7f7f7f; mov.u32 %r32, 0x80808080;\n" \
    "@!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 64; " \
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nA: " \
    "@%p2 mbarrier.init.shared.b64 [%r9], 1; @%p2 mbarrier.init.shared.b64 [%r9+8], 1; " \
    "shl.b32 %r11, %r1, 5; add.u32 %r11, %r11, %r10; st.shared.v4.b32 [%r11], {%r30, %r30, %r30, %r30}; " \
    "st.shared.v4.b32 [%r11+16], {%r30, %r30, %r30, %r30}; shl.b32 %r11, %r1, 2; add.u32 %r11, %r11, %r13; " \
    "st.shared.b32 [%r11], %r31; st.shared.b32 [%r11+512], %r32; fence.proxy.async; bar.sync 0;\n" \
    "ld.shared.u32 %r3, [s]; shl.b32 %r5, %r2, 21; add.u32 %r5, %r5, %r3; add.u32 %r14, %r3, 32; add.u32 %r15, %r3, " \
    "40; " \
    "shr.u32 %r12, %r10, 4; cvt.u64.u32 %rd1, %r12; or.b64 %rd1, %rd1, 0x0000400800800000; " \
    "shr.u32 %r12, %r13, 4; cvt.u64.u32 %rd3, %r12; or.b64 %rd3, %rd3, 0x0000400800010000; add.u64 %rd4, %rd3, 32;\n"
#define FREE "bar.sync 0; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n"
#define KEEP "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd60; st.global.u32 [%rd2], %r20;\n"

#define CP_BY(who, to, from) "@" who " tcgen05.cp.cta_group::1.32x128b.warpx4 [" to "], " from ";\n"
#define CP_A CP_BY("%p2", "%r14", "%rd3")
#define CP_A2 CP_BY("%p2", "%r14", "%rd4")
#define CP_B CP_BY("%p2", "%r15", "%rd3")
#define MMA_BY(who, add) "@" who \
    " tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r3], %rd1, %rd1, 0x08840000, [%r14], [%r15], " add ";\n"
#define NEW MMA_BY("%p2", "%p7")
#define ADD MMA_BY("%p2", "%p8")
#define SHIFT(at) "@%p2 tcgen05.shift.cta_group::1.down [" at "];\n"
#define CP_ROW(at) "@%p2 tcgen05.cp.cta_group::1.4x256b [" at "], %rd3;\n"
#define COMMIT_BY(who, bar) \
    "@" who " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r9+" bar "];\n"
#define COMMIT COMMIT_BY("%p2", "0")
#define WAIT_FOR(label, bar, parity) \
    label ": mbarrier.try_wait.parity.shared.b64 %p4, [%r9+" bar "], " parity "; @!%p4 bra " label ";\n"
#define WAIT WAIT_FOR("W", "0", "0")
#define AFTER "tcgen05.fence::after_thread_sync;\n"
#define BEFORE "tcgen05.fence::before_thread_sync;\n"
#define BAR "bar.sync 0;\n"
#define LD_AT(at) "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r5+" at "];\n"
#define LD LD_AT("0")
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;\n"
#define WAIT_ST "tcgen05.wait::st.sync.aligned;\n"
#define ST_SCALES(at, value) \
    "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r5+" at "], {" value ", " value ", " value ", " value "};\n"
#define END COMMIT WAIT AFTER LD WAIT_LD KEEP FREE

static const struct example {
    const char *what, *text;
    enum report_code code;
    const char *words;                    /* of the report */
    float sum;                            /* where there is none; 0: not looked at */
} examples[] = {
    { "copies, product", BEGIN CP_A CP_B NEW END, REPORT_NONE, "", 32 },
    { "the next stage overwrites the scales", BEGIN CP_A CP_B NEW CP_A2 CP_B ADD CP_A ADD END, REPORT_NONE, "", 128 },
    { "copies by another thread, fenced",
      BEGIN CP_A CP_B BEFORE BAR AFTER MMA_BY("%p3", "%p7") COMMIT_BY("%p3", "0") WAIT AFTER LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 32 },
    { "copies by another thread, no fence before",
      BEGIN CP_A CP_B BAR AFTER MMA_BY("%p3", "%p7") COMMIT_BY("%p3", "0") WAIT FREE, REPORT_ASYNC,
      "reads columns 32 to 35 of tensor memory, which the tcgen05.cp", 0 },
    { "copies by another thread, no fence after",
      BEGIN CP_A CP_B BEFORE BAR MMA_BY("%p3", "%p7") COMMIT_BY("%p3", "0") WAIT FREE, REPORT_ASYNC,
      "the tcgen05.cp of warp 0", 0 },
    { "copies by another thread, in a later stage",
      BEGIN CP_A CP_B NEW BEFORE BAR AFTER CP_BY("%p3", "%r14", "%rd4") BEFORE BAR AFTER ADD END, REPORT_NONE, "", 96 },
    { "scales overwritten by a copy of another thread",
      BEGIN CP_A CP_B NEW BAR CP_BY("%p3", "%r14", "%rd4") COMMIT_BY("%p3", "8") END, REPORT_ASYNC,
      "writes columns 32 to 35 of tensor memory, which the tcgen05.mma", 0 },
    { "copies twice, without a product between", BEGIN CP_A CP_A2 CP_B NEW END, REPORT_ASYNC,
      "which the tcgen05.cp of warp 0", 0 },
    { "copy over copied columns behind completion",
      BEGIN CP_A COMMIT WAIT AFTER CP_A2 CP_B NEW COMMIT_BY("%p2", "8") WAIT_FOR("X", "8", "0")
          AFTER LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 64 },

    /* ld and st of warps */
    { "copy, ld", BEGIN CP_A COMMIT WAIT AFTER LD_AT("32") WAIT_LD FREE, REPORT_NONE, "", 0 },
    { "copy, ld, not waited for", BEGIN CP_A COMMIT BAR AFTER LD_AT("32") WAIT_LD WAIT FREE, REPORT_ASYNC,
      "no tcgen05.commit behind it", 0 },
    { "copy, ld, no fence", BEGIN CP_A COMMIT WAIT LD_AT("32") WAIT_LD FREE, REPORT_RACE,
      "no tcgen05.fence::after_thread_sync", 0 },
    { "scales by st", BEGIN ST_SCALES("32", "%r31") ST_SCALES("40", "%r31") WAIT_ST BEFORE BAR AFTER NEW END,
      REPORT_NONE, "", 32 },
    { "scales by st, no wait::st", BEGIN ST_SCALES("32", "%r31") ST_SCALES("40", "%r31") BEFORE BAR AFTER NEW END,
      REPORT_ASYNC, "no tcgen05.wait::st since", 0 },
    { "scales by st, no fence before", BEGIN ST_SCALES("32", "%r31") ST_SCALES("40", "%r31") WAIT_ST BAR AFTER NEW END,
      REPORT_RACE, "before_thread_sync there", 0 },
    { "scales overwritten by st", BEGIN CP_A CP_B NEW BEFORE BAR AFTER ST_SCALES("32", "%r31") WAIT_ST END,
      REPORT_ASYNC, "writes columns 32 to 35 of tensor memory, which the tcgen05.mma", 0 },
    { "scales overwritten by st behind completion",
      BEGIN CP_A CP_B NEW COMMIT WAIT AFTER ST_SCALES("32", "%r32") WAIT_ST BEFORE BAR AFTER ADD COMMIT_BY("%p2", "8")
          WAIT_FOR("X", "8", "0") AFTER LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 96 },
    { "copy over columns that are being read",
      BEGIN ST_SCALES("32", "%r31") WAIT_ST LD_AT("32") BEFORE BAR AFTER CP_A COMMIT WAIT FREE, REPORT_ASYNC,
      "no tcgen05.wait::ld since", 0 },

    /* shared memory */
    { "copied bytes overwritten behind completion",
      BEGIN CP_A CP_B NEW COMMIT WAIT "@%p2 st.shared.u32 [%r13], %r32;\n" AFTER LD WAIT_LD KEEP FREE, REPORT_NONE, "",
      32 },
    { "copied bytes overwritten too early", BEGIN CP_A CP_B NEW "@%p2 st.shared.u32 [%r13], %r32;\n" END, REPORT_ASYNC,
      "", 0 },
    { "scales without a proxy fence", BEGIN "@%p2 st.shared.u32 [%r13], %r31;\n" CP_A CP_B NEW END, REPORT_PROXY, "",
      0 },

    /* shifts */
    { "copy, shift without completion", BEGIN CP_BY("%p2", "%r3+48", "%rd3") SHIFT("%r3+48") COMMIT WAIT FREE,
      REPORT_ASYNC, "which the tcgen05.cp", 0 },
    { "shift, copy of a row",
      BEGIN
      "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5+48], {%r30, %r30, %r30, %r30, %r30, %r30, %r30, %r30};\n" WAIT_ST
          BEFORE BAR AFTER SHIFT("%r3+48") CP_ROW("%r3+48+0x1f0000") COMMIT WAIT AFTER LD_AT("48") WAIT_LD FREE,
      REPORT_NONE, "", 0 },
    { "shift, shift without completion",
      BEGIN "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5+48], {%r30, %r30, %r30, %r30, %r30, %r30, %r30, "
            "%r30};\n" WAIT_ST BEFORE BAR AFTER SHIFT("%r3+48") SHIFT("%r3+48") COMMIT WAIT FREE,
      REPORT_ASYNC, "which the tcgen05.shift", 0 },
    { "shift, ld, not waited for",
      BEGIN "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5+48], {%r30, %r30, %r30, %r30, %r30, %r30, %r30, "
            "%r30};\n" WAIT_ST BEFORE BAR AFTER SHIFT("%r3+48") COMMIT BAR AFTER LD_AT("48") WAIT_LD WAIT FREE,
      REPORT_ASYNC, "which the tcgen05.shift", 0 },
};

static void examples_are_judged(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        check_judged(t, &(struct judged){ e->what, e->text, 1, 128, e->code, e->words, e->sum });
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(examples_are_judged) };
    return TEST_MAIN(argc, argv, cases);
}
