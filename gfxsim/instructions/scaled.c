/* Conversions of narrow floats, with a scale (v_cvt_scalef32_*) and without.  Of the scale, an fp32 number, the
 * exponent alone counts; packing divides by 2^(exponent - 127), unpacking multiplies.  op_sel names a byte or a half of
 * the packed register.
 *
 * Stochastic rounding adds the upper bits of a random number to the bits of the mantissa that go away, and cuts; of a
 * denormal result, once it is shifted to its place (as HIP's header amd_hip_ocp_host.hpp does it where there is no such
 * instruction). */
#include "families.h"
#include "matrix/elements.h"
#include "valu.h"

/* detail: bits 0..3 the packed element, 4..7 the other one (ELEMENTS: fp32), 8..11 the source that is the scale
 * (NO_SCALE), bit 12: source 1 is a random number. */
#define FP32 ELEMENTS
#define FORMATS(packed, other, scale) ((uint32_t)(packed) | (uint32_t)(other) << 4 | (uint32_t)(scale) << 8)
enum { NO_SCALE = 15, RANDOM = 1 << 12 };
static bool random_too(const struct lanes *x) { return (x->in->row->detail & RANDOM) != 0; }
static enum element packed_of(const struct lanes *x) { return (enum element)(x->in->row->detail & 15); }
static enum element other_of(const struct lanes *x) { return (enum element)(x->in->row->detail >> 4 & 15); }

static int exponent_of(const struct lanes *x, uint32_t l)
{
    const uint32_t source = x->in->row->detail >> 8 & 15;
    return source == NO_SCALE ? 0 : (int)(x->s[source][l] >> 23 & 255) - 127;
}

static bool saturates(const struct lanes *x) { return (x->w->mode & MODE_SATURATES) != 0; }

/* Value i of a wide source that begins with row s. */
static double wide(const struct lanes *x, int s, uint32_t i, uint32_t l)
{
    const enum element e = other_of(x);
    if (e == FP32) return (double)as_float(x->s[s][i * LANES + l]);
    return element_value(e, x->s[s][i / 2 * LANES + l] >> 16 * (i % 2) & 0xffff);
}

/* Bits of a mantissa behind the leading one, and the exponent of the smallest normal number. */
struct fields { int mantissa, least; };
static struct fields fields_of(enum element e)
{
    static const struct fields all[] = { [ELEMENT_E4M3] = { 3, -6 }, [ELEMENT_E5M2] = { 2, -14 },
                                         [ELEMENT_E2M3] = { 3, 0 }, [ELEMENT_E3M2] = { 2, -2 },
                                         [ELEMENT_E2M1] = { 1, 0 }, [ELEMENT_BF16] = { 7, -126 },
                                         [ELEMENT_F16] = { 10, -14 }, [ELEMENT_I8] = { 0, 0 },
                                         [FP32] = { 23, -126 } };
    return all[e];
}

static double cut_behind(double value, enum element e, enum element from, uint32_t random)
{
    if (!isfinite(value) || value == 0) return value;
    const struct fields f = fields_of(e);
    const int exponent = ilogb(value) < f.least ? f.least : ilogb(value), bits = fields_of(from).mantissa - f.mantissa;
    const double units = floor(ldexp(fabs(value), f.mantissa - exponent + bits)) + (random >> (32 - bits));
    return copysign(ldexp(floor(ldexp(units, -bits)), exponent - f.mantissa), value);
}

static uint32_t code_of(const struct lanes *x, double value, uint32_t l)
{
    value = ldexp(value, -exponent_of(x, l));
    if (random_too(x)) value = cut_behind(value, packed_of(x), other_of(x), x->s[1][l]);
    return element_encode(packed_of(x), value, saturates(x));
}

static void known_bytes(struct lanes *x, uint32_t first, uint32_t count, int sources)
{
    uint64_t all = UINT64_MAX;
    for (int s = 0; s < sources; s++)
        for (uint32_t k = 0; k < x->in->operand[1 + s].dwords; k++)
            for (int b = 0; b < 4; b++) all &= x->s_defined[s][k][b];
    for (uint32_t b = first; b < first + count; b++) x->d_defined[0][b] = all;
}

static void set_bits(uint32_t *d, uint32_t value, uint32_t first, uint32_t count)
{
    const uint32_t ones = count == 32 ? UINT32_MAX : ((1u << count) - 1);
    *d = (*d & ~(ones << first)) | (value & ones) << first;
}

