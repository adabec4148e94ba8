/* Races: what memory remembers of its last accesses, and which of two are not ordered. */
#ifndef CUDASIM_MACHINE_CHECK_RACE_H
#define CUDASIM_MACHINE_CHECK_RACE_H

#include "clocks.h"

/* One access that a granule of 4 bytes remembers. */
struct mark {
    uint32_t clock;                       /* 0: none */
    uint32_t actor : 20, mask : 4, async : 1, strong : 1, adds : 1;
    uint32_t pc;
};
enum { READER_MARKS = 3, GRANULE_BYTES = 4 };
struct granule { struct mark writer, reader[READER_MARKS]; };

/* Global memory: last writers of this cluster alone, in pages that come when they are written; other clusters run on
 * other threads. Beyond the limit nothing more is remembered. */
enum { PAGE_BYTES = 4096, MOST_PAGES = 16384 };
struct global_page { uint64_t number; struct mark writer[PAGE_BYTES / GRANULE_BYTES]; };

/* A generic access of one instruction's lanes; both report what is not ordered. */
trap race_check(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *a);
trap race_check_global(struct warp *w, const struct insn *in, const struct access *a);

/* ---- the same by asynchronous operations ---- */

/* The operation reads or writes these bytes of a CTA's shared memory; `adds`: writes that commute with others like them
 * (reductions). */
trap async_reads(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
/* A read that another token of the same operation stands for afterwards: only what comes before it is checked. */
trap async_looks(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
trap async_writes(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
/* As async_writes; generic reads before it, too, need a proxy fence between; with one, a relaxed arrival behind it
 * orders them. */
trap async_writes_fenced(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
trap async_adds(struct async_token *token, struct cta *cta, uint32_t offset, uint32_t bytes);
/* The same for global memory, where only writers are remembered. */
trap async_reads_global(struct async_token *token, uint64_t address, uint64_t bytes);
trap async_writes_global(struct async_token *token, uint64_t address, uint64_t bytes);
trap async_adds_global(struct async_token *token, uint64_t address, uint64_t bytes);
/* Whether this cluster has written any of these bytes of global memory. */
bool race_wrote_global(const struct cluster *cluster, uint64_t address, uint64_t bytes);
void async_written(struct cta *cta, uint32_t offset, uint32_t bytes);

#endif
