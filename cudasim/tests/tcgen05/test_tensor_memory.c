/* Tensor memory: where ld and st of every shape put their registers, and what is reported of misuse: each wrong kernel
 * under the first schedules, its right twin under none of 100. */
#include "tests/support/harness.h"
#include "machine/core/report.h"

/* ---- layouts ---- */

enum { REGISTERS = 8 };

/* The manual's figures: each row of a shape is one lane of tensor memory, in 32-bit columns; threads go along a row
 * first. */
struct place { uint32_t lane, column, behind; }; /* behind: columns on, packed or not */
static struct place figure(int shape, uint32_t t, uint32_t r)
{
    switch (shape) {
    case 0: return (struct place){ t, r, 0 };
    /* 64 bits a row: threads 4i and 4i+2 hold row i, threads 4i+1 and 4i+3 row i+8; a register for each 2 columns */
    case 1: return (struct place){ t / 4 + (t % 2 != 0 ? 8 : 0), 2 * r + (t % 4 >= 2 ? 1 : 0), 0 };
    /* 128 bits a row: threads 4i ... 4i+3 hold row i in even registers, row i+8 in odd ones */
    case 2: return (struct place){ t / 4 + (r % 2 != 0 ? 8 : 0), r / 2 * 4 + t % 4, 0 };
    /* 256 bits a row: two neighbours a thread, the rows as those of mma's C */
    case 3: return (struct place){ t / 4 + (r % 4 >= 2 ? 8 : 0), r / 4 * 8 + t % 4 * 2 + r % 2, 0 };
    default: return (struct place){ t % 16, r, t < 16 ? 0 : 20 };
    }
}

static const struct { const char *name, *count, *extra; bool high; } shapes[] = {
    { "32x32b", "x8", "", false }, { "16x64b", "x8", "", true }, { "16x128b", "x4", "", true },
      { "16x256b", "x2", "", true },
    { "16x32bx2", "x8", "20", true },
};

#define BEGIN \
    ".shared .align 4 .b32 s; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; mov.u32 %r4, 64;\n" \
    "@!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 64; " \
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; A: bar.sync 0; " \
    "ld.shared.u32 %r3, [s]; and.b32 %r5, %r2, 3; shl.b32 %r5, %r5, 21; add.u32 %r5, %r5, %r3;\n"
#define FREE "bar.sync 0; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n"
#define R8(n) "{%r" n "0, %r" n "1, %r" n "2, %r" n "3, %r" n "4, %r" n "5, %r" n "6, %r" n "7}"
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;\n"
#define WAIT_ST "tcgen05.wait::st.sync.aligned;\n"

/* Fills 64 columns: cell = lane << 16 | column << 8 | 0x5a in the thread of that lane. */
#define FILL \
    "mov.u32 %r6, 0; shl.b32 %r7, %r1, 16; or.b32 %r7, %r7, 0x5a; mov.u32 %r8, %r5;\n" \
    "F: tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {%r7}; add.u32 %r8, %r8, 1; add.u32 %r7, %r7, 256; add.u32 %r6, " \
    "%r6, 1; " \
    "setp.lt.u32 %p2, %r6, 64; @%p2 bra F;\n" WAIT_ST
#define KEEP \
    "mul.wide.u32 %rd1, %r1, 32; add.u64 %rd1, %rd1, %rd60; st.global.v4.b32 [%rd1], {%r20, %r21, %r22, %r23}; " \
    "st.global.v4.b32 [%rd1+16], {%r24, %r25, %r26, %r27};\n"

static uint32_t cell(uint32_t lane, uint32_t column) { return lane << 16 | column << 8 | 0x5a; }

static bool run_on_four_warps(struct test *t, const char *text, uint32_t got[128][REGISTERS])
{
    struct sim sim;
    if (!sim_open(t, &sim, "sm_100a", text)) return false;
    const uint64_t out = sim_buffer(&sim, NULL, 128 * REGISTERS * 4);
    sim_launch(t, &sim, "k", 1, 128, &out, 1);
    sim_read(&sim, out, got, 128 * REGISTERS * 4);
    sim_close(&sim);
    return true;
}

