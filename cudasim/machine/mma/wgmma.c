/* The sequence of a warpgroup's instructions, and its products under way: see wgmma.h. */
#include "wgmma.h"
#include "row_use.h"
#include "wgmma_multiply.h"
#include "machine/core/random.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"

#include <stdlib.h>
#include <string.h>

enum { ALL_WARPS = (1 << GROUP_WARPS) - 1, LEAST_STEPS = 1, MOST_STEPS = 1024, LONGEST_LEAD = 1024 };

/* ---- the warpgroup ---- */

static struct warp *first_warp(const struct warp *w) { return &w->cta->warp[w->index / GROUP_WARPS * GROUP_WARPS]; }

struct warpgroup *warpgroup_of(const struct warp *w) { return first_warp(w)->engine[ENGINE_TENSOR]; }

static struct wgmma_warp *member(struct warpgroup *g, const struct warp *w) { return &g->warp[w->index % GROUP_WARPS]; }

static struct warpgroup *make_group(struct warp *w)
{
    struct warpgroup *g = calloc(1, sizeof *g);
    if (g == NULL) return NULL;
    g->cta = w->cta;
    g->first_warp = first_warp(w)->index;
    g->workspace = wgmma_workspace();
    for (int i = 0; i < GROUP_WARPS; i++) g->warp[i].last = &g->warp[i].part;
    first_warp(w)->engine[ENGINE_TENSOR] = g;
    if (g->workspace != NULL) return g;
    free(g);
    first_warp(w)->engine[ENGINE_TENSOR] = NULL;
    return NULL;
}

static trap no_memory(struct warp *w, const struct insn *in)
{
    return warp_fault(w, in, NO_LANE, REPORT_RESOURCES, "finds no host memory");
}

/* ---- the sequence ---- */

/* Entries that all four have executed are forgotten. */
static void forget(struct warpgroup *g)
{
    uint32_t done = 0;
    while (done < g->entries && g->entry[done].warps == ALL_WARPS) done++;
    if (done == 0) return;
    memmove(g->entry, g->entry + done, (g->entries - done) * sizeof *g->entry);
    g->entries -= done;
    g->first += done;
}

static struct wgmma_entry *append(struct warpgroup *g, uint32_t pc)
{
    if (g->entries == g->capacity) {
        const uint32_t capacity = g->capacity == 0 ? 64 : 2 * g->capacity;
        struct wgmma_entry *larger = realloc(g->entry, capacity * sizeof *larger);
        if (larger == NULL) return NULL;
        g->entry = larger;
        g->capacity = capacity;
    }
    g->entry[g->entries] = (struct wgmma_entry){ .pc = pc };
    return &g->entry[g->entries++];
}

static uint32_t first_other(const struct wgmma_entry *e) { return (uint32_t)__builtin_ctz(e->warps); }

struct wgmma_entry *wgmma_take_place(struct warp *w, const struct insn *in, uint32_t lanes, trap *t)
{
    const struct insn *code = w->cta->cluster->grid->code;
    *t = TRAP_FAULT;
    if (lanes != UINT32_MAX) {
        warp_fault(w, in, NO_LANE, REPORT_DIVERGENCE,
                   "is executed by some lanes of the warp (0x%08x); it needs a whole warpgroup", lanes);
        return NULL;
    }
    if (first_warp(w)->index + GROUP_WARPS > w->cta->warps) {
        warp_fault(w, in, NO_LANE, REPORT_DIVERGENCE,
                   "needs a warpgroup of four warps; the CTA's %u warps leave warp %u without one", w->cta->warps,
                   w->index);
        return NULL;
    }
    struct warpgroup *g = warpgroup_of(w);
    if (g == NULL) g = make_group(w);
    if (g == NULL || !rows_watch(w)) {
        no_memory(w, in);
        return NULL;
    }
    struct wgmma_warp *m = member(g, w);
    if (g->entries == g->capacity) forget(g);
    const uint64_t place = m->executed - g->first;
    if (place == 0) cluster_event(w->cta->cluster); /* for those that are too far ahead */
    if (place >= LONGEST_LEAD) {
        *t = warp_wait(w, WAIT_MMA, 0, 0);
        return NULL;
    }
    struct wgmma_entry *e = place < g->entries ? &g->entry[place] : append(g, (uint32_t)(in - code));
    if (e == NULL) {
        no_memory(w, in);
        return NULL;
    }
    if (&code[e->pc] != in) {
        warp_fault(
            w, in, NO_LANE, REPORT_DIVERGENCE,
            "is executed while warp %u of the warpgroup executes PTX line %u in its place; "
            "the four warps must execute the same",
            g->first_warp + first_other(e), code[e->pc].line);
        return NULL;
    }
    for (uint32_t i = 0; i < GROUP_WARPS; i++)
        if (w->cta->warp[g->first_warp + i].live == 0 && g->warp[i].executed <= m->executed) {
            warp_fault(w, in, NO_LANE, REPORT_DIVERGENCE, "needs the four warps of its warpgroup; warp %u has ended",
                       g->first_warp + i);
            return NULL;
        }
    e->warps |= 1u << w->index % GROUP_WARPS;
    m->executed++;
    *t = TRAP_NONE;
    return e;
}

