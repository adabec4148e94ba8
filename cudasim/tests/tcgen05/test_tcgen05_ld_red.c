/* tcgen05.ld.red: the least and the largest of what each thread loads, against comparisons of C. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/harness.h"

enum { COLUMNS = 8, THREADS = 128, KINDS = 12 };

/* Four warps with 32 columns; each thread holds 8 numbers of p0. */
#define BEGIN \
    ".shared .align 4 .b32 s; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0;\n" \
    "@!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32; " \
    "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; A: bar.sync 0; ld.shared.u32 %r3, [s]; shl.b32 %r5, " \
    "%r2, 21; " \
    "add.u32 %r5, %r5, %r3; mul.wide.u32 %rd1, %r1, 32; add.u64 %rd2, %rd1, %rd60;\n" \
    "ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd2]; ld.global.v4.b32 {%r24, %r25, %r26, %r27}, [%rd2+16];\n"
#define R8 "{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}"
#define L8 "{%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}"
#define WAIT_ST "tcgen05.wait::st.sync.aligned;\n"
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;\n"
#define KEEP \
    "add.u64 %rd3, %rd1, %rd61; st.global.v4.b32 [%rd3], {%r30, %r31, %r32, %r33}; " \
    "st.global.v4.b32 [%rd3+16], {%r34, %r35, %r36, %r37}; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd4, %rd62; " \
    "st.global.b32 [%rd4], %r40;\n"
#define FREE "bar.sync 0; @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;\n"

struct kind { const char *words; bool is_float, is_signed, largest, absolute, nan_wins; };
/* Both orders that ptxas takes: the type last, as in the manual's syntax, and before the operation, as in its
 * example. */
static const struct kind kinds[KINDS] = {
    { ".min.u32", false, false, false, false, false },     { ".u32.max", false, false, true, false, false },
    { ".min.s32", false, true, false, false, false },      { ".max.s32", false, true, true, false, false },
    { ".min.f32", true, true, false, false, false },       { ".f32.max", true, true, true, false, false },
    { ".min.abs.f32", true, true, false, true, false },    { ".max.abs.f32", true, true, true, true, false },
    { ".min.NaN.f32", true, true, false, false, true },    { ".max.NaN.f32", true, true, true, false, true },
    { ".min.abs.NaN.f32", true, true, false, true, true }, { ".max.abs.NaN.f32", true, true, true, true, true },
};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Whether a is below b; of two zeros the negative one is. */
static bool is_below(const struct kind *k, uint32_t a, uint32_t b)
{
    if (!k->is_float) return k->is_signed ? (int32_t)a < (int32_t)b : a < b;
    const float x = float_of(a), y = float_of(b);
    return x < y || (x == 0 && y == 0 && signbit(x) && !signbit(y));
}

static uint32_t reference(const struct kind *k, const uint32_t *v)
{
    uint32_t best = 0;
    bool found = false, nan = false;
    for (int i = 0; i < COLUMNS; i++) {
        if (k->is_float && isnan(float_of(v[i]))) {
            nan = true;
            continue;
        }
        const uint32_t value = k->absolute ? v[i] & 0x7fffffff : v[i];
        if (!found || (k->largest ? is_below(k, best, value) : is_below(k, value, best))) best = value;
        found = true;
    }
    return (nan && k->nan_wins) || !found ? 0x7fffffff : best;
}

static uint32_t random_value(struct test *t)
{
    static const uint32_t special[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                        0xffa00001, 1,          0x80000001, 0x7f7fffff };
    return rnd_below(t, 4) == 0 ? special[rnd_below(t, sizeof special / sizeof *special)] : (uint32_t)rnd(t);
}

