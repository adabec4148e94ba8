/* Rules and their levels: a kernel that breaks one is stopped, or told of once and goes on with the effect that its
 * right twin has, or goes on silently; the twin breaks nothing. */
#include "tests/support/schedules.h"

/* One thread; p0: 16 bytes of numbers, p1: where 16 bytes go. */
#define BEGIN \
    ".shared .align 16 .b8 s[64]; .shared .align 8 .b64 bar; mov.u32 %r1, s; mov.u32 %r2, bar;\n" \
    "mbarrier.init.shared.b64 [%r2], 1; st.shared.v4.u32 [%r1], {7, 7, 7, 7}; fence.proxy.async;\n"
#define LOAD \
    "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r2], 16;\n" \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd60], 16, [%r2];\n" \
    "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;\n"
#define KEEP "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r1]; st.global.v4.u32 [%rd61], {%r4, %r5, %r6, %r7};\n"
#define STORE "cp.async.bulk.global.shared::cta.bulk_group [%rd61], [%r1], 16; cp.async.bulk.commit_group;\n"
#define TENSOR \
    ".shared .align 4 .b32 s; mov.u32 %r9, 32; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], %r9;\n" \
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; bar.warp.sync -1; ld.shared.u32 %r3, [s];\n" \
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd1, %r2; add.u64 %rd2, %rd60, %rd1;\n" \
    "add.u64 %rd3, %rd61, %rd1; ld.global.u32 %r4, [%rd2];\n" \
    "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r4}; tcgen05.wait::st.sync.aligned;\n" \
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r3];\n"
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;\n"
#define USE "xor.b32 %r6, %r5, 0;\n"
#define FREE "st.global.u32 [%rd3], %r6; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;\n"

static const struct example {
    enum rule rule;
    const char *device;
    uint32_t block;
    const char *wrong, *right;
} examples[] = {
    { RULE_READ_PROXY_FENCE, "sm_90a", 1, BEGIN "ld.shared.u32 %r3, [%r1];\n" LOAD KEEP,
      BEGIN "ld.shared.u32 %r3, [%r1]; fence.proxy.async;\n" LOAD KEEP },
    { RULE_ENDED_CTA_READ, "sm_90a", 1, BEGIN LOAD "fence.proxy.async;\n" STORE,
      BEGIN LOAD "fence.proxy.async;\n" STORE "cp.async.bulk.wait_group.read 0;\n" },
    { RULE_WRITE_PROXY_FENCE, "sm_90a", 1,
      BEGIN LOAD "ld.shared.u32 %r3, [%r1]; st.shared.u32 [%r1], %r3;\n" STORE "cp.async.bulk.wait_group 0;\n",
      BEGIN LOAD "ld.shared.u32 %r3, [%r1]; st.shared.u32 [%r1], %r3; fence.proxy.async;\n" STORE
      "cp.async.bulk.wait_group 0;\n" },
    { RULE_TENSOR_LOAD_WAIT, "sm_100a", 32, TENSOR USE WAIT_LD FREE, TENSOR WAIT_LD USE FREE },
};

static char told[4096];
static uint32_t tellings;
static void tell(const char *text)
{
    tellings++;
    snprintf(told, sizeof told, "%s", text);
}

struct outcome { bool ran; uint32_t tellings; uint64_t count; };

/* Twice on one machine: what goes on is told once. */
static struct outcome run(struct test *t, const struct example *e, const char *text, uint8_t level, uint64_t schedule)
{
    struct outcome o = { .ran = false };
    struct rule_book book = { .tell = tell };
    struct sim sim;
    uint32_t numbers[32], got[32];
    for (uint32_t i = 0; i < 32; i++) numbers[i] = 100 * i + 3;
    if (!sim_open(t, &sim, e->device, text)) return o;
    const uint64_t parameters[2] = { sim_buffer(&sim, numbers, sizeof numbers), sim_buffer(&sim, NULL, sizeof got) };
    sim.machine.options.rule[e->rule] = level;
    sim.machine.rule_book = &book;
    use_schedule(&sim, schedule);
    tellings = 0;
    o.ran = run_cluster(&sim, 1, e->block, 0, parameters, 2) && run_cluster(&sim, 1, e->block, 0, parameters, 2);
    sim_read(&sim, parameters[1], got, sizeof got);
    if (o.ran) CHECK(t, memcmp(got, numbers, e->block == 1 ? 16 : sizeof got) == 0);
    o.tellings = tellings;
    o.count = atomic_load(&book.count[e->rule]);
    if (!o.ran) snprintf(told, sizeof told, "%s", sim.report.text);
    sim_close(&sim);
    return o;
}

