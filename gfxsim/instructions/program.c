/* Program flow (SOPP) and scalar loads (SMEM). */
#include "families.h"
#include "machine/events.h"
#include "machine/lds.h"
#include "machine/memory.h"
#include "machine/registers.h"
#include "machine/report.h"

static trap s_nop(struct wave *w, const struct insn *in)
{
    w->state += (uint32_t)in->simm & 15;
    return TRAP_NONE;
}
static trap nothing(struct wave *w, const struct insn *in)
{
    (void)w, (void)in;
    return TRAP_NONE;
}

static trap s_endpgm(struct wave *w, const struct insn *in)
{
    for (uint32_t i = 0; i < w->events; i++)
        if (w->event[i]->kind == EVENT_TO_LDS)
            return wave_fault(w, in, NO_LANE, REPORT_ASYNC,
                              "ends the wave while a load from memory to LDS, of 0x%llx, is "
                              "under way: no s_waitcnt vmcnt covers it",
                              (unsigned long long)(w->group->grid->launch->program->text + w->event[i]->in->pc));
    events_end(w);
    return TRAP_END;
}

static trap s_barrier(struct wave *w, const struct insn *in)
{
    w->barriers++;
    w->barrier_pc = in->pc;
    lds_publish(w);
    return TRAP_BARRIER;
}

static trap s_waitcnt(struct wave *w, const struct insn *in)
{
    const uint32_t simm = (uint16_t)in->simm, under_way = w->events;
    uint32_t *completed = w->group->grid->launch->program->completed;
    events_wait(w, (simm & 15) | (simm >> 14 & 3) << 4, simm >> 8 & 15);
    if (completed != NULL) completed[in->pc / 4] += under_way - w->events;
    return TRAP_NONE;
}

static trap take(struct wave *w, const struct insn *in, bool taken)
{
    if (!taken) return TRAP_NONE;
    w->next = w->pc + 4 + (uint32_t)(4 * in->simm);
    return TRAP_JUMP;
}
static trap s_branch(struct wave *w, const struct insn *in) { return take(w, in, true); }
static trap s_cbranch_scc(struct wave *w, const struct insn *in)
{
    if (!w->scc_defined && wave_options(w)->check_uninitialised)
        return wave_fault(w, in, NO_LANE, REPORT_UNINITIALISED,
                          "branches on SCC, which is made of bits that nothing has "
                          "written");
    return take(w, in, w->scc == (in->row->detail != 0));
}
static trap s_cbranch_vcc(struct wave *w, const struct insn *in)
{
    static const struct operand vcc = { .kind = OPERAND_SGPR, .dwords = 2, .index = VCC };
    struct scalar s;
    if (!scalar_read(w, in, &vcc, &s)) return TRAP_FAULT;
    if (s.undefined != 0 && (s.value & ~s.undefined) == 0 && wave_options(w)->check_uninitialised)
        return wave_fault(w, in, NO_LANE, REPORT_UNINITIALISED,
                          "branches on VCC, whose bits 0x%llx are made of bits that "
                          "nothing has written",
                          (unsigned long long)s.undefined);
    return take(w, in, (s.value != 0) == (in->row->detail != 0));
}
static trap s_cbranch_exec(struct wave *w, const struct insn *in)
{
    return take(w, in, (wave_exec(w) != 0) == (in->row->detail != 0));
}
static trap s_set_gpr_idx_off(struct wave *w, const struct insn *in)
{
    (void)in;
    w->indexing = false;
    return TRAP_NONE;
}
static trap s_trap(struct wave *w, const struct insn *in)
{
    return wave_fault(w, in, NO_LANE, REPORT_TRAP, "ends the kernel: trap %u", (unsigned)(in->simm & 0xff));
}

static const struct row rows_p[] = {
    { "s_nop", 0, "", 0, 0, s_nop, NULL }, { "s_endpgm", 1, "", 0, 0, s_endpgm, NULL },
    { "s_branch", 2, "", 0, 0, s_branch, NULL },
    { "s_cbranch_scc0", 4, "", 0, 0, s_cbranch_scc, NULL }, { "s_cbranch_scc1", 5, "", 0, 1, s_cbranch_scc, NULL },
    { "s_cbranch_vccz", 6, "", 0, 0, s_cbranch_vcc, NULL }, { "s_cbranch_vccnz", 7, "", 0, 1, s_cbranch_vcc, NULL },
    { "s_cbranch_execz", 8, "", 0, 0, s_cbranch_exec, NULL }, { "s_cbranch_execnz", 9, "", 0, 1, s_cbranch_exec, NULL },
    { "s_barrier", 10, "", 0, 0, s_barrier, NULL }, { "s_waitcnt", 12, "", 0, 0, s_waitcnt, NULL },
    { "s_set_gpr_idx_off", 28, "", 0, 0, s_set_gpr_idx_off, NULL },
    { "s_sleep", 14, "", 0, 0, nothing, NULL },
    { "s_setprio", 15, "", 0, 0, nothing, NULL },
    { "s_trap", 18, "", 0, 0, s_trap, NULL }, { "s_icache_inv", 19, "", 0, 0, nothing, NULL },
};
const struct family family_program = FAMILY("Program Flow Control", FORMAT_SOPP, rows_p);

/* ---- scalar loads ---- */

static trap s_load(struct wave *w, const struct insn *in)
{
    const struct operand *d = &in->operand[0];
    uint64_t base, offset = 0;
    if (!scalar_defined(w, in, &in->operand[1], "an address", &base)) return TRAP_FAULT;
    if (in->operand[2].kind == OPERAND_SGPR && !scalar_defined(w, in, &in->operand[2], "an offset", &offset))
        return TRAP_FAULT;
    /* CDNA4 ISA, "Scalar Memory Operations": the two lowest bits of the address count as zero */
    const uint64_t address = (base & ~UINT64_C(3)) + ((offset + (uint64_t)(int64_t)in->offset) & ~UINT64_C(3));
    const uint32_t bytes = 4u * d->dwords;
    const struct memory *m = &w->group->grid->machine->memory;
    const struct allocation *a = memory_find(m, address, bytes);
    if (a == NULL) {
        const struct allocation *near = memory_below(m, address);
        return wave_fault(w, in, NO_LANE, REPORT_OUT_OF_BOUNDS, "reads %u bytes at 0x%llx, %s", bytes,
                          (unsigned long long)address,
                          near != NULL && near->kind == ALLOCATION_ARGUMENTS && address - near->base < 65536
                              ? "behind the end of the kernel's arguments" : "where no allocation has them all");
    }
    if (!sgpr_ready(w, in, d->index, d->dwords, true)) return TRAP_FAULT;
    struct event *e = event_new(w, in, COUNTER_SMEM, EVENT_SCALAR);
    if (e == NULL) return TRAP_FAULT;
    e->first = d->index, e->dwords = d->dwords, e->address[0] = address;
    event_issued(w, e);
    return TRAP_NONE;
}

static const struct row rows_m[] = {
    { "s_load_dword", 0, "d1 s2 s1", 0, 0, s_load, NULL }, { "s_load_dwordx2", 1, "d2 s2 s1", 0, 0, s_load, NULL },
    { "s_load_dwordx4", 2, "d4 s2 s1", 0, 0, s_load, NULL }, { "s_load_dwordx8", 3, "d8 s2 s1", 0, 0, s_load, NULL },
    { "s_load_dwordx16", 4, "d16 s2 s1", 0, 0, s_load, NULL },
};
const struct family family_scalar_memory = FAMILY("Scalar Memory Operations", FORMAT_SMEM, rows_m);