/* ---- products ---- */

static trap step(struct agent_operation *operation, bool *done)
{
    struct wgmma_product *p = (struct wgmma_product *)operation;
    wgmma_multiply(p, p->group->workspace);
    *done = true;
    return TRAP_NONE;
}

static void complete(struct agent_operation *operation)
{
    struct wgmma_product *p = (struct wgmma_product *)operation;
    for (int i = 0; i < GROUP_WARPS; i++) p->part[i]->complete = true;
}

static const struct agent_kind product_kind = {
    .name = "wgmma.mma_async", .engine = ENGINE_TENSOR, .step = step, .complete = complete
};

/* Under a random schedule some complete soon, some late. */
static uint64_t longest(struct cluster *c)
{
    static const uint64_t most[] = { 8, 64, 256, MOST_STEPS };
    return c->grid->machine->options.schedule == SCHEDULE_RANDOM ? most[cluster_random(c) % 4] : MOST_STEPS;
}

static void start(struct wgmma_product *p, struct warp *w, const struct insn *in)
{
    p->operation.kind = &product_kind;
    p->operation.cluster = w->cta->cluster;
    p->operation.cta = w->cta;
    p->operation.warp = w;
    p->operation.in = in;
    p->operation.lane = NO_LANE;
    p->operation.order = (uint64_t)(uintptr_t)p->group;
    agent_start(&p->operation, LEAST_STEPS, longest(w->cta->cluster));
}

static bool same_in_all_lanes(const uint64_t *row)
{
    for (uint32_t l = 1; l < LANES; l++)
        if (row[l] != row[0]) return false;
    return true;
}

static trap uniform(struct warp *w, const struct insn *in, const struct operand *o, const char *what, uint64_t *value)
{
    const uint64_t *row = source_row(w, o);
    if (!same_in_all_lanes(row))
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "has a %s that is not the same in all lanes", what);
    *value = row[0];
    return TRAP_NONE;
}

/* What must be the same in all four warps. */
struct common {
    uint64_t a, b, accumulates;
};

static trap read_common(struct warp *w, const struct insn *in, const struct wgmma_form *form, struct common *c)
{
    *c = (struct common){ 0 };
    trap t = uniform(w, in, form->b, "descriptor of B", &c->b);
    if (t == TRAP_NONE && !form->a_in_registers) t = uniform(w, in, form->a, "descriptor of A", &c->a);
    if (t == TRAP_NONE) t = uniform(w, in, form->scale_d, "predicate scale-d", &c->accumulates);
    c->accumulates = (c->accumulates & 1) ^ form->scale_d->negated;
    return t;
}

static struct wgmma_product *make_product(struct warp *w, const struct insn *in, const struct wgmma_form *form,
                                          const struct common *c, trap *t)
{
    struct wgmma_product *p = calloc(1, sizeof *p);
    struct wgmma_reads *reads = calloc(1, sizeof *reads);
    *t = TRAP_FAULT;
    if (p == NULL || reads == NULL) {
        free(p), free(reads);
        no_memory(w, in);
        return NULL;
    }
    char why[128];
    p->reads = reads;
    p->form = form;
    p->group = warpgroup_of(w);
    p->a_descriptor = c->a;
    p->b_descriptor = c->b;
    p->accumulates = c->accumulates != 0;
    const bool a_legal = form->a_in_registers || matrix_of_wgmma(c->a, form->a_mn_major, &p->a, why, sizeof why);
    if (a_legal && matrix_of_wgmma(c->b, form->b_mn_major, &p->b, why, sizeof why)) {
        *t = TRAP_NONE;
        return p;
    }
    warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "takes %s by the descriptor 0x%llx, which %s", a_legal ? "B" : "A",
               (unsigned long long)(a_legal ? c->b : c->a), why);
    free(p), free(reads);
    return NULL;
}

static trap compare(struct warp *w, const struct insn *in, const struct wgmma_product *p, const struct common *c)
{
    const char *what = p->a_descriptor != c->a                   ? "descriptor of A"
                       : p->b_descriptor != c->b                 ? "descriptor of B"
                       : p->accumulates != (c->accumulates != 0) ? "predicate scale-d"
                                                                 : NULL;
    if (what == NULL) return TRAP_NONE;
    return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                      "has a %s that is not the same in the four warps of the warpgroup", what);
}

