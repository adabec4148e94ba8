/* The decoder: the format by the first bits, the row by the opcode, operands by the row's words. */
#include "decode.h"

#include <pthread.h>
#include <string.h>

/* CDNA4 ISA, "Microcode Formats".  Rows by format and opcode; filled once. */
enum { MOST_OPCODES = 1024 };
struct place { const struct row *row; const struct family *family; };
static struct place table[FORMAT_COUNT][MOST_OPCODES];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    for (size_t i = 0; i < instruction_family_count; i++) {
        const struct family *f = instruction_families[i];
        for (size_t k = 0; k < f->count; k++)
            table[f->format][f->rows[k].opcode % MOST_OPCODES] = (struct place){ &f->rows[k], f };
    }
}

struct reader {
    struct insn *in;
    uint32_t word[4];
    uint32_t words;           /* that there are */
    uint32_t used;
    bool wrong, has_constant;
    uint32_t constant;        /* the literal: an instruction has one, whichever of its sources name it */
};

static uint32_t bits(uint32_t word, int low, int count) { return word >> low & ((1u << count) - 1); }

static bool find(struct insn *in, enum format format, uint32_t opcode)
{
    const struct place p = table[format][opcode % MOST_OPCODES];
    in->row = p.row;
    in->family = p.family;
    return p.row != NULL;
}

static uint32_t literal(struct reader *r)
{
    if (r->used >= r->words) {
        r->wrong = true;
        return 0;
    }
    return r->word[r->used++];
}

static uint32_t constant(struct reader *r)
{
    if (!r->has_constant) r->constant = literal(r);
    r->has_constant = true;
    return r->constant;
}

/* ---- constants ---- */

static uint64_t inline_float(uint32_t code, char type)
{
    static const uint32_t single[9] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000, 0xc0000000,
                                        0x40800000, 0xc0800000, 0x3e22f983 };
    static const uint16_t half[9] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118 };
    static const uint64_t twice[9] = { 0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000, 0xbff0000000000000,
                                       0x4000000000000000, 0xc000000000000000, 0x4010000000000000, 0xc010000000000000,
                                       0x3fc45f306dc9c882 };
    const uint32_t i = code - 240;
    return type == 'h' || type == 'w' ? half[i] : type == 'e' ? twice[i] : type == 'g' ? single[i] >> 16 : single[i];
}

/* A source of nine bits; scalar instructions have eight of them. */
static void source(struct reader *r, struct operand *o, uint32_t code)
{
    o->code = code;
    o->kind = OPERAND_CONSTANT;
    if (code >= 256) o->kind = OPERAND_VGPR, o->index = (uint16_t)(code - 256);
    else if (code < 108 || code == 124 || code == 126 || code == 127) o->kind = OPERAND_SGPR, o->index = (uint16_t)code;
    else if (code >= 128 && code <= 192) o->value = code - 128;
    else if (code >= 193 && code <= 208) o->value = (uint64_t)(192 - (int64_t)code);
    else if (code >= 240 && code <= 248)
        o->value = inline_float(code, o->dwords == 2 && o->type != 'f' ? 'e' : o->type);
    else if (code >= 235 && code <= 238 && o->dwords == 2) o->kind = OPERAND_BIT, o->index = (uint16_t)code;
    else if (code >= 251 && code <= 253) o->kind = OPERAND_BIT, o->index = (uint16_t)code;
    else if (code == 255) {
        o->kind = OPERAND_LITERAL;
        o->value = constant(r);
        if (o->type == 'e') o->value <<= 32;
        else if (o->type == 'i' && o->dwords == 2) o->value = (uint64_t)(int64_t)(int32_t)o->value;
    } else r->wrong = true;
    if (o->kind == OPERAND_SGPR && (code + o->dwords > 128 || (code < 106 && code + o->dwords > 106)
                                    || (code == 124 && o->dwords > 1) || (code < 108 && code + o->dwords > 108)
                                    || (code % 2 != 0 && o->dwords > 1)))
        r->wrong = true;
    /* CDNA4 ISA, "Vector ALU Operations": tuples of registers begin at an even one */
    if (o->kind == OPERAND_VGPR && (o->index + o->dwords > 256 || (o->dwords > 1 && o->index % 2 != 0)))
        r->wrong = true;
}

