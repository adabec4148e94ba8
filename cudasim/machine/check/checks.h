/* What is watched while a kernel runs.
 *
 * Happens-before: every thread of a cluster has a clock and knows, of every other thread and of every asynchronous operation, up to
 * which of its clock's values it is ordered before the present ("ordered"), and up to which its generic writes are also visible to the
 * async proxy ("proxied": a proxy fence lies on the way).  Knowledge travels through synchronisation objects: barriers, mbarriers,
 * groups of copies, memory that is released and acquired.  Shared memory remembers its last writer and last readers (race.c); an access
 * that conflicts with one that is not ordered before it is a race, whatever the schedule was.  An asynchronous operation counts as
 * running from its issue until somebody who knows of its completion.
 *
 * How an engine uses it:
 *     struct async_token *token = async_begin(w, in, lanes, PROXY_ASYNC);       when issued; NULL: no host memory
 *     t = async_reads(token, cta, offset, bytes);  t = async_writes(...);       at once: marks the bytes, reports what is not ordered
 *     ... later, when the data has moved: async_written(cta, offset, bytes);    the bytes are initialised now
 *     async_publish(token, mbarrier_object(cta, offset, parity));               where completion is signalled; as often as needed
 *     async_end(token);
 * A thread that waits calls checks_acquire(w, lanes, object). */
#ifndef CUDASIM_MACHINE_CHECK_CHECKS_H
#define CUDASIM_MACHINE_CHECK_CHECKS_H

#include "machine/core/machine.h"

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
/* Groups of asynchronous operations that one thread (or, for wgmma, one warp: lane 0) waits for; kind: of the caller's choice, 0..15. */
static inline uint64_t group_object(const struct warp *w, uint32_t lane, uint32_t kind)
{
    return sync_object(SYNC_GROUP, w->cta, (uint64_t)kind << 16 | w->index * LANES | lane);
}

/* What the lanes know goes to the object; what the object holds is known to the lanes. */
void checks_release(struct warp *w, uint32_t lanes, uint64_t object);
void checks_acquire(struct warp *w, uint32_t lanes, uint64_t object);
/* The same by relaxed operations: only with a fence before the release, behind the acquire. */
void checks_release_relaxed(struct warp *w, uint32_t lanes, uint64_t object);
void checks_acquire_relaxed(struct warp *w, uint32_t lanes, uint64_t object);
/* fence.acq_rel, fence.sc, membar: relaxed accesses around it order what lies before and behind. */
void checks_fence(struct warp *w, uint32_t lanes);
/* griddepcontrol.wait: the grid before this one has ended. */
void checks_learn_grids(struct warp *w, uint32_t lanes);
/* fence.proxy.async: generic writes that the lanes know of are visible to the async proxy. */
void checks_proxy_fence(struct warp *w, uint32_t lanes);

/* ---- accesses ---- */

/* A generic access to shared memory, after bounds and alignment: host[] is filled. */
trap checks_shared(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *a);

/* The same to global memory: against what this cluster has written. */
trap checks_global(struct warp *w, const struct insn *in, const struct access *a);

enum proxy { PROXY_GENERIC, PROXY_ASYNC };

struct async_token;
struct async_token *async_begin(struct warp *w, const struct insn *in, uint32_t lanes, enum proxy proxy);
/* The operation reads or writes these bytes of a CTA's shared memory; `adds`: writes that commute with others like them (reductions). */
trap async_reads(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
/* A read that another token of the same operation stands for afterwards: only what comes before it is checked. */
trap async_looks(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
trap async_writes(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
/* As async_writes; generic reads before it, too, need a proxy fence between; with one, a relaxed arrival behind it orders them. */
trap async_writes_fenced(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
trap async_adds(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
/* The same for global memory, where only writers are remembered. */
trap async_reads_global(struct async_token *token, uint64_t address, uint64_t bytes);
trap async_writes_global(struct async_token *token, uint64_t address, uint64_t bytes);
trap async_adds_global(struct async_token *token, uint64_t address, uint64_t bytes);
/* Whether this cluster has written any of these bytes of global memory. */
bool race_wrote_global(const struct cluster *cluster, uint64_t address, uint64_t bytes);
void async_written(struct cta *cta, uint32_t offset, uint32_t bytes);
/* What cp.async wrote, and was waited for, is visible to the operation without a proxy fence. */
void async_sees_copies(struct async_token *token);
/* The lanes issue more of the same operation: it knows what they know now. */
void async_renew(struct async_token *token, struct warp *w, uint32_t lanes);
void async_publish(struct async_token *token, uint64_t object);
/* For operations that follow each other by a rule of the manual: the later one knows what the earlier one did. */
void async_follow(struct async_token *later, const struct async_token *earlier);
void async_end(struct async_token *token);

/* A strong access, shared or global, that memory_access has found: it may order others. */
void checks_ordered(struct warp *w, uint32_t lanes, const struct access *a, enum semantics semantics);

/* ---- state of the checks ---- */

bool shadow_open(struct shadow *shadow, uint32_t bytes);
void shadow_close(struct shadow *shadow);
bool clocks_open(struct cluster *cluster);
void clocks_close(struct cluster *cluster);

#endif
