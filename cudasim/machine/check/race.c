/* What shared memory remembers of its accesses, and which of them conflict.
 *
 * Two accesses conflict if they touch the same byte, one of them writes, and they are neither both strong (atomics,
 * relaxed, volatile) nor both additions of engines.  A conflict is a race unless the earlier one is ordered before the
 * later one (PTX ISA, memory consistency model: causality order); where a generic write meets the async proxy, or that
 * overwrites what was read, a proxy fence must lie on the way.
 * A granule of four bytes of shared memory keeps its last writer and three readers with the bytes they touched: a
 * reader may be forgotten, never invented.
 * Global memory keeps last writers alone, those of the same cluster; other clusters: between.h. */
#include "race.h"
#include "between.h"
#include "dependent.h"
#include "machine/core/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who accesses: a lane, or an operation that carries its issuer's knowledge. */
struct accessor {
    struct warp *warp;
    const struct insn *in;
    uint32_t lane;
    const knowledge *known;
    struct mark mark;                     /* as it will be remembered, but for the mask */
    uint32_t actors;
    bool fenced;                          /* needs a proxy fence behind generic writes */
    bool sees_copies;                     /* but not behind those of cp.async */
    bool fenced_reads;                    /* and behind generic reads of what it writes */
    bool fence_orders;                    /* such a fence, told by a relaxed arrival, is enough */
    bool same;                            /* writes the bytes that are there: no matter which of two such writers is the
                                             later
                                             one */
    uint32_t *broken;                     /* a bit for each rule that was broken and went on: counted once an access */
    uint64_t sound_writer;                /* the last writer that was found to be ordered: clock << 32 | actor */
    uint32_t turn;                        /* which reader is forgotten next */
};

static struct granule *granules_of(struct cta *cta)
{
    if (cta->shadow.granule == NULL)
        cta->shadow.granule = calloc(cta->shared_bytes / GRANULE_BYTES + 1, sizeof *cta->shadow.granule);
    return cta->shadow.granule;
}

static bool is_ordered(const struct accessor *a, const struct mark *m)
{
    return m->actor == a->mark.actor || a->known[m->actor] >= m->clock;
}

static bool needs_fence(const struct accessor *a, const struct mark *m)
{
    if (a->sees_copies && m->actor >= a->warp->cta->cluster->clocks->threads) return false;
    return a->fenced && !m->async && a->known[a->actors + m->actor] < m->clock;
}

/* ---- the sentences ---- */

/* Whether this access has broken the rule before, which went on. */
static bool broke_before(const struct accessor *a, enum rule rule)
{
    const bool before = (*a->broken >> rule & 1) != 0;
    *a->broken |= 1u << rule;
    return before;
}

static void describe(char *text, size_t size, const struct accessor *a, const struct mark *m)
{
    const struct cluster *c = a->warp->cta->cluster;
    const struct insn *in = &c->grid->code[m->pc];
    const uint32_t warps = c->cta[0].warps, warp = m->actor / LANES;
    if (m->actor >= c->clocks->threads)
        snprintf(text, size, "an asynchronous operation issued at PTX line %u (%s)", in->line, in->row->section);
    else
        snprintf(text, size, "CTA rank %u warp %u lane %u at PTX line %u", warp / warps, warp % warps, m->actor % LANES,
                 in->line);
}

static const char *space_of(uint64_t address) { return address > UINT32_MAX ? "global" : "shared"; }

enum conflict { READ_AFTER_WRITE, WRITE_AFTER_WRITE, WRITE_AFTER_READ };

static trap report_race(const struct accessor *a, const struct mark *m, uint64_t address, enum conflict conflict)
{
    static const char *const verbs[] = { "reads", "overwrites", "overwrites" };
    static const char *const earlier[] = { "written", "written", "read" };
    const bool other_async = m->actor >= a->warp->cta->cluster->clocks->threads;
    char who[160];
    if (broke_before(a, other_async ? RULE_OPERATION_WAIT : RULE_RACE)) return TRAP_NONE;
    describe(who, sizeof who, a, m);
    if (other_async)
        return warp_breaks(a->warp, a->in, a->lane, RULE_OPERATION_WAIT,
                          "%s the byte at %s address 0x%llx, which is %s by %s; this thread does not know that it has "
                          "completed: it has not waited for it, nor for anybody who has",
                          verbs[conflict], space_of(address), (unsigned long long)address, earlier[conflict], who);
    return warp_breaks(a->warp, a->in, a->lane, RULE_RACE,
                      "%s the byte at %s address 0x%llx, which was %s by %s; no barrier or other synchronisation "
                      "orders the two",
                      verbs[conflict], space_of(address), (unsigned long long)address, earlier[conflict], who);
}

