/* Bulk groups of a thread (cp.async.bulk.commit_group, wait_group): which of its stores have been read, which have completed. */
#ifndef CUDASIM_MACHINE_ASYNC_BULK_GROUP_H
#define CUDASIM_MACHINE_ASYNC_BULK_GROUP_H

#include "machine/check/checks.h"

/* A store joins the lane's open group; false: no host memory. */
bool bulk_group_join(struct warp *w, const struct insn *in, uint32_t lane, uint32_t *group);
/* Its source has been read; later: it has completed. */
void bulk_group_read(struct warp *w, uint32_t lane, uint32_t group, struct async_token *read);
void bulk_group_finished(struct warp *w, uint32_t lane, uint32_t group, struct async_token *read, struct async_token *written);

#endif
