/* Sources, results and EXEC of vector arithmetic. */
#include "valu.h"

#include "machine/registers.h"
#include "machine/report.h"
#include "matrix/elements.h"

struct workspace {
    uint32_t source[MOST_SOURCES][2][LANES];
    uint64_t source_defined[MOST_SOURCES][2][4];
    uint32_t result[MOST_RESULT][LANES];
    uint64_t result_defined[MOST_RESULT][4];
};

/* ---- sources ---- */

static bool scalar_source(struct wave *w, const struct insn *in, const struct operand *o, struct lanes *x,
                          struct workspace *space, int i)
{
    struct scalar s;
    if (!scalar_read(w, in, o, &s)) return false;
    if (o->kind == OPERAND_SGPR && !hazard_sgpr_as_data(w, in, o->index, o->dwords)) return false;
    const uint32_t dwords = o->dwords > 2 ? 2 : o->dwords;
    for (uint32_t k = 0; k < dwords; k++) {
        for (uint32_t l = 0; l < LANES; l++) space->source[i][k][l] = (uint32_t)(s.value >> 32 * k);
        for (int b = 0; b < 4; b++)
            space->source_defined[i][k][b] = (s.undefined >> (32 * k + 8 * (uint32_t)b) & 0xff) != 0 ? 0 : UINT64_MAX;
    }
    x->s[i] = space->source[i][0];
    x->s_defined[i] = (const uint64_t(*)[4])space->source_defined[i];
    return true;
}

/* The lane that DPP reads for a lane; LANES: none. */
static uint32_t dpp_lane(uint32_t control, uint32_t lane)
{
    const uint32_t row = lane & ~15u, in_row = lane & 15, n = control & 15;
    if (control < 0x100) return (lane & ~3u) | (control >> 2 * (lane & 3) & 3);
    if (control < 0x110) return in_row + n < 16 ? row + in_row + n : LANES;
    if (control < 0x120) return in_row >= n ? row + in_row - n : LANES;
    if (control < 0x130) return row + ((in_row + 16 - n) & 15);
    switch (control) {
    case 0x130: return lane + 1;
    case 0x134: return (lane + 1) & 63;
    case 0x138: return lane == 0 ? LANES : lane - 1;
    case 0x13c: return (lane + 63) & 63;
    case 0x140: return row + 15 - in_row;
    case 0x141: return (lane & ~7u) + 7 - (lane & 7);
    case 0x142: return lane < 16 ? LANES : row - 1;
    case 0x143: return lane < 32 ? LANES : 31;
    default: return row + n;
    }
}

/* Moves lanes; those that read none keep their result (or read 0, with bound_ctrl). */
static void permute(struct lanes *x, struct workspace *space)
{
    const struct insn *in = x->in;
    const uint32_t *from = x->s[0];
    const uint64_t(*defined)[4] = x->s_defined[0];
    const uint64_t exec = x->lanes;
    uint32_t moved[LANES];
    uint64_t moved_defined[4] = { 0 };
    for (uint32_t l = 0; l < LANES; l++) {
        const uint32_t there = dpp_lane(in->dpp_control, l);
        const bool enabled = (in->row_mask >> l / 16 & 1) != 0 && (in->bank_mask >> l % 16 / 4 & 1) != 0,
                   valid = there < LANES && (exec >> there & 1) != 0;
        moved[l] = valid ? from[there] : 0;
        for (int b = 0; b < 4; b++) moved_defined[b] |= (valid ? defined[0][b] >> there & 1 : UINT64_C(1)) << l;
        if (!enabled || (!valid && !in->bound_control)) x->lanes &= ~(UINT64_C(1) << l);
    }
    memcpy(space->source[0][0], moved, sizeof moved);
    memcpy(space->source_defined[0][0], moved_defined, sizeof moved_defined);
    x->s[0] = space->source[0][0];
    x->s_defined[0] = (const uint64_t(*)[4])space->source_defined[0];
}

