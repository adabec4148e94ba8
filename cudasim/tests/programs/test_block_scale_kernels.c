/* Block-scaled kernels that nvcc compiled for sm_120a, run through libcudasim.so: bitwise where every sum is exact,
 * within the bound of the model elsewhere. */
#include "tests/reference/block_scaled_reference.h"
#include "tests/support/kernel_api.h"
#include "tests/reference/tensor_reference.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 32, THREADS = 128, MOST_K = 512 };

static void launch(struct test *t, const char *name, void **parameters)
{
    static CUmodule module;
    CUfunction f = NULL;
    const struct api *api = api_get(t);
    if (module == NULL) OK(t, api->module_load(&module, CUDASIM_KERNELS "/block_scale.ptx"));
    if (module != NULL) OK(t, api->get_function(&f, module, name));
    OK(t, api->launch(f, 1, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
    OK(t, api->synchronize());
}

/* ---- operands ---- */

struct operand {
    enum tensor_format format;
    int rows;
    uint8_t code[ROWS][MOST_K], scale[ROWS][MOST_K / 16];
    uint8_t packed[ROWS * MOST_K], scales[ROWS * MOST_K / 16]; /* as the kernel gets them */
};

/* Codes of integers of at most `most`, or (0) of all finite numbers. */
static uint8_t draw_code(struct test *t, enum tensor_format format, int most)
{
    for (;;) {
        const uint32_t code = (uint32_t)rnd(t) & ((1u << tensor_format_bits(format)) - 1);
        const double value = reference_value(format, code);
        if (isfinite(value) && (most == 0 || (value == trunc(value) && fabs(value) <= most))) return (uint8_t)code;
    }
}

/* Elements of e2m1 alone in a byte lie in bits 5:2; scales are 1, 2, 4 for integers. */
static void fill(struct test *t, struct operand *o, int rows, enum tensor_format format, int k, bool nibbles, int block,
                 enum tensor_scale_format scale, int most)
{
    static const uint8_t powers[2][3] = { { 127, 128, 129 }, { 0x38, 0x40, 0x48 } };
    memset(o, 0, sizeof *o);
    o->format = format, o->rows = rows;
    for (int i = 0; i < rows; i++) {
        for (int e = 0; e < k; e++) {
            o->code[i][e] = draw_code(t, format, most);
            if (nibbles) o->packed[(i * k + e) / 2] |= (uint8_t)(o->code[i][e] << e % 2 * 4);
            else o->packed[i * k + e] = (uint8_t)(o->code[i][e] << (format == TENSOR_E2M1 ? 2 : 0));
        }
        for (int s = 0; block != 0 && s < k / block; s++) {
            const int64_t any = scale == TENSOR_UE8M0 ? rnd_between(t, 107, 147) : rnd_between(t, 0, 126);
            o->scale[i][s] = o->scales[i * (k / block) + s] = most != 0 ? powers[scale][rnd_below(t, 3)] : (uint8_t)any;
        }
    }
}

static struct block_matrix matrix_of(const struct operand *o, enum tensor_scale_format scale, int block, uint8_t *codes,
                                     int k)
{
    const struct block_matrix m = { .format = o->format,
                                    .scale = scale,
                                    .block = (uint32_t)block,
                                    .codes = codes,
                                    .scales = o->scale[0],
                                    .pitch = o->format == TENSOR_E2M1 ? MOST_K / 2 : MOST_K,
                                    .scale_pitch = MOST_K / 16 };
    for (int i = 0; i < o->rows; i++)
        for (int e = 0; e < k; e++) {
            if (o->format != TENSOR_E2M1) codes[i * MOST_K + e] = o->code[i][e];
            else if (e % 2 == 0) codes[(i * MOST_K + e) / 2] = (uint8_t)(o->code[i][e] | o->code[i][e + 1] << 4);
        }
    return m;
}

/* ---- products with scales ---- */

struct product {
    const char *name;
    enum tensor_format fa, fb;
    bool nibbles_a, nibbles_b; /* how the kernel gets them */
    int block;
    enum tensor_scale_format scale;
    int step, each, fraction_bits; /* of an instruction: k; what it aligns; the model's */
};

static const struct product products[] = {
    { "product_e4m3_e5m2", TENSOR_E4M3, TENSOR_E5M2, false, false, 32, TENSOR_UE8M0, 32, 32, 25 },
    { "product_e3m2_e2m3", TENSOR_E3M2, TENSOR_E2M3, false, false, 32, TENSOR_UE8M0, 32, 32, 25 },
    { "product_e2m1_e4m3", TENSOR_E2M1, TENSOR_E4M3, true, false, 32, TENSOR_UE8M0, 32, 32, 25 },
    { "product_mxfp4", TENSOR_E2M1, TENSOR_E2M1, true, true, 32, TENSOR_UE8M0, 64, 4, 35 },
    { "product_mxfp4_nv", TENSOR_E2M1, TENSOR_E2M1, true, true, 32, TENSOR_UE8M0, 64, 4, 35 },
    { "product_nvfp4", TENSOR_E2M1, TENSOR_E2M1, true, true, 16, TENSOR_UE4M3, 64, 4, 35 },
};

static void check(struct test *t, const struct product *p, bool exact)
{
    static struct operand a, b;
    static uint8_t codes_a[ROWS * MOST_K], codes_b[ROWS * MOST_K];
    static float got[ROWS][COLUMNS];
    const int k = exact ? 256 : MOST_K, most = exact ? 4 : 0, row_scales = k / p->block;
    int length = p->nibbles_a && p->nibbles_b ? k / 2 : k;
    fill(t, &a, ROWS, p->fa, k, p->nibbles_a, p->block, p->scale, most);
    fill(t, &b, COLUMNS, p->fb, k, p->nibbles_b, p->block, p->scale, most);
    CUdeviceptr da = api_buffer(t, a.packed, (size_t)(ROWS * k) / (p->nibbles_a ? 2 : 1)),
                dsa = api_buffer(t, a.scales, (size_t)(ROWS * row_scales));
    CUdeviceptr db = api_buffer(t, b.packed, (size_t)(COLUMNS * k) / (p->nibbles_b ? 2 : 1)),
                dsb = api_buffer(t, b.scales, (size_t)(COLUMNS * row_scales));
    CUdeviceptr dc = api_buffer(t, NULL, sizeof got);
    launch(t, p->name, (void *[]){ &length, &da, &db, &dsa, &dsb, &dc });
    api_read(t, dc, got, sizeof got);
    const struct block_matrix ma = matrix_of(&a, p->scale, p->block, codes_a, k),
                              mb = matrix_of(&b, p->scale, p->block, codes_b, k);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLUMNS; j++) {
            const struct block_sum s = block_dot(&ma, i, &mb, j, (size_t)k);
            const double bound = exact ? 0 : block_bound(&s, (size_t)(k / p->step), (size_t)p->each, p->fraction_bits);
            if (!(fabsl((long double)got[i][j] - s.sum) <= (long double)bound))
                FAIL(t, "%s: c[%zu][%zu] is %a, exact %La, bound %a", p->name, i, j, (double)got[i][j], s.sum, bound);
        }
}

static void integers_are_exact(struct test *t)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) check(t, &products[i], true);
}
static void sums_are_within_the_bound(struct test *t)
{
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) check(t, &products[i], false);
}