/* One warp's look at a matrix.  All of a product's tokens end together: what one of them remembers counts for all. */
struct reading {
    struct warp *w;
    const struct insn *in;
    struct async_token *token;
    const struct matrix_layout *layout;
    char name;
    /* async_reads or async_looks */
    trap (*read)(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
};

static trap read_chunks(const struct reading *r, uint32_t first_chunk, uint32_t chunks, uint32_t first_line,
                        uint32_t lines)
{
    const uint32_t lowest = r->w->cta->cluster->grid->machine->device->shared_reserved;
    uint32_t run = 0, run_bytes = 0;
    trap t = TRAP_NONE;
    for (uint32_t l = first_line; l < first_line + lines; l++)
        for (uint32_t c = first_chunk; c < first_chunk + chunks; c++) {
            const uint32_t at = matrix_chunk(r->layout, c, l);
            if (at < lowest || at + CHUNK_BYTES > r->w->cta->shared_bytes)
                return warp_fault(r->w, r->in, NO_LANE, REPORT_OUT_OF_BOUNDS,
                                  "reads 16 bytes of %c at shared address 0x%x; the CTA's shared memory lies from 0x%x "
                                  "to 0x%x",
                                  r->name, at, lowest, r->w->cta->shared_bytes);
            if (run_bytes != 0 && at == run + run_bytes) {
                run_bytes += CHUNK_BYTES;
                continue;
            }
            if (run_bytes != 0) t = r->read(r->token, r->w->cta, run, run_bytes);
            if (t != TRAP_NONE) return t;
            run = at;
            run_bytes = CHUNK_BYTES;
        }
    return run_bytes == 0 ? TRAP_NONE : r->read(r->token, r->w->cta, run, run_bytes);
}

/* A swizzled row of K holds no more than its span: nothing says what would follow. */
static trap read_matrix(const struct reading *r, const struct wgmma_form *form, uint32_t first_row, uint32_t rows,
                        uint32_t k)
{
    const uint32_t k_bytes = k * form->bits / 8, per_chunk = CHUNK_BYTES * 8 / form->bits;
    if (r->layout->mn_major) return read_chunks(r, first_row / per_chunk, rows / per_chunk, 0, k);
    if (r->layout->swizzle != MATRIX_PLAIN && k_bytes > matrix_span(r->layout))
        return warp_fault(r->w, r->in, NO_LANE, REPORT_ILLEGAL,
                          "reads %u bytes of K in a row of %c, which a %u-byte swizzle does not hold", k_bytes, r->name,
                          matrix_span(r->layout));
    return read_chunks(r, 0, k_bytes / CHUNK_BYTES, first_row, rows);
}

static trap read_metadata(struct warp *w, const struct insn *in, const struct wgmma_form *form,
                          uint32_t metadata[LANES])
{
    const uint64_t *row = source_row(w, form->metadata);
    for (uint32_t l = 0; l < LANES; l++) metadata[l] = (uint32_t)row[l];
    for (uint32_t i = 0; i < WARP_ROWS; i++)
        for (uint32_t j = 0; j < form->a_k; j++)
            if (wgmma_sparse_index(form, metadata, i, j) < 0)
                return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                                  "has metadata that no row may have: row %u of the warp's 16, element %u of A", i, j);
    return TRAP_NONE;
}

/* A warp reads its own 16 rows of A and all of B. */
static trap read_operands(struct warp *w, const struct insn *in, const struct wgmma_form *form, struct wgmma_product *p)
{
    struct async_token *token = async_begin(w, in, UINT32_MAX, PROXY_ASYNC);
    if (token == NULL) return no_memory(w, in);
    p->reads->token[w->index % GROUP_WARPS] = token;
    trap t = TRAP_NONE;
    const struct reading a = { w, in, token, &p->a, 'A', async_reads };
    const struct reading b = { w, in, token, &p->b, 'B', p->reads->parts == 1 ? async_reads : async_looks };
    if (!form->a_in_registers) t = read_matrix(&a, form, w->index % GROUP_WARPS * WARP_ROWS, WARP_ROWS, form->a_k);
    if (t == TRAP_NONE) t = read_matrix(&b, form, 0, form->n, form->k);
    if (t == TRAP_NONE && form->sparse) t = read_metadata(w, in, form, p->metadata[w->index % GROUP_WARPS]);
    if (t == TRAP_NONE) t = rows_claim(w, in, form);
    return t;
}

