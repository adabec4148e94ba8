/* Everything behind S against a second model: f, beta C, bias, activation, gating, amax; bit for bit. */
#include "naive_orders.h"

#include <math.h>
#include <stdlib.h>

enum { M = 9, N = 38, K = 70 };

static float nan_float(void) { return (float)NAN; }

static bool same_float(float x, float y) { return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0; }
static bool is_canonical(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return !isnan(x) || bits == 0x7fc00000;
}

/* One product, its S by the naive sum, and what the call's fields say. */
struct fixture {
    bsm_context *context;
    struct operand a, b;
    float s[M][N];
    float ta, tb;
    struct operand c, d;
    bsm_matmul call;
};

static void fixture_make(struct test *t, struct fixture *x, bsm_format fa, bsm_format fb, bsm_format fc)
{
    memset(x, 0, sizeof *x);
    CHECK(t, bsm_context_create(NULL, &x->context) == BSM_OK);
    x->a = operand_make(&(struct shape){ .format = fa, .rows = M, .columns = K }, 0xff);
    x->b = operand_make(&(struct shape){ .format = fb, .rows = N, .columns = K }, 0xff);
    x->c = operand_make(&(struct shape){ .format = fc, .rows = M, .columns = N, .extra_pitch = 64 }, 0xff);
    x->d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N }, 0xff);
    operand_fill(t, &x->a, false);
    operand_fill(t, &x->b, false);
    operand_fill(t, &x->c, false);
    x->call = (bsm_matmul){ .struct_size = sizeof x->call, .a = &x->a.m, .b = &x->b.m, .d = &x->d.m };
    const enum unit_order order = unit_order_of(x->context, &x->call);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) x->s[i][j] = naive_sum_in(order, &x->a.m, 0, i, &x->b.m, 0, j);
}

static void fixture_free(struct fixture *x)
{
    operand_free(&x->a), operand_free(&x->b), operand_free(&x->c), operand_free(&x->d);
    bsm_context_destroy(x->context);
}

static float c_value(const struct fixture *x, int i, int j)
{
    uint32_t code = 0;
    if (bsm_matrix_get_code(&x->c.m, 0, i, j, &code) != BSM_OK) return nan_float();
    return (float)naive_element(bsm_format_get((int)x->c.m.format)->element, code);
}

static float bias_value(const struct fixture *x, int i, int j)
{
    const int index = x->call.bias_per == BSM_PER_ROW ? i : j;
    uint16_t half;
    if (x->call.bias_type == BSM_REAL_FP32) return ((const float *)x->call.bias)[index];
    memcpy(&half, (const uint16_t *)x->call.bias + index, sizeof half);
    return (float)naive_element(x->call.bias_type == BSM_REAL_BF16 ? BSM_BF16 : BSM_FP16, half);
}

/* f of the header: doubles, rounded once. */
static float factor(const struct fixture *x, int i, int j)
{
    double over = 1, f = 1;
    if (x->call.alpha != NULL)
        f = (double)x->call.alpha[x->call.alpha_per == BSM_PER_ROW ? i : x->call.alpha_per == BSM_PER_COLUMN ? j : 0];
    if (x->a.m.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES) over *= (double)x->ta;
    else if (x->a.m.tensor_scale != NULL) f *= (double)x->ta;
    if (x->b.m.tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES) over *= (double)x->tb;
    else if (x->b.m.tensor_scale != NULL) f *= (double)x->tb;
    return (float)(f / over);
}

/* f S + beta C + bias before the activation; i, j of the product, before gating. */
static float before_activation(const struct fixture *x, int i, int j)
{
    const float f = factor(x, i, j), s = x->s[i][j];
    const bool reads_c = x->call.beta != NULL && *x->call.beta != 0;
    if (reads_c && x->call.bias != NULL) return fmaf(f, s, fmaf(*x->call.beta, c_value(x, i, j), bias_value(x, i, j)));
    if (reads_c) return fmaf(f, s, *x->call.beta * c_value(x, i, j));
    if (x->call.bias != NULL) return fmaf(f, s, bias_value(x, i, j));
    return f * s;
}

