/* cp.async (PTX ISA 9.7.9.25.3): copies of 4, 8 or 16 bytes from global to shared memory, their groups, and arrivals at
 * mbarriers.
 *
 * The copies of one instruction are one operation; a thread's are done in any order.  A copy reads global memory when
 * it completes. */
#include "instructions/table/families.h"
#include "instructions/memory/memory.h"
#include "machine/async/agent.h"
#include "machine/async/async_copy.h"
#include "machine/async/mbarrier.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"
#include "machine/memory/access.h"

#include <stdlib.h>

enum { ALL = 1, NO_INCREMENT = 2 }; /* in->detail */
enum { MOST_BYTES = 16 };

/* ---- copies ---- */

struct copy {
    struct agent_operation operation;
    uint32_t lanes, bytes;
    struct copy_batch *batch[LANES];
    const uint8_t *from[LANES];
    uint32_t offset[LANES], valid[LANES]; /* in the CTA's shared memory; bytes that are read, the rest is zero */
};

static trap copy_step(struct agent_operation *operation, bool *done)
{
    const struct copy *o = (const struct copy *)operation;
    struct cta *cta = operation->cta;
    FOR_LANES(l, o->lanes)
    {
        uint8_t *to = cta->shared + o->offset[l];
        for (uint32_t i = 0; i < o->bytes; i += 4) {
            const uint32_t valid = o->valid[l] > i ? o->valid[l] - i : 0;
            uint32_t value = 0;
            if (valid >= 4) value = (uint32_t)load_bytes(o->from[l] + i, 4);
            else
                for (uint32_t j = 0; j < valid; j++) value |= (uint32_t)load_bytes(o->from[l] + i + j, 1) << 8 * j;
            store_bytes(to + i, 4, value);
        }
        async_written(cta, o->offset[l], o->bytes);
    }
    *done = true;
    return TRAP_NONE;
}

static void copy_complete(struct agent_operation *operation)
{
    const struct copy *o = (const struct copy *)operation;
    FOR_LANES(l, o->lanes) o->batch[l]->pending--;
}

static const struct agent_kind copy_kind = {
    .name = "cp.async", .engine = ENGINE_CP_ASYNC, .step = copy_step, .complete = copy_complete
};

/* Bytes that the lane's copy reads. */
static trap valid_bytes(struct warp *w, const struct insn *in, uint32_t lane, const struct operand *o, uint32_t bytes,
                        uint32_t *valid)
{
    *valid = bytes;
    if (o->kind == OPERAND_NONE) return TRAP_NONE;
    const uint64_t value = source_row(w, o)[lane];
    if (o->type == T_PRED) {
        if (((value & 1) != 0) != o->negated) *valid = 0;
        return TRAP_NONE;
    }
    if ((uint32_t)value > bytes)
        return warp_fault(w, in, lane, REPORT_ILLEGAL, "copies %u bytes and names %u of them as source", bytes,
                          (uint32_t)value);
    *valid = (uint32_t)value;
    return TRAP_NONE;
}

/* The source: aligned like the whole copy; what is not read need not be there. */
static trap find_source(struct warp *w, const struct insn *in, struct copy *o, uint32_t lane, uint64_t address)
{
    const uint32_t valid = o->valid[lane];
    if (valid == 0) return TRAP_NONE;
    if (address % o->bytes != 0)
        return warp_fault(w, in, lane, REPORT_MISALIGNED,
                          "reads %u bytes at address 0x%llx, which is no multiple of %u", valid,
                          (unsigned long long)address, o->bytes);
    struct access a = { .space = SPACE_GLOBAL, .bytes = valid == o->bytes ? valid : 1, .reads = true, .locates = true };
    a.address[lane] = address;
    trap t = memory_access(w, in, 1u << lane, &a);
    o->from[lane] = a.host[lane];
    if (t == TRAP_NONE && valid != o->bytes) {
        a.address[lane] = address + valid - 1;
        t = memory_access(w, in, 1u << lane, &a);
    }
    return t == TRAP_NONE ? async_reads_global(o->batch[lane]->token, address, valid) : t;
}

