/* Memory: copies of two and three dimensions, fills, host memory that kernels reach, pools, mappings, attributes of
 * pointers. */
#include <stdlib.h>

#include "tests/support/driver_api.h"

typedef CUDA_MEMCPY2D copy2;
typedef CUDA_MEMCPY3D copy3;

#define CALLS(X) \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) \
    X(cuMemAllocPitch_v2, (CUdeviceptr *, size_t *, size_t, size_t, unsigned)) X( \
        cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned)) X(cuMemFree_v2, (CUdeviceptr)) \
        X(cuMemGetInfo_v2, (size_t *, size_t *)) X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr)) X( \
            cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t)) X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t)) \
            X(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t)) X(cuMemcpy2D_v2, (const copy2 *)) X( \
                cuMemcpy2DAsync_v2, \
                (const copy2 *, CUstream)) X(cuMemcpy3D_v2, \
                                             (const copy3 *)) X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t)) \
                X(cuMemsetD2D16_v2, (CUdeviceptr, size_t, unsigned short, size_t, size_t)) X( \
                    cuMemsetD2D32Async, \
                    (CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream)) X(cuCtxSynchronize, (void)) \
                    X(cuMemHostAlloc, (void **, size_t, unsigned)) X(cuMemFreeHost, (void *)) X( \
                        cuMemHostRegister_v2, \
                        (void *, size_t, unsigned)) X(cuMemHostUnregister, (void *)) \
                        X(cuMemHostGetDevicePointer_v2, (CUdeviceptr *, void *, unsigned)) X( \
                            cuMemAllocAsync, \
                            (CUdeviceptr *, size_t, CUstream)) X(cuMemFreeAsync, (CUdeviceptr, CUstream)) \
                            X(cuDeviceGetDefaultMemPool, (CUmemoryPool *, CUdevice)) X( \
                                cuMemPoolGetAttribute, \
                                (CUmemoryPool, int, void *)) X(cuMemPoolSetAttribute, (CUmemoryPool, int, void *)) \
                                X(cuMemAllocFromPoolAsync, (CUdeviceptr *, size_t, CUmemoryPool, CUstream)) X( \
                                    cuPointerGetAttribute, (void *, CUpointer_attribute, CUdeviceptr)) \
                                    X(cuPointerGetAttributes, (unsigned, CUpointer_attribute *, void **, CUdeviceptr)) \
                                        X(cuMemGetAllocationGranularity, (size_t *, const CUmemAllocationProp *, int)) \
                                            X(cuMemCreate, \
                                              (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, \
                                               unsigned long long)) X(cuMemRelease, (CUmemGenericAllocationHandle)) \
                                                X(cuMemAddressFree, (CUdeviceptr, size_t)) X( \
                                                    cuMemAddressReserve, \
                                                    (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
                                                    X(cuMemMap, \
                                                      (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, \
                                                       unsigned long long)) X(cuMemUnmap, (CUdeviceptr, size_t)) \
                                                        X(cuMemSetAccess, \
                                                          (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)) \
                                                            X(cuModuleLoadData, (CUmodule *, const void *)) \
                                                                X(cuModuleGetFunction, \
                                                                  (CUfunction *, CUmodule, const char *)) \
                                                                    X(cuLaunchKernel, \
                                                                      (CUfunction, unsigned, unsigned, unsigned, \
                                                                       unsigned, unsigned, unsigned, unsigned, \
                                                                       CUstream, void **, void **)) \
                                                                        X(cuMemPrefetchAsync, \
                                                                          (CUdeviceptr, size_t, CUdevice, CUstream)) \
                                                                            X(cuMemAdvise, \
                                                                              (CUdeviceptr, size_t, int, CUdevice))
DRIVER_CALLS(CALLS)

/* double(p): each of 32 threads doubles a word */
static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry double(.param .u64 p)\n{\n"
                           ".reg .b64 %a; .reg .b32 %v;\nld.param.u64 %a, [p]; mov.u32 %v, %tid.x; "
                           "mad.wide.u32 %a, %v, 4, %a;\n"
                           "ld.global.u32 %v, [%a]; add.u32 %v, %v, %v; st.global.u32 [%a], %v; ret;\n}\n";

static void begin(struct test *t)
{
    driver_begin(t);
    if (cuMemcpy == NULL) find_calls(t);
}

static CUresult run_double(struct test *t, CUdeviceptr at)
{
    static CUfunction function;
    CUmodule module;
    if (function == NULL) {
        OK(t, cuModuleLoadData(&module, text));
        OK(t, cuModuleGetFunction(&function, module, "double"));
    }
    OK(t, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ &at }, NULL));
    return cuCtxSynchronize();
}

/* Random boxes from host to device, on the device, and back; the host does the same on arrays. */
static void copies_of_planes_and_boxes(struct test *t)
{
    begin(t);
    enum { PITCH = 64, ROWS = 12, PLANES = 3, ALL = PITCH * ROWS * PLANES };
    uint8_t from[ALL], want[ALL], got[ALL];
    CUdeviceptr device;
    OK(t, cuMemAlloc_v2(&device, ALL));
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < ALL; i++) from[i] = (uint8_t)rnd(t), want[i] = 0xee;
        OK(t, cuMemsetD8_v2(device, 0xee, ALL));
        copy3 c = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .srcPitch = PITCH, .srcHeight = ROWS,
                    .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = device, .dstPitch = PITCH, .dstHeight = ROWS };
        c.WidthInBytes = (size_t)rnd_between(t, 0, PITCH), c.Height = (size_t)rnd_between(t, 1, ROWS),
        c.Depth = (size_t)rnd_between(t, 1, PLANES);
        c.srcXInBytes = (size_t)rnd_between(t, 0, PITCH - (int64_t)c.WidthInBytes),
        c.srcY = (size_t)rnd_between(t, 0, ROWS - (int64_t)c.Height);
        c.dstXInBytes = (size_t)rnd_between(t, 0, PITCH - (int64_t)c.WidthInBytes),
        c.dstY = (size_t)rnd_between(t, 0, ROWS - (int64_t)c.Height);
        c.srcZ = c.dstZ = (size_t)rnd_between(t, 0, PLANES - (int64_t)c.Depth);
        for (size_t z = 0; z < c.Depth; z++)
            for (size_t y = 0; y < c.Height; y++)
                memcpy(&want[((c.dstZ + z) * ROWS + c.dstY + y) * PITCH + c.dstXInBytes],
                       &from[((c.srcZ + z) * ROWS + c.srcY + y) * PITCH + c.srcXInBytes], c.WidthInBytes);
        OK(t, cuMemcpy3D_v2(&c));
        OK(t, cuMemcpyDtoH_v2(got, device, ALL));
        if (memcmp(got, want, ALL) != 0) FAIL(t, "round %d differs", round);
    }
    copy2 wrong = { .srcMemoryType = CU_MEMORYTYPE_HOST,
                    .srcHost = from,
                    .srcPitch = 16,
                    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                    .dstDevice = device,
                    .dstPitch = PITCH,
                    .WidthInBytes = 32,
                    .Height = 2 };
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&wrong));
    wrong.srcPitch = 32;
    OK(t, cuMemcpy2D_v2(&wrong));
    wrong.Height = 1000;
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2(&wrong, NULL));
    OK(t, cuMemFree_v2(device));
}

