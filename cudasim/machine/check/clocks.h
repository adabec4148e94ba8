/* Clocks of happens-before, between clocks.c (what threads know) and race.c (what memory remembers).
 *
 * An actor is a thread of the cluster, a slot in which asynchronous operations follow each other, or the grid before this one.
 * Knowledge is, per actor, the latest value of its clock that is ordered before the present.  Lanes of a warp mostly know the same:
 * one row serves them all until some of them learn something alone.  The method is that of vector clocks (Lamport 1978, Fidge 1988;
 * FastTrack, PLDI 2009). */
#ifndef CUDASIM_MACHINE_CHECK_CLOCKS_H
#define CUDASIM_MACHINE_CHECK_CLOCKS_H

#include "checks.h"

enum { ASYNC_SLOTS = 64, MOST_SYNC_OBJECTS = 1 << 16 };

/* [0, actors): ordered; [actors, 2 * actors): proxied.  The last actor is the grid directly in front (dependent.h). */
typedef uint32_t knowledge;

struct warp_clocks {
    uint32_t clock[LANES];                /* each lane's own; begins at 1: 0 is nobody */
    uint32_t fenced[LANES];               /* its own writes up to this clock are visible to the async proxy */
    uint32_t own;                         /* lanes that have a row of their own */
    uint32_t fence_seen;                  /* lanes that fenced since their last weak write */
    uint64_t relaxed[LANES];              /* the object that a relaxed read saw; a fence acquires it */
    knowledge *common, *row[LANES];
    knowledge *carried;                   /* what relaxed barriers have brought; NULL: nothing yet */
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

/* Relaxed arrivals and waits at barriers order no memory, but with tcgen05's fences around them they order its operations (PTX ISA
 * 9.7.16.6.4.4).  An arrival leaves what its lanes know beside the object; a wait takes it, with all the object holds, into
 * `carried`. */
void clocks_carry_out(struct warp *w, uint32_t lanes, uint64_t object);
void clocks_carry_in(struct warp *w, uint64_t object, bool relaxed);

/* A relaxed release with no fence before it still tells which accesses the lanes have put a proxy fence behind: nothing is ordered
 * by that, but an engine that writes where they have read may go on it (async_writes_fenced). */
void clocks_tell_proxied(struct warp *w, uint32_t lanes, uint64_t object);

/* ---- race.c ---- */

/* One access that a granule of 4 bytes remembers. */
struct mark {
    uint32_t clock;                       /* 0: none */
    uint32_t actor : 20, mask : 4, async : 1, strong : 1, adds : 1;
    uint32_t pc;
};
enum { READER_MARKS = 3, GRANULE_BYTES = 4 };
struct granule { struct mark writer, reader[READER_MARKS]; };

/* Global memory: last writers of this cluster alone, in pages that come when they are written; other clusters run on other threads.
 * Beyond the limit nothing more is remembered. */
enum { PAGE_BYTES = 4096, MOST_PAGES = 16384 };
struct global_page { uint64_t number; struct mark writer[PAGE_BYTES / GRANULE_BYTES]; };

/* A generic access of one instruction's lanes; both report what is not ordered. */
trap race_check(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *a);
trap race_check_global(struct warp *w, const struct insn *in, const struct access *a);

#endif