static trap prepare_copies(struct warp *w, const struct insn *in, uint32_t lanes, struct copy *o)
{
    struct access to = { .space = SPACE_SHARED, .bytes = o->bytes, .writes = true, .locates = true };
    uint64_t from[LANES];
    address_lanes(w, &in->operand[0], lanes, to.address);
    address_lanes(w, &in->operand[1], lanes, from);
    trap t = memory_access(w, in, lanes, &to);
    if (t != TRAP_NONE) return t;
    FOR_LANES(l, lanes)
    {
        t = valid_bytes(w, in, l, &in->operand[3], o->bytes, &o->valid[l]);
        if (t != TRAP_NONE) return t;
        o->offset[l] = to.offset[l];
        o->batch[l] = async_copy_join(w, in, l);
        if (o->batch[l] == NULL) return warp_fault(w, in, l, REPORT_RESOURCES, "finds no host memory for its copy");
        t = find_source(w, in, o, l, from[l]);
        if (t == TRAP_NONE) t = async_writes(o->batch[l]->token, w->cta, to.offset[l], o->bytes);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* cp.async [a], [b], size, valid   shared a = global b, size bytes; those behind `valid` are zero; with a predicate:
 * all of them */
static trap op_copy(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct copy *o = calloc(1, sizeof *o);
    if (o == NULL)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_RESOURCES, "finds no host memory for its copy");
    o->operation = (struct agent_operation){ .kind = &copy_kind,
                                             .cluster = w->cta->cluster,
                                             .cta = w->cta,
                                             .warp = w,
                                             .in = in,
                                             .lane = (uint32_t)__builtin_ctz(lanes),
                                             .signals = WAIT_ASYNC_GROUP };
    o->lanes = lanes;
    o->bytes = (uint32_t)in->detail;
    const trap t = prepare_copies(w, in, lanes, o);
    if (t != TRAP_NONE) {
        free(o);
        return t;
    }
    agent_start(&o->operation, 0, AGENT_MOST);
    return TRAP_NONE;
}

/* ---- groups ---- */

/* cp.async.commit_group   the thread's copies since the last one are a group */
static trap op_commit(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)in;
    async_copy_commit(w, lanes);
    return TRAP_NONE;
}

/* cp.async.wait_group n   until at most the last n groups of the thread are under way; wait_all: until none of its
 * copies is */
static trap op_wait(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool all = in->detail == ALL;
    const uint64_t most = all ? 0 : source(w, in, 0)[__builtin_ctz(lanes)];
    if (!async_copy_done(w, lanes, most, all)) return warp_wait(w, WAIT_ASYNC_GROUP, most, 0);
    async_copy_take(w, lanes, most, all);
    return TRAP_NONE;
}

/* ---- arrivals ---- */

struct copy_arrival {
    struct agent_operation operation;
    uint32_t lanes;
    struct cta *cta[LANES];
    uint32_t offset[LANES];
    uint64_t mark[LANES];
};

static bool arrival_may_complete(const struct agent_operation *operation)
{
    const struct copy_arrival *o = (const struct copy_arrival *)operation;
    FOR_LANES(l, o->lanes) if (!async_copy_marked_done(operation->warp, l, o->mark[l])) return false;
    return true;
}

static trap arrival_step(struct agent_operation *operation, bool *done)
{
    const struct copy_arrival *o = (const struct copy_arrival *)operation;
    struct warp *w = operation->warp;
    FOR_LANES(l, o->lanes)
    {
        async_copy_publish(w, l, o->mark[l],
                           mbarrier_object(o->cta[l], o->offset[l], mbarrier_parity(o->cta[l], o->offset[l])));
        const trap t = mbarrier_arrive_async(w, operation->in, l, o->cta[l], o->offset[l], NULL);
        if (t != TRAP_NONE) return t;
    }
    *done = true;
    return TRAP_NONE;
}

static void arrival_complete(struct agent_operation *operation) { (void)operation; }

static const struct agent_kind arrival_kind = { .name = "cp.async.mbarrier.arrive",
                                                .engine = ENGINE_CP_ASYNC,
                                                .may_complete = arrival_may_complete,
                                                .step = arrival_step,
                                                .complete = arrival_complete };

/* cp.async.mbarrier.arrive [a]   one arrival when all copies of the thread so far have completed; without .noinc the
 * phase under way waits for one arrival more */