static void expect_plain(struct test *t, struct fixture *x, const char *what)
{
    if (x->call.d == &x->d.m) memset(x->d.m.data, 0xff, x->d.data_bytes);
    if (bsm_multiply(x->context, &x->call) != BSM_OK) {
        FAIL(t, "%s: %s", what, bsm_last_error());
        return;
    }
    const float *d = x->call.d->data;
    const int64_t pitch = x->call.d->pitch != 0 ? x->call.d->pitch : N;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            const float want = before_activation(x, i, j), found = d[i * pitch + j];
            if (same_float(want, found) && is_canonical(found)) continue;
            FAIL(t, "%s: D[%d, %d] = %a, not %a", what, i, j, (double)found, (double)want);
            return;
        }
}

static const struct {
    bsm_format a, b;
} pairs[] = { { BSM_MXFP8_E4M3, BSM_MXFP8_E4M3 }, { BSM_NVFP4, BSM_MXFP4 }, { BSM_FORMAT_BF16, BSM_NVFP4 } };
static const bsm_format c_formats[] = { BSM_FORMAT_FP32, BSM_FORMAT_BF16, BSM_FORMAT_FP16 };

/* alpha, beta, C in each type; beta = 0 never reads C. */
static void alpha_and_beta(struct test *t)
{
    static const float grid[][2] = { { 1, 0 }, { -2, 0 }, { 1, 1 },       { 0.5f, -1 },
                                     { 0, 1 }, { 0, 0 },  { 0.1f, 0.3f }, { 1, -0.0f } };
    for (int p = 0; p < 3; p++)
        for (int c = 0; c < 3; c++) {
            struct fixture x;
            fixture_make(t, &x, pairs[p].a, pairs[p].b, c_formats[c]);
            for (size_t g = 0; g < sizeof grid / sizeof grid[0]; g++) {
                x.call.alpha = &grid[g][0], x.call.beta = &grid[g][1], x.call.c = &x.c.m;
                expect_plain(t, &x, "alpha and beta");
            }
            memset(x.c.m.data, 0xff, x.c.data_bytes);         /* all NaN */
            x.call.beta = &grid[0][1];
            expect_plain(t, &x, "beta = 0, C is NaN");
            x.call.c = NULL;
            expect_plain(t, &x, "beta = 0, no C");
            const float not_a_number = nan_float();
            x.call.alpha = &not_a_number, x.call.beta = NULL;
            expect_plain(t, &x, "alpha is NaN");
            fixture_free(&x);
        }
}

static void alpha_per_row_and_column(struct test *t)
{
    static const bsm_per pers[] = { BSM_PER_TENSOR, BSM_PER_ROW, BSM_PER_COLUMN, BSM_PER_BATCH };
    float alpha[N];
    struct fixture x;
    fixture_make(t, &x, BSM_MXFP8_E4M3, BSM_MXFP4, BSM_FORMAT_FP32);
    for (int j = 0; j < N; j++) alpha[j] = (float)rnd_normal(t);
    x.call.alpha = alpha;
    for (int p = 0; p < 4; p++) {
        x.call.alpha_per = pers[p];
        expect_plain(t, &x, "alpha per something");
    }
    fixture_free(&x);
}

