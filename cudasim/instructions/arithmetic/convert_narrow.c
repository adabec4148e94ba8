/* cvt to and from the formats of 4, 6, 8 bits, ue8m0 and tf32 (PTX ISA 9.7.9.21).
 *
 * The forms with .rs (stochastic rounding) have no row: which of the random bits meet which of the fraction's is only
 * drawn in the manual.  What NaN becomes in ue8m0, and that its sign is dropped, is as the toolkit's own host code for
 * the conversion does it. */
#include "instructions/table/families.h"
#include "small_float.h"

static uint32_t encode(const struct insn *in, const struct small_format *to, const struct real_format *from,
                       uint64_t bits)
{
    const struct real x = real_unpack(from, bits, false);
    if ((in->flags & FLAG_RELU) != 0 && x.negative && x.kind != REAL_NAN) return 0;
    return small_encode(to, &x);
}

/* Bits between the elements of a packed register: e2m1x2 is one byte, the others have a byte for each. */
static uint32_t stride_of(const struct small_format *f) { return small_bits(f) == 4 ? 4 : 8; }

/* cvt.rn.satfinite.e4m3x2.f32 d, a, b   a in the upper half */
static trap op_from_f32(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct small_format *to = small_format_of((enum ptx_type)in->type[0]);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    FOR_LANES(l, lanes)
        d[l] = (uint64_t)encode(in, to, &real_f32, a[l]) << stride_of(to) | encode(in, to, &real_f32, b[l]);
    return TRAP_NONE;
}

/* cvt.rn.satfinite.e4m3x2.f16x2 d, a */
static trap op_from_f16x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct small_format *to = small_format_of((enum ptx_type)in->type[0]);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes)
        d[l] = (uint64_t)encode(in, to, &real_f16, a[l] >> 16 & 0xffff) << stride_of(to)
               | encode(in, to, &real_f16, a[l] & 0xffff);
    return TRAP_NONE;
}

static uint64_t decode(const struct insn *in, const struct small_format *from, uint64_t code)
{
    const struct real x = small_decode(from, (uint32_t)code & (uint32_t)bits_mask(small_bits(from)));
    if (x.kind == REAL_NAN) return real_f16.nan;
    if ((in->flags & FLAG_RELU) != 0 && x.negative) return 0;
    return real_pack(&real_f16, &x, ROUND_RN, false);
}

/* cvt.rn.f16x2.e4m3x2 d, a */
static trap op_to_f16x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct small_format *from = small_format_of((enum ptx_type)in->type[0]);
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = decode(in, from, a[l] >> stride_of(from)) << 16 | decode(in, from, a[l]);
    return TRAP_NONE;
}

/* ---- ue8m0: 2^(code - 127), 0xff is NaN ---- */

/* The exponent of |x|, cut or rounded up; x as f32 bits. */
static uint32_t encode_ue8m0(const struct insn *in, uint32_t bits)
{
    const uint32_t magnitude = bits & 0x7fffffff, mantissa = magnitude & 0x7fffff, smallest = 0x00400000;   /* 2^-127 */
    uint32_t code = magnitude >> 23;
    if (is_nan32(bits)) return 0xff;
    if (in->rounding == ROUND_RP && mantissa != 0 && magnitude > smallest && code < 0xff) code++;
    return (in->flags & FLAG_SATFINITE) != 0 && code == 0xff ? 0xfe : code;
}

static trap op_ue8m0_from_f32(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1), *b = source(w, in, 2);
    FOR_LANES(l, lanes) d[l] = encode_ue8m0(in, (uint32_t)a[l]) << 8 | encode_ue8m0(in, (uint32_t)b[l]);
    return TRAP_NONE;
}

static trap op_ue8m0_from_bf16x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes)
        d[l] = encode_ue8m0(in, (uint32_t)a[l] & 0xffff0000) << 8 | encode_ue8m0(in, (uint32_t)a[l] << 16);
    return TRAP_NONE;
}

static uint64_t decode_ue8m0(uint64_t code) { return code == 0xff ? 0x7fff : code == 0 ? 0x0040 : code << 7; }

static trap op_ue8m0_to_bf16x2(struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) d[l] = decode_ue8m0(a[l] >> 8 & 0xff) << 16 | decode_ue8m0(a[l] & 0xff);
    return TRAP_NONE;
}

