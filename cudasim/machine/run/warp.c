/* A warp: groups of lanes that stand at the same instruction, which of them runs, calls and returns. */
#include "warp.h"
#include "machine/async/agent.h"
#include "machine/tensor/tensor_memory.h"
#include "machine/async/tma.h"
#include "machine/profile/watch.h"
#include "machine/mma/wgmma.h"
#include "machine/async/bulk_group.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"
#include "machine/memory/access.h"
#include "machine/mma/row_use.h"
#include "machine/run/registers.h"

#include <stdlib.h>
#include <string.h>

enum { FAIR_STEPS = 1024, MAX_LOCAL_BYTES = 512 * 1024, MAX_DEPTH = 4096 };

static bool make_rows(struct warp *w, uint64_t rows)
{
    if (rows <= w->rows) return true;
    const uint64_t wanted = w->rows == 0 ? rows : rows > 2 * (uint64_t)w->rows ? rows : 2 * (uint64_t)w->rows;
    uint64_t *larger = wanted > (1u << 24) ? NULL : registers_grow(w->registers, w->rows, wanted);
    if (larger == NULL) return false;
    w->registers = larger;
    w->rows = (uint32_t)wanted;
    return true;
}

static bool make_local(struct warp *w, uint64_t bytes)
{
    if (bytes <= w->local_bytes) return true;
    const uint32_t wanted = (uint32_t)(bytes + 1023) / 1024 * 1024;
    uint8_t *larger = bytes > MAX_LOCAL_BYTES ? NULL : calloc(LANES, wanted);
    if (larger == NULL) return false;
    for (uint32_t l = 0; l < LANES && w->local_bytes != 0; l++)
        memcpy(larger + (size_t)l * wanted, w->local + (size_t)l * w->local_bytes, w->local_bytes);
    free(w->local);
    w->local = larger;
    w->local_bytes = wanted;
    return true;
}

static uint64_t preset_value(const struct warp *w, const struct preset *p, uint32_t lane)
{
    if (p->kind == OPERAND_SPECIAL) return special_value(w, lane, (enum special)p->value);
    if (p->kind == OPERAND_FUNCTION) return CODE_WINDOW + 16 * (uint64_t)p->function->index;
    return variable_address(w, p->variable) + (uint64_t)p->value;
}

/* Makes w->group's frame ready for f. */
static bool enter(struct warp *w, const struct function *f, uint32_t lanes)
{
    struct group *g = w->group;
    if (!make_rows(w, (uint64_t)g->base + f->rows) || !make_local(w, (uint64_t)g->local + f->local_bytes)) return false;
    w->frame = w->registers + (size_t)g->base * LANES;
    for (const struct preset *p = f->presets; p != NULL; p = p->next) {
        uint64_t *row = register_row(w, p->slot);
        FOR_LANES(l, lanes) row[l] = preset_value(w, p, l);
    }
    return true;
}

bool warp_open(struct warp *w, struct cta *cta, uint32_t index, uint32_t lanes)
{
    const struct function *f = cta->cluster->grid->function;
    *w = (struct warp){ .cta = cta, .index = index, .live = lanes, .group_count = 1 };
    w->groups[0] = (struct group){ .lanes = lanes, .pc = f->code_begin, .local = LOCAL_BASE };
    w->group = &w->groups[0];
    return enter(w, f, lanes);
}

void warp_close(struct warp *w)
{
    registers_free(w->registers, w->rows);
    free(w->local), free(w->calls), free(w->row_use);
    for (int i = 0; i < 4; i++) free(w->engine[i]);
    *w = (struct warp){ 0 };
}

/* ---- groups ---- */

static void remove_group(struct warp *w, struct group *g)
{
    struct group *last = &w->groups[--w->group_count];
    if (w->group == g) w->group = NULL;
    else if (w->group == last) w->group = g;
    *g = *last;
}

static bool same_place(const struct group *a, const struct group *b)
{
    return a->pc == b->pc && a->base == b->base && a->depth == b->depth && a->local == b->local && a->stage == 0
           && b->stage == 0;
}

/* Groups that have come to the same place are one again; one that waited for the others to come looks again. */
static void merge_into(struct warp *w, struct group *g)
{
    for (uint32_t i = 0; i < w->group_count;) {
        struct group *other = &w->groups[i];
        if (other == g || !same_place(g, other)) {
            i++;
            continue;
        }
        g->lanes |= other->lanes;
        g->blocked = false;
        const bool g_was_last = g == &w->groups[w->group_count - 1];
        remove_group(w, other);
        if (g_was_last) g = other;
        w->group = g;
    }
}

