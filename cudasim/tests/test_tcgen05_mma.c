/* tcgen05.mma of every kind, shape and way to lie: whole kernels, whose results are compared bit by bit with the published models,
 * and (whole numbers) with integers.  All of tensor memory is compared: nothing but D may change. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "tcgen05_case.h"

/* ---- the kernel ---- */

/* p0: shared memory, p1: tensor memory, p2: operands, p3: tensor memory afterwards; of each CTA one behind the other.  The statement
 * is executed by thread 0 of one CTA; %r12 is the shared address in units of 16 that descriptors are relative to. */
static const char before[] =
    ".version 9.0\n.target %s\n.address_size 64\n"
    ".extern .shared .align 1024 .b8 image[];\n"
    ".visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{\n"
    ".shared .align 16 .b64 own[4];\n"
    ".reg .b32 %%r<64>; .reg .b64 %%rd<64>; .reg .b16 %%h<2>; .reg .pred %%p<16>;\n"
    "ld.param.u64 %%rd60, [p0]; ld.param.u64 %%rd61, [p1]; ld.param.u64 %%rd62, [p2]; ld.param.u64 %%rd63, [p3];\n"
    "mov.u32 %%r1, %%tid.x; shr.u32 %%r2, %%r1, 5; setp.eq.u32 %%p1, %%r2, 0; setp.eq.u32 %%p2, %%r1, 0;\n"
    "mov.u32 %%r40, %%cluster_ctarank; mul.wide.u32 %%rd1, %%r40, %u; add.u64 %%rd60, %%rd60, %%rd1;\n"
    "mul.wide.u32 %%rd1, %%r40, 262144; add.u64 %%rd61, %%rd61, %%rd1; add.u64 %%rd63, %%rd63, %%rd1;\n"
    "mov.u32 %%r10, own; mov.u32 %%r11, image; shr.u32 %%r12, %%r11, 4; cvt.u64.u32 %%rd30, %%r12;\n"
    "@!%%p1 bra A;\n"
    "tcgen05.alloc.cta_group::%u.sync.aligned.shared::cta.b32 [%%r10], 512;\n"
    "tcgen05.relinquish_alloc_permit.cta_group::%u.sync.aligned;\n"
    "A: @%%p2 mbarrier.init.shared.b64 [%%r10+8], 1;\n"
    "bar.sync 0; ld.shared.u32 %%r3, [%%r10];\n"
    "mul.wide.u32 %%rd1, %%r1, 16; add.u64 %%rd1, %%rd1, %%rd60; shl.b32 %%r4, %%r1, 4; add.u32 %%r4, %%r4, %%r11; mov.u32 %%r5, 0;\n"
    "C: ld.global.v4.b32 {%%r6, %%r7, %%r8, %%r9}, [%%rd1]; st.shared.v4.b32 [%%r4], {%%r6, %%r7, %%r8, %%r9};\n"
    "add.u64 %%rd1, %%rd1, 2048; add.u32 %%r4, %%r4, 2048; add.u32 %%r5, %%r5, 2048; setp.lt.u32 %%p3, %%r5, %u; @%%p3 bra C;\n"
    "fence.proxy.async;\n"
    "and.b32 %%r5, %%r2, 3; shl.b32 %%r5, %%r5, 21; add.u32 %%r5, %%r5, %%r3; mov.u32 %%r4, %%r5; mov.u32 %%r41, 0;\n"
    "mul.wide.u32 %%rd1, %%r1, 2048; add.u64 %%rd2, %%rd1, %%rd63; add.u64 %%rd1, %%rd1, %%rd61;\n"
    "F: ld.global.v4.b32 {%%r20, %%r21, %%r22, %%r23}, [%%rd1]; ld.global.v4.b32 {%%r24, %%r25, %%r26, %%r27}, [%%rd1+16];\n"
    "tcgen05.st.sync.aligned.32x32b.x8.b32 [%%r4], {%%r20, %%r21, %%r22, %%r23, %%r24, %%r25, %%r26, %%r27};\n"
    "add.u64 %%rd1, %%rd1, 32; add.u32 %%r4, %%r4, 8; add.u32 %%r41, %%r41, 8; setp.lt.u32 %%p3, %%r41, 512; @%%p3 bra F;\n"
    "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;\n"
    "setp.eq.and.u32 %%p4, %%r40, %u, %%p2; @!%%p4 bra D;\n"
    "ld.global.u64 %%rd20, [%%rd62]; ld.global.u64 %%rd21, [%%rd62+8]; ld.global.u64 %%rd22, [%%rd62+16];\n"
    "add.u64 %%rd20, %%rd20, %%rd30; add.u64 %%rd21, %%rd21, %%rd30;\n"
    "ld.global.u32 %%r20, [%%rd62+24]; ld.global.u32 %%r21, [%%rd62+28]; ld.global.u32 %%r22, [%%rd62+32];\n"
    "ld.global.u32 %%r23, [%%rd62+36]; ld.global.u32 %%r24, [%%rd62+40]; ld.global.u32 %%r25, [%%rd62+44];\n"
    "ld.global.u32 %%r26, [%%rd62+48]; setp.ne.u32 %%p5, %%r26, 0;\n"
    "ld.global.v4.b32 {%%r30, %%r31, %%r32, %%r33}, [%%rd62+64]; ld.global.v4.b32 {%%r34, %%r35, %%r36, %%r37}, [%%rd62+80];\n";
