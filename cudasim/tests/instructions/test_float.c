/* f32, f64 and f16 arithmetic in every rounding mode against the host's own (which is asked for the mode), at the
 * boundaries. */
#include <fenv.h>
#include <math.h>

#include "tests/support/operate.h"

static float f32(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, 4);
    return x;
}
static double f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
static uint64_t b32(float x)
{
    uint32_t bits;
    if (isnan(x)) return 0x7fffffff;
    memcpy(&bits, &x, 4);
    return bits;
}
static uint64_t b64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

/* The host's operation in a rounding mode; volatile keeps it between the two changes of mode. */
#define IN_MODE(type, mode, expression) \
    volatile type x = in_a, y = in_b, z = in_c, r; \
    (void)y, (void)z; \
    fesetround(mode); \
    r = (expression); \
    fesetround(FE_TONEAREST); \
    return r;

#define MODES(name, type, expression) \
    static type name##_rn(type in_a, type in_b, type in_c) { IN_MODE(type, FE_TONEAREST, expression) } \
    static type name##_rz(type in_a, type in_b, type in_c) { IN_MODE(type, FE_TOWARDZERO, expression) } \
    static type name##_rm(type in_a, type in_b, type in_c) { IN_MODE(type, FE_DOWNWARD, expression) } \
    static type name##_rp(type in_a, type in_b, type in_c) { IN_MODE(type, FE_UPWARD, expression) }

MODES(add32, float, x + y)
MODES(mul32, float, x * y)
MODES(div32, float, x / y)
MODES(fma32, float, fmaf(x, y, z))
MODES(sqrt32, float, sqrtf(x))
MODES(add64, double, x + y)
MODES(mul64, double, x * y)
MODES(div64, double, x / y)
MODES(fma64, double, fma(x, y, z))
MODES(sqrt64, double, sqrt(x))

#define WRAP32(name) \
    static uint64_t w_##name(uint64_t a, uint64_t b, uint64_t c) { return b32(name(f32(a), f32(b), f32(c))); }
/* f64: a NaN operand is kept (quieted): the second, else the third, else the first (div: the first); others are the
 * default NaN. */
static uint64_t nan64(uint64_t a, uint64_t b, uint64_t c, double r, const char *order)
{
    const uint64_t all[3] = { a, b, c };
    for (; *order != '\0'; order++)
        if (isnan(f64(all[*order - 'a']))) return all[*order - 'a'] | UINT64_C(1) << 51;
    return isnan(r) ? UINT64_C(0xfff8000000000000) : b64(r);
}
#define WRAP64(name, order) \
    static uint64_t w_##name(uint64_t a, uint64_t b, uint64_t c) \
    { \
        return nan64(a, b, c, name(f64(a), f64(b), f64(c)), order); \
    }
