/* Code objects that others made, in a folder beside the project: a C kernel by clang, block-scaled products by Triton.
 * They run under every model of rounding and every schedule, without a report, and give the product. */
#include "decode/decode.h"
#include "support/scaled_product.h"
#include "support/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#ifndef GFXSIM_SHARED
#define GFXSIM_SHARED "../shared"
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

struct stranger {
    const char *file, *kernel;
    enum element a, b;
    bool transposed;                      /* B is N-contiguous */
    bool shuffled;                        /* scales four to a dword; D is bf16; else fp32 */
    int m, n, k, tile_m, tile_n;
    uint32_t dynamic_lds;
    int covered;                          /* waits and barriers that others cover: docs/design.md says which */
};

static const struct stranger strangers[] = {
    { "gemm_mxfp4.hsaco", "gemm_mxfp4", ELEMENT_E2M1, ELEMENT_E2M1, false, true, 256, 512, 1024, 256, 256, 131072,
      1 },
    { "triton/e2m1_e2m1_16.hsaco", NULL, ELEMENT_E2M1, ELEMENT_E2M1, false, false, 256, 128, 512, 128, 128, 163840, 2 },
    { "triton/e4m3_e4m3_32.hsaco", NULL, ELEMENT_E4M3, ELEMENT_E4M3, false, false, 256, 128, 512, 128, 128, 163840, 2 },
    { "triton/T_e2m1_e2m1_32.hsaco", NULL, ELEMENT_E2M1, ELEMENT_E2M1, true, false, 256, 128, 512, 128, 128, 163840,
      2 },
};

struct arguments { uint64_t a, b, a_scale, b_scale, d; int32_t m, n, k; };

static float result_at(const struct stranger *s, const void *d, int i)
{
    if (!s->shuffled) return ((const float *)d)[i];
    const uint32_t bits = (uint32_t)((const uint16_t *)d)[i] << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static void compare(struct test *t, const struct stranger *s, const struct side *a, const struct side *b, const void *d,
                    bool exact)
{
    int wrong = 0;
    for (int m = 0; m < s->m && wrong < 4; m++)
        for (int n = 0; n < s->n && wrong < 4; n++) {
            double magnitudes;
            const double want = product_element(a, b, m, n, &magnitudes);
            const float got = result_at(s, d, m * s->n + n);
            const bool ok = !exact ? fabs(got - want) <= magnitudes * 0x1p-18 + (s->shuffled ? fabs(want) * 0x1p-8 : 0)
                            : s->shuffled
                                ? (uint32_t)float_to_bfloat((float)want) == ((const uint16_t *)d)[m * s->n + n]
                                : got == (float)want;
            if (ok) continue;
            wrong++;
            FAIL(t, "%s: element %d,%d is %.9g, not %.9g", s->file, m, n, (double)got, want);
        }
}

/* What the kernel takes, in its machine. */
static bool put(struct simulation *sim, const struct stranger *s, const struct side *a, const struct side *b,
                struct arguments *args)
{
    size_t bytes[4];
    uint8_t *part[4] = { side_packed(a, false, &bytes[0]), side_packed(b, s->transposed, &bytes[1]), NULL, NULL };
    if (s->shuffled) {
        part[2] = side_shuffled_scales(a, &bytes[2]);
        part[3] = side_shuffled_scales(b, &bytes[3]);
    }
    *args = (struct arguments){ .m = s->m, .n = s->n, .k = s->k };
    args->a = simulation_put(sim, part[0], bytes[0]);
    args->b = simulation_put(sim, part[1], bytes[1]);
    args->a_scale = simulation_put(sim, s->shuffled ? part[2] : a->scale, (size_t)s->m * (size_t)s->k / 32);
    args->b_scale = simulation_put(sim, s->shuffled ? part[3] : b->scale, (size_t)s->n * (size_t)s->k / 32);
    args->d = simulation_put(sim, NULL, (size_t)s->m * (size_t)s->n * (s->shuffled ? 2 : 4));
    for (int i = 0; i < 4; i++) free(part[i]);
    return args->d != 0;
}

/* Puts s_nop in the place of the wait or barrier number `taken`; false: there are not so many. */
struct taken { uint32_t at; bool barrier; };             /* at: its offset in the text */
static bool take_away(struct simulation *sim, int taken, struct taken *which)
{
    static const uint32_t nop = 0xbf800000;
    uint8_t *code = sim->object.image + sim->object.text;
    for (uint64_t pc = 0; pc < sim->object.text_bytes; pc += 4) {
        const struct insn *in = &sim->program.insn[pc / 4];
        if (in->row == NULL) continue;
        const bool barrier = strcmp(in->row->name, "s_barrier") == 0;
        if ((!barrier && strcmp(in->row->name, "s_waitcnt") != 0) || taken-- > 0) continue;
        memcpy(code + pc, &nop, sizeof nop);
        decode(&sim->program.insn[pc / 4], code, sim->program.text_bytes, (uint32_t)pc);
        *which = (struct taken){ (uint32_t)pc, barrier };
        return true;
    }
    return false;
}

static double processor_seconds;         /* of the last run */

enum outcome { RIGHT, REPORTED, NO_MORE };

enum { WORDS = 4096 };
static uint32_t completed[WORDS];        /* of the last run: struct program */

/* taken: -1, nothing. */
static enum outcome run(struct test *t, const struct stranger *s, const struct machine_options *options, bool exact,
                        int taken, struct taken *which)
{
    enum outcome outcome = REPORTED;
    struct simulation sim;
    struct side a = { 0 }, b = { 0 };
    struct arguments args;
    char path[512];
    snprintf(path, sizeof path, "%s/gfx950/%s", GFXSIM_SHARED, s->file);
    if (!simulation_open_file(&sim, t, path, options)) {
        simulation_close(&sim);
        return outcome;
    }
    memset(completed, 0, sizeof completed);
    if (sim.program.text_bytes / 4 <= WORDS) sim.program.completed = completed;
    if (taken >= 0 && !take_away(&sim, taken, which)) outcome = NO_MORE;
    else if (!side_open(&a, t, s->a, s->m, s->k, exact) || !side_open(&b, t, s->b, s->n, s->k, exact)
        || !put(&sim, s, &a, &b, &args))
        FAIL(t, "no memory");
    else {
        const char *kernel = s->kernel != NULL ? s->kernel : sim.object.kernel[0].name;
        const uint32_t fixed = sim.object.kernel[0].lds_bytes;
        const clock_t before = clock();
        const bool ok = simulation_run(&sim, kernel, (uint32_t)(s->m / s->tile_m * (s->n / s->tile_n)), 256,
                                       s->dynamic_lds - fixed, &args, sizeof args);
        processor_seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
        if (ok) outcome = RIGHT;
        if (taken < 0 && !ok) FAIL(t, "%s: %s", s->file, sim.report.text);
        else if (taken < 0) compare(t, s, &a, &b, simulation_at(args.d), exact);
    }
    side_close(&a);
    side_close(&b);
    simulation_close(&sim);
    return outcome;
}

static bool there(struct test *t)
{
    size_t bytes;
    void *data = read_whole(GFXSIM_SHARED "/gfx950/gemm_mxfp4.hsaco", &bytes);
    if (data == NULL) test_skip(t, "no ../shared");
    free(data);
    return data != NULL;
}

static void products_are_right(struct test *t)
{
    if (!there(t)) return;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        struct machine_options o = test_options();
        o.threads = 2;                                                    /* a workgroup each */
        run(t, &strangers[i], &o, false, -1, NULL);
    }
}

