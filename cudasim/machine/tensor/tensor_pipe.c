/* Operations of the tensor pipe, and in what order they may use tensor memory.  See tensor_pipe.h. */
#include "tensor_pipe.h"
#include "machine/check/clocks.h"
#include "machine/async/mbarrier.h"
#include "machine/core/random.h"
#include "machine/core/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { [TENSOR_MMA] = "mma",
                                     [TENSOR_CP] = "cp",
                                     [TENSOR_CP_4X256B] = "cp",
                                     [TENSOR_SHIFT] = "shift",
                                     [TENSOR_COMMIT] = "commit" };

static trap no_memory(struct warp *w, const struct insn *in)
{
    return warp_fault(w, in, NO_LANE, REPORT_RESOURCES, "finds no host memory");
}

static uint32_t line_of(const struct cta *cta, uint32_t pc) { return cta->cluster->grid->code[pc].line; }

/* ---- areas ---- */

struct tensor_area tensor_lanes(uint32_t first, uint32_t count, uint32_t column, uint32_t columns)
{
    struct tensor_area a = { .column = column, .columns = columns };
    for (uint32_t l = first; l < first + count && l < TENSOR_LANES; l++) a.lanes[l / LANES] |= 1u << l % LANES;
    return a;
}

static bool overlap(const struct tensor_area *a, const struct tensor_area *b)
{
    uint32_t lanes = 0;
    for (int i = 0; i < TENSOR_QUARTERS; i++) lanes |= a->lanes[i] & b->lanes[i];
    return lanes != 0 && a->column < b->column + b->columns && b->column < a->column + a->columns;
}

static bool covers(const struct tensor_area *outer, const struct tensor_area *inner)
{
    uint32_t missing = 0;
    for (int i = 0; i < TENSOR_QUARTERS; i++) missing |= inner->lanes[i] & ~outer->lanes[i];
    return missing == 0 && outer->column <= inner->column
           && inner->column + inner->columns <= outer->column + outer->columns;
}

static bool same_area(const struct tensor_area *a, const struct tensor_area *b) { return covers(a, b) && covers(b, a); }

static bool is_full(const struct tensor_area *a)
{
    return (a->lanes[0] & a->lanes[1] & a->lanes[2] & a->lanes[3]) == UINT32_MAX;
}

/* ---- batches and issuers ---- */

static void leave(struct tensor_batch *batch)
{
    if (batch == NULL || --batch->users != 0) return;
    async_end(batch->token);
    free(batch);
}

static struct tensor_issuer *issuer_of(const struct tensor_memory *m, const struct warp *w, uint32_t lane)
{
    struct tensor_issuer *i = m->warp[w->index].issuer;
    while (i != NULL && i->lane != lane) i = i->next;
    return i;
}

static struct tensor_issuer *issuer_made(struct tensor_memory *m, struct warp *w, uint32_t lane)
{
    struct tensor_issuer *i = issuer_of(m, w, lane);
    if (i != NULL) return i;
    i = calloc(1, sizeof *i);
    if (i == NULL) return NULL;
    *i = (struct tensor_issuer){ .next = m->warp[w->index].issuer, .warp = w, .lane = lane };
    return m->warp[w->index].issuer = i;
}

/* The batch under way knows what the thread knows now. */
static bool renew_batch(struct tensor_issuer *i, const struct insn *in)
{
    const uint32_t lanes = 1u << i->lane;
    if (i->batch != NULL) {
        async_renew(i->batch->token, i->warp, lanes);
        i->batch->token->in = in;
        return true;
    }
    struct tensor_batch *b = calloc(1, sizeof *b);
    if (b != NULL) b->token = async_begin(i->warp, in, lanes, PROXY_ASYNC);
    if (b == NULL || b->token == NULL) {
        free(b);
        return false;
    }
    if (tensor_copies_are_seen(i->warp)) async_sees_copies(b->token);
    if (i->before != NULL) async_follow(b->token, i->before->token);
    b->users = 1;
    i->batch = b;
    return true;
}

/* An operation of another thread comes behind the batch: what its own thread issues from now on is another. */
static void seal(struct tensor_issuer *i, const struct tensor_batch *batch)
{
    if (i->batch != batch) return;
    leave(i->before);
    i->before = i->batch;
    i->batch = NULL;
}

static void forget(struct tensor_record *r)
{
    leave(r->batch);
    free(r);
}

