/* Races between the clusters of one grid, which run on several host threads.
 *
 * Each four bytes of global memory that a grid touches remember the cluster that wrote them last and one that has read
 * them.  Each cluster has a clock, which goes on when it releases, and knows of others what it has acquired: a cluster
 * is taken as one, so that what one of its threads has acquired all of them know.  That orders too much, never too
 * little: a race may be missed, none is invented.
 *
 * Synchronisation between clusters goes through global memory: releases and acquires, or strong accesses with fences
 * (PTX ISA, memory consistency model). */
#ifndef CUDASIM_MACHINE_CHECK_BETWEEN_H
#define CUDASIM_MACHINE_CHECK_BETWEEN_H

#include "machine/core/machine.h"

/* What all clusters of a grid have in common; nothing where there is one cluster, or no host memory: then nothing is
 * watched. */
void between_open(struct grid *grid);
void between_close(struct grid *grid);
/* Frees what a cluster knows. */
void between_leave(struct cluster *cluster);

/* A strong access to a word of global memory: releases or acquires, or would do so with a fence. */
void between_writes(struct cluster *cluster, uint64_t address, bool releases);
void between_reads(struct cluster *cluster, uint64_t address, bool acquires);
void between_fence(struct cluster *cluster);

/* strong: does not race with others like it.  stored: what is written, beside what is there; NULL: not known.  Who
 * writes what is there does not race. */
struct between_access { uint64_t address, bytes; bool writes, strong; const void *there, *stored; };
trap between_check(struct warp *w, const struct insn *in, uint32_t lane, const struct between_access *access);
/* The lanes of a generic access to global memory. */
trap between_lanes(struct warp *w, const struct insn *in, const struct access *access);

#endif