static void select_part(struct lanes *x, struct workspace *space, int i)
{
    const struct insn *in = x->in;
    const uint32_t selection = in->src_sel[i];
    if (selection == 6) return;
    const uint32_t bits = selection < 4 ? 8 : 16, shift = selection < 4 ? 8 * selection : 16 * (selection - 4);
    const bool extends = in->src_sext >> i & 1;
    const uint64_t(*defined)[4] = x->s_defined[i];
    uint64_t all = UINT64_MAX;
    for (uint32_t b = shift / 8; b < (shift + bits) / 8; b++) all &= defined[0][b];
    for (uint32_t l = 0; l < LANES; l++) {
        const uint32_t part = x->s[i][l] >> shift << (32 - bits);
        space->source[i][0][l] = extends ? (uint32_t)((int32_t)part >> (32 - bits)) : part >> (32 - bits);
    }
    for (int b = 0; b < 4; b++) space->source_defined[i][0][b] = all;
    x->s[i] = space->source[i][0];
    x->s_defined[i] = (const uint64_t(*)[4])space->source_defined[i];
}

static void change_sign(struct lanes *x, struct workspace *space, int i, const struct operand *o)
{
    const bool negates = x->in->neg >> i & 1, absolute = x->in->abs >> i & 1;
    if (!negates && !absolute) return;
    const uint32_t sign = o->type == 'h' || o->type == 'g' ? 0x8000 : 0x80000000u, last = o->dwords == 2 ? 1 : 0;
    for (uint32_t k = 0; k <= last; k++)
        for (uint32_t l = 0; l < LANES; l++) {
            uint32_t value = x->s[i][k * LANES + l];
            if (k == last && absolute) value &= ~sign;
            if (k == last && negates) value ^= sign;
            space->source[i][k][l] = value;
        }
    for (uint32_t k = 0; k <= last; k++)
        memcpy(space->source_defined[i][k], x->s_defined[i][k], sizeof space->source_defined[i][k]);
    x->s[i] = space->source[i][0];
    x->s_defined[i] = (const uint64_t(*)[4])space->source_defined[i];
}

