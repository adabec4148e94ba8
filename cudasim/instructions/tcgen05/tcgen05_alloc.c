/* tcgen05.alloc, dealloc, relinquish_alloc_permit (PTX ISA 9.7.16). */
#include "instructions/table/families.h"
#include "instructions/mma/fragment.h"
#include "instructions/memory/memory.h"
#include "machine/tensor/tensor_pipe.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"
#include "machine/memory/access.h"

enum { LEAST_COLUMNS = 32 };

static trap uniform(struct warp *w, const struct insn *in, const uint64_t *row, const char *what, uint32_t *value)
{
    for (uint32_t l = 1; l < LANES; l++)
        if ((uint32_t)row[l] != (uint32_t)row[0])
            return warp_fault(w, in, l, REPORT_ILLEGAL, "has %s that is not the same in all lanes", what);
    *value = (uint32_t)row[0];
    return TRAP_NONE;
}

static bool count_is_legal(uint64_t n) { return n >= LEAST_COLUMNS && n <= TENSOR_COLUMNS && (n & (n - 1)) == 0; }

static trap read_count(struct warp *w, const struct insn *in, uint32_t *columns)
{
    trap t = uniform(w, in, source(w, in, 1), "a number of columns", columns);
    if (t == TRAP_NONE && !count_is_legal(*columns))
        t = warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "has %u columns; the number is a power of two from 32 to 512",
                       *columns);
    return t;
}

/* The address is stored by one lane, as a weak generic-proxy write.  ThunderKittens gives .shared::cta a generic
 * address, of which ptxas takes the lower half. */
static trap store_address(struct warp *w, const struct insn *in, uint32_t value)
{
    struct access a = { .space = (enum space)in->space, .bytes = 4, .writes = true };
    address_lanes(w, &in->operand[0], 1, a.address);
    if (a.address[0] > UINT32_MAX) a.space = SPACE_GENERIC;
    if (a.space == SPACE_GENERIC
        && a.address[0] - SHARED_WINDOW - w->cta->shared_base >= UINT64_C(1) << SHARED_RANK_SHIFT)
        return warp_fault(w, in, 0, REPORT_OUT_OF_BOUNDS,
                          "writes to the generic address 0x%llx, which is not in the shared memory of its CTA",
                          (unsigned long long)a.address[0]);
    const trap t = memory_access(w, in, 1, &a);
    if (t == TRAP_NONE) store_bytes(a.host[0], 4, value);
    return t;
}

static trap check_allocation(struct warp *w, const struct insn *in, const struct tensor_memory *m, uint32_t columns)
{
    if (m->relinquished)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                          "allocates tensor memory after tcgen05.relinquish_alloc_permit was executed in the CTA");
    if (m->last_size != 0 && columns > m->last_size)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                          "allocates %u columns after an allocation of %u; sizes of a CTA's allocations must not "
                          "increase", columns,
                          m->last_size);
    return TRAP_NONE;
}

/* The number of columns, the tensor memory, and whether the whole kernel has this cta_group. */
static trap begin(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t group, uint32_t *columns,
                  struct tensor_memory **m)
{
    (void)lanes;
    trap t = read_count(w, in, columns);
    *m = t == TRAP_NONE ? tensor_memory_of(w, in) : NULL;
    if (*m == NULL) return TRAP_FAULT;
    return tensor_check_group(w, in, group);
}

/* tcgen05.alloc [a], n   [a] = address of n columns; waits until they are free */
static trap op_alloc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t columns = 0;
    struct tensor_memory *m = NULL;
    trap t = begin(w, in, lanes, 1, &columns, &m);
    if (t == TRAP_NONE) t = check_allocation(w, in, m, columns);
    if (t != TRAP_NONE) return t;
    const int first = tensor_allocate(w->cta, NULL, columns);
    return first < 0 ? warp_wait(w, WAIT_TENSOR_MEMORY, columns, 0) : store_address(w, in, (uint32_t)first);
}

/* tcgen05.dealloc a, n   frees what one alloc gave */
static trap op_dealloc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t columns = 0, address = 0;
    struct tensor_memory *m = NULL;
    trap t = begin(w, in, lanes, 1, &columns, &m);
    if (t == TRAP_NONE) t = uniform(w, in, source(w, in, 0), "an address", &address);
    if (t == TRAP_NONE) t = tensor_check_freed(w, in, m, address, columns);
    if (t == TRAP_NONE) tensor_free(w->cta, address, columns);
    return t;
}

/* ---- CTA pairs: a warp of each executes the same ---- */

/* The peer, whether or not it has executed a tcgen05 instruction; NULL: reported. */
static struct cta *peer_of(struct warp *w, const struct insn *in)
{
    const struct cluster *c = w->cta->cluster;
    const uint32_t rank = w->cta->rank ^ 1;
    if (rank >= c->ctas)
        warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "needs a CTA pair; CTA rank %u has no peer in its cluster of %u",
                   w->cta->rank, c->ctas);
    else if (c->cta[rank].live_threads == 0)
        warp_fault(w, in, NO_LANE, REPORT_DEADLOCK,
                   "waits for the peer, CTA rank %u, to execute the same; it has ended", rank);
    else
        return &c->cta[rank];
    return NULL;
}

enum { STAGE_NEW, STAGE_ASKED };