/* ---- tf32: an f32 whose low 13 bits are zero ---- */

/* As hardware does: .rna cuts a NaN like a number, and .satfinite takes one unit from it. */
static uint64_t tf32_nan(const struct insn *in, uint64_t bits)
{
    const uint64_t unit = UINT64_C(1) << 13;
    if (in->rounding != ROUND_RNA) return real_f32.nan & ~(unit - 1);
    return (bits & UINT32_MAX & ~(unit - 1)) - ((in->flags & FLAG_SATFINITE) != 0 ? unit : 0);
}

static trap op_tf32(struct warp *w, const struct insn *in, uint32_t lanes)
{
    enum { LOST = 13 };
    uint64_t *d = destination(w, in, 0);
    const uint64_t *a = source(w, in, 1);
    FOR_LANES(l, lanes) {
        const struct real x = real_unpack(&real_f32, a[l], false);
        if (x.kind == REAL_NAN) {
            d[l] = tf32_nan(in, a[l]);
            continue;
        }
        d[l] = (in->flags & FLAG_RELU) != 0 && x.negative
                   ? 0
                   : real_pack(&real_tf32, &x, (enum rounding)in->rounding, false) << LOST;
        if ((in->flags & FLAG_SATFINITE) != 0 && (d[l] & 0x7fffffff) == 0x7f800000) d[l] -= 1u << LOST;
    }
    return TRAP_NONE;
}

#define BLACKWELL "sm_100a sm_100f sm_101a sm_103a sm_103f sm_110a sm_120a sm_120f sm_121a"
#define SECTION "9.7.9.21 cvt"
static const struct row rows[] = {
    { "cvt.rn.satfinite{.relu}.$1.f32", "e4m3x2 e5m2x2", "d:1 s:f32 s:f32", 78, "sm_89+", 0, op_from_f32, NULL,
      SECTION },
    { "cvt.rn.satfinite{.relu}.$1.f16x2", "e4m3x2 e5m2x2", "d:1 s:f16x2", 78, "sm_89+", 0, op_from_f16x2, NULL,
      SECTION },
    { "cvt.rn{.relu}.f16x2.$1", "e4m3x2 e5m2x2", "d:f16x2 s:1", 78, "sm_89+", 0, op_to_f16x2, NULL, SECTION },
    { "cvt.rn.satfinite{.relu}.$1.f32", "e2m1x2 e2m3x2 e3m2x2", "d:1 s:f32 s:f32", 86, BLACKWELL, 0, op_from_f32, NULL,
      SECTION },
    { "cvt.rn.satfinite{.relu}.$1.f16x2", "e2m1x2", "d:1 s:f16x2", 86, BLACKWELL, 0, op_from_f16x2, NULL, SECTION },
    { "cvt.rn{.relu}.f16x2.$1", "e2m1x2 e2m3x2 e3m2x2", "d:f16x2 s:1", 86, BLACKWELL, 0, op_to_f16x2, NULL, SECTION },
    { "cvt(.rz|.rp){.satfinite}.$1.f32", "ue8m0x2", "d:1 s:f32 s:f32", 86, BLACKWELL, 0, op_ue8m0_from_f32, NULL,
      SECTION },
    { "cvt(.rz|.rp){.satfinite}.$1.bf16x2", "ue8m0x2", "d:1 s:bf16x2", 86, BLACKWELL, 0, op_ue8m0_from_bf16x2, NULL,
      SECTION },
    { "cvt.rn.bf16x2.$1", "ue8m0x2", "d:bf16x2 s:1", 86, BLACKWELL, 0, op_ue8m0_to_bf16x2, NULL, SECTION },
    { "cvt.rna.$1.f32", "tf32", "d:b32 s:f32", 70, "sm_80+", 0, op_tf32, NULL, SECTION },
    { "cvt.rna.satfinite.$1.f32", "tf32", "d:b32 s:f32", 81, "sm_89+", 0, op_tf32, NULL, SECTION },
    { "cvt(.rn|.rz){.relu}.$1.f32", "tf32", "d:b32 s:f32", 78, "sm_90+", 0, op_tf32, NULL, SECTION },
    { "cvt(.rn|.rz).satfinite{.relu}.$1.f32", "tf32", "d:b32 s:f32", 86, "sm_100+", 0, op_tf32, NULL, SECTION },
};

const struct family family_convert_narrow = FAMILY("conversions of small formats", rows);
