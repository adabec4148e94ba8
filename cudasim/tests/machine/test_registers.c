/* setmaxnreg, griddepcontrol, policies, mixed precision, the memory of registers. */
#include "tests/support/harness.h"

static const char head[] = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n"
                           ".maxntid 384\n.minnctapersm 1\n{\n"
                           ".reg .b32 %r<9>; .reg .pred %p<4>; .reg .b64 %rd<4>;\nld.param.u64 %rd1, [p]; "
                           "mov.u32 %r1, %tid.x;\n"
                           "setp.ge.u32 %p1, %r1, 128;\n";

static bool run(struct test *t, const char *text, uint64_t seed, struct report *report)
{
    char whole[2048];
    struct sim sim;
    snprintf(whole, sizeof whole, "%s%s\nret;\n}\n", head, text);
    if (!sim_open(t, &sim, "sm_90a", whole)) return false;
    sim.machine.options.seed = seed;
    const uint64_t out = sim_buffer(&sim, NULL, 64);
    const bool ok = sim_run(&sim, "k", 1, 384, 0, &out, 1);
    *report = sim.report;
    sim_close(&sim);
    return ok;
}

/* 384 threads begin with 168 registers each: 128 * (168 - 40) is just what 256 * (232 - 168) needs. */
static void warpgroups_exchange_registers(struct test *t)
{
    struct report report = { .code = REPORT_NONE };
    for (uint64_t seed = 0; seed < 20; seed++) {
        if (!run(t, "@%p1 bra MORE; setmaxnreg.dec.sync.aligned.u32 40; bra END; MORE: setmaxnreg.inc.sync.aligned.u32 "
                    "232; END:", seed,
                 &report)) FAIL(t, "%s", report.text);
        CHECK(t, !run(t, "@%p1 bra MORE; setmaxnreg.dec.sync.aligned.u32 48; bra END; MORE: "
                         "setmaxnreg.inc.sync.aligned.u32 232; END:",
                      seed, &report));
        CHECK(t, report.code == REPORT_DEADLOCK && strstr(report.text, "wait for registers") != NULL);
    }
    CHECK(t, run(t, "setp.ge.u32 %p2, %r1, 32; @%p2 bra END; setmaxnreg.inc.sync.aligned.u32 168; "
                    "setmaxnreg.inc.sync.aligned.u32 168; END:",
                 0, &report));
    CHECK(t, !run(t, "setmaxnreg.inc.sync.aligned.u32 160; setmaxnreg.inc.sync.aligned.u32 168;", 0, &report)
                 && strstr(report.sentence, "has 168 already") != NULL);
    CHECK(t, !run(t, "setmaxnreg.dec.sync.aligned.u32 176;", 0, &report) && strstr(report.sentence, "has 168") != NULL);
    CHECK(t, !run(t, "setp.ge.u32 %p2, %r1, 32; @%p2 bra END; setmaxnreg.dec.sync.aligned.u32 48; "
                     "setmaxnreg.dec.sync.aligned.u32 40; END:",
                  0, &report) && strstr(report.sentence, "before warp 1") != NULL);
    CHECK(t, !run(t, "setp.eq.u32 %p2, %r1, 7; @%p2 exit; setmaxnreg.dec.sync.aligned.u32 48;", 0, &report));
    CHECK(t, report.code == REPORT_DIVERGENCE && strstr(report.sentence, "lanes 0xffffff7f alone") != NULL);
}

/* Directives, the most that the kernel asks for, and what ptxas 13.0 says that it uses (255 where it has 256); 0: that
 * setmaxnreg is ignored. */