/* Multipliers and divisors, also those whose product leaves fp32 while f does not. */
static void tensor_scales(struct test *t)
{
    static const float values[][2] = {
        { 0.37f, 3.1f }, { 0x1p-140f, 0x1p127f }, { 0x1.8p120f, 0x1.4p-130f }, { 1, 0x1p-20f }
    };
    const float alpha = 1.7f;
    for (int v = 0; v < 4; v++)
        for (int uses = 0; uses < 4; uses++) {
            struct fixture x;
            fixture_make(t, &x, BSM_NVFP4, BSM_NVFP4, BSM_FORMAT_FP32);
            x.ta = values[v][0], x.tb = values[v][1];
            x.a.m.tensor_scale = &x.ta, x.b.m.tensor_scale = &x.tb;
            x.a.m.tensor_scale_use = (uses & 1) != 0 ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES;
            x.b.m.tensor_scale_use = (uses & 2) != 0 ? BSM_TENSOR_SCALE_DIVIDES : BSM_TENSOR_SCALE_MULTIPLIES;
            x.call.alpha = &alpha;
            expect_plain(t, &x, "tensor scales");
            fixture_free(&x);
        }
}

static void biases(struct test *t)
{
    const float alpha = 0.7f, betas[] = { 0, -1.3f };
    for (int type = 0; type < 3; type++)
        for (int per = 0; per < 2; per++)
            for (int with_c = 0; with_c < 2; with_c++) {
                struct fixture x;
                float single[N];
                uint16_t half[N];
                fixture_make(t, &x, BSM_MXFP8_E4M3, BSM_MXFP4, BSM_FORMAT_BF16);
                for (int j = 0; j < N; j++) {
                    single[j] = (float)rnd_normal(t);
                    half[j] = (uint16_t)bsm_element_encode(type == 1 ? BSM_FP16 : BSM_BF16, (double)single[j],
                                                           BSM_ROUND_NEAREST_EVEN, true, 0);
                }
                x.call.bias_type = type == 0 ? BSM_REAL_FP32 : type == 1 ? BSM_REAL_FP16 : BSM_REAL_BF16;
                x.call.bias = type == 0 ? (const void *)single : (const void *)half;
                x.call.bias_per = per == 0 ? BSM_PER_ROW : BSM_PER_COLUMN;
                x.call.alpha = &alpha, x.call.beta = &betas[with_c], x.call.c = &x.c.m;
                expect_plain(t, &x, "bias");
                fixture_free(&x);
            }
}

/* D is C: the same memory, read before it is written. */
static void c_in_place(struct test *t)
{
    const float alpha = 1.5f, beta = -0.75f;
    struct fixture x;
    fixture_make(t, &x, BSM_MXFP6_E3M2, BSM_MXINT8, BSM_FORMAT_FP32);
    struct operand both = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                                                        .extra_pitch = 64 }, 0xff);
    memcpy(both.m.data, x.c.m.data, x.c.data_bytes);
    x.call.alpha = &alpha, x.call.beta = &beta, x.call.c = &both.m, x.call.d = &both.m;
    expect_plain(t, &x, "C is D");
    operand_free(&both);
    fixture_free(&x);
}

/* Activations ------------------------------------------------------------------------------------------------------ */

/* Long double, in the textbook form of the header. */
static long double reference(bsm_activation activation, long double v)
{
    switch (activation) {
    case BSM_ACT_RELU: return v > 0 ? v : 0;
    case BSM_ACT_GELU: return v * erfcl(-v * 0.707106781186547524400844362104849039L) / 2;
    case BSM_ACT_GELU_TANH:
        return v / (1 + expl(-2 * 0.797884560802865355879892119868763737L * (v + 0.044715L * v * v * v)));
    case BSM_ACT_SILU: return v / (1 + expl(-v));
    default: return v;
    }
}

static long double reference_gated(bsm_activation activation, long double gate, long double up)
{
    if (activation != BSM_ACT_SWIGLU_CLAMPED) return reference(activation, gate) * up;
    const long double g = gate > 7 ? 7 : gate, u = up > 7 ? 7 : up < -7 ? -7 : up;
    return g / (1 + expl(-1.702L * g)) * (u + 1);
}

/* Correct rounding of the long double, or the neighbour on the other side of it: double evaluation is no closer than
 * that. */
