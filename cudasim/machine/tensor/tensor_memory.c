/* Tensor memory: allocation, and the order of accesses.  See tensor_memory.h. */
#include "tensor_memory.h"
#include "machine/check/clocks.h"
#include "machine/core/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory of an SM ---- */

static void release(struct sm *sm)
{
    struct tensor_memory *m = sm->tensor;
    for (uint32_t i = 0; m != NULL && m->warp != NULL && i < m->warps; i++) {
        free(m->warp[i].fence), free(m->warp[i].wait);
        free(m->warp[i].known);
    }
    for (uint32_t c = 0; m != NULL && c < TENSOR_COLUMNS; c++) free(m->column[c]);
    if (m != NULL) free(m->warp), free(m->value), free(m->valid);
    free(m);
    free(sm);
}

struct tensor_memory *tensor_memory_of(struct warp *w, const struct insn *in)
{
    enum { CELLS = TENSOR_LANES * TENSOR_COLUMNS };
    struct cta *cta = w->cta;
    if (cta->sm != NULL) return cta->sm->tensor;
    struct sm *sm = calloc(1, sizeof *sm);
    if (sm != NULL) sm->tensor = calloc(1, sizeof *sm->tensor);
    struct tensor_memory *m = sm == NULL ? NULL : sm->tensor;
    if (m != NULL) {
        m->warps = cta->warps;
        m->warp = calloc(m->warps, sizeof *m->warp);
        m->value = calloc(CELLS, sizeof *m->value);
        m->valid = calloc(CELLS, sizeof *m->valid);
        if (m->warp != NULL && m->value != NULL && m->valid != NULL) {
            cta->sm = sm;
            return m;
        }
    }
    if (sm != NULL) release(sm);
    warp_fault(w, in, NO_LANE, REPORT_RESOURCES, "finds no host memory");
    return NULL;
}

void tensor_memory_close(struct cta *cta)
{
    if (cta->sm != NULL) release(cta->sm);
    cta->sm = NULL;
}

/* ---- allocation ---- */

static bool is_free(const struct cta *cta, uint32_t first, uint32_t columns)
{
    for (uint32_t i = 0; cta != NULL && i < columns; i++)
        if (sms_of(cta)->holder[first + i] != NULL) return false;
    return true;
}

static bool may_allocate(const struct cta *cta)
{
    return cta == NULL || sms_of(cta)->permit == NULL || sms_of(cta)->permit == cta;
}

static void take(struct cta *cta, uint32_t first, uint32_t columns)
{
    struct tensor_memory *m = cta->sm->tensor;
    sms_of(cta)->permit = cta;
    for (uint32_t i = 0; i < columns; i++) {
        sms_of(cta)->holder[first + i] = cta;
        m->first[first + i] = (uint16_t)(first + 1);
    }
    m->size[first] = (uint16_t)columns;
    m->last_size = columns;
    /* nothing is defined */
    for (uint32_t l = 0; l < TENSOR_LANES; l++) memset(&m->valid[l * TENSOR_COLUMNS + first], 0, columns);
    for (uint32_t c = first; c < first + columns; c++) {
        if (m->touched[c]) memset(m->column[c], 0, TENSOR_LANES * sizeof *m->column[c]);
        m->touched[c] = false;
    }
}

int tensor_allocate(struct cta *cta, struct cta *peer, uint32_t columns)
{
    if (!may_allocate(cta) || !may_allocate(peer)) return -1;
    for (uint32_t first = 0; first + columns <= TENSOR_COLUMNS; first += columns) {
        if (!is_free(cta, first, columns) || !is_free(peer, first, columns)) continue;
        take(cta, first, columns);
        if (peer != NULL) take(peer, first, columns);
        return (int)first;
    }
    return -1;
}

void tensor_relinquish(struct cta *cta)
{
    cta->sm->tensor->relinquished = true;
    if (sms_of(cta)->permit == cta) sms_of(cta)->permit = NULL;
    sms_event(cta->cluster);
}

static bool is_pending(const struct tensor_memory *m, const struct tensor_mark *mark, enum tensor_direction direction)
{
    return mark->warp != 0 && mark->access >= m->warp[mark->warp - 1].waited[direction];
}

static uint32_t line_of(const struct warp *w, const struct tensor_mark *mark)
{
    return w->cta->cluster->grid->code[mark->pc].line;
}

static const char *const name[] = { [TENSOR_LOAD] = "ld", [TENSOR_STORE] = "st" };

