/* Bulk groups of a thread (cp.async.bulk.commit_group, wait_group): which of its stores have been read, which have
 * completed. */
#ifndef CUDASIM_MACHINE_ASYNC_BULK_GROUP_H
#define CUDASIM_MACHINE_ASYNC_BULK_GROUP_H

#include "machine/check/checks.h"

/* A store joins the lane's open group; false: no host memory. */
bool bulk_group_join(struct warp *w, const struct insn *in, uint32_t lane, uint32_t *group);
/* Its source has been read; later: it has completed. */
void bulk_group_read(struct warp *w, uint32_t lane, uint32_t group, struct async_token *read);
void bulk_group_finished(struct warp *w, uint32_t lane, uint32_t group, struct async_token *read,
                         struct async_token *written);

trap tma_commit_group(struct warp *w, const struct insn *in, uint32_t lanes);
/* TRAP_WAIT while more than the `most` newest groups are pending; reads: only the reading of their sources counts. */
trap tma_wait_group(struct warp *w, uint32_t lanes, uint32_t most, bool reads);
/* All threads have exited: each store was waited for until it had read its source, which its own thread alone can do
 * and without which it reads what is no longer there.  Reported also where it happens to have read in time. */
trap tma_cta_ends(struct cta *cta);

/* ---- tensor maps that a CTA has acquired ---- */

/* fence.proxy.tensormap::generic.acquire: the lanes' CTA may use the maps at these addresses as they are now. */
void tma_map_acquired(struct warp *w, uint32_t lanes, const uint64_t *address);
/* Whether it has, since the map got its present contents. */
bool tma_map_is_acquired(const struct warp *w, uint64_t address, const uint8_t *map);

#endif
