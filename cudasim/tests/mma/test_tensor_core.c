/* The models of the tensor cores against sums in integers of 1024 bits, and against results worked out by hand. */
#include "tests/reference/tensor_reference.h"
#include "test.h"

#include <math.h>

enum { MOST = 64 };

struct dot { enum tensor_format fa, fb; int length; uint32_t a[MOST], b[MOST], c; };

static uint32_t run_dot(const struct tensor_model *model, const struct dot *dot)
{
    TENSOR_STORAGE(sa, 1, MOST);
    TENSOR_STORAGE(sb, 1, MOST);
    struct tensor_panel a = TENSOR_PANEL(sa), b = TENSOR_PANEL(sb);
    tensor_clear(&a, 1, (uint32_t)dot->length);
    tensor_clear(&b, 1, (uint32_t)dot->length);
    for (int k = 0; k < dot->length; k++) {
        tensor_set(&a, 0, (uint32_t)k, dot->fa, dot->a[k]);
        tensor_set(&b, 0, (uint32_t)k, dot->fb, dot->b[k]);
    }
    return tensor_dot(model, &a, 0, &b, 0, dot->c);
}

static float f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static uint32_t bits(float value)
{
    uint32_t u;
    memcpy(&u, &value, 4);
    return u;
}

/* Codes whose values are near each other, at the ends of the range, or anything at all. */
static uint32_t draw(struct test *t, enum tensor_format format, int manner)
{
    static const struct { int exponent, fraction, low;
    } layout[] = {
        [TENSOR_F16] = { 5, 10, 0 }, [TENSOR_BF16] = { 8, 7, 0 }, [TENSOR_TF32] = { 8, 10, 13 },
        [TENSOR_E5M2] = { 5, 2, 0 }, [TENSOR_E4M3] = { 4, 3, 0 }, [TENSOR_E3M2] = { 3, 2, 0 },
        [TENSOR_E2M3] = { 2, 3, 0 }, [TENSOR_E2M1] = { 2, 1, 0 },
    };
    const int e = layout[format].exponent, f = layout[format].fraction, low = layout[format].low;
    const uint32_t any = (uint32_t)rnd(t) & (uint32_t)((UINT64_C(2) << (e + f + low)) - 1);
    const uint32_t sign = (uint32_t)(rnd(t) & 1) << (e + f), fraction = (uint32_t)rnd_below(t, INT64_C(1) << f);
    const int middle = (1 << (e - 1)) - 1;
    const uint32_t near = (uint32_t)rnd_between(t, middle - 3 < 0 ? 0 : middle - 3, middle + 1) << f;
    switch (manner) {
    case 0: return any;
    case 1: return (sign | near | fraction) << low;
    case 2: return (sign | (rnd(t) % 4 == 0 ? near : 0) | fraction) << low;       /* subnormals, zeros */
    default: {
        const uint32_t ends[] = {
            0, 1, (1u << f) - 1, 1u << f, ((1u << e) - 2) << f | ((1u << f) - 1), (uint32_t)middle << f
        };
        return (sign | ends[rnd(t) % 6]) << low;
    }
    }
}

static uint32_t draw_c(struct test *t, bool half, int manner)
{
    const uint32_t code = (uint32_t)rnd(t);
    if (manner == 0) return half ? code & 0xffff : code;
    if (manner == 3) return code & (half ? 0x8000 : 0x80000000);
    if (half) return (code & 0x83ff) | (uint32_t)rnd_between(t, 10, 17) << 10;
    return (code & 0x807fffff) | (uint32_t)rnd_between(t, 115, 131) << 23;
}

struct setting {
    const char *name;
    uint32_t sm;
    enum tensor_instruction instruction;
    enum tensor_format a, b;
    bool half;
    int k;
    struct reference_model model;
};

