/* Kernels that nvcc compiled, run through libcudasim.so as a user's program runs them, against the same on the host. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/kernel_api.h"

static CUfunction function(struct test *t, const char *name)
{
    static CUmodule module;
    CUfunction f = NULL;
    const struct api *api = api_get(t);
    if (module == NULL) OK(t, api->module_load(&module, CUDASIM_KERNELS "/basic.ptx"));
    if (module != NULL) OK(t, api->get_function(&f, module, name));
    return f;
}

static void launch(struct test *t, const char *name, unsigned gx, unsigned gy, unsigned bx, unsigned by,
                   unsigned shared, void **parameters)
{
    const struct api *api = api_get(t);
    OK(t, api->launch(function(t, name), gx, gy, 1, bx, by, 1, shared, NULL, parameters, NULL));
    OK(t, api->synchronize());
}

static void saxpy(struct test *t)
{
    enum { N = 1000 };
    float x[N], y[N], got[N], a = 1.7f;
    int n = N;
    for (int i = 0; i < N; i++) x[i] = (float)rnd_normal(t), y[i] = (float)rnd_normal(t);
    CUdeviceptr dx = api_buffer(t, x, sizeof x), dy = api_buffer(t, y, sizeof y);
    launch(t, "saxpy", 8, 1, 128, 1, 0, (void *[]){ &n, &a, &dx, &dy });
    api_read(t, dy, got, sizeof got);
    for (int i = 0; i < N; i++) {
        const float want = fmaf(a, x[i], y[i]);
        CHECK(t, memcmp(&got[i], &want, sizeof want) == 0);
    }
}

static void block_sum(struct test *t)
{
    enum { BLOCKS = 7, THREADS = 256 };
    int in[BLOCKS * THREADS], got[BLOCKS], want[BLOCKS] = { 0 };
    for (int i = 0; i < BLOCKS * THREADS; i++) in[i] = (int)rnd_between(t, -100000, 100000), want[i / THREADS] += in[i];
    CUdeviceptr din = api_buffer(t, in, sizeof in), dout = api_buffer(t, NULL, sizeof got);
    launch(t, "block_sum", BLOCKS, 1, THREADS, 1, 0, (void *[]){ &din, &dout });
    api_read(t, dout, got, sizeof got);
    CHECK(t, memcmp(got, want, sizeof got) == 0);
}

static void matrix_product(struct test *t)
{
    enum { N = 45 };
    static float a[N * N], b[N * N], got[N * N];
    int n = N;
    for (int i = 0; i < N * N; i++) a[i] = (float)rnd_between(t, -9, 9), b[i] = (float)rnd_between(t, -9, 9);
    CUdeviceptr da = api_buffer(t, a, sizeof a), db = api_buffer(t, b, sizeof b), dc = api_buffer(t, NULL, sizeof got);
    launch(t, "matrix_product", 3, 3, 16, 16, 0, (void *[]){ &n, &da, &db, &dc });
    api_read(t, dc, got, sizeof got);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float want = 0;
            for (int k = 0; k < N; k++) want += a[i * N + k] * b[k * N + j];
            CHECK(t, got[i * N + j] == want);
        }
}

static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static void calls(struct test *t)
{
    enum { N = 100 };
    struct { int a; double b; char c[20]; } p = { 1000, -33.7, "abcdefghijklmnopqrs" };
    const int table[4] = { 10, 20, 30, 40 };
    int got[N];
    CUdeviceptr dout = api_buffer(t, NULL, sizeof got);
    launch(t, "calls", 1, 1, N, 1, 0, (void *[]){ &p, &dout });
    api_read(t, dout, got, sizeof got);
    for (int i = 0; i < N; i++) {
        int v = fibonacci(i % 9) + ((i & 1) != 0 ? 2 * (i % 7) : fibonacci(i % 7)) + ((i * 5) & 15) * i + p.a + (int)p.b
                + p.c[i % 20] + table[i & 3];
        const int choices[] = { v + 1, v * 3, v - 7, v ^ 0x55, -v, v * 4 };
        CHECK(t, got[i] == choices[i % 6]);
    }
}

static void histogram(struct test *t)
{
    enum { N = 5000 };
    unsigned char in[N];
    unsigned want[256] = { 0 }, got[256];
    int n = N;
    for (int i = 0; i < N; i++) in[i] = (unsigned char)rnd(t), want[in[i]]++;
    CUdeviceptr din = api_buffer(t, in, sizeof in), dout = api_buffer(t, NULL, sizeof got);
    launch(t, "histogram", 5, 1, 96, 1, 1024, (void *[]){ &din, &n, &dout });
    api_read(t, dout, got, sizeof got);
    CHECK(t, memcmp(got, want, sizeof got) == 0);
}

static void a_lock_among_lanes(struct test *t)
{
    int counter = 0;
    CUdeviceptr lock = api_buffer(t, NULL, 4), dcounter = api_buffer(t, &counter, 4);
    launch(t, "locked", 3, 1, 64, 1, 0, (void *[]){ &lock, &dcounter });
    api_read(t, dcounter, &counter, 4);
    CHECK(t, counter == 192);
}

static void halves(struct test *t)
{
    enum { N = 32 };
    float in[N], got[4 * N];
    int n = N;
    for (int i = 0; i < N; i++) in[i] = (float)rnd_between(t, -64, 64) / 8.0f;       /* exact in both formats */
    CUdeviceptr din = api_buffer(t, in, sizeof in), dout = api_buffer(t, NULL, sizeof got);
    launch(t, "halves", 1, 1, N, 1, 0, (void *[]){ &din, &dout, &n });
    api_read(t, dout, got, sizeof got);
    for (int i = 0; i < N; i++) {
        const float square = in[i] * in[i];                                         /* at most 13 bits: bf16 rounds
                                                                                       it */
        uint32_t bits;
        memcpy(&bits, &square, sizeof bits);
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
        float rounded;
        memcpy(&rounded, &bits, sizeof rounded);
        CHECK(t, got[4 * i + 1] == rounded);
        CHECK(t, got[4 * i + 2] == 2.0f * in[i] + 0.5f);
        CHECK(t, got[4 * i + 3] == 3.0f * in[i] + 0.25f);
        CHECK(t, fabsf(got[4 * i] - square) <= square / 2048.0f);
    }
}

