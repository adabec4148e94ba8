/* Matrix instructions: operands out of registers, the product, the result into registers.
 *
 * A lane l of 64 has row (of A) or column (of B) l % dim and the part q = l / dim of K.  Its elements are contiguous
 * along K; those of 8 bits in the f8f6f4 instructions come in two runs of 16, half of K apart.  The scale of block b of
 * a row comes from lane row + dim * b. */
#include "families.h"
#include "machine/registers.h"
#include "machine/report.h"
#include "matrix/product.h"

#include <string.h>

/* detail: bit 0 formats by cbsz and blgp, 4..7 and 8..11 elements of A and B, 12..19 dim, 20..27 K / 4, 28..31
 * log2 of passes (of f8f6f4: without 8-bit operands). */
#define SHAPE(any, a, b, dim, k, passes) \
    ((uint32_t)(any) | (uint32_t)(a) << 4 | (uint32_t)(b) << 8 | (uint32_t)(dim) << 12 | (uint32_t)(k) / 4 << 20 \
     | (uint32_t)(passes) << 28)

static uint32_t code_at(const struct wave *w, uint32_t row, uint32_t lane, uint32_t index, uint32_t bits)
{
    const uint32_t bit = index * bits, dword = bit / 32, shift = bit % 32;
    uint64_t two = w->vgpr[row + dword][lane];
    if (shift + bits > 32) two |= (uint64_t)w->vgpr[row + dword + 1][lane] << 32;
    return (uint32_t)(two >> shift) & ((1u << bits) - 1);
}

static void read_matrix(const struct wave *w, uint32_t row, bool any, int dim, int k, struct operand_matrix *m)
{
    const uint32_t bits = element_bits(m->element);
    const int own = k * dim / LANES;                                      /* elements of a lane */
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const int q = (int)lane / dim;
        for (int i = 0; i < own; i++) {
            const int at = any && bits == 8 ? (i < 16 ? 16 * q + i : k / 2 + 16 * q + i - 16) : own * q + i;
            m->code[lane % (uint32_t)dim][at] = (uint16_t)code_at(w, row, lane, (uint32_t)i, bits);
        }
    }
}

static void read_scales(const struct wave *w, const struct operand *o, uint32_t byte, int dim, struct operand_matrix *m)
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        m->scale[lane % (uint32_t)dim][lane / (uint32_t)dim] = (uint8_t)(w->vgpr[operand_row(o)][lane] >> 8 * byte);
}

static int row_of(int dim, uint32_t lane, int r)
{
    const int q = (int)lane / dim;
    return dim == 16 ? 4 * q + r : 8 * (r / 4) + 4 * q + r % 4;
}

static bool ready(struct wave *w, const struct insn *in)
{
    const uint64_t exec = wave_exec(w);
    if (exec != UINT64_MAX) {
        wave_fault(w, in, NO_LANE, REPORT_DIVERGENCE,
                   "multiplies while EXEC is 0x%llx: it ignores EXEC, and all lanes' "
                   "registers are operands",
                   (unsigned long long)exec);
        return false;
    }
    static const char *const names[] = { "", "A of a product", "B of a product", "C of a product" };
    for (int i = 1; i < 4; i++) {
        const struct operand *o = &in->operand[i];
        if (o->kind != OPERAND_VGPR && o->kind != OPERAND_AGPR) continue;
        if (!vgpr_readable(w, in, o, i == 3 ? READER_MATRIX_C : READER_MATRIX_AB)
            || !vgpr_defined(w, in, o, UINT64_MAX, 4u * o->dwords, names[i]))
            return false;
    }
    return vgpr_writable(w, in, &in->operand[0]);
}

static bool scales_ready(struct wave *w, const struct insn *in, const uint32_t byte[2])
{
    for (int i = 0; i < 2; i++) {
        const struct operand *o = &in->operand[4 + i];
        if (!vgpr_readable(w, in, o, READER_MATRIX_AB)) return false;
        const uint64_t missing = ~w->defined[operand_row(o)][byte[i]];
        if (missing == 0 || !wave_options(w)->check_uninitialised) continue;
        wave_fault(w, in, (uint32_t)__builtin_ctzll(missing), REPORT_UNINITIALISED,
                   "uses byte %u of v%u as a scale, and nothing has written it", byte[i], o->index);
        return false;
    }
    return true;
}

static uint32_t passes_of(const struct insn *in)
{
    const uint32_t detail = in->row->detail, base = 1u << (detail >> 28);
    return (detail & 1) != 0 && (in->cbsz < 2 || in->blgp < 2) ? 2 * base : base;
}

