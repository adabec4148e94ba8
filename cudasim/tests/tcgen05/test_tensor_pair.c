/* CTA pairs: tensor memory that both allocate and free together, and products of one thread on both.  Each wrong kernel
 * is reported under every one of the first schedules; its right twin gives the right sum in both CTAs and no report
 * under 100. */
#include "tests/support/schedules.h"

#define CLUSTER_BAR "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define ALLOC(n) "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [s], " #n ";\n"
#define RELINQUISH "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n"
#define DEALLOC(n) "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, " #n ";\n"

/* One warp a CTA.  %p5: the even CTA. */
#define ONE \
    ".shared .align 4 .b32 s; mov.u32 %r8, %cluster_ctarank; and.b32 %r6, %r8, 1; setp.eq.u32 %p5, %r6, 0;\n"
#define ADDRESS "bar.warp.sync -1; ld.shared.u32 %r3, [s]; bar.warp.sync -1;\n"
#define EVEN(label, text) "@!%p5 bra " label ";\n" text label ":\n"
#define ODD(label, text) "@%p5 bra " label ";\n" text label ":\n"

/* Four warps a CTA, 64 columns; 4 KiB of bf16 ones in each, the halves of A and of B: D = 16 for a product of 256 x
 * 32.  %p2: thread 0 of the even CTA; %p3: of the odd one; %p9: of each. */
#define BEGIN \
    ONE ".shared .align 1024 .b8 a[4096]; .shared .align 8 .b64 bars[2]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; " \
        "setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p9, %r1, 0; and.pred %p2, %p9, %p5; not.pred %p3, %p5; and.pred %p3, " \
        "%p3, %p9; " \
        "setp.ne.u32 %p7, 0, 0; setp.eq.u32 %p8, 0, 0; mov.u32 %r9, bars; mov.u32 %r10, a; mov.u32 %r30, 0x3f803f80; " \
        "mov.u16 %rs1, 3;\n" \
        "@!%p1 bra A; " ALLOC(64) RELINQUISH \
        "A: " \
        "@%p9 mbarrier.init.shared.b64 [%r9], 1; @%p9 mbarrier.init.shared.b64 [%r9+8], 1; " \
        "shl.b32 %r11, %r1, 5; add.u32 %r11, %r11, %r10; st.shared.v4.b32 [%r11], {%r30, %r30, %r30, %r30}; " \
        "st.shared.v4.b32 [%r11+16], {%r30, %r30, %r30, %r30}; fence.proxy.async;\n"
#define READY \
    "bar.sync 0; ld.shared.u32 %r3, [s]; shl.b32 %r5, %r2, 21; add.u32 %r5, %r5, %r3; " \
    "shr.u32 %r12, %r10, 4; and.b32 %r12, %r12, 0x3fff; cvt.u64.u32 %rd1, %r12; or.b64 %rd1, %rd1, " \
    "0x0000400800800000;\n"
#define START BEGIN CLUSTER_BAR READY
#define MMA(who, add) "@" who " tcgen05.mma.cta_group::2.kind::f16 [%r3], %rd1, %rd1, 0x10080490, " add ";\n"
#define NEW MMA("%p2", "%p7")
#define ADD MMA("%p2", "%p8")
#define OWN_COMMIT "@%p2 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r9];\n"
#define COMMIT_BY(who) \
    "@" who " tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r9], %rs1;\n"
#define COMMIT COMMIT_BY("%p2")
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p4, [%r9], 0; @!%p4 bra W;\n"
#define AFTER "tcgen05.fence::after_thread_sync;\n"
#define BEFORE "tcgen05.fence::before_thread_sync;\n"
#define LD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r5];\n"
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;\n"
#define FIVES "%r21, %r21, %r21, %r21, %r21, %r21, %r21, %r21"
#define FILL \
    "mov.u32 %r21, 0x40a00000; tcgen05.st.sync.aligned.32x32b.x32.b32 [%r5], {" FIVES ", " FIVES ", " FIVES ", " FIVES \
    "}; " \
    "tcgen05.wait::st.sync.aligned;\n"
#define KEEP \
    "mad.lo.u32 %r22, %r8, 128, %r1; mul.wide.u32 %rd2, %r22, 4; add.u64 %rd2, %rd2, %rd60; st.global.u32 [%rd2], " \
    "%r20;\n"
#define FREE CLUSTER_BAR "@%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 64;\n"
#define END WAIT AFTER LD WAIT_LD KEEP FREE

