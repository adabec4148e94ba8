/* What moves values between lanes, or between vectors and scalars. */
#include "families.h"
#include "machine/registers.h"
#include "machine/report.h"
#include "valu.h"

static uint32_t undefined_bits(const struct wave *w, uint32_t row, uint32_t lane)
{
    uint32_t undefined = 0;
    for (int b = 0; b < 4; b++)
        if (!(w->defined[row][b] >> lane & 1)) undefined |= 0xffu << 8 * b;
    return undefined;
}

static trap to_scalar(struct wave *w, const struct insn *in, uint32_t lane)
{
    const struct operand *o = &in->operand[1];
    struct scalar s;
    if (o->kind == OPERAND_VGPR) {
        if (!vgpr_readable(w, in, o, READER_LANE)) return TRAP_FAULT;
        s = (struct scalar){ w->vgpr[o->index][lane], undefined_bits(w, o->index, lane) };
    } else if (!scalar_read(w, in, o, &s)) return TRAP_FAULT;
    return scalar_write(w, in, &in->operand[0], s, WRITER_VALU) ? TRAP_NONE : TRAP_FAULT;
}

/* The first lane of EXEC; lane 0 if there is none. */
static trap v_readfirstlane_b32(struct wave *w, const struct insn *in)
{
    const uint64_t exec = wave_exec(w);
    return to_scalar(w, in, exec == 0 ? 0 : (uint32_t)__builtin_ctzll(exec));
}

static bool lane_number(struct wave *w, const struct insn *in, uint64_t *lane)
{
    const struct operand *o = &in->operand[2];
    if (o->kind == OPERAND_SGPR && !hazard_sgpr_as_lane(w, in, o->index)) return false;
    if (!scalar_defined(w, in, o, "the number of a lane", lane)) return false;
    *lane &= 63;
    return true;
}

static trap v_readlane_b32(struct wave *w, const struct insn *in)
{
    uint64_t lane;
    return lane_number(w, in, &lane) ? to_scalar(w, in, (uint32_t)lane) : TRAP_FAULT;
}

static trap v_writelane_b32(struct wave *w, const struct insn *in)
{
    uint64_t lane;
    struct scalar s;
    const struct operand *d = &in->operand[0];
    if (!lane_number(w, in, &lane) || !scalar_read(w, in, &in->operand[1], &s) || !vgpr_writable(w, in, d))
        return TRAP_FAULT;
    w->vgpr[d->index][lane] = (uint32_t)s.value;
    for (int b = 0; b < 4; b++) {
        w->defined[d->index][b] &= ~(UINT64_C(1) << lane);
        /* masks that are kept in lanes have bits of lanes that are off: a byte that is known in part counts as known */
        if ((s.undefined >> 8 * b & 0xff) != 0xff) w->defined[d->index][b] |= UINT64_C(1) << lane;
    }
    written(w, d->index, 1, WRITER_VALU, 0);
    return TRAP_NONE;
}

static void swap_lanes(struct wave *w, uint32_t a, uint32_t lane_a, uint32_t b, uint32_t lane_b)
{
    const uint32_t held = w->vgpr[a][lane_a];
    w->vgpr[a][lane_a] = w->vgpr[b][lane_b];
    w->vgpr[b][lane_b] = held;
    for (int i = 0; i < 4; i++) {
        const uint64_t x = w->defined[a][i] >> lane_a & 1, y = w->defined[b][i] >> lane_b & 1;
        w->defined[a][i] = (w->defined[a][i] & ~(UINT64_C(1) << lane_a)) | y << lane_a;
        w->defined[b][i] = (w->defined[b][i] & ~(UINT64_C(1) << lane_b)) | x << lane_b;
    }
}

static bool both(struct wave *w, const struct insn *in, enum reader reader)
{
    for (int i = 0; i < 2; i++) {
        if (!vgpr_readable(w, in, &in->operand[i], reader) || !vgpr_writable(w, in, &in->operand[i])) return false;
    }
    return true;
}

/* Row 1 of each pair of rows of `block` lanes of the first register against row 0 of the second. */
static trap permlane_swap(struct wave *w, const struct insn *in)
{
    const uint32_t block = in->row->detail, a = in->operand[0].index, b = in->operand[1].index;
    if (!both(w, in, READER_PERMLANE)) return TRAP_FAULT;
    const uint64_t exec = wave_exec(w);
    if (exec != UINT64_MAX)
        return wave_fault(w, in, NO_LANE, REPORT_DIVERGENCE,
                          "exchanges lanes while EXEC is 0x%llx: gfxsim does this for "
                          "all lanes alone",
                          (unsigned long long)exec);
    for (uint32_t l = 0; l < LANES; l++)
        if ((l & block) == 0) swap_lanes(w, a, l + block, b, l);
    written(w, a, 1, WRITER_VALU, 0);
    written(w, b, 1, WRITER_VALU, 0);
    return TRAP_NONE;
}

static trap v_swap_b32(struct wave *w, const struct insn *in)
{
    if (!both(w, in, READER_VALU)) return TRAP_FAULT;
    FOR_LANES(l, wave_exec(w)) swap_lanes(w, in->operand[0].index, (uint32_t)l, in->operand[1].index, (uint32_t)l);
    written(w, in->operand[0].index, 1, WRITER_VALU, 0);
    written(w, in->operand[1].index, 1, WRITER_VALU, 0);
    return TRAP_NONE;
}

static const struct row rows1[] = {
    { "v_readfirstlane_b32", 2, "D1 s1", ROW_NO_SHORT | ROW_SCALAR_LANE, 0, v_readfirstlane_b32, NULL },
    { "v_swap_b32", 81, "d1 s1", ROW_NO_SHORT | ROW_VECTOR_SOURCES, 0, v_swap_b32, NULL },
    { "v_permlane16_swap_b32", 89, "d1 s1", ROW_VECTOR_SOURCES, 16, permlane_swap, NULL },
    { "v_permlane32_swap_b32", 90, "d1 s1", ROW_VECTOR_SOURCES, 32, permlane_swap, NULL },
};
const struct family family_exchange1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

static const struct row rows3[] = {
    { "v_readlane_b32", 649, "D1 s1 s1", ROW_SCALAR_LANE, 0, v_readlane_b32, NULL },
    { "v_writelane_b32", 650, "d1 s1 s1", ROW_SCALAR_LANE, 0, v_writelane_b32, NULL },
};
const struct family family_exchange3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);