static trap v_mfma(struct wave *w, const struct insn *in)
{
    const uint32_t detail = in->row->detail;
    const bool any = detail & 1;
    struct product p;
    p.dim = (int)(detail >> 12 & 255), p.k = (int)(detail >> 20 & 255) * 4, p.scaled = any;
    p.a.element = any ? (enum element)in->cbsz : (enum element)(detail >> 4 & 15);
    p.b.element = any ? (enum element)in->blgp : (enum element)(detail >> 8 & 15);
    const uint32_t byte[2] = { (in->op_sel & 1u) | (in->op_sel_hi & 1u) << 1,
                               (in->op_sel >> 1 & 1u) | (in->op_sel_hi >> 1 & 1u) << 1 };
    if (!ready(w, in) || (in->scaled && !scales_ready(w, in, byte))) return TRAP_FAULT;
    read_matrix(w, operand_row(&in->operand[1]), any, p.dim, p.k, &p.a);
    read_matrix(w, operand_row(&in->operand[2]), any, p.dim, p.k, &p.b);
    memset(p.a.scale, 127, sizeof p.a.scale);
    memset(p.b.scale, 127, sizeof p.b.scale);
    if (in->scaled) {
        read_scales(w, &in->operand[4], byte[0], p.dim, &p.a);
        read_scales(w, &in->operand[5], byte[1], p.dim, &p.b);
    }
    const struct operand *c = &in->operand[3];
    const int results = p.dim * p.dim / LANES;
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (int r = 0; r < results; r++) {
            const uint32_t bits = c->kind == OPERAND_VGPR || c->kind == OPERAND_AGPR
                                      ? w->vgpr[operand_row(c) + (uint32_t)r][lane] : (uint32_t)c->value;
            memcpy(&p.c[row_of(p.dim, lane, r)][lane % (uint32_t)p.dim], &bits, 4);
        }
    product_run(&p, wave_options(w)->rounding);
    const uint32_t to = operand_row(&in->operand[0]);
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (int r = 0; r < results; r++)
            memcpy(&w->vgpr[to + (uint32_t)r][lane], &p.d[row_of(p.dim, lane, r)][lane % (uint32_t)p.dim], 4);
    for (int r = 0; r < results; r++) memset(w->defined[to + (uint32_t)r], 0xff, sizeof w->defined[0]);
    written(w, to, (uint32_t)results, WRITER_MATRIX, (uint8_t)passes_of(in));
    return TRAP_NONE;
}

/* Whole numbers of 8 bits: sums of 32 bits that wrap around. */
static trap v_mfma_i32(struct wave *w, const struct insn *in)
{
    const uint32_t detail = in->row->detail, dim = detail >> 12 & 255, k = (detail >> 20 & 255) * 4;
    struct operand_matrix a = { .element = ELEMENT_I8 }, b = { .element = ELEMENT_I8 };
    if (!ready(w, in)) return TRAP_FAULT;
    read_matrix(w, operand_row(&in->operand[1]), false, (int)dim, (int)k, &a);
    read_matrix(w, operand_row(&in->operand[2]), false, (int)dim, (int)k, &b);
    const struct operand *c = &in->operand[3];
    const uint32_t to = operand_row(&in->operand[0]), results = dim * dim / LANES;
    uint32_t sum[16][LANES];
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t r = 0; r < results; r++) {
            const int m = row_of((int)dim, lane, (int)r);
            uint32_t s = c->kind == OPERAND_CONSTANT ? (uint32_t)c->value : w->vgpr[operand_row(c) + r][lane];
            for (uint32_t i = 0; i < k; i++)
                s += (uint32_t)((int32_t)(int8_t)a.code[m][i] * (int8_t)b.code[lane % dim][i]);
            sum[r][lane] = s;
        }
    memcpy(w->vgpr[to], sum, results * sizeof sum[0]);
    for (uint32_t r = 0; r < results; r++) memset(w->defined[to + r], 0xff, sizeof w->defined[0]);
    written(w, to, results, WRITER_MATRIX, (uint8_t)passes_of(in));
    return TRAP_NONE;
}

