/* Bulk copies (PTX ISA 9.7.9.25.4): cp.async.bulk, cp.reduce.async.bulk, their prefetch, bulk groups. */
#include "bulk_reduction.h"
#include "instructions/table/families.h"
#include "machine/async/tma.h"
#include "machine/async/bulk_group.h"
#include "machine/async/mbarrier.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 128 }; /* bytes that move together */

/* ---- the operands of one lane ---- */

struct bulk {
    struct warp *warp;
    const struct insn *in;
    uint32_t lane;
    uint64_t to, from;
    uint32_t size;
};

static struct bulk operands(struct warp *w, const struct insn *in, uint32_t lane)
{
    uint64_t to[LANES], from[LANES];
    address_lanes(w, &in->operand[0], 1u << lane, to);
    address_lanes(w, &in->operand[1], 1u << lane, from);
    return (struct bulk){
        .warp = w, .in = in, .lane = lane, .to = to[lane], .from = from[lane], .size = (uint32_t)source(w, in, 2)[lane]
    };
}

static trap check_alignment(const struct bulk *b)
{
    if (b->size % 16 != 0)
        return warp_fault(b->warp, b->in, b->lane, REPORT_ILLEGAL, "moves %u bytes; the size is a multiple of 16",
                          b->size);
    if (b->to % 16 != 0 || b->from % 16 != 0)
        return warp_fault(b->warp, b->in, b->lane, REPORT_MISALIGNED, "%s address 0x%llx, which is no multiple of 16",
                          b->to % 16 != 0 ? "writes to" : "reads from",
                          (unsigned long long)(b->to % 16 != 0 ? b->to : b->from));
    return TRAP_NONE;
}

/* The mbarrier is in the CTA whose shared memory is written. */
static trap find_barrier(const struct bulk *b, uint32_t operand, const struct cta *to, struct tma_barrier *barrier)
{
    *barrier = (struct tma_barrier){ .of_pair = false };
    const trap t = tma_find_barrier(b->warp, b->in, b->lane, &b->in->operand[operand], to, barrier);
    barrier->bytes = b->size;
    return t;
}

/* A copy of no bytes has completed at once. */
static trap complete_nothing(const struct bulk *b, const struct tma_barrier *barrier)
{
    return mbarrier_complete_tx(b->warp, b->in, b->lane, barrier->cta, barrier->offset, 0, NULL);
}

/* Rows of up to PIECE bytes, one behind the other, all of one length: a load fills its rows. */
static bool make_rows(const struct bulk *b, uint32_t shared, uint64_t address, uint8_t *host, struct tma_plan *plan)
{
    uint32_t piece = PIECE;
    while (b->size % piece != 0) piece -= 16;
    const uint32_t count = b->size / piece;
    *plan = (struct tma_plan){ .warp = b->warp,
                               .in = b->in,
                               .lane = b->lane,
                               .row_bytes = piece,
                               .count = count,
                               .row = malloc(count * sizeof *plan->row),
                               .byte_mask = UINT16_MAX,
                               .layout = { .type = TENSOR_MAP_U8, .rank = 1 } };
    for (uint32_t i = 0; plan->row != NULL && i < count; i++) {
        const uint32_t at = i * piece;
        plan->row[i] = (struct tma_row){
            .shared = shared + at, .valid = piece, .address = address + at, .host = host == NULL ? NULL : host + at
        };
    }
    return plan->row != NULL;
}

static trap no_memory(const struct bulk *b)
{
    return warp_fault(b->warp, b->in, b->lane, REPORT_RESOURCES, "finds no host memory for its operation");
}

/* ---- global -> shared ---- */

enum { MULTICAST_OPERAND = 4 };

static trap load(const struct bulk *b)
{
    struct cta *to;
    uint32_t offset;
    uint8_t *host;
    struct tma_barrier barrier;
    trap t = check_alignment(b);
    if (t == TRAP_NONE)
        t = tma_shared(b->warp, b->in, b->lane, b->to, b->size, b->in->space == SPACE_SHARED_CLUSTER, &to, &offset);
    if (t == TRAP_NONE && b->size != 0)
        t = tma_global(b->warp, b->in, b->lane, b->from, b->size, 0, false, &host);
    if (t == TRAP_NONE) t = find_barrier(b, 3, to, &barrier);
    if (t == TRAP_NONE && b->size == 0) return complete_nothing(b, &barrier);
    if (t != TRAP_NONE) return t;
    struct tma_plan plan;
    if (!make_rows(b, offset, b->from, host, &plan)) return no_memory(b);
    t = tma_load_each(&plan, to, barrier, &b->in->operand[MULTICAST_OPERAND]);
    free(plan.row);
    return t;
}