static void vector(struct reader *r, struct operand *o, uint32_t code, bool accumulator)
{
    o->kind = accumulator ? OPERAND_AGPR : OPERAND_VGPR;
    o->index = (uint16_t)code;
    o->code = code + 256;
    if (code + o->dwords > 256 || (o->dwords > 1 && code % 2 != 0)) r->wrong = true;
}

static void scalar(struct reader *r, struct operand *o, uint32_t code)
{
    if (code >= 128) r->wrong = true;
    else source(r, o, code);
}

/* ---- words of a row ---- */

static void read_operands(struct insn *in)
{
    for (const char *at = in->row->operands; *at != '\0' && in->operands < MOST_OPERANDS; in->operands++) {
        struct operand *o = &in->operand[in->operands];
        o->role = *at++;
        o->type = 'u';
        while (*at >= '0' && *at <= '9') o->dwords = (uint8_t)(o->dwords * 10 + (*at++ - '0'));
        if (*at != ' ' && *at != '\0') o->type = *at++;
        while (*at == ' ') at++;
    }
}

/* The operands' places for vector instructions: src0..src2 as encoded; masks from vcc or their own fields. */
struct places { uint32_t d, sdst, s[3], literal; bool long_form, accumulator; };

static void vector_operands(struct reader *r, const struct places *p)
{
    struct insn *in = r->in;
    int next = 0;
    for (int i = 0; i < in->operands; i++) {
        struct operand *o = &in->operand[i];
        switch (o->role) {
        case 'd': case 'x': vector(r, o, p->d, p->accumulator); break;
        case 'D':
            scalar(r, o, p->d);
            if (p->d == 124) r->wrong = true;
            break;
        case 'c': scalar(r, o, p->long_form ? p->sdst : 106); break;
        case 'm': scalar(r, o, p->long_form ? p->s[2] : 106); break;
        case 'k': o->kind = OPERAND_LITERAL, o->code = 255; break;
        default:
            source(r, o, next < 3 ? p->s[next] : 128);
            if ((o->dwords > 2 || o->type == 'v') && o->kind != OPERAND_VGPR) r->wrong = true;
            next++;
            break;
        }
    }
    for (int i = 0; i < in->operands; i++)
        if (in->operand[i].role == 'k') in->operand[i].value = constant(r);
}

static void read_sdwa(struct reader *r, struct places *p, bool second, bool compares)
{
    struct insn *in = r->in;
    const uint32_t w = literal(r);
    in->sdwa = true;
    p->s[0] = bits(w, 0, 8) | (bits(w, 23, 1) ? 0 : 256);
    in->src_sel[0] = (uint8_t)bits(w, 16, 3);
    in->src_sel[1] = (uint8_t)bits(w, 24, 3);
    in->src_sext = (uint8_t)(bits(w, 19, 1) | bits(w, 27, 1) << 1);
    in->neg = (uint8_t)(bits(w, 20, 1) | bits(w, 28, 1) << 1);
    in->abs = (uint8_t)(bits(w, 21, 1) | bits(w, 29, 1) << 1);
    if (second && bits(w, 31, 1)) p->s[1] = p->s[1] - 256;
    if (compares) {
        in->dst_sel = 6;
        if (bits(w, 15, 1)) p->sdst = bits(w, 8, 7), p->long_form = true;
    } else {
        in->dst_sel = (uint8_t)bits(w, 8, 3);
        in->dst_unused = (uint8_t)bits(w, 11, 2);
        in->clamp = bits(w, 13, 1);
        in->omod = (uint8_t)bits(w, 14, 2);
    }
    if (in->dst_sel == 7 || in->dst_unused == 3 || in->src_sel[0] == 7 || in->src_sel[1] == 7) r->wrong = true;
    if (p->s[0] == 255 || p->s[1] == 255 || bits(w, 22, 1) || bits(w, 30, 1)) r->wrong = true;
    if (compares && !bits(w, 15, 1) && bits(w, 8, 7) != 0) r->wrong = true;
}

