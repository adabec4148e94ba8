/* Comparisons: a bit a lane of a mask. */
#include "families.h"
#include "matrix/elements.h"
#include "valu.h"

#define MASK_OF(name, expression) \
    static void name(struct lanes *x) \
    { \
        for (uint32_t l = 0; l < LANES; l++) x->mask_out |= (uint64_t)(expression) << l; \
    }
MASK_OF(never, 0)
MASK_OF(always, 1)
#define INTEGERS(suffix, a, b) \
    MASK_OF(lt_##suffix, (a) < (b)) \
    MASK_OF(eq_##suffix, (a) == (b)) \
    MASK_OF(le_##suffix, (a) <= (b)) \
    MASK_OF(gt_##suffix, (a) > (b)) \
    MASK_OF(ne_##suffix, (a) != (b)) \
    MASK_OF(ge_##suffix, (a) >= (b))
INTEGERS(i16, (int16_t)A, (int16_t)B)
INTEGERS(u16, (uint16_t)A, (uint16_t)B)
INTEGERS(i32, SA, SB)
INTEGERS(u32, A, B)
INTEGERS(i64, (int64_t)WA, (int64_t)WB)
INTEGERS(u64, WA, WB)
/* The numbers of a comparison are fp64 or exact in it. */
static double real(const uint32_t *row, uint32_t l, char type)
{
    double d = as_float(row[l]);
    if (type == 'h') d = half_to_float((uint16_t)row[l]);
    else if (type == 'e') memcpy(&d, (uint64_t[]){ pair(row, l) }, sizeof d);
    return d;
}
#define FLOAT_MASK(name, expression) \
    static void name(struct lanes *x) \
    { \
        const char type = x->in->operand[1].type; \
        for (uint32_t l = 0; l < LANES; l++) { \
            const double a = real(x->s[0], l, type), b = real(x->s[1], l, type); \
            x->mask_out |= (uint64_t)(expression) << l; \
        } \
    }
FLOAT_MASK(lt, a < b)
FLOAT_MASK(eq, a == b)
FLOAT_MASK(le, a <= b)
FLOAT_MASK(gt, a > b)
FLOAT_MASK(lg, a < b || a > b)
FLOAT_MASK(ge, a >= b)
FLOAT_MASK(o, a == a && b == b)
FLOAT_MASK(u, a != a || b != b)
FLOAT_MASK(nge, !(a >= b))
FLOAT_MASK(nlg, !(a < b || a > b))
FLOAT_MASK(ngt, !(a > b))
FLOAT_MASK(nle, !(a <= b))
FLOAT_MASK(neq, !(a == b))
FLOAT_MASK(nlt, !(a < b))

/* Bits of B: signalling NaN, quiet NaN, then from -infinity to +infinity. */
static bool in_class(uint64_t bits, int exponent_bits, int mantissa_bits, uint32_t wanted)
{
    const uint64_t all = (UINT64_C(1) << exponent_bits) - 1, exponent = bits >> mantissa_bits & all,
                   mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
    const bool negative = bits >> (exponent_bits + mantissa_bits) & 1;
    if (exponent == all && mantissa != 0) return wanted >> ((mantissa >> (mantissa_bits - 1)) != 0 ? 1 : 0) & 1;
    const int step = exponent == all ? 0 : exponent != 0 ? 1 : mantissa != 0 ? 2 : 3;
    return wanted >> (negative ? 2 + step : 9 - step) & 1;
}
MASK_OF(class_f32, in_class(A, 8, 23, B))
MASK_OF(class_f64, in_class(WA, 11, 52, B))
MASK_OF(class_f16, in_class(A & 0xffff, 5, 10, B))

/* v_cmpx writes EXEC as well; its opcodes stand 16 behind those of v_cmp. */
#define BOTH(name, suffix, opcode, words, flags, lanes) \
    { "v_cmp_" name "_" #suffix, opcode, words, flags, 0, valu_run, lanes }, \
    { "v_cmpx_" name "_" #suffix, (opcode) + 16, words, (flags) | ROW_WRITES_EXEC, 0, valu_run, lanes }
#define WHOLE(suffix, first, words) \
    BOTH("f", suffix, first, words, 0, never), BOTH("lt", suffix, first + 1, words, 0, lt_##suffix), \
    BOTH("eq", suffix, first + 2, words, 0, eq_##suffix), BOTH("le", suffix, first + 3, words, 0, le_##suffix), \
    BOTH("gt", suffix, first + 4, words, 0, gt_##suffix), BOTH("ne", suffix, first + 5, words, 0, ne_##suffix), \
    BOTH("ge", suffix, first + 6, words, 0, ge_##suffix), BOTH("t", suffix, first + 7, words, 0, always)
#define FLOAT(name, suffix, opcode, words, lanes) BOTH(name, suffix, opcode, words, ROW_FLOAT, lanes)
#define FLOATS(suffix, first, words) \
    FLOAT("f", suffix, first, words, never), FLOAT("lt", suffix, first + 1, words, lt), \
    FLOAT("eq", suffix, first + 2, words, eq), FLOAT("le", suffix, first + 3, words, le), \
    FLOAT("gt", suffix, first + 4, words, gt), FLOAT("lg", suffix, first + 5, words, lg), \
    FLOAT("ge", suffix, first + 6, words, ge), FLOAT("o", suffix, first + 7, words, o), \
    FLOAT("u", suffix, first + 8, words, u), FLOAT("nge", suffix, first + 9, words, nge), \
    FLOAT("nlg", suffix, first + 10, words, nlg), FLOAT("ngt", suffix, first + 11, words, ngt), \
    FLOAT("nle", suffix, first + 12, words, nle), FLOAT("neq", suffix, first + 13, words, neq), \
    FLOAT("nlt", suffix, first + 14, words, nlt), FLOAT("tru", suffix, first + 15, words, always)
/* of classes the opcodes stand side by side */
#define CLASS(suffix, opcode, words) \
    { "v_cmp_class_" #suffix, opcode, words, ROW_FLOAT, 0, valu_run, class_##suffix }, \
    { "v_cmpx_class_" #suffix, opcode + 1, words, ROW_FLOAT | ROW_WRITES_EXEC, 0, valu_run, class_##suffix }
static const struct row rows[] = {
    CLASS(f32, 16, "c2 s1f s1"), CLASS(f64, 18, "c2 s2e s1"), CLASS(f16, 20, "c2 s1h s1"),
    FLOATS(f16, 32, "c2 s1h s1h"), FLOATS(f32, 64, "c2 s1f s1f"), FLOATS(f64, 96, "c2 s2e s2e"),
    WHOLE(i16, 160, "c2 s1w s1w"), WHOLE(u16, 168, "c2 s1w s1w"),
    WHOLE(i32, 192, "c2 s1 s1"), WHOLE(u32, 200, "c2 s1 s1"),
    WHOLE(i64, 224, "c2 s2i s2i"), WHOLE(u64, 232, "c2 s2i s2i"),
};
const struct family family_compare = FAMILY("Vector ALU Operations", FORMAT_VOPC, rows);
