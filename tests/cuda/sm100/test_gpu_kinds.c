/* Operands without scales that Blackwell's tensor cores multiply as they are: the bits that every kernel gives, for any
 * numbers, and what plans say of them.  On another GPU they say "skipped". */
#include "cuda/harness/gpu.h"
#include "cuda/sm120/product_model.h"

#include <math.h>
#include <stdlib.h>

/* Number of the n-th kernel of a kind that serves the pair; -1 behind the last.  fp32 is served with a permission
 * alone, by the kernels for bf16. */
static int kernel_of(const struct contexts *c, const char *kind, bsm_format a, bsm_format b, int n)
{
    char prefix[40];
    if (a == BSM_FORMAT_FP32) a = b = BSM_FORMAT_BF16;
    snprintf(prefix, sizeof prefix, "cuda_tcgen05_%s_", kind);
    for (int i = 0; bsm_kernel_name(i) != NULL; i++)
        if (strncmp(bsm_kernel_name(i), prefix, strlen(prefix)) == 0 && bsm_kernel_serves(c->gpu, i, a, b) && n-- == 0)
            return i;
    return -1;
}

enum { M = 8, N = 40 };                   /* rows that the smallest tiles have */

struct product {
    bsm_format a, b;
    int64_t k;
    int extra_pitch;                      /* of A's rows */
    bool tiny;                            /* half of the numbers are subnormal; of fp32, products are about 2^-130 */
    const char *forms;                    /* what the plan says of A and B */
};

/* Sixteen-bit numbers of which every second one has no exponent. */
static void make_tiny(struct operand *o)
{
    for (int64_t r = 0; r < o->m.rows; r++)
        for (int64_t k = (r + 1) % 2; k < o->m.columns; k += 2) {
            uint32_t code = 0;
            (void)bsm_matrix_get_code(&o->m, 0, r, k, &code);
            (void)bsm_matrix_set_code(&o->m, 0, r, k, code & 0x83ff);
        }
}

/* fp32 of all bits, within 40 binades; zeros and subnormal numbers among them. */
static void make_fp32(struct test *t, struct operand *o, bool tiny)
{
    for (int64_t b = 0; b < (o->m.batch == 0 ? 1 : o->m.batch); b++)
        for (int64_t i = 0; i < o->m.rows * o->m.columns; i++) {
            const uint32_t bits = (uint32_t)rnd(t),
                           exponent = (tiny ? 52u : 107u) + (uint32_t)rnd_below(t, tiny ? 20 : 40);
            const bool special = rnd_below(t, 16) == 0;
            (void)bsm_matrix_set_code(&o->m, b, i / o->m.columns, i % o->m.columns,
                                      special ? bits & 0x80003fff : (bits & 0x807fffff) | exponent << 23);
        }
}

static struct operand make(struct test *t, bsm_format format, int64_t rows, const struct product *p, int extra_pitch)
{
    struct operand o =
        operand_make(&(struct shape){ .format = format, .rows = rows, .columns = p->k, .extra_pitch = extra_pitch },
                     0xff);
    operand_fill(t, &o, false);
    if (format == BSM_FORMAT_FP32) make_fp32(t, &o, p->tiny);
    else if (p->tiny) make_tiny(&o);
    return o;
}

static void check_bits(struct test *t, int kernel, const struct product *p, float (*model)[N], float (*d)[N])
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            if (memcmp(&d[i][j], &model[i][j], sizeof(float)) != 0) {
                FAIL(t, "%s, %s x %s, K=%d: D[%d][%d] is %a, not %a", bsm_kernel_name(kernel),
                     bsm_format_get((int)p->a)->name, bsm_format_get((int)p->b)->name, (int)p->k, i, j,
                     (double)d[i][j], (double)model[i][j]);
                return;
            }
}

