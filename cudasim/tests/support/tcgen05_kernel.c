#include "tcgen05_kernel.h"
#include "machine/run/schedules.h"

#include <stdlib.h>
#include <string.h>

/* p0: shared memory, p1: tensor memory, p2: operands, p3: tensor memory afterwards; of each CTA one behind the other.
 * The statement is executed by thread 0 of one CTA; %r12 is the shared address in units of 16 that descriptors are
 * relative to. */
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
    "mov.u32 %%r10, own; mov.u32 %%r11, image; and.b32 %%r12, %%r11, 0x3ffff; shr.u32 %%r12, %%r12, 4; "
    "cvt.u64.u32 %%rd30, %%r12;\n"
    "@!%%p1 bra A;\n"
    "tcgen05.alloc.cta_group::%u.sync.aligned.shared::cta.b32 [%%r10], 512;\n"
    "tcgen05.relinquish_alloc_permit.cta_group::%u.sync.aligned;\n"
    "A: @%%p2 mbarrier.init.shared.b64 [%%r10+8], 1;\n"
    "bar.sync 0; ld.shared.u32 %%r3, [%%r10];\n"
    "mul.wide.u32 %%rd1, %%r1, 16; add.u64 %%rd1, %%rd1, %%rd60; shl.b32 %%r4, %%r1, 4; add.u32 %%r4, %%r4, %%r11; "
    "mov.u32 %%r5, 0;\n"
    "C: ld.global.v4.b32 {%%r6, %%r7, %%r8, %%r9}, [%%rd1]; st.shared.v4.b32 [%%r4], {%%r6, %%r7, %%r8, %%r9};\n"
    "add.u64 %%rd1, %%rd1, 2048; add.u32 %%r4, %%r4, 2048; add.u32 %%r5, %%r5, 2048; setp.lt.u32 %%p3, %%r5, %u; "
    "@%%p3 bra C;\n"
    "fence.proxy.async;\n"
    "and.b32 %%r5, %%r2, 3; shl.b32 %%r5, %%r5, 21; add.u32 %%r5, %%r5, %%r3; mov.u32 %%r4, %%r5; mov.u32 %%r41, 0;\n"
    "mul.wide.u32 %%rd1, %%r1, 2048; add.u64 %%rd2, %%rd1, %%rd63; add.u64 %%rd1, %%rd1, %%rd61;\n"
    "ld.global.v2.b32 {%%r42, %%r43}, [%%rd62+56];\n"
    "F: setp.eq.u32 %%p7, %%r41, %%r42; setp.eq.and.u32 %%p7, %%r2, %%r43, %%p7; @%%p7 bra S;\n"
    "ld.global.v4.b32 {%%r20, %%r21, %%r22, %%r23}, [%%rd1]; ld.global.v4.b32 {%%r24, %%r25, %%r26, %%r27}, "
    "[%%rd1+16];\n"
    "tcgen05.st.sync.aligned.32x32b.x8.b32 [%%r4], {%%r20, %%r21, %%r22, %%r23, %%r24, %%r25, %%r26, %%r27};\n"
    "S: add.u64 %%rd1, %%rd1, 32; add.u32 %%r4, %%r4, 8; add.u32 %%r41, %%r41, 8; setp.lt.u32 %%p3, %%r41, 512; "
    "@%%p3 bra F;\n"
    "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;\n"
    "setp.eq.and.u32 %%p4, %%r40, %u, %%p2; @!%%p4 bra D;\n"
    "ld.global.u64 %%rd20, [%%rd62]; ld.global.u64 %%rd21, [%%rd62+8]; ld.global.u64 %%rd22, [%%rd62+16];\n"
    "add.u64 %%rd20, %%rd20, %%rd30; add.u64 %%rd21, %%rd21, %%rd30;\n"
    "ld.global.u32 %%r20, [%%rd62+24]; ld.global.u32 %%r21, [%%rd62+28]; ld.global.u32 %%r22, [%%rd62+32];\n"
    "ld.global.u32 %%r23, [%%rd62+36]; ld.global.u32 %%r24, [%%rd62+40]; ld.global.u32 %%r25, [%%rd62+44];\n"
    "ld.global.u32 %%r26, [%%rd62+48]; setp.ne.u32 %%p5, %%r26, 0;\n"
    "ld.global.v4.b32 {%%r30, %%r31, %%r32, %%r33}, [%%rd62+64]; ld.global.v4.b32 {%%r34, %%r35, %%r36, %%r37}, "
    "[%%rd62+80];\n";
static const char one_commit[] = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r10+8];\n";
static const char both_commit[] =
    "mov.b16 %h1, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
    "[%r10+8], %h1;\n";
