/* The shapes of tensor memory's loads and stores: where a thread's registers lie, as src/cuda/ptx/tensor_registers.cuh
 * says. */
#include "cuda/driver/driver.h"
#include "test.h"

#include <stdlib.h>

enum { COLUMNS = 64, LANES = 128 };                       /* as in tensor_registers.cu */

static const struct bsmi_driver *cu;
static CUmodule module;

/* Where register r of thread t of a warp lies, counted from the warp's address. */
struct place { int lane, column; };
struct shape { const char *name; int registers; struct place (*place)(int t, int r); };

static struct place place_32x32b(int t, int r) { return (struct place){ t, r }; }
static struct place place_16x64b(int t, int r) { return (struct place){ t / 4 + 8 * (t % 2), 2 * r + t / 2 % 2 }; }
static struct place place_16x128b(int t, int r) { return (struct place){ t / 4 + 8 * (r % 2), 4 * (r / 2) + t % 4 }; }
static struct place place_16x256b(int t, int r)
{
    return (struct place){ t / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (t % 4) + r % 2 };
}
static struct place place_16x32bx2(int t, int r) { return (struct place){ t % 16, t < 16 ? r : 24 + r }; }

static const struct shape shapes[] = {
    { "32x32b", 16, place_32x32b },   { "16x64b", 8, place_16x64b },      { "16x128b", 8, place_16x128b },
    { "16x256b", 16, place_16x256b }, { "16x32bx2", 8, place_16x32bx2 },
};

static uint32_t cell(int lane, int column) { return (uint32_t)(1 + lane * COLUMNS + column); }

static bool open_device(void)
{
    CUdevice device;
    CUcontext context;
    int major = 0;
    FILE *file = fopen(TENSOR_REGISTERS, "rb");
    char *image = calloc(1, 1 << 20);
    if (file == NULL || image == NULL || fread(image, 1, (1 << 20) - 1, file) == 0) return false;
    fclose(file);
    if (bsmi_driver_open(&cu) != BSM_OK || cu->cuDeviceGet(&device, 0) != CUDA_SUCCESS) return false;
    cu->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    const bool good = major == 10 && cu->cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS
                      && cu->cuCtxPushCurrent(context) == CUDA_SUCCESS
                      && cu->cuModuleLoadData(&module, image) == CUDA_SUCCESS;
    free(image);
    return good;
}

/* What the kernel leaves: COLUMNS words of each thread. */
static bool run(struct test *t, const char *prefix, const char *name, uint32_t lane, uint32_t got[LANES][COLUMNS])
{
    char kernel[64];
    CUfunction function;
    CUdeviceptr out = 0;
    void *parameters[] = { &out, &lane };
    const CUlaunchConfig config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                    .blockDimX = LANES, .blockDimY = 1, .blockDimZ = 1 };
    const size_t bytes = LANES * COLUMNS * sizeof(uint32_t);
    snprintf(kernel, sizeof kernel, "%s_%s", prefix, name);
    const bool good = cu->cuModuleGetFunction(&function, module, kernel) == CUDA_SUCCESS
                      && cu->cuMemAlloc(&out, bytes) == CUDA_SUCCESS
                      && cu->cuMemsetD8Async(out, 0, bytes, NULL) == CUDA_SUCCESS
                      && cu->cuLaunchKernelEx(&config, function, parameters, NULL) == CUDA_SUCCESS
                      && cu->cuMemcpyDtoHAsync(got, out, bytes, NULL) == CUDA_SUCCESS
                      && cu->cuStreamSynchronize(NULL) == CUDA_SUCCESS;
    if (!good) FAIL(t, "%s: a call failed", kernel);
    if (out != 0) cu->cuMemFree(out);
    return good;
}

static bool is_open(struct test *t)
{
    if (module == NULL)
        FAIL(t, "%s: no device with tensor memory loads it (CUDASIM_DEVICE=sm_100a?)", TENSOR_REGISTERS);
    return module != NULL;
}

static void check_load(struct test *t, const struct shape *s, int first)
{
    static uint32_t got[LANES][COLUMNS];
    if (!run(t, "load", s->name, (uint32_t)first, got)) return;
    for (int thread = 0; thread < LANES; thread++)
        for (int r = 0; r < s->registers; r++) {
            const struct place p = s->place(thread % 32, r);
            const int lane = thread / 32 * 32 + first + p.lane;
            if (got[thread][r] != cell(lane, p.column))
                FAIL(t, "%s from lane %d, thread %d, register %d: %u, not lane %d, column %d", s->name, first, thread,
                     r, got[thread][r], lane, p.column);
        }
}

static void loads(struct test *t)
{
    if (!is_open(t)) return;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int first = 0; first <= (i == 0 ? 0 : 16); first += 16) check_load(t, &shapes[i], first);
}

static void check_store(struct test *t, const struct shape *s, int first)
{
    static uint32_t got[LANES][COLUMNS], want[LANES][COLUMNS];
    if (!run(t, "store", s->name, (uint32_t)first, got)) return;
    for (int lane = 0; lane < LANES; lane++)
        for (int column = 0; column < COLUMNS; column++) want[lane][column] = cell(lane, column);
    for (int thread = 0; thread < LANES; thread++)
        for (int r = 0; r < s->registers; r++) {
            const struct place p = s->place(thread % 32, r);
            want[thread / 32 * 32 + first + p.lane][p.column] = (uint32_t)(0x10000 + thread * COLUMNS + r);
        }
    if (memcmp(got, want, sizeof got) != 0) FAIL(t, "%s at lane %d: not where it belongs", s->name, first);
}

static void stores(struct test *t)
{
    if (!is_open(t)) return;
    for (size_t i = 1; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int first = 0; first <= 16; first += 16) check_store(t, &shapes[i], first);
}

static void halves(struct test *t)
{
    static uint32_t got[LANES][COLUMNS];
    if (!is_open(t) || !run(t, "load", "halves", 0, got)) return;
    for (int thread = 0; thread < LANES; thread++)
        for (int r = 0; r < 16; r++) CHECK(t, got[thread][r] == (cell(thread, 2 * r) | cell(thread, 2 * r + 1) << 16));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(loads), TEST(stores), TEST(halves) };
    if (!open_device()) module = NULL;                    /* every test says so */
    return TEST_MAIN(argc, argv, cases);
}
