/* The tensor pipe: products and commits in one CTA, in the orders that the manual allows and in others.  Each wrong
 * kernel is reported under every one of the first schedules; its right twin gives the right sum and no report under
 * 100. */
#include "tests/support/schedules.h"

/* Four warps; 4 KiB of bf16 ones, which are A and B of every product: D = 16 for each.  D: columns 0 to 15 from %r3 on;
 * %r5: the same in the warp's own lanes.  Thread 0 (%p2) issues; %p3: thread 32, another.  %r20 is what a right kernel
 * leaves. */
#define BEGIN \
    ".shared .align 1024 .b8 a[4096]; .shared .align 8 .b64 bars[2]; .shared .align 4 .b32 s; mov.u32 %r1, %tid.x; " \
    "shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r1, 0; setp.eq.u32 %p3, %r1, 32; setp.ne.u32 " \
    "%p7, 0, 0; " \
    "setp.eq.u32 %p8, 0, 0; mov.u32 %r9, bars; mov.u32 %r10, a; mov.u32 %r30, 0x3f803f80; mov.u32 %r20, 0;\n" \
    "@!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 64; " \
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nA: " \
    "@%p2 mbarrier.init.shared.b64 [%r9], 1; @%p2 mbarrier.init.shared.b64 [%r9+8], 1; " \
    "shl.b32 %r11, %r1, 5; add.u32 %r11, %r11, %r10; st.shared.v4.b32 [%r11], {%r30, %r30, %r30, %r30}; " \
    "st.shared.v4.b32 [%r11+16], {%r30, %r30, %r30, %r30}; fence.proxy.async; bar.sync 0;\n" \
    "ld.shared.u32 %r3, [s]; shl.b32 %r5, %r2, 21; add.u32 %r5, %r5, %r3; add.u32 %r7, %r3, 32; " \
    "shr.u32 %r12, %r10, 4; cvt.u64.u32 %rd1, %r12; or.b64 %rd1, %rd1, 0x0000400800800000;\n"
#define FREE "bar.sync 0; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n"
#define KEEP "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd60; st.global.u32 [%rd2], %r20;\n"

/* D = A * B, D = A * B + D, of 128 x 16 and 64 x 16; with A from tensor memory, columns 32 to 39; D in columns 16 to
 * 31. */
#define MMA(who, d, shape, add) "@" who " tcgen05.mma.cta_group::1.kind::f16 [" d "], %rd1, %rd1, " shape ", " add ";\n"
#define NEW MMA("%p2", "%r3", "0x08040490", "%p7")
#define ADD MMA("%p2", "%r3", "0x08040490", "%p8")
#define OTHER_NEW MMA("%p3", "%r3", "0x08040490", "%p7")
#define OTHER_ADD MMA("%p3", "%r3", "0x08040490", "%p8")
#define SMALL MMA("%p2", "%r3", "0x04040490", "%p7")
#define SECOND MMA("%p2", "%r3+16", "0x08040490", "%p7")
#define FROM_CELLS "@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r3], [%r7], %rd1, 0x08040490, %p7;\n"
#define TO_CELLS MMA("%p2", "%r7", "0x08040490", "%p7")

#define COMMIT_BY(who, bar) \
    "@" who " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r9+" bar "];\n"
#define COMMIT COMMIT_BY("%p2", "0")
#define MULTICAST(mask) "mov.u16 %rs1, " mask ";\n" \
    "@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r9], %rs1;\n"
#define WAIT_FOR(label, bar, parity) \
    label ": mbarrier.try_wait.parity.shared.b64 %p4, [%r9+" bar "], " parity "; @!%p4 bra " label ";\n"
