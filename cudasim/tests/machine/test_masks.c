/* Member masks: lanes of one warp that exchange, or meet, with several masks at one instruction; masks that do not
 * agree. */
#include "tests/support/harness.h"
#include "machine/core/report.h"

/* %r1 lane, %p1 a lane of the lower half, %r2 the mask of its half; %r9 is stored in the end. */
static const char begin[] =
    ".shared .align 4 .b32 s[32]; mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 16; "
    "selp.b32 %r2, 0x0000ffff, 0xffff0000, %p1; mov.u32 %r3, s; mad.lo.u32 %r4, %r1, 4, %r3; mov.u32 %r9, 0;\n";
static const char end[] = "mad.wide.u32 %rd1, %r1, 4, %rd60; st.global.u32 [%rd1], %r9;\n";

static bool run(struct test *t, const char *text, uint64_t seed, uint32_t got[32], struct report *report)
{
    struct sim sim;
    char whole[4096];
    snprintf(whole, sizeof whole, "%s%s\n%s", begin, text, end);
    if (!sim_open(t, &sim, "sm_90a", whole)) return false;
    sim.machine.options.seed = seed;
    const uint64_t out = sim_buffer(&sim, NULL, 128);
    const bool ran = sim_run(&sim, "k", 1, 32, 0, &out, 1);
    sim_read(&sim, out, got, 128);
    *report = sim.report;
    sim_close(&sim);
    return ran;
}

/* Each lane stores lane * factor + offset of its half. */
static const struct right { const char *what, *text; uint32_t of_lane, of_half[2]; uint32_t flip; } rights[] = {
    { "halves come together", "shfl.sync.bfly.b32 %r9, %r1, 3, 31, %r2;", 1, { 0, 0 }, 3 },
    { "halves come one behind the other",
      "@%p1 bra A; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1;\n"
      "A: shfl.sync.bfly.b32 %r9, %r1, 5, 31, %r2;", 1, { 0, 0 }, 5 },
    { "the result lies in the mask's register", "shfl.sync.bfly.b32 %r2, %r1, 1, 31, %r2; mov.u32 %r9, %r2;", 1,
      { 0, 0 }, 1 },
    { "votes of halves",
      "setp.eq.u32 %p2, %r1, 20; vote.sync.any.pred %p3, %p2, %r2; selp.u32 %r9, 1, 0, %p3;", 0, { 0, 1 }, 0 },
    { "ballots of halves", "setp.lt.u32 %p2, %r1, 20; vote.sync.ballot.b32 %r9, %p2, %r2;", 0, { 0xffff, 0xf0000 }, 0 },
    { "sums of halves", "redux.sync.add.u32 %r9, %r1, %r2;", 0, { 120, 376 }, 0 },
    { "matches in halves", "match.any.sync.b32 %r9, 7, %r2;", 0, { 0xffff, 0xffff0000 }, 0 },
    { "matches of all in halves", "match.all.sync.b32 %r9, 7, %r2;", 0, { 0xffff, 0xffff0000 }, 0 },
    { "the lowest of each half", "elect.sync %r9|%p2, %r2;", 0, { 0, 16 }, 0 },
    { "lane 0 alone, then all of them",
      "mov.u32 %r5, -1; mov.u32 %r8, 0; setp.eq.u32 %p2, %r1, 0; @%p2 mov.u32 %r5, 1;\n"
      "L: shfl.sync.bfly.b32 %r9, %r1, %r8, 31, %r5; setp.eq.u32 %p3, %r5, 1; mov.u32 %r5, -1; @%p3 bra L;", 1,
      { 0, 0 }, 0 },
    { "a half waits for its last lane while the other half goes on",
      "setp.eq.u32 %p2, %r1, 31; @%p2 bra LATE; bra MEET;\n"
      "LATE: add.u32 %r5, %r5, 1; add.u32 %r5, %r5, 1;\nMEET: shfl.sync.bfly.b32 %r9, %r1, 15, 31, %r2;", 1,
      { 0, 0 }, 15 },
    { "halves meet at bar.warp.sync",
      "st.shared.u32 [%r4], %r1; bar.warp.sync %r2; xor.b32 %r5, %r4, 4; ld.shared.u32 %r9, [%r5];", 1, { 0, 0 }, 1 },
    { "a half at bar.warp.sync is not let go by the other",
      "setp.eq.u32 %p2, %r1, 31; @%p1 bra MEET; @%p2 bra LATE; bra MEET;\nLATE: mov.u32 %r6, 0; "
      "L: add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, 3000; @%p3 bra L;\n"
      "MEET: st.shared.u32 [%r4], %r1; bar.warp.sync %r2; xor.b32 %r5, %r4, 60; ld.shared.u32 %r9, [%r5];", 1,
      { 0, 0 }, 15 },
    { "bar.warp.sync of halves, then of all",
      "st.shared.u32 [%r4], %r1; bar.warp.sync %r2; bar.warp.sync %r2; bar.warp.sync -1; xor.b32 %r5, %r4, 64; "
      "ld.shared.u32 %r9, [%r5];", 1, { 0, 0 }, 16 },
};

