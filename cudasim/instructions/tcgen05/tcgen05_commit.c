/* tcgen05.commit (PTX ISA 9.7.16): the end of a thread's operations as an arrival on an mbarrier, or on those of
 * several CTAs. */
#include "instructions/table/families.h"
#include "machine/async/mbarrier.h"
#include "machine/tensor/tensor_pipe.h"
#include "machine/core/report.h"
#include "machine/memory/access.h"

enum { PAIR = 1, MULTICAST = 2 };         /* of in->detail */

/* A generic address; and, as Triton writes it and hardware takes it, a shared address that was only widened to 64
 * bits. */
static enum space space_of(const struct insn *in, uint64_t address)
{
    return in->space == SPACE_GENERIC && address <= UINT32_MAX ? SPACE_SHARED_CLUSTER : (enum space)in->space;
}

/* The same offset in every CTA of the mask; a bit is a CTA's rank in the cluster. */
static trap find_targets(struct warp *w, const struct insn *in, uint32_t lane, uint32_t mask,
                         struct tensor_target *target, uint32_t *targets)
{
    struct cluster *c = w->cta->cluster;
    uint64_t address[LANES];
    address_lanes(w, &in->operand[0], 1u << lane, address);
    const enum space space = space_of(in, address[lane]);
    const trap t = mbarrier_target(w, in, lane, space, false, address[lane], &target[0].cta, &target[0].offset);
    *targets = 1;
    if (t != TRAP_NONE || (in->detail & MULTICAST) == 0) return t;
    if (mask == 0 || (c->ctas < 16 && mask >> c->ctas != 0))
        return warp_fault(w, in, lane, REPORT_ILLEGAL,
                          "has the mask 0x%x of CTAs; the cluster has %u, and at least one bit is set", mask, c->ctas);
    const uint32_t offset = target[0].offset;
    *targets = 0;
    for (uint32_t i = 0; i < c->ctas; i++)
        if (mask >> i & 1) target[(*targets)++] = (struct tensor_target){ &c->cta[i], offset };
    return TRAP_NONE;
}

/* tcgen05.commit [a]{, mask}   the mbarrier at a gets one arrival when the thread's tcgen05 operations so far are
 * complete */
static trap op_commit(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool multicast = (in->detail & MULTICAST) != 0;
    const trap checked = tensor_check_committers(w, in, lanes);
    if (checked != TRAP_NONE) return checked;
    FOR_LANES(l, lanes)
    {
        struct tensor_target target[16];
        uint32_t targets = 0;
        const uint32_t mask = multicast ? (uint32_t)source(w, in, 1)[l] & 0xffff : 0;
        trap t = find_targets(w, in, l, mask, target, &targets);
        if (t == TRAP_NONE && (in->detail & PAIR) != 0 && tensor_peer(w, in) == NULL) t = TRAP_FAULT;
        if (t == TRAP_NONE) t = tensor_commit(w, in, l, (in->detail & PAIR) != 0 ? 2 : 1, target, targets);
        if (t != TRAP_NONE) return t;
    }
    return TRAP_NONE;
}

static const char *prepare(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = (insn_has(in, ".cta_group::2") ? PAIR : 0) | (insn_has(in, ".multicast::cluster") ? MULTICAST : 0);
    return NULL;
}

#define COMMIT "tcgen05.commit(.cta_group::1|.cta_group::2).mbarrier::arrive::one{.shared::cluster}"
#define SECTION "9.7.16 tcgen05.commit"
static const struct row rows[] = {
    { COMMIT ".b64", NULL, "a", 86, "sm_100f", 0, op_commit, prepare, SECTION },
    { COMMIT ".multicast::cluster.b64", NULL, "a s:b16", 86, "sm_100f", 0, op_commit, prepare, SECTION },
};

const struct family family_tcgen05_commit = FAMILY("tensor memory: ends of operations", rows);