static trap op_arrive(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct copy_arrival *o = calloc(1, sizeof *o);
    if (o == NULL)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_RESOURCES,
                          "finds no host memory for its arrival");
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], lanes, address);
    trap t = TRAP_NONE;
    FOR_LANES(l, lanes)
    {
        t = mbarrier_target(w, in, l, (enum space)in->space, true, address[l], &o->cta[l], &o->offset[l]);
        if (t == TRAP_NONE && in->detail == NO_INCREMENT)
            t = mbarrier_access_generic(w, in, l, o->cta[l], o->offset[l]);
        if (t == TRAP_NONE && in->detail != NO_INCREMENT) t = mbarrier_add_pending(w, in, l, o->cta[l], o->offset[l]);
        if (t != TRAP_NONE) {
            free(o);
            return t;
        }
        o->mark[l] = async_copy_mark(w, l);
    }
    const uint32_t last = 31 - (uint32_t)__builtin_clz(lanes);
    o->operation = (struct agent_operation){ .kind = &arrival_kind,
                                             .cluster = w->cta->cluster,
                                             .cta = w->cta,
                                             .warp = w,
                                             .in = in,
                                             .lane = last,
                                             .signals = WAIT_MBARRIER,
                                             .object = o->cta[last]->shared_base | o->offset[last] };
    o->lanes = lanes;
    agent_start(&o->operation, 0, AGENT_MOST);
    return TRAP_NONE;
}

/* ---- rows ---- */

static const char *prepare_copy(struct module *module, struct insn *in)
{
    const uint64_t bytes = (uint64_t)in->operand[2].value;
    if (bytes != 4 && bytes != 8 && bytes != MOST_BYTES) return "the size is 4, 8 or 16";
    if (insn_has(in, ".cg") && bytes != MOST_BYTES) return "with .cg the size is 16";
    const struct operand *valid = &in->operand[3];
    if (valid->kind == OPERAND_CONSTANT && valid->type != T_PRED && (uint64_t)valid->value > bytes)
        return "the source is larger than the copy";
    if (valid->kind != OPERAND_NONE && valid->type == T_PRED && module->version < 75)
        return "a predicate here needs PTX 7.5";
    const bool hints = insn_has(in, ".L2::cache_hint") || insn_has(in, ".L2::64B") || insn_has(in, ".L2::128B")
                       || insn_has(in, ".L2::256B");
    if (hints && module->version < 74) return "hints for the cache need PTX 7.4";
    in->detail = bytes;
    return NULL;
}

static const char *prepare_wait_all(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = ALL;
    return NULL;
}

static const char *prepare_arrive(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = insn_has(in, ".noinc") ? NO_INCREMENT : 0;
    return NULL;
}

#define COPY     "cp.async(.ca|.cg)(.shared|.shared::cta).global"
#define PREFETCH "{.L2::64B|.L2::128B|.L2::256B}"
#define COPIES(hint, operands) \
    { \
        COPY hint PREFETCH, NULL, operands, 70, "sm_80+", 0, op_copy, prepare_copy, "9.7.9.25.3.1 cp.async" \
    }

static const struct row rows[] = {
    COPIES("", "a a i:u32 ?s:u32"),
    COPIES("", "a a i:u32 p"),
    COPIES(".L2::cache_hint", "a a i:u32 ?s:u32 s:b64"),
    COPIES(".L2::cache_hint", "a a i:u32 p s:b64"),
    { "cp.async.commit_group", NULL, "", 70, "sm_80+", 0, op_commit, NULL, "9.7.9.25.3.2 cp.async.commit_group" },
    { "cp.async.wait_group", NULL, "i:u32", 70, "sm_80+", 0, op_wait, NULL, "9.7.9.25.3.3 cp.async.wait_group" },
    { "cp.async.wait_all", NULL, "", 70, "sm_80+", 0, op_wait, prepare_wait_all, "9.7.9.25.3.3 cp.async.wait_all" },
    { "cp.async.mbarrier.arrive{.noinc}{.shared|.shared::cta}.b64", NULL, "a", 70, "sm_80+", 0, op_arrive,
      prepare_arrive,
      "9.7.13.15.15 cp.async.mbarrier.arrive" },
};

const struct family family_cp_async = FAMILY("asynchronous copies without bulk", rows);
