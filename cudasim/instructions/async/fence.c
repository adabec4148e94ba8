/* Fences (PTX ISA 9.7.13.4): membar, fence, fence.proxy, fence.mbarrier_init.
 *
 * Other clusters see global memory through the host's memory; inside a cluster every access is seen in its order.  What
 * a kernel may rely on is decided by the checks of happens-before, to which each fence is told. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/check/checks.h"
#include "machine/async/mbarrier.h"
#include "machine/async/tma.h"
#include "machine/async/bulk_group.h"
#include "machine/async/tensor_map.h"
#include "machine/core/global_memory.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

/* fence, membar: what lies before is ordered before what lies behind, where relaxed accesses or arrivals carry it to
 * others */
static trap op_fence(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)in;
    atomic_thread_fence(memory_order_seq_cst);
    checks_fence(w, lanes);
    return TRAP_NONE;
}

/* fence.proxy.async: accesses of the generic proxy before it and of the async proxy behind it, and the other way
 * round */
static trap op_proxy_async(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)in;
    mbarrier_fence(w, lanes);
    checks_proxy_fence(w, lanes);
    return TRAP_NONE;
}

/* fence.proxy.async::generic.release (.acquire): the same in one direction, and a release (acquire) by what follows
 * (precedes) */
static trap op_proxy_async_generic(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)in;
    mbarrier_fence(w, lanes);
    checks_proxy_fence(w, lanes);
    checks_fence(w, lanes);
    return TRAP_NONE;
}

/* fence.proxy.alias: addresses that mean the same bytes; no two addresses of one space do, here */
static trap op_proxy_alias(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)in;
    checks_fence(w, lanes);
    return TRAP_NONE;
}

/* The lanes whose address is that of 128 bytes of global memory.  Others order nothing: CUTLASS's grouped kernels have
 * warps that hold no map acquire address 0. */
static trap lanes_with_a_map(struct warp *w, const struct insn *in, uint32_t lanes, const uint64_t *address,
                             uint32_t *found)
{
    const struct global_memory *memory = &w->cta->cluster->grid->machine->memory;
    *found = 0;
    FOR_LANES(l, lanes) {
        if (global_host(memory, address[l], TENSOR_MAP_BYTES) != NULL) {
            *found |= 1u << l;
            continue;
        }
        const trap t = warp_breaks(w, in, l, RULE_TENSORMAP_FENCE,
                                   "acquires the tensor map at 0x%llx, where no 128 bytes of global memory are "
                                   "allocated",
                                   (unsigned long long)address[l]);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

/* fence.proxy.tensormap::generic.acquire [a], 128: the tensor map at a, written by others, may be used */
static trap op_proxy_tensormap_acquire(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct access a = { .space = SPACE_GENERIC, .bytes = 64, .reads = true };
    uint32_t with_map;
    address_lanes(w, &in->operand[0], lanes, a.address);
    trap t = lanes_with_a_map(w, in, lanes, a.address, &with_map);
    if (t == TRAP_NONE && with_map != 0) t = memory_access(w, in, with_map, &a);
    if (t != TRAP_NONE) return t;
    if (with_map != 0) tma_map_acquired(w, with_map, a.address);
    return op_fence(w, in, lanes);
}

/* fence.mbarrier_init: mbarrier.inits before it are seen by the cluster and by its engines; no other writes are. */
static trap op_mbarrier_init(struct warp *w, const struct insn *in, uint32_t lanes)
{
    mbarrier_fence(w, lanes);
    return op_fence(w, in, lanes);
}

static const char *prepare_scope(struct module *module, struct insn *in)
{
    if (in->scope == SCOPE_CLUSTER && (module->sm < 90 || module->version < 78))
        return "the scope .cluster needs PTX 7.8 and sm_90 or later";
    return NULL;
}

static const char *prepare_proxy_async(struct module *module, struct insn *in)
{
    (void)in;
    module->proxy_fences = true;
    return NULL;
}

static const char *prepare_tensormap(struct module *module, struct insn *in)
{
    (void)module;
    return in->operand[1].value == 128 ? NULL : "the size of a tensor map is 128";
}

#define SCOPE "(.cta|.cluster|.gpu|.sys)"
static const struct row rows[] = {
    { "membar(.cta|.gl|.sys)", NULL, "", 14, "", 0, op_fence, NULL, "9.7.13.4 membar" },
    { "membar.proxy.alias", NULL, "", 75, "sm_70+", 0, op_proxy_alias, NULL, "9.7.13.4 membar.proxy" },
    { "fence{.sc|.acq_rel|.acquire|.release}" SCOPE, NULL, "", 60, "sm_70+", 0, op_fence, prepare_scope,
      "9.7.13.4 fence" },
    { "fence.acquire.sync_restrict::shared::cluster.cluster", NULL, "", 86, "sm_90+", 0, op_fence, NULL,
      "9.7.13.4 fence" },
    { "fence.release.sync_restrict::shared::cta.cluster", NULL, "", 86, "sm_90+", 0, op_fence, NULL, "9.7.13.4 fence" },
    { "fence.mbarrier_init.release.cluster", NULL, "", 80, "sm_90+", 0, op_mbarrier_init, NULL,
      "9.7.13.4 fence.mbarrier_init" },
    { "fence.proxy.alias", NULL, "", 75, "sm_70+", 0, op_proxy_alias, NULL, "9.7.13.4 fence.proxy" },
    { "fence.proxy(.async|.async.global|.async.shared::cta|.async.shared::cluster)", NULL, "", 80, "sm_90+", 0,
      op_proxy_async, prepare_proxy_async, "9.7.13.4 fence.proxy" },
    { "fence.proxy.tensormap::generic.release" SCOPE, NULL, "", 83, "sm_90+", 0, op_fence, NULL,
      "9.7.13.4 fence.proxy" },
    { "fence.proxy.tensormap::generic.acquire" SCOPE, NULL, "a i:u32", 83, "sm_90+", 0, op_proxy_tensormap_acquire,
      prepare_tensormap, "9.7.13.4 fence.proxy" },
    { "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", NULL, "", 86, "sm_90+", 0,
      op_proxy_async_generic, prepare_proxy_async, "9.7.13.4 fence.proxy" },
    { "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", NULL, "", 86, "sm_90+", 0,
      op_proxy_async_generic, prepare_proxy_async, "9.7.13.4 fence.proxy" },
};

const struct family family_fence = FAMILY("fences", rows);