void tensor_pipe_close(struct cta *cta)
{
    struct tensor_memory *m = cta->sm == NULL ? NULL : cta->sm->tensor;
    if (m == NULL) return;
    for (uint32_t i = 0; i < m->warps; i++)
        while (m->warp[i].issuer != NULL) {
            struct tensor_issuer *issuer = m->warp[i].issuer;
            m->warp[i].issuer = issuer->next;
            leave(issuer->batch), leave(issuer->before);
            free(issuer);
        }
    while (m->record != NULL) {
        struct tensor_record *r = m->record;
        m->record = r->next;
        forget(r);
    }
}

/* ---- beginning ---- */

trap tensor_check_group(struct warp *w, const struct insn *in, uint32_t group)
{
    uint32_t before = 0;
    if (atomic_compare_exchange_strong(&w->cta->cluster->grid->tensor_group, &before, group) || before == group)
        return TRAP_NONE;
    return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                      "has .cta_group::%u in a kernel that has executed instructions with .cta_group::%u; "
                      "all tcgen05 instructions of a kernel have the same", group, before);
}

struct cta *tensor_peer(struct warp *w, const struct insn *in)
{
    const struct cluster *c = w->cta->cluster;
    const uint32_t rank = w->cta->rank ^ 1;
    if (rank >= c->ctas) {
        warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "needs a CTA pair; CTA rank %u has no peer in its cluster of %u",
                   w->cta->rank, c->ctas);
        return NULL;
    }
    struct cta *peer = &c->cta[rank];
    if (peer->live_threads == 0)
        warp_fault(w, in, NO_LANE, REPORT_ASYNC, "acts on both CTAs of the pair, but the peer, CTA rank %u, has ended",
                   rank);
    else if (peer->sm == NULL)
        warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                   "acts on both CTAs of the pair, but the peer, CTA rank %u, has executed no tcgen05 instruction",
                   rank);
    else
        return peer;
    return NULL;
}

void *tensor_begin(struct warp *w, const struct insn *in, uint32_t lane, size_t bytes, const struct agent_kind *kind,
                   enum tensor_work work, uint32_t group)
{
    struct tensor_memory *m = tensor_memory_of(w, in);
    if (m == NULL || tensor_check_group(w, in, group) != TRAP_NONE) return NULL;
    if (!tensor_implied_after(w, m, 1u << lane)) {
        no_memory(w, in);
        return NULL;
    }
    struct tensor_issuer *issuer = issuer_made(m, w, lane);
    struct tensor_operation *o = calloc(1, bytes);
    if (issuer == NULL || o == NULL || !renew_batch(issuer, in)) {
        free(o);
        no_memory(w, in);
        return NULL;
    }
    o->operation = (struct agent_operation){ .kind = kind, .cluster = w->cta->cluster, .cta = w->cta, .warp = w,
                                             .in = in,
                                             .lane = lane };
    o->work = work;
    o->group = group;
    o->issuer = issuer;
    o->batch = issuer->batch;
    o->batch->users++;
    return o;
}

void tensor_abandon(struct tensor_operation *operation)
{
    tensor_drop(&operation->operation);
    free(operation);
}

/* ---- order ---- */

static bool is_pipe(const struct agent_operation *o) { return o->kind->may_complete == tensor_may_complete; }

static bool in_flight(const struct cluster *c, uint64_t serial)
{
    for (const struct agent_operation *o = c->operations; o != NULL; o = o->next)
        if (o->serial == serial) return true;
    return false;
}

static bool waits_for(const struct tensor_operation *o, uint64_t serial)
{
    for (uint32_t i = 0; i < o->after_count; i++)
        if (o->after[i] == serial) return true;
    return false;
}

/* False: no host memory. */
static bool follow(struct tensor_operation *o, uint64_t serial)
{
    if (waits_for(o, serial) || !in_flight(o->operation.cluster, serial)) return true;
    if (o->after_count == o->after_capacity) {
        const uint32_t capacity = o->after_capacity == 0 ? 8 : 2 * o->after_capacity;
        uint64_t *larger = realloc(o->after, capacity * sizeof *larger);
        if (larger == NULL) return false;
        o->after = larger;
        o->after_capacity = capacity;
    }
    o->after[o->after_count++] = serial;
    return true;
}