static void ld_gathers(struct test *t)
{
    for (int s = 0; s < 5; s++)
        for (uint32_t high = 0; high < (shapes[s].high ? 2u : 1u); high++)
            for (uint32_t packed = 0; packed < 2; packed++) {
                static uint32_t got[128][REGISTERS];
                char text[4096];
                snprintf(text, sizeof text, "%sadd.u32 %%r5, %%r5, %u;\ntcgen05.ld.sync.aligned.%s.%s%s.b32 %s, "
                                            "[%%r5+3]%s%s;\n%s",
                         BEGIN FILL, high << 20, shapes[s].name, shapes[s].count, packed ? ".pack::16b" : "", R8("2"),
                         shapes[s].extra[0] != '\0' ? ", " : "", shapes[s].extra, WAIT_LD KEEP FREE);
                if (!run_on_four_warps(t, text, got)) continue;
                for (uint32_t i = 0; i < 128; i++)
                    for (uint32_t r = 0; r < REGISTERS; r++) {
                        const struct place p = figure(s, i % 32, r);
                        const uint32_t lane = i / 32 * 32 + 16 * high + p.lane,
                                       first = 3 + p.column * (packed ? 2 : 1) + p.behind;
                        const uint32_t want = packed ? (cell(lane, first) & 0xffff) | cell(lane, first + 1) << 16
                                                     : cell(lane, first);
                        if (got[i][r] != want)
                            FAIL(t, "%s%s: thread %u, register %u is %x, not %x", shapes[s].name,
                                 packed ? " packed" : "", i, r, got[i][r], want);
                    }
            }
}

/* The thread's number and the register's, in both halves. */
#define NUMBERS \
    "mul.lo.u32 %r9, %r1, 0x01000100; add.u32 %r10, %r9, 0x10000; add.u32 %r11, %r10, 0x20001; add.u32 %r12, %r11, " \
    "0x20001; " \
    "add.u32 %r13, %r12, 0x20001; add.u32 %r14, %r13, 0x20001; add.u32 %r15, %r14, 0x20001; add.u32 %r16, %r15, " \
    "0x20001; " \
    "add.u32 %r17, %r16, 0x20001;\n"

/* Read back as rows of 8 columns. */
static void st_scatters(struct test *t)
{
    for (int s = 0; s < 5; s++)
        for (uint32_t packed = 0; packed < 2; packed++) {
            static uint32_t got[128][REGISTERS];
            char text[4096];
            const char *gap = shapes[s].extra[0] != '\0' ? ", " : "";
            snprintf(text, sizeof text,
                     "%stcgen05.st.sync.aligned.%s.%s%s.b32 [%%r5]%s%s, %s;\n%s"
                     "tcgen05.ld.sync.aligned.32x32b.x8%s.b32 %s, [%%r5];\n%s", BEGIN FILL NUMBERS, shapes[s].name,
                     shapes[s].count, packed ? ".unpack::16b" : "", gap, shapes[s].extra, R8("1"), WAIT_ST,
                     packed ? ".pack::16b" : "", R8("2"),
                     WAIT_LD KEEP FREE);
            if (!run_on_four_warps(t, text, got)) continue;
            for (uint32_t i = 0; i < 128; i++)
                for (uint32_t r = 0; r < REGISTERS; r++) {
                    const struct place p = figure(s, i % 32, r);
                    const uint32_t want = i * 0x01000100 + 0x10000 + r * 0x20001;
                    if (p.column < 8 && p.behind == 0 && got[i / 32 * 32 + p.lane][p.column] != want)
                        FAIL(t, "%s%s: lane %u, column %u is %x, not %x", shapes[s].name, packed ? " packed" : "",
                             i / 32 * 32 + p.lane, p.column, got[i / 32 * 32 + p.lane][p.column], want);
                }
        }
}

