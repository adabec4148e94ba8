/* Tensor copies: random tensors and boxes of every type, rank and swizzle, out of bounds on all sides; reductions;
 * multicast. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box.h"
#include "families.h"

enum { THREADS = 128 };

/* ---- texts ---- */

/* %r1 shared memory, %r2 mbarrier, %r3 thread, %p1 not the first, %l0 in, %l1 out, %l2 the map; the mbarrier is
 * initialised. */
static void begin(FILE *out)
{
    fprintf(out,
            ".reg .b32 %%r<16>; .reg .b64 %%l<16>; .reg .pred %%p<6>; .reg .b16 %%h<4>;\n"
            ".shared .align 1024 .b8 s[%d]; .shared .align 8 .b64 bar;\n"
            "mov.u32 %%r1, s; mov.u32 %%r2, bar; mov.u32 %%r3, %%tid.x; setp.ne.u32 %%p1, %%r3, 0; "
            "ld.param.u64 %%l0, [in];\n"
            "ld.param.u64 %%l1, [out]; mov.b64 %%l2, map0; cvta.param.u64 %%l2, %%l2;\n"
            "@%%p1 bra READY; mbarrier.init.shared.b64 [%%r2], 1; fence.mbarrier_init.release.cluster; READY:\n",
            BOX_SHARED_BYTES);
}

/* A loop of all threads over `bytes` bytes, a word each. */
static void put_loop(FILE *out, const char *label, uint32_t bytes, const char *body)
{
    fprintf(out,
            "shl.b32 %%r4, %%r3, 2; %s: add.u32 %%r5, %%r1, %%r4; cvt.u64.u32 %%l4, %%r4; %s\n"
            "add.u32 %%r4, %%r4, %d; setp.lt.u32 %%p2, %%r4, %u; @%%p2 bra %s;\n",
            label, body, THREADS * 4, bytes, label);
}

static void put_wait(FILE *out)
{
    fputs("WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra WAIT;\n", out);
}

static void add(struct calibration *c, struct calibration_case *one, FILE *out, char **body, const char *name)
{
    if (fclose(out) != 0) abort();
    one->body = *body, one->name = name, one->block[0] = THREADS, one->maps = 1;
    calibration_add(c, one);
    free(*body);
}

static FILE *text(char **body, size_t *size)
{
    *body = NULL;
    FILE *out = open_memstream(body, size);
    if (out == NULL) abort();
    return out;
}

/* ---- loads: shared memory is poisoned, loaded, written out ---- */

static void add_load(struct calibration *c, const struct box *b, const char *destination, uint32_t number)
{
    char *body, name[160], form[160];
    size_t size;
    FILE *out = text(&body, &size);
    begin(out);
    put_loop(out, "POISON", BOX_SHARED_BYTES, "st.shared.u32 [%r5], 0xa5a5a5a5;");
    fprintf(out,
            "fence.proxy.async; bar.sync 0; @%%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u;\n"
            "cp.async.bulk.tensor.%ud.shared::%s.global.tile.mbarrier::complete_tx::bytes [%%r1+%u], [%%l2, ",
            b->rows * b->row_bytes, b->map.rank, destination, 128 * (number % 9));
    box_put_coordinates(out, b);
    fputs("], [%r2];\n", out);
    put_wait(out);
    put_loop(out, "DRAIN", BOX_SHARED_BYTES,
             "add.u64 %l5, %l1, %l4; ld.shared.u32 %r6, [%r5]; st.global.u32 [%l5], %r6;");
    snprintf(form, sizeof form, "cp.async.bulk.tensor.%ud.shared::%s.global.tile.mbarrier::complete_tx::bytes",
             b->map.rank, destination);
    snprintf(name, sizeof name, "tensor load %ud %s swizzle %s%s to %s, box %u", b->map.rank,
             box_types[b->map.data_type].name, box_swizzles[b->map.swizzle], b->map.fill ? " NaN" : "", destination,
             number);
    struct calibration_case one = { .form = form, .input_bytes = BOX_TENSOR_BYTES, .output_bytes = BOX_SHARED_BYTES };
    one.map[0] = b->map;
    add(c, &one, out, &body, name);
}

