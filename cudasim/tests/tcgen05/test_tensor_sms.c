/* CTAs that share an SM's tensor memory: who waits for whom, and when for ever. */
#include "tests/support/schedules.h"
#include "machine/run/schedules.h"

#define ALLOC(n) ".shared .align 4 .b32 s; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], " #n ";\n"
#define AGAIN(n) "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], " #n ";\n"
#define RELINQUISH "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
#define ADDRESS "bar.warp.sync -1; ld.shared.u32 %r3, [s]; bar.warp.sync -1;\n"
#define DEALLOC(n) ADDRESS "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, " #n ";\n"
/* The address goes to p0[CTA]. */
#define KEEP \
    ADDRESS "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd1, %rd60; st.global.u32 [%rd2], " \
            "%r3;\n"
/* CTAs count themselves at p1, and go on when there are two. */
#define MEET \
    "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra ONE; red.release.gpu.global.add.u32 [%rd61], 1; " \
    "ONE: bar.warp.sync -1;\n" \
    "MEET: ld.acquire.gpu.global.u32 %r2, [%rd61]; setp.lt.u32 %p2, %r2, 2; @%p2 bra MEET; bar.warp.sync -1;\n"
/* Values that nobody else may overwrite: the CTA's number in the first column. */
#define NUMBER \
    ADDRESS \
        "mov.u32 %r4, %ctaid.x; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r4}; tcgen05.wait::st.sync.aligned;\n"
#define VERIFY \
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r3]; tcgen05.wait::ld.sync.aligned; setp.ne.u32 %p3, %r5, %r4; " \
    "@%p3 trap;\n"

enum { ANY, NEVER, ALWAYS_STUCK, STUCK_WHEN_PACKED };
static const struct example {
    const char *what, *text;
    uint32_t sms, ctas;
    uint32_t distinct;                    /* columns between the addresses of the first two CTAs; ANY: not looked at */
    int stuck;
} examples[] = {
    { "all of it, one after the other", ALLOC(512) RELINQUISH NUMBER VERIFY DEALLOC(512), 1, 8, ANY, NEVER },
    { "all of it, without relinquishing", ALLOC(512) NUMBER VERIFY DEALLOC(512), 1, 8, ANY, NEVER },
    { "two at once", ALLOC(256) RELINQUISH KEEP NUMBER MEET VERIFY DEALLOC(256), 1, 2, 256, NEVER },
    { "two at once, both want more",
      ALLOC(128) AGAIN(128) RELINQUISH KEEP MEET
      "ld.shared.u32 %r3, [s]; and.b32 %r3, %r3, 256; "
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128; add.u32 %r3, %r3, 128; "
      "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 128;\n",
      1, 2, 256, NEVER },
    { "two that must meet, and do not both fit", ALLOC(512) RELINQUISH MEET DEALLOC(512), 1, 2, ANY, ALWAYS_STUCK },
    { "two that must meet, on an SM each if nobody packs them", ALLOC(512) RELINQUISH MEET DEALLOC(512), 2, 2, ANY,
      STUCK_WHEN_PACKED },
    { "two that must meet, and the first keeps the permit", ALLOC(256) MEET DEALLOC(256), 1, 2, ANY, ALWAYS_STUCK },
    { "two that must meet behind the first one's end", ALLOC(512) DEALLOC(512) RELINQUISH MEET, 1, 2, ANY, NEVER },
};

static bool launch(struct sim *sim, const struct example *e, const uint64_t *parameters)
{
    sim->machine.options.sms = e->sms;
    sim->machine.options.threads = 1;
    sim->machine.options.step_limit = 30000;
    return sim_run(sim, "k", e->ctas, 32, 0, parameters, 2);
}

static bool is_stuck(const struct example *e, uint64_t schedule, bool ran)
{
    switch (e->stuck) {
    case NEVER: return false;
    case ALWAYS_STUCK: return true;
    default: return schedule == 0 ? false : schedule == 1 ? true : !ran;
    }
}

static void ctas_wait_for_columns(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        for (uint64_t s = 0; s < (e->stuck == NEVER ? 100 : 20); s++) {
            struct sim sim;
            uint32_t address[2] = { 0 };
            if (!sim_open(t, &sim, "sm_100a", e->text)) break;
            use_schedule(&sim, s);
            const uint64_t parameters[2] = { sim_buffer(&sim, address, sizeof address),
                                             sim_buffer(&sim, address, sizeof address) };
            const bool ran = launch(&sim, e, parameters), stuck = is_stuck(e, s, ran);
            sim_read(&sim, parameters[0], address, sizeof address);
            if (ran == stuck
                || (!ran && (sim.report.code != REPORT_STEPS || strstr(sim.report.text, "without end") == NULL)))
                FAIL(t, "%s, schedule %d: %s", e->what, (int)s, ran ? "no report" : sim.report.text);
            if (ran && e->distinct != ANY
                && (address[0] > address[1] ? address[0] - address[1] : address[1] - address[0]) != e->distinct)
                FAIL(t, "%s, schedule %d: columns %u and %u", e->what, (int)s, address[0], address[1]);
            sim_close(&sim);
        }
    }
}

