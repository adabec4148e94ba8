/* Matrix kernels that nvcc compiled, run through libcudasim.so.  The operands are small integers: every sum is
 * exact. */
#include <stdlib.h>

#include "tests/support/kernel_api.h"

static void launch(struct test *t, const char *name, unsigned gx, unsigned gy, unsigned threads, void **parameters)
{
    static CUmodule module;
    CUfunction f = NULL;
    const struct api *api = api_get(t);
    if (module == NULL) OK(t, api->module_load(&module, CUDASIM_KERNELS "/matrix.ptx"));
    if (module != NULL) OK(t, api->get_function(&f, module, name));
    OK(t, api->launch(f, gx, gy, 1, threads, 1, 1, 0, NULL, parameters, NULL));
    OK(t, api->synchronize());
}

enum { ROWS = 64, COLUMNS = 32, K = 192 };

static uint16_t bf16_of(int value)
{
    const float x = (float)value;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}
/* Of integers from -8 to 8. */
static uint16_t f16_of(int value)
{
    static const uint16_t code[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800 };
    return (uint16_t)(code[abs(value)] | (value < 0) << 15);
}

static void bf16_by_ldmatrix_and_mma(struct test *t)
{
    static int a[ROWS][K], b[COLUMNS][K];
    static uint16_t ha[ROWS][K], hb[COLUMNS][K];
    static float got[ROWS][COLUMNS];
    int k = K;
    for (int i = 0; i < ROWS * K; i++)
        a[i / K][i % K] = (int)rnd_between(t, -100, 100), ha[i / K][i % K] = bf16_of(a[i / K][i % K]);
    for (int i = 0; i < COLUMNS * K; i++)
        b[i / K][i % K] = (int)rnd_between(t, -100, 100), hb[i / K][i % K] = bf16_of(b[i / K][i % K]);
    CUdeviceptr da = api_buffer(t, ha, sizeof ha), db = api_buffer(t, hb, sizeof hb),
                dc = api_buffer(t, NULL, sizeof got);
    launch(t, "product_bf16", 1, 1, 128, (void *[]){ &k, &da, &db, &dc });
    api_read(t, dc, got, sizeof got);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            int sum = 0;
            for (int l = 0; l < K; l++) sum += a[i][l] * b[j][l];
            if (got[i][j] != (float)sum) FAIL(t, "c[%d][%d] is %g, not %d", i, j, (double)got[i][j], sum);
        }
}

static void s8_by_mma_and_stmatrix(struct test *t)
{
    static int8_t a[ROWS][K], b[COLUMNS][K];
    static int16_t got[ROWS][COLUMNS];
    int k = K;
    for (int i = 0; i < ROWS * K; i++) a[i / K][i % K] = (int8_t)rnd_between(t, -128, 127);
    for (int i = 0; i < COLUMNS * K; i++) b[i / K][i % K] = (int8_t)rnd_between(t, -128, 127);
    CUdeviceptr da = api_buffer(t, a, sizeof a), db = api_buffer(t, b, sizeof b), dc = api_buffer(t, NULL, sizeof got);
    launch(t, "product_s8", 1, 1, 128, (void *[]){ &k, &da, &db, &dc });
    api_read(t, dc, got, sizeof got);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            int sum = 0;
            for (int l = 0; l < K; l++) sum += a[i][l] * b[j][l];
            if (got[i][j] != (int16_t)sum) FAIL(t, "c[%d][%d] is %d, not %d", i, j, got[i][j], (int16_t)sum);
        }
}

static void f16_by_wmma_classes(struct test *t)
{
    enum { N = 48 };
    static int a[N][N], b[N][N], c[N][N];
    static uint16_t ha[N][N], hb[N][N];
    static float fc[N][N];
    int n = N;
    for (int i = 0; i < N * N; i++) {
        a[i / N][i % N] = (int)rnd_between(t, -8, 8), b[i / N][i % N] = (int)rnd_between(t, -8, 8),
                     c[i / N][i % N] = (int)rnd_between(t, -99, 99);
        ha[i / N][i % N] = f16_of(a[i / N][i % N]), hb[i / N][i % N] = f16_of(b[i / N][i % N]),
                      fc[i / N][i % N] = (float)c[i / N][i % N];
    }
    CUdeviceptr da = api_buffer(t, ha, sizeof ha), db = api_buffer(t, hb, sizeof hb), dc = api_buffer(t, fc, sizeof fc);
    launch(t, "product_wmma", N / 16, N / 16, 32, (void *[]){ &n, &da, &db, &dc });
    api_read(t, dc, fc, sizeof fc);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int sum = c[i][j];
            for (int l = 0; l < N; l++) sum += 2 * a[i][l] * b[l][j];
            if (fc[i][j] != (float)sum) FAIL(t, "c[%d][%d] is %g, not %d", i, j, (double)fc[i][j], sum);
        }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(bf16_by_ldmatrix_and_mma),
        TEST(s8_by_mma_and_stmatrix),
        TEST(f16_by_wmma_classes),
    };
    return TEST_MAIN(argc, argv, cases);
}
