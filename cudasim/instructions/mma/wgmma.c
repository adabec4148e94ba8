/* Asynchronous warpgroup matrix products (PTX ISA 9.7.15): wgmma.mma_async, its sparse form, fence, commit_group and
 * wait_group. */
#include "instructions/table/families.h"
#include "instructions/table/lanes.h"
#include "machine/mma/wgmma.h"
#include "machine/core/wait.h"

/* ---- handlers ---- */

/* wgmma.mma_async d, a, b, scale-d, ...  d = a * b + d, or a * b where scale-d is false; later: registers and memory
 * are read then */
static trap op_mma_async(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t;
    struct wgmma_entry *e = wgmma_take_place(w, in, lanes, &t);
    return e == NULL ? t : wgmma_issue(w, in, in->data, e);
}

/* wgmma.fence   orders the warpgroup's accesses to registers before those of the products that follow */
static trap op_fence(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t;
    if (wgmma_take_place(w, in, lanes, &t) != NULL) w->wgmma_fences++;
    return t;
}

/* wgmma.commit_group   the products that are in no group become a new one */
static trap op_commit_group(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t;
    if (wgmma_take_place(w, in, lanes, &t) != NULL) wgmma_commit(w);
    return t;
}

/* wgmma.wait_group n   until all groups but the latest n are complete */
static trap op_wait_group(struct warp *w, const struct insn *in, uint32_t lanes)
{
    trap t = TRAP_NONE;
    if (w->group->stage == 0 && wgmma_take_place(w, in, lanes, &t) == NULL) return t;
    w->group->stage = 1;
    if (wgmma_wait(w, in->detail)) return TRAP_NONE;
    uint32_t missing = 0;
    const uint32_t line = wgmma_missing(w, &missing);
    return warp_wait(w, WAIT_MMA, line, missing);
}

static const char *prepare_wait(struct module *module, struct insn *in)
{
    (void)module;
    if (in->operand[0].value < 0) return "the number of groups that may be pending is not negative";
    in->detail = (uint64_t)in->operand[0].value;
    return NULL;
}

/* ---- what a form says ---- */