/* ---- stores and reductions: the output is the tensor ---- */

/* The first part of the input goes to the tensor, the rest to shared memory.  Floats of moderate size, small
 * counters. */
static void fill(const struct calibration_case *c, uint8_t *input)
{
    uint64_t state = calibration_hash(3, c->name, strlen(c->name));
    const uint32_t bytes = (uint32_t)c->data[0];
    for (size_t i = 0; i < c->input_bytes; i += bytes) {
        uint64_t value = calibration_random(&state);
        switch (c->data[1]) {
        case 'h': value = (value & 0x83ff) | 0x3800 | (value >> 20 & 0x0400); break; /* f16 */
        case 'b': value = (value & 0x80ff) | 0x3f00; break;                          /* bf16 */
        case 'f': value = (value & 0x81ffffff) | 0x3e000000; break;                  /* f32 */
        case 'c': value &= 7; break;                                                 /* inc, dec */
        default: break;
        }
        memcpy(input + i, &value, bytes);
    }
}

static void add_store(struct calibration *c, const struct box *b, const char *operation, char numbers, uint32_t number)
{
    char *body, name[160], form[160];
    size_t size;
    FILE *out = text(&body, &size);
    begin(out);
    put_loop(out, "OLD", BOX_TENSOR_BYTES,
             "add.u64 %l5, %l0, %l4; add.u64 %l6, %l1, %l4; ld.global.u32 %r6, [%l5]; st.global.u32 [%l6], %r6;");
    fprintf(out, "add.u64 %%l0, %%l0, %d;\n", BOX_TENSOR_BYTES);
    put_loop(out, "NEW", BOX_SHARED_BYTES,
             "add.u64 %l5, %l0, %l4; ld.global.u32 %r6, [%l5]; st.shared.u32 [%r5], %r6;");
    fprintf(
        out,
        "fence.proxy.async; bar.sync 0; @%%p1 bra "
        "END;\ncp%s.async.bulk.tensor.%ud.global.shared::cta%s.tile.bulk_group [%%l2, ",
        operation[0] == '\0' ? "" : ".reduce", b->map.rank, operation);
    box_put_coordinates(out, b);
    fprintf(out, "], [%%r1+%u];\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nEND:", 128 * (number % 9));
    snprintf(form, sizeof form, "cp%s.async.bulk.tensor.%ud.global.shared::cta%s.tile.bulk_group",
             operation[0] == '\0' ? "" : ".reduce", b->map.rank, operation);
    snprintf(name, sizeof name, "tensor %s %ud %s swizzle %s, box %u", operation[0] == '\0' ? "store" : operation + 1,
             b->map.rank, box_types[b->map.data_type].name, box_swizzles[b->map.swizzle], number);
    struct calibration_case one = { .form = form,
                                    .input_bytes = BOX_TENSOR_BYTES + BOX_SHARED_BYTES,
                                    .output_bytes = BOX_TENSOR_BYTES,
                                    .fill = fill,
                                    .data = { box_types[b->map.data_type].bytes, (uint64_t)numbers } };
    one.map[0] = b->map;
    add(c, &one, out, &body, name);
}

static bool is_reduced(uint32_t operation, uint32_t type)
{
    const char *name = box_types[type].name;
    switch (operation) {
    case 0: return type == 2 || type == 3 || type == 4 || type == 6 || type == 7 || type == 9;
    case 1:
    case 2: return (type >= 2 && type <= 5) || type == 6 || type == 9;
    case 3:
    case 4: return strcmp(name, "u32") == 0;
    default: return type >= 2 && type <= 4;               /* and, or, xor: not of s64 */
    }
}

