/* Occupancy: against NVIDIA's header for the same question where there is one, and where the limits themselves say the
 * answer. */
#include <stdlib.h>

#include "tests/support/driver_api.h"

#if __has_include(<cuda_occupancy.h>)
#define HAS_HEADER 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#else
#define HAS_HEADER 0
#endif

typedef size_t dynamic_of(int);
typedef const CUlaunchConfig *config_pointer;

#define CALLS(X) \
    X(cuModuleLoadData, (CUmodule *, const void *)) \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) X(cuDeviceGetAttribute, (int *, int, CUdevice)) \
        X(cuFuncGetAttribute, (int *, int, CUfunction)) X(cuFuncSetAttribute, (CUfunction, int, int)) \
            X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, CUfunction, int, size_t)) \
                X(cuOccupancyMaxPotentialBlockSize, (int *, int *, CUfunction, dynamic_of *, size_t, int)) \
                    X(cuOccupancyAvailableDynamicSMemPerBlock, (size_t *, CUfunction, int, int)) \
                        X(cuOccupancyMaxActiveClusters, (int *, CUfunction, config_pointer)) \
                            X(cuOccupancyMaxPotentialClusterSize, (int *, CUfunction, config_pointer))
DRIVER_CALLS(CALLS)

static const char text[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry plain()\n{\nret;\n}\n"
    ".visible .entry fat() .maxnreg 168\n{\n.shared .align 16 .b8 s[3000];\n.reg .b32 %a, %v;\nmov.u32 %a, s;\n"
    "mov.u32 %v, 1; st.shared.u32 [%a], %v; ret;\n}\n";
static CUfunction plain, fat;

static void begin(struct test *t)
{
    CUmodule module;
    driver_begin(t);
    if (plain != NULL) return;
    find_calls(t);
    OK(t, cuModuleLoadData(&module, text));
    OK(t, cuModuleGetFunction(&plain, module, "plain"));
    OK(t, cuModuleGetFunction(&fat, module, "fat"));
    OK(t, cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
    OK(t, cuFuncSetAttribute(fat, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000));
}

#if HAS_HEADER
static int device(struct test *t, CUdevice_attribute attribute)
{
    int value = 0;
    OK(t, cuDeviceGetAttribute(&value, (int)attribute, 0));
    return value;
}

static cudaOccDeviceProp device_properties(struct test *t)
{
    cudaOccDeviceProp p;
    memset(&p, 0, sizeof p);
    p.computeMajor = device(t, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    p.computeMinor = device(t, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    p.maxThreadsPerBlock = device(t, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    p.maxThreadsPerMultiprocessor = device(t, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    p.regsPerBlock = device(t, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    p.regsPerMultiprocessor = device(t, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    p.warpSize = 32;
    p.sharedMemPerBlock = (size_t)device(t, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    p.sharedMemPerMultiprocessor = (size_t)device(t, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    p.numSms = device(t, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    p.sharedMemPerBlockOptin = (size_t)device(t, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    p.reservedSharedMemPerBlock = (size_t)device(t, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    return p;
}

static int expected(struct test *t, CUfunction f, int threads, size_t dynamic_shared)
{
    const cudaOccDeviceProp properties = device_properties(t);
    cudaOccFuncAttributes a;
    cudaOccDeviceState state;
    cudaOccResult result;
    int shared = 0;
    memset(&a, 0, sizeof a), memset(&state, 0, sizeof state);
    state.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT;
    OK(t, cuFuncGetAttribute(&a.maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    OK(t, cuFuncGetAttribute(&a.numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    OK(t, cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    a.sharedSizeBytes = (size_t)shared;
    a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    a.maxDynamicSharedSizeBytes = 200000;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &a, &state, threads, dynamic_shared)
        != CUDA_OCC_SUCCESS)
        return -1;
    return result.activeBlocksPerMultiprocessor;
}

static void it_is_what_the_header_says(struct test *t)
{
    begin(t);
    for (int round = 0; round < 2000; round++) {
        CUfunction f = rnd_below(t, 2) == 0 ? plain : fat;
        const int threads = (int)rnd_between(t, 1, 1024);
        const size_t shared = rnd_below(t, 3) == 0 ? 0 : (size_t)rnd_between(t, 0, 200000);
        int got = -2;
        OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&got, f, threads, shared));
        const int want = expected(t, f, threads, shared);
        if (got != want)
            FAIL(t, "%s, %d threads, %zu bytes: %d, not %d", f == plain ? "plain" : "fat", threads, shared, got, want);
    }
}
#else
static void it_is_what_the_header_says(struct test *t) { test_skip(t, "no cuda_occupancy.h"); }
#endif

static size_t sixteen_each(int threads) { return (size_t)threads * 16; }

static void sizes_that_the_limits_give(struct test *t)
{
    begin(t);
    int blocks, grid, threads, clusters;
    size_t bytes;
    OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 1024, 0));
    CHECK(t, blocks == 2);
    OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 128, 200000));
    CHECK(t, blocks == 1);
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 0, 0));
    OK(t, cuOccupancyMaxPotentialBlockSize(&grid, &threads, plain, NULL, 0, 0));
    CHECK(t, threads == 1024 && grid > 0 && grid % 2 == 0);
    OK(t, cuOccupancyMaxPotentialBlockSize(&grid, &threads, plain, sixteen_each, 0, 96));
    CHECK(t, threads <= 96);
    for (int n = 1; n <= 16; n++) {
        OK(t, cuOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, n, 64));
        OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 64, bytes));
        if (!driver_is_simulated()) continue;             /* an H200's driver offers more than it then finds room for */
        CHECK(t, blocks >= n);
        if (bytes + 1 <= 200000) {
            OK(t, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 64, bytes + 1));
            CHECK(t, blocks < n);
        }
    }
    CUlaunchAttribute a = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { 4, 1, 1 } };
    CUlaunchConfig config = { .gridDimX = 8,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = 128,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .attrs = &a,
                              .numAttrs = 1 };
    OK(t, cuOccupancyMaxActiveClusters(&clusters, plain, &config));
    CHECK(t, clusters > 0);
    OK(t, cuOccupancyMaxPotentialClusterSize(&clusters, plain, &config));
    CHECK(t, clusters == 8);
    a.value.clusterDim.x = 16;
    GIVES(t, CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&clusters, plain, &config));
}

int main(int argc, char **argv)
{
    setenv("CUDASIM_QUIET", "1", 1);
    static const struct test_case cases[] = { TEST(it_is_what_the_header_says), TEST(sizes_that_the_limits_give) };
    return TEST_MAIN(argc, argv, cases);
}