static const struct setting settings[] = {
    { "mma f16", 90, TENSOR_MMA_SYNC, TENSOR_F16, TENSOR_F16, false, 16, { 16, 25, 0, TENSOR_TO_F32 } },
    { "mma f16 to f16", 90, TENSOR_MMA_SYNC, TENSOR_F16, TENSOR_F16, true, 8, { 8, 25, 0, TENSOR_TO_F16 } },
    { "mma bf16", 100, TENSOR_MMA_SYNC, TENSOR_BF16, TENSOR_BF16, false, 16, { 16, 25, 0, TENSOR_TO_F32 } },
    { "mma tf32", 90, TENSOR_MMA_SYNC, TENSOR_TF32, TENSOR_TF32, false, 4, { 4, 25, 0, TENSOR_TO_F32 } },
    { "mma e4m3", 90, TENSOR_MMA_SYNC, TENSOR_E4M3, TENSOR_E5M2, false, 32, { 16, 25, 1, TENSOR_TO_F32 } },
    { "mma e4m3 to f16", 100, TENSOR_MMA_SYNC, TENSOR_E4M3, TENSOR_E4M3, true, 16, { 8, 25, 1, TENSOR_TO_F16 } },
    { "mma e5m2", 120, TENSOR_MMA_SYNC, TENSOR_E5M2, TENSOR_E4M3, false, 32, { 32, 25, 0, TENSOR_TO_F32 } },
    { "wgmma f16", 90, TENSOR_WGMMA, TENSOR_F16, TENSOR_F16, false, 16, { 16, 25, 0, TENSOR_TO_F32 } },
    { "wgmma tf32", 90, TENSOR_WGMMA, TENSOR_TF32, TENSOR_TF32, false, 8, { 8, 25, 0, TENSOR_TO_F32 } },
    { "wgmma fp8", 90, TENSOR_WGMMA, TENSOR_E4M3, TENSOR_E5M2, false, 32, { 32, 13, 0, TENSOR_TO_F32_E8M13 } },
    { "wgmma fp8 to f16", 90, TENSOR_WGMMA, TENSOR_E4M3, TENSOR_E4M3, true, 32, { 32, 13, 0, TENSOR_TO_F16 } },
    { "tcgen05 f6, f4", 100, TENSOR_TCGEN05, TENSOR_E3M2, TENSOR_E2M1, false, 32, { 32, 25, 0, TENSOR_TO_F32 } },
    { "tcgen05 f8, f6", 100, TENSOR_TCGEN05, TENSOR_E4M3, TENSOR_E2M3, false, 32, { 32, 25, 0, TENSOR_TO_F32 } },
};

static void sums_equal_those_of_long_integers(struct test *t)
{
    for (size_t s = 0; s < sizeof settings / sizeof settings[0]; s++) {
        const struct setting *set = &settings[s];
        const struct tensor_model model =
            tensor_model_of(TENSOR_MODE_MODEL, set->sm, set->instruction, set->a, set->b, set->half, (uint32_t)set->k);
        for (int i = 0; i < 4000; i++) {
            struct dot dot = { .fa = set->a, .fb = set->b, .length = set->k };
            const int manner = i % 8 < 4 ? 1 : i % 8 - 4;
            for (int k = 0; k < set->k; k++) {
                dot.a[k] = draw(t, set->a, manner), dot.b[k] = draw(t, set->b, manner);
                if (manner == 1 && i % 3 == 0 && k % 2 == 1 && set->a == set->b) {                  /* cancellation */
                    dot.a[k] = dot.a[k - 1] ^ 1u << (tensor_format_bits(set->a) - 1),
                    dot.b[k] = dot.b[k - 1] ^ (k % 4 == 3);
                }
            }
            dot.c = draw_c(t, set->half, manner == 1 ? i % 5 : manner);
            const uint32_t got = run_dot(&model, &dot);
            const uint32_t want = reference_dot(&set->model, set->a, dot.a, set->b, dot.b, set->k, dot.c);
            if (got != want) FAIL(t, "%s, case %d: 0x%x, not 0x%x (c 0x%x)", set->name, i, got, want, dot.c);
        }
    }
}

/* c = 1 and sixteen products of 2^-n: kept while 2^-n has a place among the fraction bits. */
static uint32_t one_and_small(struct tensor_model model, enum tensor_format format, uint32_t x, uint32_t y, int length,
                              uint32_t c)
{
    struct dot dot = { .fa = format, .fb = format, .length = length, .c = c };
    for (int k = 0; k < length; k++) dot.a[k] = x, dot.b[k] = y;
    return run_dot(&model, &dot);
}

static void bits_behind_the_last_are_dropped(struct test *t)
{
    const struct tensor_model wide =
        tensor_model_of(TENSOR_MODE_MODEL, 90, TENSOR_WGMMA, TENSOR_BF16, TENSOR_BF16, false, 16);
    const uint32_t one = bits(1.0f);
    /* 2^-11 * 2^-12 * 16 */
    CHECK(t, one_and_small(wide, TENSOR_BF16, 0x3a00, 0x3980, 16, one) == bits(1.0f + 0x1p-19f));
    /* 2^-25: the last place */
    CHECK(t, one_and_small(wide, TENSOR_BF16, 0x3980, 0x3900, 16, one) == bits(1.0f + 0x1p-21f));
    /* 2^-26: all sixteen dropped */
    CHECK(t, one_and_small(wide, TENSOR_BF16, 0x3900, 0x3900, 16, one) == one);
    const struct tensor_model fp8 =
        tensor_model_of(TENSOR_MODE_MODEL, 90, TENSOR_WGMMA, TENSOR_E5M2, TENSOR_E5M2, false, 32);
    /* 2^-7 * 2^-6 * 32 */
    CHECK(t, one_and_small(fp8, TENSOR_E5M2, 0x20, 0x24, 32, one) == bits(1.0f + 0x1p-8f));
    CHECK(t, one_and_small(fp8, TENSOR_E5M2, 0x20, 0x20, 32, one) == one);                          /* 2^-14 */
    CHECK(t, one_and_small(fp8, TENSOR_E5M2, 0, 0, 32, bits(1.0f + 0x1p-13f + 0x1p-14f)) == bits(1.0f + 0x1p-13f));
    /* toward zero, also below it */
    CHECK(t, one_and_small(fp8, TENSOR_E5M2, 0, 0, 32, bits(-1.0f - 0x1p-14f)) == bits(-1.0f));
}

