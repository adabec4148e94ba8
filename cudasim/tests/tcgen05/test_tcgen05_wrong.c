/* tcgen05.mma used wrongly: each wrong kernel is reported, its right twin, which differs in one thing, runs under
 * several schedules without a report; and forms that are refused when the module is read. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/tcgen05_kernel.h"

enum { SCHEDULES = 4 };

/* ---- one case, right and wrong ---- */

struct trial { struct mma_case c; struct images x; char statement[600]; };

static struct trial *trial_of(struct test *t, struct tcgen05_form form, uint32_t m, uint32_t n)
{
    struct trial *r = calloc(1, sizeof *r);
    if (r == NULL) abort();
    r->c.form = form, r->c.m = m, r->c.n = n;
    do case_draw(t, &r->c, true);
    while (r->c.half || r->c.masked || !r->c.accumulate || r->c.down != 0 || r->c.zero_mask != UINT64_MAX
           || r->c.at_b.mn_major || r->c.at_a.mn_major || r->c.at_a.mode == 0);
    r->x = images_of(t, &r->c);
    case_statement(&r->c, r->statement, sizeof r->statement);
    return r;
}

static void expect_none(struct test *t, struct trial *r)
{
    struct sim sim;
    r->x.schedules = SCHEDULES;
    if (!case_run(t, &sim, &r->c, &r->x, r->statement))
        FAIL(t, "%s", sim.module == NULL ? r->statement : sim.report.text);
    if (sim.module != NULL) sim_close(&sim);
    r->x.schedules = 0;
}

/* The report has the code and, in its sentence, the words. */
static void expect(struct test *t, struct trial *r, enum report_code code, const char *words)
{
    struct sim sim;
    const bool good = case_run(t, &sim, &r->c, &r->x, r->statement);
    if (good) FAIL(t, "no report: %s", words);
    else if (sim.module == NULL) FAIL(t, "%s is refused", r->statement);
    else if (sim.report.code != code || strstr(sim.report.sentence, words) == NULL)
        FAIL(t, "not '%s': %s", words, sim.report.text);
    if (sim.module != NULL) sim_close(&sim);
}

static void end(struct trial *r)
{
    images_release(&r->x);
    free(r);
}

static const struct tcgen05_form f16_form = { .kind = TCGEN05_F16, .ctas = 1 };
static const struct tcgen05_form mxf8_form = { .kind = TCGEN05_MXF8F6F4, .ctas = 1, .block = 32 };
static const struct tcgen05_form nvf4_form = { .kind = TCGEN05_MXF4NVF4, .ctas = 1, .block = 16 };

static uint32_t *cell(const struct trial *r, uint32_t lane, uint32_t column)
{
    return &r->x.cells[lane * 512 + column];
}

/* ---- scales ---- */

static void scales_stand_in_four_groups_of_lanes(struct test *t)
{
    struct trial *r = trial_of(t, mxf8_form, 128, 80);
    expect_none(t, r);
    for (uint32_t q = 1; q < 4; q++) {
        *cell(r, 32 * q + 7, r->c.sfa + 2) ^= 1u << (8 * r->c.sfa_id + 1);
        expect(t, r, REPORT_ILLEGAL, "reads the scales of row 71 of A from column");
        *cell(r, 32 * q + 7, r->c.sfa + 2) ^= 1u << (8 * r->c.sfa_id + 1);
        *cell(r, 32 * q + 15, r->c.sfb + 2) ^= 0x80u << 8 * r->c.sfb_id;
        expect(t, r, REPORT_ILLEGAL, "reads the scales of column 79 of B from column");
        *cell(r, 32 * q + 15, r->c.sfb + 2) ^= 0x80u << 8 * r->c.sfb_id;
    }
    *cell(r, 96, r->c.sfa) ^= 1u << (8 * ((r->c.sfa_id + 1) % 4));                 /* bytes that this instruction does
                                                                                      not read */
    *cell(r, 32 * 2 + 16, r->c.sfb + 2) ^= 1;                                    /* N is 80: lanes from 16 on hold
                                                                                    nothing */
    expect_none(t, r);
    end(r);
}

/* The operand that the trial has in this column is whole, and missed where any of the four warps leaves it out. */
static void every_warp_writes(struct test *t, struct trial *r, uint32_t column, const char *said)
{
    images_release(&r->x);
    r->x = images_of(t, &r->c);
    expect_none(t, r);
    for (uint32_t warp = 0; warp < 4; warp++) {
        r->x.skip_column = column, r->x.skip_warp = warp;
        expect(t, r, REPORT_UNINITIALISED, said);
    }
}

static void scales_of_every_group_are_written(struct test *t)
{
    struct trial *r = trial_of(t, nvf4_form, 128, 64);
    r->c.sfa = 328;
    every_warp_writes(t, r, 328, "all four groups of 32 lanes need them");
    end(r);
}

