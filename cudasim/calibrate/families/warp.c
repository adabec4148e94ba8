/* Instructions of a warp together: shfl, vote, match, redux, elect, activemask; bar.red and barrier.red of a CTA.  Each
 * result is stored at its number times 128 bytes, plus 4 a lane. */
#include <string.h>

#include "families.h"
#include "calibrate/forms/text.h"

struct warp_case { struct text t; const char *name, *form; int results; uint32_t threads; };

static void begin(struct warp_case *w, const char *name, const char *form, uint32_t threads)
{
    *w = (struct warp_case){ .name = name, .form = form, .threads = threads };
    text_open(&w->t);
    fputs(".reg .b32 %t<8>; .reg .b64 %u<4>; .reg .b32 %r<8>; .reg .b64 %l<4>; .reg .pred %p<6>;\n"
          "mov.u32 %t0, %tid.x; ld.param.u64 %u0, [in]; ld.param.u64 %u1, [out]; mad.wide.u32 %u1, %t0, 4, %u1;\n",
          w->t.out);
}

/* Input k of this thread in %r0 (and, of 64 bits, in %l0). */
static void load(struct warp_case *w, int k)
{
    fprintf(w->t.out, "mad.wide.u32 %%u2, %%t0, 8, %%u0; ld.global.u32 %%r0, [%%u2+%d]; "
                      "ld.global.u64 %%l0, [%%u2+%d];\n",
            k * 1024, k * 1024);
}

static void store(struct warp_case *w, const char *reg)
{
    fprintf(w->t.out, "st.global.u32 [%%u1+%u], %s;\n", (uint32_t)w->results++ * w->threads * 4, reg);
}

static void store_predicate(struct warp_case *w, const char *predicate)
{
    fprintf(w->t.out, "selp.u32 %%t7, 1, 0, %s;\n", predicate);
    store(w, "%t7");
}

enum { INPUTS = 16 };

static void end(struct calibration *c, struct warp_case *w, void (*fill)(const struct calibration_case *, uint8_t *))
{
    calibration_add(c, &(struct calibration_case){ .name = w->name, .form = w->form, .body = text_close(&w->t),
                                                   .block = { w->threads },
                                                   .input_bytes = INPUTS * 1024,
                                                   .output_bytes = (size_t)w->results * w->threads * 4,
                                                   .fill = fill });
    free(w->t.bytes);
}

/* Small numbers with repetitions, all the same now and then. */
static void few_values(const struct calibration_case *c, uint8_t *input)
{
    uint64_t state = 11;
    for (size_t i = 0; i < c->input_bytes / 8; i++) {
        const size_t group = i / 128;
        const uint64_t r = calibration_random(&state);
        const uint64_t value = group % 4 == 0   ? 0x100000005
                               : group % 4 == 1 ? (r & 3) << 32 | (r >> 8 & 1)
                               : group % 4 == 2 ? i % 32 / 5
                                                : r;
        memcpy(input + i * 8, &value, 8);
    }
}

/* Opens a branch for the lanes of the mask; %t1 is the mask. */
static void open_mask(struct warp_case *w, uint32_t mask)
{
    fprintf(w->t.out, "mov.u32 %%t1, %u; mov.u32 %%t2, %%laneid; shr.u32 %%t3, %%t1, %%t2; and.b32 %%t3, %%t3, 1; "
                      "setp.eq.u32 %%p5, %%t3, 0;\n@%%p5 bra L%d_%d;\n", mask, w->results, 0);
}
static void close_mask(struct warp_case *w, int opened) { fprintf(w->t.out, "L%d_0:\nbar.warp.sync -1;\n", opened); }

static const uint32_t masks[] = { 0xffffffff, 0x0000ffff, 0x80000001, 0x5a5a00ff, 0x00010000, 0xfffffffe };
enum { MASKS = sizeof masks / sizeof masks[0] };

static void shfl(struct calibration *c, const char *mode)
{
    static const uint32_t clamps[] = { 0x1f, 0, 0x1c1f, 0x181f, 0x101f, 0x0c03, 0x1f1f, 0x0007, 0x100f };
    static const int amounts[] = { 0, 1, 2, 3, 7, 8, 15, 16, 17, 30, 31, 32, 33, 63, -1 };
    char form[64], name[80];
    struct warp_case w;
    snprintf(form, sizeof form, "shfl.sync.%s.b32", mode);
    snprintf(name, sizeof name, "%s", form);
    begin(&w, name, form, 32);
    load(&w, 3);
    for (size_t i = 0; i < sizeof clamps / sizeof clamps[0]; i++)
        for (size_t j = 0; j < sizeof amounts / sizeof amounts[0]; j++) {
            fprintf(w.t.out, "shfl.sync.%s.b32 %%r1|%%p1, %%r0, %d, %u, -1;\n", mode, amounts[j], clamps[i]);
            store(&w, "%r1");
            store_predicate(&w, "%p1");
        }
    fputs("and.b32 %r2, %r0, 31; xor.b32 %r3, %r0, 0x1c1f; and.b32 %r3, %r3, 0x1f1f;\n", w.t.out);
    /* a different amount in each lane */
    fprintf(w.t.out, "shfl.sync.%s.b32 %%r1|%%p1, %%r0, %%r2, 31, -1;\n", mode);
    store(&w, "%r1");
    store_predicate(&w, "%p1");
    fprintf(w.t.out, "shfl.sync.%s.b32 %%r1|%%p1, %%r0, %%r2, %%r3, -1;\n", mode);    /* and a different segment */
    store(&w, "%r1");
    store_predicate(&w, "%p1");
    end(c, &w, NULL);
}

