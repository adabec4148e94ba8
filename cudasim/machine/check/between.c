/* Clocks of clusters, and what global memory remembers of them. */
#include "between.h"
#include "machine/core/global_memory.h"
#include "machine/core/report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A mark: the cluster's number + 1 << 16 | its clock << 5 | strong << 4 | which of the four bytes. */
enum { GRANULE = 4, PAGE_BYTES = 4096, STRONG = 16, CLOCK_SHIFT = 5, CLUSTER_SHIFT = 16 };
enum { MOST_CLOCK = (1 << (CLUSTER_SHIFT - CLOCK_SHIFT)) - 1, MOST_CLUSTERS = (1 << 16) - 2 };
struct page { _Atomic uint32_t writer[PAGE_BYTES / GRANULE], reader[PAGE_BYTES / GRANULE]; };

/* Words that clusters synchronise on; those beyond the table's size share places, which orders too much. */
enum { MOST_WORDS = 4096, MOST_ROW_BYTES = 64 << 20, MOMENTS = 3000 };
struct meeting { uint64_t address; uint16_t *known; };

struct between {
    pthread_mutex_t lock;
    struct meeting word[MOST_WORDS];
    uint32_t words, most_words;
    _Atomic bool exhausted;
    _Atomic int patience;                 /* moments that threads may still wait for one another */
    uint32_t allocations;
    _Atomic(_Atomic(struct page *) *) pages[];                 /* by allocation, then by page */
};

/* Of each cluster: the clock up to which all that it did is ordered before this one. */
struct cluster_order {
    uint16_t clock, fenced;               /* its own; what lies before its last fence */
    uint16_t *known, *seen;               /* seen: by strong reads; known behind the next fence.  NULL: nothing */
};

/* ---- state ---- */

void between_open(struct grid *grid)
{
    const struct machine *machine = grid->machine;
    if (grid->clusters < 2 || grid->clusters > MOST_CLUSTERS || !machine->options.check_races) return;
    if (machine->options.rule[RULE_CLUSTER_RACE] == RULE_OFF) return;
    struct between *b = calloc(1, sizeof *b + machine->memory.count * sizeof b->pages[0]);
    if (b == NULL) return;
    pthread_mutex_init(&b->lock, NULL);
    const uint64_t rows = MOST_ROW_BYTES / (grid->clusters * sizeof(uint16_t));
    b->most_words = rows > MOST_WORDS / 2 ? MOST_WORDS / 2 : rows < 16 ? 16 : (uint32_t)rows;
    b->allocations = machine->memory.count;
    b->patience = MOMENTS;
    grid->between = b;
}

static uint64_t pages_of(const struct allocation *a) { return (a->bytes + PAGE_BYTES - 1) / PAGE_BYTES; }

void between_close(struct grid *grid)
{
    struct between *b = grid->between;
    if (b == NULL) return;
    for (uint32_t i = 0; i < b->allocations; i++) {
        _Atomic(struct page *) *pages = atomic_load(&b->pages[i]);
        const uint64_t count = pages == NULL ? 0 : pages_of(&grid->machine->memory.allocation[i]);
        for (uint64_t p = 0; p < count; p++) free(atomic_load(&pages[p]));
        free(pages);
    }
    for (uint32_t i = 0; i < MOST_WORDS; i++) free(b->word[i].known);
    pthread_mutex_destroy(&b->lock);
    free(b);
    grid->between = NULL;
}

void between_leave(struct cluster *cluster)
{
    if (cluster->order == NULL) return;
    free(cluster->order->known), free(cluster->order->seen);
    free(cluster->order);
    cluster->order = NULL;
}

/* NULL: nothing is watched. */
static struct cluster_order *order_of(struct cluster *c)
{
    struct between *b = c->grid->between;
    if (b == NULL || atomic_load_explicit(&b->exhausted, memory_order_relaxed)) return NULL;
    if (c->order == NULL) {
        c->order = calloc(1, sizeof *c->order);
        if (c->order == NULL) atomic_store(&b->exhausted, true);
        else c->order->clock = 1;
    }
    return c->order;
}

/* ---- synchronisation ---- */

static void join(uint16_t *to, const uint16_t *from, uint64_t clusters)
{
    for (uint64_t i = 0; i < clusters; i++) to[i] = to[i] > from[i] ? to[i] : from[i];
}