static trap report_in_flight(struct warp *w, const struct insn *in, const struct tensor_mark *mark,
                             enum tensor_direction direction)
{
    return warp_breaks(w, in, NO_LANE, RULE_TENSOR_ACCESS_WAIT,
                      "frees columns that the tcgen05.%s of warp %u at PTX line %u may still access; "
                      "that warp has executed no tcgen05.wait::%s since",
                      name[direction], mark->warp - 1, line_of(w, mark), name[direction]);
}

/* Whether the warp knows, by any synchronisation, that the other warp has waited for its access. */
static bool is_over(const struct warp *w, const struct tensor_memory *m, const struct tensor_mark *mark,
                    enum tensor_direction direction)
{
    const struct tensor_warp *other = &m->warp[mark->warp - 1];
    const struct warp *from = &w->cta->warp[mark->warp - 1];
    const uint32_t *fenced = m->warp[w->index].known;
    uint32_t i = 0;
    if (w->clocks == NULL || from == w) return true;
    while (i < other->waits && other->wait[i].waited[direction] <= mark->access) i++;
    if (i == other->waits) return false;
    FOR_LANES(l, UINT32_MAX) {
        const uint32_t actor = actor_of(from, l), clock = other->wait[i].clock[l];
        if (fenced != NULL && fenced[actor] >= clock) return true;
        FOR_LANES(own, w->live) if (known_to(w, own)[actor] >= clock) return true;
    }
    return false;
}

static trap check_over(struct warp *w, const struct insn *in, const struct tensor_memory *m,
                       const struct tensor_mark *mark, enum tensor_direction direction)
{
    if (mark->warp == 0) return TRAP_NONE;
    if (is_pending(m, mark, direction)) return report_in_flight(w, in, mark, direction);
    if (is_over(w, m, mark, direction)) return TRAP_NONE;
    return warp_breaks(w, in, NO_LANE, RULE_TENSOR_ACCESS_ORDER,
                      "frees columns that the tcgen05.%s of warp %u at PTX line %u accesses; "
                      "no synchronisation behind that warp's tcgen05.wait::%s lies between",
                      name[direction], mark->warp - 1, line_of(w, mark), name[direction]);
}

static bool is_same(const struct tensor_mark *a, const struct tensor_mark *b)
{
    return a->warp == b->warp && a->access == b->access;
}

/* No access may be in flight, and all must be known to be over.  The cells of an instruction have the same marks. */
static trap check_idle(struct warp *w, const struct insn *in, const struct tensor_memory *m, uint32_t first,
                       uint32_t columns)
{
    struct tensor_cell last = { .writer = { 0 } };
    for (uint32_t c = first; c < first + columns; c++)
        for (uint32_t l = 0; m->touched[c] && l < TENSOR_LANES; l++) {
            const struct tensor_cell *cell = &m->column[c][l];
            trap t =
                is_same(&cell->writer, &last.writer) ? TRAP_NONE : check_over(w, in, m, &cell->writer, TENSOR_STORE);
            for (int i = 0; i < WARPS_OF_QUARTER && t == TRAP_NONE; i++)
                if (!is_same(&cell->reader[i], &last.reader[i]))
                    t = check_over(w, in, m, &cell->reader[i], TENSOR_LOAD);
            if (t != TRAP_NONE) return t;
            last = *cell;
        }
    return TRAP_NONE;
}

trap tensor_check_allocated(struct warp *w, const struct insn *in, struct tensor_memory *m, uint32_t address,
                            uint32_t columns)
{
    if (address >= TENSOR_COLUMNS || m->size[address] == 0)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "frees tensor memory at 0x%x, where no allocation begins",
                          address);
    if (m->size[address] != columns)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "frees %u columns at 0x%x, where %u were allocated", columns,
                          address, m->size[address]);
    return check_idle(w, in, m, address, columns);
}

void tensor_free(struct cta *cta, uint32_t address, uint32_t columns)
{
    struct tensor_memory *m = cta->sm->tensor;
    m->size[address] = 0;
    memset(&m->first[address], 0, columns * sizeof m->first[0]);
    for (uint32_t i = 0; i < columns; i++) sms_of(cta)->holder[address + i] = NULL;
    sms_event(cta->cluster);
}

trap tensor_cta_ends(struct warp *w, const struct insn *in)
{
    if (w->cta->sm == NULL) return TRAP_NONE;
    const struct tensor_memory *m = w->cta->sm->tensor;
    for (uint32_t c = 0; c < TENSOR_COLUMNS; c++)
        if (m->size[c] != 0)
            return warp_fault(w, in, NO_LANE, REPORT_RESOURCES,
                              "ends the CTA while %u columns of tensor memory at 0x%x are allocated; "
                              "no tcgen05.dealloc has freed them", m->size[c], c);
    tensor_relinquish(w->cta);
    return TRAP_NONE;
}

