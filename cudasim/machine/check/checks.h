/* What is watched while a kernel runs.
 *
 * Happens-before: every thread of a cluster has a clock and knows, of every other thread and of every asynchronous
 * operation, up to which of its clock's values it is ordered before the present ("ordered"), and up to which its
 * generic writes are also visible to the async proxy ("proxied": a proxy fence lies on the way).  Knowledge travels
 * through synchronisation objects: barriers, mbarriers, groups of copies, memory that is released and acquired.  Shared
 * memory remembers its last writer and last readers (race.c); an access that conflicts with one that is not ordered
 * before it is a race, whatever the schedule was.  An asynchronous operation counts as running from its issue until
 * somebody who knows of its completion.
 *
 * How an engine uses it:
 *     struct async_token *token = async_begin(w, in, lanes, PROXY_ASYNC);       when issued; NULL: no host memory
 *     t = async_reads(token, cta, offset, bytes);  t = async_writes(...);       at once: marks the bytes, reports what
 *                                                                               is not ordered
 *     ... later, when the data has moved: async_written(cta, offset, bytes);    the bytes are initialised now
 *     async_publish(token, mbarrier_object(cta, offset, parity));               where completion is signalled; as often
 *                                                                               as needed
 *     async_end(token);
 * A thread that waits calls checks_acquire(w, lanes, object). */
#ifndef CUDASIM_MACHINE_CHECK_CHECKS_H
#define CUDASIM_MACHINE_CHECK_CHECKS_H

#include "clocks.h"
#include "race.h"

/* checks_release and checks_acquire (clocks.h) by relaxed operations: only with a fence before the release, behind the
 * acquire. */
void checks_release_relaxed(struct warp *w, uint32_t lanes, uint64_t object);
void checks_acquire_relaxed(struct warp *w, uint32_t lanes, uint64_t object);

/* ---- accesses ---- */

/* A generic access to shared memory, after bounds and alignment: host[] is filled. */
trap checks_shared(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *a);

/* The same to global memory: against what this cluster has written. */
trap checks_global(struct warp *w, const struct insn *in, const struct access *a);

/* A strong access, shared or global, that memory_access has found: it may order others. */
void checks_ordered(struct warp *w, uint32_t lanes, const struct access *a, enum semantics semantics);
/* Behind a strong read of global memory: what other clusters released before it wrote what was read is known now. */
void checks_observed(struct warp *w, uint32_t lanes, const struct access *a, enum semantics semantics);

/* ---- state of the checks ---- */

bool shadow_open(struct shadow *shadow, uint32_t bytes);
void shadow_close(struct shadow *shadow);
#endif
