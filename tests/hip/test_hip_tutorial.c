/* What the Triton tutorial "Block Scaled Matrix Multiplication" validates, through the library: any codes of
 * e2m1, normal numbers in e4m3, scales from 2^-3 to 1 in the order of lanes, tiles of 256 x 256 and steps of K of its
 * kernels, by both non-K dimensions of MI350's MFMA (16 and 32), and the tutorial's tolerance, 1e-3 + 1e-3 |S|, which
 * here holds for D in fp32 and the exact sum.  The tutorial has M = N = 8192 and K = 8192 or 16384; here M = N = 512
 * and K = 1024, the same tiles, which gfxsim runs in a second.  On a GPU TUTORIAL_SIZE=8192 asks for its own size. */
#include "cuda/harness/gpu.h"

#include <math.h>
#include <stdlib.h>

static void fill(struct test *t, struct operand *o)
{
    const bsm_format_info *f = bsm_format_get((int)o->m.format);
    for (int64_t r = 0; r < o->m.rows; r++) {
        for (int64_t k = 0; k < o->m.columns; k++) {
            const uint32_t of_number = bsm_element_encode(f->element, rnd_normal(t), BSM_ROUND_NEAREST_EVEN, true, 0);
            bsm_matrix_set_code(&o->m, 0, r, k, f->element == BSM_E2M1 ? (uint32_t)rnd_below(t, 16) : of_number);
        }
        for (int64_t s = 0; s < bsm_matrix_scale_columns(&o->m); s++)
            bsm_matrix_set_scale(&o->m, 0, r, s, (uint8_t)rnd_between(t, 124, 127));
    }
}

static struct operand make(struct test *t, bsm_format format, int64_t rows, int64_t k, int dim)
{
    struct operand o = operand_make(&(struct shape){ .format = format, .rows = rows, .columns = k,
                                                     .layout.kind = dim == 16 ? BSM_LAYOUT_CDNA4_16
                                                                              : BSM_LAYOUT_CDNA4_32,
                                                     .packing = format == BSM_MXFP4 ? BSM_PACKING_LOW_FIRST
                                                                                    : BSM_PACKING_DEFAULT }, 0xff);
    fill(t, &o);
    return o;
}

/* The exact sums of some rows: the first and the last of each tile of 128. */
static void compare(struct test *t, const struct operand *a, const struct operand *b, const float *d, double tolerance)
{
    const int64_t n = b->m.rows, k = a->m.columns;
    double *x = malloc((size_t)k * sizeof *x), *y = malloc((size_t)(n * k) * sizeof *y);
    for (int64_t i = 0; i < n * k; i++) y[i] = operand_value(&b->m, 0, i / k, i % k);
    for (int64_t row = 0; row < a->m.rows; row++) {
        if (row % 128 != 0 && row % 128 != 127) continue;
        for (int64_t i = 0; i < k; i++) x[i] = operand_value(&a->m, 0, row, i);
        for (int64_t column = 0; column < n; column++) {
            double sum = 0;
            for (int64_t i = 0; i < k; i++) sum += x[i] * y[column * k + i];
            const double found = (double)d[row * n + column];
            if (!(fabs(found - sum) <= tolerance + tolerance * fabs(sum))) {
                FAIL(t, "row %d, column %d: %.9g, and %.9g is right", (int)row, (int)column, found, sum);
                goto done;
            }
        }
    }
done:
    free(x), free(y);
}

static void validate(struct test *t, bsm_format fa, bsm_format fb, int dim)
{
    const char *given = getenv("TUTORIAL_SIZE"), *name = dim == 16 ? "hip_mfma_scale_256x256"
                                                                   : "hip_mfma_scale_256x256_32";
    const int64_t size = given != NULL ? atoll(given) : 512, k = 2 * size;
    struct contexts c;
    if (!contexts_open(t, &c)) return;
    struct operand a = make(t, fa, size, k, dim), b = make(t, fb, size, k, dim);
    struct twin x = twin_make(t, &c, &a), y = twin_make(t, &c, &b);
    const size_t bytes = (size_t)(size * size) * sizeof(float);
    float *found = malloc(bytes);
    void *d = NULL;
    CHECK(t, bsm_device_allocate(c.gpu, bytes, &d) == BSM_OK);
    const bsm_matrix out = { .struct_size = sizeof out, .format = BSM_FORMAT_FP32, .rows = size, .columns = size,
                             .data = d };
    const bsm_matmul call = { .struct_size = sizeof call, .a = &x.m, .b = &y.m, .d = &out };
    CHECK(t, bsm_context_force_kernel(c.gpu, kernel_number(c.gpu, name, fa, fb)) == BSM_OK);
    char text[600] = "";
    bsm_plan *plan = NULL;
    CHECK(t, bsm_plan_create(c.gpu, &call, &plan) == BSM_OK);
    bsm_plan_describe(plan, text, sizeof text);
    bsm_plan_destroy(plan);
    /* Nothing is moved or copied first: what the tutorial shuffles is what the kernel reads. */
    if (strstr(text, name) == NULL || strstr(text, "repacked") != NULL || strstr(text, "converted") != NULL)
        FAIL(t, "%s", text);
    if (bsm_multiply(c.gpu, &call) != BSM_OK) FAIL(t, "%s", bsm_last_error());
    from_device(t, &c, found, d, bytes);
    compare(t, &a, &b, found, 1e-3);
    CHECK(t, bsm_device_release(c.gpu, d) == BSM_OK);
    free(found);
    twin_free(t, &c, &x), twin_free(t, &c, &y);
    operand_free(&a), operand_free(&b);
    contexts_close(&c);
}

static void tutorial_mxfp8_16(struct test *t) { validate(t, BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 16); }
static void tutorial_mxfp8_32(struct test *t) { validate(t, BSM_MXFP8_E4M3, BSM_MXFP8_E4M3, 32); }
static void tutorial_mxfp4_16(struct test *t) { validate(t, BSM_MXFP4, BSM_MXFP4, 16); }
static void tutorial_mxfp4_32(struct test *t) { validate(t, BSM_MXFP4, BSM_MXFP4, 32); }
static void tutorial_mixed_16(struct test *t) { validate(t, BSM_MXFP8_E4M3, BSM_MXFP4, 16); }
static void tutorial_mixed_32(struct test *t) { validate(t, BSM_MXFP8_E4M3, BSM_MXFP4, 32); }

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(tutorial_mxfp8_16), TEST(tutorial_mxfp8_32), TEST(tutorial_mxfp4_16),
        TEST(tutorial_mxfp4_32), TEST(tutorial_mixed_16), TEST(tutorial_mixed_32)
    };
    return TEST_MAIN(argc, argv, cases);
}