/* The pairs that run in order: 9.7.16.6.4.2, and mma before cp. */
static bool is_ordered_pair(const struct tensor_record *r, const struct tensor_operation *o,
                            const struct tensor_area *area, bool writes)
{
    switch (o->work) {
    case TENSOR_MMA:
        if (r->work == TENSOR_MMA) return r->writes && writes && r->shape == o->shape && same_area(&r->area, area);
        return r->work == TENSOR_CP || r->work == TENSOR_CP_4X256B || r->work == TENSOR_SHIFT;
    case TENSOR_CP: return r->work == TENSOR_MMA;
    case TENSOR_CP_4X256B: return r->work == TENSOR_MMA || r->work == TENSOR_SHIFT;
    case TENSOR_SHIFT: return r->work == TENSOR_MMA;
    default: return false;
    }
}

/* Whether a tcgen05.fence::before_thread_sync behind the record's operation was known at the warp's last
 * fence::after_thread_sync. Fences stand in the order of their serials. */
static bool is_fenced(const struct tensor_record *r, const uint32_t *known)
{
    const struct warp *from = r->issuer->warp;
    const struct tensor_warp *other = &from->cta->sm->tensor->warp[from->index];
    uint32_t low = 0, high = other->fences;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (other->fence[middle].serial > r->serial) high = middle;
        else low = middle + 1;
    }
    for (; known != NULL && low < other->fences; low++)
        if (other->fence[low].lanes >> r->issuer->lane & 1)
            return known[actor_of(from, r->issuer->lane)] >= other->fence[low].clock[r->issuer->lane];
    return false;
}

static bool is_complete(const struct tensor_record *r, const uint32_t *known)
{
    return known != NULL && known[r->actor] >= r->clock;
}

static const uint32_t *known_after_fence(const struct warp *w) { return w->cta->sm->tensor->warp[w->index].known; }

static bool is_directly_ordered(const struct tensor_operation *o, const struct tensor_record *r,
                                const struct tensor_area *area, bool writes)
{
    const uint32_t *known = known_after_fence(o->operation.warp);
    if (r->clock == 0 || is_complete(r, known)) return true;
    return is_ordered_pair(r, o, area, writes) && (r->issuer == o->issuer || is_fenced(r, known));
}

/* A record behind r, in order because it conflicts with it, that the operation is ordered behind. */
static const struct tensor_record *between(const struct tensor_operation *o, const struct tensor_memory *m,
                                           const struct tensor_record *r, const struct tensor_area *area, bool writes)
{
    for (const struct tensor_record *q = m->record; q != NULL; q = q->next)
        if (q->serial > r->serial && q->serial != o->operation.cluster->operation_serial && (q->writes || r->writes)
            && overlap(&q->area, &r->area) && is_directly_ordered(o, q, area, writes))
            return q;
    return NULL;
}

/* Any lane: an instruction of the warp comes behind what each has waited for. */
static bool is_known(const struct warp *w, const struct tensor_record *r)
{
    FOR_LANES(l, w->clocks == NULL ? 0 : w->live) if (known_to(w, l)[r->actor] >= r->clock) return true;
    return false;
}

/* A thread that has committed since the record's operation was issued, which its own thread has not. */
static const struct tensor_issuer *wrong_committer(const struct tensor_record *r)
{
    const struct tensor_memory *m = r->issuer->warp->cta->sm->tensor;
    for (uint32_t i = 0; r->issuer->uncommitted_line != 0 && i < m->warps; i++)
        for (const struct tensor_issuer *other = m->warp[i].issuer; other != NULL; other = other->next)
            if (other != r->issuer && other->committed_line != 0 && other->committed > r->serial) return other;
    return NULL;
}

/* issuer: the thread that issues an operation; NULL: the access is an ld or st, which the pipe does not order. */
static trap report_conflict(struct warp *w, const struct insn *in, const struct cta *cta, const struct tensor_record *r,
                            const struct tensor_issuer *issuer, bool writes)
{
    char commit[96] = "";
    const bool known = is_known(w, r);
    const struct tensor_issuer *other = known ? NULL : wrong_committer(r);
    if (other != NULL)
        snprintf(commit, sizeof commit,
                 "; that of warp %u, lane %u at line %u signals its own thread's operations alone", other->warp->index,
                 other->lane, other->committed_line);
    const enum rule rule = known                 ? RULE_TENSOR_COMMIT_FENCE
                           : r->issuer == issuer ? RULE_TENSOR_ISSUE_ORDER
                                                 : RULE_TENSOR_COMMIT_WAIT;
    return warp_breaks(w, in, NO_LANE, rule,
                      "%s columns %u to %u of tensor memory%s, which the tcgen05.%s of warp %u at PTX line %u %s; %s%s",
                      writes ? "writes" : "reads", r->area.column, r->area.column + r->area.columns - 1,
                      cta == w->cta ? "" : " of the peer CTA", names[r->work], r->issuer->warp->index,
                      line_of(cta, r->pc), r->writes ? "writes" : "reads",
                      known ? "its commit has been waited for, but no tcgen05.fence::after_thread_sync lies between"
                            : "no tcgen05.commit behind it has been waited for",
                      commit);
}