#define WAIT WAIT_FOR("W", "0", "0")
#define WAIT_AGAIN WAIT_FOR("X", "0", "1")
#define AFTER "tcgen05.fence::after_thread_sync;\n"
#define BEFORE "tcgen05.fence::before_thread_sync;\n"
#define BAR "bar.sync 0;\n"
#define LD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r5];\n"
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;\n"
#define ST "mov.u32 %r21, 0x40a00000; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r21};\n"
#define FIVES "%r21, %r21, %r21, %r21, %r21, %r21, %r21, %r21"
#define FILL "mov.u32 %r21, 0x40a00000; tcgen05.st.sync.aligned.32x32b.x16.b32 [%r5], {" FIVES ", " FIVES "};\n"
#define FILL_A "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5+32], {%r30, %r30, %r30, %r30, %r30, %r30, %r30, %r30};\n"
#define WAIT_ST "tcgen05.wait::st.sync.aligned;\n"
#define END COMMIT WAIT AFTER LD WAIT_LD KEEP FREE
#define STORE_A "@%p2 st.shared.u32 [%r10], 0;\n"

static const struct example {
    const char *what, *text;
    enum report_code code;
    const char *words;                    /* of the report */
    float sum;                            /* where there is none; 0: not looked at */
} examples[] = {
    { "product, commit, wait, fence, ld", BEGIN NEW END, REPORT_NONE, "", 16 },
    { "ld without a commit", BEGIN NEW BAR AFTER LD WAIT_LD FREE, REPORT_ASYNC,
      "no tcgen05.commit behind it has been waited", 0 },
    { "ld without a wait", BEGIN NEW COMMIT BAR AFTER LD WAIT_LD WAIT FREE, REPORT_ASYNC,
      "no tcgen05.commit behind it has been waited", 0 },
    { "ld without a fence", BEGIN NEW COMMIT WAIT LD WAIT_LD FREE, REPORT_RACE,
      "no tcgen05.fence::after_thread_sync lies", 0 },
    { "fence before the wait", BEGIN NEW COMMIT AFTER WAIT LD WAIT_LD FREE, REPORT_RACE,
      "no tcgen05.fence::after_thread_sync", 0 },
    { "product behind the commit", BEGIN NEW COMMIT ADD WAIT AFTER LD WAIT_LD COMMIT WAIT_AGAIN FREE, REPORT_ASYNC,
      "no tcgen05.commit", 0 },
    { "one thread waits, the others by a barrier",
      BEGIN NEW COMMIT "@!%p2 bra N;\n" WAIT "N:\n" BAR AFTER LD WAIT_LD KEEP FREE, REPORT_NONE, "", 16 },

    /* several products */
    { "two products of one thread", BEGIN NEW ADD END, REPORT_NONE, "", 32 },
    { "products of other accumulators between", BEGIN NEW SECOND ADD END, REPORT_NONE, "", 32 },
    { "the second commit waited for", BEGIN NEW COMMIT_BY("%p2", "8") SECOND COMMIT WAIT AFTER LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 16 },
    { "the first commit waited for",
      BEGIN NEW COMMIT SECOND COMMIT_BY("%p2", "8") WAIT AFTER LD WAIT_LD KEEP WAIT_FOR("Y", "8", "0") FREE,
      REPORT_NONE, "", 16 },
    { "two commits of one product", BEGIN NEW COMMIT_BY("%p2", "8") COMMIT WAIT AFTER LD WAIT_LD KEEP FREE, REPORT_NONE,
      "", 16 },
    { "another shape without completion", BEGIN NEW SMALL COMMIT WAIT FREE, REPORT_ASYNC,
      "writes columns 0 to 15 of tensor memory, which", 0 },
    { "another shape behind completion", BEGIN NEW COMMIT WAIT BAR AFTER SMALL COMMIT WAIT_AGAIN FREE, REPORT_NONE, "",
      0 },
    { "another shape behind a wait without a fence", BEGIN NEW COMMIT WAIT BAR SMALL COMMIT WAIT_AGAIN FREE,
      REPORT_RACE, "no tcgen05.fence::after_thread_sync", 0 },

    /* two threads */
    { "two threads, fences and a barrier",
      BEGIN NEW BEFORE BAR AFTER OTHER_ADD COMMIT_BY("%p3", "0") WAIT AFTER LD WAIT_LD KEEP FREE, REPORT_NONE, "", 32 },
    { "two threads, no fence before", BEGIN NEW BAR AFTER OTHER_ADD COMMIT_BY("%p3", "0") WAIT FREE, REPORT_ASYNC,
      "no tcgen05.commit", 0 },
    { "two threads, no fence after", BEGIN NEW BEFORE BAR OTHER_ADD COMMIT_BY("%p3", "0") WAIT FREE, REPORT_ASYNC,
      "no tcgen05.commit", 0 },
    { "two threads, no barrier", BEGIN NEW BEFORE AFTER OTHER_NEW COMMIT_BY("%p3", "0") WAIT BAR, REPORT_ASYNC,
      "no tcgen05.commit", 0 },
    { "two threads, fence before too early", BEGIN BEFORE NEW BAR AFTER OTHER_ADD COMMIT_BY("%p3", "0") WAIT FREE,
      REPORT_ASYNC, "no tcgen05.commit", 0 },
    /* the first commit is waited for, too: a CTA must not end while one may still arrive at its mbarrier */
    { "two threads, the first one's commit",
      BEGIN NEW COMMIT BAR AFTER OTHER_ADD COMMIT_BY("%p3", "8") WAIT_FOR("Y", "8", "0")
          AFTER LD WAIT_LD KEEP WAIT FREE,
      REPORT_NONE, "", 32 },
    { "commit by another thread", BEGIN NEW BEFORE BAR AFTER COMMIT_BY("%p3", "0") WAIT AFTER LD WAIT_LD FREE,
      REPORT_ASYNC, "those of warp 0, lane 0", 0 },
    { "commit by another thread, which had products of its own",
      BEGIN OTHER_NEW COMMIT_BY("%p3", "8") WAIT_FOR("Y", "8", "0") AFTER BAR NEW BEFORE BAR AFTER COMMIT_BY("%p3", "0")
          WAIT AFTER LD WAIT_LD FREE,
      REPORT_ASYNC, "that of warp 1, lane 0", 0 },
    { "a commit of nothing", BEGIN COMMIT WAIT FREE, REPORT_NONE, "", 0 },

    { "commit at a generic address",
      BEGIN NEW "cvt.u64.u32 %rd9, %r9; cvta.shared.u64 %rd9, %rd9;\n"
                "@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd9];\n" WAIT AFTER LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 16 },
    { "commit to the CTAs of a mask", BEGIN NEW MULTICAST("1") WAIT AFTER LD WAIT_LD KEEP FREE, REPORT_NONE, "", 16 },
    { "commit to no CTA", BEGIN NEW MULTICAST("0") WAIT FREE, REPORT_ILLEGAL, "has the mask 0x0 of CTAs", 0 },
    { "commit to a CTA that is not there", BEGIN NEW MULTICAST("9") WAIT FREE, REPORT_ILLEGAL,
      "has the mask 0x9 of CTAs", 0 },
    { "commit at half an mbarrier", BEGIN NEW COMMIT_BY("%p2", "4") WAIT FREE, REPORT_MISALIGNED, "no multiple of 8",
      0 },
    { "commit where no mbarrier is", BEGIN NEW COMMIT_BY("%p2", "-8") WAIT FREE, REPORT_BARRIER, "", 0 },
    { "commit by all lanes",
      BEGIN NEW "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r9];\n" WAIT FREE,
      REPORT_ASYNC, "of which there are none", 0 },

    /* st and ld of warps before products */
    { "st, product", BEGIN FILL WAIT_ST BEFORE BAR AFTER ADD END, REPORT_NONE, "", 21 },
    { "st, product, no wait::st", BEGIN FILL BEFORE BAR AFTER ADD END, REPORT_ASYNC, "no tcgen05.wait::st since", 0 },
    { "st, product, no fence before", BEGIN FILL WAIT_ST BAR AFTER ADD END, REPORT_RACE, "before_thread_sync there",
      0 },
    { "st, product, no fence after", BEGIN FILL WAIT_ST BEFORE BAR ADD END, REPORT_RACE, "after_thread_sync here", 0 },
    { "ld, product over it", BEGIN FILL WAIT_ST LD WAIT_LD BEFORE BAR AFTER NEW END, REPORT_NONE, "", 16 },
    { "ld, product over it, no wait::ld", BEGIN FILL WAIT_ST LD BEFORE BAR AFTER NEW END, REPORT_ASYNC,
      "no tcgen05.wait::ld since", 0 },
    { "ld, product over it, no fence before", BEGIN FILL WAIT_ST BEFORE BAR AFTER LD WAIT_LD BAR AFTER NEW END,
      REPORT_RACE, "before_thread_sync there", 0 },
    { "accumulator read, next product",
      BEGIN NEW COMMIT WAIT AFTER LD WAIT_LD BEFORE BAR AFTER NEW COMMIT WAIT_AGAIN AFTER LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 16 },
    { "accumulator read, next product too early",
      BEGIN NEW COMMIT WAIT AFTER LD BEFORE BAR AFTER NEW WAIT_LD COMMIT WAIT_AGAIN FREE, REPORT_ASYNC,
      "no tcgen05.wait::ld since", 0 },
    { "st over an accumulator under way", BEGIN NEW BAR ST WAIT_ST COMMIT WAIT FREE, REPORT_ASYNC,
      "writes columns 0 to 15", 0 },

    /* A in tensor memory */
    { "A by st", BEGIN FILL_A WAIT_ST BEFORE BAR AFTER FROM_CELLS END, REPORT_NONE, "", 16 },
    { "A by st, no wait::st", BEGIN FILL_A BEFORE BAR AFTER FROM_CELLS END, REPORT_ASYNC, "no tcgen05.wait::st since",
      0 },
    { "A overwritten too early", BEGIN FILL_A WAIT_ST BEFORE BAR AFTER FROM_CELLS BAR FILL_A WAIT_ST END, REPORT_ASYNC,
      "mma of warp 0 at PTX line", 0 },
    { "A overwritten behind completion",
      BEGIN FILL_A WAIT_ST BEFORE BAR AFTER FROM_CELLS COMMIT WAIT AFTER FILL_A WAIT_ST LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 16 },
    { "A read twice, then overwritten by a product",
      BEGIN FILL_A WAIT_ST BEFORE BAR AFTER FROM_CELLS FROM_CELLS TO_CELLS COMMIT WAIT FREE, REPORT_ASYNC,
      "writes columns 32 to 39", 0 },
    { "an accumulator read as A too early", BEGIN TO_CELLS FROM_CELLS END, REPORT_ASYNC, "reads columns 32 to 47", 0 },
    { "an accumulator read as A behind completion",
      BEGIN TO_CELLS COMMIT WAIT BAR AFTER FROM_CELLS COMMIT WAIT_AGAIN AFTER LD WAIT_LD FREE, REPORT_NONE, "", 0 },
    { "A never written", BEGIN FROM_CELLS END, REPORT_UNINITIALISED, "lane 0, column 32", 0 },
    { "accumulator never written", BEGIN ADD END, REPORT_UNINITIALISED, "lane 0, column 0", 0 },

    /* shared memory */
    { "shared memory overwritten behind completion", BEGIN NEW COMMIT WAIT STORE_A AFTER LD WAIT_LD KEEP FREE,
      REPORT_NONE, "", 16 },
    { "shared memory overwritten too early", BEGIN NEW STORE_A END, REPORT_ASYNC, "", 0 },
    { "shared memory overwritten by another thread too early",
      BEGIN NEW COMMIT BAR "@%p3 st.shared.u32 [%r10], 0;\n" WAIT AFTER LD WAIT_LD FREE, REPORT_ASYNC, "", 0 },
    { "shared memory without a proxy fence", BEGIN STORE_A NEW END, REPORT_PROXY, "", 0 },

    /* allocation */
    { "behind the allocation", BEGIN MMA("%p2", "%r3+56", "0x08040490", "%p7") END, REPORT_OUT_OF_BOUNDS,
      "not allocated", 0 },
    { "after dealloc", BEGIN FREE BAR NEW COMMIT WAIT, REPORT_OUT_OF_BOUNDS, "not allocated", 0 },
    { "freed under way", BEGIN NEW COMMIT FREE WAIT, REPORT_ASYNC,
      "frees columns 0 to 63, which the tcgen05.mma of warp 0", 0 },
    { "freed, never committed", BEGIN NEW FREE, REPORT_ASYNC, "no tcgen05.commit behind it has been waited for", 0 },
    { "never freed", BEGIN NEW COMMIT WAIT, REPORT_RESOURCES, "no tcgen05.dealloc", 0 },
    { "cta_group::2 in a kernel of cta_group::1",
      BEGIN NEW "@%p2 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r9];\n" WAIT FREE,
      REPORT_ILLEGAL, "CTA pair", 0 },
};

