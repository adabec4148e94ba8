/* Barriers among threads (PTX ISA 9.7.13.1-3): bar and barrier, bar.warp.sync, barrier.cluster. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/check/checks.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"
#include "machine/run/warp.h"

enum { BARRIERS = 16 };
enum { RED_NONE, RED_POPC, RED_AND, RED_OR };

/* ---- barriers of a CTA ---- */

/* Two objects in turn: who arrives for the next turn does not order those who have yet to leave this one. */
static uint64_t barrier_object(const struct cta *cta, uint32_t number, uint64_t turn)
{
    return sync_object(SYNC_BARRIER, cta, number << 1 | (turn & 1));
}

/* Operand i must be the same in all lanes: barriers count warps, or lanes that come together. */
static trap same_value(struct warp *w, const struct insn *in, uint32_t lanes, int i, uint32_t *value)
{
    const uint64_t *row = source(w, in, i);
    const uint32_t first = (uint32_t)__builtin_ctz(lanes);
    *value = (uint32_t)row[first];
    FOR_LANES(l, lanes)
    if ((uint32_t)row[l] != *value)
        return warp_fault(w, in, l, REPORT_BARRIER, "names barrier or count %u in this lane and %u in lane %u",
                          (uint32_t)row[l], *value, first);
    return TRAP_NONE;
}

static void complete(struct cta *cta, struct cta_barrier *b)
{
    b->last_reduction = b->reduction;
    b->arrived = b->expected = b->reduction = b->votes = 0;
    b->in_use = false;
    b->turn++;
    cluster_event(cta->cluster);
}

/* Without a count a barrier waits for all threads that are left. */
static bool is_complete(const struct cta *cta, const struct cta_barrier *b)
{
    return b->in_use && b->arrived >= (b->expected != 0 ? b->expected : cta->live_threads);
}

static trap arrive(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t number, uint32_t expected)
{
    struct cta *cta = w->cta;
    struct cta_barrier *b = &cta->barrier[number];
    if (expected % LANES != 0)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_BARRIER,
                          "expects %u threads; the count is a multiple of the warp's size", expected);
    if (b->in_use && b->expected != expected)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_BARRIER,
                          "expects %u threads at barrier %u, where others expect %u (0: all)", expected, number,
                          b->expected);
    b->in_use = true;
    b->expected = expected;
    /* whole warps count with their missing lanes, as the counts are multiples of 32 */
    const bool whole = lanes == w->live;
    b->arrived += expected != 0 && whole ? LANES : (uint32_t)__builtin_popcount(lanes);
    if (expected != 0 && b->arrived > expected)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_BARRIER,
                          "brings %u threads to barrier %u, which expects %u", b->arrived, number, expected);
    checks_release(w, lanes, barrier_object(cta, number, b->turn));
    return TRAP_NONE;
}

static trap operands(struct warp *w, const struct insn *in, uint32_t lanes, int first, uint32_t *number,
                     uint32_t *expected)
{
    *expected = 0;
    trap t = same_value(w, in, lanes, first, number);
    if (t == TRAP_NONE && in->operand[first + 1].kind != OPERAND_NONE) {
        t = same_value(w, in, lanes, first + 1, expected);
        if (t == TRAP_NONE && *expected == 0)
            return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_BARRIER, "expects 0 threads");
    }
    if (t == TRAP_NONE && *number >= BARRIERS)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_BARRIER, "names barrier %u; there are 0 to 15",
                          *number);
    return t;
}

/* bar.sync a, b   waits until b threads (all, without b) have arrived at barrier a */
static trap sync(struct warp *w, const struct insn *in, uint32_t lanes, int first)
{
    struct group *g = w->group;
    uint32_t number, expected;
    trap t = operands(w, in, lanes, first, &number, &expected);
    if (t != TRAP_NONE) return t;
    struct cta_barrier *b = &w->cta->barrier[number];
    if (g->stage == 0) {
        t = arrive(w, in, lanes, number, expected);
        if (t != TRAP_NONE) return t;
        g->stage = 1;
        g->ticket = b->turn;
    }
    if (b->turn == g->ticket && is_complete(w->cta, b)) complete(w->cta, b);
    if (b->turn == g->ticket) return warp_wait(w, WAIT_BARRIER, number, expected);
    checks_acquire(w, lanes, barrier_object(w->cta, number, g->ticket));
    return TRAP_NONE;
}

static trap op_bar_sync(struct warp *w, const struct insn *in, uint32_t lanes) { return sync(w, in, lanes, 0); }

/* bar.arrive a, b   arrives and goes on */
static trap op_bar_arrive(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t number, expected;
    trap t = operands(w, in, lanes, 0, &number, &expected);
    if (t != TRAP_NONE) return t;
    t = arrive(w, in, lanes, number, expected);
    if (t != TRAP_NONE) return t;
    struct cta_barrier *b = &w->cta->barrier[number];
    if (is_complete(w->cta, b)) complete(w->cta, b);
    return TRAP_NONE;
}