/* ---- order ---- */

/* Whether some fence::before_thread_sync of the other warp, one of the CTA, lies behind its wait for the access, and
 * this warp knew of it when it executed its fence::after_thread_sync. */
static bool is_fenced(const struct warp *w, const struct cta *cta, const struct tensor_mark *mark,
                      enum tensor_direction direction)
{
    const struct tensor_warp *other = &cta->sm->tensor->warp[mark->warp - 1];
    const uint32_t *known = w->cta->sm->tensor->warp[w->index].known;
    const struct warp *from = &cta->warp[mark->warp - 1];
    if (w->clocks == NULL) return true; /* not watched */
    uint32_t low = 0, high = other->fences; /* the first fence that covers it; a later one may be another lane's */
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (other->fence[middle].waited[direction] > mark->access) high = middle;
        else low = middle + 1;
    }
    for (; known != NULL && low < other->fences; low++)
        FOR_LANES(l, other->fence[low].lanes) if (known[actor_of(from, l)] >= other->fence[low].clock[l]) return true;
    return false;
}

static trap check(struct warp *w, const struct insn *in, const struct cta *cta, const struct tensor_mark *mark,
                  enum tensor_direction before, bool writes, uint32_t lane, uint32_t column)
{
    if (mark->warp == 0) return TRAP_NONE;
    const bool pending = is_pending(cta->sm->tensor, mark, before);
    const bool own = cta == w->cta && mark->warp == w->index + 1;
    if (!pending && (own || is_fenced(w, cta, mark, before))) return TRAP_NONE;
    const char *verb = writes ? "writes" : "reads";
    if (pending)
        return warp_breaks(w, in, NO_LANE, RULE_TENSOR_ACCESS_WAIT,
                          "%s lane %u, column %u of tensor memory, which the tcgen05.%s of warp %u at PTX line %u "
                          "accesses; that warp has executed no tcgen05.wait::%s since",
                          verb, lane, column, name[before], mark->warp - 1, line_of(w, mark), name[before]);
    return warp_breaks(w, in, NO_LANE, RULE_TENSOR_ACCESS_ORDER,
                      "%s lane %u, column %u of tensor memory, which the tcgen05.%s of warp %u at PTX line %u "
                      "accesses; tcgen05.fence::before_thread_sync there, a synchronisation, and "
                      "tcgen05.fence::after_thread_sync here do not all lie between",
                      verb, lane, column, name[before], mark->warp - 1, line_of(w, mark));
}

static trap check_all(struct warp *w, const struct insn *in, const struct cta *cta, const struct tensor_cell *cell,
                      bool writes, uint32_t lane, uint32_t column)
{
    trap t = check(w, in, cta, &cell->writer, TENSOR_STORE, writes, lane, column);
    for (int i = 0; t == TRAP_NONE && writes && i < WARPS_OF_QUARTER; i++)
        t = check(w, in, cta, &cell->reader[i], TENSOR_LOAD, writes, lane, column);
    return t;
}

trap tensor_touch(struct warp *w, const struct insn *in, enum tensor_direction direction, uint32_t lane,
                  uint32_t column)
{
    struct tensor_memory *m = w->cta->sm->tensor;
    if (column >= TENSOR_COLUMNS || m->first[column] == 0)
        return warp_fault(w, in, NO_LANE, REPORT_OUT_OF_BOUNDS, "%s column %u of tensor memory, which is not allocated",
                          direction == TENSOR_LOAD ? "reads" : "writes", column);
    if (tensor_is_being_freed(m, column, 1))
        return warp_fault(w, in, NO_LANE, REPORT_ASYNC,
                          "%s column %u of tensor memory, which a tcgen05.dealloc of its CTA frees",
                          direction == TENSOR_LOAD ? "reads" : "writes", column);
    if (m->column[column] == NULL) m->column[column] = calloc(TENSOR_LANES, sizeof *m->column[column]);
    if (m->column[column] == NULL) return warp_fault(w, in, NO_LANE, REPORT_RESOURCES, "finds no host memory");
    struct tensor_cell *cell = &m->column[column][lane];
    const trap t = check_all(w, in, w->cta, cell, direction == TENSOR_STORE, lane, column);
    struct tensor_mark *mark = direction == TENSOR_STORE ? &cell->writer : &cell->reader[w->index / TENSOR_QUARTERS];
    const uint32_t pc = (uint32_t)(in - w->cta->cluster->grid->code);
    m->touched[column] = true;
    *mark = (struct tensor_mark){ .access = m->warp[w->index].accesses, .pc = pc & 0xffffff,
                                  .warp = (w->index + 1) & 0xff };
    return t;
}

