/* Bulk copies in all directions and sizes, and their reductions of every operation and type. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"

enum { BYTES = 4096, THREADS = 128 };

/* As in the tensor family: %r1 shared memory, poisoned; %r2 mbarrier, %r3 thread, %p1 not the first. */
static const char begin[] =
    ".reg .b32 %r<16>; .reg .b64 %l<16>; .reg .pred %p<6>; .reg .b16 %h<4>;\n"
    ".shared .align 1024 .b8 s[8192]; .shared .align 8 .b64 bar;\n"
    "mov.u32 %r1, s; mov.u32 %r2, bar; mov.u32 %r3, %tid.x; setp.ne.u32 %p1, %r3, 0; ld.param.u64 %l0, [in]; "
    "ld.param.u64 %l1, [out];\n"
    "@%p1 bra READY; mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; "
    "READY: shl.b32 %r4, %r3, 2;\n"
    "POISON: add.u32 %r5, %r1, %r4; st.shared.u32 [%r5], 0xa5a5a5a5; add.u32 %r4, %r4, 512; "
    "setp.lt.u32 %p2, %r4, 8192; @%p2 bra POISON;\n"
    "fence.proxy.async; barrier.cluster.arrive; barrier.cluster.wait;\n";
static const char wait[] = "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;\n";
static const char drain[] =
    "shl.b32 %r4, %r3, 2; DRAIN: add.u32 %r5, %r1, %r4; cvt.u64.u32 %l4, %r4; add.u64 %l5, %l1, %l4; "
    "ld.shared.u32 %r6, [%r5]; st.global.u32 [%l5], %r6; add.u32 %r4, %r4, 512; setp.lt.u32 %p2, %r4, 8192; "
    "@%p2 bra DRAIN;\n";
#define LOAD "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"

static void add(struct calibration *c, struct calibration_case *one, const char *name, const char *body)
{
    one->name = name, one->body = body, one->block[0] = THREADS;
    calibration_add(c, one);
}

static void add_copies(struct calibration *c, uint32_t size)
{
    static const char *const loads[] = { LOAD, "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes" };
    char name[96], body[4096];
    for (int i = 0; i < 2; i++) {
        snprintf(
            body, sizeof body,
            "%s@%%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u;\n"
            "%s [%%r1+%u], [%%l0+%u], %u, [%%r2];\n%s%s",
            begin, size, loads[i], size % 112 / 16 * 16, size % 80 / 16 * 16, size, wait, drain);
        snprintf(name, sizeof name, "bulk load of %u bytes to %s", size, i == 0 ? "cluster" : "cta");
        add(c, &(struct calibration_case){ .form = loads[i], .input_bytes = 2 * BYTES,
                                           .output_bytes = 8192 }, name, body);
    }
    snprintf(body, sizeof body,
             "%s@%%p1 bra END; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %d; " LOAD
             " [%%r1], [%%l0], %d, [%%r2];\n%s"
             "cp.async.bulk.global.shared::cta.bulk_group [%%l1+%u], [%%r1+%u], %u; cp.async.bulk.commit_group; "
             "cp.async.bulk.wait_group 0; END:",
             begin, BYTES, BYTES, wait, size % 80 / 16 * 16, size % 112 / 16 * 16, size);
    snprintf(name, sizeof name, "bulk store of %u bytes", size);
    add(c,
        &(struct calibration_case){
            .form = "cp.async.bulk.global.shared::cta.bulk_group", .input_bytes = BYTES, .output_bytes = 8192 },
        name, body);
}

/* Each CTA of a cluster of two sends 512 bytes to the other one. */
static void add_exchange(struct calibration *c)
{
    char body[4096];
    snprintf(
        body, sizeof body,
        "%smov.u32 %%r8, %%cluster_ctarank; xor.b32 %%r9, %%r8, 1; mul.wide.u32 %%l6, %%r8, 512; "
        "add.u64 %%l0, %%l0, %%l6; @%%p1 bra WAIT; "
        "mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], 512; " LOAD " [%%r1], [%%l0], 512, [%%r2];\n%s"
        "barrier.cluster.arrive; barrier.cluster.wait; @%%p1 bra WAIT2; mbarrier.arrive.expect_tx.shared.b64 _, "
        "[%%r2], 512; mapa.shared::cluster.u32 %%r10, %%r1, %%r9; mapa.shared::cluster.u32 %%r11, %%r2, %%r9;\n"
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%%r10+1024], [%%r1], 512, "
        "[%%r11];\n"
        "WAIT2: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 1; @!%%p2 bra WAIT2;\n"
        "mul.wide.u32 %%l6, %%r8, 8192; add.u64 %%l1, %%l1, %%l6;\n%sbarrier.cluster.arrive; barrier.cluster.wait;",
        begin, wait, drain);
    add(c,
        &(struct calibration_case){ .form = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
                                    .before = ".explicitcluster .reqnctapercluster 2, 1, 1",
                                    .grid = { 2 },
                                    .input_bytes = BYTES,
                                    .output_bytes = 2 * 8192 },
        "bulk copy to the other CTA", body);
}

/* ---- reductions ---- */