/* What both halves have stored, they load again; ld_gathers says from where. */
static void halves_are_stored_where_they_are_loaded(struct test *t)
{
    for (uint32_t packed = 0; packed < 2; packed++) {
        static uint32_t got[128][REGISTERS];
        char text[4096];
        snprintf(text, sizeof text,
                 "%stcgen05.st.sync.aligned.16x32bx2.x8%s.b32 [%%r5], 20, %s;\n"
                 "%stcgen05.ld.sync.aligned.16x32bx2.x8%s.b32 %s, [%%r5], 20;\n%s",
                 BEGIN FILL NUMBERS, packed ? ".unpack::16b" : "", R8("1"), WAIT_ST, packed ? ".pack::16b" : "",
                 R8("2"), WAIT_LD KEEP FREE);
        if (!run_on_four_warps(t, text, got)) continue;
        for (uint32_t i = 0; i < 128; i++)
            for (uint32_t r = 0; r < REGISTERS; r++) CHECK(t, got[i][r] == i * 0x01000100 + 0x10000 + r * 0x20001);
    }
}

/* ---- checks ---- */

#define ST "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r1};\n"
#define LD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r5];\n"
#define USE "add.u32 %r21, %r20, 1;\n"
#define BEFORE "tcgen05.fence::before_thread_sync;\n"
#define AFTER "tcgen05.fence::after_thread_sync;\n"
#define BAR "bar.sync 0;\n"
/* Eight warps: the lower four, the upper four, which share their lanes. */
#define LOWER(text) "setp.lt.u32 %p3, %r2, 4; @!%p3 bra L;\n" text "L:\n"
#define UPPER(text) "setp.lt.u32 %p3, %r2, 4; @%p3 bra U;\n" text "U:\n"
#define UPPER_AGAIN(text) "@%p3 bra V;\n" text "V:\n"
#define ALLOC_AT(address) "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 " address ", 64;\n"
#define ALLOC(n) "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], " #n ";\n"
#define DEALLOC(n) "bar.warp.sync -1; ld.shared.u32 %r3, [s]; bar.warp.sync -1; " \
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, " #n ";\n"
#define ONE ".shared .align 4 .b32 s; mov.u32 %r4, 32;\n"
#define RELINQUISH "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"

