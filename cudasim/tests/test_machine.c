/* Threads, branches, calls, memory: small kernels whose results are known. */
#include "harness.h"

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

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(each_thread_writes_its_number), TEST(a_write_behind_the_end_is_reported) };
    return TEST_MAIN(argc, argv, cases);
}
