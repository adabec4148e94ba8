/* mbarrier: sequences against a model, each misuse with its report, rings of producers and consumers under many
 * schedules. */
#include "tests/support/harness.h"
#include "machine/core/report.h"
#include "machine/run/schedules.h"

#include <stdarg.h>
#include <stdlib.h>

enum { SCHEDULES = 100 };

static void configure(struct sim *sim, uint64_t number)
{
    sim->machine.options.seed = number;
    sim->machine.options.schedule = number == 1 ? SCHEDULE_EARLIEST : number == 2 ? SCHEDULE_LATEST : SCHEDULE_RANDOM;
}

static bool launch(struct sim *sim, uint32_t grid, uint32_t block, uint32_t cluster, uint64_t out)
{
    uint8_t parameters[32] = { 0 };
    memcpy(parameters, &out, sizeof out);
    const struct launch l = { .image = &sim->image,
                              .function = ptx_function(sim->module, "k"),
                              .grid = { grid, 1, 1 },
                              .block = { block, 1, 1 },
                              .cluster = { cluster, 1, 1 },
                              .parameters = parameters };
    return machine_run(&sim->machine, &l, &sim->report);
}

/* `text` on a cluster of `ctas` CTAs of `block` threads: the report must have this code and these words; words NULL:
 * none. */
static void expect(struct test *t, const char *text, uint32_t ctas, uint32_t block, enum report_code code,
                   const char *words)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    const uint64_t out = sim_buffer(&sim, NULL, 4096);
    const bool ran = launch(&sim, ctas, block, ctas, out);
    if (words == NULL) {
        if (!ran) FAIL(t, "%s\n%s", text, sim.report.text);
    } else if (ran || sim.report.code != code || strstr(sim.report.text, words) == NULL) {
        FAIL(t, "%s\nwanted %s with \"%s\", got %s", text, report_code_name(code), words,
             ran ? "no report" : sim.report.text);
    }
    sim_close(&sim);
}

#define OBJECT      ".shared .align 8 .b64 bar[4]; mov.u32 %r1, bar; mov.u32 %r2, %tid.x; "
#define INIT(count) OBJECT "mbarrier.init.shared.b64 [bar], " #count "; "

static void misuse_of_the_object_is_reported(struct test *t)
{
    expect(t, OBJECT "mbarrier.arrive.shared.b64 %rd1, [bar];", 1, 1, REPORT_BARRIER,
           "0x400, which no mbarrier.init has initialised");
    expect(t, OBJECT "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;", 1, 1, REPORT_BARRIER, "no mbarrier.init");
    expect(t, INIT(1) "mbarrier.arrive.shared.b64 %rd1, [bar];", 1, 1, REPORT_NONE, NULL);
    expect(t, INIT(1) "mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 %rd1, [bar];", 1, 1, REPORT_BARRIER,
           "after the mbarrier.inval of line");
    expect(t, INIT(1) "mbarrier.inval.shared.b64 [bar]; st.shared.u64 [bar], %rd1; ld.shared.u64 %rd1, [bar];", 1, 1,
           REPORT_NONE, NULL);
    expect(t, INIT(1) "mbarrier.inval.shared.b64 [bar]; ld.shared.u64 %rd1, [bar];", 1, 1, REPORT_UNINITIALISED,
           "nothing has written");
    expect(t, INIT(1) "mbarrier.init.shared.b64 [bar], 1;", 1, 1, REPORT_BARRIER, "no mbarrier.inval has ended");
    expect(t, INIT(1) "mbarrier.inval.shared.b64 [bar]; mbarrier.init.shared.b64 [bar], 2;", 1, 1, REPORT_NONE, NULL);
    expect(t, INIT(1) "ld.shared.u32 %r3, [bar+4];", 1, 1, REPORT_BARRIER, "reads bytes of a live mbarrier");
    expect(t, INIT(1) "st.shared.u32 [bar], 0;", 1, 1, REPORT_BARRIER, "writes bytes of a live mbarrier");
    expect(t, INIT(1) "atom.shared.add.u32 %r3, [bar], 1;", 1, 1, REPORT_BARRIER, "bytes of a live mbarrier");
    expect(t, INIT(1) "st.shared.u32 [bar+8], 0;", 1, 1, REPORT_NONE, NULL);
    expect(t, INIT(0), 1, 1, REPORT_BARRIER, "for 0 arrivals");
    expect(t, INIT(1048576), 1, 1, REPORT_BARRIER, "1 to 1048575 are possible");
    expect(t, INIT(1048575), 1, 1, REPORT_NONE, NULL);
    expect(t, OBJECT "mbarrier.init.shared.b64 [bar+4], 1;", 1, 1, REPORT_MISALIGNED, "no multiple of 8");
    expect(t, OBJECT "mbarrier.init.b64 [%rd60], 1;", 1, 1, REPORT_BARRIER, "not in shared memory");
    expect(t, OBJECT "cvta.shared.u64 %rd1, bar; mbarrier.init.b64 [%rd1], 1; mbarrier.arrive.b64 %rd2, [%rd1];", 1, 1,
           REPORT_NONE, NULL);
    expect(t, INIT(1) "mbarrier.expect_tx.shared.b64 [bar], 16; mbarrier.inval.shared.b64 [bar];", 1, 1, REPORT_BARRIER,
           "copies have not completed");
}