static void scales_begin_in_lane_0(struct test *t)
{
    struct trial *r = trial_of(t, mxf8_form, 128, 32);
    expect_none(t, r);
    r->c.sfb |= 32u << 16;
    expect(t, r, REPORT_ILLEGAL, "has lane 32 in the address of the scales of B");
    r->c.sfb &= 0xffff, r->c.sfa |= 16u << 16;
    expect(t, r, REPORT_ILLEGAL, "has lane 16 in the address of the scales of A");
    r->c.sfa = (r->c.sfa & 0xffff) | 0x40000000;                                   /* a byte index of CuTe's */
    expect_none(t, r);
    end(r);
}

/* ---- places ---- */

static void operands_are_apart(struct test *t)
{
    struct trial *r = trial_of(t, mxf8_form, 128, 64);
    const uint32_t sfa = r->c.sfa;
    expect_none(t, r);
    r->c.sfa = (r->c.d & 0xffff) + 61;
    expect(t, r, REPORT_ILLEGAL, "and the scales of A in columns");
    r->c.sfa = sfa, r->c.d = 480;
    expect(t, r, REPORT_OUT_OF_BOUNDS, "has D in columns 480 to 543");
    end(r);
    struct tcgen05_form form = f16_form;
    form.a_in_tensor_memory = true;
    r = trial_of(t, form, 64, 64);
    expect_none(t, r);
    const uint32_t d = r->c.d;
    r->c.cells_a = d + 60;
    expect(t, r, REPORT_ILLEGAL, "and A in columns");
    r->c.cells_a = (d ^ 16u << 16) + 300;
    expect(t, r, REPORT_ILLEGAL, "in the address of A, and lane");
    end(r);
    r = trial_of(t, f16_form, 128, 64);
    r->c.d |= 16u << 16;
    expect(t, r, REPORT_ILLEGAL, "has lane 16 in the address of D");
    end(r);
}

static void accumulators_are_written(struct test *t)
{
    struct trial *r = trial_of(t, f16_form, 128, 64);
    r->c.d = 8;
    images_release(&r->x);
    r->x = images_of(t, &r->c);
    expect_none(t, r);
    r->x.skip_column = 16, r->x.skip_warp = 2;
    expect(t, r, REPORT_UNINITIALISED, "reads D from lane 64, column 16");
    r->c.accumulate = false;                                                       /* D is not read */
    expect_none(t, r);
    end(r);
}

/* ---- shared memory ---- */

static void matrices_lie_in_shared_memory(struct test *t)
{
    struct trial *r = trial_of(t, f16_form, 128, 64);
    expect_none(t, r);
    const struct case_matrix at = r->c.at_a;
    r->c.at_a = (struct case_matrix){ .start = 0x39000, .leading = 128, .stride = 256, .mode = 0 };
    expect(t, r, REPORT_OUT_OF_BOUNDS, "bytes of A at shared address");
    r->c.at_a = (struct case_matrix){ .start = CASE_SHARED, .leading = 16, .stride = 16, .mode = 0 };
    expect(t, r, REPORT_UNINITIALISED, "reads");
    r->c.at_a = (struct case_matrix){ .start = 112, .stride = 1024, .mode = 2 };
    expect(t, r, REPORT_ILLEGAL,
           "reads 32 bytes of K from byte 112 of a row of A, which a 128-byte swizzle does not hold");
    r->c.at_a = at;
    r->x.flip_a = UINT64_C(1) << 46;
    expect(t, r, REPORT_ILLEGAL, "takes the descriptor of A 0x");
    r->x.flip_a = UINT64_C(1) << 52;
    expect(t, r, REPORT_ILLEGAL, "has 1 in bit 52");
    end(r);
}

static void generic_writes_are_fenced(struct test *t)
{
    struct trial *r = trial_of(t, f16_form, 128, 64);
    expect_none(t, r);
    r->x.without = "fence.proxy.async;";
    expect(t, r, REPORT_PROXY, "fence.proxy.async");
    end(r);
}

/* The thread that issues it writes to A before the end was waited for. */
static void matrices_stay_until_the_end(struct test *t)
{
    struct trial *r = trial_of(t, f16_form, 128, 64);
    case_statement(&r->c, r->statement, sizeof r->statement);
    const size_t used = strlen(r->statement);
    snprintf(r->statement + used, sizeof r->statement - used, " st.shared.u32 [%%r11+%d], %%r1;", CASE_SHARED);
    expect_none(t, r);
    snprintf(r->statement + used, sizeof r->statement - used, " st.shared.u32 [%%r11+%u], %%r1;", r->c.at_a.start);
    expect(t, r, REPORT_ASYNC, "which is read by an asynchronous operation issued at PTX line");
    end(r);
}

/* ---- sparse A, copies of A ---- */

