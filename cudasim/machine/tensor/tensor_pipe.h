/* The tensor pipe: asynchronous tcgen05 operations on tensor memory (PTX ISA 9.7.16.6): mma, cp, shift, and the commit
 * that signals their end.
 *
 * How an instruction uses it:
 *     struct copy { struct tensor_operation pipe; ... };                   the operation stands first
 *     struct copy *c = tensor_begin(w, in, lane, sizeof *c, &kind, TENSOR_CP, group);      NULL: reported
 *     t = tensor_uses(&c->pipe, cta, area, TENSOR_READS or TENSOR_WRITES);  at issue: allocation, and order against
 *                                                                           all others
 *     t = async_reads(tensor_token(&c->pipe), cta, offset, bytes);         shared memory that it reads
 *     tensor_start(&c->pipe);                                     it is the pipe's; or, on a trap,
 *                                                                 tensor_abandon(&c->pipe)
 *     kind.step: reads and writes cells by tensor_value, tensor_valid; *done = true.  kind.complete, kind.drop:
 *     tensor_complete, tensor_drop, or functions that end in them.
 * Of a CTA pair (cta_group::2) one thread's operation uses areas of both CTAs: tensor_peer.
 *
 * Order.  Operations of one thread that follow each other in one of the pairs of 9.7.16.6.4.2 (mma, mma of the same
 * shape and accumulator; cp, mma; shift, mma; shift, cp.4x256b; mma, shift) run in order without any synchronisation;
 * so does mma, cp, which the manual does not list and every published kernel relies upon.  The same holds for two
 * threads, when the first has executed tcgen05.fence::before_thread_sync behind the earlier one and the second knew of
 * that at its tcgen05.fence::after_thread_sync. For all else the earlier one must be complete: a commit behind it has
 * been waited for, and a fence::after_thread_sync follows. Whoever uses an area in another order is reported; so
 * operations that conflict are always ordered, and those that do not complete in any order.
 *
 * What a record remembers is one operation's use of an area; a later use that covers it, and is ordered behind it,
 * takes its place. Knowledge is that of clocks.h: the operations of a thread between two commits share a token, which
 * the commit publishes.  Where another thread's operation comes behind one of them, its token knows theirs. */
#ifndef CUDASIM_MACHINE_TENSOR_TENSOR_PIPE_H
#define CUDASIM_MACHINE_TENSOR_TENSOR_PIPE_H

#include "machine/async/agent.h"
#include "machine/check/checks.h"
#include "tensor_memory.h"

enum tensor_work { TENSOR_MMA, TENSOR_CP, TENSOR_CP_4X256B, TENSOR_SHIFT, TENSOR_COMMIT };
enum tensor_use { TENSOR_READS, TENSOR_WRITES };

/* Lanes (a bit each) of columns column ... column + columns - 1. */
struct tensor_area {
    uint32_t lanes[TENSOR_QUARTERS];
    uint32_t column, columns;
};

struct tensor_record {
    struct tensor_record *next;
    struct tensor_area area;
    bool writes;
    enum tensor_work work;
    uint32_t shape;                       /* of mma: M and N as the instruction descriptor has them; else 0 */
    struct tensor_issuer *issuer;
    struct tensor_batch *batch;
    uint64_t serial;                      /* of the operation */
    uint32_t actor, clock, pc;            /* of its token; clock 0: races are not watched */
};

/* Operations between two commits of a thread. */
struct tensor_batch { struct async_token *token; uint32_t users; };

/* A thread that has issued operations. */
struct tensor_issuer {
    struct tensor_issuer *next;
    struct warp *warp;
    uint32_t lane;
    struct tensor_batch *batch;           /* what the next commit covers; NULL: nothing */
    struct tensor_batch *before;          /* what the last one covered: a later commit covers it too */
    bool issued;                          /* something other than commits */
    uint32_t uncommitted_line;            /* PTX line of the latest operation behind the last commit; 0: none */
    uint32_t committed_line;              /* of the last commit, and its serial */
    uint64_t committed;
};

struct tensor_operation {
    struct agent_operation operation;
    enum tensor_work work;
    uint32_t group;                       /* cta_group: 1, 2 */
    uint32_t shape;                       /* set by mma before tensor_uses */
    struct tensor_issuer *issuer;
    struct tensor_batch *batch;
    uint64_t *after;                      /* serials of operations that must have completed */
    uint32_t after_count, after_capacity;
};

/* All 128 lanes, or `count` from `first` on. */
struct tensor_area tensor_lanes(uint32_t first, uint32_t count, uint32_t column, uint32_t columns);

/* bytes: of the struct that begins with the operation; zeroed.  NULL: reported. */
void *tensor_begin(struct warp *w, const struct insn *in, uint32_t lane, size_t bytes, const struct agent_kind *kind,
                   enum tensor_work work, uint32_t group);
/* The other CTA of the pair; NULL: there is none, it has ended, or it has no tensor memory: reported. */
struct cta *tensor_peer(struct warp *w, const struct insn *in);
trap tensor_uses(struct tensor_operation *operation, struct cta *cta, struct tensor_area area, enum tensor_use use);
static inline struct async_token *tensor_token(const struct tensor_operation *operation)
{
    return operation->batch->token;
}
void tensor_start(struct tensor_operation *operation);
void tensor_abandon(struct tensor_operation *operation);

/* Fields of struct agent_kind that fit every operation of the pipe. */
bool tensor_may_complete(const struct agent_operation *operation);
void tensor_complete(struct agent_operation *operation);
void tensor_drop(struct agent_operation *operation);

/* Cells, while an operation steps. */
static inline uint32_t *tensor_value(const struct cta *cta, uint32_t lane, uint32_t column)
{
    return &cta->sm->tensor->value[lane * TENSOR_COLUMNS + column];
}
/* HALF_* that have been written. */
static inline uint8_t *tensor_valid(const struct cta *cta, uint32_t lane, uint32_t column)
{
    return &cta->sm->tensor->valid[lane * TENSOR_COLUMNS + column];
}
/* Reports the first cell of the area that nothing has written, where that is watched; halves: HALF_* that are read. */
trap tensor_check_written(const struct tensor_operation *operation, const struct cta *cta,
                          const struct tensor_area *area, uint32_t halves, const char *what);

/* tcgen05.commit: arrives at the mbarriers when all operations that the lane has issued are complete. */
struct tensor_target { struct cta *cta; uint32_t offset; };
/* First, for all lanes that commit: none may have nothing to commit while another thread has. */
trap tensor_check_committers(struct warp *w, const struct insn *in, uint32_t lanes);
trap tensor_commit(struct warp *w, const struct insn *in, uint32_t lane, uint32_t group,
                   const struct tensor_target *target, uint32_t targets);

/* ld and st of a warp against operations of the pipe. */
trap tensor_order(struct warp *w, const struct insn *in, const struct tensor_area *area,
                  enum tensor_direction direction);
/* dealloc: whether the columns may be freed: an allocation of that size begins there, and nobody is using it as far as
 * the warp knows. */
trap tensor_check_freed(struct warp *w, const struct insn *in, struct tensor_memory *m, uint32_t first,
                        uint32_t columns);
/* One value of cta_group serves all instructions of a kernel. */
trap tensor_check_group(struct warp *w, const struct insn *in, uint32_t group);
/* Before the clocks of the cluster are closed. */
void tensor_pipe_close(struct cta *cta);

#endif