/* ---- products without scales ---- */

static double plain_sum(const struct operand *a, int i, const struct operand *b, int j, int k)
{
    double sum = 0;
    for (int e = 0; e < k; e++)
        sum += reference_value(a->format, a->code[i][e]) * reference_value(b->format, b->code[j][e]);
    return sum;
}

static void f16_sums_are_exact(struct test *t)
{
    static struct operand a, b;
    static uint16_t got[ROWS][COLUMNS];
    int k = 128;
    fill(t, &a, ROWS, TENSOR_E5M2, k, false, 0, TENSOR_UE8M0, 3);
    fill(t, &b, COLUMNS, TENSOR_E2M3, k, false, 0, TENSOR_UE8M0, 4); /* sums of at most 1536: all of them fit f16 */
    CUdeviceptr da = api_buffer(t, a.packed, (size_t)(ROWS * k)), db = api_buffer(t, b.packed, (size_t)(COLUMNS * k));
    CUdeviceptr dc = api_buffer(t, NULL, sizeof got);
    launch(t, "product_e5m2_e2m3", (void *[]){ &k, &da, &db, &dc });
    api_read(t, dc, got, sizeof got);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            if (reference_value(TENSOR_F16, got[i][j]) != plain_sum(&a, i, &b, j, k))
                FAIL(t, "c[%d][%d] is %g, not %g", i, j, reference_value(TENSOR_F16, got[i][j]),
                     plain_sum(&a, i, &b, j, k));
}

static void bytes_are_transposed(struct test *t)
{
    static struct operand a, b;
    static uint8_t turned[MOST_K][COLUMNS], got[COLUMNS][ROWS];
    int k = 384;
    fill(t, &a, ROWS, TENSOR_E4M3, k, false, 0, TENSOR_UE8M0, 16);
    fill(t, &b, COLUMNS, TENSOR_E4M3, k, false, 0, TENSOR_UE8M0, 16);
    for (int e = 0; e < k; e++)
        for (int j = 0; j < COLUMNS; j++) turned[e][j] = b.code[j][e];
    CUdeviceptr da = api_buffer(t, a.packed, (size_t)(ROWS * k)), db = api_buffer(t, turned, (size_t)(k * COLUMNS));
    CUdeviceptr dc = api_buffer(t, NULL, sizeof got);
    launch(t, "product_transposed", (void *[]){ &k, &da, &db, &dc });
    api_read(t, dc, got, sizeof got);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            const uint8_t want = (uint8_t)(int)plain_sum(&a, i, &b, j, k);
            if (got[j][i] != want) FAIL(t, "c[%d][%d] ends in %u, not %u", i, j, got[j][i], want);
        }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(integers_are_exact),
        TEST(sums_are_within_the_bound),
        TEST(f16_sums_are_exact),
        TEST(bytes_are_transposed),
    };
    setenv("CUDASIM_DEVICE", "sm_120a", 1);
    return TEST_MAIN(argc, argv, cases);
}
