/* Reports: one block of text each. */
#include "machine/async/mbarrier.h"
#include "machine/tensor/sms.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const code_names[REPORT_CODE_COUNT] = {
    [REPORT_NONE] = "nothing", [REPORT_OUT_OF_BOUNDS] = "out-of-bounds access", [REPORT_MISALIGNED] = "misaligned access",
    [REPORT_UNINITIALISED] = "uninitialised read", [REPORT_DIVERGENCE] = "divergence at a collective instruction",
    [REPORT_DEADLOCK] = "deadlock", [REPORT_TRAP] = "trap", [REPORT_ASSERT] = "assertion", [REPORT_ILLEGAL] = "illegal instruction",
    [REPORT_BARRIER] = "misused barrier", [REPORT_RACE] = "race", [REPORT_PROXY] = "missing proxy fence",
    [REPORT_ASYNC] = "asynchronous operation not waited for",
    [REPORT_RESOURCES] = "out of resources", [REPORT_SCHEDULES] = "schedules disagree",
};

static const char *const wait_names[WAIT_KIND_COUNT] = {
    [WAIT_NONE] = "nothing",
    [WAIT_CONVERGENCE] = "the other lanes of the warp",
    [WAIT_BARRIER] = "barrier",
    [WAIT_WARP_BARRIER] = "bar.warp.sync",
    [WAIT_CLUSTER_BARRIER] = "barrier.cluster",
    [WAIT_MBARRIER] = "mbarrier",
    [WAIT_ASYNC_GROUP] = "copies",
    [WAIT_MMA] = "matrix products",
    [WAIT_TENSOR_MEMORY] = "tensor memory",
    [WAIT_REGISTERS] = "registers",
    [WAIT_SLEEP] = "time",
    [WAIT_GRID] = "another grid",
};

const char *wait_name(enum wait_kind kind) { return wait_names[kind]; }

const char *report_code_name(enum report_code code) { return code < REPORT_CODE_COUNT ? code_names[code] : "unknown"; }

/* Text that grows in a buffer and stops at its end. */
struct text { char *at; size_t left; };

__attribute__((format(printf, 2, 3)))
static void add(struct text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(t->at, t->left, format, arguments);
    va_end(arguments);
    const size_t used = length < 0 ? 0 : (size_t)length < t->left ? (size_t)length : t->left - 1;
    t->at += used;
    t->left -= used;
}

static void add_line(struct text *t, const struct module *m, uint32_t line)
{
    size_t length;
    const char *source = ptx_source_line(m, line, &length);
    while (length > 0 && (*source == ' ' || *source == '\t')) source++, length--;
    add(t, "  PTX      line %u: %.*s\n", line, (int)(length > 120 ? 120 : length), source);
}

static void add_place(struct text *t, const struct report *r)
{
    add(t, "  where    kernel %s, CTA (%u,%u,%u), warp %u", r->kernel, r->cta[0], r->cta[1], r->cta[2], r->warp);
    if (r->lane < LANES) add(t, ", lane %u", r->lane);
    add(t, "\n");
}

static void fill_source(struct report *r, const struct module *m, const struct insn *in)
{
    if (in->location == 0 || in->location >= m->location_count) return;
    const struct location *l = &m->locations[in->location];
    if (l->file < m->file_count) r->source_file = m->files[l->file];
    r->source_line = l->line;
}

/* True for the first report of the grid: it is kept. */
static bool first(struct grid *grid)
{
    const bool was = atomic_exchange(&grid->reported, true);
    return !was;
}

trap warp_fault(struct warp *w, const struct insn *in, uint32_t lane, enum report_code code, const char *format, ...)
{
    struct grid *grid = w->cta->cluster->grid;
    if (!first(grid)) {
        atomic_store(&grid->stop, true);
        return TRAP_FAULT;
    }
    struct report *r = &grid->report;
    *r = (struct report){ .code = code, .kernel = grid->function->name, .warp = w->index, .lane = lane, .ptx_line = in->line,
                          .pc = (uint32_t)(in - grid->code), .section = in->row->section };
    memcpy(r->cta, w->cta->id, sizeof r->cta);
    fill_source(r, grid->module, in);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->sentence, sizeof r->sentence, format, arguments);
    va_end(arguments);
    struct text t = { r->text, sizeof r->text };
    add(&t, "cudasim: %s\n  what     %s\n", report_code_name(code), r->sentence);
    add_place(&t, r);
    add_line(&t, grid->module, r->ptx_line);
    if (r->source_file != NULL) add(&t, "  source   %s:%u\n", r->source_file, r->source_line);
    add(&t, "  manual   PTX ISA, %s\n", r->section);
    atomic_store(&grid->stop, true);
    return TRAP_FAULT;
}

