/* setmaxnreg: registers go from warpgroup to warpgroup through the CTA's pool (PTX ISA 9.7.20.5).
 *
 * What a kernel has when it begins follows from .maxnreg, or from .maxntid with .minnctapersm, as ptxas 13.0 does it:
 * the largest multiple of 8 that lets the CTAs fit, their threads together rounded up to whole warpgroups, and no more
 * than the kernel's largest setmaxnreg.inc asks for.  Without these ptxas ignores the instruction, and so does this
 * one, but for its checks. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"

enum { MOST_REGISTERS = 256, GRANULARITY = 8, WARPGROUP = 128 };

static uint64_t threads_of(const struct dimensions *d) { return (uint64_t)d->x * d->y * d->z; }

static uint32_t least(uint64_t a, uint64_t b) { return (uint32_t)(a < b ? a : b); }

static trap op_inc(struct warp *w, const struct insn *in, uint32_t lanes);

static uint32_t largest_request(const struct grid *grid)
{
    uint32_t largest = 0;
    for (uint32_t pc = grid->function->code_begin; pc < grid->function->code_end; pc++)
        if (grid->code[pc].run == op_inc && (uint32_t)grid->code[pc].operand[0].value > largest)
            largest = (uint32_t)grid->code[pc].operand[0].value;
    return largest != 0 ? largest : MOST_REGISTERS;
}

/* Registers per thread at the kernel's begin; 0: not fixed. */
static uint32_t initial_registers(const struct grid *grid)
{
    const struct function *f = grid->function;
    const uint64_t threads = f->reqntid.given   ? threads_of(&f->reqntid)
                             : f->maxntid.given ? threads_of(&f->maxntid)
                                                : 0;
    if (f->maxnreg != 0) return least(f->maxnreg, largest_request(grid));
    if (threads == 0 || f->minnctapersm == 0) return 0;
    const uint64_t whole_warps = (threads + LANES - 1) / LANES * LANES,
                   all = (whole_warps * f->minnctapersm + WARPGROUP - 1) / WARPGROUP * WARPGROUP,
                   fit = grid->machine->device->registers_per_sm / all / GRANULARITY * GRANULARITY;
    return least(least(fit, MOST_REGISTERS), largest_request(grid));
}

static void first_time(struct warp *w)
{
    if (w->maximum_registers == 0) w->maximum_registers = initial_registers(w->cta->cluster->grid);
}

/* No warp of the warpgroup may be a whole setmaxnreg ahead of another. */
static trap same_turn(struct warp *w, const struct insn *in)
{
    const uint32_t first = w->index / 4 * 4;
    for (uint32_t i = first; i < first + 4 && i < w->cta->warps; i++)
        if (w->register_turns > w->cta->warp[i].register_turns)
            return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL,
                              "is executed again before warp %u of the same warpgroup has executed the last one; "
                              "all warps of a warpgroup execute it and synchronise in between", i);
    return TRAP_NONE;
}

/* setmaxnreg.dec n   gives registers to the CTA's pool */
static trap op_dec(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t wanted = (uint32_t)in->operand[0].value;
    (void)lanes;
    first_time(w);
    const trap t = same_turn(w, in);
    if (t != TRAP_NONE || w->maximum_registers == 0) return t;
    if (wanted > w->maximum_registers)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "releases down to %u registers a thread, but the warp has %u",
                          wanted, w->maximum_registers);
    w->cta->free_registers += w->maximum_registers - wanted;
    w->maximum_registers = wanted;
    w->register_turns++;
    cluster_event(w->cta->cluster);
    return TRAP_NONE;
}

/* setmaxnreg.inc n   waits until the pool has them.  A warp that has them already goes on: nothing changes, whoever is
 * ahead (Triton's warp-specialized kernels come to a second one without synchronisation). */
static trap op_inc(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t wanted = (uint32_t)in->operand[0].value;
    (void)lanes;
    first_time(w);
    if (w->maximum_registers == wanted) return TRAP_NONE;
    const trap t = w->group->stage == 0 ? same_turn(w, in) : TRAP_NONE;
    if (t != TRAP_NONE || w->maximum_registers == 0) return t;
    if (wanted < w->maximum_registers)
        return warp_fault(w, in, NO_LANE, REPORT_ILLEGAL, "asks for %u registers a thread, but the warp has %u already",
                          wanted, w->maximum_registers);
    const uint32_t more = wanted - w->maximum_registers;
    if (more > w->cta->free_registers) {
        w->group->stage = 1;
        return warp_wait(w, WAIT_REGISTERS, more, w->cta->free_registers);
    }
    w->cta->free_registers -= more;
    w->maximum_registers = wanted;
    w->register_turns++;
    return TRAP_NONE;
}

static const char *check_count(struct module *module, struct insn *in)
{
    const int64_t n = in->operand[0].value;
    (void)module;
    return n < 24 || n > 256 || n % GRANULARITY != 0 ? "the count is a multiple of 8 from 24 to 256" : NULL;
}

static const struct row rows[] = {
    { "setmaxnreg.inc.sync.aligned.u32", NULL, "i", 80,
      "sm_90a sm_100a sm_100f sm_101a sm_103a sm_110a sm_120a sm_120f sm_121a", DEMANDS_WHOLE_WARP, op_inc, check_count,
      "9.7.20.5 setmaxnreg" },
    { "setmaxnreg.dec.sync.aligned.u32", NULL, "i", 80,
      "sm_90a sm_100a sm_100f sm_101a sm_103a sm_110a sm_120a sm_120f sm_121a", DEMANDS_WHOLE_WARP, op_dec, check_count,
      "9.7.20.5 setmaxnreg" },
};

const struct family family_register_pool = FAMILY("registers between warpgroups", rows);