static const struct judged examples[] = {
    /* allocation */
    { "both allocate, both free", ONE ALLOC(64) RELINQUISH ADDRESS DEALLOC(64), 2, 32, REPORT_NONE, "", 0 },
    { "two pairs", ONE ALLOC(512) RELINQUISH ADDRESS DEALLOC(512), 4, 32, REPORT_NONE, "", 0 },
    { "twice", ONE ALLOC(256) ALLOC(128) RELINQUISH "mov.u32 %r3, 0;\n" DEALLOC(256) "mov.u32 %r3, 256;\n" DEALLOC(128),
      2, 32, REPORT_NONE, "", 0 },
    { "allocated by one alone", ONE EVEN("E", ALLOC(64)) CLUSTER_BAR, 2, 32, REPORT_DEADLOCK,
      "together with its peer, CTA rank 1", 0 },
    { "allocated by one, the other ends", ONE EVEN("E", ALLOC(64)), 2, 32, REPORT_DEADLOCK,
      "the peer, CTA rank 1, to execute the same", 0 },
    { "freed by one alone", ONE ALLOC(64) ADDRESS EVEN("E", DEALLOC(64)) CLUSTER_BAR, 2, 32, REPORT_DEADLOCK,
      "together with its peer, CTA rank 1", 0 },
    { "different numbers of columns", ONE EVEN("E", ALLOC(64)) ODD("O", ALLOC(128)), 2, 32, REPORT_ILLEGAL,
      "of a pair execute the same", 0 },
    { "one allocates, one frees", ONE ALLOC(64) ADDRESS EVEN("E", ALLOC(64)) ODD("O", DEALLOC(64)), 2, 32,
      REPORT_ILLEGAL, "of a pair execute the same", 0 },
    { "not freed", ONE ALLOC(64) CLUSTER_BAR, 2, 32, REPORT_RESOURCES, "no tcgen05.dealloc", 0 },
    { "no pair", ONE ALLOC(64), 1, 32, REPORT_ILLEGAL, "has no peer in its cluster of 1", 0 },
    { "a third CTA", ONE ALLOC(64) CLUSTER_BAR, 3, 32, REPORT_ILLEGAL, "CTA rank 2 has no peer", 0 },
    { "allocated after relinquishing", ONE RELINQUISH ALLOC(64), 2, 32, REPORT_ILLEGAL, "relinquish_alloc_permit", 0 },
    { "sizes increase", ONE ALLOC(32) ALLOC(64), 2, 32, REPORT_ILLEGAL, "must not increase", 0 },
    { "freed with .cta_group::1", ONE ALLOC(64) ADDRESS "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n", 2,
      32, REPORT_ILLEGAL, "has .cta_group::1 in a kernel", 0 },
    { "each CTA another group",
      ONE EVEN("E",
               "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 64; bar.warp.sync -1; "
               "ld.shared.u32 %r3, [s]; bar.warp.sync -1; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n")
          CLUSTER_BAR ODD("O", ALLOC(64)),
      2, 32, REPORT_ILLEGAL, "in a kernel that has executed", 0 },

    /* products */
    { "product on both", START NEW COMMIT END, 2, 128, REPORT_NONE, "", 16 },
    { "two products", START NEW ADD COMMIT END, 2, 128, REPORT_NONE, "", 32 },
    { "st in both, product", START FILL BEFORE CLUSTER_BAR AFTER ADD COMMIT END, 2, 128, REPORT_NONE, "", 21 },
    { "the odd CTA issues", START MMA("%p3", "%p7") COMMIT_BY("%p3") END, 2, 128, REPORT_NONE, "", 16 },
    { "both CTAs issue, in turns", START NEW BEFORE CLUSTER_BAR AFTER MMA("%p3", "%p8") COMMIT_BY("%p3") END, 2, 128,
      REPORT_NONE, "", 32 },
    { "both CTAs issue, without fences", START NEW CLUSTER_BAR MMA("%p3", "%p8") COMMIT_BY("%p3") END, 2, 128,
      REPORT_ASYNC, "no tcgen05.commit behind it", 0 },
    { "the commit reaches one CTA alone", START NEW OWN_COMMIT END, 2, 128, REPORT_DEADLOCK, "parity 0", 0 },
    { "the peer does not wait", START NEW COMMIT CLUSTER_BAR AFTER LD WAIT_LD FREE, 2, 128, REPORT_ASYNC,
      "no tcgen05.commit behind it", 0 },
    { "the peer knows by the barrier", START NEW OWN_COMMIT EVEN("E", WAIT) CLUSTER_BAR AFTER LD WAIT_LD KEEP FREE, 2,
      128, REPORT_NONE, "", 16 },
    { "the peer's st is not waited for", START FILL EVEN("E", BEFORE) CLUSTER_BAR AFTER ADD COMMIT END, 2, 128,
      REPORT_RACE, "before_thread_sync there", 0 },
    { "the peer's shared memory overwritten too early",
      START NEW COMMIT CLUSTER_BAR "@%p3 st.shared.u32 [%r10], 0;\n" END, 2, 128, REPORT_ASYNC, "", 0 },
    { "the peer's shared memory overwritten behind completion",
      START NEW COMMIT WAIT "@%p3 st.shared.u32 [%r10], 0;\n" AFTER LD WAIT_LD KEEP FREE, 2, 128, REPORT_NONE, "", 16 },
    { "the peer frees too early",
      START NEW COMMIT
      "@%p5 bra P;\nbarrier.cluster.arrive.aligned;\nP: @%p5 bra Q;\n"
      "barrier.cluster.wait.aligned;\n@%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 64; bra Z;\nQ: " FREE WAIT
      "Z:\n",
      2, 128, REPORT_ASYNC, "frees columns 0 to 63", 0 },
    { "product while the peer frees",
      START "@%p5 bra E;\n@%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 64; bra Z;\nE: "
            "nanosleep.u32 10000;\n" NEW OWN_COMMIT WAIT
            "@%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 64;\nZ:\n",
      2, 128, REPORT_ASYNC, "frees", 0 },
    { "st while the CTA frees",
      START EVEN("E",
                 "@%p1 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 64; @!%p1 nanosleep.u32 10000; "
                 "@!%p1 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r1}; @!%p1 tcgen05.wait::st.sync.aligned;\n")
          CLUSTER_BAR,
      2, 128, REPORT_ASYNC, "frees", 0 },
    { "a commit behind the peer's end",
      START NEW COMMIT EVEN("E", WAIT AFTER LD WAIT_LD KEEP) FREE EVEN("F", "nanosleep.u32 10000;\n" OWN_COMMIT), 2,
      128, REPORT_ASYNC, "CTA rank 1, has ended", 0 },
};

static void examples_are_judged(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) check_judged(t, &examples[i]);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(examples_are_judged) };
    return TEST_MAIN(argc, argv, cases);
}
