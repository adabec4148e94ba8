/* The GPU: opening it, its memory, and random numbers in it; see gpu.h. */
#include "gpu.h"
#include "cli/matrices/sample_data.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, STREAM_OF_ITS_OWN = 1 };

void gpu_stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fprintf(stderr, "bench_gpu: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

void gpu_must(const struct gpu *gpu, CUresult result, const char *what)
{
    const char *name = "?";
    if (result == CUDA_SUCCESS) return;
    (void)gpu->driver->cuGetErrorName(result, &name);
    gpu_stop("%s: %s", what, name);
}

void gpu_library(bsm_status status, const char *what)
{
    if (status != BSM_OK) gpu_stop("%s: %s", what, bsm_last_error());
}

bool gpu_symbol(void *library, const char *name, void *function)
{
    void *symbol = library != NULL ? dlsym(library, name) : NULL;
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void find_functions(struct gpu *gpu)
{
    const char *name = getenv("BLOCKSCALE_LIBCUDA");
    void *library = dlopen(name != NULL ? name : "libcuda.so.1", RTLD_NOW);
#define X(field, symbol, parameters)                                                                                               \
    if (!gpu_symbol(library, symbol, &gpu->field)) gpu_stop("libcuda has no %s", symbol);
    GPU_FUNCTIONS(X)
#undef X
}

static void make_current(struct gpu *gpu)
{
    CUdevice device;
    CUcontext context;
    gpu_must(gpu, gpu->driver->cuDeviceGet(&device, 0), "cuDeviceGet");
    gpu_must(gpu, gpu->driver->cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    gpu_must(gpu, gpu->driver->cuCtxPushCurrent(context), "cuCtxPushCurrent");
    gpu_must(gpu, gpu->cuStreamCreate(&gpu->stream, STREAM_OF_ITS_OWN), "cuStreamCreate");
}

static uint16_t bf16_of(double value) { return (uint16_t)bsm_element_encode(BSM_BF16, value, BSM_ROUND_NEAREST_EVEN, true, 0); }

enum { STRETCH = 1 << 16 };
struct filling { uint16_t *numbers; int64_t count; };
static void fill_stretch(void *argument, int64_t index, int worker)
{
    const struct filling *filling = argument;
    const int64_t end = BSMI_MIN((index + 1) * STRETCH, filling->count);
    (void)worker;
    for (int64_t i = index * STRETCH; i < end; i++) filling->numbers[i] = bf16_of(sample_normal(1, 0, (uint64_t)i));
}

static void fill_pool(struct gpu *gpu, int64_t count)
{
    uint16_t *numbers = malloc((size_t)count * sizeof *numbers);
    if (numbers == NULL) gpu_stop("no memory for %lld random numbers", (long long)count);
    bsmi_parallel_for(bsmi_default_threads(), bsmi_ceil_div(count, STRETCH), fill_stretch, &(struct filling){ numbers, count });
    gpu->pool = gpu_take(gpu, count * (int64_t)sizeof *numbers);
    gpu->pool_count = count;
    gpu_library(bsm_device_write(gpu->context, gpu->pool, numbers, (size_t)count * sizeof *numbers), "random numbers");
    free(numbers);
}

bool gpu_open(struct gpu *gpu, int64_t memory_bytes, int64_t pool_count, int64_t cold_bytes)
{
    int count = 0;
    *gpu = (struct gpu){ .cold_bytes = cold_bytes, .info.struct_size = sizeof gpu->info };
    if (bsm_device_count(BSM_BACKEND_CUDA, &count) != BSM_OK) {
        fprintf(stderr, "bench_gpu: no GPU to measure: %s\n", bsm_last_error());
        return false;
    }
    gpu_library(bsm_device_describe(BSM_BACKEND_CUDA, 0, &gpu->info), "GPU 0");
    gpu_library(bsmi_driver_open(&gpu->driver), "libcuda");
    find_functions(gpu);
    make_current(gpu);
    const bsm_context_options on_gpu = { .struct_size = sizeof on_gpu, .backend = BSM_BACKEND_CUDA, .stream = gpu->stream };
    gpu_library(bsm_context_create(&on_gpu, &gpu->context), "a context of GPU 0");
    gpu_library(bsm_context_create(NULL, &gpu->cpu), "a context of the CPU");
    void *memory = NULL;
    gpu_library(bsm_device_allocate(gpu->context, (size_t)memory_bytes, &memory), "device memory");
    gpu->memory = memory, gpu->memory_bytes = memory_bytes;
    fill_pool(gpu, pool_count);
    cublas_open(gpu);
    monitor_open(&gpu->monitor);
    return true;
}

void gpu_close(struct gpu *gpu)
{
    gpu_wait(gpu);
    gpu_library(bsm_device_release(gpu->context, gpu->memory), "device memory");
    bsm_context_destroy(gpu->context), bsm_context_destroy(gpu->cpu);
}

void *gpu_take(struct gpu *gpu, int64_t bytes)
{
    unsigned char *taken = gpu->memory + gpu->memory_used;
    const int64_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (rounded > gpu->memory_bytes - gpu->memory_used)
        gpu_stop("%lld bytes more than the %lld that were taken of the GPU",
                 (long long)(gpu->memory_used + rounded - gpu->memory_bytes), (long long)gpu->memory_bytes);
    gpu->memory_used += rounded;
    return taken;
}

void gpu_give_back(struct gpu *gpu, int64_t mark)
{
    gpu_wait(gpu);
    gpu->memory_used = mark;
}

int gpu_places(const struct gpu *gpu, int64_t bytes)
{
    const int64_t places = gpu->cold_bytes / (bytes + 1) + 2;
    return places < GPU_MOST_PLACES ? (int)places : GPU_MOST_PLACES;
}

void gpu_wait(const struct gpu *gpu) { gpu_must(gpu, gpu->driver->cuStreamSynchronize(gpu->stream), "cuStreamSynchronize"); }

void gpu_copy(const struct gpu *gpu, void *to, const void *from, int64_t bytes)
{
    gpu_must(gpu, gpu->cuMemcpyDtoDAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, (size_t)bytes, gpu->stream),
             "cuMemcpyDtoDAsync");
}