static bool can_run(const struct warp *w, const struct group *g)
{
    const struct cluster *c = w->cta->cluster;
    return !g->blocked || g->blocked_at != c->events || (g->wait.until != 0 && c->now >= g->wait.until);
}

bool warp_can_run(const struct warp *w)
{
    for (uint32_t i = 0; i < w->group_count; i++)
        if (can_run(w, &w->groups[i])) return true;
    return false;
}

/* The lowest program counter runs, so that lanes meet again behind a branch; now and then the one that has waited
 * longest. */
bool warp_choose(struct warp *w)
{
    const uint64_t now = w->cta->cluster->now;
    if (w->group != NULL && can_run(w, w->group) && now < w->hold_until) {
        w->frame = w->registers + (size_t)w->group->base * LANES;
        return true;
    }
    const bool unfair = w->group != NULL && now - w->chosen_at > FAIR_STEPS;
    struct group *best = NULL;
    for (uint32_t i = 0; i < w->group_count; i++) {
        struct group *g = &w->groups[i];
        if (!can_run(w, g) || (unfair && g == w->group)) continue;
        if (best == NULL || (unfair ? g->pc > best->pc : g->pc < best->pc)) best = g;
    }
    if (best == NULL && unfair && can_run(w, w->group)) best = w->group;
    if (best == NULL) return false;
    if (best != w->group || unfair) w->chosen_at = now;
    if (unfair) w->hold_until = now + FAIR_STEPS;
    w->group = best;
    best->blocked = false;
    w->frame = w->registers + (size_t)best->base * LANES;
    return true;
}

static struct group *split(struct warp *w, uint32_t lanes)
{
    struct group *g = &w->groups[w->group_count++];
    *g = *w->group;
    g->lanes = lanes;
    g->stage = 0;
    g->blocked = false;
    w->group->lanes &= ~lanes;
    return g;
}

void warp_leave_behind(struct warp *w, uint32_t lanes) { split(w, lanes); }

trap warp_branch(struct warp *w, uint32_t lanes, uint32_t target)
{
    struct group *g = w->group;
    if (lanes == g->lanes) {
        g->pc = target;
        return TRAP_JUMP;
    }
    split(w, lanes)->pc = target;
    w->group->pc++;
    return TRAP_JUMP;
}

trap warp_branch_each(struct warp *w, uint32_t lanes, const uint32_t *target)
{
    if (lanes != w->group->lanes) {
        struct group *rest = split(w, w->group->lanes & ~lanes);
        rest->pc++;
    }
    for (uint32_t left = lanes; left != 0;) {
        const uint32_t pc = target[__builtin_ctz(left)];
        uint32_t same = 0;
        FOR_LANES(l, left) same |= (uint32_t)(target[l] == pc) << l;
        left &= ~same;
        if (left == 0) w->group->pc = pc;
        else split(w, same)->pc = pc;
    }
    return TRAP_JUMP;
}

/* ---- calls ---- */

static uint8_t *local_bytes(const struct warp *w, uint32_t lane, uint64_t address)
{
    return w->local + (size_t)lane * w->local_bytes + address;
}

/* Copies one argument or result between a frame's operand and the other frame's parameter. */
static void pass(struct warp *w, uint32_t lanes, const struct operand *o, uint32_t o_base, uint32_t o_local,
                 const struct variable *v, uint32_t v_base, uint32_t v_local, bool to_parameter)
{
    uint64_t *formal = v->space == SPACE_REG ? w->registers + ((size_t)v_base + v->slot) * LANES : NULL;
    uint64_t *actual = o->kind == OPERAND_REGISTER ? w->registers + ((size_t)o_base + o->slot) * LANES : NULL;
    const uint64_t bytes = v->bytes;
    FOR_LANES(l, lanes) {
        uint8_t *formal_bytes = formal != NULL ? (uint8_t *)&formal[l] : local_bytes(w, l, v_local + v->offset);
        if (o->kind == OPERAND_SINK) continue;
        uint8_t *actual_bytes = actual != NULL                ? (uint8_t *)&actual[l]
                                : o->kind == OPERAND_CONSTANT ? (uint8_t *)(uintptr_t)&o->row[l]
                                                              : local_bytes(w, l, o_local + o->variable->offset);
        uint8_t *to = to_parameter ? formal_bytes : actual_bytes;
        if ((to_parameter ? formal : actual) != NULL) memset(to, 0, 8);
        memcpy(to, to_parameter ? actual_bytes : formal_bytes, bytes);
    }
}

