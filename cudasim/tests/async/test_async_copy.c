/* cp.async, st.async, red.async: results against the host, misuse with its report, rings under many schedules; how
 * early and how late operations complete. */
#include "tests/support/schedules.h"

/* %r1 thread, %r2 shared bytes, %r3 16 * thread, %r4 this thread's 16 shared bytes, %rd1 its source, %rd2 its result,
 * %r5 barrier */
#define BEGIN \
    ".shared .align 16 .b8 s[8192]; .shared .align 8 .b64 bar[8]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r5, " \
    "bar; " \
    "shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3; cvt.u64.u32 %rd9, %r3; add.u64 %rd1, %rd62, %rd9; add.u64 %rd2, " \
    "%rd63, %rd9;\n"
#define COPY  "cp.async.cg.shared.global [%r4], [%rd1], 16; "
#define STORE "ld.shared.v4.u32 {%r40, %r41, %r42, %r43}, [%r4]; st.global.v4.u32 [%rd2], {%r40, %r41, %r42, %r43}; "
/* reads what thread 1 ^ this one copied */
#define OTHER "xor.b32 %r6, %r3, 16; add.u32 %r6, %r2, %r6; ld.shared.u32 %r7, [%r6]; st.global.u32 [%rd2], %r7; "

static void copies_of_all_sizes(struct test *t)
{
    for (uint32_t size = 4; size <= 16; size *= 2)
        for (uint32_t valid = 0; valid <= size + 1; valid++) {
            char text[2048], source[64] = "";
            struct sim sim;
            uint8_t in[512], got[512];
            /* valid == size + 1: no source size; a predicate for odd ones of 0 and size */
            if (valid <= size) snprintf(source, sizeof source, ", %u", valid);
            if (valid == 0) snprintf(source, sizeof source, ", %%p1");
            snprintf(text, sizeof text,
                     "%scp.async.ca.shared::cta.global.L2::128B [%%r4], [%%rd1], %u%s; cp.async.wait_all; %s",
                     BEGIN "mov.u32 %r8, 0; st.shared.v4.u32 [%r4], {%r8, %r8, %r8, %r8}; setp.eq.u32 %p1, %r8, 0; ",
                     size, source, STORE);
            if (!sim_open(t, &sim, "sm_90a", text)) return;
            for (int i = 0; i < 512; i++) in[i] = (uint8_t)rnd(t);
            const uint64_t out = sim_buffer(&sim, NULL, sizeof got),
                           parameters[4] = { 0, 0, sim_buffer(&sim, in, sizeof in), out };
            if (!run_cluster(&sim, 1, 32, 0, parameters, 4)) FAIL(t, "%s", sim.report.text);
            sim_read(&sim, out, got, sizeof got);
            for (uint32_t i = 0; i < 512; i++) CHECK(t, got[i] == (i % 16 < (valid > size ? size : valid) ? in[i] : 0));
            sim_close(&sim);
        }
}