static void specials_have_one_code_each(struct test *t)
{
    const struct tensor_model to_f32 =
        tensor_model_of(TENSOR_MODE_MODEL, 90, TENSOR_WGMMA, TENSOR_F16, TENSOR_F16, false, 16);
    const struct tensor_model to_f16 =
        tensor_model_of(TENSOR_MODE_MODEL, 90, TENSOR_WGMMA, TENSOR_F16, TENSOR_F16, true, 16);
    CHECK(t, one_and_small(to_f32, TENSOR_F16, 0x7c00, 0, 16, 0) == 0x7fffffff);                    /* Inf * 0 */
    CHECK(t, one_and_small(to_f16, TENSOR_F16, 0x7c00, 0, 16, 0) == 0x7fff);
    /* a NaN with a sign */
    CHECK(t, one_and_small(to_f32, TENSOR_F16, 0x3c00, 0xfe01, 16, 0) == 0x7fffffff);
    CHECK(t, one_and_small(to_f32, TENSOR_F16, 0xfc00, 0x3c00, 16, 0) == 0xff800000);
    CHECK(t, one_and_small(to_f32, TENSOR_F16, 0xfc00, 0x3c00, 16, 0x7f800000) == 0x7fffffff);      /* -Inf + Inf */
    CHECK(t, one_and_small(to_f16, TENSOR_F16, 0x7800, 0x4000, 16, 0) == 0x7c00);                   /* 16 * 2^16 */
    /* zeros: positive */
    CHECK(t, one_and_small(to_f32, TENSOR_F16, 0x8000, 0x3c00, 16, 0x80000000) == 0);
    /* a subnormal c stays */
    CHECK(t, one_and_small(to_f32, TENSOR_F16, 0, 0, 16, 1) == 1);
}

static void fp32_mode_is_a_chain_of_fma(struct test *t)
{
    const struct tensor_model model =
        tensor_model_of(TENSOR_MODE_FP32, 90, TENSOR_WGMMA, TENSOR_BF16, TENSOR_BF16, false, 16);
    for (int i = 0; i < 1000; i++) {
        struct dot dot = { .fa = TENSOR_BF16, .fb = TENSOR_BF16, .length = 16, .c = draw_c(t, false, i % 4) };
        volatile float want = f32(dot.c);
        for (int k = 0; k < 16; k++) {
            dot.a[k] = draw(t, TENSOR_BF16, i % 4), dot.b[k] = draw(t, TENSOR_BF16, i % 4);
            want = fmaf(f32(dot.a[k] << 16), f32(dot.b[k] << 16), want);
        }
        const uint32_t got = run_dot(&model, &dot);
        if (isnan(want) ? got != 0x7fffffff : got != bits(want)) FAIL(t, "case %d: 0x%x, not 0x%x", i, got, bits(want));
    }
}

static void integers_wrap_or_stay_at_the_end(struct test *t)
{
    CHECK(t, tensor_accumulate(INT32_MAX, 1, false) == INT32_MIN && tensor_accumulate(INT32_MAX, 1, true) == INT32_MAX);
    CHECK(t,
          tensor_accumulate(INT32_MIN, -5, true) == INT32_MIN && tensor_accumulate(INT32_MIN, -1, false) == INT32_MAX);
    const int16_t a[] = { 127, -128, 255, 0, 1, 2, 3, 4 }, b[] = { 255, 255, 1, -7 };
    int32_t d[] = { INT32_MAX, 5 };
    tensor_multiply_integers(a, 2, b, 1, 4, true, d);
    CHECK(t, d[0] == INT32_MAX && d[1] == 5 + 255 + 510 + 3 - 28);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(sums_equal_those_of_long_integers), TEST(bits_behind_the_last_are_dropped),
        TEST(specials_have_one_code_each),       TEST(fp32_mode_is_a_chain_of_fma),
        TEST(integers_wrap_or_stay_at_the_end),
    };
    return TEST_MAIN(argc, argv, cases);
}
