/* Hints that change no value: createpolicy, applypriority (PTX ISA 9.7.9), and griddepcontrol (9.7.13.13).
 *
 * A policy is opaque; kernels may carry ready-made ones as constants.  Here a policy is the 64 bits that such constants use for its
 * primary kind.  griddepcontrol does nothing: a grid begins when the one before it in its stream has ended, which is one of the
 * orders that programmatic dependent launch allows. */
#include "instructions/families.h"
#include "instructions/lanes.h"
#include "machine/checks.h"

enum { POLICY_SHIFT = 52, EVICT_FIRST = 0x12f, EVICT_LAST = 0x14f, EVICT_NORMAL = 0x16f };

static trap op_policy(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    FOR_LANES(l, lanes) d[l] = (uint64_t)in->detail << POLICY_SHIFT;
    return TRAP_NONE;
}

static trap op_cvt_policy(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = a[l];
    return TRAP_NONE;
}

static trap op_nothing(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)w, (void)in, (void)lanes;
    return TRAP_NONE;
}

static const char *prepare_policy(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = insn_has(in, ".L2::evict_last") ? EVICT_LAST : insn_has(in, ".L2::evict_first") ? EVICT_FIRST : EVICT_NORMAL;
    return NULL;
}

static const char *check_128(struct module *module, struct insn *in)
{
    (void)module;
    return in->operand[1].value == 128 ? NULL : "the size is 128";
}

#define PRIMARY "(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged)"
#define SECONDARY "{.L2::evict_first|.L2::evict_unchanged}"
static const struct row rows[] = {
    { "createpolicy.fractional" PRIMARY ".b64", NULL, "d:b64 ?s:f32", 74, "sm_80+", 0, op_policy, prepare_policy,
      "9.7.9.18 createpolicy" },
    { "createpolicy.fractional" PRIMARY "(.L2::evict_first|.L2::evict_unchanged).b64", NULL, "d:b64 ?s:f32", 74, "sm_80+", 0, op_policy,
      prepare_policy, "9.7.9.18 createpolicy" },
    { "createpolicy.range{.global}" PRIMARY SECONDARY ".b64", NULL, "d:b64 a s:u32 s:u32", 74, "sm_80+", 0, op_policy,
      prepare_policy, "9.7.9.18 createpolicy" },
    { "createpolicy.cvt.L2.b64", NULL, "d:b64 s:b64", 74, "sm_80+", 0, op_cvt_policy, NULL, "9.7.9.18 createpolicy" },
    { "applypriority{.global}.L2::evict_normal", NULL, "a i", 74, "sm_80+", 0, op_nothing, check_128, "9.7.9.16 applypriority" },
    { "griddepcontrol.launch_dependents", NULL, "", 78, "sm_90+", 0, op_nothing, NULL, "9.7.13.13 griddepcontrol" },
    { "griddepcontrol.wait", NULL, "", 78, "sm_90+", 0, op_nothing, NULL, "9.7.13.13 griddepcontrol" },
};

const struct family family_cache_policy = FAMILY("cache policies and dependent grids", rows);