trap tensor_check_cell(struct warp *w, const struct insn *in, struct cta *cta, bool writes, uint32_t lane,
                       uint32_t column)
{
    struct tensor_cell *cell = &cta->sm->tensor->column[column][lane];
    const trap t = check_all(w, in, cta, cell, writes, lane, column);
    if (writes) memset(cell, 0, sizeof *cell);
    return t;
}

/* ---- waits and fences ---- */

/* What the warp has waited for so far, and when; NULL: no host memory. */
static struct tensor_fence *add(struct tensor_fence **list, uint32_t *count, uint32_t *capacity)
{
    if (*count == *capacity) {
        const uint32_t more = *capacity == 0 ? 16 : 2 * *capacity;
        struct tensor_fence *larger = realloc(*list, more * sizeof *larger);
        if (larger == NULL) return NULL;
        *list = larger;
        *capacity = more;
    }
    return &(*list)[(*count)++];
}

bool tensor_wait(struct warp *w, struct tensor_memory *m, enum tensor_direction direction)
{
    struct tensor_warp *t = &m->warp[w->index];
    t->waited[direction] = t->accesses;
    if (w->clocks == NULL) return true;
    struct tensor_fence *f = t->waits == 0 ? NULL : &t->wait[t->waits - 1];
    /* nothing released since */
    const bool again = f != NULL && memcmp(f->clock, w->clocks->clock, sizeof f->clock) == 0;
    if (!again) f = add(&t->wait, &t->waits, &t->wait_capacity);
    if (f == NULL) return false;
    *f = (struct tensor_fence){ .waited = { t->waited[0], t->waited[1] } };
    memcpy(f->clock, w->clocks->clock, sizeof f->clock);
    return true;
}

bool tensor_fence_before(struct warp *w, struct tensor_memory *m, uint32_t lanes)
{
    struct tensor_warp *t = &m->warp[w->index];
    if (w->clocks == NULL) return true;
    struct tensor_fence *f = add(&t->fence, &t->fences, &t->fence_capacity);
    if (f == NULL) return false;
    *f = (struct tensor_fence){ .serial = w->cta->cluster->operation_serial, .waited = { t->waited[0], t->waited[1] },
                                .lanes = lanes };
    memcpy(f->clock, w->clocks->clock, sizeof f->clock);
    return true;
}

static bool learn(struct warp *w, struct tensor_memory *m, uint32_t lanes)
{
    struct tensor_warp *t = &m->warp[w->index];
    if (w->clocks == NULL) return true;
    const uint32_t actors = w->cta->cluster->clocks->actors;
    if (t->known == NULL) t->known = calloc(actors, sizeof *t->known);
    if (t->known == NULL) return false;
    FOR_LANES(l, lanes) {
        const knowledge *k = known_to(w, l);
        for (uint32_t i = 0; i < actors; i++) t->known[i] = t->known[i] > k[i] ? t->known[i] : k[i];
    }
    return true;
}

bool tensor_fence_after(struct warp *w, struct tensor_memory *m, uint32_t lanes)
{
    if (!learn(w, m, lanes)) return false;
    const knowledge *carried = w->clocks == NULL ? NULL : w->clocks->carried;
    uint32_t *known = m->warp[w->index].known;
    for (uint32_t i = 0; carried != NULL && i < w->cta->cluster->clocks->actors; i++)
        known[i] = known[i] > carried[i] ? known[i] : carried[i];
    return true;
}

bool tensor_copies_are_seen(const struct warp *w)
{
    const struct grid *grid = w->cta->cluster->grid;
    return grid->machine->options.tensor_fences == TENSOR_FENCES_USED && !grid->module->proxy_fences;
}

static bool are_implied(const struct warp *w)
{
    const struct grid *grid = w->cta->cluster->grid;
    return grid->machine->options.tensor_fences == TENSOR_FENCES_USED && !grid->module->tensor_fences;
}

bool tensor_implied_before(struct warp *w, struct tensor_memory *m, uint32_t lanes)
{
    return !are_implied(w) || tensor_fence_before(w, m, lanes);
}

bool tensor_implied_after(struct warp *w, struct tensor_memory *m, uint32_t lanes)
{
    return !are_implied(w) || learn(w, m, lanes);
}
