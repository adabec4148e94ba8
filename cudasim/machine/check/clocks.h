/* Clocks of happens-before, between clocks.c (what threads know) and race.c (what memory remembers).
 *
 * An actor is a thread of the cluster, a slot in which asynchronous operations follow each other, or the grid before
 * this one. Knowledge is, per actor, the latest value of its clock that is ordered before the present.  Lanes of a warp
 * mostly know the same: one row serves them all until some of them learn something alone.  The method is that of vector
 * clocks (Lamport 1978, Fidge 1988; FastTrack, PLDI 2009). */
#ifndef CUDASIM_MACHINE_CHECK_CLOCKS_H
#define CUDASIM_MACHINE_CHECK_CLOCKS_H

#include "machine/core/machine.h"

enum proxy { PROXY_GENERIC, PROXY_ASYNC };


enum { ASYNC_SLOTS = 64, MOST_SYNC_OBJECTS = 1 << 16 };

/* [0, actors): ordered; [actors, 2 * actors): proxied.  The last actor is the grid directly in front (dependent.h). */
typedef uint32_t knowledge;

struct warp_clocks {
    uint32_t clock[LANES];                /* each lane's own; begins at 1: 0 is nobody */
    uint32_t fenced[LANES];               /* its own writes up to this clock are visible to the async proxy */
    uint32_t own;                         /* lanes that have a row of their own */
    uint32_t fence_seen;                  /* lanes that fenced since their last weak write */
    uint32_t fence_clock[LANES];          /* its last fence lies behind its own accesses up to this clock; 0: none */
    uint32_t fence_own;                   /* lanes whose knowledge at that fence is in fence_row, not fence_common */
    knowledge *fence_common, *fence_row[LANES];
    uint64_t relaxed[LANES];              /* the object that a relaxed read saw; a fence acquires it */
    knowledge *common, *row[LANES];
    knowledge *carried;                   /* what relaxed barriers have carried in; NULL: nothing yet */
};

struct sync_entry { uint64_t object; knowledge *known; };

struct cluster_clocks {
    uint32_t actors, threads;
    uint32_t slot_clock[ASYNC_SLOTS], slot_busy[ASYNC_SLOTS], next_slot;
    struct sync_entry *entry;             /* open addressing; capacity is a power of two */
    uint32_t entries, capacity;
    struct global_page **page;            /* open addressing; capacity is a power of two */
    uint32_t pages, page_capacity;
    bool carries;                         /* some thread has arrived at a barrier by a relaxed operation */
    bool exhausted;                       /* no host memory for clocks: nothing is watched any more */
};

struct async_token {
    struct warp *warp;
    const struct insn *in;
    uint32_t lane, actor, clock;
    enum proxy proxy;
    bool sees_copies;                     /* of cp.async, without a proxy fence */
    uint32_t broken;                      /* rules that it has broken, which went on */
    uint32_t actors;
    knowledge *known;                     /* NULL where races are not watched */
};

static inline uint32_t grids_actor(const struct cluster_clocks *c) { return c->actors - 1; }
static inline uint32_t actor_of(const struct warp *w, uint32_t lane)
{
    return (w->cta->rank * w->cta->warps + w->index) * LANES + lane;
}
static inline const knowledge *known_to(const struct warp *w, uint32_t lane)
{
    return w->clocks->own >> lane & 1 ? w->clocks->row[lane] : w->clocks->common;
}

/* Relaxed arrivals and waits at barriers order no memory, but with tcgen05's fences around them they order its
 * operations (PTX ISA 9.7.16.6.4.4).  An arrival leaves what its lanes know beside the object; a wait takes it, with
 * all the object holds, into `carried`. */
void clocks_carry_out(struct warp *w, uint32_t lanes, uint64_t object);
void clocks_carry_in(struct warp *w, uint64_t object, bool relaxed);

/* A relaxed release behind a fence, with weak writes between: what the lanes knew at their last fence goes to the
 * object. */
void clocks_tell_fenced(struct warp *w, uint32_t lanes, uint64_t object);

/* A relaxed release with no fence before it still tells which accesses the lanes have put a proxy fence behind: nothing
 * is ordered by that, but an engine that writes where they have read may go on it (async_writes_fenced). */
void clocks_tell_proxied(struct warp *w, uint32_t lanes, uint64_t object);

/* ---- objects that are synchronised on ---- */

enum sync_kind { SYNC_MEMORY = 1, SYNC_BARRIER, SYNC_WARP, SYNC_CLUSTER, SYNC_MBARRIER, SYNC_GROUP, SYNC_GRIDS };

static inline uint64_t sync_object(enum sync_kind kind, const struct cta *cta, uint64_t number)
{
    return (uint64_t)kind << 60 | (uint64_t)cta->rank << 48 | number;
}
/* The phase of an mbarrier: `parity` is that of the phase which completes. */
static inline uint64_t mbarrier_object(const struct cta *cta, uint32_t offset, uint32_t parity)
{
    return sync_object(SYNC_MBARRIER, cta, (uint64_t)offset << 1 | (parity & 1));
}
/* Groups of asynchronous operations that one thread (or, for wgmma, one warp: lane 0) waits for; kind: of the caller's
 * choice, 0..15. */
static inline uint64_t group_object(const struct warp *w, uint32_t lane, uint32_t kind)
{
    return sync_object(SYNC_GROUP, w->cta, (uint64_t)kind << 16 | w->index * LANES | lane);
}

/* What the lanes know goes to the object; what the object holds is known to the lanes. */
void checks_release(struct warp *w, uint32_t lanes, uint64_t object);
void checks_acquire(struct warp *w, uint32_t lanes, uint64_t object);
/* fence.acq_rel, fence.sc, membar: relaxed accesses around it order what lies before and behind. */
void checks_fence(struct warp *w, uint32_t lanes);
/* griddepcontrol.wait: the grid before this one has ended. */
void checks_learn_grids(struct warp *w, uint32_t lanes);
/* fence.proxy.async: generic writes that the lanes know of are visible to the async proxy. */
void checks_proxy_fence(struct warp *w, uint32_t lanes);

/* ---- asynchronous operations (checks.h says how an engine uses them) ---- */

struct async_token *async_begin(struct warp *w, const struct insn *in, uint32_t lanes, enum proxy proxy);
/* What cp.async wrote, and was waited for, is visible to the operation without a proxy fence. */
void async_sees_copies(struct async_token *token);
/* The lanes issue more of the same operation: it knows what they know now. */
void async_renew(struct async_token *token, struct warp *w, uint32_t lanes);
void async_publish(struct async_token *token, uint64_t object);
/* For operations that follow each other by a rule of the manual: the later one knows what the earlier one did. */
void async_follow(struct async_token *later, const struct async_token *earlier);
void async_end(struct async_token *token);

/* ---- state ---- */

bool clocks_open(struct cluster *cluster);
void clocks_close(struct cluster *cluster);

#endif
