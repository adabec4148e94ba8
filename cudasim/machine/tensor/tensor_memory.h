/* Tensor memory (PTX ISA 9.7.16): 128 lanes x 512 columns x 32 bits of an SM, allocated in columns.  CTAs on one SM
 * share the columns (sms.h); what a CTA has allocated is its own.
 *
 * tcgen05.ld and tcgen05.st are asynchronous: until the warp's wait::ld or wait::st nothing orders them.  Between warps
 * the manual demands more than a barrier: fence::before_thread_sync behind the wait, the synchronisation,
 * fence::after_thread_sync. A cell remembers its last writer and each warp's last read, by the warp's count of
 * accesses; the warp remembers when it waited and fenced. */
#ifndef CUDASIM_MACHINE_TENSOR_TENSOR_MEMORY_H
#define CUDASIM_MACHINE_TENSOR_TENSOR_MEMORY_H

#include "sms.h"

enum { TENSOR_LANES = 128, TENSOR_QUARTERS = 4, WARPS_OF_QUARTER = 8 };
enum { HALF_LOW = 1, HALF_HIGH = 2, HALF_BOTH = 3 };
enum tensor_direction { TENSOR_LOAD, TENSOR_STORE };

/* warp: its index + 1; 0: none. */
struct tensor_mark { uint32_t access, pc : 24, warp : 8; };
struct tensor_cell { struct tensor_mark writer, reader[WARPS_OF_QUARTER]; };

/* fence::before_thread_sync: what the warp had waited for, its lanes' clocks, and the number of the cluster's next
 * operation. */
struct tensor_fence { uint64_t serial; uint32_t waited[2], lanes, clock[LANES]; };

struct tensor_warp {
    uint32_t accesses;                    /* ld and st so far; the first is number 0 */
    uint32_t waited[2];                   /* accesses below this number are complete, by enum tensor_direction */
    struct tensor_fence *fence, *wait;    /* wait: after a tcgen05.wait, one for all between two releases */
    uint32_t fences, fence_capacity, waits, wait_capacity;
    uint32_t *known;                      /* actors' clocks at the last fence::after_thread_sync; NULL: none */
    struct tensor_issuer *issuer;         /* its threads that have issued operations: tensor_pipe.h */
};

struct tensor_record;

struct tensor_memory {
    uint16_t first[TENSOR_COLUMNS];       /* the first column of the allocation that holds the column, + 1; 0: free */
    uint16_t size[TENSOR_COLUMNS];        /* of the allocation that begins here */
    uint32_t last_size;                   /* 0: none yet */
    bool relinquished;
    /* cta_group::2: what a warp of this CTA waits to do together with one of the peer; columns 0: nothing. */
    struct tensor_request { uint32_t columns, address; bool frees, granted; } request;
    struct tensor_warp *warp;
    uint32_t warps;
    struct tensor_record *record;         /* what operations have used: tensor_pipe.h */
    /* [TENSOR_LANES][TENSOR_COLUMNS] */
    uint32_t *value;
    uint8_t *valid;                       /* HALF_* that have been written */
    struct tensor_cell *column[TENSOR_COLUMNS]; /* [TENSOR_LANES] each, what ld and st have left; NULL: nothing yet */
    bool touched[TENSOR_COLUMNS];         /* ld or st may have marked a cell of the column */
};

/* The CTA's; made when first asked for.  NULL: no host memory, reported. */
struct tensor_memory *tensor_memory_of(struct warp *w, const struct insn *in);
void tensor_memory_close(struct cta *cta);

/* The first column of `columns` free ones, taken; -1: there are none now, or another CTA of the SM has the permit to
 * allocate. peer: NULL, or the CTA that gets the same columns. */
int tensor_allocate(struct cta *cta, struct cta *peer, uint32_t columns);
void tensor_relinquish(struct cta *cta);
/* Whether the columns may be freed: an allocation of that size begins there, and no ld or st of it is under way as far
 * as the warp knows (of operations: tensor_check_freed). */
trap tensor_check_allocated(struct warp *w, const struct insn *in, struct tensor_memory *m, uint32_t address,
                            uint32_t columns);
void tensor_free(struct cta *cta, uint32_t address, uint32_t columns);
/* A dealloc of cta_group::2 waits for the peer's: who frees them has no claim to the columns any more. */
static inline bool tensor_is_being_freed(const struct tensor_memory *m, uint32_t first, uint32_t columns)
{
    const struct tensor_request *r = &m->request;
    return r->frees && !r->granted && first < r->address + r->columns && r->address < first + columns;
}
/* When the CTA's last thread ends: reports what has not been freed. */
trap tensor_cta_ends(struct warp *w, const struct insn *in);

/* One cell, by a warp's ld or st: checks and marks it. */
trap tensor_touch(struct warp *w, const struct insn *in, enum tensor_direction direction, uint32_t lane,
                  uint32_t column);
/* An operation that the warp issues reads or writes a cell of the CTA: what ld and st have left there.  When it writes,
 * they are forgotten: whoever comes behind it comes behind them. */
trap tensor_check_cell(struct warp *w, const struct insn *in, struct cta *cta, bool writes, uint32_t lane,
                       uint32_t column);

/* False: no host memory. */
bool tensor_wait(struct warp *w, struct tensor_memory *m, enum tensor_direction direction);
bool tensor_fence_before(struct warp *w, struct tensor_memory *m, uint32_t lanes);
bool tensor_fence_after(struct warp *w, struct tensor_memory *m, uint32_t lanes);
/* The same where the module has no tcgen05.fence at all and nobody asked for them: what is complete, and what was
 * issued, is as if fenced; barriers with release and acquire are enough. */
bool tensor_implied_before(struct warp *w, struct tensor_memory *m, uint32_t lanes);
bool tensor_implied_after(struct warp *w, struct tensor_memory *m, uint32_t lanes);
/* The module has no fence.proxy.async, and nobody asked for it: data of cp.async that was waited for serve as
 * operands. */
bool tensor_copies_are_seen(const struct warp *w);

#endif