static void vote(struct calibration *c, const char *mode)
{
    char form[64];
    struct warp_case w;
    const bool ballot = strcmp(mode, "ballot.b32") == 0;
    snprintf(form, sizeof form, "vote.sync.%s", mode);
    begin(&w, form, form, 32);
    for (int k = 0; k < INPUTS; k++)
        for (int m = 0; m < MASKS; m++) {
            load(&w, k);
            fputs("and.b32 %r1, %r0, 1; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, 0xdead;\n", w.t.out);
            const int opened = w.results;
            open_mask(&w, masks[m]);
            if (ballot) fprintf(w.t.out, "vote.sync.ballot.b32 %%r2, %s%%p1, %%t1;\n", k % 2 == 0 ? "" : "!");
            else
                fprintf(w.t.out, "vote.sync.%s %%p2, %s%%p1, %%t1; selp.u32 %%r2, 1, 0, %%p2;\n", mode,
                        k % 2 == 0 ? "" : "!");
            close_mask(&w, opened);
            store(&w, "%r2");
        }
    end(c, &w, few_values);
}

static void match(struct calibration *c, const char *mode, const char *type)
{
    char form[64];
    struct warp_case w;
    const bool all = strcmp(mode, "all") == 0;
    snprintf(form, sizeof form, "match.%s.sync.%s", mode, type);
    begin(&w, form, form, 32);
    for (int k = 0; k < INPUTS; k++)
        for (int m = 0; m < MASKS; m++) {
            load(&w, k);
            fputs("mov.u32 %r2, 0xdead; setp.ne.u32 %p2, %r2, %r2;\n", w.t.out);
            const int opened = w.results;
            open_mask(&w, masks[m]);
            fprintf(w.t.out, "%s %%r2%s, %s, %%t1;\n", form, all ? "|%p2" : "",
                    strcmp(type, "b64") == 0 ? "%l0" : "%r0");
            close_mask(&w, opened);
            store(&w, "%r2");
            if (all) store_predicate(&w, "%p2");
        }
    end(c, &w, few_values);
}

static void redux(struct calibration *c, const char *operation)
{
    char form[64];
    struct warp_case w;
    snprintf(form, sizeof form, "redux.sync.%s", operation);
    begin(&w, form, form, 32);
    for (int k = 0; k < INPUTS; k++)
        for (int m = 0; m < MASKS; m++) {
            load(&w, k);
            fputs("mov.u32 %r2, 0xdead;\n", w.t.out);
            const int opened = w.results;
            open_mask(&w, masks[m]);
            fprintf(w.t.out, "%s %%r2, %%r0, %%t1;\n", form);
            close_mask(&w, opened);
            store(&w, "%r2");
        }
    end(c, &w, few_values);
}

static void elect(struct calibration *c)
{
    struct warp_case w;
    begin(&w, "elect.sync", "elect.sync", 32);
    for (int m = 0; m < MASKS; m++) {
        fputs("mov.u32 %r2, 0xdead; setp.ne.u32 %p2, %r2, %r2;\n", w.t.out);
        const int opened = w.results;
        open_mask(&w, masks[m]);
        fputs("elect.sync %r2|%p2, %t1;\n", w.t.out);
        close_mask(&w, opened);
        store(&w, "%r2");
        store_predicate(&w, "%p2");
    }
    end(c, &w, NULL);
}

/* Two warps and a half. */
static void barrier_red(struct calibration *c, const char *form)
{
    struct warp_case w;
    const bool popc = strstr(form, "popc") != NULL;
    begin(&w, form, form, 96);
    for (int k = 0; k < INPUTS; k++) {
        load(&w, k % 8);
        fputs(k == 5 ? "setp.eq.u32 %p1, %r0, %r0;\n" : k == 6 ? "setp.ne.u32 %p1, %r0, %r0;\n"
                     : "and.b32 %r1, %r0, 1; setp.ne.u32 %p1, %r1, 0;\n", w.t.out);
        fprintf(w.t.out, "%s %s, %d%s, %s%%p1;\n", form, popc ? "%r2" : "%p2", k % 5, k % 2 == 0 ? "" : ", 96",
                k % 3 == 0 ? "" : "!");
        if (popc) store(&w, "%r2");
        else store_predicate(&w, "%p2");
    }
    end(c, &w, few_values);
}

void calibration_family_warp(struct calibration *c)
{
    static const char *const shuffles[] = { "up", "down", "bfly", "idx" };
    static const char *const votes[] = { "all.pred", "any.pred", "uni.pred", "ballot.b32" };
    static const char *const reductions[] = { "add.u32", "add.s32", "min.u32", "min.s32", "max.u32",
                                              "max.s32", "and.b32", "or.b32",  "xor.b32" };
    static const char *const barriers[] = { "bar.red.popc.u32",
                                            "bar.red.and.pred",
                                            "bar.red.or.pred",
                                            "barrier.red.popc.aligned.u32",
                                            "barrier.red.and.aligned.pred",
                                            "barrier.red.or.aligned.pred",
                                            "barrier.red.popc.u32",
                                            "barrier.red.and.pred",
                                            "barrier.red.or.pred",
                                            "bar.cta.red.popc.u32" };
    for (size_t i = 0; i < sizeof shuffles / sizeof shuffles[0]; i++) shfl(c, shuffles[i]);
    for (size_t i = 0; i < sizeof votes / sizeof votes[0]; i++) vote(c, votes[i]);
    for (int i = 0; i < 4; i++) match(c, i < 2 ? "any" : "all", i % 2 == 0 ? "b32" : "b64");
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++) redux(c, reductions[i]);
    for (size_t i = 0; i < sizeof barriers / sizeof barriers[0]; i++) barrier_red(c, barriers[i]);
    elect(c);
}
