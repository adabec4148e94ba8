/* Barriers, fences, prefetches and hints: threads exchange numbers through shared memory, and the instruction stands
 * between. */
#include <string.h>

#include "families.h"
#include "calibrate/forms/forms.h"
#include "calibrate/forms/text.h"

enum { FULL_ROWS = 64, THREADS = 96 };

static const char write_own[] =
    ".shared .align 16 .b8 s$[384]; .reg .b32 %r<12>; .reg .b64 %l<6>; .reg .pred %p<4>;\n"
    "mov.u32 %r0, %tid.x; ld.param.u64 %l0, [in]; ld.param.u64 %l1, [out]; mad.wide.u32 %l2, %r0, 4, %l0; "
    "mad.wide.u32 %l1, %r0, 4, %l1;\n"
    "ld.global.u32 %r1, [%l2]; mov.u32 %r2, s$; mad.lo.u32 %r3, %r0, 4, %r2; st.shared.u32 [%r3], %r1; "
    "mov.b64 %l3, 0;\n";
static const char read_other[] =
    "add.u32 %r4, %r0, 33; rem.u32 %r4, %r4, 96; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r5, [%r4]; "
    "st.global.u32 [%l1], %r5;\n";

static void add(struct calibration *c, const char *form, const char *middle, const char *before)
{
    struct text t;
    text_open(&t);
    fprintf(t.out, "%s%s%s", write_own, middle, read_other);
    calibration_add(c, &(struct calibration_case){ .name = form, .form = form, .body = text_close(&t), .before = before,
                                                   .block = { THREADS }, .input_bytes = THREADS * 4,
                                                   .output_bytes = THREADS * 4 });
    free(t.bytes);
}

static bool begins(const struct form *f, const char *word) { return strncmp(f->text, word, strlen(word)) == 0; }

static void add_form(struct calibration *c, const struct form *f)
{
    char middle[512];
    if (begins(f, "barrier.cluster.arrive"))
        snprintf(middle, sizeof middle, "%s; barrier.cluster.wait; bar.sync 0;\n", f->text);
    else if (begins(f, "barrier.cluster.wait"))
        snprintf(middle, sizeof middle, "barrier.cluster.arrive; %s;\n", f->text);
    else if ((begins(f, "bar.") || begins(f, "barrier.")) && strstr(f->text, ".sync") != NULL && !begins(f, "bar.warp"))
        snprintf(middle, sizeof middle, "%s 1, 96; %s 2;\n", f->text, f->text);
    else if ((begins(f, "bar.") || begins(f, "barrier.")) && strstr(f->text, ".arrive") != NULL)
        snprintf(middle, sizeof middle, "setp.ge.u32 %%p0, %%r0, 64; @%%p0 bra LAST; %s 3, 96; bar.sync 4; bra JOIN;\n"
                                        "LAST: bar.sync 3, 96; bar.sync 4;\nJOIN:\n", f->text);
    else if (begins(f, "fence") || begins(f, "membar"))
        snprintf(middle, sizeof middle, "%s; bar.sync 0;\n", f->text);
    else if (begins(f, "applypriority"))
        snprintf(middle, sizeof middle, "bar.sync 0; and.b64 %%l4, %%l0, -128; %s [%%l4], 128;\n", f->text);
    else if (begins(f, "prefetch") && strstr(f->text, "tensormap") == NULL && strstr(f->text, ".local") == NULL)
        snprintf(middle, sizeof middle, "bar.sync 0; %s [%%l2];\n", f->text);
    else
        return;
    add(c, f->text, middle, begins(f, "barrier.cluster") ? ".reqnctapercluster 1, 1, 1" : NULL);
}

/* createpolicy's result is a number that hardware defines. */
static void add_policy(struct calibration *c, const struct form *f)
{
    static const char *const fractions[] = { "", ", 0f3F800000", ", 0f3F000000", ", 0f3D800000", ", 0f3E4CCCCD" };
    struct text t;
    text_open(&t);
    fputs(".reg .b64 %l<4>; ld.param.u64 %l1, [out];\n", t.out);
    for (int i = 0; i < 5; i++)
        fprintf(t.out, "%s %%l2%s; st.global.u64 [%%l1+%d], %%l2;\n", f->text, fractions[i], i * 8);
    calibration_add(c, &(struct calibration_case){ .name = f->text, .form = f->text, .body = text_close(&t),
                                                   .block = { 1 },
                                                   .output_bytes = 40 });
    free(t.bytes);
}

/* A thread for each range: its address, then the size of its first part and the whole size.  The addresses are those of
 * no memory: none is touched. */
enum { RANGES = 256 };