static void misuse_of_copies_is_reported(struct test *t)
{
    static const struct misuse misuses[] = {
        { COPY "cp.async.commit_group; cp.async.wait_group 0; " STORE, NULL, REPORT_NONE, 1, 32 },
        { COPY "cp.async.wait_all; " STORE, NULL, REPORT_NONE, 1, 32 },
        { COPY STORE, "it has not waited for it", REPORT_ASYNC, 1, 32 },
        { COPY "cp.async.commit_group; " STORE, "it has not waited for it", REPORT_ASYNC, 1, 32 },
        /* was not committed */
        { COPY "cp.async.wait_group 0; " STORE, "it has not waited for it", REPORT_ASYNC, 1, 32 },
        { COPY "cp.async.commit_group; cp.async.wait_group 1; " STORE, "it has not waited for it", REPORT_ASYNC, 1,
          32 },
        { COPY "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1; " STORE, NULL, REPORT_NONE, 1,
          32 },
        { COPY "cp.async.wait_all; " OTHER, "it has not waited for it", REPORT_ASYNC, 1, 64 },
        { COPY "cp.async.wait_all; bar.sync 0; " OTHER, NULL, REPORT_NONE, 1, 64 },
        { COPY "cp.async.wait_all; bar.warp.sync 0xffffffff; " OTHER, NULL, REPORT_NONE, 1, 64 },
        { COPY "st.shared.u32 [%r4], 1; cp.async.wait_all;", "it has not waited for it", REPORT_ASYNC, 1, 32 },
        { "st.shared.u32 [%r4], 1; " COPY "cp.async.wait_all; " STORE, NULL, REPORT_NONE, 1, 32 },
        /* overwrites what another thread may still read */
        { "st.shared.u32 [%r4], %r1; bar.sync 0; " OTHER COPY "cp.async.wait_all;", "no barrier", REPORT_RACE, 1, 64 },
        { "st.shared.u32 [%r4], %r1; bar.sync 0; " OTHER "bar.sync 0; " COPY "cp.async.wait_all;", NULL, REPORT_NONE, 1,
          64 },
        { "cp.async.ca.shared.global [%r4], [%rd1], 8, %r30;", NULL, REPORT_NONE, 1, 32 },
        { "mov.u32 %r30, 9; cp.async.ca.shared.global [%r4], [%rd1], 8, %r30;", "names 9 of them as source",
          REPORT_ILLEGAL, 1, 32 },
        { "cp.async.ca.shared.global [%r4+4], [%rd1], 8;", "no multiple of 8", REPORT_MISALIGNED, 1, 32 },
        { "cp.async.ca.shared.global [%r4], [%rd1+4], 8;", "no multiple of 8", REPORT_MISALIGNED, 1, 32 },
        { "cp.async.ca.shared.global [%r4], [64], 8;", "where nothing is allocated", REPORT_OUT_OF_BOUNDS, 1, 32 },
        { "cp.async.ca.shared.global [%r4], [64], 8, 0; cp.async.wait_all;", NULL, REPORT_NONE, 1, 32 },
        { "cp.async.ca.shared.global [%r2+9000], [%rd1], 8;", "the CTA has", REPORT_OUT_OF_BOUNDS, 1, 32 },
    };
    check_misuses(t, "sm_90a", BEGIN, misuses, sizeof misuses / sizeof misuses[0], NULL);
    struct sim sim;
    CHECK(t, sim_refused(t, &sim, "sm_90a", BEGIN "cp.async.cg.shared.global [%r4], [%rd1], 8;"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", BEGIN "cp.async.ca.shared.global [%r4], [%rd1], 12;"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", BEGIN "cp.async.ca.shared::cluster.global [%r4], [%rd1], 8;"));
}

#define INIT(count) \
    "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r5], " #count "; READY: bar.sync 0;\n"
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra W;\n"

static void arrivals_of_copies(struct test *t)
{
    static const struct misuse misuses[] = {
        { INIT(64) COPY "cp.async.mbarrier.arrive.noinc.shared.b64 [%r5];" WAIT OTHER, NULL, REPORT_NONE, 1, 64 },
        /* without .noinc the arrival is one more: the threads' own ones are missing */
        { INIT(64) COPY "cp.async.mbarrier.arrive.shared.b64 [%r5];" WAIT OTHER, "64 arrivals pending", REPORT_DEADLOCK,
          1, 64 },
        { INIT(64) COPY "cp.async.mbarrier.arrive.shared.b64 [%r5]; mbarrier.arrive.shared.b64 _, [%r5];" WAIT OTHER,
          NULL, REPORT_NONE, 1, 64 },
        { INIT(64) "cp.async.mbarrier.arrive.noinc.shared.b64 [%r5];" COPY WAIT OTHER, "it has not waited for it",
          REPORT_ASYNC, 1, 64 },
        { INIT(64) COPY "mbarrier.arrive.shared.b64 _, [%r5];" WAIT OTHER, "it has not waited for it", REPORT_ASYNC, 1,
          64 },
        { "cp.async.mbarrier.arrive.noinc.shared.b64 [%r5];", "no mbarrier.init", REPORT_BARRIER, 1, 32 },
        { INIT(64) "cp.async.ca.shared.global [%r5], [%rd1], 8; cp.async.wait_all;", "bytes of a live mbarrier",
          REPORT_BARRIER, 1, 32 },
    };
    check_misuses(t, "sm_90a", BEGIN, misuses, sizeof misuses / sizeof misuses[0], NULL);
}

