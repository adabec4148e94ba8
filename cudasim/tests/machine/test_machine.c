/* Threads, branches, calls, memory: small kernels whose results are known. */
#include "tests/support/harness.h"
#include "machine/core/report.h"
#include "machine/run/schedules.h"

static void each_thread_writes_its_number(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a",
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;\n"
        "mul.wide.u32 %rd1, %r4, 4; add.s64 %rd2, %rd60, %rd1; st.global.u32 [%rd2], %r4;\n")) return;
    uint32_t got[5 * 70];
    const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
    sim_launch(t, &sim, "k", 5, 70, (uint64_t[]){ out }, 1);
    sim_read(&sim, out, got, sizeof got);
    for (uint32_t i = 0; i < 5 * 70; i++) CHECK(t, got[i] == i);
    sim_close(&sim);
}

static void a_write_behind_the_end_is_reported(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a",
        "mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.s64 %rd2, %rd60, %rd1;\n"
        "st.global.u32 [%rd2], %r3;\n")) return;
    const uint64_t out = sim_buffer(&sim, NULL, 4 * 31 + 3);
    CHECK(t, !sim_run(&sim, "k", 1, 32, 0, &out, 1));
    CHECK(t, sim.report.code == REPORT_OUT_OF_BOUNDS);
    CHECK(t, sim.report.lane == 31);
    CHECK(t, strstr(sim.report.text, "st.global.u32 [%rd2], %r3;") != NULL);
    sim_close(&sim);
}

/* Runs `text` on one CTA of `block` threads; the report must have this code and hold these words. */
static void reports(struct test *t, const char *text, uint32_t block, enum report_code code, const char *words)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    const uint64_t out = sim_buffer(&sim, NULL, 4096);
    const bool ran = sim_run(&sim, "k", 1, block, 0, &out, 1);
    if (ran || sim.report.code != code || strstr(sim.report.text, words) == NULL)
        FAIL(t, "wanted %s with \"%s\", got %s", report_code_name(code), words, ran ? "no report" : sim.report.text);
    sim_close(&sim);
}

static void misuse_is_reported(struct test *t)
{
    reports(t, ".shared .b32 s[4]; mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+4];", 1, REPORT_UNINITIALISED,
            "of which nothing has written 4");
    reports(t, ".shared .b32 s[4]; mov.u32 %r1, s; st.shared.u32 [%r1+16], %r1;", 1, REPORT_OUT_OF_BOUNDS,
            "(16 bytes)");
    reports(t, "st.global.u32 [%rd60+2], %r1;", 1, REPORT_MISALIGNED, "no multiple of 4");
    reports(t, "ld.global.u32 %r1, [0];", 1, REPORT_OUT_OF_BOUNDS, "where nothing is allocated");
    reports(t, "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 5; @%p1 bar.sync 0;", 32, REPORT_DIVERGENCE,
            "0x0000001f of 0xffffffff");
    reports(t, "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; @%p1 bra A; bar.sync 1; bra B; A: bar.sync 0; B:", 32,
            REPORT_DIVERGENCE, "do not reach");
    reports(t, "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @!%p1 bra B; bar.sync 0, 64; B:", 96, REPORT_DEADLOCK,
            "warp 0 lanes 0xffffffff wait for barrier 0");
    reports(t, "shfl.sync.idx.b32 %r1, %r2, 0, 31, 0xfffffffe;", 32, REPORT_DIVERGENCE, "lacks its own lane");
    reports(t, "trap;", 1, REPORT_TRAP, "trap");
    reports(t, "barrier.cluster.wait;", 32, REPORT_BARRIER, "without having arrived");
    reports(t, "brx.idx 3, T; T: .branchtargets A, B; A: B: ret;", 32, REPORT_OUT_OF_BOUNDS, "entry 3 of a table of 2");
}

