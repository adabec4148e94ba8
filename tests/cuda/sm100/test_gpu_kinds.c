/* Operands without scales that Blackwell's tensor cores multiply as they are: the bits that every kernel gives, for any
 * numbers, and what plans say of them.  On another GPU they say "skipped". */
#include "cuda/harness/gpu.h"
#include "cuda/sm120/product_model.h"

#include <stdlib.h>

/* Number of the n-th kernel of a kind that serves the pair; -1 behind the last. */
static int kernel_of(const struct contexts *c, const char *kind, bsm_format a, bsm_format b, int n)
{
    char prefix[40];
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
    bool tiny;                            /* half of the numbers are subnormal */
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

static struct operand make(struct test *t, bsm_format format, int64_t rows, const struct product *p, int extra_pitch)
{
    struct operand o =
        operand_make(&(struct shape){ .format = format, .rows = rows, .columns = p->k, .extra_pitch = extra_pitch },
                     0xff);
    operand_fill(t, &o, false);
    if (p->tiny) make_tiny(&o);
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
        const bsm_matmul call = { .struct_size = sizeof call, .a = &on_gpu_a.m, .b = &on_gpu_b.m, .d = &out };
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

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(fp16_as_it_is), TEST(bf16_as_it_is),
                                              TEST(narrow_codes_as_they_are) };
    return TEST_MAIN(argc, argv, cases);
}
