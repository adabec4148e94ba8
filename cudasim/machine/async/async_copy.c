/* Batches and groups of cp.async, by thread. */
#include "async_copy.h"
#include "agent.h"

#include <stdlib.h>

/* Batches that have completed are kept for waits to come; of those that nobody waits for, the last few. */
enum { MOST_COMPLETE = 16, GROUP_KIND = 1 };

struct lane_copies {
    struct copy_batch *first; /* by rising number */
    struct copy_batch *last;
    uint64_t groups, batches; /* numbers of the open ones */
    uint32_t count, arrivals; /* batches kept; arrivals that have yet to tell of theirs */
};
struct warp_copies {
    struct lane_copies lane[LANES];
};

static struct warp_copies *copies_of(const struct warp *w) { return w->engine[ENGINE_CP_ASYNC]; }

static struct warp_copies *make_copies(struct warp *w)
{
    if (copies_of(w) == NULL) w->engine[ENGINE_CP_ASYNC] = calloc(1, sizeof(struct warp_copies));
    return copies_of(w);
}

static void retire_first(struct lane_copies *c)
{
    struct copy_batch *b = c->first;
    async_end(b->token);
    c->first = b->next;
    if (c->first == NULL) c->last = NULL;
    c->count--;
    free(b);
}

void async_copies_close(struct warp *w)
{
    struct warp_copies *copies = copies_of(w);
    for (uint32_t l = 0; copies != NULL && l < LANES; l++)
        while (copies->lane[l].first != NULL) {
            struct copy_batch *b = copies->lane[l].first;
            copies->lane[l].first = b->next;
            async_end(b->token);
            free(b);
        }
    free(copies);
    w->engine[ENGINE_CP_ASYNC] = NULL;
}

struct copy_batch *async_copy_join(struct warp *w, const struct insn *in, uint32_t lane)
{
    struct warp_copies *copies = make_copies(w);
    if (copies == NULL) return NULL;
    struct lane_copies *c = &copies->lane[lane];
    if (c->last != NULL && c->last->number == c->batches) {
        async_renew(c->last->token, w, 1u << lane);
        c->last->pending++;
        return c->last;
    }
    while (c->count > MOST_COMPLETE && c->first->pending == 0 && c->arrivals == 0) {
        async_publish(c->first->token, group_object(w, lane, GROUP_KIND));
        retire_first(c);
    }
    struct copy_batch *b = malloc(sizeof *b);
    struct async_token *token = b == NULL ? NULL : async_begin(w, in, 1u << lane, PROXY_GENERIC);
    if (token == NULL) {
        free(b);
        return NULL;
    }
    *b = (struct copy_batch){ .token = token, .number = c->batches, .group = c->groups, .pending = 1 };
    if (c->last == NULL) c->first = b;
    else c->last->next = b;
    c->last = b;
    c->count++;
    return b;
}

void async_copy_commit(struct warp *w, uint32_t lanes)
{
    struct warp_copies *copies = make_copies(w);
    if (copies == NULL) return;
    FOR_LANES(l, lanes) copies->lane[l].groups++, copies->lane[l].batches++;
}

static bool awaited(const struct lane_copies *c, const struct copy_batch *b, uint64_t most, bool all)
{
    return all || b->group + most < c->groups;
}

bool async_copy_done(const struct warp *w, uint32_t lanes, uint64_t most, bool all)
{
    const struct warp_copies *copies = copies_of(w);
    if (copies == NULL) return true;
    FOR_LANES(l, lanes)
    {
        const struct lane_copies *c = &copies->lane[l];
        for (const struct copy_batch *b = c->first; b != NULL && awaited(c, b, most, all); b = b->next)
            if (b->pending != 0) return false;
    }
    return true;
}

void async_copy_take(struct warp *w, uint32_t lanes, uint64_t most, bool all)
{
    struct warp_copies *copies = copies_of(w);
    if (copies == NULL) return;
    FOR_LANES(l, lanes)
    {
        struct lane_copies *c = &copies->lane[l];
        if (c->first != NULL && awaited(c, c->last, most, all)) c->batches++; /* the next copy begins another batch */
        for (struct copy_batch *b = c->first; b != NULL && awaited(c, b, most, all); b = b->next)
            async_publish(b->token, group_object(w, l, GROUP_KIND));
        while (c->first != NULL && awaited(c, c->first, most, all) && c->arrivals == 0) retire_first(c);
        checks_acquire(w, 1u << l, group_object(w, l, GROUP_KIND));
    }
}

uint64_t async_copy_mark(struct warp *w, uint32_t lane)
{
    struct warp_copies *copies = make_copies(w);
    if (copies == NULL) return 0;
    copies->lane[lane].arrivals++;
    return ++copies->lane[lane].batches;
}

bool async_copy_marked_done(const struct warp *w, uint32_t lane, uint64_t mark)
{
    const struct warp_copies *copies = copies_of(w);
    if (copies == NULL) return true;
    for (const struct copy_batch *b = copies->lane[lane].first; b != NULL && b->number < mark; b = b->next)
        if (b->pending != 0) return false;
    return true;
}

void async_copy_publish(struct warp *w, uint32_t lane, uint64_t mark, uint64_t object)
{
    struct warp_copies *copies = copies_of(w);
    if (copies == NULL) return;
    copies->lane[lane].arrivals--;
    for (const struct copy_batch *b = copies->lane[lane].first; b != NULL && b->number < mark; b = b->next)
        async_publish(b->token, object);
}