/* cp.async.bulk.shared.global [to], [from], size, [mbar]   copies; complete_tx of size on mbar; to each CTA of a
 * mask */
static trap op_load(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) {
        const struct bulk b = operands(w, in, l);
        if (t == TRAP_NONE) t = load(&b);
    }
    return t;
}

/* ---- shared -> shared of another CTA ---- */

static trap exchange(const struct bulk *b)
{
    struct cta *to, *from;
    uint32_t to_offset, from_offset;
    struct tma_barrier barrier;
    trap t = check_alignment(b);
    if (t == TRAP_NONE) t = tma_shared(b->warp, b->in, b->lane, b->to, b->size, true, &to, &to_offset);
    if (t == TRAP_NONE) t = tma_shared(b->warp, b->in, b->lane, b->from, b->size, false, &from, &from_offset);
    if (t == TRAP_NONE) t = find_barrier(b, 3, to, &barrier);
    if (t == TRAP_NONE && b->size == 0) return complete_nothing(b, &barrier);
    if (t != TRAP_NONE) return t;
    if (to == from && b->in->detail == BULK_COPY)
        return warp_fault(b->warp, b->in, b->lane, REPORT_ILLEGAL,
                          "copies to the CTA's own shared memory; the destination has to be that of another CTA of the "
                          "cluster");
    struct tma_plan plan;
    if (!make_rows(b, from_offset, 0, NULL, &plan)) return no_memory(b);
    plan.combine = bulk_combine_of(b->in, &plan.kind);
    t = tma_exchange(&plan, from, to, (int64_t)to_offset - from_offset, barrier);
    free(plan.row);
    return t;
}

/* cp.async.bulk.shared::cluster.shared::cta [to], [from], size, [mbar]   copies or reduces into another CTA's shared
 * memory */
static trap op_exchange(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) {
        const struct bulk b = operands(w, in, l);
        if (t == TRAP_NONE) t = exchange(&b);
    }
    return t;
}

/* ---- shared -> global ---- */

enum { BYTE_MASK_OPERAND = 4 };

static trap store(const struct bulk *b)
{
    struct cta *from;
    uint32_t offset;
    uint8_t *host;
    trap t = check_alignment(b);
    if (t == TRAP_NONE) t = tma_shared(b->warp, b->in, b->lane, b->from, b->size, false, &from, &offset);
    if (t != TRAP_NONE || b->size == 0) return t;
    t = tma_global(b->warp, b->in, b->lane, b->to, b->size, 0, true, &host);
    if (t != TRAP_NONE) return t;
    struct tma_plan plan;
    if (!make_rows(b, offset, b->to, host, &plan)) return no_memory(b);
    if (b->in->operands > BYTE_MASK_OPERAND && b->in->operand[BYTE_MASK_OPERAND].kind != OPERAND_NONE)
        plan.byte_mask = (uint16_t)source(b->warp, b->in, BYTE_MASK_OPERAND)[b->lane];
    plan.combine = bulk_combine_of(b->in, &plan.kind);
    t = tma_store(&plan, from);
    free(plan.row);
    return t;
}

/* cp.async.bulk.global.shared::cta [to], [from], size   copies (of each 16 bytes those of a mask) or reduces; in the
 * bulk group */
static trap op_store(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes) {
        const struct bulk b = operands(w, in, l);
        if (t == TRAP_NONE) t = store(&b);
    }
    return t;
}