static trap report_proxy(const struct accessor *a, const struct mark *m, uint64_t address, enum conflict conflict)
{
    char who[160];
    const enum rule rule = conflict == WRITE_AFTER_READ ? RULE_READ_PROXY_FENCE : RULE_WRITE_PROXY_FENCE;
    if (broke_before(a, rule)) return TRAP_NONE;
    describe(who, sizeof who, a, m);
    return warp_breaks(a->warp, a->in, a->lane, rule,
                      "%s through the async proxy the byte at %s address 0x%llx, which was %s through the generic "
                      "proxy by %s; no fence.proxy.async lies between",
                      conflict == READ_AFTER_WRITE ? "reads" : "overwrites", space_of(address),
                      (unsigned long long)address, conflict == WRITE_AFTER_READ ? "read" : "written", who);
}

/* ---- one granule ---- */

static uint32_t first_byte(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }

/* Strong accesses, and the engines' reductions, which are relaxed atomics element by element, do not race with each
 * other. */
static bool agree(const struct mark *a, const struct mark *b)
{
    return (a->strong || a->adds) && (b->strong || b->adds);
}

/* Some thread has read what was written there, and this access comes behind that. */
static bool was_read(const struct accessor *a, const struct granule *g, uint32_t mask)
{
    for (int i = 0; i < READER_MARKS; i++) {
        const struct mark *m = &g->reader[i];
        if (m->clock != 0 && !m->async && (g->writer.mask & mask & ~m->mask) == 0 && is_ordered(a, m)) return true;
    }
    return false;
}

/* seen: whoever overwrites it knows that it was written, by a read that returned it. */
static trap check_writer(struct accessor *a, const struct mark *m, uint32_t mask, uint64_t address, bool writes,
                         bool seen)
{
    const uint64_t key = (uint64_t)m->clock << 32 | m->actor;
    if (m->clock == 0 || (m->mask & mask) == 0 || key == a->sound_writer) return TRAP_NONE;
    if (agree(m, &a->mark)) return TRAP_NONE;
    const uint64_t byte = address + first_byte(m->mask & mask);
    const enum conflict conflict = writes ? WRITE_AFTER_WRITE : READ_AFTER_WRITE;
    if (!is_ordered(a, m))
        return a->same && m->actor < a->warp->cta->cluster->clocks->threads ? TRAP_NONE
                                                                            : report_race(a, m, byte, conflict);
    if (!seen && needs_fence(a, m)) return report_proxy(a, m, byte, conflict);
    a->sound_writer = key;
    return TRAP_NONE;
}