/* What a CTA alone can never get is reported at once, whoever else is on the SM. */
static void a_cta_that_waits_for_itself_is_reported(struct test *t)
{
    static const char *const text[] = { ALLOC(512) AGAIN(32) DEALLOC(512), ALLOC(512) RELINQUISH NUMBER AGAIN(32),
                                        ALLOC(32) AGAIN(64) };
    static const struct { enum report_code code; const char *words; } wanted[] = {
        { REPORT_DEADLOCK, "holds columns 0 to 511" }, { REPORT_ILLEGAL, "after tcgen05.relinquish_alloc_permit" },
        { REPORT_ILLEGAL, "must not increase" } };
    for (int i = 0; i < 3; i++)
        for (uint64_t s = 0; s < 20; s++) {
            struct sim sim;
            if (!sim_open(t, &sim, "sm_100a", text[i])) break;
            use_schedule(&sim, s);
            sim.machine.options.sms = 1;
            if (sim_run(&sim, "k", 4, 32, 0, NULL, 0) || sim.report.code != wanted[i].code ||
                strstr(sim.report.text, wanted[i].words) == NULL)
                FAIL(t, "%s\nschedule %d: %s", text[i], (int)s, sim.report.text);
            sim_close(&sim);
        }
}

/* Four pairs on the same two SMs: both CTAs of a pair get the columns, or neither. */
static void pairs_wait_for_columns(struct test *t)
{
#define PAIR(name) "tcgen05." name ".cta_group::2.sync.aligned"
    static const char *const text[] = {
        ".shared .align 4 .b32 s; " PAIR("alloc") ".shared::cta.b32 [s], 512; " PAIR(
            "relinquish_alloc_permit") ";\n" NUMBER VERIFY PAIR("dealloc") ".b32 %r3, 512;\n",
        ".shared .align 4 .b32 s; " PAIR("alloc") ".shared::cta.b32 [s], 256; " PAIR(
            "alloc") ".shared::cta.b32 [s], 256;\n" NUMBER VERIFY
                     "mov.u32 %r3, 0; " PAIR("dealloc") ".b32 %r3, 256; mov.u32 %r3, 256; " PAIR(
                         "dealloc") ".b32 %r3, 256;\n"
    };
    for (int i = 0; i < 2; i++)
        for (uint64_t s = 0; s < 100; s++) {
            struct sim sim;
            const uint8_t parameters[32] = { 0 };
            if (!sim_open(t, &sim, "sm_100a", text[i])) break;
            use_schedule(&sim, s);
            sim.machine.options.sms = 2;
            sim.machine.options.threads = 1;
            const struct launch launch = { .image = &sim.image, .function = ptx_function(sim.module, "k"),
                                           .grid = { 8, 1, 1 },
                                           .block = { 32, 1, 1 }, .cluster = { 2, 1, 1 }, .parameters = parameters };
            if (!machine_run(&sim.machine, &launch, &sim.report))
                FAIL(t, "%s\nschedule %d: %s", text[i], (int)s, sim.report.text);
            sim_close(&sim);
        }
}

/* Sixteen warps of 64 registers a thread fit twice on an SM, of 128 once: then the two never meet. */
static void registers_limit_an_sm(struct test *t)
{
#define WITH_REGISTERS(n) \
    ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1) .maxnreg " #n \
    "\n{\n" \
    ".reg .b32 %r<4>; .reg .b64 %rd<64>; .reg .pred %p<4>; ld.param.u64 %rd61, [p1];\n" MEET "ret;\n}\n"
    static const char *const text[] = { WITH_REGISTERS(64), WITH_REGISTERS(128) };
    for (int i = 0; i < 2; i++) {
        struct sim sim;
        const uint32_t zero = 0;
        if (!sim_open(t, &sim, "sm_100a", text[i])) continue;
        const uint64_t parameters[2] = { 0, sim_buffer(&sim, &zero, sizeof zero) };
        sim.machine.options.sms = sim.machine.options.threads = 1;
        sim.machine.options.step_limit = 30000;
        if (sim_run(&sim, "k", 2, 512, 0, parameters, 2) != (i == 0)) FAIL(t, "%s: %s", text[i], sim.report.text);
        sim_close(&sim);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(ctas_wait_for_columns),
                                              TEST(a_cta_that_waits_for_itself_is_reported),
                                              TEST(pairs_wait_for_columns), TEST(registers_limit_an_sm) };
    return TEST_MAIN(argc, argv, cases);
}