/* Two numbers to one byte (fp4) or one half (fp8); what else is in the register stays. */
static void pack_two(struct lanes *x)
{
    const bool four = packed_of(x) == ELEMENT_E2M1, two_sources = other_of(x) == FP32 && !random_too(x);
    const uint32_t bits = four ? 4 : 8, place = four ? (uint32_t)x->in->op_sel >> 2 & 3 : 2 * (x->in->op_sel >> 3 & 1u);
    for (uint32_t l = 0; l < LANES; l++) {
        const double low = wide(x, 0, 0, l), high = two_sources ? wide(x, 1, 0, l) : wide(x, 0, 1, l);
        set_bits(&x->d[l], code_of(x, low, l) | code_of(x, high, l) << bits, 8 * place, 2 * bits);
    }
    known_bytes(x, place, four ? 1 : 2, x->in->operands - 1);
}

/* One number to a byte. */
static void pack_one(struct lanes *x)
{
    const uint32_t place = (uint32_t)x->in->op_sel >> 2 & 3;
    for (uint32_t l = 0; l < LANES; l++) set_bits(&x->d[l], code_of(x, wide(x, 0, 0, l), l), 8 * place, 8);
    known_bytes(x, place, 1, x->in->operands - 1);
}

/* One number to a half: bf16, fp16. */
static void pack_half(struct lanes *x)
{
    const uint32_t place = x->in->op_sel >> 3 & 1u;
    for (uint32_t l = 0; l < LANES; l++) {
        const float f = (float)cut_behind((double)as_float(x->s[0][l]), packed_of(x), FP32, x->s[1][l]);
        set_bits(&x->d[l], packed_of(x) == ELEMENT_BF16 ? float_to_bfloat(f) : float_to_half(f), 16 * place, 16);
    }
    known_bytes(x, 2 * place, 2, 2);
}

/* Two numbers out of one byte (fp4) or one half (fp8). */
static void store_wide(struct lanes *x, uint32_t i, uint32_t l, double value)
{
    const enum element e = other_of(x);
    const float f = (float)value;
    if (e == FP32) x->d[i * LANES + l] = as_bits(f);
    else
        set_bits(&x->d[i / 2 * LANES + l], e == ELEMENT_BF16 ? float_to_bfloat(f) : float_to_half(f), 16 * (i % 2), 16);
}
static void unpack_two(struct lanes *x)
{
    const enum element e = packed_of(x);
    const uint32_t bits = element_bits(e), place = bits == 4 ? (uint32_t)x->in->op_sel & 3 : 2 * (x->in->op_sel & 1u);
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t code = x->s[0][l] >> (8 * place + bits * i) & ((1u << bits) - 1);
            store_wide(x, i, l, ldexp(element_value(e, code), exponent_of(x, l)));
        }
}
static void unpack_one(struct lanes *x)
{
    const uint32_t place = (uint32_t)x->in->op_sel & 3;
    for (uint32_t l = 0; l < LANES; l++)
        x->d[l] = as_bits((float)ldexp(element_value(packed_of(x), x->s[0][l] >> 8 * place & 0xff), exponent_of(x, l)));
}

/* 32 numbers of 6 bits in 6 registers. */
static void set_six(struct lanes *x, uint32_t l, uint32_t i, uint32_t code)
{
    const uint32_t bit = 6 * i, dword = bit / 32, first = bit % 32;
    set_bits(&x->d[dword * LANES + l], code, first, first > 26 ? 32 - first : 6);
    if (first > 26) set_bits(&x->d[(dword + 1) * LANES + l], code >> (32 - first), 0, first - 26);
}
static void pack_32(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 32; i++) set_six(x, l, i, code_of(x, wide(x, 0, i, l), l));
}
/* Two sources of 16, interleaved: field 2k is number k of the first, 2k + 1 of the second. */
static void pack_16_and_16(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 32; i++) set_six(x, l, i, code_of(x, wide(x, (int)(i % 2), i / 2, l), l));
}
static void unpack_32(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < 32; i++) {
            const uint32_t bit = 6 * i, dword = bit / 32;
            uint64_t two = x->s[0][dword * LANES + l];
            if (bit % 32 > 26) two |= (uint64_t)x->s[0][(dword + 1) * LANES + l] << 32;
            store_wide(x, i, l,
                       ldexp(element_value(packed_of(x), (uint32_t)(two >> bit % 32) & 63), exponent_of(x, l)));
        }
}