static void check_plan(struct test *t, const struct contexts *c, const bsm_matmul *call, const char *forms)
{
    bsm_plan *plan;
    char text[512];
    if (bsm_plan_create(c->gpu, call, &plan) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    (void)bsm_plan_describe(plan, text, sizeof text);
    if (strstr(text, forms) == NULL) FAIL(t, "\"%s\" is not in: %s", forms, text);
    if (strstr(text, "order: tensor cores along K in fp32") == NULL) FAIL(t, "another order: %s", text);
    if ((strstr(text, "in fp32, operands cut to tf32") != NULL) != (call->a->format == BSM_FORMAT_FP32))
        FAIL(t, "cut or not: %s", text);
    bsm_plan_destroy(plan);
}

static void check_product(struct test *t, const struct contexts *c, const char *kind, enum model_kind sums,
                          const struct product *p)
{
    struct operand a = make(t, p->a, M, p, p->extra_pitch), b = make(t, p->b, N, p, 0);
    struct twin on_gpu_a = twin_make(t, c, &a), on_gpu_b = twin_make(t, c, &b);
    static float model[M][N], d[M][N];
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++)
            model[i][j] = model_sum(sums, &(struct model_rows){ &a.m, &b.m, 0, i, 0, j }, 0, p->k);
    int kernels = 0;
    for (int kernel; (kernel = kernel_of(c, kind, p->a, p->b, kernels)) >= 0; kernels++) {
        memset(d, 0xff, sizeof d);
        const bsm_matrix out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                                 .data = to_device(t, c, d, sizeof d) };
        const bsm_matmul call = { .struct_size = sizeof call, .a = &on_gpu_a.m, .b = &on_gpu_b.m, .d = &out,
                                  .compute = p->a == BSM_FORMAT_FP32 ? BSM_COMPUTE_TF32 : BSM_COMPUTE_EXACT };
        CHECK(t, bsm_context_force_kernel(c->gpu, kernel) == BSM_OK);
        if (bsm_multiply(c->gpu, &call) != BSM_OK) FAIL(t, "%s: %s", bsm_kernel_name(kernel), bsm_last_error());
        from_device(t, c, d, out.data, sizeof d);
        check_bits(t, kernel, p, model, d);
        check_plan(t, c, &call, p->forms);
        CHECK(t, bsm_device_release(c->gpu, out.data) == BSM_OK);
    }
    CHECK(t, kernels >= 8);
    twin_free(t, c, &on_gpu_a), twin_free(t, c, &on_gpu_b);
    operand_free(&a), operand_free(&b);
}

/* fp16 by fp16 is one product, not four of terms; its subnormal numbers are aligned as the least normal one. */
static void fp16_as_it_is(struct test *t)
{
    static const struct product products[] = {
        { BSM_FORMAT_FP16, BSM_FORMAT_FP16, 208, 0, false, "A (fp16) as stored, B (fp16) as stored" },
        { BSM_FORMAT_FP16, BSM_FORMAT_FP16, 72, 3, false, "A (fp16) repacked, B (fp16) as stored" },
        { BSM_FORMAT_FP16, BSM_FORMAT_FP16, 136, 0, true, "A (fp16) as stored, B (fp16) as stored" },
    };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        check_product(t, &c, "f16", MODEL_F16, &products[i]);
    contexts_close(&c);
}

/* bf16's has the same sums. */
static void bf16_as_it_is(struct test *t)
{
    static const struct product product = { BSM_FORMAT_BF16, BSM_FORMAT_BF16, 80, 1, false,
                                            "A (bf16) repacked, B (bf16) as stored" };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    check_product(t, &c, "f16", MODEL_F16, &product);
    contexts_close(&c);
}

/* fp6 and fp4 without block scales, with scales of 1: by each other, beside codes with scales, and e2m1 by itself. */
static void narrow_codes_as_they_are(struct test *t)
{
    static const struct product mixed[] = {
        { BSM_FORMAT_E2M3, BSM_FORMAT_E3M2, 128, 0, false,
          "A (e2m3) as stored with scales of 1, B (e3m2) as stored with scales of 1" },
        { BSM_FORMAT_E2M1, BSM_MXFP8_E5M2, 256, 0, false, "A (e2m1) as stored with scales of 1, B (mxfp8_e5m2)" },
    }, both_of_4_bits[] = {
        { BSM_FORMAT_E2M1, BSM_FORMAT_E2M1, 192, 0, false, "B (e2m1) as stored with scales of 1" },
        { BSM_MXFP4, BSM_FORMAT_E2M1, 80, 0, false, "B (e2m1) repacked with scales of 1" },
    };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    for (int i = 0; i < 2; i++) {
        check_product(t, &c, "mxf8f6f4", MODEL_MXF8F6F4, &mixed[i]);
        check_product(t, &c, "mxf4", MODEL_MXF4, &both_of_4_bits[i]);
    }
    contexts_close(&c);
}

/* fp32 whose low bits are cut off, 8 products a step. */
static void tf32_as_it_is(struct test *t)
{
    static const struct product products[] = {
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, 104, 0, false, "A (fp32) as stored, B (fp32) as stored" },
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, 36, 3, false, "A (fp32) repacked, B (fp32) as stored" },
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, 31, 0, false, "A (fp32) repacked, B (fp32) repacked" },
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, 72, 0, true, "A (fp32) as stored, B (fp32) as stored" },
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, 1, 0, false, "A (fp32) repacked, B (fp32) repacked" },
    };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        check_product(t, &c, "f16", MODEL_TF32, &products[i]);
    contexts_close(&c);
}