static trap check_readers(const struct accessor *a, const struct granule *g, uint32_t mask, uint32_t address)
{
    for (int i = 0; i < READER_MARKS; i++) {
        const struct mark *m = &g->reader[i];
        if (m->clock == 0 || (m->mask & mask) == 0 || agree(m, &a->mark)) continue;
        const uint32_t byte = address + first_byte(m->mask & mask);
        const bool fenced = a->fence_orders && !m->async && a->known[a->actors + m->actor] >= m->clock;
        trap t = TRAP_NONE;
        if (!is_ordered(a, m) && !fenced) t = report_race(a, m, byte, WRITE_AFTER_READ);
        else if (a->fenced_reads && needs_fence(a, m)) t = report_proxy(a, m, byte, WRITE_AFTER_READ);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

static struct mark mark_of(const struct accessor *a, uint32_t mask)
{
    struct mark m = a->mark;
    m.mask = mask & 15;
    return m;
}

static void remember_write(struct accessor *a, struct granule *g, uint32_t mask)
{
    g->writer = mark_of(a, mask);
    for (int i = 0; i < READER_MARKS; i++)
        if ((g->reader[i].mask & ~mask) == 0) g->reader[i].clock = 0;
}

static bool same_warp(const struct accessor *a, const struct mark *m)
{
    return m->actor < a->warp->cta->cluster->clocks->threads && m->actor / LANES == a->mark.actor / LANES;
}

/* A reader of the same warp, or one that is ordered before, gives way; then an empty place; else anybody. */
static void remember_read(struct accessor *a, struct granule *g, uint32_t mask)
{
    struct mark *place = NULL;
    for (int i = 0; i < READER_MARKS; i++) {
        struct mark *m = &g->reader[i];
        if (m->clock == 0) {
            if (place == NULL) place = m;
        } else if (m->actor == a->mark.actor && m->clock == a->mark.clock) {
            m->mask |= mask & 15;
            return;
        } else if (same_warp(a, m) || is_ordered(a, m)) {
            place = m;
        }
    }
    if (place == NULL) place = &g->reader[a->turn++ % READER_MARKS];
    *place = mark_of(a, mask);
}

enum pass { CHECK_READ, CHECK_WRITE, REMEMBER_READ, REMEMBER_WRITE };

static trap visit(struct accessor *a, struct cta *cta, uint32_t offset, uint32_t bytes, enum pass pass)
{
    struct granule *granules = granules_of(cta);
    if (granules == NULL) return TRAP_NONE;
    const uint32_t end = offset + bytes;
    for (uint32_t at = offset & ~3u; at < end; at += GRANULE_BYTES) {
        struct granule *g = &granules[at / GRANULE_BYTES];
        uint32_t mask = 15;
        if (at < offset) mask &= 15u << (offset - at);
        if (at + GRANULE_BYTES > end) mask &= 15u >> (at + GRANULE_BYTES - end);
        trap t = TRAP_NONE;
        switch (pass) {
        case CHECK_READ: t = check_writer(a, &g->writer, mask, cta->shared_base | at, false, false); break;
        case CHECK_WRITE:
            t = check_writer(a, &g->writer, mask, cta->shared_base | at, true, was_read(a, g, mask));
            if (t == TRAP_NONE) t = check_readers(a, g, mask, cta->shared_base | at);
            break;
        case REMEMBER_READ: remember_read(a, g, mask); break;
        case REMEMBER_WRITE: remember_write(a, g, mask); break;
        }
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* ---- global memory ---- */

static uint32_t page_place(const struct cluster_clocks *c, uint64_t number)
{
    uint32_t at = (uint32_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & (c->page_capacity - 1);
    while (c->page[at] != NULL && c->page[at]->number != number) at = (at + 1) & (c->page_capacity - 1);
    return at;
}

static bool more_pages(struct cluster_clocks *c)
{
    if (c->pages >= MOST_PAGES) return false;
    if (2 * (c->pages + 1) <= c->page_capacity) return true;
    struct cluster_clocks larger = *c;
    larger.page_capacity = c->page_capacity == 0 ? 64 : 2 * c->page_capacity;
    larger.page = calloc(larger.page_capacity, sizeof *larger.page);
    if (larger.page == NULL) return false;
    for (uint32_t i = 0; i < c->page_capacity; i++)
        if (c->page[i] != NULL) larger.page[page_place(&larger, c->page[i]->number)] = c->page[i];
    free(c->page);
    *c = larger;
    return true;
}

/* NULL: this cluster has written nothing there (or, where it is to be made: no more is remembered). */
static struct global_page *page_at(struct cluster_clocks *c, uint64_t number, bool make)
{
    struct global_page *found = c->page_capacity == 0 ? NULL : c->page[page_place(c, number)];
    if (found != NULL || !make || !more_pages(c)) return found;
    found = calloc(1, sizeof *found);
    if (found == NULL) return NULL;
    found->number = number;
    c->page[page_place(c, number)] = found;
    c->pages++;
    return found;
}

static trap visit_global(struct accessor *a, uint64_t address, uint64_t bytes, enum pass pass)
{
    struct cluster_clocks *c = a->warp->cta->cluster->clocks;
    if (c->pages == 0 && pass != REMEMBER_WRITE) return TRAP_NONE;
    const uint64_t end = address + bytes;
    struct global_page *page = NULL;
    for (uint64_t at = address & ~UINT64_C(3); at < end; at += GRANULE_BYTES) {
        if (page == NULL || at / PAGE_BYTES != page->number) page = page_at(c, at / PAGE_BYTES, pass == REMEMBER_WRITE);
        if (page == NULL) {
            at = (at / PAGE_BYTES + 1) * PAGE_BYTES - GRANULE_BYTES;
            continue;
        }
        struct mark *writer = &page->writer[at % PAGE_BYTES / GRANULE_BYTES];
        uint32_t mask = 15;
        if (at < address) mask &= 15u << (address - at);
        if (at + GRANULE_BYTES > end) mask &= 15u >> (at + GRANULE_BYTES - end);
        if (pass == REMEMBER_WRITE) {
            *writer = mark_of(a, mask);
            continue;
        }
        const trap t = check_writer(a, writer, mask, at, pass == CHECK_WRITE, false);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

bool race_wrote_global(const struct cluster *cluster, uint64_t address, uint64_t bytes)
{
    const struct cluster_clocks *c = cluster->clocks;
    if (c == NULL || c->pages == 0) return false;
    for (uint64_t at = address & ~UINT64_C(3); at < address + bytes; at += GRANULE_BYTES) {
        const struct global_page *page = c->page[page_place(c, at / PAGE_BYTES)];
        if (page != NULL && page->writer[at % PAGE_BYTES / GRANULE_BYTES].clock != 0) return true;
    }
    return false;
}

/* ---- generic accesses ---- */

static bool stores_the_same(const struct access *access, uint32_t lane)
{
    return access->stored != NULL && memcmp(access->host[lane], &access->stored[lane], access->bytes) == 0;
}

static struct accessor lane_accessor(struct warp *w, const struct insn *in, uint32_t lane, const struct access *access,
                                     uint32_t *broken)
{
    const struct cluster_clocks *c = w->cta->cluster->clocks;
    return (struct accessor){
        .warp = w, .in = in, .lane = lane, .known = known_to(w, lane), .same = stores_the_same(access, lane),
        .actors = c->actors, .turn = (uint32_t)w->cta->cluster->now, .broken = broken,
        .mark = { .clock = w->clocks->clock[lane], .actor = actor_of(w, lane) & 0xfffff, .strong = access->strong,
                  .pc = (uint32_t)(in - w->cta->cluster->grid->code) },
    };
}

/* All lanes are looked at before any is remembered: lanes of one instruction do not race with each other. */
trap race_check(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *access)
{
    uint32_t broken = 0;
    FOR_LANES(l, lanes) {
        if (access->owner[l] == NULL) continue;
        struct accessor a = lane_accessor(w, in, l, access, &broken);
        const trap t =
            visit(&a, access->owner[l], access->offset[l], access->bytes, access->writes ? CHECK_WRITE : CHECK_READ);
        if (t != TRAP_NONE) return t;
    }
    FOR_LANES(l, lanes) {
        if (access->owner[l] == NULL) continue;
        struct accessor a = lane_accessor(w, in, l, access, &broken);
        visit(&a, access->owner[l], access->offset[l], access->bytes, access->writes ? REMEMBER_WRITE : REMEMBER_READ);
    }
    return TRAP_NONE;
}

trap race_check_global(struct warp *w, const struct insn *in, const struct access *access)
{
    trap before = dependent_lanes(w, in, access);
    if (before == TRAP_NONE) before = between_lanes(w, in, access);
    if (before != TRAP_NONE) return before;
    if (!access->writes && w->cta->cluster->clocks->pages == 0) return TRAP_NONE;
    uint32_t broken = 0;
    FOR_LANES(l, access->global) {
        struct accessor a = lane_accessor(w, in, l, access, &broken);
        const trap t = visit_global(&a, access->address[l], access->bytes, access->writes ? CHECK_WRITE : CHECK_READ);
        if (t != TRAP_NONE) return t;
    }
    if (!access->writes) return TRAP_NONE;
    FOR_LANES(l, access->global) {
        struct accessor a = lane_accessor(w, in, l, access, &broken);
        visit_global(&a, access->address[l], access->bytes, REMEMBER_WRITE);
    }
    return TRAP_NONE;
}

/* ---- operations ---- */

static struct accessor token_accessor(struct async_token *token, bool adds)
{
    return (struct accessor){
        .warp = token->warp, .in = token->in, .lane = token->lane, .known = token->known, .actors = token->actors,
        .fenced = token->proxy == PROXY_ASYNC, .sees_copies = token->sees_copies,
        .broken = &token->broken,
        .mark = { .clock = token->clock, .actor = token->actor & 0xfffff, .async = token->proxy == PROXY_ASYNC,
                  .adds = adds,
                  .pc = (uint32_t)(token->in - token->warp->cta->cluster->grid->code) },
    };
}

static trap unwritten(const struct async_token *token, const struct cta *cta, uint32_t offset, uint32_t bytes)
{
    if (!cta->cluster->grid->machine->options.check_uninitialised) return TRAP_NONE;
    uint32_t missing = 0;
    for (uint32_t i = 0; i < bytes; i++) missing += (cta->shadow.state[offset + i] & SHADOW_WRITTEN) == 0;
    if (missing == 0) return TRAP_NONE;
    return warp_fault(token->warp, token->in, token->lane, REPORT_UNINITIALISED,
                      "reads %u bytes at shared address 0x%x, of which nothing has written %u", bytes,
                      cta->shared_base | offset, missing);
}

trap async_looks(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    if (token->known == NULL) return TRAP_NONE;
    struct accessor a = token_accessor(token, false);
    return visit(&a, cta, offset, bytes, CHECK_READ);
}

trap async_reads(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    if (token->known != NULL) {
        struct accessor a = token_accessor(token, false);
        const trap t = visit(&a, cta, offset, bytes, CHECK_READ);
        if (t != TRAP_NONE) return t;
        visit(&a, cta, offset, bytes, REMEMBER_READ);
    }
    return unwritten(token, cta, offset, bytes);
}

enum reads { ORDERED, FENCED, FENCE_ORDERS };

/* reads: what is demanded of generic reads before it. */
static trap writes(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes, bool adds,
                   enum reads reads)
{
    for (uint32_t i = 0; i < bytes; i++)
        if ((cta->shadow.state[offset + i] & SHADOW_BARRIER) != 0)
            return warp_fault(token->warp, token->in, token->lane, REPORT_BARRIER,
                              "writes bytes of a live mbarrier at shared address 0x%x",
                              cta->shared_base | (offset + i));
    if (token->known == NULL) return TRAP_NONE;
    struct accessor a = token_accessor(token, adds);
    a.fenced_reads = reads != ORDERED;
    a.fence_orders = reads == FENCE_ORDERS;
    const trap t = visit(&a, cta, offset, bytes, CHECK_WRITE);
    if (t != TRAP_NONE) return t;
    return visit(&a, cta, offset, bytes, REMEMBER_WRITE);
}

static enum reads reads_wanted(const struct cta *cta)
{
    return cta->cluster->grid->machine->options.read_fences == READ_FENCES_ALWAYS ? FENCED : ORDERED;
}

trap async_writes(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    return writes(token, cta, offset, bytes, false, reads_wanted(cta));
}

trap async_writes_fenced(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    return writes(token, cta, offset, bytes, false, FENCE_ORDERS);
}

trap async_adds(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes)
{
    const trap t = writes(token, cta, offset, bytes, true, reads_wanted(cta));
    return t != TRAP_NONE ? t : unwritten(token, cta, offset, bytes);
}

/* What other grids and other clusters have done there. */
static trap others_check(const struct async_token *token, uint64_t address, uint64_t bytes, bool writes, bool adds)
{
    const struct between_access x = { address, bytes, writes, adds, NULL, NULL };
    const trap t = dependent_bytes(token->warp, token->in, token->lane, token->known, address, bytes, writes);
    return t != TRAP_NONE ? t : between_check(token->warp, token->in, token->lane, &x);
}

trap async_reads_global(struct async_token *token, uint64_t address, uint64_t bytes)
{
    if (token->known == NULL) return TRAP_NONE;
    const trap before = others_check(token, address, bytes, false, false);
    if (before != TRAP_NONE) return before;
    struct accessor a = token_accessor(token, false);
    return visit_global(&a, address, bytes, CHECK_READ);
}

static trap writes_global(struct async_token *token, uint64_t address, uint64_t bytes, bool adds)
{
    if (token->known == NULL) return TRAP_NONE;
    const trap before = others_check(token, address, bytes, true, adds);
    if (before != TRAP_NONE) return before;
    struct accessor a = token_accessor(token, adds);
    const trap t = visit_global(&a, address, bytes, CHECK_WRITE);
    return t != TRAP_NONE ? t : visit_global(&a, address, bytes, REMEMBER_WRITE);
}

trap async_writes_global(struct async_token *token, uint64_t address, uint64_t bytes)
{
    return writes_global(token, address, bytes, false);
}

trap async_adds_global(struct async_token *token, uint64_t address, uint64_t bytes)
{
    return writes_global(token, address, bytes, true);
}

void async_written(struct cta *cta, uint32_t offset, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) cta->shadow.state[offset + i] |= SHADOW_WRITTEN;
}