static const struct example {
    const char *what, *text;
    uint32_t block;
    enum report_code code;
    const char *words;
} examples[] = {
    { "st, ld", BEGIN ST WAIT_ST LD WAIT_LD USE FREE, 128, REPORT_NONE, "" },
    { "st, then ld of other warps", BEGIN LOWER(ST WAIT_ST BEFORE) BAR UPPER(AFTER LD WAIT_LD USE) FREE, 256,
      REPORT_NONE, "" },
    { "ld, then st of other warps", BEGIN LOWER(ST WAIT_ST LD WAIT_LD BEFORE) BAR UPPER(AFTER ST WAIT_ST) FREE, 256,
      REPORT_NONE, "" },
    { "all of it", ONE ALLOC(512) DEALLOC(512), 32, REPORT_NONE, "" },
    { "freed and allocated again", ONE ALLOC(512) DEALLOC(512) ALLOC(512) RELINQUISH DEALLOC(512), 32, REPORT_NONE,
      "" },
    /* waits */
    { "no wait::st", BEGIN ST LD WAIT_LD USE WAIT_ST FREE, 128, REPORT_ASYNC, "no tcgen05.wait::st" },
    { "no wait::ld", BEGIN ST WAIT_ST LD USE WAIT_LD FREE, 128, REPORT_ASYNC, "no tcgen05.wait::ld has waited for it" },
    { "moved before wait::ld, used behind it",
      BEGIN ST WAIT_ST LD "mov.b32 %r22, %r20; mov.b64 %rd1, {%r20, %r22}; mov.b64 {%r23, %r24}, %rd1;\n" WAIT_LD USE
      "add.u32 %r25, %r22, %r24; add.u64 %rd1, %rd1, 1;\n" FREE, 128, REPORT_NONE, "" },
    { "moved before wait::ld, and computed with", BEGIN ST WAIT_ST LD "mov.b32 %r22, %r20; add.u32 %r23, %r22, 1;\n"
      WAIT_LD FREE, 128, REPORT_ASYNC, "a value that the tcgen05.ld at PTX line" },
    { "moved, packed and compared before wait::ld", BEGIN ST WAIT_ST LD
      "mov.b64 %rd1, {%r1, %r20}; setp.eq.u64 %p2, %rd1, 0;\n" WAIT_LD FREE, 128, REPORT_ASYNC, "no tcgen05.wait::ld" },
    { "moved, unpacked and stored before wait::ld", BEGIN ST WAIT_ST LD
      "mov.b64 %rd1, {%r1, %r20}; mov.b64 {_, %r22}, %rd1; st.shared.u32 [s], %r22;\n" WAIT_LD FREE, 128, REPORT_ASYNC,
      "no tcgen05.wait::ld" },
    { "moved by some lanes, computed with by others", BEGIN ST WAIT_ST LD
      "mov.u32 %r22, 5; and.b32 %r23, %r1, 1; setp.eq.u32 %p2, %r23, 0; @%p2 mov.b32 %r22, %r20;\n"
      "@!%p2 add.u32 %r22, %r22, 1; add.u32 %r24, %r1, 1;\n" WAIT_LD "add.u32 %r22, %r22, 1;\n" FREE, 128, REPORT_NONE,
      "" },
    { "moved by some lanes, computed with by them", BEGIN ST WAIT_ST LD
      "mov.u32 %r22, 5; and.b32 %r23, %r1, 1; setp.eq.u32 %p2, %r23, 0; @%p2 mov.b32 %r22, %r20;\n"
      "@!%p2 mov.u32 %r22, 6; add.u32 %r22, %r22, 1;\n" WAIT_LD FREE, 128, REPORT_ASYNC, "no tcgen05.wait::ld" },
    { "a copy is overwritten before wait::ld", BEGIN ST WAIT_ST LD
      "mov.b32 %r22, %r20; add.u32 %r22, %r1, 1; add.u32 %r22, %r22, 1;\n" WAIT_LD FREE, 128, REPORT_NONE, "" },
    { "the register itself is overwritten before wait::ld", BEGIN ST WAIT_ST LD "mov.b32 %r20, %r1;\n" WAIT_LD FREE,
      128, REPORT_ASYNC, "uses a register that the tcgen05.ld" },
    { "overwritten before wait::ld", BEGIN ST WAIT_ST LD ST WAIT_LD WAIT_ST FREE, 128, REPORT_ASYNC,
      "no tcgen05.wait::ld since" },
    { "freed before wait::ld", BEGIN ST WAIT_ST LD FREE, 128, REPORT_ASYNC, "frees columns" },
    { "freed before wait::st", BEGIN ST FREE, 128, REPORT_ASYNC, "frees columns" },
    /* fences */
    { "no fence before", BEGIN LOWER(ST WAIT_ST) BAR UPPER(AFTER LD WAIT_LD) FREE, 256, REPORT_RACE,
      "before_thread_sync there" },
    { "no fence after", BEGIN LOWER(ST WAIT_ST BEFORE) BAR UPPER(LD WAIT_LD) FREE, 256, REPORT_RACE,
      "after_thread_sync here" },
    { "fence before the wait", BEGIN LOWER(ST BEFORE WAIT_ST) BAR UPPER(AFTER LD WAIT_LD) FREE, 256, REPORT_RACE,
      "a synchron" },
    { "fence after before the barrier", BEGIN LOWER(ST WAIT_ST BEFORE) UPPER(AFTER) BAR UPPER_AGAIN(LD WAIT_LD) FREE,
      256, REPORT_RACE, "a synchronisation" },
    { "read, then written without fences",
      BEGIN LOWER(ST WAIT_ST BEFORE) BAR UPPER(AFTER LD WAIT_LD) BAR "@!%p3 bra X;\n" ST WAIT_ST "X:\n" FREE, 256,
      REPORT_RACE, "writes lane" },
    /* places */
    { "another quarter", BEGIN "xor.b32 %r5, %r5, 0x200000;\n" ST WAIT_ST FREE, 128, REPORT_ILLEGAL,
      "rule     tensor-lanes" },
    { "half of a quarter", BEGIN "add.u32 %r5, %r5, 0x100000;\n" ST WAIT_ST FREE, 128, REPORT_ILLEGAL,
      "accesses lanes" },
    { "behind the last lane", BEGIN "add.u32 %r5, %r5, 0x800000;\n" ST WAIT_ST FREE, 128, REPORT_ILLEGAL,
      "accesses lanes" },
    { "behind the allocation", BEGIN "add.u32 %r5, %r5, 64;\n" ST WAIT_ST FREE, 128, REPORT_OUT_OF_BOUNDS,
      "not allocated" },
    { "never written", BEGIN LD WAIT_LD FREE, 128, REPORT_UNINITIALISED, "has not been written" },
    { "addresses differ", BEGIN "add.u32 %r5, %r5, %r1;\n" ST WAIT_ST FREE, 128, REPORT_ILLEGAL,
      "not the same in all lanes" },
    { "after dealloc", BEGIN FREE BAR ST WAIT_ST, 128, REPORT_OUT_OF_BOUNDS, "not allocated" },
    /* allocation */
    { "not freed", ONE ALLOC(64), 32, REPORT_RESOURCES, "no tcgen05.dealloc" },
    { "freed by another size", ONE ALLOC(64) DEALLOC(32), 32, REPORT_ILLEGAL, "where 64 were allocated" },
    { "freed twice", ONE ALLOC(64) DEALLOC(64) DEALLOC(64), 32, REPORT_ILLEGAL, "where no allocation begins" },
    { "allocated after relinquish", ONE RELINQUISH ALLOC(64) DEALLOC(64), 32, REPORT_ILLEGAL,
      "relinquish_alloc_permit" },
    { "sizes increase", ONE ALLOC(32) ALLOC(64), 32, REPORT_ILLEGAL, "must not increase" },
    { "past 512 columns", ONE ALLOC(512) ALLOC(32), 32, REPORT_DEADLOCK, "tensor memory" },
    { "where a generic address says", ONE "mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1;\n" ALLOC_AT("[%rd1]")
      "bar.warp.sync -1; ld.shared.u32 %r3, [s]; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;", 32,
      REPORT_NONE, "" },
    { "where a generic address of local memory says", ONE ".local .align 4 .b32 l; mov.u64 %rd1, l; "
      "cvta.local.u64 %rd1, %rd1;\n" ALLOC_AT("[%rd1]"), 32, REPORT_OUT_OF_BOUNDS, "not in the shared memory" },
    { "48 columns", ONE "mov.u32 %r4, 48; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], %r4;", 32,
      REPORT_ILLEGAL, "power of two" },
};