static const char one_commit[] = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10+8];\n";
static const char both_commit[] =
    "mov.b16 %h1, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r10+8], %h1;\n";
static const char behind[] =
    "D: mbarrier.try_wait.parity.shared::cta.b64 %%p6, [%%r10+8], 0; @!%%p6 bra D;\n"
    "tcgen05.fence::after_thread_sync; mov.u32 %%r4, %%r5; mov.u32 %%r41, 0;\n"
    "R: tcgen05.ld.sync.aligned.32x32b.x8.b32 {%%r20, %%r21, %%r22, %%r23, %%r24, %%r25, %%r26, %%r27}, [%%r4];\n"
    "tcgen05.wait::ld.sync.aligned;\n"
    "st.global.v4.b32 [%%rd2], {%%r20, %%r21, %%r22, %%r23}; st.global.v4.b32 [%%rd2+16], {%%r24, %%r25, %%r26, %%r27};\n"
    "add.u64 %%rd2, %%rd2, 32; add.u32 %%r4, %%r4, 8; add.u32 %%r41, %%r41, 8; setp.lt.u32 %%p3, %%r41, 512; @%%p3 bra R;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "@%%p1 tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%r3, 512;\nret;\n}\n";

struct images { uint8_t *shared; uint32_t *cells, *after; };

static struct images images_of(struct test *t, const struct mma_case *c)
{
    const size_t ctas = c->form.ctas;
    struct images x = { malloc(ctas * CASE_SHARED), malloc(ctas * CASE_CELLS * 4), malloc(ctas * CASE_CELLS * 4) };
    if (x.shared == NULL || x.cells == NULL || x.after == NULL) abort();
    for (size_t i = 0; i < ctas * CASE_SHARED; i++) x.shared[i] = (uint8_t)rnd(t);
    for (size_t i = 0; i < ctas * CASE_CELLS; i++) x.cells[i] = (uint32_t)rnd(t);
    for (uint32_t cta = 0; cta < ctas; cta++) case_place(c, cta, x.shared + cta * CASE_SHARED, x.cells + cta * CASE_CELLS);
    return x;
}

static void release(struct images *x) { free(x->shared), free(x->cells), free(x->after); }

