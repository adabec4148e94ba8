/* What a warp's threads have in flight of cp.async (PTX ISA 9.7.9.25.3).
 *
 * Copies of a thread between two of its cp.async.commit_group or cp.async.mbarrier.arrive are a batch: one asynchronous
 * operation for the checks.  Its completion is known to who waits for its group, or for an mbarrier at which a later
 * arrival signals it. */
#ifndef CUDASIM_MACHINE_ASYNC_ASYNC_COPY_H
#define CUDASIM_MACHINE_ASYNC_ASYNC_COPY_H

#include "machine/check/checks.h"

struct copy_batch {
    struct copy_batch *next;
    struct async_token *token;
    uint64_t number, group;               /* of the thread's batches; of its groups */
    uint32_t pending;                     /* copies that have not completed */
};

/* The lane's open batch, for one copy more; NULL: no host memory. */
struct copy_batch *async_copy_join(struct warp *w, const struct insn *in, uint32_t lane);
void async_copy_commit(struct warp *w, uint32_t lanes);
/* Whether all but the last `most` groups have completed; all: also copies that are not committed. */
bool async_copy_done(const struct warp *w, uint32_t lanes, uint64_t most, bool all);
/* The lanes know of it. */
void async_copy_take(struct warp *w, uint32_t lanes, uint64_t most, bool all);

/* Closes the lane's batch; batches before the number that is returned are those that a cp.async.mbarrier.arrive
 * tracks. */
uint64_t async_copy_mark(struct warp *w, uint32_t lane);
bool async_copy_marked_done(const struct warp *w, uint32_t lane, uint64_t mark);
void async_copy_publish(struct warp *w, uint32_t lane, uint64_t mark, uint64_t object);

void async_copies_close(struct warp *w);

#endif
