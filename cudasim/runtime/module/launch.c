/* Launches: what stands between <<< and >>> is pushed, the kernel's stub takes it and launches. */
#include "launch.h"
#include "registry.h"

CUDASIM_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);

enum { MOST_CALLS = 16 };
static _Thread_local cudaLaunchConfig_t calls[MOST_CALLS];
static _Thread_local int depth;

/* Not 0: the stub is not called. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
{
    if (depth == MOST_CALLS) return 1;
    calls[depth++] = (cudaLaunchConfig_t){ grid, block, shared_bytes, stream, NULL, 0 };
    return 0;
}

API(__cudaPopCallConfiguration, (dim3 * grid, dim3 *block, size_t *shared_bytes, cudaStream_t *stream))
{
    if (depth == 0) return runtime_fail(cudaErrorMissingConfiguration);
    const cudaLaunchConfig_t *call = &calls[--depth];
    *grid = call->gridDim, *block = call->blockDim;
    *shared_bytes = call->dynamicSmemBytes, *stream = call->stream;
    return cudaSuccess;
}

/* More shared memory than 32 bits count is more than any device has. */
CUlaunchConfig launch_config(const cudaLaunchConfig_t *c)
{
    const size_t shared_bytes = c->dynamicSmemBytes > UINT32_MAX ? UINT32_MAX : c->dynamicSmemBytes;
    return (CUlaunchConfig){ .gridDimX = c->gridDim.x, .gridDimY = c->gridDim.y, .gridDimZ = c->gridDim.z,
                             .blockDimX = c->blockDim.x, .blockDimY = c->blockDim.y, .blockDimZ = c->blockDim.z,
                             .sharedMemBytes = (unsigned)shared_bytes, .hStream = runtime_stream(c->stream),
                             .attrs = c->attrs, .numAttrs = c->numAttrs };
}

/* Whether no kernel of the device could be launched so: the runtime has a code of its own for that. */
static bool is_no_configuration(const cudaLaunchConfig_t *c)
{
    int most = 0;
    const dim3 g = c->gridDim, b = c->blockDim;
    cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, runtime_device());
    return g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0 || g.x > INT32_MAX || g.y > 65535
           || g.z > 65535 || b.x > 1024 || b.y > 1024 || b.z > 64 || (uint64_t)b.x * b.y * b.z > (uint64_t)most;
}

static CUresult launch(const cudaLaunchConfig_t *config, const void *symbol, void **arguments)
{
    CUfunction function;
    if (config == NULL) return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchConfig driver_config = launch_config(config);
    CUresult result = registry_function(symbol, &function);
    if (result == CUDA_SUCCESS) result = cuLaunchKernelEx(&driver_config, function, arguments, NULL);
    if (result == CUDA_ERROR_INVALID_VALUE && is_no_configuration(config))
        result = (CUresult)cudaErrorInvalidConfiguration;
    return result;
}

API(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *symbol, void **arguments))
{
    return IN_CONTEXT(launch(config, symbol, arguments));
}

API(cudaLaunchKernel,
    (const void *symbol, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream))
{
    const cudaLaunchConfig_t config = { grid, block, shared_bytes, stream, NULL, 0 };
    return IN_CONTEXT(launch(&config, symbol, arguments));
}

/* For nvcc's host code: with what __cudaGetKernel gave, which has kept the error if that is nothing. */
API(__cudaLaunchKernel,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream))
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

API(cudaLaunchCooperativeKernel,
    (const void *symbol, dim3 grid, dim3 block, void **arguments, size_t shared_bytes, cudaStream_t stream))
{
    CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1 };
    const cudaLaunchConfig_t config = { grid, block, shared_bytes, stream, &cooperative, 1 };
    return IN_CONTEXT(launch(&config, symbol, arguments));
}

API(cudaLaunchHostFunc, (cudaStream_t stream, CUhostFn *function, void *user))
{
    return IN_CONTEXT(cuLaunchHostFunc(runtime_stream(stream), function, user));
}