static void add_reductions(struct calibration *c, struct box_draw *d)
{
    static const char *const operations[] = { ".add", ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor" };
    uint32_t number = 0;
    for (uint32_t operation = 0; operation < 8; operation++)
        for (uint32_t type = 0; type < BOX_TYPES; type++) {
            if (!is_reduced(operation, type)) continue;
            const char numbers = operation == 3 || operation == 4 ? 'c'
                                 : type == 6                      ? 'h'
                                 : type == 9                      ? 'b'
                                 : type == 7                      ? 'f'
                                                                  : 'u';
            const struct box b = box_random(d, type, number % 4, 1 + number % 5, true);
            add_store(c, &b, operations[operation], numbers, number++);
        }
}

/* ---- multicast: each CTA loads a slice for all, and writes out what it has ---- */

static void add_multicast(struct calibration *c, uint32_t ctas)
{
    char *body, name[96], before[64];
    size_t size;
    FILE *out = text(&body, &size);
    begin(out);
    put_loop(out, "POISON", BOX_SHARED_BYTES, "st.shared.u32 [%r5], 0xa5a5a5a5;");
    fprintf(
        out,
        "fence.proxy.async; @%%p1 bra ARMED; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u; "
        "ARMED: barrier.cluster.arrive; barrier.cluster.wait;\nmov.u32 %%r8, %%cluster_ctarank; "
        "shl.b32 %%r9, %%r8, 10; add.u32 %%r9, %%r9, %%r1; shl.b32 %%r10, %%r8, 3; "
        "mov.u16 %%h1, %u; @%%p1 bra WAIT;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%%r9], "
        "[%%l2, {0, %%r10}], "
        "[%%r2], %%h1;\n",
        ctas * 1024, (1u << ctas) - 1);
    put_wait(out);
    fprintf(out, "mul.wide.u32 %%l6, %%r8, %d; add.u64 %%l1, %%l1, %%l6;\n", BOX_SHARED_BYTES);
    put_loop(out, "DRAIN", BOX_SHARED_BYTES,
             "add.u64 %l5, %l1, %l4; ld.shared.u32 %r6, [%r5]; st.global.u32 [%l5], %r6;");
    fputs("barrier.cluster.arrive; barrier.cluster.wait;", out);
    snprintf(name, sizeof name, "tensor load multicast to %u CTAs", ctas);
    snprintf(before, sizeof before, ".explicitcluster .reqnctapercluster %u, 1, 1", ctas);
    struct calibration_case one = {
        .form = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
        .before = before,
        .grid = { ctas },
        .input_bytes = BOX_TENSOR_BYTES,
        .output_bytes = ctas * BOX_SHARED_BYTES
    };
    one.map[0] = (struct calibration_map){ .data_type = 6,
                                           .rank = 2,
                                           .size = { 64, 8 * ctas - 3 },
                                           .stride = { 160 },
                                           .box = { 64, 8 },
                                           .element_stride = { 1, 1 },
                                           .swizzle = 3 };
    add(c, &one, out, &body, name);
}

void calibration_family_tensor(struct calibration *c)
{
    struct box_draw d = { 20 };
    uint32_t number = 0;
    for (uint32_t type = 0; type < BOX_TYPES; type++)
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++)
            for (uint32_t rank = 1; rank <= 5; rank++)
                for (uint32_t i = 0; i < 3; i++, number++) {
                    if (strcmp(box_types[type].name, "tf32.ftz") == 0) continue;
                    const struct box b = box_random(&d, type, swizzle, rank, false);
                    add_load(c, &b, number % 2 == 0 ? "cluster" : "cta", number);
                }
    for (uint32_t type = 0; type < BOX_TYPES; type++)
        for (uint32_t swizzle = 0; swizzle < 4; swizzle++)
            for (uint32_t rank = 1; rank <= 5; rank++, number++) {
                if (type >= 10) continue;
                const struct box b = box_random(&d, type, swizzle, rank, true);
                add_store(c, &b, "", 'u', number);
            }
    add_reductions(c, &d);
    for (uint32_t ctas = 2; ctas <= 4; ctas *= 2) add_multicast(c, ctas);
}