static void masks_that_agree(struct test *t)
{
    for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            const struct right *r = &rights[i];
            uint32_t got[32];
            struct report report;
            if (!run(t, r->text, seed, got, &report)) FAIL(t, "%s: %s", r->what, report.text);
            for (uint32_t l = 0; l < 32; l++) {
                const uint32_t wanted = (l ^ r->flip) * r->of_lane + r->of_half[l / 16];
                if (got[l] != wanted) FAIL(t, "%s: lane %u has 0x%x, not 0x%x", r->what, l, got[l], wanted);
            }
        }
}

static const struct wrong { const char *text, *words; enum report_code code; } wrongs[] = {
    { "selp.b32 %r2, -1, 0xffff0001, %p1; shfl.sync.bfly.b32 %r9, %r1, 1, 31, %r2;",
      "has the member mask 0xffffffff in this lane and 0xffff0001 in lane 16, which is one of it", REPORT_DIVERGENCE },
    { "selp.b32 %r2, -1, 0xffff0000, %p1; shfl.sync.bfly.b32 %r9, %r1, 1, 31, %r2; bar.sync 0;", "do not reach",
      REPORT_DIVERGENCE },
    { "@%p1 shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1; bar.sync 0;", "do not reach", REPORT_DIVERGENCE },
    { "shfl.sync.bfly.b32 %r9, %r1, 16, 31, %r2;", "which does not take part", REPORT_DIVERGENCE },
    { "not.b32 %r2, %r2; vote.sync.ballot.b32 %r9, 1, %r2;", "lacks its own lane", REPORT_DIVERGENCE },
    { "not.b32 %r2, %r2; bar.warp.sync %r2;", "lacks its own lane", REPORT_DIVERGENCE },
    { "st.shared.u32 [%r4], %r1; bar.warp.sync %r2; xor.b32 %r5, %r4, 64; ld.shared.u32 %r9, [%r5];", "the byte",
      REPORT_RACE },
    { "selp.b32 %r2, -1, 0xffff0001, %p1; bar.warp.sync %r2;", "wait for bar.warp.sync", REPORT_DEADLOCK },
};

static void masks_that_do_not(struct test *t)
{
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        uint32_t got[32];
        struct report report;
        const bool ran = run(t, wrongs[i].text, 1, got, &report);
        if (ran || report.code != wrongs[i].code || strstr(report.text, wrongs[i].words) == NULL)
            FAIL(t, "%s: wanted \"%s\", got %s", wrongs[i].text, wrongs[i].words, ran ? "no report" : report.text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(masks_that_agree), TEST(masks_that_do_not) };
    return TEST_MAIN(argc, argv, cases);
}