/* Asks for the request to be granted together with the peer's.  *granted: it has been; else TRAP_WAIT or a report. */
static trap ask(struct warp *w, const struct insn *in, struct tensor_memory *m, struct tensor_request request,
                struct cta **peer, bool *granted)
{
    *granted = false;
    if (w->group->stage == STAGE_NEW) {
        /* another warp's turn */
        if (m->request.columns != 0) return warp_wait(w, WAIT_TENSOR_MEMORY, request.columns, 1);
        m->request = request;
        w->group->stage = STAGE_ASKED;
        cluster_event(w->cta->cluster);
    }
    if (m->request.granted) {
        *granted = true;
        return TRAP_NONE;
    }
    *peer = peer_of(w, in);
    if (*peer == NULL) return TRAP_FAULT;
    struct tensor_request *other = (*peer)->sm == NULL ? NULL : &(*peer)->sm->tensor->request;
    if (other == NULL || other->columns == 0 || other->granted)
        return warp_wait(w, WAIT_TENSOR_MEMORY, request.columns, 1);
    if (other->frees == request.frees && other->columns == request.columns && other->address == request.address)
        return TRAP_NONE;
    return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                      "%s %u columns at 0x%x, while the peer CTA %s %u at 0x%x; both CTAs of a pair execute the same",
                      request.frees ? "frees" : "allocates", request.columns, request.address,
                      other->frees ? "frees" : "allocates", other->columns, other->address);
}

static void grant(struct tensor_memory *m, struct cta *peer, uint32_t address)
{
    struct tensor_request *other = &peer->sm->tensor->request;
    other->granted = true;
    other->address = address;
    m->request = (struct tensor_request){ 0 };
    cluster_event(peer->cluster);
}

/* tcgen05.alloc.cta_group::2 [a], n   the same columns in both CTAs of the pair; waits for the peer's alloc, too */
static trap op_alloc_pair(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t columns = 0;
    bool granted;
    struct cta *peer = NULL;
    struct tensor_memory *m = NULL;
    trap t = begin(w, in, lanes, 2, &columns, &m);
    if (t == TRAP_NONE && w->group->stage == STAGE_NEW) t = check_allocation(w, in, m, columns);
    if (t == TRAP_NONE) t = ask(w, in, m, (struct tensor_request){ .columns = columns }, &peer, &granted);
    if (t != TRAP_NONE) return t;
    uint32_t address = m->request.address;
    if (granted) {
        m->request = (struct tensor_request){ 0 };
        cluster_event(w->cta->cluster);
    } else {
        const int first = tensor_allocate(w->cta, peer, columns);
        if (first < 0) return warp_wait(w, WAIT_TENSOR_MEMORY, columns, 0);
        address = (uint32_t)first;
        grant(m, peer, address);
    }
    return store_address(w, in, address);
}

/* tcgen05.dealloc.cta_group::2 a, n   frees the columns in both CTAs; waits for the peer's dealloc */
static trap op_dealloc_pair(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t columns = 0, address = 0;
    bool granted;
    struct cta *peer = NULL;
    struct tensor_memory *m = NULL;
    trap t = begin(w, in, lanes, 2, &columns, &m);
    if (t == TRAP_NONE) t = uniform(w, in, source(w, in, 0), "an address", &address);
    if (t == TRAP_NONE && w->group->stage == STAGE_NEW) t = tensor_check_freed(w, in, m, address, columns);
    if (t == TRAP_NONE) t = ask(w, in, m, (struct tensor_request){ .columns = columns, .address = address,
                                                                   .frees = true }, &peer,
                                &granted);
    if (t != TRAP_NONE) return t;
    if (granted) {
        m->request = (struct tensor_request){ 0 };
        cluster_event(w->cta->cluster);
        return TRAP_NONE;
    }
    tensor_free(w->cta, address, columns);
    tensor_free(peer, address, columns);
    grant(m, peer, address);
    return TRAP_NONE;
}

/* tcgen05.relinquish_alloc_permit   the CTA allocates no more */
static trap relinquish(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t group)
{
    (void)lanes;
    struct tensor_memory *m = tensor_memory_of(w, in);
    if (m == NULL) return TRAP_FAULT;
    const trap t = tensor_check_group(w, in, group);
    if (t == TRAP_NONE) tensor_relinquish(w->cta);
    return t;
}
static trap op_relinquish(struct warp *w, const struct insn *in, uint32_t lanes) { return relinquish(w, in, lanes, 1); }
static trap op_relinquish_pair(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return relinquish(w, in, lanes, 2);
}

static const char *check_count(struct module *module, struct insn *in)
{
    const struct operand *n = &in->operand[1];
    (void)module;
    return n->kind == OPERAND_CONSTANT && !count_is_legal((uint32_t)n->row[0])
               ? "the number of columns is a power of two from 32 "
                 "to 512"
               : NULL;
}

#define SECTION "9.7.16 tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit"
#define ROWS(group, alloc, dealloc, relinquish) \
    { "tcgen05.alloc.cta_group::" group ".sync.aligned{.shared::cta}.b32", \
      NULL, \
      "a s:b32", \
      86, \
      "sm_100f", \
      DEMANDS_WHOLE_WARP, \
      alloc, \
      check_count, \
      SECTION }, \
        { "tcgen05.dealloc.cta_group::" group ".sync.aligned.b32", \
          NULL, \
          "s:b32 s:b32", \
          86, \
          "sm_100f", \
          DEMANDS_WHOLE_WARP, \
          dealloc, \
          check_count, \
          SECTION }, \
    { \
        "tcgen05.relinquish_alloc_permit.cta_group::" group ".sync.aligned", NULL, "", 86, "sm_100f", \
            DEMANDS_WHOLE_WARP, relinquish, NULL, SECTION \
    }
static const struct row rows[] = {
    ROWS("1", op_alloc, op_dealloc, op_relinquish),
    ROWS("2", op_alloc_pair, op_dealloc_pair, op_relinquish_pair),
};

const struct family family_tcgen05_alloc = FAMILY("allocation of tensor memory", rows);