static bool moves_lanes(uint32_t control)
{
    if (control < 0x100) return true;
    if (control < 0x130) return (control & 15) != 0;
    if (control < 0x140) return (control & 3) == 0;
    return control < 0x144 || (control >= 0x150 && control < 0x160);
}

static void read_dpp(struct reader *r, struct places *p)
{
    struct insn *in = r->in;
    const uint32_t w = literal(r);
    in->dpp = true;
    p->s[0] = bits(w, 0, 8) | 256;
    in->dpp_control = (uint16_t)bits(w, 8, 9);
    if (bits(w, 17, 2) != 0 || !moves_lanes(in->dpp_control)) r->wrong = true;
    in->bound_control = bits(w, 19, 1);
    in->neg = (uint8_t)(bits(w, 20, 1) | bits(w, 22, 1) << 1);
    in->abs = (uint8_t)(bits(w, 21, 1) | bits(w, 23, 1) << 1);
    in->bank_mask = (uint8_t)bits(w, 24, 4);
    in->row_mask = (uint8_t)bits(w, 28, 4);
}

static void accumulator_source(struct reader *r)
{
    struct operand *o = &r->in->operand[1];
    if (o->kind != OPERAND_VGPR) r->wrong = true;
    o->kind = OPERAND_AGPR;
}

/* Exchanges of lanes take vector registers alone; the number of a lane is a scalar. */
static void check_places(struct reader *r)
{
    const struct insn *in = r->in;
    const bool vectors = (in->row->flags & ROW_VECTOR_SOURCES) != 0;
    for (int i = vectors ? 0 : 1; i < in->operands; i++) {
        const bool vector = in->operand[i].kind == OPERAND_VGPR;
        if (vectors && !vector) r->wrong = true;
        if ((in->row->flags & ROW_SCALAR_LANE) == 0) continue;
        const bool wanted = i == 1 && in->operand[0].role == 'D';
        if (vector != wanted) r->wrong = true;
    }
}

static void short_vector(struct reader *r, enum format format, uint32_t opcode)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0];
    if (!find(in, format, opcode)) return;
    in->encoding = (uint8_t)format;
    read_operands(in);
    struct places p = { .d = bits(w, 17, 8), .s = { bits(w, 0, 9), bits(w, 9, 8) | 256, 0 } };
    if (p.s[0] == 249) read_sdwa(r, &p, format != FORMAT_VOP1, format == FORMAT_VOPC);
    else if (p.s[0] == 250) read_dpp(r, &p);
    p.accumulator = strstr(in->row->name, "accvgpr") != NULL;
    vector_operands(r, &p);
    if (p.accumulator) accumulator_source(r);
    check_places(r);
    /* whole registers of lanes that stay where they are; comparisons have no DPP */
    if ((in->sdwa || in->dpp) && (in->row->lanes == NULL || (in->row->flags & ROW_NO_SHORT) != 0)) r->wrong = true;
    if (in->dpp && format == FORMAT_VOPC) r->wrong = true;
    if (in->sdwa && in->operands > 0
        && (in->operand[0].role == 'x' || in->operand[in->operands - 1].dwords > 1)
        && in->operand[in->operands - 1].role != 'm')
        r->wrong = true;
    for (int i = 0; i < in->operands; i++)
        if ((in->sdwa || in->dpp) && in->operand[i].role == 's' && in->operand[i].dwords > 1) r->wrong = true;
    /* signs of sources that are none */
    const uint32_t signs = in->neg | in->abs;
    if ((in->dpp || in->sdwa)
        && ((signs != 0 && (in->row->flags & ROW_FLOAT) == 0) || (signs > 1 && format == FORMAT_VOP1)))
        r->wrong = true;
    if ((in->sdwa || in->dpp) && in->operand[0].dwords > 1 && in->operand[0].role != 'c'
        && (in->dpp || (in->row->flags & ROW_SOURCE_PART) == 0))
        r->wrong = true;
    if (in->sdwa && (in->row->flags & ROW_SOURCE_PART) != 0 && in->dst_sel != 6) r->wrong = true;
}