/* cp.async.bulk.prefetch.L2.global [from], size   no effect; what it names must be there */
static trap op_prefetch(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t from[LANES];
    uint8_t *host;
    address_lanes(w, &in->operand[0], lanes, from);
    FOR_LANES(l, lanes) {
        const uint32_t size = (uint32_t)source(w, in, 1)[l];
        if (size % 16 != 0 || from[l] % 16 != 0)
            return warp_fault(w, in, l, REPORT_MISALIGNED,
                              "names %u bytes at 0x%llx; address and size are multiples of 16", size,
                              (unsigned long long)from[l]);
        const trap t = tma_global(w, in, l, from[l], size, 0, false, &host);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* ---- groups ---- */

/* cp.async.bulk.commit_group   the stores of each lane since the last one are a group */
static trap op_commit(struct warp *w, const struct insn *in, uint32_t lanes) { return tma_commit_group(w, in, lanes); }

/* cp.async.bulk.wait_group{.read} N   waits until all but the newest N groups have completed (.read: have been read) */
static trap op_wait(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return tma_wait_group(w, lanes, (uint32_t)in->operand[0].value, in->detail != 0);
}

/* ---- rows ---- */

static const char *prepare_copy(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = BULK_COPY;
    return insn_has(in, ".multicast::cluster") && in->choice[0] != 0 && in->choice[2] != 0
               ? ".multicast::cluster stands twice"
               : NULL;
}

static const char *prepare_reduction(struct module *module, struct insn *in)
{
    (void)module;
    bulk_prepare_reduction(in);
    return NULL;
}

static const char *prepare_wait(struct module *module, struct insn *in)
{
    (void)module;
    if (in->operand[0].value < 0 || in->operand[0].value > UINT16_MAX) return "the number of groups is 0 to 65535";
    in->detail = insn_has(in, ".read");
    return NULL;
}

#define SIGNAL         ".mbarrier::complete_tx::bytes"
#define HINT           "{.L2::cache_hint}"
#define MULTICAST      "{.multicast::cluster}" HINT "{.multicast::cluster}"
#define COPY_SECTION   "9.7.9.25.4.1 cp.async.bulk"
#define REDUCE_SECTION "9.7.9.25.4.2 cp.reduce.async.bulk"
#define TO_CLUSTER(operation, types) \
    { \
        "cp.reduce.async.bulk.shared::cluster.shared::cta" SIGNAL operation ".$1", types, "a a s:u32 a", 80, "sm_90+", \
            0, op_exchange, prepare_reduction, REDUCE_SECTION \
    }
#define TO_GLOBAL(operation, types) \
    { \
        "cp.reduce.async.bulk.global.shared::cta.bulk_group" HINT operation ".$1", types, \
            "a a s:u32 (.L2::cache_hint)s:b64", 80, "sm_90+", 0, op_store, prepare_reduction, REDUCE_SECTION \
    }

static const struct row rows[] = {
    { "cp.async.bulk.shared::cta.global" SIGNAL HINT, NULL,
      "a a s:u32 a (.multicast::cluster)s:b16 (.L2::cache_hint)s:b64", 86, "sm_90+", 0, op_load, prepare_copy,
      COPY_SECTION },
    { "cp.async.bulk.shared::cluster.global" SIGNAL MULTICAST, NULL,
      "a a s:u32 a (.multicast::cluster)s:b16 (.L2::cache_hint)s:b64", 80, "sm_90+", 0, op_load, prepare_copy,
      COPY_SECTION },
    { "cp.async.bulk.shared::cluster.shared::cta" SIGNAL, NULL, "a a s:u32 a", 80, "sm_90+", 0, op_exchange,
      prepare_copy, COPY_SECTION },
    { "cp.async.bulk.global.shared::cta.bulk_group" HINT, NULL, "a a s:u32 (.L2::cache_hint)s:b64", 80, "sm_90+", 0,
      op_store, prepare_copy, COPY_SECTION },
    { "cp.async.bulk.global.shared::cta.bulk_group" HINT ".cp_mask", NULL, "a a s:u32 (.L2::cache_hint)s:b64 s:b16", 86,
      "sm_100+", 0, op_store, prepare_copy, COPY_SECTION },
    TO_CLUSTER(".add", "u32 s32 u64"),
    TO_CLUSTER("(.min|.max)", "u32 s32"),
    TO_CLUSTER("(.inc|.dec)", "u32"),
    TO_CLUSTER("(.and|.or|.xor)", "b32"),
    TO_GLOBAL(".add", "u32 s32 u64 f32 f64"),
    TO_GLOBAL(".add.noftz", "f16 bf16"),
    TO_GLOBAL("(.min|.max)", "u32 s32 u64 s64 f16 bf16"),
    TO_GLOBAL("(.inc|.dec)", "u32"),
    TO_GLOBAL("(.and|.or|.xor)", "b32 b64"),
    { "cp.async.bulk.prefetch.L2.global" HINT, NULL, "a s:u32 (.L2::cache_hint)s:b64", 80, "sm_90+", 0, op_prefetch,
      NULL, "9.7.9.25.4.3 cp.async.bulk.prefetch" },
    { "cp.async.bulk.commit_group", NULL, "", 80, "sm_90+", 0, op_commit, NULL,
      "9.7.9.27.2.1 cp.async.bulk.commit_group" },
    { "cp.async.bulk.wait_group{.read}", NULL, "i:u32", 80, "sm_90+", 0, op_wait, prepare_wait,
      "9.7.9.27.2.2 cp.async.bulk.wait_group" },
};

const struct family family_bulk_copy = FAMILY("bulk copies", rows);