/* Who knows that the operation is complete knows it of those before it, whoever issued them. */
static void come_behind(const struct tensor_operation *o, const struct tensor_record *r)
{
    if (r->issuer == o->issuer || r->clock == 0) return;
    seal(r->issuer, r->batch);
    async_follow(o->batch->token, r->batch->token);
}

static trap check_records(struct tensor_operation *o, const struct cta *cta, const struct tensor_area *area,
                          bool writes)
{
    struct warp *w = o->operation.warp;
    const struct tensor_memory *m = cta->sm->tensor;
    for (const struct tensor_record *r = m->record; r != NULL; r = r->next) {
        if ((!r->writes && !writes) || !overlap(&r->area, area) || r->serial == o->operation.cluster->operation_serial)
            continue;
        const struct tensor_record *q = NULL;
        if (!is_directly_ordered(o, r, area, writes) && (q = between(o, m, r, area, writes)) == NULL) {
            const trap t = report_conflict(w, o->operation.in, cta, r, o->issuer, writes);
            if (t != TRAP_NONE) return t;
            if (r->issuer != o->issuer) continue; /* a thread's own operations go on in the order of their issue */
        }
        come_behind(o, r);
        if (!follow(o, r->serial) || (q != NULL && !follow(o, q->serial))) return no_memory(w, o->operation.in);
    }
    return TRAP_NONE;
}

/* What ld and st have left in the cells. */
static trap check_cells(const struct tensor_operation *o, struct cta *cta, const struct tensor_area *area, bool writes)
{
    struct tensor_memory *m = cta->sm->tensor;
    for (uint32_t c = area->column; c < area->column + area->columns; c++) {
        if (!m->touched[c]) continue;
        for (uint32_t l = 0; l < TENSOR_LANES; l++) {
            if ((area->lanes[l / LANES] >> l % LANES & 1) == 0) continue;
            const trap t = tensor_check_cell(o->operation.warp, o->operation.in, cta, writes, l, c);
            if (t != TRAP_NONE) return t;
        }
        if (writes && is_full(area)) m->touched[c] = false;
    }
    return TRAP_NONE;
}

/* Whether a record says nothing any more that the new one does not: everybody behind the new one is behind it. */
static bool is_superseded(const struct tensor_operation *o, const struct tensor_record *q,
                          const struct tensor_record *n)
{
    if (!covers(&n->area, &q->area) || (in_flight(o->operation.cluster, q->serial) && !waits_for(o, q->serial)))
        return false;
    return n->writes || (!q->writes && q->issuer == n->issuer && q->work == n->work && q->serial != n->serial);
}

static trap remember(struct tensor_operation *o, struct cta *cta, const struct tensor_area *area, bool writes)
{
    struct tensor_memory *m = cta->sm->tensor;
    struct tensor_record *n = malloc(sizeof *n);
    if (n == NULL) return no_memory(o->operation.warp, o->operation.in);
    const struct async_token *token = o->batch->token;
    *n = (struct tensor_record){ .area = *area, .writes = writes, .work = o->work, .shape = o->shape,
                                 .issuer = o->issuer,
                                 .batch = o->batch, .serial = o->operation.cluster->operation_serial,
                                 .actor = token->actor,
                                 .clock = token->known == NULL ? 0 : token->clock,
                                 .pc = (uint32_t)(o->operation.in - cta->cluster->grid->code) };
    for (struct tensor_record **link = &m->record; *link != NULL;) {
        struct tensor_record *q = *link;
        if (!is_superseded(o, q, n)) {
            link = &q->next;
            continue;
        }
        *link = q->next;
        forget(q);
    }
    n->batch->users++;
    n->next = m->record;
    m->record = n;
    return TRAP_NONE;
}

