/* mbarrier (PTX ISA 9.7.13.15): init, inval, expect_tx, complete_tx, arrive, arrive_drop, test_wait, try_wait,
 * pending_count.
 *
 * Lanes act one after the other, in their order.  Phases and counts: machine/mbarrier.c. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/async/mbarrier.h"
#include "machine/core/random.h"
#include "machine/core/wait.h"
#include "machine/memory/access.h"

/* in->detail */
enum { DROP = 1, NO_COMPLETE = 2, EXPECT = 4, OWN_CTA = 8, RELAXED = 16, PARITY = 32, TRY = 64 };

struct place {
    struct cta *cta;
    uint32_t offset;
};

static trap locate(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, struct place *place)
{
    return mbarrier_target(w, in, lane, (enum space)in->space, (in->detail & OWN_CTA) != 0, address, &place->cta,
                           &place->offset);
}

/* ---- the object ---- */

/* mbarrier.init [a], count   phase 0; count arrivals pending in it and expected in the next */
static trap op_init(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], lanes, address);
    const uint64_t *count = source(w, in, 1);
    FOR_LANES(l, lanes)
    {
        struct place at;
        trap t = locate(w, in, l, address[l], &at);
        if (t == TRAP_NONE) t = mbarrier_init(w, in, l, at.cta, at.offset, (uint32_t)count[l]);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* mbarrier.inval [a]   its memory may be used for something else */
static trap op_inval(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], lanes, address);
    FOR_LANES(l, lanes)
    {
        struct place at;
        trap t = locate(w, in, l, address[l], &at);
        if (t == TRAP_NONE) t = mbarrier_inval(w, in, l, at.cta, at.offset);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* mbarrier.expect_tx [a], bytes   the phase ends only when so many bytes more have been completed */
static trap op_expect_tx(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], lanes, address);
    const uint64_t *bytes = source(w, in, 1);
    FOR_LANES(l, lanes)
    {
        struct place at;
        trap t = locate(w, in, l, address[l], &at);
        if (t == TRAP_NONE) t = mbarrier_expect_tx(w, in, l, at.cta, at.offset, (uint32_t)bytes[l]);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* mbarrier.complete_tx [a], bytes   as if a copy of so many bytes had completed */
static trap op_complete_tx(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], lanes, address);
    const uint64_t *bytes = source(w, in, 1);
    FOR_LANES(l, lanes)
    {
        struct place at;
        trap t = locate(w, in, l, address[l], &at);
        if (t == TRAP_NONE) t = mbarrier_access_generic(w, in, l, at.cta, at.offset);
        if (t == TRAP_NONE) t = mbarrier_complete_tx(w, in, l, at.cta, at.offset, (uint32_t)bytes[l], NULL);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* ---- arrivals ---- */

/* mbarrier.arrive state, [a], count   state before; pending arrivals -= count.  .expect_tx: expects bytes first,
 * arrives once. arrive_drop: the later phases expect count arrivals fewer */
static trap op_arrive(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t address[LANES];
    address_lanes(w, &in->operand[1], lanes, address);
    const uint64_t *number = in->operand[2].kind == OPERAND_NONE ? NULL : source(w, in, 2);
    uint64_t *state = destination(w, in, 0);
    const bool expects = (in->detail & EXPECT) != 0;
    FOR_LANES(l, lanes)
    {
        struct place at;
        const struct arrival arrival = { .count = expects || number == NULL ? 1 : (uint32_t)number[l],
                                         .expect = expects ? (uint32_t)number[l] : 0,
                                         .drop = (in->detail & DROP) != 0,
                                         .no_complete = (in->detail & NO_COMPLETE) != 0,
                                         .relaxed = (in->detail & RELAXED) != 0 };
        trap t = locate(w, in, l, address[l], &at);
        if (t == TRAP_NONE) t = mbarrier_arrive(w, in, l, at.cta, at.offset, arrival, &state[l]);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* mbarrier.pending_count count, state   the arrivals that were pending before the arrival which gave the state */
static trap op_pending_count(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t *state = source(w, in, 1);
    uint64_t *count = destination(w, in, 0);
    FOR_LANES(l, lanes)
    {
        uint32_t pending;
        const trap t = mbarrier_pending_count(w, in, l, state[l], &pending);
        if (t != TRAP_NONE) return t;
        count[l] = pending;
    }
    return TRAP_NONE;
}

/* ---- waiting ---- */

struct look {
    uint32_t complete;       /* lanes whose phase has ended */
    bool again;              /* another lane looks not for the first time */
    uint64_t object, parity; /* what the last such lane waits for: to the report of a deadlock */
};

static trap look_at(struct warp *w, const struct insn *in, uint32_t lanes, struct look *look)
{
    uint64_t address[LANES];
    address_lanes(w, &in->operand[1], lanes, address);
    const uint64_t *value = source(w, in, 2);
    FOR_LANES(l, lanes)
    {
        struct place at;
        const struct awaited awaited = { .by_parity = (in->detail & PARITY) != 0,
                                         .relaxed = (in->detail & RELAXED) != 0,
                                         .value = value[l] };
        enum found found = FOUND_COMPLETE;
        trap t = locate(w, in, l, address[l], &at);
        if (t == TRAP_NONE) t = mbarrier_test(w, in, l, at.cta, at.offset, awaited, &found);
        if (t != TRAP_NONE) return t;
        look->complete |= (uint32_t)(found == FOUND_COMPLETE) << l;
        if (found == FOUND_COMPLETE) continue;
        look->again |= found == FOUND_INCOMPLETE_AGAIN;
        look->object = at.cta->shared_base | at.offset;
        look->parity = mbarrier_parity(at.cta, at.offset);
    }
    return TRAP_NONE;
}

/* When a wait ends though the phase has not: the manual leaves the time to the system, so that a hint is only its upper
 * bound here. Half of the waits are short: the program has to look again.  test_wait does not wait; but a thread that
 * does nothing but look may run slowly, and then time passes faster. */
static uint64_t time_limit(struct warp *w, const struct insn *in, uint32_t lanes)
{
    enum { LONGEST = 20000, SHORTEST = 64 };
    struct cluster *c = w->cta->cluster;
    uint64_t limit = (in->detail & TRY) != 0 ? LONGEST : SHORTEST;
    if (c->grid->machine->options.schedule == SCHEDULE_RANDOM && (cluster_random(c) & 1) == 0)
        limit = 1 + cluster_random(c) % SHORTEST;
    if (in->operands > 3 && in->operand[3].kind != OPERAND_NONE) {
        const uint64_t hint = 1 + (source(w, in, 3)[__builtin_ctz(lanes)] & UINT32_MAX);
        if (hint < limit) limit = hint;
    }
    return c->now + limit;
}

/* mbarrier.test_wait d, [a], state          d = whether the phase has ended; .parity: the phase of this parity, current
 * or last
 * mbarrier.try_wait d, [a], state, limit    the same; suspends until the phase ends or some time has passed */
static trap op_wait(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct group *g = w->group;
    struct look look = { .complete = 0 };
    const trap t = look_at(w, in, lanes, &look);
    if (t != TRAP_NONE) return t;
    if (look.complete == 0 && ((in->detail & TRY) != 0 || look.again)) {
        if (g->stage == 0) g->ticket = time_limit(w, in, lanes);
        g->stage = 1;
        if (w->cta->cluster->now < g->ticket) {
            warp_wait(w, WAIT_MBARRIER, look.object, look.parity);
            g->wait.until = g->ticket;
            return TRAP_WAIT;
        }
    }
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = look.complete >> l & 1;
    return TRAP_NONE;
}

/* ---- rows ---- */

static const char *prepare(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = (insn_has(in, ".arrive_drop") ? DROP : 0u) | (insn_has(in, ".noComplete") ? NO_COMPLETE : 0u) |
                 (insn_has(in, ".expect_tx") ? EXPECT : 0u) | (insn_has(in, ".parity") ? PARITY : 0u) |
                 (insn_has(in, ".try_wait") ? TRY : 0u) | (in->semantics == ORDER_RELAXED ? RELAXED : 0u);
    return NULL;
}

/* Forms whose address must be in the own CTA's shared memory. */
static const char *prepare_own(struct module *module, struct insn *in)
{
    prepare(module, in);
    in->detail |= OWN_CTA;
    return NULL;
}

/* A state is given for objects of the own CTA only; another CTA's takes a sink. */
static const char *prepare_arrive(struct module *module, struct insn *in)
{
    prepare(module, in);
    const bool remote = in->space == SPACE_SHARED_CLUSTER, sink = in->operand[0].kind == OPERAND_SINK;
    if (remote && !sink) return "with .shared::cluster a sink '_' stands in the place of the state";
    if (remote && (module->version < 80 || module->sm < 90))
        return ".shared::cluster needs PTX 8.0 and sm_90 or later here";
    if (in->scope == SCOPE_CLUSTER && module->sm < 90) return "the scope .cluster needs sm_90 or later";
    if (!remote && (in->space == SPACE_SHARED || !sink)) in->detail |= OWN_CTA;
    return NULL;
}

static const char *prepare_count(struct module *module, struct insn *in)
{
    if (in->operand[2].kind != OPERAND_NONE && (module->version < 78 || module->sm < 90))
        return "a count without .noComplete needs PTX 7.8 and sm_90 or later";
    return prepare_arrive(module, in);
}

#define CTA     "{.shared|.shared::cta}"
#define ANY     "{.shared|.shared::cta|.shared::cluster}"
#define RELEASE "(.release.cta|.release.cluster)"
#define RELAX   "(.relaxed.cta|.relaxed.cluster)"
#define ACQUIRE "(.acquire.cta|.acquire.cluster)"

#define ARRIVAL(words, operands, since, targets, prepare, section) \
    { "mbarrier" words ".b64", NULL, "d_:b64 a " operands, since, targets, 0, op_arrive, prepare, section }

/* Without an order: .release.cta */
#define ARRIVE(verb, section) \
    ARRIVAL(verb ANY, "?s:u32", 70, "sm_80+", prepare_count, section), \
    ARRIVAL(verb RELEASE ANY, "?s:u32", 80, "sm_80+", prepare_count, section), \
    ARRIVAL(verb RELAX ANY, "?s:u32", 86, "sm_90+", prepare_count, section), \
    ARRIVAL(verb ".expect_tx" ANY, "s:u32", 80, "sm_90+", prepare_arrive, section), \
    ARRIVAL(verb ".expect_tx" RELEASE ANY, "s:u32", 80, "sm_90+", prepare_arrive, section), \
    ARRIVAL(verb ".expect_tx" RELAX ANY, "s:u32", 86, "sm_90+", prepare_arrive, section), \
    ARRIVAL(verb ".noComplete" CTA, "s:u32", 70, "sm_80+", prepare_own, section), \
    ARRIVAL(verb ".noComplete.release.cta" CTA, "s:u32", 80, "sm_80+", prepare_own, section)

/* Without an order: .acquire.cta */
#define LOOK(words, operands, since, targets, name) \
    { \
        "mbarrier" words ".b64", NULL, "d:pred a " operands, since, targets, 0, op_wait, prepare_own, \
            "9.7.13.15.16 mbarrier" name \
    }
#define WAIT(verb, name, operands, since, targets) \
    LOOK(verb CTA, operands, since, targets, name), LOOK(verb ACQUIRE CTA, operands, 80, targets, name), \
    LOOK(verb RELAX CTA, operands, 86, "sm_90+", name)

static const struct row rows[] = {
    { "mbarrier.init" CTA ".b64", NULL, "a s:u32", 70, "sm_80+", 0, op_init, prepare_own, "9.7.13.15.9 mbarrier.init" },
    { "mbarrier.inval" CTA ".b64", NULL, "a", 70, "sm_80+", 0, op_inval, prepare_own, "9.7.13.15.10 mbarrier.inval" },
    { "mbarrier.expect_tx{.relaxed.cta|.relaxed.cluster}" ANY ".b64", NULL, "a s:u32", 80, "sm_90+", 0, op_expect_tx,
      prepare, "9.7.13.15.11 mbarrier.expect_tx" },
    { "mbarrier.complete_tx{.relaxed.cta|.relaxed.cluster}" ANY ".b64", NULL, "a s:u32", 80, "sm_90+", 0,
      op_complete_tx, prepare, "9.7.13.15.12 mbarrier.complete_tx" },
    ARRIVE(".arrive", "9.7.13.15.13 mbarrier.arrive"),
    ARRIVE(".arrive_drop", "9.7.13.15.14 mbarrier.arrive_drop"),
    WAIT(".test_wait", ".test_wait", "s:b64", 70, "sm_80+"),
    WAIT(".test_wait.parity", ".test_wait", "s:u32", 71, "sm_80+"),
    WAIT(".try_wait", ".try_wait", "s:b64 ?s:u32", 78, "sm_90+"),
    WAIT(".try_wait.parity", ".try_wait", "s:u32 ?s:u32", 78, "sm_90+"),
    { "mbarrier.pending_count.b64", NULL, "d:u32 s:b64", 70, "sm_80+", 0, op_pending_count, NULL,
      "9.7.13.15.17 mbarrier.pending_count" },
};

const struct family family_mbarrier = FAMILY("mbarrier objects", rows);