static void wrong_counts_are_reported(struct test *t)
{
    expect(t, INIT(2) "mbarrier.arrive.shared.b64 %rd1, [bar], 3;", 1, 1, REPORT_BARRIER,
           "arrives 3 times, more often than is awaited, at mbarrier 0x400 (phase 0: 2 of 2 arrivals pending, tx-count "
           "0)");
    expect(t, INIT(2) "mbarrier.arrive.shared.b64 %rd1, [bar], 2;", 1, 1, REPORT_NONE, NULL);
    expect(t, INIT(2) "mbarrier.arrive.shared.b64 %rd1, [bar], 0;", 1, 1, REPORT_BARRIER, "arrives 0 times");
    /* an arrival while bytes are still awaited */
    expect(t, INIT(1) "mbarrier.arrive.expect_tx.shared.b64 %rd1, [bar], 8; mbarrier.arrive.shared.b64 %rd1, [bar];", 1,
           1, REPORT_BARRIER, "more often than is awaited");
    expect(t, INIT(1) "mbarrier.expect_tx.shared.b64 [bar], 1048576;", 1, 1, REPORT_BARRIER,
           "expects more bytes than a tx-count holds");
    expect(t, INIT(1) "mbarrier.expect_tx.shared.b64 [bar], 1048575;", 1, 1, REPORT_NONE, NULL);
    expect(t, INIT(1) "mbarrier.complete_tx.shared.b64 [bar], 1048575; mbarrier.complete_tx.shared.b64 [bar], 1;", 1, 1,
           REPORT_BARRIER, "completes more bytes than a tx-count holds");
    expect(t, INIT(2) "mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 2;", 1, 1, REPORT_BARRIER,
           "in spite of .noComplete");
    expect(t, INIT(2) "mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 1;", 1, 1, REPORT_NONE, NULL);
    expect(t, INIT(2) "mbarrier.arrive_drop.shared.b64 %rd1, [bar], 2; mbarrier.arrive.shared.b64 %rd1, [bar];", 1, 1,
           REPORT_BARRIER, "0 of 0 arrivals pending");
    expect(t, INIT(2) "mbarrier.arrive.shared.b64 %rd1, [bar]; mbarrier.pending_count.b64 %r3, %rd1;", 1, 1,
           REPORT_BARRIER, "no state of an mbarrier.arrive.noComplete");
}

/* Threads that wait for a phase which cannot end; the report shows why. */
static void waits_without_end_are_deadlocks(struct test *t)
{
#define UNTIL(parity) "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], " #parity "; @!%p1 bra W; "
    expect(
        t,
        INIT(1) "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64; mbarrier.complete_tx.shared.b64 [bar], 48; " UNTIL(
            0),
        1, 1, REPORT_DEADLOCK, "mbarrier 0x400, parity 0 (phase 0: 0 of 1 arrivals pending, tx-count 16)");
    expect(
        t,
        INIT(1) "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64; mbarrier.complete_tx.shared.b64 [bar], 64; " UNTIL(
            0),
        1, 1, REPORT_NONE, NULL);
    expect(t, INIT(2) "mbarrier.arrive.shared.b64 _, [bar]; " UNTIL(0), 1, 1, REPORT_DEADLOCK,
           "1 of 2 arrivals pending");
    expect(t, INIT(1) UNTIL(1), 1, 1, REPORT_NONE, NULL);
    /* the same with a loop that never waits, and with a time that is given */
    expect(t, INIT(2) "mbarrier.arrive.shared.b64 _, [bar]; W: mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; "
                      "@!%p1 bra W;", 1,
           1, REPORT_DEADLOCK, "1 of 2 arrivals pending");
    expect(t, INIT(1) "W: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0, 100; @!%p1 bra W;", 1, 1, REPORT_DEADLOCK,
           "1 of 1 arrivals pending");
}