static void fills_of_planes(struct test *t)
{
    begin(t);
    enum { ROWS = 5 };
    CUdeviceptr device;
    size_t pitch;
    OK(t, cuMemAllocPitch_v2(&device, &pitch, 100, ROWS, 4));
    CHECK(t, pitch >= 100 && pitch % 256 == 0);
    OK(t, cuMemsetD8_v2(device, 1, pitch * ROWS));
    OK(t, cuMemsetD2D16_v2(device + 2, pitch, 0xabcd, 7, ROWS));
    OK(t, cuMemsetD2D32Async(device + 64, pitch, 0x12345678, 2, 3, NULL));
    for (int y = 0; y < ROWS; y++) {
        uint8_t row[128], want[128];
        OK(t, cuMemcpyDtoH_v2(row, device + (size_t)y * pitch, sizeof row));
        memset(want, 1, sizeof want);
        for (int i = 0; i < 7; i++) want[2 + 2 * i] = 0xcd, want[3 + 2 * i] = 0xab;
        for (int i = 0; i < 2 && y < 3; i++) memcpy(want + 64 + 4 * i, &(uint32_t){ 0x12345678 }, 4);
        CHECK(t, memcmp(row, want, sizeof row) == 0);
    }
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemsetD2D16_v2(device + 1, pitch, 0, 7, ROWS));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&device, &pitch, 100, ROWS, 3));
    OK(t, cuMemFree_v2(device));
}

