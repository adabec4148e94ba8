/* See device.h. */
#include "device.h"

#include "cuda/driver/driver.h"
#include "cuda/driver/embedded.h"

#include <stdlib.h>

enum { MOST_MODULES = 32, MOST_ALLOCATIONS = 4096 };

static const struct bsmi_driver *driver;
static CUcontext context;
static CUmodule modules[MOST_MODULES];
static int module_count;
static CUdeviceptr allocations[MOST_ALLOCATIONS];
static int allocation_count;

static bool ok(struct test *t, CUresult result, const char *function)
{
    if (result == CUDA_SUCCESS) return true;
    const char *name = "?";
    (void)driver->cuGetErrorName(result, &name);
    FAIL(t, "%s: %s", function, name);
    return false;
}

bool device_is_real(void)
{
    const char *library = getenv("BLOCKSCALE_LIBCUDA");
    return library == NULL || strstr(library, "cudasim") == NULL;
}

static bool load_modules(struct test *t)
{
    for (const struct bsmi_cuda_fatbin *f = bsmi_cuda_fatbins; f->file != NULL; f++) {
        if (strncmp(f->file, "sm", 2) == 0) continue;                   /* GEMM kernels for one generation */
        if (module_count == MOST_MODULES || !ok(t, driver->cuModuleLoadData(&modules[module_count], f->start), f->file))
            return false;
        module_count++;
    }
    return true;
}