static bool rounds_to(float found, long double want)
{
    const float nearest = (float)want;
    if (isnan(nearest) || isnan(found)) return isnan(nearest) && isnan(found) && is_canonical(found);
    if (same_float(found, nearest)) return true;
    const long double ulp = (long double)fabsf(nextafterf(nearest, INFINITY) - nearest);
    return fabsl((long double)found - want) <= 0.50001L * ulp;
}

static const bsm_activation plain[] = { BSM_ACT_RELU, BSM_ACT_GELU, BSM_ACT_GELU_TANH, BSM_ACT_SILU };

static void activations(struct test *t)
{
    struct fixture x;
    fixture_make(t, &x, BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, BSM_FORMAT_FP32);
    for (int scale = -12; scale <= 0; scale += 4) {
        const float alpha = ldexpf(1, scale);
        x.call.alpha = &alpha;
        for (int a = 0; a < 4; a++) {
            x.call.activation = plain[a];
            CHECK_OR_RETURN(t, bsm_multiply(x.context, &x.call) == BSM_OK);
            for (int i = 0; i < M; i++)
                for (int j = 0; j < N; j++) {
                    const float found = ((float *)x.d.m.data)[i * N + j], in = before_activation(&x, i, j);
                    if (!rounds_to(found, reference(plain[a], (long double)in)))
                        FAIL(t, "%s(%a) = %a, not %La", bsm_activation_name((int)plain[a]), (double)in, (double)found,
                             reference(plain[a], (long double)in));
                }
        }
    }
    fixture_free(&x);
}

/* K = 0: t is C itself, so that C chooses the argument. */
static float activate_one(struct test *t, bsm_context *context, bsm_activation activation, float value)
{
    const float one = 1;
    float c = value, d = 123;
    const bsm_matrix a = { .struct_size = sizeof a, .format = BSM_FORMAT_FP32, .rows = 1 }, b = a;
    const bsm_matrix mc = { .struct_size = sizeof mc, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 1, .data = &c };
    const bsm_matrix md = { .struct_size = sizeof md, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 1, .data = &d };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .beta = &one, .c = &mc, .d = &md,
                              .activation = activation };
    CHECK(t, bsm_multiply(context, &call) == BSM_OK);
    return d;
}

static void activations_of_special_values(struct test *t)
{
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (int a = 0; a < 4; a++) {
        CHECK(t, isnan(activate_one(t, context, plain[a], nan_float()))
                     && is_canonical(activate_one(t, context, plain[a], -nan_float())));
        CHECK(t, activate_one(t, context, plain[a], INFINITY) == INFINITY);
        CHECK(t, activate_one(t, context, plain[a], 0) == 0 && activate_one(t, context, plain[a], -0.0f) == 0);
        CHECK(t,
              activate_one(t, context, plain[a], 100) == 100 && fabsf(activate_one(t, context, plain[a], -200)) == 0);
        const float tiny = activate_one(t, context, plain[a], 0x1p-149f);       /* gelu, silu: half of it, a tie to
                                                                                   even */
        CHECK(t, plain[a] == BSM_ACT_RELU ? tiny == 0x1p-149f : tiny == 0 || tiny == 0x1p-149f);
    }
    CHECK(t, activate_one(t, context, BSM_ACT_RELU, -INFINITY) == 0);
    /* infinity times zero */
    for (int a = 1; a < 4; a++) CHECK(t, isnan(activate_one(t, context, plain[a], -INFINITY)));
    bsm_context_destroy(context);
}

/* Gating ----------------------------------------------------------------------------------------------------------- */