trap tensor_uses(struct tensor_operation *o, struct cta *cta, struct tensor_area area, enum tensor_use use)
{
    const bool writes = use == TENSOR_WRITES;
    const struct tensor_memory *m = cta->sm->tensor;
    for (uint32_t c = area.column; c < area.column + area.columns; c++)
        if (c >= TENSOR_COLUMNS || m->first[c] == 0)
            return warp_fault(o->operation.warp, o->operation.in, NO_LANE, REPORT_OUT_OF_BOUNDS,
                              "%s column %u of tensor memory%s, which is not allocated", writes ? "writes" : "reads", c,
                              cta == o->operation.cta ? "" : " of the peer CTA");
    if (tensor_is_being_freed(m, area.column, area.columns))
        return warp_fault(o->operation.warp, o->operation.in, NO_LANE, REPORT_ASYNC,
                          "%s columns %u to %u of tensor memory%s, which a tcgen05.dealloc of that CTA frees",
                          writes ? "writes" : "reads", area.column, area.column + area.columns - 1,
                          cta == o->operation.cta ? "" : " of the peer CTA");
    trap t = check_records(o, cta, &area, writes);
    if (t == TRAP_NONE) t = check_cells(o, cta, &area, writes);
    return t == TRAP_NONE ? remember(o, cta, &area, writes) : t;
}

/* ---- running ---- */

enum { LEAST_STEPS = 1, MOST_STEPS = 1024 };

void tensor_start(struct tensor_operation *o)
{
    static const uint64_t most[] = { 8, 64, 256, MOST_STEPS }; /* under a random schedule some complete soon, some
                                                                  late */
    struct cluster *c = o->operation.cluster;
    if (o->work != TENSOR_COMMIT) {
        o->issuer->issued = true;
        o->issuer->uncommitted_line = o->operation.in->line;
    }
    agent_start(&o->operation, LEAST_STEPS,
                c->grid->machine->options.schedule == SCHEDULE_RANDOM ? most[cluster_random(c) % 4] : MOST_STEPS);
    tensor_implied_before(o->operation.warp, o->operation.cta->sm->tensor, 1u << o->operation.lane);
}

bool tensor_may_complete(const struct agent_operation *operation)
{
    const struct tensor_operation *o = (const struct tensor_operation *)operation;
    for (const struct agent_operation *p = operation->cluster->operations; p != NULL; p = p->next) {
        if (!is_pipe(p) || p->serial >= operation->serial) continue;
        const bool own = ((const struct tensor_operation *)p)->issuer == o->issuer;
        if (o->work == TENSOR_COMMIT ? own : waits_for(o, p->serial)) return false;
    }
    return true;
}

void tensor_complete(struct agent_operation *operation) { (void)operation; }

void tensor_drop(struct agent_operation *operation)
{
    struct tensor_operation *o = (struct tensor_operation *)operation;
    leave(o->batch);
    o->batch = NULL;
    free(o->after);
}

trap tensor_check_written(const struct tensor_operation *o, const struct cta *cta, const struct tensor_area *area,
                          uint32_t halves, const char *what)
{
    if (!o->operation.cluster->grid->machine->options.check_uninitialised) return TRAP_NONE;
    for (uint32_t l = 0; l < TENSOR_LANES; l++) {
        if ((area->lanes[l / LANES] >> l % LANES & 1) == 0) continue;
        const uint8_t *valid = tensor_valid(cta, l, area->column);
        for (uint32_t c = 0; c < area->columns; c++)
            if ((valid[c] & halves) != halves)
                return warp_fault(o->operation.warp, o->operation.in, NO_LANE, REPORT_UNINITIALISED,
                                  "reads %s from lane %u, column %u of tensor memory%s, which has not been written%s",
                                  what, l, area->column + c, cta == o->operation.cta ? "" : " of the peer CTA",
                                  valid[c] != 0 ? " in its upper half" : "");
    }
    return TRAP_NONE;
}

/* ---- commit ---- */

enum { MOST_TARGETS = 16 };
struct commit {
    struct tensor_operation pipe;
    struct tensor_target target[MOST_TARGETS];
    uint32_t targets;
};

static trap commit_step(struct agent_operation *operation, bool *done)
{
    struct commit *c = (struct commit *)operation;
    trap t = TRAP_NONE;
    for (uint32_t i = 0; t == TRAP_NONE && i < c->targets; i++) {
        const struct tensor_target *target = &c->target[i];
        t = mbarrier_arrive_async(operation->warp, operation->in, operation->lane, target->cta, target->offset,
                                  tensor_token(&c->pipe));
    }
    *done = true;
    return t;
}

static const struct agent_kind commit_kind = { .name = "tcgen05.commit", .engine = ENGINE_TENSOR, .step = commit_step,
                                               .may_complete = tensor_may_complete, .complete = tensor_complete,
                                               .drop = tensor_drop };