/* Four stages: each thread copies 16 bytes of stage i + 3 while the CTA adds up those of stage i. */
static const char pipeline[] =
    BEGIN "mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0;\n"
          "HEAD: shl.b32 %r13, %r10, 10; add.u32 %r14, %r4, %r13; cvt.u64.u32 %rd3, %r13; add.u64 %rd3, %rd3, %rd1; "
          "cp.async.cg.shared.global [%r14], [%rd3], 16; cp.async.commit_group; add.u32 %r10, %r10, 1; "
          "setp.lt.u32 %p1, %r10, 3; @%p1 bra HEAD;\n"
          "LOOP: cp.async.wait_group 2; bar.sync 0; setp.ge.u32 %p2, %r10, 20; @%p2 bra SKIP;\n"
          "and.b32 %r15, %r10, 3; shl.b32 %r15, %r15, 10; add.u32 %r14, %r4, %r15; shl.b32 %r13, %r10, 10; "
          "cvt.u64.u32 %rd3, %r13; add.u64 %rd3, %rd3, %rd1; cp.async.cg.shared.global [%r14], [%rd3], 16;\n"
          "SKIP: cp.async.commit_group; add.u32 %r10, %r10, 1; and.b32 %r15, %r11, 3; shl.b32 %r15, %r15, 10; "
          "xor.b32 %r16, %r3, 752; add.u32 %r16, %r16, %r15; add.u32 %r16, %r16, %r2; ld.shared.u32 %r17, [%r16]; "
          "mad.lo.u32 %r12, %r12, 3, %r17;\n"
          "add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, 20; @%p1 bra LOOP; st.global.u32 [%rd2], %r12;\n";

static void a_pipeline_runs_under_every_schedule(struct test *t)
{
    enum { STAGES = 20, WORDS = STAGES * 256, THREADS = 64 };
    static uint32_t in[WORDS];
    for (int i = 0; i < WORDS; i++) in[i] = (uint32_t)rnd(t);
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a", pipeline)) return;
    for (uint64_t s = 0; s < 100 && t->failures == 0; s++) {
        uint32_t got[THREADS * 4];
        use_schedule(&sim, s);
        const uint64_t out = sim_buffer(&sim, NULL, sizeof got),
                       parameters[4] = { 0, 0, sim_buffer(&sim, in, sizeof in), out };
        if (!run_cluster(&sim, 1, THREADS, 0, parameters, 4)) FAIL(t, "schedule %d: %s", (int)s, sim.report.text);
        sim_read(&sim, out, got, sizeof got);
        for (uint32_t i = 0; i < THREADS; i++) {
            uint32_t want = 0;
            for (uint32_t k = 0; k < STAGES; k++) want = 3 * want + in[k * 256 + 4 * (i ^ 47)];
            CHECK(t, got[4 * i] == want);
        }
    }
    sim_close(&sim);
}

/* One look after some instructions: complete under `earliest`, not so under `latest`, both among seeds.  Whoever sleeps
 * between looks gets to the end, too. */