#define WRAP4_32(name) WRAP32(name##_rn) WRAP32(name##_rz) WRAP32(name##_rm) WRAP32(name##_rp)
#define WRAP4_64(name, order) \
    WRAP64(name##_rn, order) WRAP64(name##_rz, order) WRAP64(name##_rm, order) WRAP64(name##_rp, order)
WRAP4_32(add32)
WRAP4_32(mul32)
WRAP4_32(div32)
WRAP4_32(fma32)
WRAP4_32(sqrt32)
WRAP4_64(add64, "ba")
WRAP4_64(mul64, "ba")
WRAP4_64(div64, "ab")
WRAP4_64(fma64, "bca")
WRAP4_64(sqrt64, "a")

#define FOUR(before, after, kind, name) \
    { before ".rn" after, kind, w_##name##_rn }, { before ".rz" after, kind, w_##name##_rz }, \
    { before ".rm" after, kind, w_##name##_rm }, { before ".rp" after, kind, w_##name##_rp }

static void rounded_f32(struct test *t)
{
    static const struct operation operations[] = {
        FOUR("add", ".f32 %f9, %f1, %f2;", 'f', add32), FOUR("mul", ".f32 %f9, %f1, %f2;", 'f', mul32),
        FOUR("div", ".f32 %f9, %f1, %f2;", 'f', div32), FOUR("fma", ".f32 %f9, %f1, %f2, %f3;", 'f', fma32),
        FOUR("sqrt", ".f32 %f9, %f1;", 'f', sqrt32),
    };
    static uint64_t a[1600], b[1600], c[1600];
    const struct operands in = { a, b, c, boundary_floats(t, 32, a, b, c, 1600) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
}

static void rounded_f64(struct test *t)
{
    static const struct operation operations[] = {
        FOUR("add", ".f64 %fd9, %fd1, %fd2;", 'F', add64), FOUR("mul", ".f64 %fd9, %fd1, %fd2;", 'F', mul64),
        FOUR("div", ".f64 %fd9, %fd1, %fd2;", 'F', div64), FOUR("fma", ".f64 %fd9, %fd1, %fd2, %fd3;", 'F', fma64),
        FOUR("sqrt", ".f64 %fd9, %fd1;", 'F', sqrt64),
    };
    static uint64_t a[1600], b[1600], c[1600];
    const struct operands in = { a, b, c, boundary_floats(t, 64, a, b, c, 1600) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
}

static float flush(float x) { return fpclassify(x) == FP_SUBNORMAL ? copysignf(0.0f, x) : x; }
static float saturate(float x) { return x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f; }
REFERENCE(add_ftz, b32(flush(flush(f32(a)) + flush(f32(b)))))
/* what is subnormal when it is rounded with an exponent that may be lower: the product of two floats is exact in
 * double */
static float flush_product(float x, float y)
{
    const double product = (double)x * (double)y;
    return fabs(product) < 0x1p-126 - 0x1p-151 ? copysignf(0.0f, (float)product) : (float)product;
}
REFERENCE(mul_ftz_sat, b32(saturate(flush_product(flush(f32(a)), flush(f32(b))))))
REFERENCE(minimum, isnan(f32(a)) && isnan(f32(b))                             ? 0x7fffffff
                   : isnan(f32(a))                                            ? (uint32_t)b
                   : isnan(f32(b))                                            ? (uint32_t)a
                   : f32(a) < f32(b) || (f32(a) == f32(b) && signbit(f32(a))) ? (uint32_t)a
                                                                              : (uint32_t)b)
REFERENCE(maximum_nan, isnan(f32(a)) || isnan(f32(b))                             ? 0x7fffffff
                       : f32(a) > f32(b) || (f32(a) == f32(b) && signbit(f32(b))) ? (uint32_t)a
                                                                                  : (uint32_t)b)
REFERENCE(negated, isnan(f32(a)) ? 0x7fffffff : (uint32_t)a ^ 0x80000000u)
REFERENCE(less_unordered, !(f32(a) >= f32(b)))
REFERENCE(equal, f32(a) == f32(b))
REFERENCE(to_s32, isnan(f32(a))              ? 0
                  : f32(a) >= 2147483648.0f  ? INT32_MAX
                  : f32(a) <= -2147483648.0f ? (uint32_t)INT32_MIN
                                             : (uint32_t)(int32_t)f32(a))
REFERENCE(to_u8, isnan(f32(a)) ? 0 : f32(a) >= 255.0f ? 255 : f32(a) <= 0.0f ? 0 : (uint32_t)rintf(f32(a)))
REFERENCE(from_s64, b32((float)(int64_t)a))
REFERENCE(narrow, isnan(f64(a)) ? (a >> 63) << 31 | 0x7fc00000 | (a >> 29 & 0x7fffff) : b32((float)f64(a)))
REFERENCE(widen, isnan(f32(a)) ? (a >> 31 & 1) << 63 | UINT64_C(0x7ff8000000000000) | (a & 0x7fffff) << 29
                               : b64((double)f32(a)))
REFERENCE(floor32, b32(floorf(f32(a))))

static void flushing_picking_converting(struct test *t)
{
    static const struct operation operations[] = {
        { "add.ftz.f32 %f9, %f1, %f2;", 'f', add_ftz }, { "mul.rn.ftz.sat.f32 %f9, %f1, %f2;", 'f', mul_ftz_sat },
        { "min.f32 %f9, %f1, %f2;", 'f', minimum },     { "max.NaN.f32 %f9, %f1, %f2;", 'f', maximum_nan },
        { "neg.f32 %f9, %f1;", 'f', negated },          { "setp.ltu.f32 %p9, %f1, %f2;", 'p', less_unordered },
        { "setp.eq.f32 %p9, %f1, %f2;", 'p', equal },   { "cvt.rzi.s32.f32 %r9, %f1;", 'r', to_s32 },
        { "cvt.rni.u8.f32 %r9, %f1;", 'r', to_u8 },     { "cvt.rn.f32.s64 %f9, %rd1;", 'f', from_s64 },
        { "cvt.f64.f32 %fd9, %f1;", 'F', widen },       { "cvt.rmi.f32.f32 %f9, %f1;", 'f', floor32 },
    };
    static const struct operation from_f64 = { "cvt.rn.f32.f64 %f9, %fd1;", 'f', narrow };
    static uint64_t a[1600], b[1600], c[1600];
    struct operands in = { a, b, c, boundary_floats(t, 32, a, b, c, 1600) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
    in.count = boundary_floats(t, 64, a, b, c, 1600);
    operate(t, "sm_90a", &from_f64, &in);
}

/* f16: every sum, product and fused product of two is exact in f64 apart from the fused one's last bits, which f64
 * keeps enough of; nearest-even to f16 by looking at both neighbours. */
static double value16(uint64_t h)
{
    const int exponent = (int)(h >> 10 & 31);
    const double m = (double)(h & 1023), sign = (h & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) return (h & 1023) != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent == 0 ? ldexp(m, -24) : ldexp(m + 1024.0, exponent - 25));
}
static uint64_t nearest16(double x)
{
    if (isnan(x)) return 0x7fff;
    const uint64_t sign = signbit(x) ? 0x8000 : 0;
    x = fabs(x);
    if (x >= 65520.0) return sign | 0x7c00;
    uint64_t low = 0, high = 0x7bff;                    /* the largest code that is not above x */
    while (low < high) {
        const uint64_t middle = (low + high + 1) / 2;
        if (value16(middle) <= x) low = middle;
        else high = middle - 1;
    }
    if (low == 0x7bff) return sign | low;
    const double below = x - value16(low), above = value16(low + 1) - x;
    return sign | (below < above || (below == above && (low & 1) == 0) ? low : low + 1);
}
REFERENCE(add_f16, nearest16(value16(a & 0xffff) + value16(b & 0xffff)))
REFERENCE(mul_f16, nearest16(value16(a & 0xffff) * value16(b & 0xffff)))
REFERENCE(relu_f16, (nearest16(fma(value16(a & 0xffff), value16(b & 0xffff), value16(c & 0xffff))) & 0x8000) != 0
                        ? 0
                        : nearest16(fma(value16(a & 0xffff), value16(b & 0xffff), value16(c & 0xffff))))
REFERENCE(to_f16, nearest16((double)f32(a)))
REFERENCE(from_f16, isnan(value16(a & 0xffff)) ? 0x7fffffff : b32((float)value16(a & 0xffff)))

static void halves(struct test *t)
{
    static const struct operation operations[] = {
        { "add.f16 %rs9, %rs1, %rs2;", 's', add_f16 },
        { "mul.f16 %rs9, %rs1, %rs2;", 's', mul_f16 },
        { "fma.rn.relu.f16 %rs9, %rs1, %rs2, %rs3;", 's', relu_f16 },
        { "cvt.f32.f16 %f9, %rs1;", 'f', from_f16 },
    };
    static const struct operation narrowing = { "cvt.rn.f16.f32 %rs9, %f1;", 's', to_f16 };
    static uint64_t a[1600], b[1600], c[1600];
    struct operands in = { a, b, c, boundary_floats(t, 16, a, b, c, 1600) };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) operate(t, "sm_90a", &operations[i], &in);
    in.count = boundary_floats(t, 32, a, b, c, 1600);
    operate(t, "sm_90a", &narrowing, &in);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(rounded_f32), TEST(rounded_f64), TEST(flushing_picking_converting),
                                              TEST(halves) };
    return TEST_MAIN(argc, argv, cases);
}