#define P4 ELEMENT_E2M1
#define P8 ELEMENT_E4M3
#define Q8 ELEMENT_E5M2
#define P6 ELEMENT_E2M3
#define Q6 ELEMENT_E3M2
#define HF ELEMENT_F16
#define BF ELEMENT_BF16
enum { INTO = ROW_SELECTS | ROW_OWN_DEFINED };
#define PACK_F32(name, opcode, packed) \
    { \
        "v_cvt_scalef32_pk_" name, opcode, "x1 s1f s1f s1f", INTO | ROW_FLOAT, FORMATS(packed, FP32, 2), valu_run, \
            pack_two \
    }
#define PACK_16(name, opcode, packed, other) \
    { "v_cvt_scalef32_pk_" name, opcode, "x1 s1 s1f", INTO, FORMATS(packed, other, 1), valu_run, pack_two }
#define UNPACK(name, opcode, words, packed, other) \
    { "v_cvt_scalef32_pk_" name, opcode, words, ROW_SELECTS, FORMATS(packed, other, 1), valu_run, unpack_two }
#define PACK_ALL(name, opcode, packed, other) \
    { "v_cvt_scalef32_pk32_" name, opcode, "d6 s16 s1f", 0, FORMATS(packed, other, 1), valu_run, pack_32 }
#define UNPACK_ALL(name, opcode, words, packed, other) \
    { "v_cvt_scalef32_pk32_" name, opcode, words, 0, FORMATS(packed, other, 1), valu_run, unpack_32 }
#define RANDOM_ONE(name, opcode, source, packed, other) \
    { \
        "v_cvt_scalef32_sr_" name, opcode, "x1 " source " s1 s1f", INTO, FORMATS(packed, other, 2) | RANDOM, valu_run, \
            pack_one \
    }
#define RANDOM_TWO(name, opcode, source, other) \
    { \
        "v_cvt_scalef32_sr_pk_" name, opcode, "x1 " source " s1 s1f", INTO, FORMATS(P4, other, 2) | RANDOM, valu_run, \
            pack_two \
    }
#define RANDOM_ALL(name, opcode, source, packed, other) \
    { \
        "v_cvt_scalef32_sr_pk32_" name, opcode, "d6 " source " s1 s1f", 0, FORMATS(packed, other, 2) | RANDOM, \
            valu_run, pack_32 \
    }
static const struct row rows[] = {
    PACK_F32("fp8_f32", 565, P8),
    PACK_F32("bf8_f32", 566, Q8),
    UNPACK("f32_fp8", 569, "d2 s1 s1f", P8, FP32),
    UNPACK("f32_bf8", 570, "d2 s1 s1f", Q8, FP32),
    { "v_cvt_scalef32_f32_fp8", 571, "d1 s1 s1f", ROW_SELECTS, FORMATS(P8, FP32, 1), valu_run, unpack_one },
    { "v_cvt_scalef32_f32_bf8", 572, "d1 s1 s1f", ROW_SELECTS, FORMATS(Q8, FP32, 1), valu_run, unpack_one },
    PACK_F32("fp4_f32", 573, P4),
    UNPACK("f32_fp4", 575, "d2 s1 s1f", P4, FP32),
    PACK_16("fp8_f16", 576, P8, HF),
    PACK_16("bf8_f16", 577, Q8, HF),
    PACK_16("fp8_bf16", 580, P8, BF),
    PACK_16("bf8_bf16", 581, Q8, BF),
    UNPACK("f16_fp8", 584, "d1 s1 s1f", P8, HF),
    UNPACK("f16_bf8", 585, "d1 s1 s1f", Q8, HF),
    PACK_16("fp4_f16", 588, P4, HF),
    PACK_16("fp4_bf16", 589, P4, BF),
    UNPACK("f16_fp4", 592, "d1 s1 s1f", P4, HF),
    UNPACK("bf16_fp4", 593, "d1 s1 s1f", P4, BF),
    { "v_cvt_scalef32_2xpk16_fp6_f32", 594, "d6 s16 s16 s1f", 0, FORMATS(P6, FP32, 2), valu_run, pack_16_and_16 },
    { "v_cvt_scalef32_2xpk16_bf6_f32", 595, "d6 s16 s16 s1f", 0, FORMATS(Q6, FP32, 2), valu_run, pack_16_and_16 },
    UNPACK_ALL("f32_fp6", 598, "d32 s6 s1f", P6, FP32),
    UNPACK_ALL("f32_bf6", 599, "d32 s6 s1f", Q6, FP32),
    PACK_ALL("fp6_f16", 600, P6, HF),
    PACK_ALL("fp6_bf16", 601, P6, BF),
    PACK_ALL("bf6_f16", 602, Q6, HF),
    PACK_ALL("bf6_bf16", 603, Q6, BF),
    UNPACK_ALL("bf16_fp6", 609, "d16 s6 s1f", P6, BF),
    UNPACK_ALL("bf16_bf6", 611, "d16 s6 s1f", Q6, BF),
    UNPACK("bf16_fp8", 617, "d1 s1 s1f", P8, BF),
    UNPACK("bf16_bf8", 618, "d1 s1 s1f", Q8, BF),
    UNPACK_ALL("f16_fp6", 608, "d16 s6 s1f", P6, HF),
    UNPACK_ALL("f16_bf6", 610, "d16 s6 s1f", Q6, HF),
    RANDOM_ONE("fp8_f32", 567, "s1f", P8, FP32),
    RANDOM_ONE("bf8_f32", 568, "s1f", Q8, FP32),
    RANDOM_ONE("fp8_f16", 578, "s1", P8, HF),
    RANDOM_ONE("bf8_f16", 579, "s1", Q8, HF),
    RANDOM_ONE("fp8_bf16", 582, "s1", P8, BF),
    RANDOM_ONE("bf8_bf16", 583, "s1", Q8, BF),
    RANDOM_TWO("fp4_f32", 574, "s2v", FP32),
    RANDOM_TWO("fp4_f16", 590, "s1", HF),
    RANDOM_TWO("fp4_bf16", 591, "s1", BF),
    RANDOM_ALL("fp6_f32", 596, "s32", P6, FP32),
    RANDOM_ALL("bf6_f32", 597, "s32", Q6, FP32),
    RANDOM_ALL("fp6_f16", 604, "s16", P6, HF),
    RANDOM_ALL("fp6_bf16", 605, "s16", P6, BF),
    RANDOM_ALL("bf6_f16", 606, "s16", Q6, HF),
    RANDOM_ALL("bf6_bf16", 607, "s16", Q6, BF),
};
const struct family family_scaled = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows);