static void doubles(struct test *t)
{
    enum { N = 40 };
    double in[N], got[N];
    long long integers[N];
    for (int i = 0; i < N; i++) in[i] = fabs(rnd_normal(t)) * 1e6 + 1.0;
    CUdeviceptr din = api_buffer(t, in, sizeof in), dout = api_buffer(t, NULL, sizeof got),
                dintegers = api_buffer(t, NULL, sizeof integers);
    launch(t, "doubles", 1, 1, N, 1, 0, (void *[]){ &din, &dout, &dintegers });
    api_read(t, dout, got, sizeof got);
    api_read(t, dintegers, integers, sizeof integers);
    for (int i = 0; i < N; i++) {
        const double want = fma(in[i], in[(i + 1) % N], 1.0 / in[i]) + sqrt(in[i]);
        CHECK(t, memcmp(&got[i], &want, sizeof want) == 0);
        CHECK(t, integers[i] == (long long)in[i] / 7 - (long long)(i + 3) * 0x123456789ll % 1000003);
    }
}

static void globals_by_name(struct test *t)
{
    const struct api *api = api_get(t);
    CUmodule module;
    CUdeviceptr pointer;
    size_t bytes;
    int table[4];
    OK(t, api->module_load(&module, CUDASIM_KERNELS "/basic.ptx"));
    OK(t, api->get_global(&pointer, &bytes, module, "table"));
    CHECK(t, bytes == sizeof table);
    api_read(t, pointer, table, sizeof table);
    CHECK(t, table[0] == 10 && table[3] == 40);
    CHECK(t, api->get_global(&pointer, &bytes, module, "nothing") == CUDA_ERROR_NOT_FOUND);
    OK(t, api->module_unload(module));
    CHECK(t, api->module_unload(module) == CUDA_ERROR_INVALID_HANDLE);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(saxpy),  TEST(block_sum), TEST(matrix_product),  TEST(calls), TEST(histogram), TEST(a_lock_among_lanes),
        TEST(halves), TEST(doubles),   TEST(globals_by_name),
    };
    return TEST_MAIN(argc, argv, cases);
}
