/* The runtime library: kernels and variables that a program registers, launches, errors, devices, host threads. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/support/runtime_api.h"

static const void *host_of(void (*stub)(void))
{
    const void *host;
    memcpy(&host, &stub, sizeof host);
    return host;
}

static const dim3 one = { 1, 1, 1 }, warp = { 32, 1, 1 };

/* Words 0, 1, 2, ... on the device. */
static int *words(struct test *t, unsigned count)
{
    int *device = NULL, *host = malloc(count * sizeof *host);
    for (unsigned i = 0; host != NULL && i < count; i++) host[i] = (int)i;
    OK(t, cudaMalloc((void **)&device, count * sizeof *device));
    OK(t, cudaMemcpy(device, host, count * sizeof *host, cudaMemcpyHostToDevice));
    free(host);
    return device;
}

static int word(struct test *t, const int *device, unsigned at)
{
    int value = -1;
    OK(t, cudaMemcpy(&value, device + at, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

/* ---- launches ---- */

static void kernels_are_launched(struct test *t)
{
    int *device = words(t, 100);
    OK(t, run_kernel(add_stub, device, 99, NULL));
    OK(t, run_kernel(double_stub, device, 100, NULL));
    OK(t, cudaDeviceSynchronize());
    CHECK(t, word(t, device, 0) == 2 && word(t, device, 98) == 2 * 99 && word(t, device, 99) == 2 * 99);
    OK(t, cudaFree(device));
}

/* As the stubs that nvcc makes: what <<<>>> has pushed is popped. */
static void configurations_are_pushed_and_popped(struct test *t)
{
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    GIVES(t, cudaErrorMissingConfiguration, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    CHECK(t, cudaGetLastError() == cudaErrorMissingConfiguration);
    CHECK(t, __cudaPushCallConfiguration((dim3){ 2, 3, 4 }, (dim3){ 5, 6, 7 }, 8, CU_STREAM_LEGACY) == 0);
    CHECK(t, __cudaPushCallConfiguration(one, warp, 0, NULL) == 0);
    OK(t, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    CHECK(t, block.x == 32 && shared == 0 && stream == NULL);
    OK(t, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    CHECK(t, grid.x == 2 && grid.y == 3 && grid.z == 4 && block.x == 5 && block.y == 6 && block.z == 7);
    CHECK(t, shared == 8 && stream == CU_STREAM_LEGACY);
}

static void attributes_of_launches_are_heeded(struct test *t)
{
    int *device = words(t, 64);
    unsigned count = 64;
    void *arguments[] = { &device, &count };
    CUlaunchAttribute cluster = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { 2, 1, 1 } };
    cudaLaunchConfig_t config = { { 2, 1, 1 }, warp, 0, NULL, &cluster, 1 };
    OK(t, cudaLaunchKernelExC(&config, host_of(add_stub), arguments));
    config.gridDim.x = 3;                 /* no multiple of the cluster */
    GIVES(t, cudaErrorInvalidClusterSize, cudaLaunchKernelExC(&config, host_of(add_stub), arguments));
    int clusters = 0;
    config.gridDim.x = 4;
    OK(t, cudaOccupancyMaxActiveClusters(&clusters, host_of(add_stub), &config));
    CHECK(t, clusters > 0);
    GIVES(t, cudaErrorCooperativeLaunchTooLarge,
          cudaLaunchCooperativeKernel(host_of(add_stub), (dim3){ 60000, 1, 1 }, warp, arguments, 0, NULL));
    OK(t, cudaLaunchCooperativeKernel(host_of(add_stub), (dim3){ 2, 1, 1 }, warp, arguments, 0, NULL));
    CHECK(t, word(t, device, 63) == 63 + 2);
    cudaGetLastError();
    OK(t, cudaFree(device));
}

static void kernels_have_handles_and_attributes(struct test *t)
{
    cudaKernel_t kernel = NULL;
    cudaFunction_t function = NULL;
    const char *name = NULL;
    cudaFuncAttributes attributes;
    int blocks = 0, *device = words(t, 1);
    unsigned count = 1;
    void *arguments[] = { &device, &count };
    OK(t, cudaGetKernel(&kernel, host_of(add_stub)));
    OK(t, cudaGetFuncBySymbol(&function, host_of(add_stub)));
    OK(t, cudaLaunchKernel(kernel, one, warp, arguments, 0, NULL));
    OK(t, cudaLaunchKernel(function, one, warp, arguments, 0, NULL));
    CHECK(t, word(t, device, 0) == 2);
    OK(t, cudaFuncGetName(&name, host_of(double_stub)));
    CHECK(t, name != NULL && strcmp(name, "double") == 0);
    OK(t, cudaFuncSetAttribute(host_of(add_stub), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(t, cudaFuncGetAttributes(&attributes, host_of(add_stub)));
    CHECK(t, attributes.maxDynamicSharedSizeBytes == 100000 && attributes.maxThreadsPerBlock == 1024);
    CHECK(t, attributes.ptxVersion == 80 && attributes.sharedSizeBytes == 0);
    OK(t, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, host_of(add_stub), 256, 100000));
    CHECK(t, blocks == 2);                /* by shared memory: 228 KiB of an SM, 1 KiB of each block reserved */
    OK(t, cudaLaunchKernel(host_of(add_stub), one, warp, arguments, 100000, NULL));
    GIVES(t, cudaErrorInvalidValue, cudaLaunchKernel(host_of(add_stub), one, warp, arguments, 100001, NULL));
    cudaGetLastError();
    OK(t, cudaFree(device));
}

/* ---- variables ---- */

static void variables_are_copied(struct test *t)
{
    int values[4] = { 0 }, factor = 3, *device = words(t, 2);
    size_t bytes = 0;
    OK(t, cudaGetSymbolSize(&bytes, counter_host));
    CHECK(t, bytes == sizeof values);
    OK(t, cudaMemcpyFromSymbol(values, counter_host, 8, 8, cudaMemcpyDeviceToHost));
    CHECK(t, values[0] == 7 && values[1] == 8);
    OK(t, cudaMemcpyToSymbol(factor_host, &factor, sizeof factor, 0, cudaMemcpyHostToDevice));
    OK(t, run_kernel(double_stub, device, 2, NULL));
    CHECK(t, word(t, device, 1) == 3);
    factor = 2;
    OK(t, cudaMemcpyToSymbol(factor_host, &factor, sizeof factor, 0, cudaMemcpyDefault));
    int *address = NULL;
    OK(t, cudaGetSymbolAddress((void **)&address, counter_host));
    CHECK(t, word(t, address, 3) == 8);
    GIVES(t, cudaErrorInvalidValue, cudaMemcpyFromSymbol(values, counter_host, 8, 9, cudaMemcpyDeviceToHost));
    GIVES(t, cudaErrorInvalidValue,
          cudaMemcpyFromSymbol(values, counter_host, 1, SIZE_MAX, cudaMemcpyDeviceToHost));
    GIVES(t, cudaErrorInvalidSymbol, cudaGetSymbolAddress((void **)&address, values));
    GIVES(t, cudaErrorInvalidSymbol, cudaGetSymbolAddress((void **)&address, host_of(add_stub)));
    cudaGetLastError();
    OK(t, cudaFree(device));
}

static void **handle;

static void managed_variables_have_one_address(struct test *t)
{
    int *device = words(t, 1), *address = NULL;
    CHECK_OR_RETURN(t, __cudaInitModule(handle) != 0 && managed_host != NULL);
    const int before = *managed_host;
    *managed_host = 1000;
    OK(t, run_kernel(add_stub, device, 1, NULL));
    OK(t, cudaDeviceSynchronize());
    CHECK(t, before >= 40 && *managed_host == 1001);
    OK(t, cudaGetSymbolAddress((void **)&address, managed_host));
    CHECK(t, address == managed_host);
    cudaPointerAttributes attributes;
    OK(t, cudaPointerGetAttributes(&attributes, managed_host));
    CHECK(t, attributes.type == cudaMemoryTypeManaged && attributes.hostPointer == managed_host);
    GIVES(t, cudaErrorInvalidValue, cudaFree(managed_host));
    cudaGetLastError();
    OK(t, cudaFree(device));
}

/* ---- errors ---- */

static void the_last_error_is_kept_until_it_is_asked_for(struct test *t)
{
    int *device = words(t, 1);
    unsigned count = 1;
    void *arguments[] = { &device, &count };
    CHECK(t, cudaGetLastError() == cudaSuccess);
    GIVES(t, cudaErrorInvalidConfiguration,
          cudaLaunchKernel(host_of(add_stub), one, (dim3){ 2048, 1, 1 }, arguments, 0, NULL));
    OK(t, cudaDeviceSynchronize());       /* a call that succeeds does not take it away */
    CHECK(t, cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    CHECK(t, cudaGetLastError() == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaSuccess);
    GIVES(t, cudaErrorInvalidConfiguration, cudaLaunchKernel(host_of(add_stub), (dim3){ 0, 1, 1 }, warp, arguments, 0,
                                                             NULL));
    GIVES(t, cudaErrorInvalidDeviceFunction, cudaLaunchKernel(arguments, one, warp, arguments, 0, NULL));
    GIVES(t, cudaErrorInvalidDeviceFunction, cudaLaunchKernel(NULL, one, warp, arguments, 0, NULL));
    GIVES(t, cudaErrorInvalidDeviceFunction, run_kernel(absent_stub, device, 1, NULL));
    GIVES(t, cudaErrorInvalidResourceHandle, run_kernel(add_stub, device, 1, (cudaStream_t)(void *)arguments));
    GIVES(t, cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, arguments, 4, 5));
    GIVES(t, cudaErrorInvalidValue, cudaMemcpy(arguments, device, 8, cudaMemcpyDeviceToHost));
    GIVES(t, cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 3, arguments, 4, 4, 1, cudaMemcpyHostToDevice));
    GIVES(t, cudaErrorInvalidValue, cudaMalloc(NULL, 4));
    GIVES(t, cudaErrorMemoryAllocation, cudaMalloc((void **)&arguments[0], (size_t)1 << 50));
    CHECK(t, cudaGetLastError() == cudaErrorMemoryAllocation);
    OK(t, cudaFree(device));
}

/* A fault of a kernel stays until the device is reset; what the program has registered is then loaded anew. */
static void a_fault_is_told_by_all_later_calls(struct test *t)
{
    int *device = words(t, 1), *other = NULL;
    setenv("CUDASIM_QUIET", "1", 1);
    cudaGetLastError();
    run_kernel(stray_stub, device, 1, NULL);
    GIVES(t, cudaErrorIllegalAddress, cudaDeviceSynchronize());
    CHECK(t, cudaGetLastError() == cudaErrorIllegalAddress);
    GIVES(t, cudaErrorIllegalAddress, cudaMalloc((void **)&other, 4));
    GIVES(t, cudaErrorIllegalAddress, run_kernel(add_stub, device, 1, NULL));
    CHECK(t, cudaGetLastError() == cudaErrorIllegalAddress);
    unsetenv("CUDASIM_QUIET");
    OK(t, cudaDeviceReset());
    CHECK(t, cudaGetLastError() == cudaSuccess);
    device = words(t, 8);
    OK(t, run_kernel(add_stub, device, 8, NULL));
    CHECK(t, word(t, device, 7) == 8);
    CHECK(t, __cudaInitModule(handle) != 0 && *managed_host == 41);
    OK(t, cudaFree(device));
}

static pthread_barrier_t used, reset;

static void *use_before_and_after(void *user)
{
    int *device = NULL, *errors = user;
    *errors += cudaMalloc((void **)&device, 4) != cudaSuccess;
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&reset);
    *errors += cudaMalloc((void **)&device, 4) != cudaSuccess;
    *errors += run_kernel(add_stub, device, 1, NULL) != cudaSuccess;
    *errors += cudaFree(device) != cudaSuccess;
    return NULL;
}

/* A thread that used the device before another one has reset it takes its next context. */
static void a_reset_is_for_all_threads(struct test *t)
{
    pthread_t thread;
    int errors = 0;
    pthread_barrier_init(&used, NULL, 2);
    pthread_barrier_init(&reset, NULL, 2);
    CHECK_OR_RETURN(t, pthread_create(&thread, NULL, use_before_and_after, &errors) == 0);
    pthread_barrier_wait(&used);
    OK(t, cudaDeviceReset());
    OK(t, cudaSetDevice(0));
    pthread_barrier_wait(&reset);
    pthread_join(thread, NULL);
    CHECK(t, errors == 0);
}

static void errors_have_names_and_texts(struct test *t)
{
    CHECK(t, strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess") == 0);
    CHECK(t, strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
    CHECK(t, strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
    CHECK(t, strcmp(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument") == 0);
    CHECK(t, strcmp(cudaGetErrorName((cudaError_t)12345), "unrecognized error code") == 0);
    CHECK(t, strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code") == 0);
#define X(name, value) CHECK(t, cudaGetErrorString((cudaError_t)(value)) != NULL);
    CUDA_ERRORS(X)
#undef X
}

static void what_is_refused_is_named(struct test *t)
{
    setenv("CUDASIM_QUIET", "1", 1);
    GIVES(t, cudaErrorNotSupported, cudaMallocArray());
    CHECK(t, cudaGetLastError() == cudaErrorNotSupported);
    unsetenv("CUDASIM_QUIET");
}

/* ---- devices ---- */

static void devices_have_properties(struct test *t)
{
    int count = 0, device = -1, value = 0, version = 0;
    cudaDeviceProp properties;
    OK(t, cudaGetDeviceCount(&count));
    OK(t, cudaGetDevice(&device));
    CHECK(t, count >= 1 && device == 0);
    OK(t, cudaGetDeviceProperties(&properties, 0));
    OK(t, cudaDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    CHECK(t, properties.major == value && properties.warpSize == 32 && properties.maxThreadsDim[2] == 64);
    OK(t, cudaDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    CHECK(t, properties.sharedMemPerBlockOptin == (size_t)value && properties.clusterLaunch == 1);
    CHECK(t, properties.name[0] != '\0' && properties.totalGlobalMem != 0 && properties.multiProcessorCount > 0);
    OK(t, cudaSetDevice(0));
    GIVES(t, cudaErrorInvalidDevice, cudaSetDevice(count));
    GIVES(t, cudaErrorInvalidDevice, cudaSetDevice(-1));
    GIVES(t, cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, count));
    OK(t, cudaRuntimeGetVersion(&version));
    CHECK(t, version == CUDART_VERSION);
    size_t stack = 0;
    OK(t, cudaDeviceSetLimit(0, 4096));
    OK(t, cudaDeviceGetLimit(&stack, 0));
    CHECK(t, stack >= 4096);
    cudaGetLastError();
}

static void functions_of_the_driver_are_found(struct test *t)
{
    CUresult (*get_version)(int *) = NULL;
    void *found = NULL;
    int status = -1, version = 0, same = 0;
    OK(t, cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &found, CUDART_VERSION, 0, &status));
    CHECK_OR_RETURN(t, found != NULL && status == 0);
    memcpy(&get_version, &found, sizeof found);
    CHECK(t, get_version(&version) == CUDA_SUCCESS);
    OK(t, cudaDriverGetVersion(&same));
    CHECK(t, version == same);
    OK(t, cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &found, CUDART_VERSION, 0, &status));
    CHECK(t, found == NULL && status == 1);
}

/* ---- host threads ---- */

struct job { int number, errors; };

/* Each with memory of its own, on its own default stream in every other round; its errors are its own. */
static void *work(void *user)
{
    struct job *job = user;
    for (int round = 0; round < 20; round++) {
        int *device = NULL, value = job->number;
        unsigned count = 1;
        void *arguments[] = { &device, &count };
        job->errors += cudaMalloc((void **)&device, 4) != cudaSuccess;
        job->errors += cudaMemcpy(device, &value, 4, cudaMemcpyHostToDevice) != cudaSuccess;
        if (round % 2 == 0) job->errors += run_kernel(add_stub, device, 1, NULL) != cudaSuccess;
        else job->errors += cudaLaunchKernel_ptsz(host_of(add_stub), one, warp, arguments, 0, NULL) != cudaSuccess;
        job->errors += cudaMemcpy(&value, device, 4, cudaMemcpyDeviceToHost) != cudaSuccess;
        job->errors += value != job->number + 1;
        if (job->number % 2 == 1) job->errors += cudaSetDevice(-1) != cudaErrorInvalidDevice;
        job->errors += cudaGetLastError() != (job->number % 2 == 1 ? cudaErrorInvalidDevice : cudaSuccess);
        job->errors += cudaFree(device) != cudaSuccess;
    }
    return NULL;
}

/* The first calls of the process, too, come from all of them at once: this is the first case. */
static void host_threads_work_beside_each_other(struct test *t)
{
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    struct job job[THREADS];
    for (int i = 0; i < THREADS; i++) {
        job[i] = (struct job){ i, 0 };
        CHECK_OR_RETURN(t, pthread_create(&thread[i], NULL, work, &job[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        if (job[i].errors != 0) FAIL(t, "thread %d: %d errors", i, job[i].errors);
    }
    int started = 0;
    OK(t, cudaMemcpyFromSymbol(&started, counter_host, 4, 0, cudaMemcpyDeviceToHost));
    CHECK(t, started == 5 + 20 * THREADS);
}

static void what_is_unregistered_is_gone(struct test *t)
{
    int *device = words(t, 1);
    void **second = program_register();   /* a library with the same kernels: the newest is used */
    OK(t, run_kernel(add_stub, device, 1, NULL));
    program_unregister(second);
    OK(t, run_kernel(add_stub, device, 1, NULL));
    program_unregister(handle);
    GIVES(t, cudaErrorInvalidDeviceFunction, run_kernel(add_stub, device, 1, NULL));
    CHECK(t, word(t, device, 0) == 2);
    handle = program_register();
    OK(t, run_kernel(add_stub, device, 1, NULL));
    cudaGetLastError();
    OK(t, cudaFree(device));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(host_threads_work_beside_each_other),
        TEST(kernels_are_launched), TEST(configurations_are_pushed_and_popped),
        TEST(attributes_of_launches_are_heeded), TEST(kernels_have_handles_and_attributes),
        TEST(variables_are_copied), TEST(managed_variables_have_one_address),
        TEST(the_last_error_is_kept_until_it_is_asked_for), TEST(a_fault_is_told_by_all_later_calls),
        TEST(a_reset_is_for_all_threads),
        TEST(errors_have_names_and_texts), TEST(what_is_refused_is_named), TEST(devices_have_properties),
        TEST(functions_of_the_driver_are_found), TEST(what_is_unregistered_is_gone),
    };
    handle = program_register();
    const int status = TEST_MAIN(argc, argv, cases);
    program_unregister(handle);
    return status;
}