/* bar.red.popc d, a, b, p   sync, and d = how many threads had p; .and, .or: a predicate */
static trap op_bar_red(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct group *g = w->group;
    uint32_t number, expected;
    const bool fresh = g->stage == 0;
    trap t = operands(w, in, lanes, 1, &number, &expected);
    if (t != TRAP_NONE) return t;
    struct cta_barrier *b = &w->cta->barrier[number];
    if (fresh) {
        b->reduction += (uint32_t)__builtin_popcount(predicate_lanes(w, &in->operand[3], lanes));
        b->votes += (uint32_t)__builtin_popcount(lanes);
        b->last_votes = b->votes;
    }
    t = sync(w, in, lanes, 1);
    if (t != TRAP_NONE) return t;
    const uint64_t count = b->last_reduction;
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes)
        d[l] = in->detail == RED_POPC ? count : in->detail == RED_AND ? count == b->last_votes : count != 0;
    return TRAP_NONE;
}

static const char *prepare_red(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = insn_has(in, ".popc") ? RED_POPC : insn_has(in, ".and") ? RED_AND : RED_OR;
    return NULL;
}

/* ---- bar.warp.sync: lanes arrive from wherever they stand ---- */

/* Of lanes that stand here with several masks those of the first one's go on; the others follow. */
static trap arrive_with_mask(struct warp *w, const struct insn *in, uint32_t *lanes, const uint64_t *row)
{
    const uint32_t mask = (uint32_t)row[__builtin_ctz(*lanes)];
    uint32_t same = 0;
    FOR_LANES(l, *lanes) same |= (uint32_t)((uint32_t)row[l] == mask) << l;
    if (same != *lanes) warp_leave_behind(w, *lanes & ~same);
    *lanes = same;
    if ((same & ~mask) != 0)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(same & ~mask), REPORT_DIVERGENCE,
                          "executes bar.warp.sync with a mask (0x%08x) that lacks its own lane", mask);
    FOR_LANES(l, same) w->barrier_mask[l] = mask;
    w->group->stage = 1;
    return TRAP_NONE;
}

static trap op_bar_warp_sync(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t *row = source(w, in, 0);
    const uint32_t mask = (uint32_t)row[__builtin_ctz(lanes)];
    const uint64_t object = sync_object(SYNC_WARP, w->cta, (uint64_t)w->index << 32 | mask);
    if (w->group->stage == 0) {
        const trap t = arrive_with_mask(w, in, &lanes, row);
        if (t != TRAP_NONE) return t;
        checks_release(w, lanes, object);
        cluster_event(w->cta->cluster);
    }
    uint32_t arrived = 0;
    for (uint32_t l = 0; l < LANES; l++) arrived |= (uint32_t)(w->barrier_mask[l] == mask) << l;
    if ((lanes & ~w->barrier_passed) != 0 && (mask & w->live & ~arrived) == 0) {
        checks_acquire(w, arrived & w->live, object);
        w->barrier_passed |= arrived;
        FOR_LANES(l, arrived) w->barrier_mask[l] = 0;
        cluster_event(w->cta->cluster);
    }
    if ((lanes & ~w->barrier_passed) != 0) return warp_wait(w, WAIT_WARP_BARRIER, mask, arrived);
    w->barrier_passed &= ~lanes;
    return TRAP_NONE;
}

/* ---- barrier.cluster ---- */

static uint32_t cluster_threads(const struct cluster *c)
{
    uint32_t threads = 0;
    for (uint32_t i = 0; i < c->ctas; i++) threads += c->cta[i].live_threads;
    return threads;
}

static uint64_t cluster_object(const struct cluster *c, uint64_t turn)
{
    return sync_object(SYNC_CLUSTER, &c->cta[0], turn & 1);
}

static void complete_cluster(struct cluster *c)
{
    if (c->barrier_arrived < cluster_threads(c)) return;
    c->barrier_arrived = 0;
    c->barrier_turn++;
    cluster_event(c);
}

/* barrier.cluster.arrive   each thread once a phase; .wait for the end of the phase at which it arrived */
static trap op_cluster_arrive(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct cluster *c = w->cta->cluster;
    if ((w->cluster_arrived & lanes) != 0)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(w->cluster_arrived & lanes), REPORT_BARRIER,
                          "arrives a second time at the cluster's barrier with no barrier.cluster.wait between");
    w->cluster_arrived |= lanes;
    FOR_LANES(l, lanes) w->cluster_ticket[l] = c->barrier_turn;
    c->barrier_arrived += (uint32_t)__builtin_popcount(lanes);
    if (in->semantics == ORDER_RELAXED) checks_release_relaxed(w, lanes, cluster_object(c, c->barrier_turn));
    else checks_release(w, lanes, cluster_object(c, c->barrier_turn));
    complete_cluster(c);
    return TRAP_NONE;
}