static bool run_under(struct sim *sim, const struct example *e, int schedule)
{
    sim->machine.options.seed = (uint64_t)schedule;
    sim->machine.options.schedule = schedule == 0   ? SCHEDULE_EARLIEST
                                    : schedule == 1 ? SCHEDULE_LATEST
                                                    : SCHEDULE_RANDOM;
    return sim_run(sim, "k", 1, e->block, 0, NULL, 0);
}

static void examples_are_judged(struct test *t)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        struct sim sim;
        if (!sim_open(t, &sim, "sm_100a", e->text)) continue;
        for (int s = 0; s < (e->code == REPORT_NONE ? 100 : 20); s++) {
            const bool ran = run_under(&sim, e, s);
            if (ran == (e->code == REPORT_NONE) &&
                (ran || (sim.report.code == e->code && strstr(sim.report.text, e->words) != NULL)))
                continue;

            FAIL(t, "%s, schedule %d: wanted %s \"%s\", got %s", e->what, s, report_code_name(e->code), e->words,
                 ran ? "no report" : sim.report.text);
            break;
        }
        sim_close(&sim);
    }
}

/* A module with no tcgen05.fence at all is as if fenced where barriers release and acquire; relaxed ones always need
 * both fences (9.7.16.6.4.4), and with them are enough. */