static void phases_that_moved_on_are_reported(struct test *t)
{
    /* thread 32 looks at phase 0 in vain; phases 0 and 1 end behind its back; then it looks again */
#define MOVES(phases) \
    OBJECT "setp.ne.u32 %p2, %r2, 0; @!%p2 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; setp.eq.u32 %p3, %r2, 32; " \
           "@%p3 mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; bar.sync 0; mov.u32 %r3, " #phases \
           "; @%p2 bra D; " \
           "L: mbarrier.arrive.shared.b64 _, [bar]; sub.u32 %r3, %r3, 1; setp.ne.u32 %p4, %r3, 0; @%p4 bra L; D: " \
           "bar.sync 0; " \
           "@%p3 mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; "
    expect(t, MOVES(1), 1, 64, REPORT_NONE, NULL);
    expect(t, MOVES(2), 1, 64, REPORT_BARRIER,
           "waits for parity 0, of phase 0; that phase and the next have ended meanwhile");
    expect(t, MOVES(3), 1, 64, REPORT_BARRIER, "that phase and the next have ended meanwhile");
    expect(t, INIT(1) "mbarrier.test_wait.parity.shared.b64 %p1, [bar], 2;", 1, 1, REPORT_BARRIER,
           "waits for parity 2");
    expect(t, INIT(1) "mbarrier.arrive.shared.b64 %rd1, [bar]; mbarrier.test_wait.shared.b64 %p1, [bar], %rd1;", 1, 1,
           REPORT_NONE, NULL);
    expect(t,
           INIT(1) "mbarrier.arrive.shared.b64 %rd1, [bar]; mbarrier.arrive.shared.b64 %rd2, [bar]; "
                   "mbarrier.test_wait.shared.b64 %p1, [bar], %rd1;",
           1, 1, REPORT_BARRIER, "the state of a phase older than the last one");
    expect(t, INIT(1) "mov.u64 %rd1, 77; mbarrier.test_wait.shared.b64 %p1, [bar], %rd1;", 1, 1, REPORT_BARRIER,
           "a value that no mbarrier.arrive gave");
    expect(t,
           INIT(1) "mbarrier.init.shared.b64 [bar+8], 1; mbarrier.arrive.shared.b64 %rd1, [bar]; "
                   "mbarrier.test_wait.shared.b64 %p1, [bar+8], %rd1;",
           1, 1, REPORT_BARRIER, "a value that no mbarrier.arrive gave");
}