static void add_mbarrier(struct text *t, const struct cta *cta, uint32_t address, uint32_t parity)
{
    char state[96];
    add(t, " 0x%x, parity %u", address, parity);
    if (mbarrier_describe(cta, address - cta->shared_base, state, sizeof state)) add(t, " (%s)", state);
}

/* Columns that somebody holds, or the peer CTA of a pair, which has to do the same. */
static void add_tensor_memory(struct text *t, const struct cta *cta, const struct group *g)
{
    add(t, ": %llu columns", (unsigned long long)g->wait.object);
    if (g->wait.detail != 0) {
        add(t, ", together with its peer, CTA rank %u,", cta->rank ^ 1);
        return;
    }
    const struct sm_columns *sm = sms_of(cta);
    for (uint32_t c = 0, last = 0; c < TENSOR_COLUMNS; c++) {
        const struct cta *holder = sm->holder[c];
        if (holder == NULL || (c + 1 < TENSOR_COLUMNS && sm->holder[c + 1] == holder)) {
            last = holder == NULL ? c + 1 : last;
            continue;
        }
        add(t, ", while CTA (%u,%u,%u) holds columns %u to %u", holder->id[0], holder->id[1], holder->id[2], last, c);
        last = c + 1;
    }
    if (sm->permit != NULL && sm->permit != cta)
        add(t, ", while CTA (%u,%u,%u) has not executed tcgen05.relinquish_alloc_permit", sm->permit->id[0], sm->permit->id[1],
            sm->permit->id[2]);
    add(t, ",");
}

static void add_waiting(struct text *t, const struct grid *grid, const struct warp *w, const struct group *g)
{
    const struct insn *in = &grid->code[g->pc];
    add(t, "  CTA (%u,%u,%u) warp %u lanes 0x%08x wait for %s", w->cta->id[0], w->cta->id[1], w->cta->id[2], w->index, g->lanes,
        g->blocked ? wait_names[g->wait.kind] : "nothing: they run without end");
    if (g->blocked && g->wait.kind == WAIT_BARRIER) add(t, " %llu", (unsigned long long)g->wait.object);
    if (g->blocked && g->wait.kind == WAIT_MBARRIER)
        add_mbarrier(t, w->cta, (uint32_t)g->wait.object, (uint32_t)g->wait.detail);
    if (g->blocked && g->wait.kind == WAIT_MMA && g->wait.object != 0)
        add(t, " of PTX line %llu, to which warp %llu has not come,", (unsigned long long)g->wait.object,
            (unsigned long long)g->wait.detail);
    if (g->blocked && g->wait.kind == WAIT_TENSOR_MEMORY) add_tensor_memory(t, w->cta, g);
    add(t, " at PTX line %u", in->line);
    if (in->location != 0 && grid->module->locations[in->location].file < grid->module->file_count)
        add(t, " (%s:%u)", grid->module->files[grid->module->locations[in->location].file],
            grid->module->locations[in->location].line);
    add(t, "\n");
}

/* Who waits for what.  Lanes that wait for the rest of their warp while the rest cannot come are divergence, not deadlock. */
void report_deadlock(struct cluster *c)
{
    struct grid *grid = c->grid;
    if (!first(grid)) {
        atomic_store(&grid->stop, true);
        return;
    }
    struct report *r = &grid->report;
    *r = (struct report){ .code = REPORT_DEADLOCK, .kernel = grid->function->name, .lane = NO_LANE, .section = "" };
    memcpy(r->cta, c->cta[0].id, sizeof r->cta);
    struct text t = { r->text, sizeof r->text };
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
             r->code == REPORT_DEADLOCK ? "nothing in the cluster can go on"
                                        : "lanes wait at an instruction that the other lanes of their warp do not reach");
    add(&t, "cudasim: %s\n  what     %s\n  where    kernel %s, cluster of CTA (%u,%u,%u)\n", report_code_name(r->code), r->sentence,
        r->kernel, r->cta[0], r->cta[1], r->cta[2]);
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++)
            for (uint32_t k = 0; k < c->cta[i].warp[j].group_count; k++)
                add_waiting(&t, grid, &c->cta[i].warp[j], &c->cta[i].warp[j].groups[k]);
    atomic_store(&grid->stop, true);
}