/* 256 x 512 x 1024 in MXFP4, all checks on, on one host thread: less than a second of processor time. */
static void a_product_is_fast(struct test *t)
{
#if SANITIZED
    test_skip(t, "a sanitizer watches");
#else
    if (!there(t)) return;
    double least = 1e9;
    for (int i = 0; i < 3; i++) {
        const struct machine_options o = test_options();
        run(t, &strangers[0], &o, true, -1, NULL);
        if (processor_seconds < least) least = processor_seconds;
    }
    if (!(least < 1)) FAIL(t, "%.2f s of processor time", least);
    if (getenv("GFXSIM_SHOW") != NULL) printf("%.3f s\n", least);
#endif
}

static void exact_data_give_the_same_bits_in_every_model(struct test *t)
{
    if (!there(t)) return;
    for (int rounding = 0; rounding < 3; rounding++)
        for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
            struct machine_options o = test_options();
            o.rounding = (enum rounding)rounding;
            struct stranger small = strangers[i];
            small.k = 256;
            small.n = small.tile_n;
            run(t, &small, &o, true, -1, NULL);
        }
}

static void schedules_agree(struct test *t)
{
    if (!there(t)) return;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        struct machine_options o = test_options();
        o.schedules = 5;
        struct stranger small = strangers[i];
        small.k = 256;
        small.n = small.tile_n;
        small.m = small.tile_m;
        run(t, &small, &o, true, -1, NULL);
    }
}

/* A wait that has nothing to wait for in any wave is none of the ones that must be missed: an lgkmcnt behind a branch
 * that has waited itself.  Of the others few are covered by what stands behind them. */
static void no_wait_and_no_barrier_can_be_taken_away(struct test *t)
{
    if (!there(t)) return;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        struct stranger small = strangers[i];
        static uint32_t waited[WORDS];
        const struct machine_options o = test_options();
        small.k = 512, small.n = small.tile_n, small.m = small.tile_m;
        run(t, &small, &o, true, -1, NULL);
        memcpy(waited, completed, sizeof waited);
        int covered = 0, idle = 0, all = 0;
        struct taken which = { 0, false };
        uint32_t last = 0;
        for (;; all++) {
            const enum outcome outcome = run(t, &small, &o, true, all, &which);
            if (outcome == NO_MORE) break;
            if (outcome != RIGHT) continue;
            if (!which.barrier && which.at / 4 < WORDS && waited[which.at / 4] == 0) idle++;
            else covered++, last = which.at;
        }
        if (all < 20 || covered > small.covered)
            FAIL(t, "%s: %d of %d waits and barriers are not missed, the last is at 0x%x of its text, and %d wait for "
                 "nothing; %d are known", small.file, covered, all, last, idle, small.covered);
        if (getenv("GFXSIM_SHOW") != NULL) printf("%s: %d, %d covered, %d idle\n", small.file, all, covered, idle);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(products_are_right), TEST(a_product_is_fast),
                                              TEST(exact_data_give_the_same_bits_in_every_model),
                                              TEST(schedules_agree),
                                              TEST(no_wait_and_no_barrier_can_be_taken_away) };
    return TEST_MAIN(argc, argv, cases);
}