static bool repeats(const struct operand *v)
{
    for (uint32_t i = 0; i < v->count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (v->element[i].slot == v->element[j].slot) return true;
    return false;
}

static bool share(const struct operand *v, const struct operand *u)
{
    for (uint32_t i = 0; i < v->count; i++)
        for (uint32_t j = 0; j < u->count; j++)
            if (u->element[j].kind == OPERAND_REGISTER && v->element[i].slot == u->element[j].slot) return true;
    return false;
}

/* N: multiples of 8 up to 256; integers and bits: above 32 of 16. */
static bool n_is_legal(uint32_t n, enum wgmma_kind kind)
{
    return n >= 8 && n <= 256 && n % 8 == 0 && (kind == WGMMA_FLOAT || n <= 32 || n % 16 == 0);
}

/* An operand that is 1 or -1 (imm-scale), 0 or 1 (imm-trans); it may be there or not. */
static const char *immediate(const struct operand *o, int64_t low, bool *set, const char *refusal)
{
    if (o->kind == OPERAND_NONE) return NULL;
    *set = o->value == low ? low < 0 : low == 0;
    return o->value == 1 || o->value == low ? NULL : refusal;
}

static const char *fill_operands(struct insn *in, struct wgmma_form *f)
{
    const struct operand *o = in->operand;
    f->d = o++;
    f->a = o++;
    f->b = o++;
    f->a_in_registers = f->a->kind == OPERAND_VECTOR;
    if (f->sparse) {
        f->metadata = o++;
        f->selector = (uint32_t)o->value;
        if (o->value < 0 || o->value > (f->bits == 8 ? 0 : 1))
            return f->bits == 8 ? "the sparsity selector of 8-bit types is 0" : "the sparsity selector is 0 or 1";
        o++;
    }
    f->scale_d = o++;
    const struct operand *end = in->operand + in->operands;
    const char *wrong = NULL;
    if (o < end) wrong = immediate(o++, -1, &f->a_negated, "imm-scale-a is 1 or -1");
    if (wrong == NULL && o < end) wrong = immediate(o++, -1, &f->b_negated, "imm-scale-b is 1 or -1");
    if (wrong == NULL && o < end && !f->a_in_registers)
        wrong = immediate(o++, 0, &f->a_mn_major, "imm-trans-a is 0 or 1");
    if (wrong == NULL && o < end) wrong = immediate(o++, 0, &f->b_mn_major, "imm-trans-b is 0 or 1");
    return wrong;
}

static const char *check(const struct wgmma_form *f)
{
    if (!n_is_legal(f->n, f->kind))
        return f->kind == WGMMA_FLOAT ? "N is a multiple of 8 from 8 to 256"
                                      : "N is 8, 16, 24, 32 or a multiple of 16 up to 256";
    if (f->d->count != f->n / (f->f16_output ? 4 : 2))
        return f->f16_output ? "D has N/4 registers" : "D has N/2 registers";
    if (repeats(f->d)) return "a register stands twice among the accumulators: no source says which value it keeps";
    if (f->a_in_registers && share(f->d, f->a)) return "A and D share a register: no source says what becomes of it";
    return NULL;
}

static enum tensor_format format_of(enum ptx_type type)
{
    switch (type) {
    case T_F16: return TENSOR_F16;
    case T_BF16: return TENSOR_BF16;
    case T_TF32: return TENSOR_TF32;
    case T_E4M3: return TENSOR_E4M3;
    default: return TENSOR_E5M2;
    }
}

static const char *prepare_form(struct module *module, struct insn *in, enum wgmma_kind kind, enum ptx_type a,
                                enum ptx_type b, bool f16_output)
{
    struct wgmma_form *f = arena_allocate(&module->arena, sizeof *f);
    if (f == NULL) return "no memory";
    const uint32_t bits = kind == WGMMA_BIT ? 32 : type_bits(a);
    *f = (struct wgmma_form){
        .kind = kind, .n = in->number[0], .bits = bits, .f16_output = f16_output, .sparse = insn_has(in, ".sp")
    };
    if (kind == WGMMA_FLOAT) f->a_format = format_of(a), f->b_format = format_of(b);
    f->a_signed = a == T_S8;
    f->b_signed = b == T_S8;
    f->saturate = (in->flags & FLAG_SATFINITE) != 0;
    f->a_k = 256 / bits; /* 32 bytes of a row */
    f->k = f->sparse ? 2 * f->a_k : f->a_k;
    in->data = f;
    const char *wrong = fill_operands(in, f);
    return wrong != NULL ? wrong : check(f);
}

static const char *prepare_f16(struct module *m, struct insn *in)
{
    return prepare_form(m, in, WGMMA_FLOAT, T_F16, T_F16, true);
}
static const char *prepare_f32(struct module *m, struct insn *in)
{
    return prepare_form(m, in, WGMMA_FLOAT, (enum ptx_type)in->type[0], (enum ptx_type)in->type[0], false);
}
static const char *prepare_fp8(struct module *m, struct insn *in)
{
    return prepare_form(m, in, WGMMA_FLOAT, (enum ptx_type)in->type[0], (enum ptx_type)in->type[1],
                        insn_has(in, ".f16"));
}
static const char *prepare_integer(struct module *m, struct insn *in)
{
    if (in->type[0] != in->type[1] && m->version < 84) return "one signed and one unsigned operand need PTX 8.4";
    return prepare_form(m, in, WGMMA_INTEGER, (enum ptx_type)in->type[0], (enum ptx_type)in->type[1], false);
}
static const char *prepare_bit(struct module *m, struct insn *in)
{
    return prepare_form(m, in, WGMMA_BIT, T_B32, T_B32, false);
}

/* Two rows a type: A in shared memory, by a descriptor, and in four registers.  The transposes exist for 16-bit types
 * in shared memory. */
#define MMA "wgmma.mma_async.sync.aligned.m64n#"
#define MMA_SP "wgmma.mma_async.sp.sync.aligned.m64n#"
#define ROW(pattern, types, operands, since, prepare, section) \
    { \
        pattern, types, operands, since, "sm_90a", DEMANDS_WHOLE_WARP | DEMANDS_WARPGROUP, op_mma_async, prepare, \
            section \
    }
#define FORM(pattern, types, d, a, rest, since, prepare, section) \
    ROW(pattern, types, "d:" d "{} s:b64 s:b64 " rest, since, prepare, section), \
    ROW(pattern, types, "d:" d "{} s:" a "{4} s:b64 " rest, since, prepare, section)
#define FORM_TRANSPOSED(pattern, types, d, rest, since, prepare, section) \
    ROW(pattern, types, "d:" d "{} s:b64 s:b64 " rest " i:s32 i:s32 i:s32 i:s32", since, prepare, section), \
    ROW(pattern, types, "d:" d "{} s:f16x2{4} s:b64 " rest " i:s32 i:s32 i:s32", since, prepare, section)
#define GROUP(pattern, operands, run, prepare, section) \
    { pattern, NULL, operands, 80, "sm_90a", DEMANDS_WHOLE_WARP | DEMANDS_WARPGROUP, run, prepare, section }
#define DENSE "9.7.15.5.2 wgmma.mma_async"
#define SPARSE "9.7.15.6.3 wgmma.mma_async.sp"
#define META "r:b32 i:u32 "
#define FP8 "e4m3 e5m2; e4m3 e5m2"
#define INT8 "s8 u8; s8 u8"
static const struct row rows[] = {
    FORM_TRANSPOSED(MMA "k16.f32.$1.f16", "f16", "f32", "p", 80, prepare_f32, DENSE),
    FORM_TRANSPOSED(MMA "k16.f16.f16.f16", NULL, "f16x2", "p", 80, prepare_f16, DENSE),
    FORM_TRANSPOSED(MMA "k16.f32.$1.bf16", "bf16", "f32", "p", 80, prepare_f32, DENSE),
    FORM(MMA "k8.f32.$1.tf32", "tf32", "f32", "f16x2", "p i:s32 i:s32", 80, prepare_f32, DENSE),
    FORM(MMA "k32.f32.$1.$2", FP8, "f32", "f16x2", "p i:s32 i:s32", 80, prepare_fp8, DENSE),
    FORM(MMA "k32.f16.$1.$2", FP8, "f16x2", "f16x2", "p i:s32 i:s32", 80, prepare_fp8, DENSE),
    FORM(MMA "k32{.satfinite}.s32.$1.$2", INT8, "s32", "b32", "p", 80, prepare_integer, DENSE),
    FORM(MMA "k256.s32.b1.b1.and.popc", NULL, "s32", "b32", "p", 80, prepare_bit, DENSE),
    FORM_TRANSPOSED(MMA_SP "k32.f32.$1.f16", "f16", "f32", META "p", 82, prepare_f32, SPARSE),
    FORM_TRANSPOSED(MMA_SP "k32.f16.f16.f16", NULL, "f16x2", META "p", 82, prepare_f16, SPARSE),
    FORM_TRANSPOSED(MMA_SP "k32.f32.$1.bf16", "bf16", "f32", META "p", 82, prepare_f32, SPARSE),
    FORM(MMA_SP "k16.f32.$1.tf32", "tf32", "f32", "f16x2", META "p i:s32 i:s32", 82, prepare_f32, SPARSE),
    FORM(MMA_SP "k64.f32.$1.$2", FP8, "f32", "f16x2", META "p i:s32 i:s32", 82, prepare_fp8, SPARSE),
    FORM(MMA_SP "k64.f16.$1.$2", FP8, "f16x2", "f16x2", META "p i:s32 i:s32", 82, prepare_fp8, SPARSE),
    FORM(MMA_SP "k64{.satfinite}.s32.$1.$2", INT8, "s32", "b32", META "p", 82, prepare_integer, SPARSE),
    GROUP("wgmma.fence.sync.aligned", "", op_fence, NULL, "9.7.15.7.1 wgmma.fence"),
    GROUP("wgmma.commit_group.sync.aligned", "", op_commit_group, NULL, "9.7.15.7.2 wgmma.commit_group"),
    GROUP("wgmma.wait_group.sync.aligned", "i:u32", op_wait_group, prepare_wait, "9.7.15.7.3 wgmma.wait_group"),
};

const struct family family_wgmma = FAMILY("warpgroup matrix products", rows);
