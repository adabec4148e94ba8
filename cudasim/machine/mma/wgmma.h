/* Warpgroups and their asynchronous matrix products (PTX ISA 9.7.15).
 *
 * The four warps of a warpgroup execute the same sequence of wgmma instructions, each at its own time: the sequence
 * remembers what some have executed and others have not.  A product starts when all four have issued it, and is an
 * operation of an agent in the order of its warpgroup: it reads registers and shared memory, and writes the
 * accumulators, when it completes.  Until wgmma.wait_group has waited for its group, its registers belong to it,
 * whether it has completed or not. */
#ifndef CUDASIM_MACHINE_MMA_WGMMA_H
#define CUDASIM_MACHINE_MMA_WGMMA_H

#include "machine/async/agent.h"
#include "wgmma_product.h"

/* ---- wgmma.c: for the handlers ---- */

/* The next place in the warpgroup's sequence, where all four warps must execute this instruction; NULL: *t says why
 * not. */
struct wgmma_entry *wgmma_take_place(struct warp *w, const struct insn *in, uint32_t lanes, trap *t);
/* The warpgroup of a warp that has executed a wgmma instruction, else NULL. */
struct warpgroup *warpgroup_of(const struct warp *w);
trap wgmma_issue(struct warp *w, const struct insn *in, const struct wgmma_form *form, struct wgmma_entry *entry);
void wgmma_commit(struct warp *w);
/* Whether all groups but the latest `allowed` are complete; then their registers are the warp's again. */
bool wgmma_wait(struct warp *w, uint64_t allowed);

/* The PTX line of the first product that some warp has not come to, and that warp; 0: all have been issued. */
uint32_t wgmma_missing(const struct warp *w, uint32_t *warp);

/* ---- wgmma.c: for the machine ---- */

/* Reports what is left of the warp's products when its last thread ends. */
trap wgmma_warp_ends(struct warp *w, const struct insn *in);
void wgmma_close(struct warp *w);

#endif