static void gating(struct test *t)
{
    static const bsm_activation gated[] = { BSM_ACT_SILU, BSM_ACT_GELU, BSM_ACT_GELU_TANH,
                                            BSM_ACT_RELU, BSM_ACT_NONE, BSM_ACT_SWIGLU_CLAMPED };
    const float beta = 0.5f;
    for (int split = 0; split < 2; split++) {
        struct fixture x;
        float alpha[N], bias[N], d[M][N / 2];
        fixture_make(t, &x, BSM_MXFP8_E4M3, BSM_MXFP4, BSM_FORMAT_BF16);
        for (int j = 0; j < N; j++) alpha[j] = (float)rnd_normal(t) * 0x1p-6f, bias[j] = (float)rnd_normal(t);
        const bsm_matrix md = { .struct_size = sizeof md, .format = BSM_FORMAT_FP32, .rows = M, .columns = N / 2,
                                .data = d };
        x.call.alpha = alpha, x.call.alpha_per = BSM_PER_COLUMN, x.call.beta = &beta, x.call.c = &x.c.m;
        x.call.bias = bias, x.call.bias_per = BSM_PER_COLUMN, x.call.bias_type = BSM_REAL_FP32;
        x.call.gate = split ? BSM_GATE_SPLIT : BSM_GATE_INTERLEAVED, x.call.d = &md;
        for (size_t g = 0; g < sizeof gated / sizeof gated[0]; g++) {
            x.call.activation = gated[g];
            if (bsm_multiply(x.context, &x.call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
            for (int i = 0; i < M; i++)
                for (int j = 0; j < N / 2; j++) {
                    const float gate = before_activation(&x, i, split ? j : 2 * j),
                                up = before_activation(&x, i, split ? N / 2 + j : 2 * j + 1);
                    const long double want = reference_gated(gated[g], (long double)gate, (long double)up);
                    if (!rounds_to(d[i][j], want))
                        FAIL(t, "%s, %s: gate %a up %a gave %a, not %La", bsm_activation_name((int)gated[g]),
                             split ? "split" : "interleaved", (double)gate, (double)up, (double)d[i][j], want);
                }
        }
        fixture_free(&x);
    }
}

/* amax ------------------------------------------------------------------------------------------------------------- */

static void amax_is_of_t(struct test *t)
{
    for (int threads = 1; threads <= 3; threads++) {
        struct fixture x;
        float amax = -1, largest = 0;
        fixture_make(t, &x, BSM_MXFP8_E4M3, BSM_MXFP4, BSM_FORMAT_FP32);
        CHECK(t, bsm_context_set_threads(x.context, threads) == BSM_OK);
        x.call.amax = &amax;
        expect_plain(t, &x, "amax");
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) largest = fmaxf(largest, fabsf(before_activation(&x, i, j)));
        CHECK(t, amax == largest && largest > 0);

        /* Before it was rounded: fp16 would be infinite. */
        struct operand half = operand_make(&(struct shape){ .format = BSM_FORMAT_FP16, .rows = M, .columns = N }, 0);
        const float alpha = 0x1p60f;
        x.call.alpha = &alpha, x.call.d = &half.m;
        CHECK(t, bsm_multiply(x.context, &x.call) == BSM_OK && amax == largest * alpha);

        const float not_a_number = nan_float();
        x.call.alpha = &not_a_number;
        CHECK(t, bsm_multiply(x.context, &x.call) == BSM_OK && isnan(amax) && is_canonical(amax));
        operand_free(&half);

        struct operand none = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = 0, .columns = N }, 0);
        struct operand no_a = operand_make(&(struct shape){ .format = BSM_MXFP8_E4M3, .rows = 0, .columns = K }, 0);
        x.call.a = &no_a.m, x.call.d = &none.m;
        CHECK(t, bsm_multiply(x.context, &x.call) == BSM_OK && amax == 0);
        operand_free(&none), operand_free(&no_a);
        fixture_free(&x);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(alpha_and_beta),
        TEST(alpha_per_row_and_column),
        TEST(tensor_scales),
        TEST(biases),
        TEST(c_in_place),
        TEST(activations),
        TEST(activations_of_special_values),
        TEST(gating),
        TEST(amax_is_of_t),
    };
    return TEST_MAIN(argc, argv, cases);
}