static void a_kernel_begins_with_the_registers_that_ptxas_gives(struct test *t)
{
    static const struct { const char *directives; int most, registers; } kernels[] = {
        { ".maxntid 256 .minnctapersm 1", 256, 256 }, { ".maxntid 256 .minnctapersm 1", 248, 248 },
        { ".maxntid 128 .minnctapersm 1", 240, 240 }, { ".maxntid 288 .minnctapersm 1", 256, 168 },
        { ".maxntid 384 .minnctapersm 1", 232, 168 }, { ".maxntid 384 .minnctapersm 1", 160, 160 },
        { ".reqntid 512 .minnctapersm 1", 256, 128 }, { ".maxntid 96 .minnctapersm 3", 256, 168 },
        { ".maxntid 288 .minnctapersm 2", 256, 96 },  { ".maxntid 384 .minnctapersm 2", 256, 80 },
        { ".maxntid 128 .minnctapersm 5", 256, 96 },  { ".maxntid 384 .maxnreg 200", 256, 200 },
        { ".maxnreg 200", 80, 80 },                   { ".reqntid 256 .maxnreg 256", 256, 256 },
        { ".maxntid 384", 256, 0 },                   { "", 256, 0 },
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        const int n = kernels[i].registers == 0 ? 200 : kernels[i].registers;
        for (int more = -8; more <= (n == 256 ? 0 : 8); more += 8) {
            char text[512];
            struct sim sim;
            snprintf(text, sizeof text, ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() %s\n"
                     "{ setmaxnreg.%s.sync.aligned.u32 %d; ret; setmaxnreg.inc.sync.aligned.u32 %d; ret; }\n",
                     kernels[i].directives, more > 0 ? "dec" : "inc", n + more, kernels[i].most);
            if (!sim_open(t, &sim, "sm_90a", text)) continue;
            const bool ran = sim_run(&sim, "k", 1, 32, 0, NULL, 0);
            if (ran != (more == 0 || kernels[i].registers == 0))
                FAIL(t, "\"%s\", %d%+d: %s", kernels[i].directives, n, more, ran ? "no report" : sim.report.text);
            sim_close(&sim);
        }
    }
}

static void counts_outside_the_rules_are_refused(struct test *t)
{
    struct sim sim;
    CHECK(t, sim_refused(t, &sim, "sm_90a", "setmaxnreg.dec.sync.aligned.u32 16;"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", "setmaxnreg.inc.sync.aligned.u32 44;"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", "setmaxnreg.inc.sync.aligned.u32 264;"));
    CHECK(t, sim_refused(t, &sim, "sm_90", "setmaxnreg.inc.sync.aligned.u32 64;"));
    CHECK(t, sim_refused(t, &sim, "sm_90a", "applypriority.global.L2::evict_normal [%rd60], 64;"));
}

static void hints_and_dependent_grids_run(struct test *t)
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a",
                  "griddepcontrol.wait; createpolicy.fractional.L2::evict_first.b64 %rd1, 1.0; "
                  "createpolicy.fractional.L2::evict_last.b64 %rd2;\n"
                  "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd3, 0.5; "
                  "createpolicy.cvt.L2.b64 %rd4, %rd1;\n"
                  "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd5, [%rd60], 64, 128;\n"
                  "applypriority.global.L2::evict_normal [%rd60], 128; ld.global.L2::cache_hint.u32 %r1, [%rd60], "
                  "%rd1;\n"
                  "st.global.v2.u64 [%rd60], {%rd1, %rd2}; griddepcontrol.launch_dependents;")) return;
    uint64_t got[2];
    const uint64_t out = sim_buffer(&sim, NULL, 128);
    sim_launch(t, &sim, "k", 1, 1, &out, 1);
    sim_read(&sim, out, got, sizeof got);
    CHECK(t, got[0] == UINT64_C(0x12f0000000000000) && got[1] == UINT64_C(0x14f0000000000000));
    sim_close(&sim);
}

