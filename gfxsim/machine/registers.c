/* Registers: what may be touched, and when. */
#include "registers.h"

#include "report.h"

static const char *const waits[COUNTERS] = { "vmcnt", "lgkmcnt", "lgkmcnt(0)", "vmcnt(0) and lgkmcnt(0)" };

static char letter(uint32_t row) { return row < AGPR ? 'v' : 'a'; }
static uint32_t shown(uint32_t row) { return row < AGPR ? row : row - AGPR; }

static bool there(struct wave *w, const struct insn *in, const struct operand *o)
{
    const uint32_t have = o->kind == OPERAND_AGPR ? w->agprs : w->vgprs;
    if (o->index + o->dwords <= have) return true;
    wave_fault(w, in, NO_LANE, REPORT_ILLEGAL, "names %c%u, and the kernel's descriptor gives a wave %u of these "
               "registers", letter(operand_row(o)), o->index + o->dwords - 1, have);
    return false;
}

static bool pending(struct wave *w, const struct insn *in, const struct operand *o, const char *verb)
{
    const uint32_t row = operand_row(o);
    for (uint32_t i = row; i < row + o->dwords; i++) {
        if (w->pending[i] == 0) continue;
        wave_fault(w, in, NO_LANE, REPORT_PENDING, "%s %c%u, which a load under way will write: no s_waitcnt %s covers "
                   "it", verb, letter(i), shown(i), waits[w->pending[i] - 1]);
        return true;
    }
    return false;
}

bool vgpr_readable(struct wave *w, const struct insn *in, const struct operand *o, enum reader reader)
{
    return there(w, in, o) && !pending(w, in, o, "reads") && hazard_vgpr(w, in, operand_row(o), o->dwords, reader);
}

bool vgpr_writable(struct wave *w, const struct insn *in, const struct operand *o)
{
    return there(w, in, o) && !pending(w, in, o, "writes");
}

bool vgpr_loadable(struct wave *w, const struct insn *in, const struct operand *o, enum counter counter)
{
    const uint32_t row = operand_row(o);
    if (!there(w, in, o) || !hazard_vgpr(w, in, row, o->dwords, READER_MEMORY)) return false;
    for (uint32_t i = row; i < row + o->dwords; i++)
        if (w->pending[i] != 0 && (w->pending[i] != counter + 1 || counter == COUNTER_FLAT)) {
            wave_fault(w, in, NO_LANE, REPORT_PENDING, "loads into %c%u, which a load of another kind will write: no "
                       "s_waitcnt %s covers it", letter(i), shown(i), waits[w->pending[i] - 1]);
            return false;
        }
    return true;
}

bool vgpr_defined(struct wave *w, const struct insn *in, const struct operand *o, uint64_t lanes, uint32_t bytes,
                  const char *what)
{
    if (!wave_options(w)->check_uninitialised) return true;
    const uint32_t row = operand_row(o);
    for (uint32_t i = 0; i < bytes; i++) {
        const uint64_t missing = lanes & ~w->defined[row + i / 4][i % 4];
        if (missing == 0) continue;
        wave_fault(w, in, (uint32_t)__builtin_ctzll(missing), REPORT_UNINITIALISED,
                   "uses byte %u of %c%u as %s, and nothing has written it", i % 4, letter(row + i / 4),
                   shown(row + i / 4), what);
        return false;
    }
    return true;
}

uint64_t rows_defined(const struct wave *w, uint32_t row, uint32_t dwords)
{
    uint64_t all = UINT64_MAX;
    for (uint32_t i = row; i < row + dwords; i++)
        all &= w->defined[i][0] & w->defined[i][1] & w->defined[i][2] & w->defined[i][3];
    return all;
}

/* ---- scalars ---- */

bool sgpr_ready(struct wave *w, const struct insn *in, uint32_t index, uint32_t dwords, bool writes)
{
    for (uint32_t i = index; i < index + dwords; i++) {
        if (!(w->sgpr_event[i / 64] >> i % 64 & 1)) continue;
        wave_fault(w, in, NO_LANE, REPORT_PENDING, "%s s%u, which a scalar load under way will write: no s_waitcnt "
                   "lgkmcnt(0) covers it", writes ? "writes" : "reads", i);
        return false;
    }
    return true;
}

bool scalar_read(struct wave *w, const struct insn *in, const struct operand *o, struct scalar *s)
{
    *s = (struct scalar){ o->value, 0 };
    if (o->kind == OPERAND_CONSTANT || o->kind == OPERAND_LITERAL) {
        if (o->dwords == 1) s->value = (uint32_t)s->value;
        return true;
    }
    if (o->kind == OPERAND_BIT) {
        const uint64_t vcc = w->sgpr[VCC] | (uint64_t)w->sgpr[VCC + 1] << 32;
        s->value = o->index < 240 ? (uint64_t)(o->index < 237 ? LDS_APERTURE : PRIVATE_APERTURE) << 32
                                    | (o->index % 2 != 0 ? 0 : UINT32_MAX)
                   : o->index == 251 ? vcc == 0 : o->index == 252 ? wave_exec(w) == 0 : w->scc;
        return true;
    }
    if (!sgpr_ready(w, in, o->index, o->dwords, false)) return false;
    s->value = w->sgpr[o->index];
    s->undefined = w->sgpr_undefined[o->index];
    if (o->dwords > 1) {
        s->value |= (uint64_t)w->sgpr[o->index + 1] << 32;
        s->undefined |= (uint64_t)w->sgpr_undefined[o->index + 1] << 32;
    }
    return true;
}

bool scalar_write(struct wave *w, const struct insn *in, const struct operand *o, struct scalar s, enum writer by)
{
    if (!sgpr_ready(w, in, o->index, o->dwords, true)) return false;
    if ((o->index == EXEC || o->index == EXEC + 1) && s.undefined != 0 && wave_options(w)->check_uninitialised) {
        wave_fault(w, in, NO_LANE, REPORT_UNINITIALISED, "writes EXEC with bits 0x%llx that nothing has written",
                   (unsigned long long)s.undefined);
        return false;
    }
    for (uint32_t i = 0; i < o->dwords && i < 2; i++) {
        w->sgpr[o->index + i] = (uint32_t)(s.value >> 32 * i);
        w->sgpr_undefined[o->index + i] = (uint32_t)(s.undefined >> 32 * i);
        w->sgpr_written[o->index + i] = (struct written){ .at = w->state, .by = (uint8_t)by };
    }
    return true;
}

bool scalar_defined(struct wave *w, const struct insn *in, const struct operand *o, const char *what, uint64_t *value)
{
    struct scalar s;
    if (!scalar_read(w, in, o, &s)) return false;
    *value = s.value;
    if (s.undefined == 0 || !wave_options(w)->check_uninitialised) return true;
    wave_fault(w, in, NO_LANE, REPORT_UNINITIALISED, "uses s%u as %s, and nothing has written its bits 0x%llx",
               o->index, what, (unsigned long long)s.undefined);
    return false;
}