static void long_vector(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0], opcode = bits(w, 16, 10);
    const uint32_t v = literal(r);
    const bool found = opcode < 0x100   ? find(in, FORMAT_VOPC, opcode)
                       : opcode < 0x140 ? find(in, FORMAT_VOP2, opcode - 0x100)
                       : opcode < 0x1c0 ? find(in, FORMAT_VOP1, opcode - 0x140)
                                        : find(in, FORMAT_VOP3, opcode);
    if (!found) return;
    in->encoding = FORMAT_VOP3;
    read_operands(in);
    struct places p = { .d = bits(w, 0, 8), .sdst = bits(w, 8, 7), .long_form = true,
                        .s = { bits(v, 0, 9), bits(v, 9, 9), bits(v, 18, 9) } };
    if (in->family->format == FORMAT_VOPC) p.sdst = bits(w, 0, 8);
    in->clamp = bits(w, 15, 1);
    in->omod = (uint8_t)bits(v, 27, 2);
    in->neg = (uint8_t)bits(v, 29, 3);
    bool has_sdst = false;
    for (int i = 0; i < in->operands; i++) {
        if (in->operand[i].role == 'k') r->wrong = true;                  /* has no long form */
        has_sdst |= in->operand[i].role == 'c' && in->family->format != FORMAT_VOPC;
    }
    if (!has_sdst) {
        in->abs = (uint8_t)bits(w, 8, 3);
        in->op_sel = (uint8_t)bits(w, 11, 4);
    }
    for (int i = 0; i < 3; i++)
        if (p.s[i] == 255) r->wrong = true;                               /* no literals */
    p.accumulator = false;
    /* what has no suffix has no long form */
    if (in->family->format != FORMAT_VOP3 && (in->row->flags & ROW_NO_SHORT) != 0) r->wrong = true;
    vector_operands(r, &p);
    check_places(r);
}

static void packed_vector(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0], v = literal(r);
    if (!find(in, FORMAT_VOP3P, bits(w, 16, 7))) return;
    in->encoding = FORMAT_VOP3P;
    read_operands(in);
    struct places p = { .d = bits(w, 0, 8), .long_form = true,
                        .s = { bits(v, 0, 9), bits(v, 9, 9), bits(v, 18, 9) } };
    const bool writes = strcmp(in->row->name, "v_accvgpr_write_b32") == 0,
               reads = strcmp(in->row->name, "v_accvgpr_read_b32") == 0;
    p.accumulator = writes;
    in->op_sel = (uint8_t)bits(w, 11, 3);
    in->op_sel_hi = (uint8_t)(bits(v, 27, 2) | bits(w, 14, 1) << 2);
    in->clamp = bits(w, 15, 1);
    in->neg = (uint8_t)bits(v, 29, 3);
    in->abs = (uint8_t)bits(w, 8, 3);
    if (p.s[0] == 255 || p.s[1] == 255 || (p.s[2] == 255 && in->operands > 3)) r->wrong = true;
    if ((in->row->flags & ROW_NO_HALVES) != 0 && in->op_sel != 0) r->wrong = true;
    vector_operands(r, &p);
    if (reads) accumulator_source(r);
    /* what a constant is worth as a half is not known: as fp32 it is */
    for (int i = 1; i < in->operands && (in->row->flags & ROW_MIXED) != 0; i++)
        if (in->operand[i].kind == OPERAND_CONSTANT && (in->op_sel_hi >> (i - 1) & 1) != 0) r->wrong = true;
}

/* ---- matrix instructions ---- */

static uint8_t width_of(uint32_t format) { return format <= 1 ? 8 : format <= 3 ? 6 : 4; }