/* The kernel with `statement` in its middle. */
static bool run_statement(struct test *t, struct sim *sim, const struct mma_case *c, const struct images *x, const char *device,
                          const char *statement)
{
    char *text = malloc(16384);
    if (text == NULL) abort();
    const uint32_t g = c->form.ctas, issuer = g == 2 ? (uint32_t)rnd_below(t, 2) : 0;
    int used = snprintf(text, 16384, before, device, CASE_SHARED, g, g, CASE_SHARED, issuer);
    used += snprintf(text + used, 16384 - (size_t)used, "%s\n%s", statement, g == 2 ? both_commit : one_commit);
    snprintf(text + used, 16384 - (size_t)used, behind, g);
    const bool opened = sim_open(t, sim, device, text);
    free(text);
    if (!opened) return false;
    sim->machine.options.check_uninitialised = !c->half;                         /* the upper half of a D of f16 is not defined */
    struct { uint64_t a, b, mask; uint32_t word[10]; uint32_t lanes[8]; } p = {
        .a = case_matrix_descriptor(&c->at_a), .b = case_matrix_descriptor(&c->at_b), .mask = c->zero_mask,
        .word = { c->d, c->cells_a, case_descriptor(c), c->sfa, c->metadata, c->sfb, c->accumulate },
    };
    memcpy(p.lanes, c->disabled, sizeof p.lanes);
    const uint64_t parameters[] = { sim_buffer(sim, x->shared, g * CASE_SHARED), sim_buffer(sim, x->cells, g * CASE_CELLS * 4),
                                    sim_buffer(sim, &p, sizeof p), sim_buffer(sim, NULL, g * CASE_CELLS * 4) };
    const struct launch launch = { .image = &sim->image, .function = ptx_function(sim->module, "k"), .grid = { g, 1, 1 },
                                   .block = { 128, 1, 1 }, .cluster = { g, 1, 1 }, .dynamic_shared = CASE_SHARED,
                                   .parameters = (const uint8_t *)parameters };
    const bool good = machine_run(&sim->machine, &launch, &sim->report);
    if (good) sim_read(sim, parameters[3], x->after, g * CASE_CELLS * 4);
    return good;
}

/* ---- comparing ---- */

static void describe(const struct mma_case *c, char *text, size_t size)
{
    char statement[300];
    case_statement(c, statement, sizeof statement);
    snprintf(text, size, "%s idesc %08x, A: mode %u%s, B: mode %u%s", statement, case_descriptor(c), c->at_a.mode,
             c->at_a.mn_major ? " MN" : "", c->at_b.mode, c->at_b.mn_major ? " MN" : "");
}

/* One element in `step` of D; the others take what came out. */
static void compare(struct test *t, const struct mma_case *c, const struct images *x, bool whole, uint32_t step)
{
    char what[500];
    uint32_t wrong = 0;
    const uint32_t mask = c->half ? 0xffff : UINT32_MAX;
    describe(c, what, sizeof what);
    for (uint32_t i = 0; i < c->m; i++)
        for (uint32_t j = 0; j < c->n; j++) {
            uint32_t cta, lane, column;
            case_d_place(c, i, j, &cta, &lane, &column);
            const size_t at = cta * (size_t)CASE_CELLS + lane * 512 + column;
            const uint32_t got = x->after[at] & mask;
            x->cells[at] = x->after[at];
            if (step != 1 && rnd(t) % step != 0) continue;
            const uint32_t want = case_result(c, i, j);
            if (got != want && wrong++ < 2) FAIL(t, "%s: D[%u][%u] is 0x%x, not 0x%x", what, i, j, got, want);
            if (whole && case_whole_result(c, i, j) != got) FAIL(t, "%s: D[%u][%u] is 0x%x: not the whole number", what, i, j, got);
        }
    if (memcmp(x->cells, x->after, c->form.ctas * CASE_CELLS * 4) != 0) FAIL(t, "%s: changes cells outside of D", what);
}

static void run_case(struct test *t, struct mma_case *c, bool whole)
{
    char statement[300];
    struct sim sim;
    case_draw(t, c, whole);
    struct images x = images_of(t, c);
    case_statement(c, statement, sizeof statement);
    const bool wide = c->form.kind <= TCGEN05_F16;                                /* their reference is the slowest */
    const uint32_t products = c->m * c->n * c->a_k, most = wide ? 16000 : 200000;
    if (run_statement(t, &sim, c, &x, "sm_100a", statement)) compare(t, c, &x, whole, products / most + 1);
    else if (sim.module != NULL) FAIL(t, "%s", sim.report.text);
    if (sim.module != NULL) sim_close(&sim);
    release(&x);
}