static void check(struct test *t, const struct kind *k, bool split, int how)
{
    static uint32_t values[THREADS][COLUMNS], got[THREADS][COLUMNS], least[THREADS];
    char text[4096];
    struct sim sim;
    for (int i = 0; i < THREADS; i++)
        /* NaN alone */
        for (int j = 0; j < COLUMNS; j++) values[i][j] = how == 0 ? random_value(t) : 0x7fc00000 + (uint32_t)j;
    const char *shape = split ? "16x32bx2" : "32x32b", *second = split ? ", 20" : "";
    snprintf(text, sizeof text, "%stcgen05.st.sync.aligned.%s.x8.b32 [%%r5]%s, %s;\n%s", BEGIN, shape, second, R8,
             WAIT_ST);
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "tcgen05.ld.red.sync.aligned.%s.x8%s %s, %%r40, [%%r5]%s;\n%s", shape,
             k->words, L8, second, WAIT_LD KEEP FREE);
    if (!sim_open(t, &sim, "sm_103a", text)) return;
    const uint64_t p[3] = { sim_buffer(&sim, values, sizeof values), sim_buffer(&sim, NULL, sizeof got),
                            sim_buffer(&sim, NULL, sizeof least) };
    sim_launch(t, &sim, "k", 1, THREADS, p, 3);
    sim_read(&sim, p[1], got, sizeof got);
    sim_read(&sim, p[2], least, sizeof least);
    CHECK(t, memcmp(got, values, sizeof got) == 0);
    for (int i = 0; i < THREADS; i++)
        if (least[i] != reference(k, values[i]))
            FAIL(t, "%s%s: thread %d: %08x, not %08x", shape, k->words, i, least[i], reference(k, values[i]));
    sim_close(&sim);
}

static void reductions_are_the_reference_s(struct test *t)
{
    for (int k = 0; k < KINDS; k++)
        for (int split = 0; split < 2; split++)
            for (int how = 0; how < 2; how++) check(t, &kinds[k], split != 0, how);
}

/* The result of the reduction is the warp's after the wait, like the others. */
static void the_result_has_to_be_waited_for(struct test *t)
{
    static const struct { const char *text; bool right;
    } examples[] = {
        { BEGIN "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5], " R8 ";\n" WAIT_ST
                "tcgen05.ld.red.sync.aligned.32x32b.x8.max.u32 " L8 ", %r40, [%r5];\n" WAIT_LD
                "add.u32 %r41, %r40, 1;\n" FREE,
          true },
        { BEGIN "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5], " R8 ";\n" WAIT_ST
                "tcgen05.ld.red.sync.aligned.32x32b.x8.max.u32 " L8
                ", %r40, [%r5];\nadd.u32 %r41, %r40, 1;\n" WAIT_LD FREE,
          false },
    };
    for (int i = 0; i < 2; i++) {
        static uint32_t values[THREADS][COLUMNS];
        struct sim sim;
        if (!sim_open(t, &sim, "sm_103a", examples[i].text)) return;
        const uint64_t p[1] = { sim_buffer(&sim, values, sizeof values) };
        const bool ran = sim_run(&sim, "k", 1, THREADS, 0, p, 1);
        if (ran != examples[i].right || (!ran && strstr(sim.report.text, "no tcgen05.wait::ld") == NULL))
            FAIL(t, "example %d: %s", i, ran ? "no report" : sim.report.text);
        sim_close(&sim);
    }
}

static void forms_that_do_not_exist_are_refused(struct test *t)
{
    static const struct { const char *device, *text; } forms[] = {
        { "sm_100a", "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_120a", "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x1.min.f32 {%r1}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.16x64b.x2.min.f32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x2.add.s32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x2.min.abs.s32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x2.min.NaN.u32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x2.min.b32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x2.pack::16b.min.s32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.16x32bx2.x2.min.s32 {%r1, %r2}, %r3, [%r4];" },
        { "sm_103a", "tcgen05.ld.red.sync.aligned.32x32b.x4.min.s32 {%r1, %r2}, %r3, [%r4];" },
    };
    struct sim sim;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        CHECK(t, sim_refused(t, &sim, forms[i].device, forms[i].text));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(reductions_are_the_reference_s),
        TEST(the_result_has_to_be_waited_for),
        TEST(forms_that_do_not_exist_are_refused),
    };
    return TEST_MAIN(argc, argv, cases);
}
