/* Gives what happens to the trace and to the profile. */
#include "watch.h"
#include "profile.h"
#include "trace.h"

bool watch_open(struct grid *grid)
{
    if (grid->watch == NULL) return true;
    if (grid->watch->trace != NULL && !trace_open_grid(grid->watch->trace, grid)) return false;
    return grid->watch->profile == NULL || profile_open_grid(grid->watch->profile, grid);
}

void watch_close(struct grid *grid)
{
    if (grid->watch == NULL) return;
    if (grid->watch->profile != NULL) profile_close_grid(grid->watch->profile, grid);
    if (grid->watch->trace != NULL) trace_close_grid(grid->watch->trace, grid);
}

bool watch_open_cluster(struct cluster *c)
{
    return c->grid->watch == NULL || c->grid->watch->profile == NULL || profile_open_cluster(c);
}

void watch_close_cluster(struct cluster *c)
{
    if (c->grid->watch != NULL && c->grid->watch->profile != NULL) profile_close_cluster(c->grid->watch->profile, c);
}

bool watch_in_order(const struct grid *grid) { return grid->watch != NULL && grid->watch->trace != NULL; }

void watch_before(struct warp *w, const struct insn *in, uint32_t lanes)
{
    if (w->cta->cluster->counts != NULL) profile_before(w, in, lanes);
}

void watch_after(struct warp *w, const struct insn *in, uint32_t lanes, trap t)
{
    const struct cluster *c = w->cta->cluster;
    struct group *g = t == TRAP_WAIT || t == TRAP_NONE ? w->group : NULL;
    const bool begins = t == TRAP_WAIT && g->waiting_since == 0;
    const uint64_t waited = t == TRAP_NONE && g->waiting_since != 0 ? c->now - g->waiting_since : 0;
    if (begins) g->waiting_since = c->now;
    else if (t == TRAP_NONE) g->waiting_since = 0;
    if (c->counts != NULL) profile_after(w, in, lanes, t, begins, waited);
    if (c->grid->watch->trace != NULL && (t != TRAP_WAIT || begins)) trace_step(c->grid->watch->trace, w, in, lanes, t);
}

void watch_started(const struct agent_operation *operation)
{
    struct trace *trace = operation->cluster->grid->watch->trace;
    if (trace != NULL) trace_operation(trace, operation, "issued");
}

void watch_completed(const struct agent_operation *operation)
{
    struct trace *trace = operation->cluster->grid->watch->trace;
    if (trace != NULL) trace_operation(trace, operation, "completes");
}

void watch_moved(const struct agent_operation *operation, enum moved what, uint64_t bytes)
{
    if (operation->cluster->counts != NULL) profile_moved(operation, what, bytes);
}