static const char behind[] =
    "D: mbarrier.try_wait.parity.shared::cta.b64 %%p6, [%%r10+8], 0; @!%%p6 bra D;\n"
    "tcgen05.fence::after_thread_sync; mov.u32 %%r4, %%r5; mov.u32 %%r41, 0;\n"
    "R: tcgen05.ld.sync.aligned.32x32b.x8.b32 {%%r20, %%r21, %%r22, %%r23, %%r24, %%r25, %%r26, %%r27}, [%%r4];\n"
    "tcgen05.wait::ld.sync.aligned;\n"
    "st.global.v4.b32 [%%rd2], {%%r20, %%r21, %%r22, %%r23}; st.global.v4.b32 [%%rd2+16], {%%r24, %%r25, %%r26, "
    "%%r27};\n"
    "add.u64 %%rd2, %%rd2, 32; add.u32 %%r4, %%r4, 8; add.u32 %%r41, %%r41, 8; setp.lt.u32 %%p3, %%r41, 512; "
    "@%%p3 bra R;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "@%%p1 tcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%r3, 512;\nret;\n}\n";

struct images images_of(struct test *t, const struct mma_case *c)
{
    const size_t ctas = c->form.ctas;
    struct images x = { .shared = malloc(ctas * CASE_SHARED), .cells = malloc(ctas * CASE_CELLS * 4),
                        .after = malloc(ctas * CASE_CELLS * 4), .skip_column = UINT32_MAX, .device = "sm_100a" };
    if (x.shared == NULL || x.cells == NULL || x.after == NULL) abort();
    for (size_t i = 0; i < ctas * CASE_SHARED; i++) x.shared[i] = (uint8_t)rnd(t);
    for (size_t i = 0; i < ctas * CASE_CELLS; i++) x.cells[i] = (uint32_t)rnd(t);
    for (uint32_t cta = 0; cta < ctas; cta++)
        case_place(c, cta, x.shared + cta * CASE_SHARED, x.cells + cta * CASE_CELLS);
    return x;
}

void images_release(struct images *x) { free(x->shared), free(x->cells), free(x->after); }

/* The kernel with `statement` in its middle. */
static char *kernel_text(struct test *t, const struct mma_case *c, const char *device, const char *statement)
{
    char *text = malloc(16384);
    const uint32_t g = c->form.ctas, issuer = g == 2 ? (uint32_t)rnd_below(t, 2) : 0;
    if (text == NULL) abort();
    int used = snprintf(text, 16384, before, device, CASE_SHARED, g, g, CASE_SHARED, issuer);
    used += snprintf(text + used, 16384 - (size_t)used, "%s\n%s", statement, g == 2 ? both_commit : one_commit);
    snprintf(text + used, 16384 - (size_t)used, behind, g);
    return text;
}

static bool launch(struct sim *sim, const struct mma_case *c, const struct images *x)
{
    const uint32_t g = c->form.ctas;
    sim->machine.options.check_uninitialised = !c->half; /* the upper half of a D of f16 is not defined */
    struct { uint64_t a, b, mask; uint32_t word[10]; uint32_t lanes[8]; } p = {
        .a = case_matrix_descriptor(&c->at_a) ^ x->flip_a, .b = case_matrix_descriptor(&c->at_b), .mask = c->zero_mask,
        .word = { c->d, c->cells_a, case_descriptor(c) ^ x->flip, c->sfa, c->metadata, c->sfb, c->accumulate, 0,
                  x->skip_column, x->skip_warp },
    };
    memcpy(p.lanes, c->disabled, sizeof p.lanes);
    const uint64_t parameters[] = { sim_buffer(sim, x->shared, g * CASE_SHARED),
                                    sim_buffer(sim, x->cells, g * CASE_CELLS * 4), sim_buffer(sim, &p, sizeof p),
                                    sim_buffer(sim, NULL, g * CASE_CELLS * 4) };
    const struct launch launch = { .image = &sim->image, .function = ptx_function(sim->module, "k"),
                                   .grid = { g, 1, 1 },
                                   .block = { 128, 1, 1 }, .cluster = { g, 1, 1 }, .dynamic_shared = CASE_SHARED + 4096,
                                   .parameters = (const uint8_t *)parameters };
    const bool good = machine_run(&sim->machine, &launch, &sim->report);
    if (good) sim_read(sim, parameters[3], x->after, g * CASE_CELLS * 4);
    return good;
}

bool case_run(struct test *t, struct sim *sim, const struct mma_case *c, const struct images *x, const char *statement)
{
    char *text = kernel_text(t, c, x->device, statement);
    char *fence = x->without == NULL ? NULL : strstr(text, x->without);
    if (fence != NULL) memset(fence, ' ', strlen(x->without));
    const bool opened = sim_open(t, sim, x->device, text);
    free(text);
    if (!opened) return false;
    sim->machine.options.schedules = x->schedules;
    sim->machine.options.tensor_core = x->mode;
    return launch(sim, c, x);
}
