/* What threads and operations know of each other: rows of knowledge, joined through synchronisation objects. */
#include "clocks.h"
#include "between.h"

#include <stdlib.h>
#include <string.h>

static knowledge *new_row(const struct cluster_clocks *c) { return calloc(2 * (size_t)c->actors, sizeof(knowledge)); }

static void join(knowledge *restrict to, const knowledge *restrict from, uint32_t actors)
{
    for (uint32_t i = 0; i < 2 * actors; i++) to[i] = to[i] > from[i] ? to[i] : from[i];
}

/* ---- objects ---- */

static uint32_t place_of(const struct cluster_clocks *c, uint64_t object)
{
    uint32_t at = (uint32_t)((object * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (c->capacity - 1);
    while (c->entry[at].object != 0 && c->entry[at].object != object) at = (at + 1) & (c->capacity - 1);
    return at;
}

static bool grow(struct cluster_clocks *c)
{
    if (2 * (c->entries + 1) <= c->capacity) return true;
    struct cluster_clocks larger = *c;
    larger.capacity = c->capacity == 0 ? 64 : 2 * c->capacity;
    larger.entry = calloc(larger.capacity, sizeof *larger.entry);
    if (larger.entry == NULL) return false;
    for (uint32_t i = 0; i < c->capacity; i++)
        if (c->entry[i].object != 0) larger.entry[place_of(&larger, c->entry[i].object)] = c->entry[i];
    free(c->entry);
    *c = larger;
    return true;
}

static const knowledge *find(const struct cluster_clocks *c, uint64_t object)
{
    return c->capacity == 0 ? NULL : c->entry[place_of(c, object)].known;
}

/* Beyond a limit memory words share an object: orders too much, never too little, so that nothing ordered is called a
 * race. */
static knowledge *find_or_make(struct cluster_clocks *c, uint64_t object)
{
    if (c->exhausted || !grow(c)) {
        c->exhausted = true;
        return NULL;
    }
    struct sync_entry *e = &c->entry[place_of(c, object)];
    if (e->object == 0) {
        e->known = new_row(c);
        if (e->known == NULL) {
            c->exhausted = true;
            return NULL;
        }
        e->object = object;
        c->entries++;
    }
    return e->known;
}

static uint64_t folded(const struct cluster_clocks *c, uint64_t object)
{
    const bool many = c->entries >= MOST_SYNC_OBJECTS && object >> 60 == SYNC_MEMORY;
    return many ? (uint64_t)SYNC_MEMORY << 60 | (object & 1023) : object;
}

/* ---- warps ---- */

bool clocks_open(struct cluster *cluster)
{
    if (!cluster->grid->machine->options.check_races) return true;
    struct cluster_clocks *c = cluster->clocks = calloc(1, sizeof *c);
    if (c == NULL) return false;
    c->threads = cluster->ctas * cluster->cta[0].warps * LANES;
    c->actors = c->threads + ASYNC_SLOTS + 1;
    for (uint32_t i = 0; i < cluster->ctas; i++)
        for (uint32_t j = 0; j < cluster->cta[i].warps; j++) {
            struct warp_clocks *w = cluster->cta[i].warp[j].clocks = calloc(1, sizeof *w);
            if (w == NULL || (w->common = new_row(c)) == NULL) return false;
            for (uint32_t l = 0; l < LANES; l++) w->clock[l] = 1;
        }
    return true;
}

static void free_warp(struct warp_clocks *w)
{
    if (w == NULL) return;
    for (uint32_t l = 0; l < LANES; l++) free(w->row[l]), free(w->fence_row[l]);
    free(w->common), free(w->fence_common), free(w->carried);
    free(w);
}

void clocks_close(struct cluster *cluster)
{
    for (uint32_t i = 0; cluster->cta != NULL && i < cluster->ctas; i++)
        for (uint32_t j = 0; cluster->cta[i].warp != NULL && j < cluster->cta[i].warps; j++)
            free_warp(cluster->cta[i].warp[j].clocks);
    struct cluster_clocks *c = cluster->clocks;
    if (c == NULL) return;
    for (uint32_t i = 0; i < c->capacity; i++) free(c->entry[i].known);
    free(c->entry);
    for (uint32_t i = 0; i < c->page_capacity; i++) free(c->page[i]);
    free(c->page);
    free(c);
}

static struct cluster_clocks *watched(const struct warp *w)
{
    struct cluster_clocks *c = w->cta->cluster->clocks;
    return c == NULL || c->exhausted ? NULL : c;
}

/* What the lanes know, their own past included, is joined into `to`; their clocks go on, so that what follows is not in
 * it. */
static void tell(struct warp *w, uint32_t lanes, knowledge *to, uint32_t actors)
{
    struct warp_clocks *k = w->clocks;
    if ((lanes & ~k->own) != 0) join(to, k->common, actors);
    FOR_LANES(l, lanes & k->own) join(to, k->row[l], actors);
    FOR_LANES(l, lanes) {
        const uint32_t self = actor_of(w, l);
        to[self] = k->clock[l]++;
        if (to[actors + self] < k->fenced[l]) to[actors + self] = k->fenced[l];
    }
}

void clocks_tell_proxied(struct warp *w, uint32_t lanes, uint64_t object)
{
    struct cluster_clocks *c = watched(w);
    knowledge *to = c == NULL || lanes == 0 ? NULL : find_or_make(c, folded(c, object));
    const struct warp_clocks *k = w->clocks;
    FOR_LANES(l, to == NULL ? 0 : lanes) {
        const knowledge *from = known_to(w, l);
        const uint32_t self = c->actors + actor_of(w, l);
        for (uint32_t i = c->actors; i < 2 * c->actors; i++) to[i] = to[i] > from[i] ? to[i] : from[i];
        if (to[self] < k->fenced[l]) to[self] = k->fenced[l];
    }
}

static bool give_row(struct warp *w, uint32_t lane, const struct cluster_clocks *c)
{
    struct warp_clocks *k = w->clocks;
    if (k->own >> lane & 1) return true;
    if (k->row[lane] == NULL) k->row[lane] = malloc(2 * (size_t)c->actors * sizeof(knowledge));
    if (k->row[lane] == NULL) return false;
    memcpy(k->row[lane], k->common, 2 * (size_t)c->actors * sizeof(knowledge));
    k->own |= 1u << lane;
    return true;
}

/* Lanes that have come to know the same share a row again. */
static void reunite(struct warp *w, const struct cluster_clocks *c)
{
    struct warp_clocks *k = w->clocks;
    const size_t bytes = 2 * (size_t)c->actors * sizeof(knowledge);
    const uint32_t own = k->own & w->live;
    if (own == 0) {
        k->own = 0;
        return;
    }
    const knowledge *first = k->row[__builtin_ctz(own)];
    if (own != w->live && memcmp(first, k->common, bytes) != 0) return;
    FOR_LANES(l, own) if (memcmp(k->row[l], first, bytes) != 0) return;
    memcpy(k->common, first, bytes);
    k->own = 0;
}

static void learn(struct warp *w, uint32_t lanes, const knowledge *from, struct cluster_clocks *c)
{
    struct warp_clocks *k = w->clocks;
    if (lanes == w->live) {
        join(k->common, from, c->actors);
        FOR_LANES(l, k->own & lanes) join(k->row[l], from, c->actors);
        if (k->own != 0) reunite(w, c);
        return;
    }
    FOR_LANES(l, lanes) {
        if (!give_row(w, l, c)) {
            c->exhausted = true;
            return;
        }
        join(k->row[l], from, c->actors);
    }
}

void checks_release(struct warp *w, uint32_t lanes, uint64_t object)
{
    struct cluster_clocks *c = watched(w);
    if (c == NULL || lanes == 0) return;
    knowledge *known = find_or_make(c, folded(c, object));
    if (known != NULL) tell(w, lanes, known, c->actors);
}

void checks_acquire(struct warp *w, uint32_t lanes, uint64_t object)
{
    struct cluster_clocks *c = watched(w);
    if (c == NULL || lanes == 0) return;
    const knowledge *known = find(c, folded(c, object));
    if (known != NULL) learn(w, lanes, known, c);
    if (c->carries) clocks_carry_in(w, object, false);
}

void checks_learn_grids(struct warp *w, uint32_t lanes)
{
    const uint64_t object = (uint64_t)SYNC_GRIDS << 60;
    struct cluster_clocks *c = watched(w);
    knowledge *known = c == NULL || lanes == 0 ? NULL : find_or_make(c, object);
    if (known == NULL) return;
    known[grids_actor(c)] = 1;
    learn(w, lanes, known, c);
}

static bool is_barrier(uint64_t object) { return object >> 60 == SYNC_MBARRIER || object >> 60 == SYNC_CLUSTER; }
static uint64_t beside(uint64_t object) { return object | UINT64_C(1) << 63; }

void clocks_carry_out(struct warp *w, uint32_t lanes, uint64_t object)
{
    struct cluster_clocks *c = watched(w);
    if (c == NULL || lanes == 0 || !is_barrier(object)) return;
    knowledge *known = find_or_make(c, beside(object));
    if (known == NULL) return;
    tell(w, lanes, known, c->actors);
    c->carries = true;
}

void clocks_carry_in(struct warp *w, uint64_t object, bool relaxed)
{
    struct cluster_clocks *c = watched(w);
    if (c == NULL || !is_barrier(object)) return;
    const knowledge *held = relaxed ? find(c, object) : NULL, *aside = find(c, beside(object));
    if (held == NULL && aside == NULL) return;
    if (w->clocks->carried == NULL) w->clocks->carried = new_row(c);
    if (w->clocks->carried == NULL) {
        c->exhausted = true;
        return;
    }
    if (held != NULL) join(w->clocks->carried, held, c->actors);
    if (aside != NULL) join(w->clocks->carried, aside, c->actors);
}

static bool keep_row(knowledge **kept, const knowledge *row, const struct cluster_clocks *c)
{
    if (*kept == NULL) *kept = new_row(c);
    if (*kept != NULL) memcpy(*kept, row, 2 * (size_t)c->actors * sizeof(knowledge));
    return *kept != NULL;
}

/* What the lanes know is kept for relaxed releases behind the fence; their clocks go on, so that what follows is not in
 * it. */
static bool keep_fenced(struct warp *w, uint32_t lanes, const struct cluster_clocks *c)
{
    struct warp_clocks *k = w->clocks;
    const uint32_t own = lanes == w->live ? k->own & lanes : lanes;
    if (own != lanes && !keep_row(&k->fence_common, k->common, c)) return false;
    FOR_LANES(l, own) if (!keep_row(&k->fence_row[l], known_to(w, l), c)) return false;
    k->fence_own = (k->fence_own & ~lanes) | own;
    FOR_LANES(l, lanes) k->fence_clock[l] = k->clock[l]++;
    return true;
}

void clocks_tell_fenced(struct warp *w, uint32_t lanes, uint64_t object)
{
    struct cluster_clocks *c = watched(w);
    const struct warp_clocks *k = w->clocks;
    FOR_LANES(l, c == NULL ? 0 : lanes) {
        if (k->fence_clock[l] == 0) continue;
        knowledge *to = find_or_make(c, folded(c, object));
        if (to == NULL) return;
        const uint32_t self = actor_of(w, l);
        join(to, k->fence_own >> l & 1 ? k->fence_row[l] : k->fence_common, c->actors);
        if (to[self] < k->fence_clock[l]) to[self] = k->fence_clock[l];
    }
}

void checks_fence(struct warp *w, uint32_t lanes)
{
    struct cluster_clocks *c = watched(w);
    if (c == NULL) return;
    if (lanes != 0) between_fence(w->cta->cluster);
    struct warp_clocks *k = w->clocks;
    FOR_LANES(l, lanes) {
        if (k->relaxed[l] == 0) continue;
        checks_acquire(w, 1u << l, k->relaxed[l]);
        k->relaxed[l] = 0;
    }
    k->fence_seen |= lanes;
    if (lanes != 0 && !keep_fenced(w, lanes, c)) c->exhausted = true;
}

void checks_proxy_fence(struct warp *w, uint32_t lanes)
{
    struct cluster_clocks *c = watched(w);
    if (c == NULL || lanes == 0) return;
    struct warp_clocks *k = w->clocks;
    const size_t bytes = c->actors * sizeof(knowledge);
    if (lanes == w->live) {
        memcpy(k->common + c->actors, k->common, bytes);
        FOR_LANES(l, k->own & lanes) memcpy(k->row[l] + c->actors, k->row[l], bytes);
    } else {
        FOR_LANES(l, lanes) {
            if (!give_row(w, l, c)) {
                c->exhausted = true;
                return;
            }
            memcpy(k->row[l] + c->actors, k->row[l], bytes);
        }
    }
    FOR_LANES(l, lanes) k->fenced[l] = k->clock[l]++;
}

/* ---- asynchronous operations ---- */

static uint32_t free_slot(struct cluster_clocks *c)
{
    for (uint32_t i = 0; i < ASYNC_SLOTS; i++) {
        const uint32_t slot = (c->next_slot + i) % ASYNC_SLOTS;
        if (c->slot_busy[slot] != 0) continue;
        c->next_slot = slot + 1;
        return slot;
    }
    return c->next_slot++ % ASYNC_SLOTS;
}

struct async_token *async_begin(struct warp *w, const struct insn *in, uint32_t lanes, enum proxy proxy)
{
    struct cluster_clocks *c = watched(w);
    struct async_token *token = calloc(1, sizeof *token);
    if (token == NULL) return NULL;
    *token = (struct async_token){ .warp = w, .in = in, .lane = (uint32_t)__builtin_ctz(lanes), .proxy = proxy };
    if (c == NULL) return token;
    token->known = new_row(c);
    if (token->known == NULL) {
        free(token);
        return NULL;
    }
    const uint32_t slot = free_slot(c);
    token->actors = c->actors;
    token->actor = c->threads + slot;
    token->clock = ++c->slot_clock[slot];
    c->slot_busy[slot]++;
    tell(w, lanes, token->known, c->actors);
    return token;
}

void async_renew(struct async_token *token, struct warp *w, uint32_t lanes)
{
    const struct cluster_clocks *c = watched(w);
    if (c != NULL && token->known != NULL) tell(w, lanes, token->known, c->actors);
}

void async_sees_copies(struct async_token *token) { token->sees_copies = true; }

void async_publish(struct async_token *token, uint64_t object)
{
    struct cluster_clocks *c = watched(token->warp);
    if (c == NULL || token->known == NULL) return;
    knowledge *known = find_or_make(c, object);
    if (known == NULL) return;
    join(known, token->known, c->actors);
    if (known[token->actor] < token->clock) known[token->actor] = token->clock;
}

void async_follow(struct async_token *later, const struct async_token *earlier)
{
    if (later->known == NULL || earlier->known == NULL) return;
    join(later->known, earlier->known, later->actors);
    if (later->known[earlier->actor] < earlier->clock) later->known[earlier->actor] = earlier->clock;
}

void async_end(struct async_token *token)
{
    if (token == NULL) return;
    if (token->known != NULL)
        token->warp->cta->cluster->clocks->slot_busy[token->actor - token->warp->cta->cluster->clocks->threads]--;
    free(token->known);
    free(token);
}