static void fill_ranges(const struct calibration_case *c, uint8_t *input)
{
    uint64_t state = 9;
    (void)c;
    for (uint32_t i = 0; i < RANGES; i++) {
        uint64_t address = UINT64_C(0x7f3212340000), first = 1 << 16, whole = 1 << 20;
        const uint32_t bit = i & 31;
        const uint64_t random = calibration_random(&state);
        if (i < 48) address ^= UINT64_C(1) << i;
        else if (i < 80) first = UINT64_C(1) << (i - 48), whole = UINT32_MAX;
        else if (i < 112) whole = UINT64_C(1) << (i - 80), first = whole < 4096 ? whole : 4096;
        else if (i < 144) first = whole = (UINT64_C(2) << (i - 112)) - 1;
        else if (i < 160) first = (uint64_t)(i - 143) << 13, whole = UINT64_C(16) << 13;
        else {
            address = UINT64_C(0x7f0000000000) | (random & UINT64_C(0xffffffff80));
            whole = ((random >> 40) + 1) & UINT32_MAX, first = whole >> (bit & 7);
        }
        const uint32_t sizes[] = { (uint32_t)first, (uint32_t)whole };
        memcpy(input + i * 16, &address, 8), memcpy(input + i * 16 + 8, sizes, 8);
    }
}

static void add_range(struct calibration *c, const struct form *f)
{
    struct text t;
    text_open(&t);
    fprintf(t.out,
            ".reg .b64 %%l<6>; .reg .b32 %%r<4>; ld.param.u64 %%l0, [in]; ld.param.u64 %%l1, [out]; "
            "mov.u32 %%r0, %%tid.x; mad.wide.u32 %%l0, %%r0, 16, %%l0; mad.wide.u32 %%l1, %%r0, 8, %%l1; "
            "ld.global.u64 %%l2, [%%l0]; ld.global.v2.u32 {%%r1, %%r2}, [%%l0+8];\n"
            "%s %%l3, [%%l2], %%r1, %%r2; st.global.u64 [%%l1], %%l3;\n", f->text);
    calibration_add(c, &(struct calibration_case){ .name = f->text, .form = f->text, .body = text_close(&t),
                                                   .block = { RANGES }, .input_bytes = RANGES * 16,
                                                   .output_bytes = RANGES * 8, .fill = fill_ranges });
    free(t.bytes);
}

/* Branches: by a table, out of the program, and whether a thread is active meanwhile (which others are is not
 * defined). */
static const char branches[] =
    "rem.u32 %r6, %r0, 3; TABLE: .branchtargets ZERO, ONE, TWO;\n"
    "brx.idx %r6, TABLE;\n"
    "ZERO: mov.u32 %r7, 100; bra.uni SOME;\nONE: mov.u32 %r7, 101; nanosleep.u32 20; bra SOME;\n"
    "TWO: mov.u32 %r7, 102;\n"
    "SOME: bar.warp.sync -1; setp.lt.u32 %p1, %r0, 5; @%p1 bra FEW; bra MANY;\nFEW: activemask.b32 %r8; "
    "mov.u32 %r9, %lanemask_eq; and.b32 %r8, %r8, %r9; st.shared.u32 [%r3], %r8; bra MANY;\n"
    "MANY: bar.sync 0; setp.eq.u32 %p2, %r0, 50; @%p2 exit; st.global.u32 [%l1+384], %r7;\n";

static void add_row(struct calibration *c, const struct row *row)
{
    const char *p = row->pattern;
    if (strchr(p, '#') != NULL) return;
    const bool plain = row->operands[0] == '\0' && (strncmp(p, "fence", 5) == 0 || strncmp(p, "membar", 6) == 0);
    const bool barrier =
        (strncmp(p, "bar{", 4) == 0 || strncmp(p, "barrier", 7) == 0) && strstr(p, ".red") == NULL;
    /* the driver's compiler of 580.159 dies of prefetch.local */
    if (plain || barrier || strncmp(p, "prefetch", 8) == 0 || strncmp(p, "applypriority", 13) == 0)
        calibration_row(c, row, FULL_ROWS, add_form);
    else if (strncmp(p, "createpolicy.fractional", 23) == 0) calibration_row(c, row, FULL_ROWS, add_policy);
    else if (strncmp(p, "createpolicy.range", 18) == 0) calibration_row(c, row, FULL_ROWS, add_range);
}

void calibration_family_ordering(struct calibration *c)
{
    calibration_hopper_rows(c, add_row);
    struct text t;
    text_open(&t);
    fprintf(t.out, "%s%s%s", write_own, branches, read_other);
    calibration_add(c, &(struct calibration_case){ .name = "branches", .body = text_close(&t), .block = { THREADS },
        .form = "brx.idx bra bra.uni exit nanosleep.u32 activemask.b32 bar.warp.sync", .input_bytes = THREADS * 4,
        .output_bytes = THREADS * 8 });
    free(t.bytes);
}
