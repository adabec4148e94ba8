/* Control flow (PTX ISA 9.7.12): bra, brx.idx, call, ret, exit, trap, brkpt, nanosleep, pmevent. */
#include "builtin.h"
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/core/report.h"
#include "machine/core/wait.h"
#include "machine/run/warp.h"

/* bra target   the lanes of the guard go there; .uni: all that are active, or none */
static trap op_bra(struct warp *w, const struct insn *in, uint32_t lanes)
{
    if ((in->flags & FLAG_UNI) != 0 && lanes != w->group->lanes)
        return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_DIVERGENCE,
                          "is marked .uni, but lanes 0x%08x of 0x%08x branch", lanes, w->group->lanes);
    return warp_branch(w, lanes, (uint32_t)in->operand[0].value);
}

/* brx.idx i, table   to the i-th label of the table */
static trap op_brx(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t *index = source(w, in, 0);
    const struct operand *table = &in->operand[1];
    uint32_t target[LANES];
    FOR_LANES(l, lanes) {
        if ((uint32_t)index[l] >= table->count)
            return warp_fault(w, in, l, REPORT_OUT_OF_BOUNDS, "branches to entry %u of a table of %u",
                              (uint32_t)index[l], table->count);
        target[l] = table->targets[(uint32_t)index[l]];
    }
    return warp_branch_each(w, lanes, target);
}

static trap call_function(struct warp *w, const struct insn *in, uint32_t lanes, const struct function *f)
{
    if (f->defined) return warp_call(w, in, lanes, f);
    return builtin_call(w, in, lanes, f);
}

/* call (results), function, (arguments) */
static trap op_call(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct operand *target = &in->operand[1];
    if (target->kind == OPERAND_FUNCTION) return call_function(w, in, lanes, target->function);
    const struct module *m = w->cta->cluster->grid->module;
    const uint64_t *address = register_row(w, target->slot);
    const uint32_t leader = (uint32_t)__builtin_ctz(lanes);
    uint32_t same = 0;
    FOR_LANES(l, lanes) same |= (uint32_t)(address[l] == address[leader]) << l;
    const uint64_t index = (address[leader] - CODE_WINDOW) / 16;
    if (address[leader] < CODE_WINDOW || index >= m->function_count || address[leader] % 16 != 0)
        return warp_fault(w, in, leader, REPORT_ILLEGAL, "calls address 0x%llx, where no function begins",
                          (unsigned long long)address[leader]);
    if (same != lanes) warp_leave_behind(w, lanes & ~same);   /* they call another function */
    return call_function(w, in, same, m->functions[index]);
}

static trap op_ret(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)in;
    return warp_return(w, lanes);
}

static trap op_exit(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)in;
    return warp_exit(w, lanes);
}

static trap op_trap(struct warp *w, const struct insn *in, uint32_t lanes)
{
    return warp_fault(w, in, (uint32_t)__builtin_ctz(lanes), REPORT_TRAP, "the kernel executed %s", in->row->pattern);
}

/* nanosleep t   suspends for about t nanoseconds of simulated time: one step each */
static trap op_nanosleep(struct warp *w, const struct insn *in, uint32_t lanes)
{
    struct group *g = w->group;
    if (g->stage != 0) return w->cta->cluster->now >= g->wait.until ? TRAP_NONE : TRAP_WAIT;
    const uint64_t *t = source(w, in, 0);
    uint64_t longest = 0;
    FOR_LANES(l, lanes) if ((uint32_t)t[l] > longest) longest = (uint32_t)t[l];
    if (longest == 0) return TRAP_NONE;
    g->stage = 1;
    warp_wait(w, WAIT_SLEEP, longest, 0);
    g->wait.until = w->cta->cluster->now + (longest > 1000000 ? 1000000 : longest);
    return TRAP_WAIT;
}

static trap op_nothing(struct warp *w, const struct insn *in, uint32_t lanes)
{
    (void)w, (void)in, (void)lanes;
    return TRAP_NONE;
}

static const struct row rows[] = {
    { "bra{.uni}", NULL, "l", 10, "", 0, op_bra, NULL, "9.7.12.3 bra" },
    { "brx.idx{.uni}", NULL, "s:u32 t", 60, "", 0, op_brx, NULL, "9.7.12.4 brx.idx" },
    { "call{.uni}", NULL, "C", 10, "", 0, op_call, NULL, "9.7.12.5 call" },
    { "ret{.uni}", NULL, "", 10, "", 0, op_ret, NULL, "9.7.12.6 ret" },
    { "exit", NULL, "", 10, "", 0, op_exit, NULL, "9.7.12.7 exit" },
    { "trap", NULL, "", 10, "", 0, op_trap, NULL, "9.7.19.4 trap" },
    { "brkpt", NULL, "", 10, "", 0, op_trap, NULL, "9.7.19.1 brkpt" },
    { "nanosleep.u32", NULL, "s:u32", 63, "sm_70+", 0, op_nanosleep, NULL, "9.7.19.2 nanosleep" },
    { "pmevent{.mask}", NULL, "i:u16", 10, "", 0, op_nothing, NULL, "9.7.19.3 pmevent" },
};

const struct family family_control = FAMILY("control flow", rows);
