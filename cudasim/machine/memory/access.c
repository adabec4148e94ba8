/* Accesses of a warp: windows of the generic space, bounds, alignment, and what the checks say. */
#include "access.h"
#include "machine/check/checks.h"
#include "machine/core/address_space.h"
#include "machine/core/report.h"

#include <stdio.h>

uint64_t variable_address(const struct warp *w, const struct variable *v)
{
    switch (v->space) {
    case SPACE_SHARED: return w->cta->shared_base + w->cta->cluster->grid->symbol[v->index];
    case SPACE_LOCAL: return w->group->local + v->offset;
    case SPACE_PARAM: return v->of_entry ? PARAM_WINDOW + v->offset : w->group->local + v->offset;
    default: return w->cta->cluster->grid->symbol[v->index];
    }
}

void address_lanes(struct warp *w, const struct operand *o, uint32_t lanes, uint64_t *address)
{
    const uint64_t offset = (uint64_t)o->value;
    if (o->based) {
        const uint64_t *base = register_row(w, o->slot);
        const uint64_t mask = type_bits((enum ptx_type)o->type) == 32 ? UINT32_MAX : UINT64_MAX;
        FOR_LANES(l, lanes) address[l] = (base[l] + offset) & mask;
        return;
    }
    const uint64_t base = o->variable == NULL ? 0 : variable_address(w, o->variable);
    FOR_LANES(l, lanes) address[l] = base + offset;
}

struct cta *shared_target(struct warp *w, uint32_t address, uint32_t *offset)
{
    struct cluster *cluster = w->cta->cluster;
    const uint32_t rank = address >> SHARED_RANK_SHIFT;
    *offset = address & ((1u << SHARED_RANK_SHIFT) - 1);
    return rank < cluster->ctas ? &cluster->cta[rank] : NULL;
}

static const char *verb(const struct access *a)
{
    return a->writes && a->reads ? "updates" : a->writes ? "writes" : "reads";
}

static uint8_t *in_shared(struct warp *w, const struct insn *in, struct access *a, uint32_t lane, uint64_t address,
                          bool any_cta)
{
    uint32_t offset;
    struct cta *cta = address > UINT32_MAX ? NULL : shared_target(w, (uint32_t)address, &offset);
    if (cta == NULL) {
        warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                   "%s %u bytes at shared address 0x%llx, which belongs to no CTA of the cluster", verb(a), a->bytes,
                   (unsigned long long)address);
        return NULL;
    }
    if (cta != w->cta && !any_cta) {
        warp_fault(
            w, in, lane, REPORT_OUT_OF_BOUNDS,
            "%s %u bytes at shared address 0x%llx of CTA rank %u with an instruction for the CTA's own shared memory "
            "(rank %u)",
            verb(a), a->bytes, (unsigned long long)address, cta->rank, w->cta->rank);
        return NULL;
    }
    if (cta->live_threads == 0 && !a->mbarrier) {        /* mbarrier.c has its own sentence */
        warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                   "%s %u bytes at shared address 0x%llx of CTA rank %u, which has ended: its shared memory is gone",
                   verb(a), a->bytes, (unsigned long long)address, cta->rank);
        return NULL;
    }
    const uint32_t first = w->cta->cluster->grid->machine->device->shared_reserved;
    if (offset < first || offset > cta->shared_bytes || a->bytes > cta->shared_bytes - offset) {
        warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                   "%s %u bytes at shared address 0x%llx; the CTA has 0x%x to 0x%x (%u bytes)", verb(a), a->bytes,
                   (unsigned long long)address, first, cta->shared_bytes, cta->shared_bytes - first);
        return NULL;
    }
    a->owner[lane] = cta;
    a->offset[lane] = offset;
    return cta->shared + offset;
}

static const struct global_memory *memory_of(const struct warp *w) { return &w->cta->cluster->grid->machine->memory; }

/* Bytes that no allocation has in reach; below: the last one that begins before them, NULL where there is none. */
static uint8_t *outside(struct warp *w, const struct insn *in, const struct access *a, uint32_t lane, uint64_t address,
                        const struct allocation *below)
{
    char why[400] = "where nothing is allocated";
    if (!space_explain(memory_of(w), address, why, sizeof why) && below != NULL)
        snprintf(why, sizeof why, "%llu bytes behind the start of the %llu bytes allocated at 0x%llx%s%s",
                 (unsigned long long)(address - below->base), (unsigned long long)below->bytes,
                 (unsigned long long)below->base, below->name == NULL ? "" : " for ",
                 below->name == NULL ? "" : below->name);
    warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, "%s %u bytes at global address 0x%llx, %s", verb(a), a->bytes,
               (unsigned long long)address, why);
    return NULL;
}