static void operations_complete_early_and_late(struct test *t)
{
    struct sim sim;
    bool seen[2] = { false, false };
    if (!sim_open(t, &sim, "sm_90a",
                  BEGIN INIT(1) COPY "cp.async.mbarrier.arrive.noinc.shared.b64 [%r5]; mov.u32 %r8, 20;\n"
                  "L: sub.u32 %r8, %r8, 1; setp.ne.u32 %p3, %r8, 0; @%p3 bra L;\n"
                  "mbarrier.test_wait.parity.shared.b64 %p2, [%r5], 0; selp.u32 %r9, 1, 0, %p2; "
                  "st.global.u32 [%rd2], %r9;\n"
                  "S: nanosleep.u32 20; mbarrier.test_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra S;")) return;
    for (uint64_t s = 0; s < 100; s++) {
        uint32_t in[4] = { 1, 2, 3, 4 }, got;
        use_schedule(&sim, s);
        const uint64_t out = sim_buffer(&sim, NULL, 16), parameters[4] = { 0, 0, sim_buffer(&sim, in, sizeof in), out };
        if (!run_cluster(&sim, 1, 1, 0, parameters, 4)) FAIL(t, "schedule %d: %s", (int)s, sim.report.text);
        sim_read(&sim, out, &got, sizeof got);
        if (s < 2) CHECK(t, got == (s == 0));
        else seen[got & 1] = true;
    }
    CHECK(t, seen[0] && seen[1]);
    sim_close(&sim);
}

/* CTA 1 - rank: %r10 its shared bytes of this thread, %r11 its barrier; each CTA expects BYTES a thread from the
 * other. */
#define PEERS(bytes) \
    "mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1; mapa.shared::cluster.u32 %r10, %r4, %r21; " \
    "mapa.shared::cluster.u32 %r11, %r5, %r21; mov.u32 %r8, 100; st.shared.v4.u32 [%r4], {%r8, %r8, %r8, %r8}; " \
    "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; mbarrier.init.shared.b64 [%r5], 1; " \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%r5], " #bytes "; READY: barrier.cluster.arrive; barrier.cluster.wait;\n"
#define SHOW "mad.lo.u32 %r22, %r20, 512, 0; cvt.u64.u32 %rd9, %r22; add.u64 %rd2, %rd2, %rd9; " STORE
#define SIGNAL ".shared::cluster.mbarrier::complete_tx::bytes"
#define LEAVE "barrier.cluster.arrive; barrier.cluster.wait;"