static void fences_are_demanded_of_modules_that_have_any(struct test *t)
{
#define MBARRIER ".shared .align 8 .b64 b; setp.eq.u32 %p4, %tid.x, 0; @%p4 mbarrier.init.shared::cta.b64 [b], 128;\n"
#define ARRIVE(order) "mbarrier.arrive." order ".cta.shared::cta.b64 _, [b];\n"
#define AWAIT(order) "W: mbarrier.try_wait.parity." order ".cta.shared::cta.b64 %p5, [b], 0; @!%p5 bra W;\n"
#define HAND_OVER(release, before, acquire, after) \
    MBARRIER BEGIN LOWER(ST WAIT_ST before ARRIVE(release)) UPPER(AWAIT(acquire) after LD WAIT_LD USE) FREE
    enum { RIGHT, WRONG_IF_ALWAYS, WRONG };
    static const struct { const char *text; int state; } cases[] = {
        { HAND_OVER("relaxed", BEFORE, "relaxed", AFTER), RIGHT },
        { HAND_OVER("release", BEFORE, "relaxed", AFTER), RIGHT },
        { HAND_OVER("relaxed", BEFORE, "acquire", AFTER), RIGHT },
        { ".shared .align 8 .b64 b; setp.eq.u32 %p4, %tid.x, 0; @%p4 mbarrier.init.shared::cta.b64 [b], 4;\n" BEGIN
          LOWER(ST WAIT_ST "and.b32 %r6, %r1, 31; setp.eq.u32 %p6, %r6, 0; @%p6 bra Z;\n" BEFORE "bra Y; Z:\n" BEFORE
                /* lanes fence in turn */
                ARRIVE("release") "Y:\n") UPPER(AWAIT("acquire") AFTER LD WAIT_LD USE) FREE, RIGHT },
        { HAND_OVER("release", "", "acquire", ""), WRONG_IF_ALWAYS },
        { BEGIN LOWER(ST WAIT_ST) BAR UPPER(LD WAIT_LD USE) FREE, WRONG_IF_ALWAYS },
        { HAND_OVER("release", BEFORE, "acquire", ""), WRONG },
        { HAND_OVER("release", "", "acquire", AFTER), WRONG },
        { HAND_OVER("relaxed", "", "relaxed", AFTER), WRONG },
        { HAND_OVER("relaxed", BEFORE, "relaxed", ""), WRONG },
        { HAND_OVER("relaxed", "", "relaxed", ""), WRONG },
        { HAND_OVER("relaxed", "", "acquire", ""), WRONG },
        { HAND_OVER("release", "", "relaxed", ""), WRONG },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int mode = 0; mode < 2; mode++) {
            struct sim sim;
            if (!sim_open(t, &sim, "sm_100a", cases[i].text)) continue;
            sim.machine.options.tensor_fences = mode == 0 ? TENSOR_FENCES_USED : TENSOR_FENCES_ALWAYS;
            const bool right = cases[i].state == RIGHT || (cases[i].state == WRONG_IF_ALWAYS && mode == 0);
            for (int s = 0; s < (right ? 100 : 20); s++) {
                sim.machine.options.seed = (uint64_t)s;
                const bool ran = sim_run(&sim, "k", 1, 256, 0, NULL, 0);
                const bool named =
                    !ran && sim.report.code == REPORT_RACE && strstr(sim.report.text, "thread_sync") != NULL;
                if (ran == right && (ran || named)) continue;
                FAIL(t, "case %zu, mode %d, schedule %d: %s", i, mode, s, ran ? "no report" : sim.report.text);
                break;
            }
            sim_close(&sim);
        }
}