static void metadata_are_legal(struct test *t)
{
    struct tcgen05_form form = { .kind = TCGEN05_F8F6F4, .ctas = 1, .sparse = true };
    struct trial *r = trial_of(t, form, 128, 64);
    expect_none(t, r);
    const uint32_t kept = *cell(r, 70, r->c.metadata);
    *cell(r, 70, r->c.metadata) = (kept & ~0xf00u) | 0x500;                       /* the same element twice */
    expect(t, r, REPORT_ILLEGAL, "reads metadata that no row may have: 0x5 for element 4 of row 70");
    *cell(r, 70, r->c.metadata) = kept;
    expect_none(t, r);
    end(r);
    form = (struct tcgen05_form){ .kind = TCGEN05_F16, .ctas = 1, .sparse = true };
    r = trial_of(t, form, 128, 64);
    r->c.metadata |= 1;
    expect(t, r, REPORT_ILLEGAL, "they begin at lane 0 of an even column");
    end(r);
}

/* In all lanes. */
static void metadata_are_written(struct test *t)
{
    const struct tcgen05_form forms[] = { { .kind = TCGEN05_F8F6F4, .ctas = 1, .sparse = true },
                                          { .kind = TCGEN05_MXF4NVF4, .ctas = 1, .block = 16, .sparse = true } };
    for (size_t i = 0; i < 2; i++) {
        struct trial *r = trial_of(t, forms[i], 128, 64);
        r->c.metadata = 328;
        every_warp_writes(t, r, 328, "reads the metadata from lane");
        end(r);
    }
}

