/* TMA, the engine of bulk copies: cp.async.bulk, cp.async.bulk.tensor and their reductions (PTX ISA 9.7.9.25.4,
 * 9.7.9.27).
 *
 * An instruction works out which bytes it moves, a plan of rows, and starts an operation for each CTA that receives or
 * gives them. The operation moves its rows some steps later, in several steps and in an order of its own; loads then
 * signal an mbarrier, stores first the reading of their source, later their completion to the bulk group of the
 * thread. */
#ifndef CUDASIM_MACHINE_ASYNC_TMA_H
#define CUDASIM_MACHINE_ASYNC_TMA_H

#include "machine/core/machine.h"
#include "tensor_map.h"

/* A row of a box: packed bytes [skip, skip + valid) of it lie in global memory, the others outside of the tensor. */
struct tma_row {
    uint32_t shared;                      /* offset in the CTA, before swizzling */
    uint32_t skip, valid;
    uint64_t address;                     /* of the first valid byte */
    uint8_t *host;                        /* the same; NULL: nothing is valid */
};

/* Reduces `bytes` bytes of whole elements at `to` (global or shared memory) with those at `from`; kind is the
 * instruction's own. */
typedef void tma_combine(uint64_t kind, uint8_t *to, const uint8_t *from, uint32_t bytes);

struct tma_plan {
    struct warp *warp;
    const struct insn *in;
    uint32_t lane;
    struct tensor_layout layout;          /* type, swizzle, fill; a plain copy is of type u8 */
    uint32_t row_bytes;                   /* packed */
    uint32_t count;
    struct tma_row *row;
    uint16_t byte_mask;                   /* of each 16 bytes that are stored */
    tma_combine *combine;                 /* NULL: a copy */
    bool read_already;                    /* a multicast reads global memory once: this is not its first CTA */
    uint64_t kind;
};

enum { TMA_ROW_BYTES = 2048 };            /* the longest row */

/* Where completion is signalled: `bytes` are completed on the mbarrier.  of_pair (.cta_group::2): it is in the CTA
 * whose shared memory is written or in the other CTA of that CTA's pair. */
struct tma_barrier { struct cta *cta; uint32_t offset, bytes; bool of_pair; };

/* Each copies the plan, reports conflicts with other accesses, and starts the operation. */
trap tma_load(const struct tma_plan *plan, struct cta *to, struct tma_barrier barrier);
/* To each CTA of the multicast mask in operand `mask`, at the same offsets; without one (OPERAND_NONE) to this one.  Of
 * a pair's CTAs the one that holds the mbarrier of this one's pair is signalled: all even ones, or all odd ones. */
trap tma_load_each(const struct tma_plan *plan, struct cta *to, struct tma_barrier barrier, const struct operand *mask);
trap tma_store(const struct tma_plan *plan, struct cta *from);
/* Rows of `from` to the same rows of `to`, `distance` bytes further on. */
trap tma_exchange(const struct tma_plan *plan, struct cta *from, struct cta *to, int64_t distance,
                  struct tma_barrier barrier);

/* ---- what instructions share ---- */

/* The CTA and offset of `bytes` bytes of shared memory, or a report. */
trap tma_shared(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, uint64_t bytes, bool any_cta,
                struct cta **cta, uint32_t *offset);
/* The mbarrier that an address operand names: of the CTA whose shared memory is written, or (barrier->of_pair) of its
 * pair. */
trap tma_find_barrier(struct warp *w, const struct insn *in, uint32_t lane, const struct operand *address,
                      const struct cta *to, struct tma_barrier *barrier);
/* The host's bytes of global memory, or a report.  `within`: an address in the allocation that they must belong to; 0:
 * any. */
trap tma_global(struct warp *w, const struct insn *in, uint32_t lane, uint64_t address, uint64_t bytes, uint64_t within,
                bool writes, uint8_t **host);

#endif
