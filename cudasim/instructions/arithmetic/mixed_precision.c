/* add, sub, fma of f32 with f16 and bf16 operands, rounded once (PTX ISA 9.7.5). */
#include "instructions/table/families.h"
#include "real.h"

static uint64_t finish(const struct insn *in, const struct real *x)
{
    const enum rounding rounding = in->rounding == ROUND_NONE ? ROUND_RN : (enum rounding)in->rounding;
    const bool sat = (in->flags & FLAG_SAT) != 0;
    if (x->kind == REAL_NAN) return sat ? 0 : real_f32.nan;
    if (sat && x->negative) return 0;
    const uint64_t bits = real_pack(&real_f32, x, rounding, false), one = 0x3f800000;
    return sat && bits > one ? one : bits;
}

static struct real widen(const struct insn *in, uint64_t bits)
{
    return real_unpack(real_format_of((enum ptx_type)in->type[0]), bits & 0xffff, false);
}

/* add.f32.f16 d, a, c   d = a + c; sub: a - c */
static trap add(struct warp *w, const struct insn *in, uint32_t lanes, bool subtract)
{
    const enum rounding rounding = in->rounding == ROUND_NONE ? ROUND_RN : (enum rounding)in->rounding;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *c = source(w, in, 2);
    FOR_LANES(l, lanes) {
        struct real x = widen(in, a[l]), z = real_unpack(&real_f32, c[l], false);
        if (subtract) z.negative = !z.negative;
        const struct real sum = real_add(&x, &z, rounding);
        d[l] = finish(in, &sum);
    }
    return TRAP_NONE;
}
static trap op_add(struct warp *w, const struct insn *in, uint32_t lanes) { return add(w, in, lanes, false); }
static trap op_sub(struct warp *w, const struct insn *in, uint32_t lanes) { return add(w, in, lanes, true); }

/* fma.rn.f32.f16 d, a, b, c   d = a b + c */
static trap op_fma(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = source(w, in, 3);
    FOR_LANES(l, lanes) {
        const struct real x = widen(in, a[l]), y = widen(in, b[l]), z = real_unpack(&real_f32, c[l], false);
        const struct real product = real_multiply(&x, &y), sum = real_add(&product, &z, (enum rounding)in->rounding);
        d[l] = finish(in, &sum);
    }
    return TRAP_NONE;
}

static const struct row rows[] = {
    { "add{.rn|.rz|.rm|.rp}{.sat}.f32.$1", "f16 bf16", "d:f32 s:1 s:f32", 86, "sm_100+", 0, op_add, NULL,
      "9.7.5.1 add" },
    { "sub{.rn|.rz|.rm|.rp}{.sat}.f32.$1", "f16 bf16", "d:f32 s:1 s:f32", 86, "sm_100+", 0, op_sub, NULL,
      "9.7.5.2 sub" },
    { "fma(.rn|.rz|.rm|.rp){.sat}.f32.$1", "f16 bf16", "d:f32 s:1 s:1 s:f32", 86, "sm_100+", 0, op_fma, NULL,
      "9.7.5.3 fma" },
};

const struct family family_mixed_precision = FAMILY("mixed precision", rows);