/* ---- without a scale ---- */

static void unpack_byte(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) x->d[l] = as_bits((float)element_value(packed_of(x), x->s[0][l] & 0xff));
}
static const struct row rows1[] = {
    { "v_cvt_f32_fp8", 84, "d1 s1", ROW_FLOATS_OUT | ROW_SOURCE_PART, FORMATS(P8, FP32, NO_SCALE), valu_run,
      unpack_byte },
    { "v_cvt_f32_bf8", 85, "d1 s1", ROW_FLOATS_OUT | ROW_SOURCE_PART, FORMATS(Q8, FP32, NO_SCALE), valu_run,
      unpack_byte },
    { "v_cvt_pk_f32_fp8", 86, "d2 s1", ROW_SOURCE_PART, FORMATS(P8, FP32, NO_SCALE), valu_run, unpack_two },
    { "v_cvt_pk_f32_bf8", 87, "d2 s1", ROW_SOURCE_PART, FORMATS(Q8, FP32, NO_SCALE), valu_run, unpack_two },
};
const struct family family_unscaled1 = FAMILY("Vector ALU Operations", FORMAT_VOP1, rows1);

#define PLAIN_TWO(name, opcode, packed) \
    { name, opcode, "x1 s1f s1f", INTO | ROW_FLOAT, FORMATS(packed, FP32, NO_SCALE), valu_run, pack_two }
#define PLAIN_RANDOM(name, opcode, packed, lanes) \
    { name, opcode, "x1 s1f s1", INTO | ROW_FLOAT, FORMATS(packed, FP32, NO_SCALE) | RANDOM, valu_run, lanes }
static const struct row rows3[] = {
    PLAIN_TWO("v_cvt_pk_fp8_f32", 674, P8), PLAIN_TWO("v_cvt_pk_bf8_f32", 675, Q8),
    PLAIN_RANDOM("v_cvt_sr_fp8_f32", 676, P8, pack_one), PLAIN_RANDOM("v_cvt_sr_bf8_f32", 677, Q8, pack_one),
    PLAIN_RANDOM("v_cvt_sr_f16_f32", 678, HF, pack_half), PLAIN_RANDOM("v_cvt_sr_bf16_f32", 679, BF, pack_half),
};
const struct family family_unscaled3 = FAMILY("Vector ALU Operations", FORMAT_VOP3, rows3);