static void matrix(struct reader *r, uint32_t w, uint32_t v)
{
    struct insn *in = r->in;
    read_operands(in);
    in->cbsz = (uint8_t)bits(w, 8, 3);
    in->abid = (uint8_t)bits(w, 11, 4);
    in->blgp = (uint8_t)bits(v, 29, 3);
    const bool any_format = (in->row->detail & 1) != 0;                   /* f8f6f4: widths by cbsz and blgp */
    if (any_format) {
        if (in->cbsz > 4 || in->blgp > 4) r->wrong = true;
        in->operand[1].dwords = width_of(in->cbsz);
        in->operand[2].dwords = width_of(in->blgp);
        if (!in->scaled && in->abid != 0) r->wrong = true;
        if (in->scaled && in->abid != 1) r->wrong = true;
    } else if (in->scaled) r->wrong = true;
    vector(r, &in->operand[0], bits(w, 0, 8), bits(w, 15, 1));
    for (int i = 1; i <= 2; i++) {
        const uint32_t code = bits(v, i == 1 ? 0 : 9, 9);
        if (code < 256) r->wrong = true;
        else vector(r, &in->operand[i], code - 256, bits(v, 26 + i, 1));
    }
    const uint32_t third = bits(v, 18, 9);
    if (third >= 256) vector(r, &in->operand[3], third - 256, bits(w, 15, 1));
    else source(r, &in->operand[3], third);
    if (third < 256 && in->operand[3].kind != OPERAND_CONSTANT) r->wrong = true;
}

static void scale_prefix(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0], v = literal(r), w2 = literal(r), v2 = literal(r);
    if (bits(w2, 23, 9) != 0x1a7 || !find(in, FORMAT_MFMA, bits(w2, 16, 7))) {
        r->wrong = true;
        return;
    }
    in->encoding = FORMAT_MFMA;
    in->scaled = true;
    matrix(r, w2, v2);
    in->op_sel = (uint8_t)bits(w, 11, 3);
    in->op_sel_hi = (uint8_t)(bits(v, 27, 2) | bits(w, 14, 1) << 2);
    for (int i = 0; i < 2; i++) {
        struct operand *o = &in->operand[in->operands++];
        *o = (struct operand){ .role = 's', .type = 'u', .dwords = 1 };
        const uint32_t code = bits(v, 9 * i, 9);
        /* an inline constant is wrong on hardware (LLVM PR 158117); SGPRs have no place */
        if (code < 256) r->wrong = true;
        else vector(r, o, code - 256, false);
    }
}

/* ---- scalar ---- */

static void scalar_alu(struct reader *r, enum format format, uint32_t opcode)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0];
    if (!find(in, format, opcode)) return;
    in->encoding = (uint8_t)format;
    read_operands(in);
    in->simm = (int16_t)bits(w, 0, 16);
    if (format == FORMAT_SOPP && opcode == 28 && in->simm != 0) r->wrong = true;
    int next = 0;
    for (int i = 0; i < in->operands; i++) {
        struct operand *o = &in->operand[i];
        if (o->role == 'k') o->kind = OPERAND_LITERAL, o->value = constant(r);
        else if (o->role == 'd' || o->role == 'x') {
            const uint32_t code = bits(w, 16, 7);
            scalar(r, o, code);
        } else source(r, o, bits(w, next++ == 0 ? 0 : 8, 8));
        if ((in->row->flags & ROW_VECTOR_SOURCES) != 0 && o->kind != OPERAND_SGPR) r->wrong = true;
    }
    if (format == FORMAT_SOPC && opcode == 17) {
        in->simm = (int32_t)bits(w, 8, 8);
        if (in->simm > 15) r->wrong = true;
    }
}

static void scalar_memory(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0], v = literal(r);
    if (!find(in, FORMAT_SMEM, bits(w, 18, 8))) return;
    in->encoding = FORMAT_SMEM;
    read_operands(in);
    in->sc0 = bits(w, 16, 1);
    const bool soffset_en = bits(w, 14, 1), imm = bits(w, 17, 1);
    for (int i = 0; i < in->operands; i++) {
        struct operand *o = &in->operand[i];
        if (o->role == 'd') {
            scalar(r, o, bits(w, 6, 7));
            if ((o->dwords >= 4 && o->code % 4 != 0) || o->code >= 124) r->wrong = true;
        }
        else if (i == 1) scalar(r, o, bits(w, 0, 6) * 2);
        else if (soffset_en) scalar(r, o, bits(v, 25, 7));
        else if (!imm) scalar(r, o, bits(v, 0, 7));
        else o->kind = OPERAND_NONE;
    }
    if (imm) in->offset = (int32_t)(v << 11) >> 11;
    if (in->operands > 2 && !imm && soffset_en) in->offset = 0;
}