static bool deeper(struct warp *w, uint32_t depth)
{
    if (depth < w->call_capacity) return true;
    const uint32_t capacity = w->call_capacity == 0 ? 16 : 2 * w->call_capacity;
    void *larger = depth >= MAX_DEPTH ? NULL : realloc(w->calls, capacity * sizeof *w->calls);
    if (larger == NULL) return false;
    w->calls = larger;
    w->call_capacity = capacity;
    return true;
}

trap warp_call(struct warp *w, const struct insn *in, uint32_t lanes, const struct function *f)
{
    const struct operand *arguments = &in->operand[2];
    if (arguments->count != f->parameter_count || in->operand[0].count != f->result_count)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_ILLEGAL,
                          "calls %s with %u arguments and %u results; it has %u and %u", f->name, arguments->count,
                          in->operand[0].count, f->parameter_count, f->result_count);
    if (lanes != w->group->lanes) split(w, w->group->lanes & ~lanes)->pc++;
    struct group *g = w->group;
    const struct function *caller = ptx_function_at(w->cta->cluster->grid->module, g->pc);
    if (!deeper(w, g->depth))
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_RESOURCES, "calls are nested deeper than %d",
                          MAX_DEPTH);
    const struct call_frame here = { .return_pc = g->pc + 1, .base = g->base, .local = g->local };
    FOR_LANES(l, lanes) w->calls[g->depth][l] = here;
    const uint64_t align = f->local_align;
    g->base += caller->rows;
    g->local = (uint32_t)((here.local + caller->local_bytes + align - 1) / align * align);
    g->depth++;
    g->pc = f->code_begin;
    g->stage = 0;
    if (!enter(w, f, lanes))
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_RESOURCES,
                          "the stack of %s does not fit: %d bytes of local memory are the limit", f->name,
                          MAX_LOCAL_BYTES);
    for (uint32_t i = 0; i < f->parameter_count; i++)
        pass(w, lanes, &arguments->element[i], here.base, here.local, f->parameters[i], g->base, g->local, true);
    return TRAP_JUMP;
}

/* Lanes that were called from the same place return together. */
trap warp_return(struct warp *w, uint32_t lanes)
{
    if (w->group->depth == 0) return warp_exit(w, lanes);
    const struct grid *grid = w->cta->cluster->grid;
    if (lanes != w->group->lanes) split(w, w->group->lanes & ~lanes)->pc++;
    const struct group callee = *w->group;
    const struct function *f = ptx_function_at(grid->module, callee.pc);
    const struct call_frame *frames = w->calls[callee.depth - 1];
    for (uint32_t left = lanes; left != 0;) {
        const struct call_frame to = frames[__builtin_ctz(left)];
        uint32_t same = 0;
        FOR_LANES(l, left) same |= (uint32_t)(memcmp(&frames[l], &to, sizeof to) == 0) << l;
        const struct operand *results = &grid->code[to.return_pc - 1].operand[0];
        for (uint32_t i = 0; i < f->result_count; i++)
            pass(w, same, &results->element[i], to.base, to.local, f->results[i], callee.base, callee.local, false);
        left &= ~same;
        struct group *g = left == 0 ? w->group : split(w, same);
        g->pc = to.return_pc;
        g->base = to.base;
        g->local = to.local;
        g->depth = callee.depth - 1;
        g->stage = 0;
    }
    return TRAP_JUMP;
}

/* The cluster's barrier waits for threads that are left: those that exit count no more, whether they have arrived or
 * not. */
static void leave_cluster_barrier(struct warp *w, uint32_t lanes)
{
    struct cluster *c = w->cta->cluster;
    FOR_LANES(l, lanes & w->cluster_arrived) c->barrier_arrived -= w->cluster_ticket[l] == c->barrier_turn;
}