/* Each CTA of a cluster writes its rank into the next one's shared memory. */
static void clusters_share_memory(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a",
                  ".shared .align 4 .b32 s[32]; mov.u32 %r1, s; mov.u32 %r2, %cluster_ctarank; "
                  "mov.u32 %r3, %cluster_nctarank; mov.u32 %r9, %tid.x;\n"
                  "add.u32 %r4, %r2, 1; rem.u32 %r4, %r4, %r3; shl.b32 %r10, %r9, 2; add.u32 %r1, %r1, %r10; "
                  "mapa.shared::cluster.u32 %r5, %r1, %r4;\n"
                  "st.shared::cluster.u32 [%r5], %r2; barrier.cluster.arrive; barrier.cluster.wait; "
                  "ld.shared.u32 %r6, [%r1];\n"
                  "mov.u32 %r7, %ctaid.x; mad.lo.u32 %r8, %r7, 32, %r9; mul.wide.u32 %rd1, %r8, 4; "
                  "add.u64 %rd1, %rd1, %rd60; st.global.u32 [%rd1], %r6;\n"))
        return;
    uint32_t got[8 * 32];
    const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
    uint8_t parameters[32] = { 0 };
    memcpy(parameters, &out, 8);
    const struct launch launch = { .image = &sim.image,
                                   .function = ptx_function(sim.module, "k"),
                                   .grid = { 8, 1, 1 },
                                   .block = { 32, 1, 1 },
                                   .cluster = { 4, 1, 1 },
                                   .parameters = parameters };
    if (!machine_run(&sim.machine, &launch, &sim.report)) FAIL(t, "%s", sim.report.text);
    sim_read(&sim, out, got, sizeof got);
    for (uint32_t i = 0; i < 8 * 32; i++) CHECK(t, got[i] == (i / 32 + 3) % 4);
    sim_close(&sim);
}

/* A CTA writes into the other's shared memory; the other waits for it at the cluster's barrier, or has ended long
 * before. */
static void shared_memory_ends_with_its_cta(struct test *t)
{
    for (int waits = 0; waits < 2; waits++) {
        struct sim sim;
        char text[1024];
        snprintf(text, sizeof text,
                 ".shared .align 4 .b32 s[4]; mov.u32 %%r1, s; mov.u32 %%r2, %%cluster_ctarank; "
                 "setp.eq.u32 %%p1, %%r2, 1; @%%p1 bra E;\n"
                 "mov.u32 %%r3, 0; L: add.u32 %%r3, %%r3, 1; setp.lt.u32 %%p2, %%r3, 20000; @%%p2 bra L;\n"
                 "mapa.shared::cluster.u32 %%r4, %%r1, 1; st.shared::cluster.u32 [%%r4], %%r2;\nE: %s",
                 waits ? "barrier.cluster.arrive; barrier.cluster.wait;\n" : "");
        if (!sim_open(t, &sim, "sm_90a", text)) return;
        const struct launch launch = { .image = &sim.image, .function = ptx_function(sim.module, "k"),
                                       .grid = { 2, 1, 1 },
                                       .block = { 32, 1, 1 }, .cluster = { 2, 1, 1 },
                                       .parameters = (const uint8_t[32]){ 0 } };
        const bool ran = machine_run(&sim.machine, &launch, &sim.report);
        if (waits && !ran) FAIL(t, "%s", sim.report.text);
        if (!waits) CHECK(t, !ran && strstr(sim.report.text, "which has ended") != NULL);
        sim_close(&sim);
    }
}

/* Every lane maps to the CTA of its number; only those that are there may be used.  256 is no other name of 0. */
static void ranks_that_are_not_there_are_nobodys(struct test *t)
{
    static const struct { const char *used; bool right; } cases[] = {
        { "setp.lt.u32 %p1, %r3, 2; @%p1", true }, { "setp.eq.u32 %p1, %r3, 2; @%p1", false },
        { "mapa.shared::cluster.u32 %r4, %r1, 256;", false }, { "mapa.shared::cluster.u32 %r4, %r1, 257;", false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sim sim;
        char text[512];
        snprintf(text, sizeof text, ".shared .align 4 .b32 s[4]; mov.u32 %%r1, s; mov.u32 %%r3, %%tid.x;\n"
                 "mapa.shared::cluster.u32 %%r4, %%r1, %%r3;\n%s red.shared::cluster.add.u32 [%%r4], 1;\n"
                 "barrier.cluster.arrive; barrier.cluster.wait;\n", cases[i].used);
        if (!sim_open(t, &sim, "sm_90a", text)) return;
        const struct launch launch = { .image = &sim.image, .function = ptx_function(sim.module, "k"),
                                       .grid = { 2, 1, 1 }, .block = { 32, 1, 1 }, .cluster = { 2, 1, 1 },
                                       .parameters = (const uint8_t[32]){ 0 } };
        sim.machine.options.check_uninitialised = false;
        const bool ran = machine_run(&sim.machine, &launch, &sim.report);
        if (ran != cases[i].right) FAIL(t, "case %zu: %s", i, ran ? "no report" : sim.report.text);
        if (!ran) CHECK(t, sim.report.code == REPORT_OUT_OF_BOUNDS);
        sim_close(&sim);
    }
}

/* One CTA waits for a flag that another sets: both must be resident, on one host thread as well. */
static void resident_ctas_wait_for_each_other(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a",
                  "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @!%p1 bra SET;\n"
                  "WAIT: ld.acquire.gpu.global.u32 %r2, [%rd60]; setp.ne.u32 %p2, %r2, 3; @%p2 bra WAIT; "
                  "st.global.u32 [%rd60+4], %r2; bra.uni DONE;\n"
                  "SET: red.release.gpu.global.add.u32 [%rd60], 1;\nDONE:\n"))
        return;
    sim.machine.options.threads = 1;
    uint32_t got[2] = { 0 };
    const uint64_t out = sim_buffer(&sim, got, sizeof got);
    sim_launch(t, &sim, "k", 4, 1, &out, 1);
    sim_read(&sim, out, got, sizeof got);
    CHECK(t, got[0] == 3 && got[1] == 3);
    sim_close(&sim);
}

