/* Hints that change no value: createpolicy, applypriority (PTX ISA 9.7.9), and griddepcontrol (9.7.13.13).
 *
 * A policy is opaque; of createpolicy.fractional it is here the 64 bits that an H200 makes: the kind in the highest
 * byte, one more where the rest is evicted first, then the fraction in sixteenths less one; of .range those that an
 * H100 makes.  griddepcontrol.wait waits where the grid in front still runs (run/launch.h); what it orders is watched
 * in any case (check/dependent.h). */
#include "instructions/table/families.h"
#include "instructions/arithmetic/real.h"
#include "machine/check/dependent.h"
#include "machine/core/wait.h"
#include "machine/memory/access.h"

#include <math.h>

enum { KIND_SHIFT = 56, FRACTION_SHIFT = 52, SIXTEENTHS = 16 };
enum { EVICT_UNCHANGED = 0x10, EVICT_FIRST = 0x12, EVICT_LAST = 0x14, EVICT_NORMAL = 0x16, RANGE = 8 };

/* createpolicy.fractional.L2::evict_last d{, fraction}   all, without a fraction */
static trap op_policy(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const bool whole = in->operand[1].kind == OPERAND_NONE;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *fraction = whole ? NULL : source(w, in, 1);
    FOR_LANES(l, lanes) {
        const float parts = whole ? SIXTEENTHS : ceilf(bits_f32(fraction[l]) * SIXTEENTHS);
        const uint64_t less_one = parts >= SIXTEENTHS ? SIXTEENTHS - 1 : parts >= 1 ? (uint64_t)parts - 1 : 0;
        d[l] = (uint64_t)in->detail << KIND_SHIFT | less_one << FRACTION_SHIFT;
    }
    return TRAP_NONE;
}

/* createpolicy.range d, [a], primary, total
 *
 * Blocks of 4 KiB, or of so much more that a total rounded up to a power of two has 128 of them: how often they double
 * in bits 55 to 52, the low bits of the first block's number in 50 to 44, how many blocks primary bytes touch, at most
 * 127, in 43 to 37.  Sums are of 32 bits. */
static trap op_range(struct warp *w, const struct insn *in, uint32_t lanes)
{
    enum { BLOCK = 12, SMALLEST = 19, SIZE_SHIFT = 52, FIRST_SHIFT = 44, COUNT_SHIFT = 37, FIELD = 127 };
    uint64_t address[LANES], *d = destination(w, in, 0);
    const uint64_t *primary = source(w, in, 2), *total = source(w, in, 3);
    address_lanes(w, &in->operand[1], lanes, address);
    FOR_LANES(l, lanes) {
        const uint32_t bytes = (uint32_t)total[l];
        uint32_t doubled = 0;
        while (doubled < 32 - SMALLEST && bytes > 1u << (SMALLEST + doubled)) doubled++;
        const uint32_t block = 1u << (BLOCK + doubled);
        const uint32_t end = (uint32_t)(address[l] & (block - 1)) + (uint32_t)primary[l];
        const uint64_t count = ((uint64_t)end + block - 1) >> (BLOCK + doubled);
        d[l] = in->detail << KIND_SHIFT | (uint64_t)doubled << SIZE_SHIFT
               | (address[l] >> (BLOCK + doubled) & FIELD) << FIRST_SHIFT
               | (count > FIELD ? FIELD : count) << COUNT_SHIFT;
    }
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

/* As in PRIMARY. */
static const uint8_t kinds[] = { 0, EVICT_LAST, EVICT_NORMAL, EVICT_FIRST, EVICT_UNCHANGED };

static const char *prepare_policy(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = kinds[in->choice[0]] + (in->choice[1] == 1 ? 1u : 0u);
    return NULL;
}

/* Its {.global} is a group too. */
static const char *prepare_range(struct module *module, struct insn *in)
{
    (void)module;
    in->detail = (kinds[in->choice[1]] | RANGE) + (in->choice[2] == 1 ? 1u : 0u);
    return NULL;
}

static const char *check_128(struct module *module, struct insn *in)
{
    (void)module;
    return in->operand[1].value == 128 ? NULL : "the size is 128";
}

/* griddepcontrol.wait   until the grid in front has ended */
static trap op_wait(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct cluster *c = w->cta->cluster;
    (void)in;
    if (c->grid->before != NULL && !c->before_ended) return warp_wait(w, WAIT_GRID, 0, 0);
    dependent_wait(w, lanes);
    return TRAP_NONE;
}

/* griddepcontrol.launch_dependents   the next grid may begin when each CTA has executed it or ended.  Where one
 * follows, others have their turn now. */
static trap op_launch_dependents(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct cluster *c = w->cta->cluster;
    (void)in, (void)lanes;
    if (w->cta->launched) return TRAP_NONE;
    w->cta->launched = true;
    atomic_fetch_add(&c->grid->launched, 1);
    if (!c->grid->followed) return TRAP_NONE;
    c->yields = true;
    return warp_wait(w, WAIT_GRID, 0, 0);
}

static const char *prepare_wait(struct module *module, struct insn *in)
{
    (void)in;
    module->waits_for_grids = true;
    return NULL;
}

static const char *prepare_launch(struct module *module, struct insn *in)
{
    (void)in;
    module->launches_dependents = true;
    return NULL;
}

#define PRIMARY "(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged)"
#define SECONDARY "{.L2::evict_first|.L2::evict_unchanged}"
static const struct row rows[] = {
    { "createpolicy.fractional" PRIMARY ".b64", NULL, "d:b64 ?s:f32", 74, "sm_80+", 0, op_policy, prepare_policy,
      "9.7.9.18 createpolicy" },
    { "createpolicy.fractional" PRIMARY "(.L2::evict_first|.L2::evict_unchanged).b64", NULL, "d:b64 ?s:f32", 74,
      "sm_80+", 0, op_policy, prepare_policy, "9.7.9.18 createpolicy" },
    { "createpolicy.range{.global}" PRIMARY SECONDARY ".b64", NULL, "d:b64 a s:u32 s:u32", 74, "sm_80+", 0, op_range,
      prepare_range, "9.7.9.18 createpolicy" },
    { "createpolicy.cvt.L2.b64", NULL, "d:b64 s:b64", 74, "sm_80+", 0, op_cvt_policy, NULL, "9.7.9.18 createpolicy" },
    { "applypriority{.global}.L2::evict_normal", NULL, "a i", 74, "sm_80+", 0, op_nothing, check_128,
      "9.7.9.16 applypriority" },
    { "griddepcontrol.launch_dependents", NULL, "", 78, "sm_90+", 0, op_launch_dependents, prepare_launch,
      "9.7.13.13 griddepcontrol" },
    { "griddepcontrol.wait", NULL, "", 78, "sm_90+", 0, op_wait, prepare_wait, "9.7.13.13 griddepcontrol" },
};

const struct family family_cache_policy = FAMILY("cache policies and dependent grids", rows);