/* 0 in the metadata of a chunk of which A stores zeros. */
static void nothing_may_stand_anywhere(struct test *t)
{
    static const struct { struct tcgen05_form form; uint32_t stored; } cases[] = {
        { { .kind = TCGEN05_TF32, .ctas = 1, .sparse = true }, 1 },
        { { .kind = TCGEN05_F16, .ctas = 1, .sparse = true }, 2 },
        { { .kind = TCGEN05_F8F6F4, .ctas = 1, .sparse = true }, 2 },
        { { .kind = TCGEN05_I8, .ctas = 1, .sparse = true }, 2 },
        { { .kind = TCGEN05_MXF4NVF4, .ctas = 1, .block = 16, .sparse = true }, 4 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t nonzero = 0; nonzero <= cases[i].stored; nonzero++) {
            struct trial *r = trial_of(t, cases[i].form, 128, 64);
            for (uint32_t e = 0; e < cases[i].stored; e++) {
                r->c.a[70][4 + e] = e + 1 == nonzero;
                r->c.bits[70][4 + e] = 0;
            }
            images_release(&r->x);
            r->x = images_of(t, &r->c);
            if (nonzero == 0) expect_none(t, r);
            else expect(t, r, REPORT_ILLEGAL, "reads metadata that no row may have: 0x0 for element");
            end(r);
        }
}

static void copies_agree(struct test *t)
{
    struct tcgen05_form form = { .kind = TCGEN05_F16, .ctas = 1, .weight_stationary = true,
                                 .a_in_tensor_memory = true };
    struct trial *r = trial_of(t, form, 64, 64);
    expect_none(t, r);
    *cell(r, 64 + 3, (r->c.cells_a & 0xffff) + 5) ^= 0x10000;
    expect(t, r, REPORT_ILLEGAL,
           "reads row 3 of A from lane 3 of tensor memory and its copy from lane 67, which differ");
    end(r);
    form = (struct tcgen05_form){ .kind = TCGEN05_I8, .ctas = 1, .weight_stationary = true, .sparse = true };
    r = trial_of(t, form, 32, 64);
    expect_none(t, r);
    *cell(r, 96, r->c.metadata) ^= 0xc;
    expect(t, r, REPORT_ILLEGAL, "reads the metadata of row 0 from lanes 0 and 96");
    end(r);
}

static void containers_hold_one_element(struct test *t)
{
    const struct tcgen05_form form = { .kind = TCGEN05_F8F6F4, .ctas = 1, .a_in_tensor_memory = true };
    struct trial *r;
    while ((r = trial_of(t, form, 128, 64))->c.fa != TENSOR_E2M1) end(r);
    expect_none(t, r);
    *cell(r, 9, (r->c.cells_a & 0xffff) + 1) |= 0x100;                             /* the element as ldmatrix leaves it:
                                                                                      too low */
    expect(t, r, REPORT_ILLEGAL, "reads element 5 of A from lane 9");
    end(r);
}

/* ---- masks, descriptors ---- */

static void descriptors_are_checked(struct test *t)
{
    struct trial *r = trial_of(t, nvf4_form, 128, 64);
    expect_none(t, r);
    r->x.flip = 1u << 31;
    expect(t, r, REPORT_ILLEGAL, "which has 1 in bit 31 (reserved)");
    r->x.flip = (1u ^ 5u) << 7;                                                    /* the code of e2m1 in another
                                                                                      kind */
    expect(t, r, REPORT_ILLEGAL, "has 5 in bits 9..7 (type of A); kind::mxf4nvf4 takes 1 (e2m1)");
    r->x.flip = 1u << 4;
    expect(t, r, REPORT_ILLEGAL, "has 1 in bits 5..4 (SFB_ID)");
    r->x.flip = 4;
    expect(t, r, REPORT_ILLEGAL, "in bit 2 (sparsity)");
    end(r);
    const struct tcgen05_form form = { .kind = TCGEN05_TF32, .ctas = 1, .weight_stationary = true };
    r = trial_of(t, form, 128, 64);
    strcpy(strstr(r->statement, ", %p5"), ", %p5, %rd22;");
    r->c.zero_mask = UINT64_C(1) << 39;
    expect_none(t, r);
    r->c.zero_mask |= UINT64_C(1) << 56;
    expect(t, r, REPORT_ILLEGAL, "takes the zero-column mask 0x");
    r->c.zero_mask = UINT64_C(1) << 36;
    expect(t, r, REPORT_ILLEGAL, "that belong to no field");
    end(r);
}

/* ---- a pair ---- */

static void pairs(struct test *t)
{
    const struct tcgen05_form form = { .kind = TCGEN05_MXF8F6F4, .ctas = 2, .block = 32 };
    struct trial *r = trial_of(t, form, 256, 64);
    expect_none(t, r);
    for (uint32_t cta = 0; cta < 2; cta++) {                                       /* both CTAs hold all scales of B */
        r->x.cells[cta * CASE_CELLS + 33 * 512 + r->c.sfb + 1] ^= 255u << 8 * r->c.sfb_id;
        expect(t, r, REPORT_ILLEGAL, "reads the scales of column 33 of B");
        r->x.cells[cta * CASE_CELLS + 33 * 512 + r->c.sfb + 1] ^= 255u << 8 * r->c.sfb_id;
    }
    end(r);
}

/* ---- forms ---- */

static void refused_forms(struct test *t)
{
    static const struct { const char *device, *statement, *words;
    } forms[] = {
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::f16.ashift [%r1], [%r2], %rd1, %r3, %p1;",
          "of .ashift no source says" },
        { "sm_103a", "tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r3, %p1;", "needs the target sm_100a" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::i8 [%r1], %rd1, %rd2, %r3, %p1, 1;", "one too many" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], %rd1, %rd2, %r3, %p1, 1;", "one too many" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1, 16;",
          "scale-input-d is 0 to 15" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::f16 [%rd1], %rd1, %rd2, %r3, %p1;", "is a register of 32 bits" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r3, [%r4], [%rd5], %p1;",
          "of 32 bits" },
        { "sm_100a", "tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r3, {%r1,%r2,%r3,%r4}, %p1;", "" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::2X [%r1], %rd1, %rd2, %r3, [%r4], "
                     "[%r5], %p1;",
          "" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block16 [%r1], %rd1, %rd2, %r3, [%r4], [%r5], "
                     "%p1;", "" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
          "" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::mxf4 [%r1], %rd1, %rd2, %r3, %p1;", "" },
        { "sm_100a", "tcgen05.mma.ws.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r3, [%r4], [%r5], %p1;",
          "" },
        { "sm_100a", "tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;", "" },
        { "sm_100a", "tcgen05.mma.ws.cta_group::1.kind::f16.collector::a::use [%r1], %rd1, %rd2, %r3, %p1;", "" },
        { "sm_100a", "tcgen05.mma.cta_group::1.kind::f16.collector::b0::use [%r1], %rd1, %rd2, %r3, %p1;", "" },
        { "sm_120a", "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;", "needs the target" },
        { "sm_90a", "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r3, %p1;", "needs the target" },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct sim sim;
        if (sim_refused(t, &sim, forms[i].device, forms[i].statement) && strstr(sim.error.text, forms[i].words) == NULL)
            FAIL(t, "%s: %s", forms[i].statement, sim.error.text);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(scales_stand_in_four_groups_of_lanes),
        TEST(scales_of_every_group_are_written),
        TEST(scales_begin_in_lane_0),
        TEST(operands_are_apart),
        TEST(accumulators_are_written),
        TEST(matrices_lie_in_shared_memory),
        TEST(generic_writes_are_fenced),
        TEST(matrices_stay_until_the_end),
        TEST(metadata_are_legal), TEST(metadata_are_written), TEST(nothing_may_stand_anywhere),
        TEST(copies_agree),
        TEST(containers_hold_one_element),
        TEST(descriptors_are_checked),
        TEST(pairs),
        TEST(refused_forms),
    };
    return TEST_MAIN(argc, argv, cases);
}