#define BF ELEMENT_BF16
#define HF ELEMENT_F16
#define F8 ELEMENT_E4M3
#define B8 ELEMENT_E5M2
static const struct row rows[] = {
    { "v_mfma_f32_16x16x128_f8f6f4", 45, "d4 s8 s8 s4f", 0, SHAPE(1, 0, 0, 16, 128, 2), v_mfma, NULL },
    { "v_mfma_f32_32x32x64_f8f6f4", 46, "d16 s8 s8 s16f", 0, SHAPE(1, 0, 0, 32, 64, 3), v_mfma, NULL },
    { "v_mfma_f32_16x16x32_bf16", 53, "d4 s4 s4 s4f", 0, SHAPE(0, BF, BF, 16, 32, 2), v_mfma, NULL },
    { "v_mfma_i32_16x16x64_i8", 54, "d4 s4 s4 s4", 0, SHAPE(0, ELEMENT_I8, ELEMENT_I8, 16, 64, 2), v_mfma_i32, NULL },
    { "v_mfma_f32_32x32x16_bf16", 55, "d16 s4 s4 s16f", 0, SHAPE(0, BF, BF, 32, 16, 3), v_mfma, NULL },
    { "v_mfma_i32_32x32x32_i8", 56, "d16 s4 s4 s16", 0, SHAPE(0, ELEMENT_I8, ELEMENT_I8, 32, 32, 3), v_mfma_i32, NULL },
    { "v_mfma_i32_16x16x32_i8", 87, "d4 s2 s2 s4", 0, SHAPE(0, ELEMENT_I8, ELEMENT_I8, 16, 32, 2), v_mfma_i32, NULL },
    { "v_mfma_i32_32x32x16_i8", 86, "d16 s2 s2 s16", 0, SHAPE(0, ELEMENT_I8, ELEMENT_I8, 32, 16, 3), v_mfma_i32, NULL },
    { "v_mfma_f32_16x16x32_f16", 84, "d4 s4 s4 s4f", 0, SHAPE(0, HF, HF, 16, 32, 2), v_mfma, NULL },
    { "v_mfma_f32_32x32x16_f16", 85, "d16 s4 s4 s16f", 0, SHAPE(0, HF, HF, 32, 16, 3), v_mfma, NULL },
    { "v_mfma_f32_16x16x16_bf16", 97, "d4 s2 s2 s4f", 0, SHAPE(0, BF, BF, 16, 16, 2), v_mfma, NULL },
    { "v_mfma_f32_32x32x8_bf16", 96, "d16 s2 s2 s16f", 0, SHAPE(0, BF, BF, 32, 8, 3), v_mfma, NULL },
    { "v_mfma_f32_16x16x16_f16", 77, "d4 s2 s2 s4f", 0, SHAPE(0, HF, HF, 16, 16, 2), v_mfma, NULL },
    { "v_mfma_f32_32x32x8_f16", 76, "d16 s2 s2 s16f", 0, SHAPE(0, HF, HF, 32, 8, 3), v_mfma, NULL },
    { "v_mfma_f32_16x16x32_bf8_bf8", 112, "d4 s2 s2 s4f", 0, SHAPE(0, B8, B8, 16, 32, 2), v_mfma, NULL },
    { "v_mfma_f32_16x16x32_bf8_fp8", 113, "d4 s2 s2 s4f", 0, SHAPE(0, B8, F8, 16, 32, 2), v_mfma, NULL },
    { "v_mfma_f32_16x16x32_fp8_bf8", 114, "d4 s2 s2 s4f", 0, SHAPE(0, F8, B8, 16, 32, 2), v_mfma, NULL },
    { "v_mfma_f32_16x16x32_fp8_fp8", 115, "d4 s2 s2 s4f", 0, SHAPE(0, F8, F8, 16, 32, 2), v_mfma, NULL },
    { "v_mfma_f32_32x32x16_bf8_bf8", 116, "d16 s2 s2 s16f", 0, SHAPE(0, B8, B8, 32, 16, 3), v_mfma, NULL },
    { "v_mfma_f32_32x32x16_bf8_fp8", 117, "d16 s2 s2 s16f", 0, SHAPE(0, B8, F8, 32, 16, 3), v_mfma, NULL },
    { "v_mfma_f32_32x32x16_fp8_bf8", 118, "d16 s2 s2 s16f", 0, SHAPE(0, F8, B8, 32, 16, 3), v_mfma, NULL },
    { "v_mfma_f32_32x32x16_fp8_fp8", 119, "d16 s2 s2 s16f", 0, SHAPE(0, F8, F8, 32, 16, 3), v_mfma, NULL },
};
const struct family family_matrix = FAMILY("Matrix Arithmetic Instructions", FORMAT_MFMA, rows);