/* ---- what there is ---- */

static const enum tcgen05_kind plain_kinds[] = { TCGEN05_TF32, TCGEN05_F16, TCGEN05_I8, TCGEN05_F8F6F4 };
static const struct { enum tcgen05_kind kind; uint8_t block; } scaled_kinds[] = {
    { TCGEN05_MXF8F6F4, 32 }, { TCGEN05_MXF4, 32 }, { TCGEN05_MXF4NVF4, 32 }, { TCGEN05_MXF4NVF4, 16 },
};

static struct mma_case *new_case(struct tcgen05_form form, uint32_t m, uint32_t n)
{
    struct mma_case *c = calloc(1, sizeof *c);
    if (c == NULL) abort();
    c->form = form, c->m = m, c->n = n;
    return c;
}

static void run_form(struct test *t, struct tcgen05_form form, uint32_t m, uint32_t n, bool whole)
{
    struct mma_case *c = new_case(form, m, n);
    run_case(t, c, whole);
    free(c);
}

/* N legal for all: i8 takes multiples of 16 (32 for pairs) from 32 on. */
static uint32_t draw_n(struct test *t, struct tcgen05_form form)
{
    const uint32_t step = (form.kind == TCGEN05_I8 ? 16u : 8u) * form.ctas;
    return rnd(t) % 8 == 0 ? 256 : step * (1 + (uint32_t)rnd_below(t, 96 / (int64_t)step));
}

static void plain_of(struct test *t, uint8_t ctas, bool sparse, int times)
{
    for (size_t k = 0; k < sizeof plain_kinds / sizeof plain_kinds[0]; k++)
        for (int i = 0; i < times; i++) {
            const struct tcgen05_form form = { .kind = plain_kinds[k], .ctas = ctas, .sparse = sparse, .a_in_tensor_memory = i % 3 == 2 };
            const uint32_t m = (i % 2 == 0 || sparse ? 128u : 64u) * ctas;
            run_form(t, form, m, draw_n(t, form), i % 4 < 2);
        }
}
static void plain_kinds_of_one_cta(struct test *t) { plain_of(t, 1, false, 12); }
static void sparse_kinds_of_one_cta(struct test *t) { plain_of(t, 1, true, 6); }

static void scaled_of(struct test *t, uint8_t ctas, bool sparse, int times)
{
    for (size_t k = 0; k < sizeof scaled_kinds / sizeof scaled_kinds[0]; k++)
        for (int i = 0; i < times; i++) {
            const struct tcgen05_form form = { .kind = scaled_kinds[k].kind, .ctas = ctas, .block = scaled_kinds[k].block,
                                               .sparse = sparse, .a_in_tensor_memory = i % 3 == 2 };
            run_form(t, form, 128u * ctas, draw_n(t, form), i % 4 == 1);
        }
}
static void scaled_kinds_of_one_cta(struct test *t) { scaled_of(t, 1, false, 10); }
static void sparse_scaled_kinds_of_one_cta(struct test *t) { scaled_of(t, 1, true, 5); }

static void weight_stationary(struct test *t)
{
    static const uint32_t rows[] = { 32, 64, 128 }, columns[] = { 64, 128, 256 };
    for (size_t k = 0; k < sizeof plain_kinds / sizeof plain_kinds[0]; k++)
        for (int i = 0; i < 12; i++) {
            const struct tcgen05_form form = { .kind = plain_kinds[k], .ctas = 1, .weight_stationary = true, .sparse = i % 4 == 3,
                                               .a_in_tensor_memory = i % 3 == 1 };
            run_form(t, form, rows[rnd_below(t, 3)], columns[rnd_below(t, form.sparse ? 2 : 3)], i % 2 == 0);
        }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(plain_kinds_of_one_cta), TEST(sparse_kinds_of_one_cta), TEST(scaled_kinds_of_one_cta),
        TEST(sparse_scaled_kinds_of_one_cta), TEST(weight_stationary),
    };
    return TEST_MAIN(argc, argv, cases);
}