static bool join_made(struct between *b, uint16_t **to, const uint16_t *from, uint64_t clusters)
{
    if (*to == NULL) *to = calloc(clusters, sizeof **to);
    if (*to == NULL) atomic_store(&b->exhausted, true);
    else join(*to, from, clusters);
    return *to != NULL;
}

static void tick(struct cluster_order *o)
{
    if (o->clock < MOST_CLOCK) o->clock++;
}

/* Under the lock.  Words beyond the limit share a place. */
static struct meeting *word_at(struct between *b, uint64_t address)
{
    if (b->words >= b->most_words) address &= 15;
    uint32_t at = (uint32_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % MOST_WORDS;
    while (b->word[at].known != NULL && b->word[at].address != address) at = (at + 1) % MOST_WORDS;
    return &b->word[at];
}

void between_writes(struct cluster *cluster, uint64_t address, bool releases)
{
    struct cluster_order *o = order_of(cluster);
    struct between *b = cluster->grid->between;
    const uint64_t clusters = cluster->grid->clusters;
    if (o == NULL || (!releases && o->fenced == 0)) return;
    const uint16_t told = releases ? o->clock : o->fenced;
    pthread_mutex_lock(&b->lock);
    struct meeting *word = word_at(b, address);
    if (word->known == NULL) {
        word->known = calloc(clusters, sizeof *word->known);
        word->address = b->words >= b->most_words ? address & 15 : address;
        b->words++;
    }
    if (word->known == NULL) {
        atomic_store(&b->exhausted, true);
    } else {
        if (o->known != NULL) join(word->known, o->known, clusters);
        if (word->known[cluster->index] < told) word->known[cluster->index] = told;
    }
    pthread_mutex_unlock(&b->lock);
    if (releases) tick(o);
}

void between_reads(struct cluster *cluster, uint64_t address, bool acquires)
{
    struct cluster_order *o = order_of(cluster);
    struct between *b = cluster->grid->between;
    if (o == NULL) return;
    pthread_mutex_lock(&b->lock);
    const struct meeting *word = word_at(b, address);
    if (word->known != NULL) join_made(b, acquires ? &o->known : &o->seen, word->known, cluster->grid->clusters);
    pthread_mutex_unlock(&b->lock);
}

void between_fence(struct cluster *cluster)
{
    struct cluster_order *o = order_of(cluster);
    if (o == NULL) return;
    if (o->seen != NULL) join_made(cluster->grid->between, &o->known, o->seen, cluster->grid->clusters);
    o->fenced = o->clock;
    tick(o);
}

/* ---- accesses ---- */

static struct page *page_at(struct between *b, const struct machine *machine, const struct allocation *a, uint64_t page)
{
    _Atomic(_Atomic(struct page *) *) *place = &b->pages[a - machine->memory.allocation];
    _Atomic(struct page *) *pages = atomic_load_explicit(place, memory_order_acquire);
    if (pages == NULL) {
        _Atomic(struct page *) *made = calloc(pages_of(a), sizeof *made);
        if (made == NULL) return NULL;
        if (atomic_compare_exchange_strong(place, &pages, made)) pages = made;
        else free(made);
    }
    struct page *found = atomic_load_explicit(&pages[page], memory_order_acquire);
    if (found != NULL) return found;
    struct page *made = calloc(1, sizeof *made);
    if (made == NULL || atomic_compare_exchange_strong(&pages[page], &found, made)) return made;
    free(made);
    return found;
}

/* Of another cluster, touching these bytes, not ordered before. */
static bool conflicts(const struct cluster *c, uint32_t mark, uint32_t mask, bool strong)
{
    const uint32_t other = mark >> CLUSTER_SHIFT, clock = mark >> CLOCK_SHIFT & MOST_CLOCK;
    if (other == 0 || other == c->index + 1 || (mark & mask) == 0) return false;
    if ((strong && (mark & STRONG) != 0) || clock == MOST_CLOCK) return false;
    return c->order->known == NULL || c->order->known[other - 1] < clock;
}

static trap report(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, bool writes, uint32_t mark,
                   bool written)
{
    const struct grid *grid = w->cta->cluster->grid;
    const uint32_t other = (mark >> CLUSTER_SHIFT) - 1, *extent = grid->clusters_extent, *ctas = grid->cluster_extent;
    const uint32_t x = other % extent[0] * ctas[0], y = other / extent[0] % extent[1] * ctas[1],
                   z = other / (extent[0] * extent[1]) * ctas[2];
    return warp_breaks(w, in, lane, RULE_CLUSTER_RACE,
                      "%s the byte at global address 0x%llx, which was %s by %s (%u,%u,%u) of the same grid; no "
                      "release and acquire through global memory order the two",
                      writes ? "overwrites" : "reads", (unsigned long long)address, written ? "written" : "read",
                      ctas[0] * ctas[1] * ctas[2] == 1 ? "CTA" : "the cluster of CTA", x, y, z);
}

static bool is_the_same(const struct between_access *x)
{
    return x->stored != NULL && memcmp(x->there, x->stored, x->bytes) == 0;
}

/* A host thread marks what it is about to write: it is given some time to do so, in all as long as a grid's patience
 * lasts. */
static bool writes_the_same(struct between *b, const struct machine *machine, const struct between_access *x)
{
    static const struct timespec moment = { .tv_nsec = 100 * 1000 };
    while (!is_the_same(x)) {
        if (x->stored == NULL || machine->options.threads == 1 || atomic_fetch_sub(&b->patience, 1) <= 0) return false;
        nanosleep(&moment, NULL);
    }
    return true;
}

/* Another byte of the same granule that this cluster touched at the same clock stays remembered. */
static void remember(_Atomic uint32_t *place, uint32_t old, uint32_t mark)
{
    if (((old ^ mark) & ~15u) == 0) mark |= old;
    if (mark != old) atomic_store_explicit(place, mark, memory_order_relaxed);
}

trap between_check(struct warp *w, const struct insn *in, uint32_t lane, const struct between_access *x)
{
    struct cluster *c = w->cta->cluster;
    struct between *b = c->grid->between;
    if (b == NULL || x->bytes == 0) return TRAP_NONE;
    const struct cluster_order *o = order_of(c);
    const struct machine *machine = c->grid->machine;
    const struct allocation *a = w->recent;
    if (a == NULL || x->address - a->base >= a->bytes) a = global_find(&machine->memory, x->address);
    if (a == NULL || o == NULL || a->read_only) return TRAP_NONE;
    const uint32_t own = (c->index + 1) << CLUSTER_SHIFT | (uint32_t)o->clock << CLOCK_SHIFT | (x->strong ? STRONG : 0);
    const uint64_t begin = x->address - a->base, end = begin + x->bytes < a->bytes ? begin + x->bytes : a->bytes;
    struct page *page = NULL;
    uint64_t number = UINT64_MAX;
    for (uint64_t at = begin & ~(uint64_t)(GRANULE - 1); at < end; at += GRANULE) {
        if (at / PAGE_BYTES != number) page = page_at(b, machine, a, number = at / PAGE_BYTES);
        if (page == NULL) return TRAP_NONE;
        uint32_t mask = 15;
        if (at < begin) mask &= 15u << (begin - at);
        if (at + GRANULE > end) mask &= 15u >> (at + GRANULE - end);
        const uint64_t i = at % PAGE_BYTES / GRANULE;
        const uint32_t writer = atomic_load_explicit(&page->writer[i], memory_order_relaxed),
                       reader = atomic_load_explicit(&page->reader[i], memory_order_relaxed);
        remember(x->writes ? &page->writer[i] : &page->reader[i], x->writes ? writer : reader, own | mask);
        trap t = TRAP_NONE;
        if (conflicts(c, writer, mask, x->strong) && !writes_the_same(b, machine, x))
            t = report(w, in, lane, a->base + at, x->writes, writer, true);
        else if (x->writes && conflicts(c, reader, mask, x->strong) && !is_the_same(x))
            t = report(w, in, lane, a->base + at, true, reader, false);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

trap between_lanes(struct warp *w, const struct insn *in, const struct access *access)
{
    if (w->cta->cluster->grid->between == NULL) return TRAP_NONE;
    FOR_LANES(l, access->global) {
        const void *const stored = access->writes && access->stored != NULL ? &access->stored[l] : NULL;
        const struct between_access x = { access->address[l], access->bytes, access->writes, access->strong,
                                          access->host[l], stored };
        const trap t = between_check(w, in, l, &x);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}