struct reduction {
    const char *operation, *type;
    uint32_t width;
    bool to_shared;
};
static const struct reduction reductions[] = {
    { ".add", "u32", 4, true },  { ".add", "s32", 4, true },  { ".add", "u64", 8, true },
      { ".min", "u32", 4, true },
    { ".max", "u32", 4, true },  { ".min", "s32", 4, true },  { ".max", "s32", 4, true },
      { ".inc", "u32", 4, true },
    { ".dec", "u32", 4, true },  { ".and", "b32", 4, true },  { ".or", "b32", 4, true },
      { ".xor", "b32", 4, true },
    { ".add", "f32", 4, false }, { ".add", "f64", 8, false }, { ".add.noftz", "f16", 2, false },
      { ".add.noftz", "bf16", 2, false },
    { ".min", "f16", 2, false }, { ".max", "f16", 2, false }, { ".min", "bf16", 2, false },
      { ".max", "bf16", 2, false },
    { ".min", "u64", 8, false }, { ".max", "u64", 8, false }, { ".min", "s64", 8, false },
      { ".max", "s64", 8, false },
    { ".and", "b64", 8, false }, { ".or", "b64", 8, false },  { ".xor", "b64", 8, false },
};

/* Random bits; of floats every fourth is zero, subnormal, infinite or NaN more often than chance would have it. */
static void fill(const struct calibration_case *c, uint8_t *input)
{
    const struct reduction *r = c->context;
    uint64_t state = calibration_hash(5, c->name, strlen(c->name));
    for (size_t i = 0; i < c->input_bytes; i += r->width) {
        uint64_t value = calibration_random(&state);
        const bool special = (value >> 60 & 3) == 0;
        if (strcmp(r->type, "f16") == 0)
            value = special ? value & ((value & 256) != 0 ? 0x83ff : 0xfdff) : (value & 0x8fff) | 0x3000;
        if (strcmp(r->type, "bf16") == 0)
            value = special ? value & ((value & 256) != 0 ? 0x807f : 0xffff) : (value & 0x83ff) | 0x3c00;
        if (strcmp(r->type, "f32") == 0)
            value =
                special ? value & ((value & 256) != 0 ? 0x80ffffff : 0xffffffff) : (value & 0x83ffffff) | 0x3c000000;
        if (r->operation[1] == 'i' || r->operation[1] == 'd') value = special ? value : value & 7;
        memcpy(input + i, &value, r->width);
    }
}

static void add_reduction(struct calibration *c, const struct reduction *r)
{
    char name[96], form[160], body[6144];
    snprintf(form, sizeof form, "cp.reduce.async.bulk.global.shared::cta.bulk_group%s.%s", r->operation, r->type);
    snprintf(body, sizeof body,
             "%sshl.b32 %%r4, %%r3, 2; OLD: cvt.u64.u32 %%l4, %%r4; add.u64 %%l5, %%l0, %%l4; "
             "add.u64 %%l6, %%l1, %%l4; ld.global.u32 %%r6, [%%l5+%d]; st.global.u32 [%%l6], %%r6; "
             "add.u32 %%r4, %%r4, 512; setp.lt.u32 %%p2, %%r4, %d; @%%p2 bra OLD; "
             "fence.proxy.async; bar.sync 0;\n@%%p1 bra END; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %d; " LOAD
             " [%%r1], [%%l0], %d, [%%r2];\n%s%s [%%l1], [%%r1], %d; cp.async.bulk.commit_group; "
             "cp.async.bulk.wait_group 0; END:",
             begin, BYTES, BYTES, BYTES, BYTES, wait, form, BYTES);
    snprintf(name, sizeof name, "bulk reduction%s.%s", r->operation, r->type);
    add(c, &(struct calibration_case){ .form = form, .input_bytes = 2 * BYTES, .output_bytes = BYTES, .fill = fill,
                                       .context = r },
        name, body);
    if (!r->to_shared) return;
    /* CTA 1 reduces its bytes into those of CTA 0 */
    snprintf(form, sizeof form, "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes%s.%s",
             r->operation, r->type);
    snprintf(body, sizeof body,
             "%smov.u32 %%r8, %%cluster_ctarank; mul.wide.u32 %%l6, %%r8, %d; add.u64 %%l0, %%l0, %%l6; "
             "@%%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %d; " LOAD
             " [%%r1], [%%l0], %d, [%%r2];\n%s"
             "barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %%p3, %%r8, 0; @%%p1 bra NEXT; @%%p3 bra ZERO; "
             "mapa.shared::cluster.u32 %%r10, %%r1, 0; mapa.shared::cluster.u32 %%r11, %%r2, 0; "
             "%s [%%r10], [%%r1], %d, [%%r11]; bra NEXT;\n"
             "ZERO: mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %d; NEXT: @!%%p3 bra LAST;\n"
             "WAIT2: mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 1; @!%%p2 bra WAIT2;\n"
             "%sLAST: barrier.cluster.arrive; barrier.cluster.wait;",
             begin, BYTES, BYTES, BYTES, wait, form, BYTES, BYTES, drain);
    snprintf(name, sizeof name, "bulk reduction%s.%s to another CTA", r->operation, r->type);
    add(c,
        &(struct calibration_case){ .form = form,
                                    .before = ".explicitcluster .reqnctapercluster 2, 1, 1",
                                    .grid = { 2 },
                                    .input_bytes = 2 * BYTES,
                                    .output_bytes = 8192,
                                    .fill = fill,
                                    .context = r },
        name, body);
}

void calibration_family_bulk(struct calibration *c)
{
    for (uint32_t size = 16; size <= BYTES / 2; size = size < 128 ? size + 16 : size * 3 / 2 / 16 * 16)
        add_copies(c, size);
    add_copies(c, 0);
    add_exchange(c);
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) add_reduction(c, &reductions[i]);
}
