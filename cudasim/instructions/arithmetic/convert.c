/* cvt between integers and f16, bf16, f32, f64 (PTX ISA 9.7.9.21).  Small formats (fp8, fp6, fp4, tf32) are a family of
 * their own. */
#include "instructions/table/families.h"
#include "real.h"

static uint64_t clamp(int128 x, uint32_t bits, bool is_signed)
{
    const int128 lowest = is_signed ? -((int128)1 << (bits - 1)) : 0;
    const int128 highest = is_signed ? ((int128)1 << (bits - 1)) - 1 : ((int128)1 << bits) - 1;
    return (uint64_t)(x < lowest ? lowest : x > highest ? highest : x);
}

/* What a register of the operand's declared type holds: integers are extended to it by their sign. */
static uint64_t to_register(uint64_t value, enum ptx_type type, const struct operand *d)
{
    if (type_kind(type) != 's' || d->kind == OPERAND_SINK) return value & bits_mask(type_bits(type));
    return (uint64_t)sign_extend(value, type_bits(type)) & bits_mask(type_bits((enum ptx_type)d->type));
}

/* cvt.dtype.atype: cut or extended; .sat: clamped. */
static trap op_cvt_integer(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const enum ptx_type to = (enum ptx_type)in->type[0], from = (enum ptx_type)in->type[1];
    const bool from_signed = type_kind(from) == 's', to_signed = type_kind(to) == 's',
               sat = (in->flags & FLAG_SAT) != 0;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) {
        const uint64_t low = a[l] & bits_mask(type_bits(from));
        const int128 x = from_signed ? (int128)sign_extend(low, type_bits(from)) : (int128)low;
        d[l] = to_register(sat ? clamp(x, type_bits(to), to_signed) : (uint64_t)x, to, &in->operand[0]);
    }
    return TRAP_NONE;
}

static enum rounding rounding_of(const struct insn *in)
{
    switch (in->rounding) {
    case ROUND_RNI: return ROUND_RN;
    case ROUND_RZI: return ROUND_RZ;
    case ROUND_RMI: return ROUND_RM;
    case ROUND_RPI: return ROUND_RP;
    case ROUND_NONE: return ROUND_RN;
    default: return (enum rounding)in->rounding;
    }
}

static trap op_cvt_from_integer(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const enum ptx_type to = (enum ptx_type)in->type[0], from = (enum ptx_type)in->type[1];
    const struct real_format *f = real_format_of(to);
    const enum rounding rounding = rounding_of(in);
    const bool sat = (in->flags & FLAG_SAT) != 0;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) {
        struct real x = real_from_integer(a[l], type_bits(from), type_kind(from) == 's');
        if (sat && x.negative) x = (struct real){ .kind = REAL_ZERO };
        if (sat && x.magnitude > 1) x.magnitude = 1;
        d[l] = real_pack(f, &x, rounding, false);
    }
    return TRAP_NONE;
}

/* NaN becomes 0, but the most negative 64-bit number (as hardware does) where the destination has 64 bits; out of range
 * clamps. */
static trap op_cvt_to_integer(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const enum ptx_type to = (enum ptx_type)in->type[0], from = (enum ptx_type)in->type[1];
    const struct real_format *f = real_format_of(from);
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    const uint32_t bits = type_bits(to);
    const uint64_t nan = bits == 64 || from == T_F64 ? UINT64_C(1) << (bits - 1) : 0;
    const enum rounding rounding = rounding_of(in);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) {
        const struct real x = real_unpack(f, a[l], ftz);
        d[l] = to_register(real_to_integer(&x, rounding, bits, type_kind(to) == 's', nan), to, &in->operand[0]);
    }
    return TRAP_NONE;
}

/* As hardware does: f64 and bf16 keep sign and payload, cut or filled up, on the way to and from f64, and become quiet;
 * all others give the one NaN of their format. */
static uint64_t convert_nan(const struct real_format *to, const struct real_format *from, uint64_t bits)
{
    if (to != &real_f64 && from != &real_f64) return to->nan;
    const uint32_t have = from->mantissa_bits, want = to->mantissa_bits;
    const uint64_t sign = bits >> (from->exponent_bits + have) & 1;
    uint64_t payload = bits & bits_mask(have);
    payload = want > have ? payload << (want - have) : payload >> (have - want);
    return sign << (to->exponent_bits + want) | bits_mask(to->exponent_bits) << want | payload
           | UINT64_C(1) << (want - 1);
}

/* Between floats; with .rni and the like to an integral value; .sat: to [0, 1], NaN to 0.  .ftz is of the f32 side, and
 * does nothing on the way to f16. */