/* The same seed gives the same order; lanes of a warp that diverge meet again. */
static void lanes_meet_again(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a",
                  "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r5, 0;\n"
                  "LOOP: and.b32 %r3, %r1, 3; setp.gt.u32 %p1, %r2, %r3; @%p1 bra OUT; add.u32 %r2, %r2, 1; "
                  "add.u32 %r5, %r5, %r1; bra LOOP;\n"
                  "OUT: vote.sync.ballot.b32 %r4, 1, -1; activemask.b32 %r6; and.b32 %r4, %r4, %r6;\n"
                  "mul.wide.u32 %rd1, %r1, 8; add.u64 %rd1, %rd1, %rd60; st.global.v2.u32 [%rd1], {%r4, %r5};\n"))
        return;
    uint32_t got[64];
    const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
    sim_launch(t, &sim, "k", 1, 32, &out, 1);
    sim_read(&sim, out, got, sizeof got);
    for (uint32_t i = 0; i < 32; i++) CHECK(t, got[2 * i] == UINT32_MAX && got[2 * i + 1] == i * ((i & 3) + 1));
    sim_close(&sim);
}

static void warps_synchronise_by_counts(struct test *t)
{
    struct sim sim;
    /* warps 0 and 1 produce and arrive, warp 2 waits for 96 threads and adds; warp 3 has nothing to do with it */
    if (!sim_open(t, &sim, "sm_90a",
                  ".shared .align 4 .b32 s[64]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; shl.b32 %r3, %r1, 2; "
                  "mov.u32 %r4, s; add.u32 %r5, %r4, %r3;\n"
                  "setp.eq.u32 %p1, %r2, 2; setp.eq.u32 %p2, %r2, 3; @%p2 bra DONE; @%p1 bra TAKE; "
                  "st.shared.u32 [%r5], %r1; bar.arrive 5, 96; bra.uni DONE;\n"
                  "TAKE: bar.sync 5, 96; ld.shared.u32 %r6, [%r5-256]; ld.shared.u32 %r7, [%r5-128]; "
                  "add.u32 %r6, %r6, %r7; and.b32 %r8, %r1, 31;\n"
                  "mul.wide.u32 %rd1, %r8, 4; add.u64 %rd1, %rd1, %rd60; st.global.u32 [%rd1], %r6;\nDONE:\n"))
        return;
    uint32_t got[32];
    const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
    sim_launch(t, &sim, "k", 1, 128, &out, 1);
    sim_read(&sim, out, got, sizeof got);
    for (uint32_t i = 0; i < 32; i++) CHECK(t, got[i] == 2 * i + 32);
    sim_close(&sim);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(each_thread_writes_its_number),
        TEST(a_write_behind_the_end_is_reported),
        TEST(misuse_is_reported),
        TEST(clusters_share_memory),
        TEST(shared_memory_ends_with_its_cta), TEST(ranks_that_are_not_there_are_nobodys),
        TEST(resident_ctas_wait_for_each_other),
        TEST(lanes_meet_again),
        TEST(warps_synchronise_by_counts),
    };
    return TEST_MAIN(argc, argv, cases);
}