/* ---- vector memory ---- */

static void lds_access(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0], v = literal(r);
    if (!find(in, FORMAT_DS, bits(w, 17, 8))) return;
    in->encoding = FORMAT_DS;
    read_operands(in);
    const bool accumulator = bits(w, 25, 1);
    in->gds = bits(w, 16, 1);
    if (in->gds) r->wrong = true;
    if ((in->row->flags & ROW_TWO_OFFSETS) != 0)
        in->offset = (int32_t)bits(w, 0, 8), in->offset1 = (int32_t)bits(w, 8, 8);
    else in->offset = (int32_t)bits(w, 0, 16);
    int next = 0;
    for (int i = 0; i < in->operands; i++) {
        struct operand *o = &in->operand[i];
        if (o->role == 'd') vector(r, o, bits(v, 24, 8), accumulator);
        else if (o->role == 'a') vector(r, o, bits(v, 0, 8), false);
        else vector(r, o, bits(v, next++ == 0 ? 8 : 16, 8), accumulator);
    }
}

/* Of an atomic without sc0 nothing comes back. */
static void drop_result(struct insn *in)
{
    if ((in->row->flags & ROW_RETURNS) == 0 || in->sc0) return;
    for (int i = 0; i + 1 < in->operands; i++) in->operand[i] = in->operand[i + 1];
    in->operands--;
}

static void global_access(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0], v = literal(r);
    static const enum format segments[4] = { FORMAT_FLAT, FORMAT_SCRATCH, FORMAT_GLOBAL, FORMAT_COUNT };
    const enum format format = segments[bits(w, 14, 2)];
    if (format == FORMAT_COUNT || !find(in, format, bits(w, 18, 7))) return;
    in->encoding = (uint8_t)format;
    read_operands(in);
    in->offset = (int32_t)(bits(w, 0, 13) << 19) >> 19;
    in->sc0 = bits(w, 16, 1);
    in->nt = bits(w, 17, 1);
    in->sc1 = bits(w, 25, 1);
    in->lds = (in->row->flags & ROW_TO_LDS) != 0;
    const bool accumulator = bits(v, 23, 1), off = bits(v, 16, 7) == 0x7f, flat = format == FORMAT_FLAT,
               scratch = format == FORMAT_SCRATCH, has_vector = !scratch || bits(w, 13, 1) != 0;
    if (!scratch && bits(w, 13, 1) != 0) r->wrong = true;
    if (flat && (bits(w, 12, 1) != 0 || bits(v, 16, 7) != 0)) r->wrong = true;
    for (int i = 0; i < in->operands; i++) {
        struct operand *o = &in->operand[i];
        if (o->role == 'd') vector(r, o, bits(v, 24, 8), accumulator);
        else if (o->role == 'a') {
            if (!scratch) o->dwords = off || flat ? 2 : 1;
            if (has_vector) vector(r, o, bits(v, 0, 8), false);
            else if (bits(v, 0, 8) != 0) r->wrong = true;
        } else if (o->role == 'b') {
            if (off) o->kind = OPERAND_NONE;
            else scalar(r, o, bits(v, 16, 7));
        } else vector(r, o, bits(v, 8, 8), accumulator);
    }
    /* floating-point atomics have no form that returns into an AGPR (LLVM) */
    if (in->row->opcode >= 77 && in->row->opcode <= 81 && accumulator && in->sc0) r->wrong = true;
    drop_result(in);
}