static void examples_are_judged(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        check_judged(t, &(struct judged){ e->what, e->text, 1, 128, e->code, e->words, e->sum });
    }
}

/* A product overwrites what an earlier one of the same thread reads: reported; where that goes on, the two run in the
 * order of their issue. */
static void reported_products_run_in_the_order_of_their_issue(struct test *t)
{
    static const char text[] = BEGIN FILL_A WAIT_ST BEFORE BAR AFTER FROM_CELLS TO_CELLS END;
    for (uint64_t schedule = 0; schedule < 100; schedule++) {
        struct sim sim;
        struct rule_book book = { .tell = NULL };
        float got[128];
        if (!sim_open(t, &sim, "sm_100a", text)) return;
        const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
        const bool stops = schedule < 2;
        sim.machine.rule_book = &book;
        sim.machine.options.rule[RULE_TENSOR_ISSUE_ORDER] = (uint8_t)(stops ? RULE_STOP : 1 + schedule % 2);
        use_schedule(&sim, schedule);
        const bool ran = run_cluster(&sim, 1, 128, 0, &out, 1);
        if (ran == stops) FAIL(t, "schedule %llu: %s", (unsigned long long)schedule, ran ? "ran" : sim.report.text);
        if (!ran) CHECK(t, strstr(sim.report.text, "\n  rule     tensor-issue-order\n") != NULL);
        CHECK(t, (atomic_load(&book.count[RULE_TENSOR_ISSUE_ORDER]) != 0) == (!stops && schedule % 2 == 0));
        sim_read(&sim, out, got, sizeof got);
        for (int i = 0; ran && i < 128; i++) CHECK(t, got[i] == 16);
        sim_close(&sim);
    }
}

static void illegal_forms_are_refused(struct test *t)
{
    static const struct { const char *target, *text;
    } refused[] = {
        { "sm_90a", COMMIT },
        { "sm_120a", COMMIT },
        { "sm_100a", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cta.b64 [%r9];" },
        { "sm_100a", "tcgen05.commit.cta_group::1.shared::cluster.b64 [%r9];" },
        { "sm_100a", "tcgen05.commit.cta_group::3.mbarrier::arrive::one.shared::cluster.b64 [%r9];" },
        { "sm_100a", "tcgen05.commit.mbarrier::arrive::one.shared::cluster.b64 [%r9];" },
        { "sm_100a", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r9], %rs1;" },
        { "sm_100a",
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r9];" },
        { "sm_100a", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r9], "
                     "%r1;" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim sim;
        if (!sim_refused(t, &sim, refused[i].target, refused[i].text)) FAIL(t, "accepted: %s", refused[i].text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(examples_are_judged),
                                              TEST(reported_products_run_in_the_order_of_their_issue),
                                              TEST(illegal_forms_are_refused) };
    return TEST_MAIN(argc, argv, cases);
}
