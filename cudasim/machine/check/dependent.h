/* Programmatic dependent launch (PTX ISA 9.7.13.13 griddepcontrol): a grid may begin before those in front of it have
 * ended, and what the one directly in front of it does to global memory is ordered before it for a thread that has
 * executed griddepcontrol.wait, and for whoever synchronises with that thread, alone.  What lies further in front is
 * ordered if each grid between has waited: the manual speaks of prerequisite grids, not of theirs.  .launch_dependents
 * promises nothing about memory: it lets the next grid begin.
 *
 * Each four bytes of global memory remember the grid that wrote them last, and those of grids that have
 * .launch_dependents in their module the one that read them last: without it a grid begins when the CTAs before it have
 * ended, and reads are over then. */
#ifndef CUDASIM_MACHINE_CHECK_DEPENDENT_H
#define CUDASIM_MACHINE_CHECK_DEPENDENT_H

#include "clocks.h"

/* Makes room for what is remembered, where any module asks for it; no memory: nothing is remembered. */
void dependent_prepare(struct machine *machine);

/* A grid that has begun is in flight when the next one of its stream begins, and so are those that it has not waited
 * for by then.  The last of them is the one directly in front. */
struct grids_in_flight grids_in_flight_behind(const struct grid *grid);

/* griddepcontrol.wait */
void dependent_wait(struct warp *w, uint32_t lanes);

/* An access to global memory: of the lanes of a generic instruction, of a lane's asynchronous operation. */
trap dependent_lanes(struct warp *w, const struct insn *in, const struct access *a);
trap dependent_bytes(struct warp *w, const struct insn *in, uint32_t lane, const knowledge *known, uint64_t address,
                     uint64_t bytes, bool writes);

#endif