/* Kernels that the plan chooses: B K-major and MN-major, batches, groups of rows, alpha and beta C, any M and N; within
 * the bound, too. */
static void tf32_of_any_shape(struct test *t)
{
    static const struct { int64_t m, n, k, batch; bool grouped; } cases[] = {
        { 1, 1, 1, 1, false }, { 1, 130, 40, 1, false }, { 33, 7, 9, 2, false }, { 130, 70, 33, 1, false },
        { 200, 257, 65, 1, false }, { 50, 40, 24, 2, true },
    };
    static const float alpha = 0.5f, beta = -2;
    static float d[200 * 257], start[200 * 257];
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t m = cases[i].m, n = cases[i].n, k = cases[i].k, batch = cases[i].batch,
                      a_batch = cases[i].grouped ? 1 : batch, count = m * n * a_batch;
        const int64_t group_rows[2] = { m - 18, 18 };
        struct operand a = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = k,
                                                         .batch = a_batch }, 0xff),
                       b = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = n, .columns = k,
                                                         .batch = batch }, 0xff);
        make_fp32(t, &a, false), make_fp32(t, &b, false);
        struct operand turned = operand_turned(&b, BSM_PACKING_DEFAULT, 0);
        struct twin on_gpu_a = twin_make(t, &c, &a), on_gpu_b = twin_make(t, &c, i % 2 == 0 ? &turned : &b);
        for (int64_t j = 0; j < count; j++) start[j] = (float)rnd_below(t, 1000) * 0x1p10f;
        const bsm_matrix out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = m, .columns = n,
                                 .batch = a_batch, .data = to_device(t, &c, start, (size_t)count * sizeof(float)) };
        void *const alpha_on_gpu = to_device(t, &c, &alpha, sizeof alpha),
             *const beta_on_gpu = to_device(t, &c, &beta, sizeof beta),
             *const rows_on_gpu = to_device(t, &c, group_rows, sizeof group_rows);
        const bsm_matmul call = { .struct_size = sizeof call, .a = &on_gpu_a.m, .b = &on_gpu_b.m, .c = &out, .d = &out,
                                  .alpha = alpha_on_gpu, .beta = beta_on_gpu, .compute = BSM_COMPUTE_TF32,
                                  .groups = cases[i].grouped ? 2 : 0,
                                  .group_rows = cases[i].grouped ? rows_on_gpu : NULL };
        if (bsm_multiply(c.gpu, &call) != BSM_OK) FAIL(t, "case %zu: %s", i, bsm_last_error());
        from_device(t, &c, d, out.data, (size_t)count * sizeof(float));
        for (int64_t j = 0; j < count; j++) {
            const int64_t row = j / n % m, of_a = j / (n * m),
                          of_b = cases[i].grouped ? row >= group_rows[0] : of_a;
            const float sum = model_sum(MODEL_TF32, &(struct model_rows){ &a.m, &b.m, of_a, row, of_b, j % n }, 0, k),
                        want = fmaf(alpha, sum, beta * start[j]);
            double exact = 0, magnitude = 0;
            for (int64_t l = 0; l < k; l++) {
                uint32_t x = 0, y = 0;
                (void)bsm_matrix_get_code(&a.m, of_a, row, l, &x), (void)bsm_matrix_get_code(&b.m, of_b, j % n, l, &y);
                const double product = (double)bsm_element_decode(BSM_FP32, x) * bsm_element_decode(BSM_FP32, y);
                exact += product, magnitude += fabs(product);
            }
            /* Two operands, each off by 2^-10 or less, subnormal ones by 2^-136 beside numbers below 2^20. */
            const double bound = (0x1.01p-9 + 6.5 * (double)((k + 7) / 8) * 0x1p-24) * magnitude + 0x1p-100;
            if (memcmp(&d[j], &want, sizeof want) != 0 || !(fabs((double)sum - exact) <= bound)) {
                FAIL(t, "case %zu: D[%lld] is %a, not %a; S is %a, exactly %a, magnitude %a", i, (long long)j,
                     (double)d[j], (double)want, (double)sum, exact, magnitude);
                break;
            }
        }
        void *const own[] = { out.data, alpha_on_gpu, beta_on_gpu, rows_on_gpu };
        for (int j = 0; j < 4; j++) CHECK(t, bsm_device_release(c.gpu, own[j]) == BSM_OK);
        twin_free(t, &c, &on_gpu_a), twin_free(t, &c, &on_gpu_b);
        operand_free(&a), operand_free(&b), operand_free(&turned);
    }
    contexts_close(&c);
}

