/* Instructions as text, in the assembler's syntax: what reports show, and what a test compares with llvm-objdump. */
#include "decode.h"

#include "simulator/report_text.h"

#include <string.h>

static void scalar_name(struct report_text *t, uint32_t index, uint32_t dwords)
{
    static const struct { uint32_t index; const char *pair, *low, *high; } names[] = {
        { 102, "flat_scratch", "flat_scratch_lo", "flat_scratch_hi" },
        { 104, "xnack_mask", "xnack_mask_lo", "xnack_mask_hi" },
        { 106, "vcc", "vcc_lo", "vcc_hi" }, { 126, "exec", "exec_lo", "exec_hi" } };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (index == names[i].index || index == names[i].index + 1) {
            report_add(t, "%s", index != names[i].index ? names[i].high : dwords == 1 ? names[i].low : names[i].pair);
            return;
        }
    if (index == 124) report_add(t, "m0");
    else if (dwords == 1) report_add(t, "s%u", index);
    else report_add(t, "s[%u:%u]", index, index + dwords - 1);
}

static void constant(struct report_text *t, const struct operand *o)
{
    static const char *const floats[9] = { "0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494" };
    if (o->type == 'w' && o->code >= 240) report_add(t, "0x%x", (unsigned)o->value);
    else if (o->code >= 240 && o->code < 248) report_add(t, "%s", floats[o->code - 240]);
    else if (o->code == 248)
        report_add(t, "%s",
                   o->dwords == 2 && o->type != 'f' ? "0.15915494309189532" : floats[8]);
    else report_add(t, "%d", o->code <= 192 ? (int)o->code - 128 : 192 - (int)o->code);
}

static void operand(struct report_text *t, const struct operand *o)
{
    switch (o->kind) {
    case OPERAND_NONE: report_add(t, "off"); break;
    case OPERAND_SGPR: scalar_name(t, o->index, o->dwords); break;
    case OPERAND_VGPR: case OPERAND_AGPR: {
        const char letter = o->kind == OPERAND_VGPR ? 'v' : 'a';
        if (o->dwords == 1) report_add(t, "%c%u", letter, o->index);
        else report_add(t, "%c[%u:%u]", letter, o->index, o->index + o->dwords - 1);
        break;
    }
    case OPERAND_CONSTANT: constant(t, o); break;
    case OPERAND_LITERAL:
        report_add(t, "0x%x",
                   (unsigned)(o->type == 'e'   ? o->value >> 32
                              : o->type == 'w' || o->type == 'h' ? o->value & 0xffff
                                               : o->value & 0xffffffff));
        break;
    default:
        if (o->index < 240) {
            report_add(t, "src_%s_%s", o->index < 237 ? "shared" : "private", o->index % 2 != 0 ? "base" : "limit");
            break;
        }
        report_add(t, "%s", o->index == 251 ? "src_vccz" : o->index == 252 ? "src_execz" : "src_scc");
        break;
    }
}

static void list(struct report_text *t, const char *name, uint32_t set, int count)
{
    report_add(t, " %s:[", name);
    for (int i = 0; i < count; i++) report_add(t, "%s%u", i == 0 ? "" : ",", set >> i & 1);
    report_add(t, "]");
}

/* ---- scalar ---- */

static void waitcnt(struct report_text *t, uint32_t simm)
{
    const uint32_t vm = (simm & 15) | (simm >> 14 & 3) << 4, exp = simm >> 4 & 7, lgkm = simm >> 8 & 15;
    const bool all = vm == 63 && exp == 7 && lgkm == 15;
    if (vm != 63 || all) report_add(t, " vmcnt(%u)", vm);
    if (exp != 7 || all) report_add(t, " expcnt(%u)", exp);
    if (lgkm != 15 || all) report_add(t, " lgkmcnt(%u)", lgkm);
}

static void program_flow(struct report_text *t, const struct insn *in)
{
    const uint32_t simm = (uint16_t)in->simm;
    switch (in->row->opcode) {
    case 1: if (simm != 0) report_add(t, " %u", simm); break;
    case 10: case 19: case 28: break;
    case 12: waitcnt(t, simm); break;
    case 2: case 4: case 5: case 6: case 7: case 8: case 9: report_add(t, " %u", simm); break;
    default: report_add(t, simm <= 64 ? " %u" : " 0x%x", simm); break;
    }
}

/* What s_set_gpr_idx_on moves. */
static void indexed(struct report_text *t, uint32_t which)
{
    static const char *const names[4] = { "SRC0", "SRC1", "SRC2", "DST" };
    const char *between = "";
    report_add(t, ", gpr_idx(");
    for (int i = 0; i < 4; i++)
        if (which >> i & 1) report_add(t, "%s%s", between, names[i]), between = ",";
    report_add(t, ")");
}

static const char *const selections[8] = { "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD", "?" };