trap warp_exit(struct warp *w, uint32_t lanes)
{
    struct cta *cta = w->cta;
    const struct insn *in = &cta->cluster->grid->code[w->group->pc];
    leave_cluster_barrier(w, lanes);
    w->live &= ~lanes;
    if (w->live == 0 && wgmma_warp_ends(w, in) == TRAP_FAULT) return TRAP_FAULT;
    w->group->lanes &= ~lanes;
    w->group->pc++;
    cta->live_threads -= (uint32_t)__builtin_popcount(lanes);
    if (w->group->lanes == 0) remove_group(w, w->group);
    if (cta->live_threads == 0 && (tensor_cta_ends(w, in) == TRAP_FAULT || tma_cta_ends(cta) == TRAP_FAULT))
        return TRAP_FAULT;
    if (cta->live_threads == 0) {
        cta->cluster->live_ctas--;
        if (!cta->launched) atomic_fetch_add(&cta->cluster->grid->launched, 1);
    }
    cluster_event(cta->cluster);
    return TRAP_JUMP;
}

/* ---- running ---- */

static trap demand(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct group *g = w->group;
    if (lanes != g->lanes)
        return warp_fault(
            w, in, (uint32_t)__builtin_ctz(lanes), REPORT_DIVERGENCE,
            "its guard lets only some lanes of the warp (0x%08x of 0x%08x) execute an instruction that all must "
            "execute together",
            lanes, g->lanes);
    if (g->lanes != w->live && g->stage == 0) return warp_wait(w, WAIT_CONVERGENCE, w->live, g->lanes);
    if ((in->row->demands & NONE_EXITED) != 0 && lanes != UINT32_MAX)
        return warp_fault(
            w, in, (uint32_t)__builtin_ctz(~lanes), REPORT_DIVERGENCE,
            "is executed by the lanes 0x%08x alone: all 32 lanes of the warp must take part, and this one has exited "
            "or was never there",
            lanes);
    return TRAP_NONE;
}

static void block(struct warp *w, uint32_t lanes)
{
    if ((w->group->lanes & ~lanes) != 0) split(w, w->group->lanes & ~lanes)->pc++;
    w->group->blocked = true;
    w->group->blocked_at = w->cta->cluster->events;
}

/* `watched` is a constant where it is called: nobody pays for trace and profile who did not ask for them. */
static inline __attribute__((always_inline)) trap step(struct warp *w, const struct insn *code, bool watched)
{
    struct group *g = w->group;
    const struct insn *in = &code[g->pc];
    uint32_t lanes = g->lanes;
    if (in->guard != 0) {
        const uint64_t *row = register_row(w, in->guard_slot);
        const uint64_t wanted = in->guard == 1;
        uint32_t pass_lanes = 0;
        FOR_LANES(l, lanes) pass_lanes |= (uint32_t)((row[l] & 1) == wanted) << l;
        lanes = pass_lanes;
        if (lanes == 0) {
            g->pc++;
            return TRAP_NONE;
        }
    }
    trap t = TRAP_NONE;
    if ((in->row->demands & DEMANDS_ALIGNED) != 0) t = demand(w, in, lanes);
    if (watched && t == TRAP_NONE) watch_before(w, in, lanes);
    if (w->row_use != NULL && t == TRAP_NONE && (in->row->demands & DEMANDS_WARPGROUP) == 0)
        t = rows_touch(w, in, lanes);
    if (t == TRAP_NONE) t = in->run(w, in, lanes);
    if (t == TRAP_NONE) {
        g->pc++;
        g->stage = 0;
    } else if (t == TRAP_WAIT) {
        block(w, lanes);
    }
    if (watched) watch_after(w, in, lanes, t);
    return t;
}

static inline __attribute__((always_inline)) trap run(struct warp *w, uint32_t steps, bool watched)
{
    struct cluster *c = w->cta->cluster;
    const struct insn *code = c->grid->code;
    if (!warp_choose(w)) return TRAP_WAIT;
    for (; steps != 0; steps--) {
        c->now++;
        const trap t = step(w, code, watched);
        if (t == TRAP_FAULT) return t;
        if (c->now >= c->next_due && agents_run(c) == TRAP_FAULT) return TRAP_FAULT;
        if (w->group_count == 0) return TRAP_JUMP;
        if (w->group_count > 1 && w->group != NULL) merge_into(w, w->group);
        if (t != TRAP_NONE && !warp_choose(w)) return TRAP_WAIT;
    }
    return TRAP_NONE;
}

static __attribute__((noinline)) trap run_watched(struct warp *w, uint32_t steps) { return run(w, steps, true); }

trap warp_run(struct warp *w, uint32_t steps)
{
    return w->cta->cluster->grid->watch != NULL ? run_watched(w, steps) : run(w, steps, false);
}