bool device_open(struct test *t)
{
    if (bsmi_cuda_not_built[0] != '\0') {
        test_skip(t, bsmi_cuda_not_built);
        return false;
    }
    if (module_count > 0) return ok(t, driver->cuCtxPushCurrent(context), "cuCtxPushCurrent");
    CUdevice device;
    if (bsmi_driver_open(&driver) != BSM_OK) {
        test_skip(t, bsm_last_error());
        return false;
    }
    return ok(t, driver->cuDeviceGet(&device, 0), "cuDeviceGet")
        && ok(t, driver->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain")
        && ok(t, driver->cuCtxPushCurrent(context), "cuCtxPushCurrent") && load_modules(t);
}

static CUdeviceptr allocate(struct test *t, size_t bytes)
{
    CUdeviceptr memory = 0;
    if (allocation_count == MOST_ALLOCATIONS) FAIL(t, "more than %d allocations", MOST_ALLOCATIONS);
    else if (ok(t, driver->cuMemAlloc(&memory, bytes == 0 ? 1 : bytes), "cuMemAlloc"))
        allocations[allocation_count++] = memory;
    return memory;
}

void *device_copy(struct test *t, const void *from, size_t bytes, size_t offset)
{
    const CUdeviceptr memory = allocate(t, bytes + offset);
    if (bytes > 0) ok(t, driver->cuMemcpyHtoDAsync(memory + offset, from, bytes, NULL), "cuMemcpyHtoDAsync");
    ok(t, driver->cuStreamSynchronize(NULL), "cuStreamSynchronize");
    return (void *)(uintptr_t)(memory + offset);
}

void *device_fill(struct test *t, int fill, size_t bytes, size_t offset)
{
    const CUdeviceptr memory = allocate(t, bytes + offset);
    if (bytes + offset > 0)
        ok(t, driver->cuMemsetD8Async(memory, (unsigned char)fill, bytes + offset, NULL), "cuMemsetD8Async");
    return (void *)(uintptr_t)(memory + offset);
}

void device_write_word(struct test *t, uint32_t *to, uint32_t word)
{
    ok(t, driver->cuMemsetD32Async((CUdeviceptr)(uintptr_t)to, word, 1, NULL), "cuMemsetD32Async");
}

void device_read(struct test *t, void *to, const void *from, size_t bytes)
{
    if (bytes == 0) return;
    ok(t, driver->cuMemcpyDtoHAsync(to, (CUdeviceptr)(uintptr_t)from, bytes, NULL), "cuMemcpyDtoHAsync");
    ok(t, driver->cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

void device_free_all(struct test *t)
{
    for (int i = 0; i < allocation_count; i++) ok(t, driver->cuMemFree(allocations[i]), "cuMemFree");
    allocation_count = 0;
}

bool device_launch(struct test *t, const char *kernel, int ctas, int threads, const void *parameters)
{
    CUfunction function = NULL;
    for (int i = 0; i < module_count && function == NULL; i++)
        if (driver->cuModuleGetFunction(&function, modules[i], kernel) != CUDA_SUCCESS) function = NULL;
    if (function == NULL) {
        FAIL(t, "no module has the kernel %s", kernel);
        return false;
    }
    /* The struct's size is the kernel's own. */
    union { const void *constant; void *argument; } pointer = { parameters };
    void *arguments[] = { pointer.argument };
    const CUlaunchConfig config = { .gridDimX = (unsigned)ctas,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = (unsigned)threads,
                                    .blockDimY = 1,
                                    .blockDimZ = 1 };
    return ok(t, driver->cuLaunchKernelEx(&config, function, arguments, NULL), kernel) &&
           ok(t, driver->cuStreamSynchronize(NULL), kernel);
}

/* Matrices --------------------------------------------------------------------------------------------------------- */

static void fill_random(struct test *t, unsigned char *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++) bytes[i] = (unsigned char)rnd(t);
}

bool twin_make(struct test *t, const struct twin_wish *wish, struct twin *twin)
{
    memset(twin, 0, sizeof *twin);
    twin->tensor_scale = wish->tensor_scale;
    const bool gguf = wish->packing == BSM_PACKING_GGUF;
    twin->host = (bsm_matrix){
        .struct_size = sizeof(bsm_matrix),
        .format = wish->format,
        .packing = wish->packing,
        .rows = wish->rows,
        .columns = wish->columns,
        .batch = wish->batch,
        .scale_layout = wish->layout,
        .tensor_scale = wish->tensor_scale != 0 ? &twin->tensor_scale : NULL,
        .tensor_scale_use = wish->use,
    };
    if (wish->extra_pitch != 0) twin->host.pitch = (wish->columns + 63) / 64 * 64 + wish->extra_pitch * 64;
    if (bsm_matrix_data_bytes(&twin->host, &twin->data_bytes) != BSM_OK ||
        bsm_matrix_scale_bytes(&twin->host, &twin->scale_bytes) != BSM_OK)
        return false;
    twin->host.data = aligned_alloc(64, (size_t)(twin->data_bytes / 64 + 1) * 64);
    if (twin->scale_bytes > 0) twin->host.scales = aligned_alloc(64, (size_t)(twin->scale_bytes / 64 + 1) * 64);
    fill_random(t, twin->host.data, twin->data_bytes);
    if (twin->scale_bytes > 0) fill_random(t, twin->host.scales, twin->scale_bytes);
    if (gguf) twin->host.scales = NULL;
    if (bsmi_matrix_resolve("matrix", &twin->host, &twin->resolved) == BSM_OK) return true;
    twin_free(twin);
    return false;
}

void twin_upload(struct test *t, const struct twin_wish *wish, struct twin *twin)
{
    twin->device = bsmi_device_matrix_of(&twin->resolved);
    twin->device.data = device_copy(t, twin->host.data, (size_t)twin->data_bytes, (size_t)wish->offset);
    twin->device.scales = wish->packing == BSM_PACKING_GGUF ? twin->device.data : NULL;
    if (twin->scale_bytes > 0)
        twin->device.scales = device_copy(t, twin->host.scales, (size_t)twin->scale_bytes, (size_t)wish->offset);
    if (wish->tensor_scale != 0)
        twin->device.tensor_scale = device_copy(t, &twin->tensor_scale, sizeof twin->tensor_scale, 0);
}

static bool bytes_equal(struct test *t, const void *host, const void *device, int64_t count, const char *what,
                        const char *part)
{
    unsigned char *got = malloc((size_t)count + 1);
    const unsigned char *want = host;
    int64_t first = 0;
    device_read(t, got, device, (size_t)count);
    while (first < count && got[first] == want[first]) first++;
    if (first < count)
        FAIL(t, "%s: byte %lld of the %s is 0x%02x, not 0x%02x", what, (long long)first, part, got[first], want[first]);
    free(got);
    return first == count;
}

bool twin_equal(struct test *t, const struct twin *twin, const char *what)
{
    return bytes_equal(t, twin->host.data, twin->device.data, twin->data_bytes, what, "codes")
           && (twin->scale_bytes == 0
               || bytes_equal(t, twin->host.scales, twin->device.scales, twin->scale_bytes, what, "scales"));
}

void twin_free(struct twin *twin)
{
    free(twin->host.data);
    free(twin->host.scales);
    twin->host.data = twin->host.scales = NULL;
}

const char *wish_text(const struct twin_wish *w)
{
    static char text[192];
    snprintf(text, sizeof text, "%s %s %s %lldx%lldx%lld pitch+%lld offset %d tensor scale %g",
             bsm_format_get((int)w->format)->name, bsm_packing_name((int)w->packing),
             bsm_layout_name((int)w->layout.kind), (long long)w->batch, (long long)w->rows, (long long)w->columns,
             (long long)w->extra_pitch, w->offset, (double)w->tensor_scale);
    return text;
}