static bool all_are(const uint32_t *words, uint32_t want)
{
    for (int i = 0; i < 32; i++)
        if (words[i] != want) return false;
    return true;
}

static void kernels_reach_host_memory(struct test *t)
{
    begin(t);
    uint32_t *words, *locked;
    CUdeviceptr device, managed;
    OK(t, cuMemHostAlloc((void **)&locked, 128, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(t, cuMemHostGetDevicePointer_v2(&device, locked, 0));
    CHECK(t, device == (CUdeviceptr)(uintptr_t)locked);
    for (int i = 0; i < 32; i++) locked[i] = 21;
    OK(t, run_double(t, device));
    CHECK(t, all_are(locked, 42));
    OK(t, cuMemAllocManaged(&managed, 128, CU_MEM_ATTACH_GLOBAL));
    words = (uint32_t *)(uintptr_t)managed;
    for (int i = 0; i < 32; i++) words[i] = 4;
    OK(t, cuMemAdvise(managed, 128, 3, 0));
    OK(t, cuMemPrefetchAsync(managed, 128, 0, NULL));
    OK(t, run_double(t, managed));
    CHECK(t, all_are(words, 8));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemAdvise(managed, 128, 9, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&managed, 128, 4));
    OK(t, cuMemFree_v2(managed));
    OK(t, cuMemFreeHost(locked));
    uint32_t *own = aligned_alloc(4096, 4096);
    for (int i = 0; i < 32; i++) own[i] = 100;
    OK(t, cuMemHostRegister_v2(own, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    GIVES(t, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(own, 4096, 0));
    OK(t, cuMemHostGetDevicePointer_v2(&device, own + 0, 0));
    OK(t, run_double(t, device));
    CHECK(t, all_are(own, 200));
    OK(t, cuMemHostUnregister(own));
    GIVES(t, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
    free(own);
}

static void pools_and_sizes(struct test *t)
{
    begin(t);
    CUmemoryPool pool;
    CUdeviceptr a, b, base;
    size_t before, total, after, size;
    uint64_t keep = UINT64_MAX, read = 0;
    OK(t, cuMemGetInfo_v2(&before, &total));
    OK(t, cuMemAllocAsync(&a, 1 << 20, NULL));
    OK(t, cuDeviceGetDefaultMemPool(&pool, 0));
    OK(t, cuMemPoolSetAttribute(pool, 4, &keep));
    OK(t, cuMemPoolGetAttribute(pool, 4, &read));
    CHECK(t, read == keep);
    OK(t, cuMemAllocFromPoolAsync(&b, 4096, pool, NULL));
    OK(t, cuMemGetAddressRange_v2(&base, &size, a + 1000));
    CHECK(t, base == a && size == 1 << 20);
    OK(t, cuMemFreeAsync(a, NULL));
    OK(t, cuMemFree_v2(b));
    OK(t, cuMemGetInfo_v2(&after, &total));
    CHECK(t, !driver_is_simulated() || after == before);
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(a, NULL));
    OK(t, cuMemAllocAsync(&a, 0, NULL));
}

static void attributes_of_pointers(struct test *t)
{
    begin(t);
    CUdeviceptr device, managed;
    void *host;
    int type = 0;
    OK(t, cuMemAlloc_v2(&device, 64));
    OK(t, cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    OK(t, cuMemHostAlloc(&host, 64, 0));
    OK(t, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 8));
    CHECK(t, type == CU_MEMORYTYPE_DEVICE);
    OK(t, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
    CHECK(t, type == CU_MEMORYTYPE_HOST);
    bool is_managed = false;
    OK(t, cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
    CHECK(t, is_managed);
    GIVES(t, CUDA_ERROR_INVALID_VALUE,
          cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type));
    int ordinal = 7;
    CUpointer_attribute asked[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
    OK(t, cuPointerGetAttributes(2, asked, (void *[]){ &type, &ordinal }, (CUdeviceptr)(uintptr_t)&type));
    CHECK(t, type == 0 && ordinal == -2);
    OK(t, cuMemFree_v2(device));
    OK(t, cuMemFree_v2(managed));
    OK(t, cuMemFreeHost(host));
}

/* One memory mapped twice shows the same bytes; neighbours are one range; without access nothing is reached. */
static void mappings(struct test *t)
{
    begin(t);
    const CUmemAllocationProp properties = { .type = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    const CUmemAccessDesc access = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    size_t g;
    CUdeviceptr range;
    CUmemGenericAllocationHandle one, two;
    uint32_t words[64], got[64];
    OK(t, cuMemGetAllocationGranularity(&g, &properties, 0));
    OK(t, cuMemCreate(&one, g, &properties, 0));
    OK(t, cuMemCreate(&two, g, &properties, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemCreate(&two, g / 2, &properties, 0));
    OK(t, cuMemAddressReserve(&range, 3 * g, 0, 0, 0));
    OK(t, cuMemMap(range, g, 0, one, 0));
    OK(t, cuMemMap(range + g, g, 0, two, 0));
    OK(t, cuMemMap(range + 2 * g, g, 0, one, 0));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemMap(range + g, g, 0, one, 0));
    OK(t, cuMemSetAccess(range, 3 * g, &access, 1));
    for (uint32_t i = 0; i < 64; i++) words[i] = i;
    OK(t, cuMemcpyHtoD_v2(range + g - 128, words, sizeof words));
    OK(t, run_double(t, range + 3 * g - 128));
    OK(t, cuMemcpyDtoH_v2(got, range + g - 128, sizeof got));
    for (uint32_t i = 0; i < 64; i++) CHECK(t, got[i] == (i < 32 ? 2 * i : i));
    OK(t, cuMemRelease(one));
    OK(t, cuMemcpyDtoH_v2(got, range, 64));
    OK(t, cuMemUnmap(range + g, g));
    GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(got, range + g - 128, sizeof got));
    OK(t, cuMemUnmap(range, g));
    OK(t, cuMemUnmap(range + 2 * g, g));
    OK(t, cuMemAddressFree(range, 3 * g));
    OK(t, cuMemRelease(two));
    if (driver_is_simulated()) GIVES(t, CUDA_ERROR_INVALID_VALUE, cuMemRelease(two));
}

int main(int argc, char **argv)
{
    setenv("CUDASIM_QUIET", "1", 1);
    static const struct test_case cases[] = {
        TEST(copies_of_planes_and_boxes), TEST(fills_of_planes),        TEST(kernels_reach_host_memory),
        TEST(pools_and_sizes),            TEST(attributes_of_pointers), TEST(mappings),
    };
    return TEST_MAIN(argc, argv, cases);
}