static void stores_and_reductions(struct test *t)
{
    static const struct { const char *text; uint32_t bytes; uint32_t word[4]; } cases[] = {
        { "st.async.weak" SIGNAL ".b32 [%r10], %r1, [%r11];", 4, { 7, 100, 100, 100 } },
        { "mov.b64 %rd5, {%r1, %r8}; st.async" SIGNAL ".u64 [%r10+8], %rd5, [%r11];", 8, { 100, 100, 7, 100 } },
        { "st.async" SIGNAL ".v2.s32 [%r10], {%r8, %r1}, [%r11];", 8, { 100, 7, 100, 100 } },
        { "st.async" SIGNAL ".v4.b32 [%r10], {%r1, %r1, %r8, %r1}, [%r11];", 16, { 7, 7, 100, 7 } },
        { "red.async.relaxed.cluster" SIGNAL ".add.u32 [%r10], %r1, [%r11];", 4, { 107, 100, 100, 100 } },
        { "red.async.relaxed.cluster" SIGNAL ".inc.u32 [%r10], %r1, [%r11];", 4, { 0, 100, 100, 100 } },
        { "red.async.relaxed.cluster" SIGNAL ".dec.u32 [%r10], %r1, [%r11];", 4, { 7, 100, 100, 100 } },
        { "red.async.relaxed.cluster" SIGNAL ".min.s32 [%r10], %r1, [%r11];", 4, { 7, 100, 100, 100 } },
        { "red.async.relaxed.cluster" SIGNAL ".max.u32 [%r10], %r1, [%r11];", 4, { 100, 100, 100, 100 } },
        { "red.async.relaxed.cluster" SIGNAL ".xor.b32 [%r10], %r1, [%r11];", 4, { 100 ^ 7, 100, 100, 100 } },
        { "mov.b64 %rd5, {%r1, %r1}; red.async.relaxed.cluster" SIGNAL ".add.u64 [%r10], %rd5, [%r11];", 8,
          { 107, 107, 100, 100 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[4096];
        struct sim sim;
        uint32_t got[256];
        snprintf(text, sizeof text, "mov.u32 %%r30, %u;\n%s%s%s", 32 * cases[i].bytes, BEGIN PEERS(%r30), cases[i].text,
                 WAIT SHOW LEAVE);
        if (!sim_open(t, &sim, "sm_90a", text)) return;
        for (uint64_t s = 0; s < 8; s++) {
            use_schedule(&sim, s);
            const uint64_t out = sim_buffer(&sim, NULL, sizeof got), parameters[4] = { 0, 0, 0, out };
            if (!run_cluster(&sim, 2, 32, 0, parameters, 4)) FAIL(t, "%s", sim.report.text);
            sim_read(&sim, out, got, sizeof got);
            for (int j = 0; j < 4; j++)
                CHECK(t, got[4 * 7 + j] == cases[i].word[j] && got[128 + 4 * 7 + j] == cases[i].word[j]);
        }
        sim_close(&sim);
    }
}

/* CTA 0 does this at once and leaves; CTA 1 goes on much later */
#define FIRST(what) \
    "setp.eq.u32 %p3, %r20, 0; @!%p3 bra LATER; " what " ret; LATER: mov.u32 %r8, 3000; " \
    "L: sub.u32 %r8, %r8, 1; setp.ne.u32 %p3, %r8, 0; @%p3 bra L; "

static void misuse_of_stores_is_reported(struct test *t)
{
#define ST "st.async" SIGNAL ".b32 [%r10], %r1, [%r11]; "
    static const struct misuse misuses[] = {
        { PEERS(128) ST WAIT SHOW LEAVE, NULL, REPORT_NONE, 2, 32 },
        /* the phase ends before the last bytes are there */
        { PEERS(124) ST WAIT SHOW LEAVE, "it has not waited for it", REPORT_ASYNC, 2, 32 },
        { PEERS(132) ST WAIT SHOW LEAVE, "tx-count 4", REPORT_DEADLOCK, 2, 32 },
        { PEERS(128) FIRST(ST) SHOW LEAVE, "it has not waited for it", REPORT_ASYNC, 2, 32 },
        { PEERS(128) FIRST(ST) "st.shared.u32 [%r4], 1; " LEAVE, "it has not waited for it", REPORT_ASYNC, 2, 32 },
        { PEERS(128) "st.async" SIGNAL ".b32 [%r10], %r1, [%r5]; ", "both must be the same", REPORT_ILLEGAL, 2, 32 },
        { INIT(1) "st.async" SIGNAL ".b32 [%r4], %r1, [%r5]; ", "needs a cluster of more than one", REPORT_ILLEGAL, 1,
          32 },
        { PEERS(128) "st.async" SIGNAL ".b32 [%r10+2], %r1, [%r11]; ", "no multiple of 4", REPORT_MISALIGNED, 2, 32 },
        /* the CTA that is written has left */
        { PEERS(128) FIRST("") ST, "has ended: its shared memory is gone", REPORT_OUT_OF_BOUNDS, 2, 32 },
    };
    check_misuses(t, "sm_90a", BEGIN, misuses, sizeof misuses / sizeof misuses[0], NULL);
    struct sim sim;
    CHECK(t,
          sim_refused(t, &sim, "sm_90a", BEGIN "st.async" SIGNAL ".v4.b64 [%r10], {%rd1, %rd1, %rd1, %rd1}, [%r11];"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", BEGIN "red.async.relaxed.cluster" SIGNAL ".min.u64 [%r10], %rd1, [%r11];"));
    CHECK(t, sim_refused(t, &sim, "sm_100a", BEGIN "st.async.mmio.release.sys.global.b32 [%rd1], %r2;"));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(copies_of_all_sizes),   TEST(misuse_of_copies_is_reported), TEST(arrivals_of_copies),
        TEST(stores_and_reductions), TEST(misuse_of_stores_is_reported), TEST(a_pipeline_runs_under_every_schedule),
        TEST(operations_complete_early_and_late),
    };
    return TEST_MAIN(argc, argv, cases);
}