static uint8_t *in_global(struct warp *w, const struct insn *in, struct access *a, uint32_t lane, uint64_t address)
{
    const struct allocation *found = w->recent;
    if (found == NULL || address - found->base >= found->bytes) {
        found = space_find(memory_of(w), address);
        if (found == NULL) return outside(w, in, a, lane, address, global_last_below(memory_of(w), address));
    }
    const uint64_t offset = address - found->base;
    if (a->bytes > found->bytes - offset) return outside(w, in, a, lane, address, found);
    if (a->writes && !space_may_write(memory_of(w), found)) {
        warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS, SPACE_READ_ONLY, space_read_only(found),
                   (unsigned long long)address);
        return NULL;
    }
    w->recent = found;
    a->global |= 1u << lane;
    return found->host + offset;
}

static uint8_t *in_local(struct warp *w, const struct insn *in, struct access *a, uint32_t lane, uint64_t address)
{
    if (address < LOCAL_BASE || address > w->local_bytes || a->bytes > w->local_bytes - address) {
        warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                   "%s %u bytes at local address 0x%llx; the thread has 0x%x to 0x%x", verb(a), a->bytes,
                   (unsigned long long)address, LOCAL_BASE, w->local_bytes);
        return NULL;
    }
    return w->local + (size_t)lane * w->local_bytes + address;
}

static uint8_t *in_param(struct warp *w, const struct insn *in, struct access *a, uint32_t lane, uint64_t address)
{
    const struct grid *grid = w->cta->cluster->grid;
    if (address < PARAM_WINDOW) return in_local(w, in, a, lane, address);
    const uint64_t offset = address - PARAM_WINDOW, bytes = grid->function->parameter_bytes;
    if (a->writes || offset > bytes || a->bytes > bytes - offset) {
        warp_fault(w, in, lane, REPORT_OUT_OF_BOUNDS,
                   "%s %u bytes at offset %llu of the %llu bytes of kernel parameters", verb(a), a->bytes,
                   (unsigned long long)offset, (unsigned long long)bytes);
        return NULL;
    }
    return (uint8_t *)(uintptr_t)(grid->launch->parameters + offset);
}

static uint8_t *in_generic(struct warp *w, const struct insn *in, struct access *a, uint32_t lane, uint64_t address)
{
    if (address < SHARED_WINDOW) return in_global(w, in, a, lane, address);
    if (address - SHARED_WINDOW < WINDOW_BYTES) return in_shared(w, in, a, lane, address - SHARED_WINDOW, true);
    if (address - LOCAL_WINDOW < WINDOW_BYTES) return in_local(w, in, a, lane, address - LOCAL_WINDOW);
    if (address - PARAM_WINDOW < PARAMETER_LIMIT) return in_param(w, in, a, lane, address);
    return in_global(w, in, a, lane, address);
}

static uint8_t *find(struct warp *w, const struct insn *in, struct access *a, uint32_t lane)
{
    const uint64_t address = a->address[lane];
    switch (a->space) {
    case SPACE_SHARED: return in_shared(w, in, a, lane, address, false);
    case SPACE_SHARED_CLUSTER: return in_shared(w, in, a, lane, address, true);
    case SPACE_LOCAL: return in_local(w, in, a, lane, address);
    case SPACE_PARAM: return in_param(w, in, a, lane, address);
    case SPACE_GLOBAL: case SPACE_CONST: return in_global(w, in, a, lane, address);
    default: return in_generic(w, in, a, lane, address);
    }
}

/* The common case first: all lanes in the CTA's own shared memory.  False: find out lane by lane. */
static bool all_in_own_shared(struct warp *w, uint32_t lanes, struct access *a)
{
    struct cta *cta = w->cta;
    if (a->space != SPACE_SHARED || a->bytes > cta->shared_bytes) return false;
    const uint64_t base = cta->shared_base, first = base + cta->cluster->grid->machine->device->shared_reserved;
    const uint64_t last = base + cta->shared_bytes - a->bytes;
    bool inside = true;
    FOR_LANES(l, lanes)
        inside &= a->address[l] >= first && a->address[l] <= last && (a->address[l] & (a->bytes - 1)) == 0;
    if (!inside) return false;
    FOR_LANES(l, lanes) {
        a->owner[l] = cta;
        a->offset[l] = (uint32_t)(a->address[l] - base);
        a->host[l] = cta->shared + a->offset[l];
    }
    return true;
}

trap memory_access(struct warp *w, const struct insn *in, uint32_t lanes, struct access *a)
{
    bool shared = false;
    a->global = 0;
    if (all_in_own_shared(w, lanes, a)) return a->locates ? TRAP_NONE : checks_shared(w, in, lanes, a);
    FOR_LANES(l, lanes) {
        if ((a->address[l] & (a->bytes - 1)) != 0)
            return warp_fault(w, in, l, REPORT_MISALIGNED, "%s %u bytes at address 0x%llx, which is no multiple of %u",
                              verb(a), a->bytes, (unsigned long long)a->address[l], a->bytes);
        a->owner[l] = NULL;
        a->host[l] = find(w, in, a, l);
        if (a->host[l] == NULL) return TRAP_FAULT;
        shared |= a->owner[l] != NULL;
    }
    if (a->locates) return TRAP_NONE;
    const trap t = shared ? checks_shared(w, in, lanes, a) : TRAP_NONE;
    return t == TRAP_NONE && a->global != 0 ? checks_global(w, in, a) : t;
}