trap wgmma_issue(struct warp *w, const struct insn *in, const struct wgmma_form *form, struct wgmma_entry *entry)
{
    struct common c;
    trap t = read_common(w, in, form, &c);
    if (t != TRAP_NONE) return t;
    if (entry->product == NULL) entry->product = make_product(w, in, form, &c, &t);
    else t = compare(w, in, entry->product, &c);
    if (t != TRAP_NONE) return t;
    struct wgmma_part *part = calloc(1, sizeof *part);
    if (part == NULL) return no_memory(w, in);
    *part = (struct wgmma_part){ .in = in, .base = w->group->base, .group = UNCOMMITTED };
    struct wgmma_product *p = entry->product;
    struct wgmma_warp *m = member(p->group, w);
    part->reads = p->reads;
    part->reads->parts++;
    *m->last = part; /* it is the warp's from here on, also where a report ends the grid */
    m->last = &part->next;
    p->part[w->index % GROUP_WARPS] = part;
    t = read_operands(w, in, form, p);
    if (t == TRAP_NONE && entry->warps == ALL_WARPS) {
        entry->product = NULL; /* it is the agents' now */
        start(p, w, in);
    }
    return t;
}

/* ---- groups ---- */

void wgmma_commit(struct warp *w)
{
    struct wgmma_warp *m = member(warpgroup_of(w), w);
    for (struct wgmma_part *p = m->part; p != NULL; p = p->next)
        if (p->group == UNCOMMITTED) p->group = m->groups;
    m->groups++;
}

static void drop_part(struct wgmma_part *p)
{
    if (--p->reads->parts == 0) {
        for (int i = 0; i < GROUP_WARPS; i++) async_end(p->reads->token[i]);
        free(p->reads);
    }
    free(p);
}

bool wgmma_wait(struct warp *w, uint64_t allowed)
{
    struct warpgroup *g = warpgroup_of(w);
    struct wgmma_warp *m = member(g, w);
    const uint64_t through = m->groups > allowed ? m->groups - allowed : 0; /* groups 0 ... through - 1 */
    for (const struct wgmma_part *p = m->part; p != NULL && p->group < through; p = p->next)
        if (!p->complete) return false;
    const uint64_t object = group_object(w, 0, SYNC_GROUP_WGMMA);
    while (m->part != NULL && m->part->group < through) {
        struct wgmma_part *p = m->part;
        for (int i = 0; i < GROUP_WARPS; i++) async_publish(p->reads->token[i], object);
        rows_release(w, p);
        m->part = p->next;
        if (m->part == NULL) m->last = &m->part;
        drop_part(p);
    }
    checks_acquire(w, UINT32_MAX, object);
    forget(g);
    return true;
}

uint32_t wgmma_missing(const struct warp *w, uint32_t *warp)
{
    const struct warpgroup *g = warpgroup_of(w);
    for (uint32_t i = 0; i < g->entries; i++) {
        const struct wgmma_entry *e = &g->entry[i];
        if (e->product == NULL) continue;
        *warp = g->first_warp + (uint32_t)__builtin_ctz(~e->warps);
        return w->cta->cluster->grid->code[e->pc].line;
    }
    return 0;
}

/* ---- the end of a warp ---- */

trap wgmma_warp_ends(struct warp *w, const struct insn *in)
{
    struct warpgroup *g = warpgroup_of(w);
    if (g == NULL) return TRAP_NONE;
    struct wgmma_warp *m = member(g, w);
    const struct insn *code = w->cta->cluster->grid->code;
    if (m->part != NULL)
        return warp_fault(w, in, NO_LANE, REPORT_ASYNC, "ends the warp while the wgmma.mma_async at PTX line %u %s",
                          m->part->in->line,
                          m->part->group == UNCOMMITTED ? "is in no wgmma-group: wgmma.commit_group is missing"
                                                        : "has not been waited for by wgmma.wait_group");
    const uint64_t place = m->executed - g->first;
    if (place < g->entries)
        return warp_fault(
            w, in, NO_LANE, REPORT_DIVERGENCE,
            "ends the warp, while warp %u of its warpgroup has executed PTX line %u, which all four warps must execute",
            g->first_warp + first_other(&g->entry[place]), code[g->entry[place].pc].line);
    return TRAP_NONE;
}

void wgmma_close(struct warp *w)
{
    if (w->index % GROUP_WARPS != 0 || w->engine[ENGINE_TENSOR] == NULL) return;
    struct warpgroup *g = w->engine[ENGINE_TENSOR];
    for (uint32_t i = 0; i < g->entries; i++) free(g->entry[i].product);
    for (uint32_t i = 0; i < GROUP_WARPS; i++)
        while (g->warp[i].part != NULL) {
            struct wgmma_part *p = g->warp[i].part;
            g->warp[i].part = p->next;
            drop_part(p);
        }
    free(g->workspace), free(g->entry), free(g);
    w->engine[ENGINE_TENSOR] = NULL;
}
