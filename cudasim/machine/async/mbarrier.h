/* mbarrier objects (PTX ISA 9.7.13.15).
 *
 * The manual makes the contents of the 64 bits opaque, so they mark a place only (SHADOW_BARRIER); phase and counts are
 * kept here, by the CTA whose shared memory holds the object.  Everything that arrives, expects or completes goes
 * through these functions: they check the counts, end phases, and pass knowledge on (machine/check/checks.h).
 *
 * An engine whose copies complete on an mbarrier:
 *     mbarrier_target(w, in, lane, space, false, address, &cta, &offset)
 *         when issued: where it is; bounds and alignment
 *     mbarrier_access(w, in, lane, cta, offset)
 *         when issued: it is live, and its mbarrier.init is ordered before; that of another CTA's, also fenced
 *         (fence.mbarrier_init or fence.proxy.async)
 *     mbarrier_complete_tx(w, in, lane, cta, offset, bytes, token)
 *         when bytes have been moved; the token is published
 *     mbarrier_arrive_async(w, in, lane, cta, offset, token)
 *         arrive-on of cp.async.mbarrier.arrive, tcgen05.commit
 * w, in, lane say who issued it: reports name them. */
#ifndef CUDASIM_MACHINE_ASYNC_MBARRIER_H
#define CUDASIM_MACHINE_ASYNC_MBARRIER_H

#include "machine/check/checks.h"

enum { MBARRIER_BYTES = 8, MBARRIER_MOST = (1 << 20) - 1 }; /* of the arrival counts and of the tx-count's absolute
                                                               value */

struct mbarrier {
    uint32_t offset; /* in the CTA's shared memory */
    bool live;
    uint32_t expected, pending; /* arrivals: of the next phase; still missing in this one */
    int32_t tx;                 /* bytes expected and not completed */
    uint64_t phase;             /* 0, 1, ...: the one under way */
    const struct insn *changed; /* its mbarrier.init, or mbarrier.inval */
    const struct warp *maker;   /* who initialised it: warp and lane */
    uint32_t maker_lane;
    bool fenced;                /* the maker has fenced since: engines that another CTA started may signal it */
    uint32_t *waited;           /* by thread of the CTA: 1 + the phase that it last found incomplete; 0, NULL: none */
};

struct mbarrier_table {
    uint32_t count, capacity;
    struct mbarrier *barrier;
};

struct arrival {
    uint32_t count;
    uint32_t expect; /* bytes that are expected first */
    bool drop, no_complete, relaxed;
};

/* What a thread waits for: the phase of a state that mbarrier.arrive gave, or a parity. */
struct awaited {
    bool by_parity, relaxed;
    uint64_t value;
};

trap mbarrier_init(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                   uint32_t count);
trap mbarrier_inval(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset);
/* *state: the opaque state before the arrival. */
trap mbarrier_arrive(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                     struct arrival arrival, uint64_t *state);
trap mbarrier_expect_tx(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                        uint32_t bytes);
/* Whether the phase has ended; then the lane knows what was released to it.  _AGAIN: it has looked for this phase
 * before. */
enum found { FOUND_COMPLETE, FOUND_INCOMPLETE, FOUND_INCOMPLETE_AGAIN };
trap mbarrier_test(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                   struct awaited awaited, enum found *found);
/* The pending count in a state of mbarrier.arrive.noComplete. */
trap mbarrier_pending_count(struct warp *w, const struct insn *in, uint32_t lane, uint64_t state, uint32_t *count);

/* The object that an address in `space` names; own_cta: another CTA's is a report. */
trap mbarrier_target(struct warp *w, const struct insn *in, uint32_t lane, enum space space, bool own_cta,
                     uint64_t address, struct cta **cta, uint32_t *offset);

/* fence.mbarrier_init, fence.proxy.async: the lanes' mbarrier.inits may be seen by engines of the cluster. */
void mbarrier_fence(struct warp *w, uint32_t lanes);

/* ---- for engines ---- */

trap mbarrier_access(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset);
/* The same by operations of the generic proxy: st.async, red.async, cp.async.mbarrier.arrive, mbarrier.complete_tx. */
trap mbarrier_access_generic(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset);
/* token: NULL where nothing is to be published. */
trap mbarrier_complete_tx(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                          uint32_t bytes, struct async_token *token);
trap mbarrier_arrive_async(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset,
                           struct async_token *token);
/* One more arrival is awaited in this phase (cp.async.mbarrier.arrive without .noinc). */
trap mbarrier_add_pending(struct warp *w, const struct insn *in, uint32_t lane, struct cta *cta, uint32_t offset);

/* ---- for reports and checks ---- */

/* "phase 3: 1 of 2 arrivals pending, tx-count 128"; returns false where no live object is. */
bool mbarrier_describe(const struct cta *cta, uint32_t offset, char *text, size_t size);
/* Of the phase under way. */
uint32_t mbarrier_parity(const struct cta *cta, uint32_t offset);
void mbarriers_close(struct cta *cta);

#endif
