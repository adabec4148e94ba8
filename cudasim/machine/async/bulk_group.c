/* Bulk groups per thread, and the tensor maps that a CTA has acquired: what TMA remembers of a warp. */
#include "bulk_group.h"
#include "agent.h"
#include "tensor_map.h"
#include "machine/core/address_space.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"

#include <stdlib.h>
#include <string.h>

/* Knowledge of a group goes through one of a few objects in turn, by its number. */
enum { GROUP_OBJECTS = 8, MOST_FENCED_MAPS = 64 };

struct bulk_group {
    uint32_t lane, number, stores, unread, unfinished;
};
struct fenced_map {
    uint64_t address;
    uint8_t bytes[TENSOR_MAP_BYTES];
};

/* In warp.engine[ENGINE_TMA]: one block, freed with the warp. */
struct bulk_state {
    uint32_t committed[LANES]; /* groups closed so far; the open one has this number */
    uint32_t waited[2][LANES]; /* groups that the lane knows to be complete; [true]: to have read their sources */
    uint32_t stored[LANES];    /* groups up to the last one with a store, */
    const struct insn *store[LANES]; /* and that store */
    uint32_t fenced, capacity, count;
    struct fenced_map map[MOST_FENCED_MAPS];
    struct bulk_group group[]; /* those that are open or pending */
};

static struct bulk_state *state_of(const struct warp *w) { return w->engine[ENGINE_TMA]; }

static struct bulk_state *state_with_room(struct warp *w)
{
    struct bulk_state *s = state_of(w);
    if (s != NULL && s->count < s->capacity) return s;
    const uint32_t capacity = s == NULL ? 8 : 2 * s->capacity;
    struct bulk_state *larger = realloc(s, sizeof *larger + capacity * sizeof larger->group[0]);
    if (larger == NULL) return NULL;
    if (s == NULL) memset(larger, 0, sizeof *larger);
    larger->capacity = capacity;
    w->engine[ENGINE_TMA] = larger;
    return larger;
}

static struct bulk_group *find(struct bulk_state *s, uint32_t lane, uint32_t number)
{
    for (uint32_t i = 0; s != NULL && i < s->count; i++)
        if (s->group[i].lane == lane && s->group[i].number == number) return &s->group[i];
    return NULL;
}

static uint64_t object_of(const struct warp *w, uint32_t lane, uint32_t group, bool reads)
{
    const uint64_t slot = group % GROUP_OBJECTS | (reads ? GROUP_OBJECTS : 0);
    return sync_object(SYNC_GROUP, w->cta, UINT64_C(1) << 40 | slot << 32 | w->index * LANES | lane);
}

bool bulk_group_join(struct warp *w, const struct insn *in, uint32_t lane, uint32_t *group)
{
    struct bulk_state *s = state_with_room(w);
    if (s == NULL) return false;
    *group = s->committed[lane];
    struct bulk_group *g = find(s, lane, *group);
    if (g == NULL) {
        g = &s->group[s->count++];
        *g = (struct bulk_group){ .lane = lane, .number = *group };
    }
    g->stores++, g->unread++, g->unfinished++;
    s->stored[lane] = *group + 1;
    s->store[lane] = in;
    return true;
}

void bulk_group_read(struct warp *w, uint32_t lane, uint32_t group, struct async_token *read)
{
    struct bulk_group *g = find(state_of(w), lane, group);
    async_publish(read, object_of(w, lane, group, true));
    if (g != NULL) g->unread--;
    cluster_event(w->cta->cluster);
}

void bulk_group_finished(struct warp *w, uint32_t lane, uint32_t group, struct async_token *read,
                         struct async_token *written)
{
    struct bulk_state *s = state_of(w);
    struct bulk_group *g = find(s, lane, group);
    async_publish(read, object_of(w, lane, group, false));
    async_publish(written, object_of(w, lane, group, false));
    if (g != NULL && --g->unfinished == 0 && group != s->committed[lane]) *g = s->group[--s->count];
    cluster_event(w->cta->cluster);
}

trap tma_commit_group(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct bulk_state *s = state_with_room(w);
    if (s == NULL)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_RESOURCES,
                          "finds no host memory for its bulk group");
    FOR_LANES(l, lanes) {
        struct bulk_group *g = find(s, l, s->committed[l]);
        if (g != NULL && g->unfinished == 0) *g = s->group[--s->count];
        s->committed[l]++;
    }
    return TRAP_NONE;
}

static bool is_pending(const struct bulk_state *s, uint32_t lanes, uint32_t most, bool reads)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct bulk_group *g = &s->group[i];
        if ((lanes >> g->lane & 1) == 0 || (uint64_t)g->number + most >= s->committed[g->lane]) continue;
        if ((reads ? g->unread : g->unfinished) != 0) return true;
    }
    return false;
}

trap tma_wait_group(struct warp *w, uint32_t lanes, uint32_t most, bool reads)
{
    struct bulk_state *s = state_of(w);
    if (s == NULL) return TRAP_NONE;
    if (is_pending(s, lanes, most, reads)) return warp_wait(w, WAIT_ASYNC_GROUP, most, reads);
    FOR_LANES(l, lanes) {
        const uint32_t end = s->committed[l] > most ? s->committed[l] - most : 0;
        uint32_t *known = &s->waited[reads][l]; /* what is known already may share its object with a group that is still
                                                   pending */
        for (uint32_t n = end > *known + GROUP_OBJECTS ? end - GROUP_OBJECTS : *known; n < end; n++)
            checks_acquire(w, 1u << l, object_of(w, l, n, reads));
        if (end > *known) *known = end;
    }
    return TRAP_NONE;
}

trap tma_cta_ends(struct cta *cta)
{
    for (uint32_t i = 0; i < cta->warps; i++) {
        const struct bulk_state *s = state_of(&cta->warp[i]);
        for (uint32_t l = 0; s != NULL && l < LANES; l++)
            if (s->stored[l] > s->waited[true][l] && s->stored[l] > s->waited[false][l])
                return warp_breaks(&cta->warp[i], s->store[l], l, RULE_ENDED_CTA_READ,
                                  "reads shared memory of CTA rank %u, all of whose threads have exited without "
                                  "waiting for it",
                                  cta->rank);
    }
    return TRAP_NONE;
}

/* ---- tensor maps ---- */

void tma_map_acquired(struct warp *w, uint32_t lanes, const uint64_t *address)
{
    struct bulk_state *s = state_with_room(w);
    if (s == NULL) return;
    FOR_LANES(l, lanes) {
        const uint8_t *map = space_host(&w->cta->cluster->grid->machine->memory, address[l], TENSOR_MAP_BYTES);
        struct fenced_map *place = NULL;
        for (uint32_t i = 0; i < s->fenced && i < MOST_FENCED_MAPS; i++)
            if (s->map[i].address == address[l]) place = &s->map[i];
        if (map == NULL) continue;
        if (place == NULL) place = &s->map[s->fenced++ % MOST_FENCED_MAPS];
        place->address = address[l];
        memcpy(place->bytes, map, TENSOR_MAP_BYTES);
    }
}

bool tma_map_is_acquired(const struct warp *w, uint64_t address, const uint8_t *map)
{
    for (uint32_t j = 0; j < w->cta->warps; j++) {
        const struct bulk_state *s = state_of(&w->cta->warp[j]);
        for (uint32_t i = 0; s != NULL && i < s->fenced && i < MOST_FENCED_MAPS; i++)
            if (s->map[i].address == address && memcmp(s->map[i].bytes, map, TENSOR_MAP_BYTES) == 0) return true;
    }
    return false;
}