static void sdwa(struct report_text *t, const struct insn *in, int sources)
{
    static const char *const unused[4] = { "UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "?" };
    if (in->encoding != FORMAT_VOPC && (in->row->flags & ROW_SOURCE_PART) == 0)
        report_add(t, " dst_sel:%s dst_unused:%s", selections[in->dst_sel], unused[in->dst_unused]);
    for (int i = 0; i < sources && i < 2; i++) report_add(t, " src%d_sel:%s", i, selections[in->src_sel[i]]);
}

static void dpp(struct report_text *t, const struct insn *in)
{
    const uint32_t c = in->dpp_control;
    static const char *const wave[4] = { "wave_shl", "wave_rol", "wave_shr", "wave_ror" };
    if (c < 0x100) report_add(t, " quad_perm:[%u,%u,%u,%u]", c & 3, c >> 2 & 3, c >> 4 & 3, c >> 6);
    else if (c < 0x110) report_add(t, " row_shl:%u", c & 15);
    else if (c < 0x120) report_add(t, " row_shr:%u", c & 15);
    else if (c < 0x130) report_add(t, " row_ror:%u", c & 15);
    else if (c < 0x140) report_add(t, " %s:1", wave[c >> 2 & 3]);
    else if (c == 0x140) report_add(t, " row_mirror");
    else if (c == 0x141) report_add(t, " row_half_mirror");
    else if (c == 0x142) report_add(t, " row_bcast:15");
    else if (c == 0x143) report_add(t, " row_bcast:31");
    else report_add(t, " row_newbcast:%u", c & 15);
    report_add(t, " row_mask:0x%x bank_mask:0x%x", in->row_mask, in->bank_mask);
    if (in->bound_control) report_add(t, " bound_ctrl:1");
}

static bool is_bitop(const struct insn *in) { return strncmp(in->row->name, "v_bitop3", 8) == 0; }

static void modifiers(struct report_text *t, const struct insn *in, int sources)
{
    static const char *const omods[4] = { "", " mul:2", " mul:4", " div:2" };
    const bool packed = in->encoding == FORMAT_VOP3P && (in->row->flags & ROW_PACKED) != 0;
    if (in->encoding == FORMAT_MFMA) {
        if (in->scaled) {
            if ((in->op_sel & 3) != 0) list(t, "op_sel", in->op_sel, 3);
            list(t, "op_sel_hi", in->op_sel_hi, 3);
        }
        if (in->cbsz != 0) report_add(t, " cbsz:%u", in->cbsz);
        if (in->abid != 0 && !in->scaled) report_add(t, " abid:%u", in->abid);
        if (in->blgp != 0) report_add(t, " blgp:%u", in->blgp);
    } else if (packed) {
        const uint32_t all = (1u << sources) - 1;
        if ((in->op_sel & all) != 0) list(t, "op_sel", in->op_sel, sources);
        const bool mixed = (in->row->flags & ROW_MIXED) != 0;
        if ((in->op_sel_hi & all) != (mixed ? 0 : all) && (in->row->flags & ROW_NO_HALVES) == 0)
            list(t, "op_sel_hi", in->op_sel_hi, sources);
        if (mixed) {
            if (in->clamp) report_add(t, " clamp");
            return;
        }
        if ((in->neg & all) != 0) list(t, "neg_lo", in->neg, sources);
        if ((in->abs & all) != 0) list(t, "neg_hi", in->abs, sources);
        if (in->clamp) report_add(t, " clamp");
    } else if (in->encoding == FORMAT_VOP3 || in->sdwa) {
        if (is_bitop(in)) {
            const uint32_t table = (uint32_t)in->omod << 6 | (uint32_t)in->abs << 3 | in->neg;
            if (table != 0) report_add(t, " bitop3:0x%x", table);
        }
        if (in->encoding == FORMAT_VOP3 && (in->row->flags & ROW_SELECTS) != 0 && in->op_sel != 0) {
            const uint32_t low = in->op_sel & ((1u << sources) - 1);
            list(t, "op_sel", low | (uint32_t)(in->op_sel >> 3) << sources, sources + 1);
        }
        if (in->clamp) report_add(t, " clamp");
        if (!is_bitop(in)) report_add(t, "%s", omods[in->omod]);
    }
}

static void memory_modifiers(struct report_text *t, const struct insn *in)
{
    if (in->encoding == FORMAT_BUFFER) {
        if (in->idxen) report_add(t, " idxen");
        if (in->offen) report_add(t, " offen");
    }
    if ((in->row->flags & ROW_TWO_OFFSETS) != 0) {
        if (in->offset != 0) report_add(t, " offset0:%d", in->offset);
        if (in->offset1 != 0) report_add(t, " offset1:%d", in->offset1);
    } else if (in->offset != 0) report_add(t, " offset:%d", in->offset);
    if (in->sc0) report_add(t, " sc0");
    if (in->nt) report_add(t, " nt");
    if (in->sc1) report_add(t, " sc1");
    if (in->lds && in->encoding == FORMAT_BUFFER) report_add(t, " lds");
}

static const char *suffix(const struct insn *in)
{
    if (in->sdwa) return "_sdwa";
    if (in->dpp) return "_dpp";
    const enum format filed = in->family->format;
    if ((filed != FORMAT_VOP1 && filed != FORMAT_VOP2 && filed != FORMAT_VOPC) || (in->row->flags & ROW_NO_SHORT) != 0)
        return "";
    return in->encoding == FORMAT_VOP3 ? "_e64" : "_e32";
}

/* What s_getreg and s_setreg name: a register of the hardware, and which bits if not all. */
static void hardware_register(struct report_text *t, uint32_t simm)
{
    static const char *const names[] = {
        [1] = "MODE", [2] = "STATUS", [3] = "TRAPSTS", [4] = "HW_ID", [5] = "GPR_ALLOC", [6] = "LDS_ALLOC",
        [7] = "IB_STS", [15] = "SH_MEM_BASES", [16] = "TBA_LO", [17] = "TBA_HI", [18] = "TMA_LO", [19] = "TMA_HI",
        [20] = "XCC_ID", [21] = "SQ_PERF_SNAPSHOT_DATA", [22] = "SQ_PERF_SNAPSHOT_DATA1",
        [23] = "SQ_PERF_SNAPSHOT_PC_LO", [24] = "SQ_PERF_SNAPSHOT_PC_HI"
    };
    const uint32_t number = simm & 63, shift = simm >> 6 & 31, size = (simm >> 11) + 1;
    if (number < sizeof names / sizeof names[0] && names[number] != NULL)
        report_add(t, "hwreg(HW_REG_%s", names[number]);
    else report_add(t, "hwreg(%u", number);
    if (shift != 0 || size != 32) report_add(t, ", %u, %u", shift, size);
    report_add(t, ")");
}

static void print_operands(struct report_text *t, const struct insn *in)
{
    const bool reads_mode = in->encoding == FORMAT_SOPK && in->row->opcode == 17,
               sets_mode = in->encoding == FORMAT_SOPK && in->row->opcode > 17;
    if (sets_mode) {
        report_add(t, " ");
        hardware_register(t, (uint16_t)in->simm);
    }
    const bool floats = (in->row->flags & ROW_FLOAT) != 0
                        && (in->encoding == FORMAT_VOP3 || in->sdwa || in->dpp || (in->row->flags & ROW_MIXED) != 0);
    int source = 0, shown = 0;
    for (int i = 0; i < in->operands; i++) {
        const struct operand *o = &in->operand[i];
        const bool memory = in->encoding >= FORMAT_DS || in->encoding == FORMAT_SMEM;
        if (o->kind == OPERAND_NONE && (in->lds || in->encoding == FORMAT_SMEM) && o->role != 'a' && o->role != 'b')
            continue;
        report_add(t, shown++ == 0 && !sets_mode ? " " : ", ");
        const bool negated = !memory && floats && o->role == 's' && (in->neg >> source & 1) != 0 && !is_bitop(in),
                   absolute = !memory && floats && o->role == 's' && (in->abs >> source & 1) != 0 && !is_bitop(in),
                   extended = in->sdwa && !floats && o->role == 's' && (in->src_sext >> source & 1) != 0;
        report_add(t, "%s%s%s", negated ? "-" : "", absolute ? "|" : "", extended ? "sext(" : "");
        operand(t, o);
        report_add(t, "%s%s", absolute ? "|" : "", extended ? ")" : "");
        if (o->role == 's') source++;
    }
    const enum format f = in->encoding;
    if (reads_mode) {
        report_add(t, ", ");
        hardware_register(t, (uint16_t)in->simm);
    } else if (f == FORMAT_SOPK && !sets_mode) report_add(t, ", 0x%x", (unsigned)(uint16_t)in->simm);
    if (f == FORMAT_SOPP) program_flow(t, in);
    if (f == FORMAT_SOPC && in->row->opcode == 17) indexed(t, (uint32_t)in->simm);
    if (f == FORMAT_SMEM && in->offset != 0 && in->operands > 2 && in->operand[2].kind == OPERAND_SGPR)
        report_add(t, in->offset < 0 ? " offset:-0x%x" : " offset:0x%x",
                   (unsigned)(in->offset < 0 ? -in->offset : in->offset));
    else if (f == FORMAT_SMEM && in->operands > 2 && in->operand[2].kind == OPERAND_NONE)
        report_add(t, in->offset < 0 ? ", -0x%x" : ", 0x%x", (unsigned)(in->offset < 0 ? -in->offset : in->offset));
    if (f == FORMAT_SMEM && in->sc0) report_add(t, " glc");
    if (f >= FORMAT_DS) memory_modifiers(t, in);
    else if (f >= FORMAT_VOP1) modifiers(t, in, source);
    if (in->sdwa) sdwa(t, in, source);
    if (in->dpp) dpp(t, in);
}

void instruction_text(const struct insn *in, char text[INSTRUCTION_TEXT])
{
    struct report_text t = { text, INSTRUCTION_TEXT };
    text[0] = '\0';
    if (in->row == NULL) {
        report_add(&t, "(no instruction that is known here)");
        return;
    }
    const bool scaled = in->scaled;
    if (scaled) report_add(&t, "v_mfma_scale%s", in->row->name + 6);
    else report_add(&t, "%s%s", in->row->name, suffix(in));
    print_operands(&t, in);
}
