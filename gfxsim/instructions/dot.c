/* Sums of a few products: v_dot.  How fp32 sums are rounded inside is not published: here the exact sum is, once. */
#include "families.h"
#include "matrix/elements.h"
#include "valu.h"

/* detail: bits 0..3 of an element, bit 4 signed, bit 5 bfloat. */
enum { SIGNED = 16, BFLOAT = 32 };
static int64_t whole(const struct lanes *x, int source, uint32_t l, uint32_t i)
{
    const uint32_t bits = x->in->row->detail & 15 ? x->in->row->detail & 15 : 16,
                   part = x->s[source][l] >> i * bits << (32 - bits);
    return (x->in->row->detail & SIGNED) != 0 ? (int32_t)part >> (32 - bits) : (int64_t)(part >> (32 - bits));
}

/* With three sources the last is the sum so far; with two it is what was in the result's register. */
static uint32_t sum_so_far(const struct lanes *x, uint32_t l) { return x->in->operands == 4 ? x->s[2][l] : x->d[l]; }

static void integers(struct lanes *x)
{
    const uint32_t bits = x->in->row->detail & 15 ? x->in->row->detail & 15 : 16;
    const bool is_signed = (x->in->row->detail & SIGNED) != 0;
    for (uint32_t l = 0; l < LANES; l++) {
        const uint32_t c = sum_so_far(x, l);
        int64_t sum = is_signed ? (int64_t)(int32_t)c : (int64_t)c;
        for (uint32_t i = 0; i < 32 / bits; i++) sum += whole(x, 0, l, i) * whole(x, 1, l, i);
        if (x->in->clamp) {
            const int64_t most = is_signed ? INT32_MAX : UINT32_MAX, least = is_signed ? INT32_MIN : 0;
            sum = sum > most ? most : sum < least ? least : sum;
        }
        x->d[l] = (uint32_t)sum;
    }
}

/* A half that op_sel (of the first product) or op_sel_hi (of the second) names; neg_lo and neg_hi go with them. */
static double half_of(const struct lanes *x, int source, uint32_t l, bool second)
{
    const struct insn *in = x->in;
    const bool packed = in->encoding == FORMAT_VOP3P;
    const bool upper = packed ? (second ? in->op_sel_hi : in->op_sel) >> source & 1 : second,
               negated = packed && (second ? in->abs : in->neg) >> source & 1;
    const uint32_t bits = (x->s[source][l] >> (upper ? 16 : 0) & 0xffff) ^ (negated ? 0x8000 : 0);
    return element_value((in->row->detail & BFLOAT) != 0 ? ELEMENT_BF16 : ELEMENT_F16, bits);
}

static void floats(struct lanes *x)
{
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t c = sum_so_far(x, l);
        if (x->in->encoding == FORMAT_VOP3P) {
            if ((x->in->abs >> 2 & 1) != 0) c &= 0x7fffffff;
            if ((x->in->neg >> 2 & 1) != 0) c ^= 0x80000000;
        }
        const double first = half_of(x, 0, l, false) * half_of(x, 1, l, false),
                     second = half_of(x, 0, l, true) * half_of(x, 1, l, true);
        float f = (float)((long double)first + (long double)second + (long double)as_float(c));
        if (x->in->clamp) f = f > 1 ? 1 : f > 0 ? f : 0;
        x->d[l] = as_bits(f);
    }
}

enum { PACKED = ROW_PACKED | ROW_CLAMPS, BYTES = PACKED | ROW_NO_HALVES };
#define THREE(name, opcode, flags, detail, lanes) { name, opcode, "d1 s1 s1 s1", flags, detail, valu_run, lanes }
static const struct row rows[] = {
    THREE("v_dot2_f32_bf16", 26, PACKED | ROW_FLOAT, BFLOAT, floats),
    THREE("v_dot2_f32_f16", 35, PACKED | ROW_FLOAT, 0, floats),
    THREE("v_dot2_i32_i16", 38, PACKED, SIGNED, integers), THREE("v_dot2_u32_u16", 39, PACKED, 0, integers),
    THREE("v_dot4_i32_i8", 40, BYTES, SIGNED | 8, integers), THREE("v_dot4_u32_u8", 41, BYTES, 8, integers),
    THREE("v_dot8_i32_i4", 42, BYTES, SIGNED | 4, integers), THREE("v_dot8_u32_u4", 43, BYTES, 4, integers),
};
const struct family family_dot = FAMILY("Vector ALU Operations", FORMAT_VOP3P, rows);

static const struct row rows2[] = {
    { "v_dot2c_f32_bf16", 22, "x1 s1 s1", 0, BFLOAT, valu_run, floats },
    { "v_dot2c_f32_f16", 55, "x1 s1 s1", 0, 0, valu_run, floats },
    { "v_dot2c_i32_i16", 56, "x1 s1 s1", 0, SIGNED, valu_run, integers },
    { "v_dot4c_i32_i8", 57, "x1 s1 s1", 0, SIGNED | 8, valu_run, integers },
    { "v_dot8c_i32_i4", 58, "x1 s1 s1", 0, SIGNED | 4, valu_run, integers },
};
const struct family family_dot2 = FAMILY("Vector ALU Operations", FORMAT_VOP2, rows2);