static uint64_t convert_float(const struct insn *in, const struct real_format *to, const struct real_format *from,
                              uint64_t bits, bool ftz)
{
    struct real x = real_unpack(from, bits, ftz && from == &real_f32 && to != &real_f16);
    if (x.kind == REAL_NAN && ftz && from == &real_f32) bits = real_f32.nan;
    if (x.kind == REAL_NAN) return (in->flags & FLAG_SAT) != 0 ? 0 : convert_nan(to, from, bits);
    if (in->rounding >= ROUND_RNI) x = real_round_integral(&x, rounding_of(in));
    if ((in->flags & FLAG_SAT) != 0 && x.negative) x = (struct real){ .kind = REAL_ZERO };
    uint64_t d = real_pack(to, &x, rounding_of(in), ftz && to == &real_f32);
    if ((in->flags & FLAG_SAT) != 0) {
        const struct real one = { .kind = REAL_FINITE, .magnitude = 1 };
        const uint64_t highest = real_pack(to, &one, ROUND_RN, false);
        if (d > highest) d = highest;
    }
    return d;
}

static trap op_cvt_float(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct real_format *to = real_format_of((enum ptx_type)in->type[0]),
                             *from = real_format_of((enum ptx_type)in->type[1]);
    const bool ftz = (in->flags & FLAG_FTZ) != 0;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = convert_float(in, to, from, a[l], ftz);
    return TRAP_NONE;
}

/* cvt.f32.f32 without a modifier: a copy, NaN too. */
static trap op_cvt_copy(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY(a); }
/* cvt.f32.bf16: the upper half of an f32. */
static trap op_cvt_bf16(struct warp *w, const struct insn *in, uint32_t lanes) { UNARY((a & 0xffff) << 16); }

/* cvt.rn.f16x2.f32 d, a, b   a in the upper half. */
static uint64_t narrow(const struct insn *in, const struct real_format *to, uint64_t bits)
{
    struct real x = real_unpack(&real_f32, bits, false);
    if (x.kind == REAL_NAN) return to->nan;
    if ((in->flags & FLAG_RELU) != 0 && x.negative) return 0;
    uint64_t d = real_pack(to, &x, (enum rounding)in->rounding, false);
    const uint64_t infinity = bits_mask(to->exponent_bits) << to->mantissa_bits;
    if ((in->flags & FLAG_SATFINITE) != 0 && (d & 0x7fff) == infinity) d -= 1;
    return d;
}
static trap op_cvt_x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct real_format *to = real_format_of((enum ptx_type)in->type[0]);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    FOR_LANES(l, lanes) d[l] = narrow(in, to, a[l]) << 16 | narrow(in, to, b[l]);
    return TRAP_NONE;
}
static trap op_cvt_narrow(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct real_format *to = real_format_of((enum ptx_type)in->type[0]);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = narrow(in, to, a[l]);
    return TRAP_NONE;
}

/* cvt.pack.sat.c.a.b.c d, a, b, c   two numbers clamped to c's type, packed below what c holds. */
static trap op_cvt_pack(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint32_t bits = type_bits((enum ptx_type)in->type[0]);
    const bool is_signed = type_kind((enum ptx_type)in->type[0]) == 's', with_c = in->operands > 3;
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2), *c = with_c ? source(w, in, 3) : a;
    FOR_LANES(l, lanes) {
        const uint64_t x = clamp(sign_extend(a[l], 32), bits, is_signed) & bits_mask(bits),
                       y = clamp(sign_extend(b[l], 32), bits, is_signed) & bits_mask(bits);
        d[l] = (x << bits | y | (with_c ? c[l] << 2 * bits : 0)) & UINT32_MAX;
    }
    return TRAP_NONE;
}

static const char *check_ftz(struct module *module, struct insn *in)
{
    (void)module;
    if ((in->flags & FLAG_FTZ) != 0 && in->type[0] != T_F32 && in->type[1] != T_F32)
        return ".ftz is for conversions from or to f32";
    return NULL;
}

/* .sat where every source value fits is no form: ptxas refuses it too. */
static const char *check_sat(struct module *module, struct insn *in)
{
    (void)module;
    const uint32_t to = type_bits((enum ptx_type)in->type[0]), from = type_bits((enum ptx_type)in->type[1]);
    const bool to_signed = type_kind((enum ptx_type)in->type[0]) == 's',
               from_signed = type_kind((enum ptx_type)in->type[1]) == 's';
    const bool fits = to_signed == from_signed ? to >= from : to_signed && to > from;
    return (in->flags & FLAG_SAT) != 0 && fits ? ".sat is for conversions whose result can be out of range" : NULL;
}