static uint32_t flushed(uint32_t bits) { return (bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits; }

static void flush_source(struct lanes *x, struct workspace *space, int i, uint32_t dwords)
{
    for (uint32_t k = 0; k < dwords; k++) {
        for (uint32_t l = 0; l < LANES; l++) space->source[i][k][l] = flushed(x->s[i][k * LANES + l]);
        memcpy(space->source_defined[i][k], x->s_defined[i][k], sizeof space->source_defined[i][k]);
    }
    x->s[i] = space->source[i][0];
    x->s_defined[i] = (const uint64_t(*)[4])space->source_defined[i];
}

static bool fetch(struct wave *w, const struct insn *in, const struct operand *o, struct lanes *x,
                  struct workspace *space, int i)
{
    if (o->kind != OPERAND_VGPR && o->kind != OPERAND_AGPR) {
        if (!scalar_source(w, in, o, x, space, i)) return false;
    } else {
        const enum reader reader = in->dpp && i == 0 ? READER_DPP
                                   : (in->row->flags & ROW_TRANSCENDENTAL) != 0 ? READER_TRANSCENDENTAL
                                                                                : READER_VALU;
        if (!vgpr_readable(w, in, o, reader)) return false;
        x->s[i] = w->vgpr[operand_row(o)];
        x->s_defined[i] = (const uint64_t(*)[4])w->defined[operand_row(o)];
    }
    if (in->dpp && i == 0) permute(x, space);
    if (in->sdwa && i < 2) select_part(x, space, i);
    if ((in->row->flags & (ROW_FLOAT | ROW_PACKED)) == ROW_FLOAT && (in->neg | in->abs) != 0 && o->dwords <= 2)
        change_sign(x, space, i, o);
    if (o->type == 'f' && o->dwords <= 2 && wave_flushes(w) && (in->row->flags & ROW_MIXED) == 0
        && (in->row->flags & (ROW_FLOAT | ROW_PACKED)) != 0)
        flush_source(x, space, i, o->dwords);
    return true;
}

/* ---- results ---- */

static void output_modifiers(struct lanes *x, uint32_t dwords)
{
    static const float factors[4] = { 1.0f, 2.0f, 4.0f, 0.5f };
    const struct insn *in = x->in;
    const char type = in->operand[0].type;
    if (wave_flushes(x->w) && dwords == 1 && type != 'h')
        for (uint32_t l = 0; l < LANES; l++) x->d[l] = flushed(x->d[l]);
    if (dwords > 2 || (in->omod == 0 && !in->clamp)) return;
    for (uint32_t l = 0; l < LANES; l++) {
        double d = as_float(x->d[l]);
        if (type == 'h') d = half_to_float((uint16_t)x->d[l]);
        else if (type == 'e') memcpy(&d, (uint64_t[]){ pair(x->d, l) }, sizeof d);
        d *= (double)factors[in->omod];
        if (in->clamp) d = d > 1 ? 1 : d > 0 ? d : 0;
        uint64_t wide;
        memcpy(&wide, &d, sizeof wide);
        if (type == 'e') set_pair(x->d, l, wide);
        else x->d[l] = type == 'h' ? double_to_half(d) : as_bits((float)d);
    }
}

/* Which bits of the result change with undefined bits of the sources: tried with all of a source's zero and one, every
 * combination of sources.  A count that is not all known makes everything unknown. */
static void defined_bits(struct lanes *x, const struct insn *in, int sources, uint32_t dwords)
{
    uint32_t zero[MOST_SOURCES][2][LANES], one[MOST_SOURCES][2][LANES], first[2][LANES], again[2][LANES],
             unknown[2][LANES];
    uint64_t counts_known = UINT64_MAX, all_known = UINT64_MAX;
    struct lanes y = *x;
    int s = 0;
    for (int i = 0; i < in->operands && s < sources; i++) {
        if (in->operand[i].role != 's') continue;
        for (uint32_t k = 0; k < in->operand[i].dwords; k++)
            for (uint32_t l = 0; l < LANES; l++) {
                uint32_t undefined = 0;
                for (int b = 0; b < 4; b++) undefined |= (x->s_defined[s][k][b] >> l & 1) != 0 ? 0 : 0xffu << 8 * b;
                zero[s][k][l] = x->s[s][k * LANES + l] & ~undefined;
                one[s][k][l] = x->s[s][k * LANES + l] | undefined;
                if (undefined != 0) all_known &= ~(UINT64_C(1) << l);
                if (undefined != 0 && (in->row->detail >> s & 1) != 0) counts_known &= ~(UINT64_C(1) << l);
            }
        s++;
    }
    memset(unknown, 0, sizeof unknown);
    uint64_t unused[MOST_RESULT][4];
    for (int try = 0; try < 1 << sources && all_known != UINT64_MAX; try++) {
        for (int i = 0; i < sources; i++) y.s[i] = (try >> i & 1) != 0 ? one[i][0] : zero[i][0];
        y.d = try == 0 ? first[0] : again[0];
        y.d_defined = unused;
        memcpy(y.d, x->d, dwords * sizeof first[0]);
        in->row->lanes(&y);
        for (uint32_t k = 0; k < dwords && try != 0; k++)
            for (uint32_t l = 0; l < LANES; l++) unknown[k][l] |= first[k][l] ^ again[k][l];
    }
    const uint32_t low = in->operand[0].role == 'x' && (in->op_sel & 8) != 0 ? 2 : 0,
                   high = in->operand[0].role != 'x' ? 4 : low + 2;       /* bytes that are written */
    for (uint32_t k = 0; k < dwords; k++)
        for (uint32_t b = low; b < high; b++) {
            uint64_t known = 0;
            for (uint32_t l = 0; l < LANES; l++) known |= (uint64_t)((unknown[k][l] >> 8 * b & 0xff) == 0) << l;
            x->d_defined[k][b] = known & counts_known;
        }
}

static void defined_result(struct lanes *x, const struct insn *in, int sources, uint32_t dwords)
{
    if ((in->row->flags & ROW_BITWISE) != 0) {
        defined_bits(x, in, sources, dwords);
        return;
    }
    if ((in->row->flags & ROW_OWN_DEFINED) != 0) return;
    if ((in->row->flags & ROW_BYTEWISE) != 0) {
        int s = 0;
        uint64_t all[2][4];
        memset(all, 0xff, sizeof all);
        for (int i = 0; i < in->operands; i++) {
            if (in->operand[i].role != 's') continue;
            for (uint32_t k = 0; k < dwords && k < 2; k++)
                for (int b = 0; b < 4; b++) all[k][b] &= x->s_defined[s][k][b];
            s++;
        }
        for (uint32_t k = 0; k < dwords; k++) memcpy(x->d_defined[k], all[k], sizeof all[k]);
        return;
    }
    uint64_t all = x->mask_in_defined ? UINT64_MAX : 0;
    int s = 0;
    for (int i = 0; i < in->operands && s < sources; i++) {
        if (in->operand[i].role != 's') continue;
        for (uint32_t k = 0; k < in->operand[i].dwords; k++)
            for (int b = 0; b < 4; b++) all &= x->s_defined[s][k][b];
        s++;
    }
    for (uint32_t k = 0; k < dwords; k++)
        for (int b = 0; b < 4; b++) x->d_defined[k][b] = all;
}

static void place_part(struct lanes *x, const uint32_t *old, const uint64_t old_defined[4])
{
    const struct insn *in = x->in;
    const uint32_t selection = in->dst_sel;
    if (!in->sdwa || selection == 6) return;
    const uint32_t bits = selection < 4 ? 8 : 16, shift = selection < 4 ? 8 * selection : 16 * (selection - 4);
    const uint32_t ones = (1u << bits) - 1;
    for (uint32_t l = 0; l < LANES; l++) {
        const uint32_t part = x->d[l] & ones;
        if (in->dst_unused == 2) x->d[l] = (old[l] & ~(ones << shift)) | part << shift;
        else if (in->dst_unused == 1 && (part >> (bits - 1)) != 0) x->d[l] = (part | ~ones) << shift;
        else x->d[l] = part << shift;
    }
    for (uint32_t b = 0; b < 4 && in->dst_unused == 2; b++)
        if (8 * b < shift || 8 * b >= shift + bits) x->d_defined[0][b] = old_defined[b];
}

static void write_back(struct wave *w, const struct lanes *x, const struct operand *o)
{
    const uint32_t row = operand_row(o);
    const struct insn *in = x->in;
    for (uint32_t k = 0; k < o->dwords; k++) {
        uint32_t *to = w->vgpr[row + k];
        const uint32_t *from = x->d + k * LANES;
        if (x->lanes == UINT64_MAX) memcpy(to, from, LANES * sizeof *to);
        else FOR_LANES(l, x->lanes) to[l] = from[l];
        for (int b = 0; b < 4; b++)
            w->defined[row + k][b] = (w->defined[row + k][b] & ~x->lanes) | (x->d_defined[k][b] & x->lanes);
    }
    const bool partial = (in->sdwa && in->dst_sel != 6)
                         || ((in->row->flags & ROW_SELECTS) != 0 && in->operand[0].role == 'x'
                             && ((in->row->flags & ROW_HALF) == 0 || (in->op_sel & 8) != 0));
    written(w, row, o->dwords, (in->row->flags & ROW_TRANSCENDENTAL) != 0 ? WRITER_TRANSCENDENTAL
                               : partial                                  ? WRITER_PARTIAL
                                                                          : WRITER_VALU, 0);
}

static bool write_mask(struct wave *w, const struct insn *in, const struct lanes *x, const struct operand *o,
                       int sources)
{
    uint64_t all = x->mask_in_defined ? UINT64_MAX : 0;
    for (int s = 0, i = 0; i < in->operands && s < sources; i++) {
        if (in->operand[i].role != 's') continue;
        for (uint32_t k = 0; k < in->operand[i].dwords; k++)
            for (int b = 0; b < 4; b++) all &= x->s_defined[s][k][b];
        s++;
    }
    static const struct operand exec = { .kind = OPERAND_SGPR, .dwords = 2, .index = EXEC };
    const struct scalar value = { x->mask_out & x->lanes, x->lanes & ~all };
    return scalar_write(w, in, o, value, WRITER_VALU)
           && ((in->row->flags & ROW_WRITES_EXEC) == 0 || scalar_write(w, in, &exec, value, WRITER_VALU));
}

/* s_set_gpr_idx_on: M0 has the distance in its lowest byte, and in bits 12 to 15 which of the operands move. */
static bool indexed(struct wave *w, const struct insn *in, struct insn *moved)
{
    static const struct operand m0 = { .kind = OPERAND_SGPR, .dwords = 1, .index = M0 };
    struct scalar s;
    int source = 0;
    if (!scalar_read(w, in, &m0, &s)) return false;
    const uint64_t value = s.value;
    if ((s.undefined & 0xff) != 0 && wave_options(w)->check_uninitialised) {
        wave_fault(w, in, NO_LANE, REPORT_UNINITIALISED, "uses M0 as the index of registers, and nothing has written "
                   "it");
        return false;
    }
    *moved = *in;
    for (int i = 0; i < in->operands; i++) {
        struct operand *o = &moved->operand[i];
        const bool result = o->role == 'd' || o->role == 'x';
        const int bit = result ? 15 : o->role == 's' && source < 3 ? 12 + source++ : 31;
        const bool vector = o->kind == OPERAND_VGPR || o->kind == OPERAND_AGPR;
        if (vector && (value >> bit & 1) != 0) o->index = (uint16_t)(o->index + (value & 0xff));
    }
    return true;
}

trap valu_run(struct wave *w, const struct insn *insn)
{
    struct insn moved;
    const struct insn *in = insn;
    if (w->indexing) {
        if (!indexed(w, insn, &moved)) return TRAP_FAULT;
        in = &moved;
    }
    if (in->clamp && (in->row->flags & (ROW_FLOATS_OUT | ROW_CLAMPS | ROW_PACKED)) == 0)
        return wave_fault(w, in, NO_LANE, REPORT_ILLEGAL, "clamps what gfxsim has no saturated form of");
    struct workspace space;
    struct lanes x = { .w = w, .in = in, .lanes = wave_exec(w), .mask_in_defined = true, .d = space.result[0],
                       .d_defined = space.result_defined };
    const struct operand *mask = NULL;
    int sources = 0;
    if ((in->row->flags & ROW_ALL_LANES) != 0) x.lanes = UINT64_MAX;
    if (in->dpp && !hazard_exec_dpp(w, in)) return TRAP_FAULT;
    for (int i = 0; i < in->operands; i++) {
        const struct operand *o = &in->operand[i];
        struct scalar s;
        switch (o->role) {
        case 's':
            if (!fetch(w, in, o, &x, &space, sources++)) return TRAP_FAULT;
            break;
        case 'm':
            if (!scalar_read(w, in, o, &s) || !hazard_sgpr_as_data(w, in, o->index, 2)) return TRAP_FAULT;
            x.mask_in = s.value;
            x.mask_in_defined = (s.undefined & x.lanes) == 0;
            break;
        case 'c': mask = o; break;
        case 'k':
            for (uint32_t l = 0; l < LANES; l++) space.source[3][0][l] = (uint32_t)o->value;
            x.s[3] = space.source[3][0];
            break;
        default: break;
        }
    }
    const struct operand *d = in->operand[0].role == 'd' || in->operand[0].role == 'x' ? &in->operand[0] : NULL;
    if (d != NULL) {
        if (!vgpr_writable(w, in, d) || (d->role == 'x' && !vgpr_readable(w, in, d, READER_VALU))) return TRAP_FAULT;
        if (!hazard_vgpr(w, in, operand_row(d), d->dwords, READER_TRANSCENDENTAL)) return TRAP_FAULT;
        if (d->role == 'x')
            for (uint32_t k = 0; k < d->dwords; k++) {
                memcpy(space.result[k], w->vgpr[operand_row(d) + k], sizeof space.result[k]);
                memcpy(space.result_defined[k], w->defined[operand_row(d) + k], sizeof space.result_defined[k]);
            }
    }
    in->row->lanes(&x);
    if (d != NULL) {
        if ((in->row->flags & ROW_FLOATS_OUT) != 0) output_modifiers(&x, d->dwords);
        defined_result(&x, in, sources, d->dwords);
        if (d->role == 'x' && (in->row->flags & ROW_OWN_DEFINED) == 0)   /* fmac: what was there counts, too */
            for (uint32_t k = 0; k < d->dwords; k++)
                for (int b = 0; b < 4; b++) x.d_defined[k][b] &= rows_defined(w, operand_row(d) + k, 1);
        place_part(&x, w->vgpr[operand_row(d)], w->defined[operand_row(d)]);
        write_back(w, &x, d);
    }
    return mask == NULL || write_mask(w, in, &x, mask, sources) ? TRAP_NONE : TRAP_FAULT;
}
