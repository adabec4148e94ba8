/* Kernels of hops.cu: what racecheck and cudasim say to writes that are ordered by way of a third warp, and to writes
 * that are not. docs/design/testing.md has the answers of both. */
#include "cuda/driver/driver.h"
#include "cuda/driver/embedded.h"
#include "test.h"

#include <stdlib.h>

static bool is_simulated(void) { return getenv("BLOCKSCALE_LIBCUDA") != NULL; }

/* The fatbin, which the caller frees; NULL if there is none. */
static void *read_kernels(void)
{
    FILE *file = fopen("tests/hops.fatbin", "rb");
    char *bytes = malloc(1 << 20);
    const size_t count = file == NULL || bytes == NULL ? 0 : fread(bytes, 1, 1 << 20, file);
    if (file != NULL) fclose(file);
    if (count == 0) free(bytes);
    return count == 0 ? NULL : bytes;
}

/* Launches one kernel and waits for it; true if every word is the second writer's. */
static bool run(const struct bsmi_driver *cu, CUfunction function)
{
    CUdeviceptr out = 0;
    uint32_t words[32] = { 0 };
    void *parameters[] = { &out };
    const CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 96, .blockDimY = 1, .blockDimZ = 1
    };
    bool good = cu->cuMemAlloc(&out, sizeof words) == CUDA_SUCCESS
                && cu->cuLaunchKernelEx(&config, function, parameters, NULL) == CUDA_SUCCESS
                && cu->cuMemcpyDtoHAsync(words, out, sizeof words, NULL) == CUDA_SUCCESS
                && cu->cuStreamSynchronize(NULL) == CUDA_SUCCESS;
    for (uint32_t i = 0; i < 32; i++) good = good && words[i] == 100 + i;
    (void)cu->cuMemFree(out);
    return good;
}

static bool runs(struct test *t, const char *kernel)
{
    const struct bsmi_driver *cu;
    CUcontext context;
    CUdevice device;
    CUmodule module;
    CUfunction function;
    bool good = false;
    void *kernels = read_kernels();
    if (kernels == NULL || bsmi_driver_open(&cu) != BSM_OK) {
        test_skip(t, kernels == NULL ? bsmi_cuda_not_built : bsm_last_error());
        free(kernels);
        return false;
    }
    if (cu->cuDeviceGet(&device, 0) != CUDA_SUCCESS || cu->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        cu->cuCtxPushCurrent(context) != CUDA_SUCCESS || cu->cuModuleLoadData(&module, kernels) != CUDA_SUCCESS ||
        cu->cuModuleGetFunction(&function, module, kernel) != CUDA_SUCCESS)
        FAIL(t, "%s cannot be launched", kernel);
    else good = run(cu, function);
    (void)cu->cuDevicePrimaryCtxRelease(device);
    free(kernels);
    return good;
}

static void check_ordered(struct test *t, const char *kernel)
{
    if (!runs(t, kernel) && !t->skipped)
        FAIL(t, "%s: the second writer's words are not there, or the launch failed", kernel);
}

static void direct_all_lanes(struct test *t) { check_ordered(t, "hops_direct_all_lanes"); }
static void direct(struct test *t) { check_ordered(t, "hops_direct"); }
static void relayed_all_lanes(struct test *t) { check_ordered(t, "hops_relayed_all_lanes"); }
static void relayed(struct test *t) { check_ordered(t, "hops_relayed"); }
static void relayed_and_direct(struct test *t) { check_ordered(t, "hops_relayed_and_direct"); }
static void relayed_by_bar(struct test *t) { check_ordered(t, "hops_relayed_by_bar"); }

/* A GPU tells nobody. */
static void unordered(struct test *t)
{
    if (runs(t, "hops_unordered") && is_simulated()) FAIL(t, "cudasim does not report the race");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(direct_all_lanes),   TEST(direct),
                                              TEST(relayed_all_lanes),  TEST(relayed),
                                              TEST(relayed_and_direct), TEST(relayed_by_bar), TEST(unordered) };
    return TEST_MAIN(argc, argv, cases);
}