static trap op_cluster_wait(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct cluster *c = w->cta->cluster;
    if ((lanes & ~w->cluster_arrived) != 0)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes & ~w->cluster_arrived), REPORT_BARRIER,
                          "waits at the cluster's barrier without having arrived");
    complete_cluster(c);                  /* threads that exited may have been the last ones missing */
    FOR_LANES(l, lanes)
        if (w->cluster_ticket[l] == c->barrier_turn)
            return warp_wait(w, WAIT_CLUSTER_BARRIER, c->barrier_turn, c->barrier_arrived);
    w->cluster_arrived &= ~lanes;
    uint64_t turn = 0;
    FOR_LANES(l, lanes) turn = w->cluster_ticket[l];
    checks_acquire(w, lanes, cluster_object(c, turn));
    return TRAP_NONE;
}

#define BAR "{.cta}"
static const struct row rows[] = {
    { "bar" BAR ".sync", NULL, "s:u32 ?s:u32", 10, "", DEMANDS_ALIGNED, op_bar_sync, NULL, "9.7.13.1 bar" },
    { "bar" BAR ".arrive", NULL, "s:u32 s:u32", 20, "", DEMANDS_ALIGNED, op_bar_arrive, NULL, "9.7.13.1 bar" },
    { "barrier" BAR ".sync", NULL, "s:u32 ?s:u32", 60, "", 0, op_bar_sync, NULL, "9.7.13.1 barrier" },
    { "barrier" BAR ".sync.aligned", NULL, "s:u32 ?s:u32", 60, "", DEMANDS_ALIGNED, op_bar_sync, NULL,
      "9.7.13.1 barrier" },
    { "barrier" BAR ".arrive", NULL, "s:u32 s:u32", 60, "", 0, op_bar_arrive, NULL, "9.7.13.1 barrier" },
    { "barrier" BAR ".arrive.aligned", NULL, "s:u32 s:u32", 60, "", DEMANDS_ALIGNED, op_bar_arrive, NULL,
      "9.7.13.1 barrier" },
    { "bar" BAR ".red.popc.u32", NULL, "d:u32 s:u32 ?s:u32 p", 20, "", DEMANDS_ALIGNED, op_bar_red, prepare_red,
      "9.7.13.1 bar" },
    { "bar" BAR ".red(.and|.or).pred", NULL, "P s:u32 ?s:u32 p", 20, "", DEMANDS_ALIGNED, op_bar_red, prepare_red,
      "9.7.13.1 bar" },
    { "barrier" BAR ".red.popc.aligned.u32", NULL, "d:u32 s:u32 ?s:u32 p", 60, "", DEMANDS_ALIGNED, op_bar_red,
      prepare_red, "9.7.13.1 barrier" },
    { "barrier" BAR ".red(.and|.or).aligned.pred", NULL, "P s:u32 ?s:u32 p", 60, "", DEMANDS_ALIGNED, op_bar_red,
      prepare_red, "9.7.13.1 barrier" },
    { "barrier" BAR ".red.popc.u32", NULL, "d:u32 s:u32 ?s:u32 p", 60, "", 0, op_bar_red, prepare_red,
      "9.7.13.1 barrier" },
    { "barrier" BAR ".red(.and|.or).pred", NULL, "P s:u32 ?s:u32 p", 60, "", 0, op_bar_red, prepare_red,
      "9.7.13.1 barrier" },
    { "bar.warp.sync", NULL, "s:b32", 60, "sm_30+", 0, op_bar_warp_sync, NULL, "9.7.13.2 bar.warp.sync" },
    { "barrier.cluster.arrive{.release|.relaxed}", NULL, "", 78, "sm_90+", 0, op_cluster_arrive, NULL,
      "9.7.13.3 barrier.cluster" },
    { "barrier.cluster.arrive{.release|.relaxed}.aligned", NULL, "", 78, "sm_90+", DEMANDS_ALIGNED, op_cluster_arrive,
      NULL, "9.7.13.3 barrier.cluster" },
    { "barrier.cluster.wait{.acquire}", NULL, "", 78, "sm_90+", 0, op_cluster_wait, NULL, "9.7.13.3 barrier.cluster" },
    { "barrier.cluster.wait{.acquire}.aligned", NULL, "", 78, "sm_90+", DEMANDS_ALIGNED, op_cluster_wait, NULL,
      "9.7.13.3 barrier.cluster" },
};

const struct family family_barrier = FAMILY("barriers", rows);