static void levels_decide_what_becomes_of_a_kernel(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        for (uint64_t schedule = 0; schedule < 20; schedule++) {
            const struct example *e = &examples[i];
            char line[64];
            snprintf(line, sizeof line, "\n  rule     %s\n", rule_name(e->rule));
            struct outcome o = run(t, e, e->right, RULE_STOP, schedule);
            if (!o.ran || o.count != 0) FAIL(t, "%s: the right one: %s", rule_name(e->rule), told);
            o = run(t, e, e->wrong, RULE_STOP, schedule);
            if (o.ran || strstr(told, line) == NULL) FAIL(t, "%s: stop: %s", rule_name(e->rule), told);
            CHECK(t, o.count == 0 && o.tellings == 0);
            o = run(t, e, e->wrong, RULE_REPORT, schedule);
            if (!o.ran || o.tellings != 1 || o.count != 2 || strstr(told, line) == NULL)
                FAIL(t, "%s: report: %u told, %llu counted: %s", rule_name(e->rule), o.tellings,
                     (unsigned long long)o.count, told);
            o = run(t, e, e->wrong, RULE_OFF, schedule);
            if (!o.ran || o.tellings != 0 || o.count != 0) FAIL(t, "%s: off: %s", rule_name(e->rule), told);
        }
}

/* Without races watched no rule is. */
static void nothing_is_told_where_races_are_not_watched(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *e = &examples[i];
        struct sim sim;
        uint8_t zeros[128] = { 0 };
        if (!sim_open(t, &sim, e->device, e->wrong)) continue;
        const uint64_t parameters[2] = { sim_buffer(&sim, zeros, sizeof zeros), sim_buffer(&sim, NULL, sizeof zeros) };
        sim.machine.options.check_races = false;
        if (!run_cluster(&sim, 1, e->block, 0, parameters, 2)) FAIL(t, "%s", sim.report.text);
        sim_close(&sim);
    }
}

static void words_are_read(struct test *t)
{
    uint8_t level[RULE_COUNT];
    const char *wrong = NULL;
    int length = 0;
    rules_default(level);
    CHECK(t, level[RULE_RACE] == RULE_STOP && level[RULE_READ_PROXY_FENCE] == RULE_REPORT);
    CHECK(t, rules_read(level, "", &wrong, &length));
    CHECK(t, rules_read(level, "race:off,read-proxy-fence:stop,ended-cta-read:report", &wrong, &length));
    CHECK(t, level[RULE_RACE] == RULE_OFF && level[RULE_READ_PROXY_FENCE] == RULE_STOP);
    CHECK(t, level[RULE_ENDED_CTA_READ] == RULE_REPORT && level[RULE_OPERATION_WAIT] == RULE_STOP);
    static const char *const refused[] = { "race", "race:", "race:of", "race:offf", ":off", "rac:off", "race:off:off",
                                           "race=off", ",", "race:off,,", "Race:off" };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (rules_read(level, refused[i], &wrong, &length)) FAIL(t, "%s is taken", refused[i]);
    CHECK(t, !rules_read(level, "race:off,races:off,race:stop", &wrong, &length));
    CHECK(t, length == 9 && strncmp(wrong, "races:off", 9) == 0);
}

static void a_book_tells_once_a_line(struct test *t)
{
    static struct rule_book book;
    char line[256];
    CHECK(t, !rule_book_line(&book, line, sizeof line));
    CHECK(t, rule_book_enter(&book, RULE_RACE, "k", 7) && !rule_book_enter(&book, RULE_RACE, "k", 7));
    CHECK(t, rule_book_enter(&book, RULE_RACE, "k", 8) && rule_book_enter(&book, RULE_RACE, "j", 7));
    CHECK(t, rule_book_enter(&book, RULE_OPERATION_WAIT, "k", 7));
    CHECK(t, rule_book_line(&book, line, sizeof line) && strcmp(line, "race 4, operation-wait 1") == 0);
    for (uint32_t i = 0; i < 2 * MOST_RULES_TOLD; i++) rule_book_enter(&book, RULE_RACE, "many", i);
    CHECK(t, !rule_book_enter(&book, RULE_RACE, "one more", 1)); /* full: counted, not told */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(levels_decide_what_becomes_of_a_kernel),
                                              TEST(nothing_is_told_where_races_are_not_watched), TEST(words_are_read),
                                              TEST(a_book_tells_once_a_line) };
    return TEST_MAIN(argc, argv, cases);
}