static void buffer_access(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0], v = literal(r);
    if (!find(in, FORMAT_BUFFER, bits(w, 18, 7))) return;
    in->encoding = FORMAT_BUFFER;
    read_operands(in);
    in->offset = (int32_t)bits(w, 0, 12);
    in->offen = bits(w, 12, 1);
    in->idxen = bits(w, 13, 1);
    in->sc0 = bits(w, 14, 1);
    in->sc1 = bits(w, 15, 1);
    in->lds = bits(w, 16, 1);
    in->nt = bits(w, 17, 1);
    const bool accumulator = bits(v, 23, 1);
    if (in->lds && (in->row->flags & ROW_TO_LDS) == 0) r->wrong = true;
    if (in->operands == 0 && (bits(w, 0, 14) != 0 || in->nt || v != 0)) r->wrong = true;
    for (int i = 0; i < in->operands; i++) {
        struct operand *o = &in->operand[i];
        if (o->role == 'd') {
            if (in->lds) o->kind = OPERAND_NONE;
            else vector(r, o, bits(v, 8, 8), accumulator);
        } else if (o->role == 'a') {
            o->dwords = in->offen && in->idxen ? 2 : 1;
            if (!in->offen && !in->idxen) o->kind = OPERAND_NONE;
            else vector(r, o, bits(v, 0, 8), false);
        } else if (o->role == 'b') {
            if (bits(v, 16, 5) * 4 + 4 > 104) r->wrong = true;
            else scalar(r, o, bits(v, 16, 5) * 4);
        } else if (o->role == 's') vector(r, o, bits(v, 8, 8), accumulator);
        else {
            source(r, o, bits(v, 24, 8));
            if (o->kind == OPERAND_LITERAL) r->wrong = true;
        }
    }
}

static void dispatch(struct reader *r)
{
    struct insn *in = r->in;
    const uint32_t w = r->word[0];
    const uint32_t top = w >> 23;
    if (top == 0x17f) scalar_alu(r, FORMAT_SOPP, bits(w, 16, 7));
    else if (top == 0x17e) scalar_alu(r, FORMAT_SOPC, bits(w, 16, 7));
    else if (top == 0x17d) scalar_alu(r, FORMAT_SOP1, bits(w, 8, 8));
    else if (w >> 28 == 0xb) scalar_alu(r, FORMAT_SOPK, bits(w, 23, 5));
    else if (w >> 30 == 2) scalar_alu(r, FORMAT_SOP2, bits(w, 23, 7));
    else if (w >> 26 == 0x30) scalar_memory(r);
    else if (w >> 25 == 0x3f) short_vector(r, FORMAT_VOP1, bits(w, 9, 8));
    else if (w >> 25 == 0x3e) short_vector(r, FORMAT_VOPC, bits(w, 17, 8));
    else if (w >> 31 == 0) short_vector(r, FORMAT_VOP2, bits(w, 25, 6));
    else if (top == 0x1a7 && bits(w, 16, 7) == 0x2c) scale_prefix(r);
    else if (top == 0x1a7 && find(in, FORMAT_MFMA, bits(w, 16, 7))) {
        in->encoding = FORMAT_MFMA;
        matrix(r, w, literal(r));
    } else if (top == 0x1a7) packed_vector(r);
    else if (w >> 26 == 0x34) long_vector(r);
    else if (w >> 26 == 0x36) lds_access(r);
    else if (w >> 26 == 0x37) global_access(r);
    else if (w >> 26 == 0x38) buffer_access(r);
}

bool decode(struct insn *in, const uint8_t *code, uint32_t bytes, uint32_t pc)
{
    pthread_once(&filled, fill_table);
    *in = (struct insn){ .pc = pc };
    struct reader r = { .in = in };
    for (; r.words < 4 && pc + 4 * r.words + 4 <= bytes; r.words++)
        memcpy(&r.word[r.words], code + pc + 4 * r.words, 4);
    if (r.words == 0) return false;
    r.used = 1;
    dispatch(&r);
    in->bytes = 4 * r.used;
    if (r.wrong) in->row = NULL;
    if (in->row == NULL) return false;
    in->run = in->row->run;
    return true;
}