/* A sum whose exact value lies between two f32 numbers rounds once, in each direction. */
static void mixed_precision_rounds_once(struct test *t)
{
    static const struct { const char *text; uint32_t a, b, c, want; } cases[] = {
        /* 1 + 2^24: a tie, to even */
        { "add.f32.f16 %f9, %rs1, %f3;", 0x3c00, 0, 0x4b800000, 0x4b800000 },
        { "add.rp.f32.f16 %f9, %rs1, %f3;", 0x3c00, 0, 0x4b800000, 0x4b800001 },
        { "sub.rz.f32.bf16 %f9, %rs1, %f3;", 0x3f80, 0, 0x4b800001, 0xcb800000 },          /* 1 - (2^24 + 2) */
        { "fma.rn.f32.f16 %f9, %rs1, %rs2, %f3;", 0x4200, 0x4200, 0xc1100000, 0x00000000 }, /* 3 * 3 - 9 */
        { "fma.rm.f32.f16 %f9, %rs1, %rs2, %f3;", 0x4200, 0x4200, 0xc1100000, 0x80000000 },
        { "fma.rn.sat.f32.bf16 %f9, %rs1, %rs2, %f3;", 0x4040, 0x4040, 0, 0x3f800000 },
        { "add.sat.f32.f16 %f9, %rs1, %f3;", 0x7e00, 0, 0, 0 },                            /* NaN */
        { "add.f32.f16 %f9, %rs1, %f3;", 0x7e00, 0, 0, 0x7fffffff },
        { "add.f32.f16 %f9, %rs1, %f3;", 0x0001, 0, 0, 0x33800000 },                       /* 2^-24 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        struct sim sim;
        snprintf(text, sizeof text, "mov.b16 %%rs1, 0x%x; mov.b16 %%rs2, 0x%x; mov.b32 %%f3, 0x%x; "
                                    "%s st.global.f32 [%%rd60], %%f9;",
                 cases[i].a, cases[i].b, cases[i].c, cases[i].text);
        if (!sim_open(t, &sim, "sm_100a", text)) continue;
        uint32_t got = 0;
        const uint64_t out = sim_buffer(&sim, NULL, 4);
        sim_launch(t, &sim, "k", 1, 1, &out, 1);
        sim_read(&sim, out, &got, 4);
        if (got != cases[i].want) FAIL(t, "%s: 0x%x, not 0x%x", cases[i].text, got, cases[i].want);
        sim_close(&sim);
    }
    struct sim sim;
    CHECK(t, sim_refused(t, &sim, "sm_90a", "add.f32.f16 %f9, %rs1, %f3;"));
    CHECK(t, sim_refused(t, &sim, "sm_100a", "fma.f32.f16 %f9, %rs1, %rs2, %f3;"));
}

/* Registers that nobody wrote are zero, whatever the warps before, whose memory is used again, left in them. */
static void registers_of_the_next_warp_are_zero(struct test *t)
{
    enum { REGISTERS = 2000, CTAS = 40 };
    static char text[REGISTERS * 100];
    size_t length = (size_t)sprintf(text, ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 p, .param .u64 writes)\n"
        "{ .reg .b32 %%r<%d>, %%n; .reg .b64 %%rd<4>; .reg .pred %%p;\n"
        "ld.param.u64 %%rd1, [p]; ld.param.u64 %%rd2, [writes]; setp.eq.u64 %%p, %%rd2, 0; @%%p bra READ;\n",
        REGISTERS);
    for (int i = 0; i < REGISTERS; i++) length += (size_t)sprintf(text + length, "mov.u32 %%r%d, %d;\n", i, i);
    length += (size_t)sprintf(text + length, "READ: mov.u32 %%n, %%ctaid.x; mul.wide.u32 %%rd3, %%n, %d; "
                                             "add.u64 %%rd1, %%rd1, %%rd3;\n", REGISTERS * 4);
    for (int i = 0; i < REGISTERS; i++)
        length += (size_t)sprintf(text + length, "st.global.u32 [%%rd1+%d], %%r%d;\n", 4 * i, i);
    sprintf(text + length, "ret; }\n");
    struct sim sim;
    if (!sim_open(t, &sim, "sm_90a", text)) return;
    static uint32_t got[CTAS][REGISTERS];
    for (uint64_t launch = 0; launch < 4; launch++) {
        const uint64_t writes = launch % 2 == 0, parameters[2] = { sim_buffer(&sim, NULL, sizeof got), writes };
        sim_launch(t, &sim, "k", CTAS, 1, parameters, 2);
        sim_read(&sim, parameters[0], got, sizeof got);
        for (uint32_t i = 0; i < CTAS * REGISTERS; i++) {
            const uint32_t r = i % REGISTERS, want = writes ? r : 0;
            if (got[i / REGISTERS][r] != want)
                FAIL(t, "launch %d: register %u is %u, not %u", (int)launch, r, got[i / REGISTERS][r], want);
        }
    }
    sim_close(&sim);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(warpgroups_exchange_registers),
                                              TEST(a_kernel_begins_with_the_registers_that_ptxas_gives),
                                              TEST(counts_outside_the_rules_are_refused),
                                              TEST(hints_and_dependent_grids_run), TEST(mixed_precision_rounds_once),
                                              TEST(registers_of_the_next_warp_are_zero) };
    return TEST_MAIN(argc, argv, cases);
}
