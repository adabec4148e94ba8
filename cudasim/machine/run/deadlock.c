/* A cluster in which nothing can go on: who waits for what. */
#include "deadlock.h"
#include "machine/async/mbarrier.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"
#include "machine/tensor/sms.h"

#include <stdio.h>
#include <string.h>

static void add_heading(struct report_text *t, const struct report *r, const struct machine *machine)
{
    char name[REPORT_NAME_BYTES], device[REPORT_DEVICE_BYTES];
    report_add(t, "cudasim: %s\n  what     %s\n  where    kernel %s, cluster of CTA (%u,%u,%u)%s\n",
               report_code_name(r->code), r->sentence, report_name(r->kernel, name), r->cta[0], r->cta[1], r->cta[2],
               report_device(machine, device));
}

static void add_mbarrier(struct report_text *t, const struct cta *cta, uint32_t address, uint32_t parity)
{
    char state[96];
    report_add(t, " 0x%x, parity %u", address, parity);
    if (mbarrier_describe(cta, address - cta->shared_base, state, sizeof state)) report_add(t, " (%s)", state);
}

/* Columns that somebody holds, or the peer CTA of a pair, which has to do the same. */
static void add_tensor_memory(struct report_text *t, const struct cta *cta, const struct group *g)
{
    report_add(t, ": %llu columns", (unsigned long long)g->wait.object);
    if (g->wait.detail != 0) {
        report_add(t, ", together with its peer, CTA rank %u,", cta->rank ^ 1);
        return;
    }
    const struct sm_columns *sm = sms_of(cta);
    for (uint32_t c = 0, last = 0; c < TENSOR_COLUMNS; c++) {
        const struct cta *holder = sm->holder[c];
        if (holder == NULL || (c + 1 < TENSOR_COLUMNS && sm->holder[c + 1] == holder)) {
            last = holder == NULL ? c + 1 : last;
            continue;
        }
        report_add(t, ", while CTA (%u,%u,%u) holds columns %u to %u", holder->id[0], holder->id[1], holder->id[2],
                   last, c);
        last = c + 1;
    }
    if (sm->permit != NULL && sm->permit != cta)
        report_add(t, ", while CTA (%u,%u,%u) has not executed tcgen05.relinquish_alloc_permit", sm->permit->id[0],
                   sm->permit->id[1], sm->permit->id[2]);
    report_add(t, ",");
}

static void add_waiting(struct report_text *t, const struct grid *grid, const struct warp *w, const struct group *g)
{
    const struct insn *in = &grid->code[g->pc];
    report_add(t, "  CTA (%u,%u,%u) warp %u lanes 0x%08x wait for %s", w->cta->id[0], w->cta->id[1], w->cta->id[2],
               w->index, g->lanes, g->blocked ? wait_name(g->wait.kind) : "nothing: they run without end");
    if (g->blocked && g->wait.kind == WAIT_BARRIER) report_add(t, " %llu", (unsigned long long)g->wait.object);
    if (g->blocked && g->wait.kind == WAIT_MBARRIER)
        add_mbarrier(t, w->cta, (uint32_t)g->wait.object, (uint32_t)g->wait.detail);
    if (g->blocked && g->wait.kind == WAIT_MMA && g->wait.object != 0)
        report_add(t, " of PTX line %llu, to which warp %llu has not come,", (unsigned long long)g->wait.object,
            (unsigned long long)g->wait.detail);
    if (g->blocked && g->wait.kind == WAIT_TENSOR_MEMORY) add_tensor_memory(t, w->cta, g);
    report_add(t, " at PTX line %u", in->line);
    if (in->location != 0 && grid->module->locations[in->location].file < grid->module->file_count)
        report_add(t, " (%s:%u)", grid->module->files[grid->module->locations[in->location].file],
            grid->module->locations[in->location].line);
    report_add(t, "\n");
}

static void add_all_waiting(struct report_text *t, const struct cluster *c)
{
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++)
            for (uint32_t k = 0; k < c->cta[i].warp[j].group_count; k++)
                add_waiting(t, c->grid, &c->cta[i].warp[j], &c->cta[i].warp[j].groups[k]);
}

void report_steps(struct cluster *c, bool of_grid)
{
    struct grid *grid = c->grid;
    const struct machine_options *options = &grid->machine->options;
    if (report_begin(grid)) {
        struct report *r = &grid->report;
        *r = (struct report){ .code = REPORT_STEPS, .kernel = grid->function->name, .lane = NO_LANE, .section = "" };
        memcpy(r->cta, c->cta[0].id, sizeof r->cta);
        struct report_text t = { r->text, sizeof r->text };
        if (of_grid)
            snprintf(r->sentence, sizeof r->sentence,
                     "%llu of %llu clusters have taken more than %llu steps together, %d added for each: the limit is "
                     "ten times that of a cluster (--steps N; 0: none)",
                     (unsigned long long)atomic_load(&grid->ended) + 1, (unsigned long long)grid->clusters,
                     (unsigned long long)options->grid_step_limit, CLUSTER_STEPS);
        else
            snprintf(r->sentence, sizeof r->sentence,
                     "the cluster has not ended after %llu steps, the limit (--steps N, CUDASIM_STEPS; 0: none)",
                     (unsigned long long)options->step_limit);
        add_heading(&t, r, grid->machine);
        add_all_waiting(&t, c);
    }
    atomic_store(&grid->stop, true);
}

/* Who waits for what.  Lanes that wait for the rest of their warp while the rest cannot come are divergence, not
 * deadlock. */
void report_deadlock(struct cluster *c)
{
    struct grid *grid = c->grid;
    if (!report_begin(grid)) {
        atomic_store(&grid->stop, true);
        return;
    }
    struct report *r = &grid->report;
    *r = (struct report){ .code = REPORT_DEADLOCK, .kernel = grid->function->name, .lane = NO_LANE, .section = "" };
    memcpy(r->cta, c->cta[0].id, sizeof r->cta);
    struct report_text t = { r->text, sizeof r->text };
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++)
            for (uint32_t k = 0; k < c->cta[i].warp[j].group_count; k++) {
                const struct group *g = &c->cta[i].warp[j].groups[k];
                if (!g->blocked || g->wait.kind != WAIT_CONVERGENCE) continue;
                r->code = REPORT_DIVERGENCE;
                r->ptx_line = grid->code[g->pc].line;
                r->section = grid->code[g->pc].row->section;
                r->warp = j;
            }
    snprintf(r->sentence, sizeof r->sentence, "%s",
             r->code == REPORT_DEADLOCK
                 ? "nothing in the cluster can go on"
                 : "lanes wait at an instruction that the other lanes of their warp do not reach");
    add_heading(&t, r, grid->machine);
    add_all_waiting(&t, c);
    atomic_store(&grid->stop, true);
}
