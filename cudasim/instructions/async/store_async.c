/* st.async (PTX ISA 9.7.9.12), red.async (9.7.13.7): stores and reductions in a cluster's shared memory that complete
 * on an mbarrier.
 *
 * They are performed in the generic proxy; the completion releases.  The forms for global memory, from sm_100 on, are
 * refused. */
#include "instructions/table/families.h"
#include "instructions/memory/memory.h"
#include "instructions/memory/reduction.h"
#include "machine/async/agent.h"
#include "machine/async/mbarrier.h"
#include "machine/core/random.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

#include <stdlib.h>

enum { MOST_ELEMENTS = 4, STORE = REDUCE_CAS + 1 }; /* in->detail: a reduction, or STORE */

struct store {
    struct agent_operation operation;
    uint32_t lanes;          /* that have not stored yet */
    uint32_t element, bytes; /* bytes of an element, of all */
    struct async_token *token[LANES];
    struct cta *cta[LANES];
    uint32_t offset[LANES], barrier[LANES];
    uint64_t value[LANES][MOST_ELEMENTS];
};

static void put(const struct store *o, uint32_t lane)
{
    const struct insn *in = o->operation.in;
    uint8_t *to = o->cta[lane]->shared + o->offset[lane];
    const struct reducer reducer = { .operation = (enum reduction)in->detail, .type = (enum ptx_type)in->type[0] };
    for (uint32_t i = 0; i * o->element < o->bytes; i++)
        if (in->detail == STORE) store_bytes(to + i * o->element, o->element, o->value[lane][i]);
        else reduction_update(reducer, to, o->value[lane][i], 0);
    async_written(o->cta[lane], o->offset[lane], o->bytes);
}

/* Lanes complete in any order: some of them at a step. */
static trap store_step(struct agent_operation *operation, bool *done)
{
    struct store *o = (struct store *)operation;
    struct cluster *c = operation->cluster;
    uint32_t now = o->lanes;
    if (c->grid->machine->options.schedule == SCHEDULE_RANDOM)
        now &= (uint32_t)cluster_random(c) | (o->lanes & -o->lanes);
    FOR_LANES(l, now)
    {
        put(o, l);
        const trap t =
            mbarrier_complete_tx(operation->warp, operation->in, l, o->cta[l], o->barrier[l], o->bytes, o->token[l]);
        if (t != TRAP_NONE) return t;
    }
    o->lanes &= ~now;
    *done = o->lanes == 0;
    return TRAP_NONE;
}

/* Every mbarrier was signalled by a step. */
static void store_complete(struct agent_operation *operation) { (void)operation; }

static void store_drop(struct agent_operation *operation)
{
    struct store *o = (struct store *)operation;
    for (uint32_t l = 0; l < LANES; l++) async_end(o->token[l]);
}

static const struct agent_kind store_kind = {
    .name = "st.async", .engine = ENGINE_OTHER, .step = store_step, .complete = store_complete, .drop = store_drop
};

static trap prepare_lane(struct warp *w, const struct insn *in, struct store *o, uint32_t lane, uint64_t barrier)
{
    struct cta *cta;
    trap t = mbarrier_target(w, in, lane, (enum space)in->space, false, barrier, &cta, &o->barrier[lane]);
    if (t == TRAP_NONE) t = mbarrier_access_generic(w, in, lane, cta, o->barrier[lane]);
    if (t != TRAP_NONE) return t;
    if (o->cta[lane] == NULL)
        return warp_fault(w, in, lane, REPORT_ILLEGAL, "stores to an address that is not in shared memory");
    if (cta != o->cta[lane])
        return warp_fault(w, in, lane, REPORT_ILLEGAL,
                          "stores to CTA rank %u and signals an mbarrier of CTA rank %u; both must be the same",
                          o->cta[lane]->rank, cta->rank);
    o->token[lane] = async_begin(w, in, 1u << lane, PROXY_GENERIC);
    if (o->token[lane] == NULL)
        return warp_fault(w, in, lane, REPORT_RESOURCES, "finds no host memory for its operation");
    return in->detail == STORE ? async_writes(o->token[lane], cta, o->offset[lane], o->bytes)
                               : async_adds(o->token[lane], cta, o->offset[lane], o->bytes);
}

static trap prepare_store(struct warp *w, const struct insn *in, uint32_t lanes, struct store *o)
{
    struct access to = { .space = (enum space)in->space, .bytes = o->bytes, .writes = true, .locates = true };
    uint64_t barrier[LANES];
    address_lanes(w, &in->operand[0], lanes, to.address);
    address_lanes(w, &in->operand[2], lanes, barrier);
    if (w->cta->cluster->ctas == 1)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_ILLEGAL,
                          "needs a cluster of more than one CTA");
    trap t = memory_access(w, in, lanes, &to);
    const struct operand *b = &in->operand[1];
    FOR_LANES(l, lanes)
    {
        if (t != TRAP_NONE) return t;
        o->cta[l] = to.owner[l];
        o->offset[l] = to.offset[l];
        for (uint32_t i = 0; i < in->vector; i++)
            o->value[l][i] = source_row(w, in->vector == 1 ? b : &b->element[i])[l] & in->mask;
        t = prepare_lane(w, in, o, l, barrier[l]);
    }
    return t;
}

/* st.async [a], b, [m]    a = b, then m's tx-count -= bytes
 * red.async.op [a], b, [m]    a = op(a, b) at once, then the same */
static trap op_store(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t first = (uint32_t)__builtin_ctz(lanes);
    struct store *o = calloc(1, sizeof *o);
    if (o == NULL) return warp_fault(w, in, first, REPORT_RESOURCES, "finds no host memory for its operation");
    o->element = type_bytes((enum ptx_type)in->type[0]);
    o->bytes = o->element * in->vector;
    o->lanes = lanes;
    o->operation = (struct agent_operation){
        .kind = &store_kind, .cluster = w->cta->cluster, .cta = w->cta, .warp = w, .in = in, .lane = first
    };
    const trap t = prepare_store(w, in, lanes, o);
    if (t != TRAP_NONE) {
        store_drop(&o->operation);
        free(o);
        return t;
    }
    o->operation.signals = WAIT_MBARRIER;
    o->operation.object = o->cta[first]->shared_base | o->barrier[first];
    agent_start(&o->operation, 0, AGENT_MOST);
    return TRAP_NONE;
}

static const char *prepare_st(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = STORE;
    return type_bytes((enum ptx_type)in->type[0]) * in->vector > 16 ? "a store has at most 16 bytes" : NULL;
}

static const char *prepare_red(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = reduction_of(in);
    return NULL;
}

#define SIGNAL ".mbarrier::complete_tx::bytes"
#define RED(operation, types) \
    { \
        "red.async.relaxed.cluster{.shared::cluster}" SIGNAL operation ".$1", types, "a s:1 a", 81, "sm_90+", 0, \
            op_store, prepare_red, "9.7.13.7 red.async" \
    }

static const struct row rows[] = {
    { "st.async{.weak}{.shared::cluster}" SIGNAL "{.v2|.v4}.$1", "b32 b64 u32 u64 s32 s64 f32 f64", "a s:1* a", 81,
      "sm_90+", 0, op_store, prepare_st, "9.7.9.12 st.async" },
    RED("(.inc|.dec)", "u32"),
    RED("(.min|.max)", "u32 s32"),
    RED(".add", "u32 s32 u64 s64"),
    RED("(.and|.or|.xor)", "b32"),
};

const struct family family_store_async = FAMILY("asynchronous stores", rows);