static const char *check_float(struct module *module, struct insn *in)
{
    const uint32_t to = type_bits((enum ptx_type)in->type[0]), from = type_bits((enum ptx_type)in->type[1]);
    const bool integral = in->rounding >= ROUND_RNI, same = in->type[0] == in->type[1];
    const bool narrows = to < from || (to == from && !same);
    const bool unnamed = to == from && !same && in->rounding == ROUND_NONE; /* f16 and bf16: .rn, as ptxas takes it */
    if (narrows && !unnamed && (in->rounding == ROUND_NONE || integral))
        return "a conversion to a narrower float names its rounding: .rn, .rz, .rm or .rp";
    if (!narrows && !same && in->rounding != ROUND_NONE) return "a conversion to a wider float takes no rounding";
    if (same && in->rounding != ROUND_NONE && !integral)
        return "a conversion of a float to itself rounds by .rni, .rzi, .rmi or .rpi";
    if ((in->flags & FLAG_SAT) != 0 && (in->type[0] == T_BF16 || in->type[1] == T_BF16)) return "bf16 takes no .sat";
    if (same && in->type[0] != T_F16 && in->type[0] != T_BF16 && in->rounding == ROUND_NONE
        && (in->flags & (FLAG_FTZ | FLAG_SAT)) == 0)
        in->run = op_cvt_copy;
    return check_ftz(module, in);
}

#define INTEGERS "u8 u16 u32 u64 s8 s16 s32 s64"
#define FLOATS "f16 f32 f64"
static const struct row rows[] = {
    { "cvt{.sat}.$1.$2", INTEGERS "; " INTEGERS, "d:1+ s:2+", 10, "", 0, op_cvt_integer, check_sat, "9.7.9.21 cvt" },
    { "cvt(.rn|.rz|.rm|.rp){.sat}.$1.$2", FLOATS " ; " INTEGERS, "d:1+ s:2+", 10, "", 0, op_cvt_from_integer, NULL,
      "9.7.9.21 cvt" },
    { "cvt(.rn|.rz|.rm|.rp).$1.$2", "bf16; " INTEGERS, "d:1 s:2", 78, "sm_90+", 0, op_cvt_from_integer, NULL,
      "9.7.9.21 cvt" },
    { "cvt(.rni|.rzi|.rmi|.rpi){.ftz}{.sat}.$1.$2", INTEGERS "; " FLOATS, "d:1+ s:2+", 10, "", 0, op_cvt_to_integer,
      check_ftz, "9.7.9.21 cvt" },
    { "cvt(.rni|.rzi|.rmi|.rpi).$1.$2", INTEGERS "; bf16", "d:1 s:2", 78, "sm_90+", 0, op_cvt_to_integer, NULL,
      "9.7.9.21 cvt" },
    { "cvt{.rn|.rz|.rm|.rp|.rni|.rzi|.rmi|.rpi}{.ftz}{.sat}.$1.$2", FLOATS "; " FLOATS, "d:1+ s:2+", 10, "", 0,
      op_cvt_float, check_float, "9.7.9.21 cvt" },
    { "cvt{.rn|.rz|.rm|.rp|.rni|.rzi|.rmi|.rpi}.$1.$2", "bf16 f16 f64; bf16", "d:1+ s:2+", 78, "sm_90+", 0,
      op_cvt_float, check_float, "9.7.9.21 cvt" },
    { "cvt.$1.$2", "f32; bf16", "d:1+ s:2+", 71, "sm_80+", 0, op_cvt_bf16, NULL, "9.7.9.21 cvt" },
    { "cvt{.rn|.rz|.rm|.rp}.$1.$2", "bf16; f16 f64", "d:1+ s:2+", 78, "sm_90+", 0, op_cvt_float, check_float,
      "9.7.9.21 cvt" },
    { "cvt(.rm|.rp).$1.$2", "bf16; f32", "d:1 s:2", 78, "sm_90+", 0, op_cvt_narrow, NULL, "9.7.9.21 cvt" },
    { "cvt(.rn|.rz){.relu}.$1.f32", "f16 bf16", "d:1 s:f32", 70, "sm_80+", 0, op_cvt_narrow, NULL, "9.7.9.21 cvt" },
    { "cvt(.rn|.rz){.relu}.satfinite.$1.f32", "f16 bf16", "d:1 s:f32", 81, "sm_80+", 0, op_cvt_narrow, NULL,
      "9.7.9.21 cvt" },
    { "cvt(.rn|.rz){.relu}.$1.f32", "f16x2 bf16x2", "d:1 s:f32 s:f32", 70, "sm_80+", 0, op_cvt_x2, NULL,
      "9.7.9.21 cvt" },
    { "cvt(.rn|.rz){.relu}.satfinite.$1.f32", "f16x2 bf16x2", "d:1 s:f32 s:f32", 81, "sm_80+", 0, op_cvt_x2, NULL,
      "9.7.9.21 cvt" },
    { "cvt.pack.sat.$1.s32", "u16 s16", "d:b32 s:s32 s:s32", 65, "sm_72+", 0, op_cvt_pack, NULL, "9.7.9.22 cvt.pack" },
    { "cvt.pack.sat.$1.s32.b32", "u8 s8", "d:b32 s:s32 s:s32 s:b32", 65, "sm_72+", 0, op_cvt_pack, NULL,
      "9.7.9.22 cvt.pack" },
};

const struct family family_convert = FAMILY("conversions", rows);
