/* tcgen05.alloc, dealloc, relinquish_alloc_permit of a single CTA (PTX ISA 9.7.16). */
#include "instructions/families.h"
#include "instructions/fragment.h"
#include "instructions/memory.h"
#include "machine/tensor_memory.h"

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

static trap read_count(struct warp *w, const struct insn *in, uint32_t lanes, uint32_t *columns)
{
    trap t = whole_warp(w, in, lanes);
    if (t == TRAP_NONE) t = uniform(w, in, source(w, in, 1), "a number of columns", columns);
    if (t == TRAP_NONE && !count_is_legal(*columns))
        t = warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "has %u columns; the number is a power of two from 32 to 512", *columns);
    return t;
}

/* The address is stored by one lane, as a weak generic-proxy write. */
static trap store_address(struct warp *w, const struct insn *in, uint32_t value)
{
    struct access a = { .space = (enum space)in->space, .bytes = 4, .writes = true };
    address_lanes(w, &in->operand[0], 1, a.address);
    if (a.space == SPACE_GENERIC && a.address[0] - SHARED_WINDOW - w->cta->shared_base >= UINT64_C(1) << SHARED_RANK_SHIFT)
        return warp_fault(w, in, 0, REPORT_OUT_OF_BOUNDS,
                          "writes to the generic address 0x%llx, which is not in the shared memory of its CTA",
                          (unsigned long long)a.address[0]);
    const trap t = memory_access(w, in, 1, &a);
    if (t == TRAP_NONE) store_bytes(a.host[0], 4, value);
    return t;
}

/* tcgen05.alloc [a], n   [a] = address of n columns; waits until they are free */
static trap op_alloc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t columns = 0;
    trap t = read_count(w, in, lanes, &columns);
    struct tensor_memory *m = t == TRAP_NONE ? tensor_memory_of(w, in) : NULL;
    if (m == NULL) return TRAP_FAULT;
    if (m->relinquished)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                          "allocates tensor memory after tcgen05.relinquish_alloc_permit was executed in the CTA");
    if (m->last_size != 0 && columns > m->last_size)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                          "allocates %u columns after an allocation of %u; sizes of a CTA's allocations must not increase", columns,
                          m->last_size);
    const int first = tensor_allocate(m, columns);
    if (first < 0) {
        w->group->stage = 1;
        return warp_wait(w, WAIT_TENSOR_MEMORY, columns, 0);
    }
    m->last_size = columns;
    return store_address(w, in, (uint32_t)first);
}

/* tcgen05.dealloc a, n   frees what one alloc gave */
static trap op_dealloc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t columns = 0, address = 0;
    trap t = read_count(w, in, lanes, &columns);
    if (t == TRAP_NONE) t = uniform(w, in, source(w, in, 0), "an address", &address);
    struct tensor_memory *m = t == TRAP_NONE ? tensor_memory_of(w, in) : NULL;
    return m == NULL ? TRAP_FAULT : tensor_free(w, in, m, address, columns);
}

/* tcgen05.relinquish_alloc_permit   the CTA allocates no more */
static trap op_relinquish(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const trap t = whole_warp(w, in, lanes);
    struct tensor_memory *m = t == TRAP_NONE ? tensor_memory_of(w, in) : NULL;
    if (m == NULL) return TRAP_FAULT;
    m->relinquished = true;
    return TRAP_NONE;
}

static const char *check_count(struct module *module, struct insn *in)
{
    const struct operand *n = &in->operand[1];
    (void)module;
    return n->kind == OPERAND_CONSTANT && !count_is_legal((uint32_t)n->row[0]) ? "the number of columns is a power of two from 32 "
                                                                                  "to 512" : NULL;
}

#define SECTION "9.7.16 tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit"
static const struct row rows[] = {
    { "tcgen05.alloc.cta_group::1.sync.aligned{.shared::cta}.b32", NULL, "a s:b32", 86, "sm_100f", DEMANDS_ALIGNED, op_alloc,
      check_count, SECTION },
    { "tcgen05.dealloc.cta_group::1.sync.aligned.b32", NULL, "s:b32 s:b32", 86, "sm_100f", DEMANDS_ALIGNED, op_dealloc,
      check_count, SECTION },
    { "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned", NULL, "", 86, "sm_100f", DEMANDS_ALIGNED, op_relinquish, NULL,
      SECTION },
};

const struct family family_tcgen05_alloc = FAMILY("allocation of tensor memory", rows);