/* Where dealloc comes first the access is reported, where it comes second the dealloc. */
static void a_barrier_is_demanded_before_dealloc(struct test *t)
{
#define NO_BARRIER "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;\n"
    static const struct { const char *text; bool right; } cases[] = {
        { BEGIN ST WAIT_ST NO_BARRIER, false },
        { BEGIN ST WAIT_ST LD WAIT_LD USE NO_BARRIER, false },
        { BEGIN ST WAIT_ST BAR LD WAIT_LD USE NO_BARRIER, false },
        { BEGIN ST WAIT_ST LD WAIT_LD USE BAR NO_BARRIER, true },
        { BEGIN ST WAIT_ST LD WAIT_LD LD WAIT_LD USE BAR LD WAIT_LD BAR NO_BARRIER, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sim sim;
        bool named = false;
        if (!sim_open(t, &sim, "sm_100a", cases[i].text)) continue;
        for (int s = 0; s < (cases[i].right ? 100 : 20); s++) {
            sim.machine.options.seed = (uint64_t)s;
            if (sim_run(&sim, "k", 1, 128, 0, NULL, 0) != cases[i].right)
                FAIL(t, "case %zu, schedule %d: %s", i, s, sim.report.text);
            named = named
                    || (sim.report.code == REPORT_RACE
                        && strstr(sim.report.text, "frees columns that the tcgen05.") != NULL);
        }
        if (!cases[i].right && !named) FAIL(t, "case %zu: no race with dealloc", i);
        sim_close(&sim);
    }
}

static void illegal_forms_are_refused(struct test *t)
{
    static const struct { const char *target, *text, *words; } refused[] = {
        { "sm_90a", ONE ALLOC(32), "needs the target" },
        { "sm_120a", ONE ALLOC(32), "needs the target" },
        { "sm_100a", ONE ALLOC(48), "power of two" },
        { "sm_100a", ONE ALLOC(16), "power of two" },
        { "sm_100a", ONE ALLOC(1024), "power of two" },
        { "sm_100a", "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1}, [%r2];", "as many registers" },
        { "sm_100a", "tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r1, %r3, %r4}, [%r2];", "power of two" },
        { "sm_100a", "tcgen05.ld.sync.aligned.16x256b.x64.b32 {%r1, %r3, %r4}, [%r2];", ".x32" },
        { "sm_100a", "tcgen05.st.sync.aligned.16x128b.x1.b32 [%r2], {%r1};", "as many registers" },
        { "sm_100a", "tcgen05.ld.sync.aligned.32x32b.x1.unpack::16b.b32 {%r1}, [%r2];", ".unpack" },
        { "sm_100a", "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%rd2];", "register of 32 bits" },
        { "sm_100a", "tcgen05.wait::ld;", "" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct sim sim;
        if (!sim_refused(t, &sim, refused[i].target, refused[i].text)) FAIL(t, "accepted: %s", refused[i].text);
        else if (strstr(sim.error.text, refused[i].words) == NULL)
            FAIL(t, "wanted \"%s\", got %s", refused[i].words, sim.error.text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(ld_gathers),
                                              TEST(st_scatters),
                                              TEST(halves_are_stored_where_they_are_loaded),
                                              TEST(examples_are_judged),
                                              TEST(fences_are_demanded_of_modules_that_have_any),
                                              TEST(a_barrier_is_demanded_before_dealloc),
                                              TEST(illegal_forms_are_refused) };
    return TEST_MAIN(argc, argv, cases);
}