/* CTA 1 arrives at CTA 0's object. */
static void clusters_arrive_at_each_other(struct test *t)
{
#define CLUSTER \
    OBJECT "mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p2, %r4, 0; @%p2 mbarrier.init.shared.b64 [bar], 1; " \
           "fence.mbarrier_init.release.cluster; mapa.shared::cluster.u32 %r5, %r1, 0; "
#define MEET "barrier.cluster.arrive.relaxed; barrier.cluster.wait; "
    expect(t,
           CLUSTER MEET "@!%p2 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5]; @%p2 bra T; bra D; "
                        "T: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [bar], 0; @!%p1 bra T; D:",
           2, 1, REPORT_NONE, NULL);
    expect(t, CLUSTER MEET "@!%p2 mbarrier.arrive.shared.b64 %rd1, [%r5];", 2, 1, REPORT_OUT_OF_BOUNDS,
           "the CTA's own shared memory");
    expect(t, CLUSTER MEET "mbarrier.expect_tx.shared::cluster.b64 [%r5], 8; mbarrier.complete_tx.shared::cluster.b64 "
                           "[%r5], 8; " MEET,
           2, 1, REPORT_NONE, NULL);
    /* CTA 0 leaves at once; CTA 1 goes through a long loop first */
#define LATE "@%p2 bra D; mov.u32 %r6, 2000; L: sub.u32 %r6, %r6, 1; setp.ne.u32 %p4, %r6, 0; @%p4 bra L; "
    expect(t, CLUSTER MEET LATE "mbarrier.arrive.shared::cluster.b64 _, [%r5]; D:", 2, 1, REPORT_OUT_OF_BOUNDS,
           "has ended: its shared memory is gone");
    expect(t, CLUSTER MEET LATE "mbarrier.arrive.shared::cluster.b64 _, [%r5]; D: " MEET, 2, 1, REPORT_NONE, NULL);
    struct sim sim;
    CHECK(t, sim_refused(t, &sim, "sm_90a", INIT(1) "mbarrier.arrive.shared::cluster.b64 %rd1, [bar];"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", INIT(1) "mbarrier.arrive.noComplete.shared.b64 %rd1, [bar];"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", INIT(1) "mbarrier.test_wait.shared::cluster.b64 %p1, [bar], %rd1;"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", INIT(1) "mbarrier.arrive.release.gpu.shared.b64 %rd1, [bar];"));
}

/* ---- sequences against a model ---- */

struct model {
    uint32_t expected, pending;
    int32_t tx;
    uint64_t phase;
};

static void model_end(struct model *m)
{
    if (m->pending != 0 || m->tx != 0) return;
    m->pending = m->expected;
    m->phase++;
}

struct writer {
    char *text;
    size_t size, length;
};
__attribute__((format(printf, 2, 3))) static void put(struct writer *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    s->length += (size_t)vsnprintf(s->text + s->length, s->size - s->length, format, arguments);
    va_end(arguments);
}

/* One thread does random legal operations; after each it stores what is said of both parities, and by pending_count. */
static void one_sequence(struct test *t)
{
    enum { STEPS = 60, TEXT = 64 * 1024 };
    uint32_t want[4 * STEPS] = { 0 }, got[4 * STEPS];
    struct writer s = { .text = malloc(TEXT), .size = TEXT };
    if (s.text == NULL) abort();
    struct model m = { .expected = 1 + (uint32_t)rnd_below(t, 6) };
    m.pending = m.expected;
    put(&s, "%s mbarrier.init.shared.b64 [bar], %u; mov.u32 %%r3, 99;\n", OBJECT, m.expected);
    for (int i = 0; i < STEPS; i++) {
        const uint32_t count = 1 + (uint32_t)rnd_below(t, m.pending == 0 ? 1 : m.pending),
                       bytes = 1 + (uint32_t)rnd_below(t, 4000);
        const bool drop = rnd_below(t, 8) == 0 && m.expected > count;
        uint32_t before = 99;
        put(&s, "mov.u32 %%r3, 99; ");
        switch (rnd_below(t, 6)) {
        case 0:
            put(&s, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %u; ", bytes);
            m.tx += (int32_t)bytes;
            break;
        case 1:
            put(&s, "mbarrier.complete_tx.shared.b64 [bar], %u; ", bytes);
            m.tx -= (int32_t)bytes;
            break;
        case 2:
            if (m.pending == 0) break;
            put(&s, "mbarrier.arrive.expect_tx.shared.b64 _, [bar], %u; ", bytes);
            m.tx += (int32_t)bytes;
            m.pending--;
            break;
        case 3:
            if (count >= m.pending && m.tx == 0) break;
            if (count > m.pending) break;
            put(&s,
                "mbarrier.arrive%s.noComplete.shared.b64 %%rd1, [bar], %u; mbarrier.pending_count.b64 %%r3, %%rd1; ",
                drop ? "_drop" : "", count);
            before = m.pending;
            m.pending -= count;
            if (drop) m.expected -= count;
            break;
        default:
            if (m.tx != 0 && rnd_below(t, 2) == 0) { /* back to zero, from both sides */
                put(&s, "mbarrier.%s_tx.shared.b64 [bar], %d; ", m.tx > 0 ? "complete" : "expect", abs(m.tx));
                m.tx = 0;
            } else if (m.pending != 0) {
                put(&s, "mbarrier.arrive%s.shared.b64 %%rd1, [bar], %u; ", drop ? "_drop" : "", count);
                m.pending -= count;
                if (drop) m.expected -= count;
            }
        }
        model_end(&m);
        put(&s, "mbarrier.test_wait.parity.shared.b64 %%p1, [bar], %u; selp.u32 %%r4, 1, 0, %%p1; mov.u32 %%r5, 7; ",
            (uint32_t)(m.phase & 1));
        put(&s, "mbarrier.try_wait.parity.shared.b64 %%p1, [bar], %u; selp.u32 %%r5, 1, 0, %%p1; ",
            (uint32_t)(~m.phase & 1));
        put(&s, "st.global.v4.u32 [%%rd60+%d], {%%r3, %%r4, %%r5, 0};\n", 16 * i);
        want[4 * i] = before;
        want[4 * i + 1] = 0;
        want[4 * i + 2] = 1;
    }
    struct sim sim;
    if (sim_open(t, &sim, "sm_90a", s.text)) {
        const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
        if (!launch(&sim, 1, 1, 1, out)) FAIL(t, "%s", sim.report.text);
        sim_read(&sim, out, got, sizeof got);
        for (int i = 0; i < 4 * STEPS; i++)
            if (got[i] != want[i]) {
                FAIL(t, "step %d, value %d: %u, not %u", i / 4, i % 4, got[i], want[i]);
                break;
            }
        sim_close(&sim);
    }
    free(s.text);
}

static void sequences_agree_with_a_model(struct test *t)
{
    for (int i = 0; i < 50; i++) one_sequence(t);
}

/* ---- rings ---- */

/* Warp 0 produces, warps 1 and 2 consume: 4 stages of 32 words, full barriers of 32 arrivals, empty ones of 64. */
static const char ring[] =
    ".shared .align 8 .b64 full[4], empty[4]; .shared .align 4 .b32 data[128];\n"
    "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31; mov.u32 %r20, full; mov.u32 %r21, empty; "
    "mov.u32 %r22, data;\n"
    "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY; mov.u32 %r4, 0;\n"
    "I: shl.b32 %r5, %r4, 3; add.u32 %r6, %r20, %r5; add.u32 %r7, %r21, %r5; mbarrier.init.shared.b64 [%r6], 32;\n"
    "mbarrier.init.shared.b64 [%r7], 64; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 4; @%p2 bra I;\n"
    "READY: bar.sync 0; mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 %r10, 0;\n" /* iteration, phase, sum */
    "setp.ne.u32 %p3, %r2, 0; @%p3 bra CONSUME;\n"
    "PRODUCE: and.b32 %r11, %r8, 3; shl.b32 %r12, %r11, 3; add.u32 %r13, %r21, %r12; xor.b32 %r14, %r9, 1;\n"
    "PW: mbarrier.try_wait.parity.shared.b64 %p4, [%r13], %r14; @!%p4 bra PW;\n"
    "shl.b32 %r15, %r11, 5; add.u32 %r15, %r15, %r3; shl.b32 %r15, %r15, 2; add.u32 %r15, %r15, %r22; "
    "mad.lo.u32 %r16, %r8, 100, %r3;\n"
    "st.shared.u32 [%r15], %r16; add.u32 %r17, %r20, %r12; mbarrier.arrive.shared.b64 %rd1, [%r17];\n"
    "add.u32 %r8, %r8, 1; and.b32 %r18, %r8, 3; setp.eq.u32 %p5, %r18, 0; @%p5 xor.b32 %r9, %r9, 1;\n"
    "setp.lt.u32 %p6, %r8, 23; @%p6 bra PRODUCE; bra DONE;\n"
    "CONSUME: and.b32 %r11, %r8, 3; shl.b32 %r12, %r11, 3; add.u32 %r17, %r20, %r12;\n"
    "CW: mbarrier.test_wait.parity.shared.b64 %p4, [%r17], %r9; @!%p4 bra CW;\n"
    "xor.b32 %r19, %r3, 5; shl.b32 %r15, %r11, 5; add.u32 %r15, %r15, %r19; shl.b32 %r15, %r15, 2; "
    "add.u32 %r15, %r15, %r22;\n"
    "ld.shared.u32 %r16, [%r15]; mad.lo.u32 %r10, %r10, 3, %r16; add.u32 %r13, %r21, %r12; "
    "mbarrier.arrive.shared.b64 %rd1, [%r13];\n"
    "add.u32 %r8, %r8, 1; and.b32 %r18, %r8, 3; setp.eq.u32 %p5, %r18, 0; @%p5 xor.b32 %r9, %r9, 1;\n"
    "setp.lt.u32 %p6, %r8, 23; @%p6 bra CONSUME; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd60; "
    "st.global.u32 [%rd2], %r10;\n"
    "DONE:\n";

static void a_ring_runs_under_every_schedule(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a", ring)) return;
    for (uint64_t number = 1; number <= SCHEDULES && t->failures == 0; number++) {
        uint32_t got[96] = { 0 };
        configure(&sim, number);
        const uint64_t out = sim_buffer(&sim, NULL, sizeof got);
        if (!launch(&sim, 1, 96, 1, out)) FAIL(t, "schedule %d: %s", (int)number, sim.report.text);
        sim_read(&sim, out, got, sizeof got);
        for (uint32_t i = 32; i < 96; i++) {
            uint32_t want = 0;
            for (uint32_t k = 0; k < 23; k++) want = 3 * want + 100 * k + ((i & 31) ^ 5);
            CHECK(t, got[i] == want);
        }
    }
    sim_close(&sim);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(misuse_of_the_object_is_reported), TEST(wrong_counts_are_reported),
        TEST(waits_without_end_are_deadlocks),  TEST(phases_that_moved_on_are_reported),
        TEST(clusters_arrive_at_each_other),    TEST(sequences_agree_with_a_model),
        TEST(a_ring_runs_under_every_schedule),
    };
    return TEST_MAIN(argc, argv, cases);
}
