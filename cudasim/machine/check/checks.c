/* Checks of a generic access to shared memory: live mbarriers, races, bytes that nothing wrote; accesses that
 * synchronise. */
#include "checks.h"
#include "between.h"
#include "machine/core/report.h"

#include <stdlib.h>

bool shadow_open(struct shadow *shadow, uint32_t bytes)
{
    *shadow = (struct shadow){ .state = calloc(1, bytes + 1) };
    return shadow->state != NULL;
}

void shadow_close(struct shadow *shadow)
{
    free(shadow->state), free(shadow->granule);
    *shadow = (struct shadow){ 0 };
}

static uint32_t unwritten(const uint8_t *state, uint32_t bytes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bytes; i++) count += (state[i] & SHADOW_WRITTEN) == 0;
    return count;
}

/* A live mbarrier may be touched by mbarrier operations only (PTX ISA 9.7.13.15). */
static bool touches_mbarrier(const uint8_t *state, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if ((state[i] & SHADOW_BARRIER) != 0) return true;
    return false;
}

trap checks_shared(struct warp *w, const struct insn *in, uint32_t lanes, const struct access *a)
{
    if (w->cta->cluster->clocks != NULL) {
        const trap t = race_check(w, in, lanes, a);
        if (t != TRAP_NONE) return t;
        if (a->writes && !a->strong) w->clocks->fence_seen &= ~lanes;
    }
    const bool check = w->cta->cluster->grid->machine->options.check_uninitialised;
    FOR_LANES(l, lanes) {
        if (a->owner[l] == NULL) continue;
        uint8_t *state = a->owner[l]->shadow.state + a->offset[l];
        if (!a->mbarrier && touches_mbarrier(state, a->bytes))
            return warp_fault(w, in, l, REPORT_BARRIER, "%s bytes of a live mbarrier at shared address 0x%llx",
                              a->writes ? "writes" : "reads", (unsigned long long)a->address[l]);
        if (a->reads && check) {
            const uint32_t missing = unwritten(state, a->bytes);
            if (missing != 0)
                return warp_fault(w, in, l, REPORT_UNINITIALISED,
                                  "reads %u bytes at shared address 0x%llx, of which nothing has written %u", a->bytes,
                                  (unsigned long long)a->address[l], missing);
        }
        if (a->writes)
            for (uint32_t i = 0; i < a->bytes; i++) state[i] |= SHADOW_WRITTEN;
    }
    return TRAP_NONE;
}

trap checks_global(struct warp *w, const struct insn *in, const struct access *a)
{
    if (w->clocks == NULL) return TRAP_NONE;
    if (a->writes && !a->strong) w->clocks->fence_seen &= ~a->global;
    return race_check_global(w, in, a);
}

/* ---- accesses that synchronise ---- */

static uint64_t memory_object(const struct access *a, uint32_t lane)
{
    if (a->owner[lane] != NULL) return sync_object(SYNC_MEMORY, a->owner[lane], a->offset[lane]);
    return (uint64_t)SYNC_MEMORY << 60 | (a->address[lane] & ((UINT64_C(1) << 59) - 1)) | UINT64_C(1) << 59;
}

/* A release, or a relaxed write behind a fence, hands on what the lane knows (with weak writes between: what it knew at
 * the fence); an acquire, or a fence behind a relaxed read, takes it. */
void checks_ordered(struct warp *w, uint32_t lanes, const struct access *a, enum semantics semantics)
{
    if (w->clocks == NULL) return;
    const bool releases = semantics == ORDER_RELEASE || semantics == ORDER_ACQ_REL || semantics == ORDER_SC;
    const bool acquires = semantics == ORDER_ACQUIRE || semantics == ORDER_ACQ_REL || semantics == ORDER_SC;
    FOR_LANES(l, lanes) {
        const uint64_t object = memory_object(a, l);
        if (a->owner[l] == NULL && a->writes) between_writes(w->cta->cluster, a->address[l], releases);
        if (a->reads && acquires) checks_acquire(w, 1u << l, object);
        else if (a->reads) w->clocks->relaxed[l] = object;
        if (a->writes && (releases || (w->clocks->fence_seen >> l & 1) != 0)) checks_release(w, 1u << l, object);
        else if (a->writes) clocks_tell_fenced(w, 1u << l, object);
    }
}

void checks_observed(struct warp *w, uint32_t lanes, const struct access *a, enum semantics semantics)
{
    if (w->clocks == NULL || w->cta->cluster->grid->between == NULL) return;
    const bool acquires = semantics == ORDER_ACQUIRE || semantics == ORDER_ACQ_REL || semantics == ORDER_SC;
    FOR_LANES(l, lanes) if (a->owner[l] == NULL) between_reads(w->cta->cluster, a->address[l], acquires);
}

void checks_release_relaxed(struct warp *w, uint32_t lanes, uint64_t object)
{
    if (w->clocks == NULL) return;
    const uint32_t fenced = w->clocks->fence_seen;
    checks_release(w, lanes & fenced, object);
    clocks_tell_fenced(w, lanes & ~fenced, object);
    clocks_tell_proxied(w, lanes & ~fenced, object);
    clocks_carry_out(w, lanes, object);
}

void checks_acquire_relaxed(struct warp *w, uint32_t lanes, uint64_t object)
{
    if (w->clocks == NULL) return;
    FOR_LANES(l, lanes) w->clocks->relaxed[l] = object;
    clocks_carry_in(w, object, true);
}