/* NaN that has a bit left stays NaN, others become infinity; infinities; what no kernel takes is refused by name; K of
 * 0 has nothing to cut. */
static void tf32_special_and_refused(struct test *t)
{
    static const uint32_t codes[] = { 0x7fc00000, 0x7f800001, 0x7f800000, 0xff801fff, 0x3f801fff };
    static const uint32_t sums[] = { 0x7fc00000, 0x7f800000, 0x7f800000, 0xff800000, 0x3f800000 };
    enum { COUNT = sizeof codes / sizeof codes[0] };
    static const struct { bsm_format a, b; bsm_compute compute; bsm_order order; const char *sentence; } refused[] = {
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, BSM_COMPUTE_EXACT, BSM_ORDER_K, "a->format=fp32: GPUs have no exact fp32" },
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, BSM_COMPUTE_FAST, BSM_ORDER_K, "a->format=fp32: GPUs have no exact fp32" },
        { BSM_FORMAT_BF16, BSM_FORMAT_FP32, BSM_COMPUTE_TF32, BSM_ORDER_K,
          "b->format=fp32: BSM_COMPUTE_TF32 is for two operands of fp32" },
        { BSM_FORMAT_FP32, BSM_FORMAT_FP32, BSM_COMPUTE_TF32, BSM_ORDER_PORTABLE,
          "a->format=fp32: BSM_COMPUTE_TF32 has not the order of BSM_ORDER_PORTABLE" },
    };
    struct contexts c;
    if (!tensor_memory_open(t, &c)) return;
    const uint32_t one = 0x3f800000;
    float d[COUNT];
    void *x = to_device(t, &c, codes, sizeof codes), *y = to_device(t, &c, &one, sizeof one),
         *z = to_device(t, &c, d, sizeof d);
    bsm_matrix a = { .struct_size = sizeof a, .format = BSM_FORMAT_FP32, .rows = COUNT, .columns = 1, .data = x },
               b = { .struct_size = sizeof b, .format = BSM_FORMAT_FP32, .rows = 1, .columns = 1, .data = y },
               out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = COUNT, .columns = 1, .data = z };
    bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &out, .compute = BSM_COMPUTE_TF32 };
    CHECK(t, bsm_context_force_kernel(c.gpu, -1) == BSM_OK);
    if (bsm_multiply(c.gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, &c, d, z, sizeof d);
    if (memcmp(d, sums, sizeof d) != 0)
        FAIL(t, "special numbers: %a %a %a %a %a", (double)d[0], (double)d[1], (double)d[2], (double)d[3],
             (double)d[4]);
    a.columns = b.columns = 0;
    if (bsm_multiply(c.gpu, &call) != BSM_OK) FAIL(t, "K = 0: %s", bsm_last_error());
    from_device(t, &c, d, z, sizeof d);
    for (int i = 0; i < COUNT; i++) CHECK(t, d[i] == 0 && !signbit(d[i]));
    a.columns = b.columns = 1;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        a.format = refused[i].a, b.format = refused[i].b;
        call.compute = refused[i].compute, call.order = refused[i].order;
        if (bsm_supported(c.gpu, &call) != BSM_EUNSUPPORTED
            || strstr(bsm_last_error(), refused[i].sentence) == NULL)
            FAIL(t, "case %zu: %s", i, bsm_last_error());
    }
    a.format = BSM_FORMAT_FP32, call.compute = BSM_COMPUTE_TF32, call.order = BSM_ORDER_K;
    CHECK(t, bsm_context_force_kernel(c.gpu, kernel_number(c.gpu, "cuda_simt", BSM_FORMAT_BF16, BSM_FORMAT_BF16))
                 == BSM_OK);
    CHECK(t, bsm_supported(c.gpu, &call) == BSM_EUNSUPPORTED
                 && strstr(bsm_last_error(), "a->format=fp32: cuda_simt, which this product would get") != NULL);
    CHECK(t, bsm_device_release(c.gpu, x) == BSM_OK && bsm_device_release(c.gpu, y) == BSM_OK
                 && bsm_device_release(c.gpu, z) == BSM_OK);
    contexts_close(&c);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(fp16_as_it_is), TEST(bf16_as_it_is), TEST(tf32_as_it_is),
                                              TEST(tf32_of_any_shape), TEST(tf32_special_and_refused),
                                              TEST(narrow_codes_as_they_are) };
    return TEST_MAIN(argc, argv, cases);
}