/* A commit waits for its own thread's operations alone. */
static trap check_committer(struct warp *w, const struct insn *in, const struct tensor_memory *m, uint32_t lane)
{
    const struct tensor_issuer *own = issuer_of(m, w, lane);
    if (own != NULL && own->issued) return TRAP_NONE;
    for (uint32_t i = 0; i < m->warps; i++)
        for (const struct tensor_issuer *other = m->warp[i].issuer; other != NULL; other = other->next)
            if (other->uncommitted_line != 0)
                return warp_fault(w, in, lane, REPORT_ASYNC,
                                  "signals the end of this thread's operations, of which there are none; "
                                  "those of warp %u, lane %u, the latest at PTX line %u, have to be committed by the "
                                  "thread that issued them", i, other->lane,
                                  other->uncommitted_line);
    return TRAP_NONE;
}

trap tensor_check_committers(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct tensor_memory *m = tensor_memory_of(w, in);
    trap t = m == NULL ? TRAP_FAULT : TRAP_NONE;
    FOR_LANES(l, lanes) if (t == TRAP_NONE) t = check_committer(w, in, m, l);
    return t;
}

trap tensor_commit(struct warp *w, const struct insn *in, uint32_t lane, uint32_t group,
                   const struct tensor_target *target, uint32_t targets)
{
    struct tensor_memory *m = tensor_memory_of(w, in);
    trap t = m == NULL ? TRAP_FAULT : TRAP_NONE;
    for (uint32_t i = 0; t == TRAP_NONE && i < targets; i++)
        t = mbarrier_access(w, in, lane, target[i].cta, target[i].offset);
    if (t != TRAP_NONE) return t;
    if (!tensor_fence_before(w, m, 1u << lane)) return no_memory(w, in);
    struct commit *c = tensor_begin(w, in, lane, sizeof *c, &commit_kind, TENSOR_COMMIT, group);
    if (c == NULL) return TRAP_FAULT;
    memcpy(c->target, target, targets * sizeof *target);
    c->targets = targets;
    struct tensor_issuer *issuer = c->pipe.issuer;
    leave(issuer->before);
    issuer->before = issuer->batch;
    issuer->batch = NULL;
    if (targets != 0) {
        c->pipe.operation.signals = WAIT_MBARRIER;
        c->pipe.operation.object = target[0].cta->shared_base | target[0].offset;
    }
    issuer->uncommitted_line = 0;
    issuer->committed_line = in->line;
    issuer->committed = w->cta->cluster->operation_serial;
    tensor_start(&c->pipe);
    return TRAP_NONE;
}

/* ---- ld, st, dealloc ---- */

trap tensor_order(struct warp *w, const struct insn *in, const struct tensor_area *area,
                  enum tensor_direction direction)
{
    const struct tensor_memory *m = w->cta->sm->tensor;
    const uint32_t *known = known_after_fence(w);
    for (const struct tensor_record *r = m->record; r != NULL; r = r->next)
        if ((r->writes || direction == TENSOR_STORE) && overlap(&r->area, area) && r->clock != 0
            && !is_complete(r, known))
            return report_conflict(w, in, w->cta, r, NULL, direction == TENSOR_STORE);
    return TRAP_NONE;
}

trap tensor_check_freed(struct warp *w, const struct insn *in, struct tensor_memory *m, uint32_t first,
                        uint32_t columns)
{
    const trap t = tensor_check_allocated(w, in, m, first, columns);
    if (t != TRAP_NONE) return t;
    const struct tensor_area area = tensor_lanes(0, TENSOR_LANES, first, columns);
    for (struct tensor_record **link = &m->record; *link != NULL;) {
        struct tensor_record *r = *link;
        if (!overlap(&r->area, &area)) {
            link = &r->next;
            continue;
        }
        if (r->clock != 0 && w->clocks != NULL && !is_known(w, r) && !is_complete(r, known_after_fence(w)))
            return warp_breaks(w, in, NO_LANE, RULE_TENSOR_COMMIT_WAIT,
                              "frees columns %u to %u, which the tcgen05.%s of warp %u at PTX line %u may still use; "
                              "no tcgen05.commit behind it has been waited for",
                              first, first + columns - 1, names[r->work], r->issuer->warp->index,
                              line_of(w->cta, r->pc));
        *link = r->next;
        forget(r);
    }
    return TRAP_NONE;
}
