/* A thread's state: its device, its context, its last error. */
#include "runtime.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MOST_DEVICES = 64 };

/* Primary contexts that the runtime has retained; `generation` counts their ends. */
static struct { CUcontext context; unsigned generation; } primary[MOST_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local struct {
    cudaError_t last;
    CUresult why;
    int device;
    CUcontext bound;                      /* the primary context that the runtime made current here */
    int bound_device;
    unsigned bound_generation;
} thread;

_Thread_local bool runtime_null_is_own;

CUstream runtime_stream(cudaStream_t stream)
{
    return stream == NULL && runtime_null_is_own ? CU_STREAM_PER_THREAD : stream;
}

CUresult runtime_why(void) { return thread.why; }

cudaError_t runtime_fail(cudaError_t error)
{
    if (error != cudaSuccess) thread.last = error;
    return error;
}

cudaError_t runtime_end(CUresult result) { return runtime_fail((cudaError_t)result); }

bool runtime_initialised(void)
{
    static atomic_bool done;
    if (atomic_load_explicit(&done, memory_order_acquire)) return true;
    thread.why = cuInit(0);
    if (thread.why == CUDA_SUCCESS) atomic_store_explicit(&done, true, memory_order_release);
    return thread.why == CUDA_SUCCESS;
}

/* Takes the primary context of the thread's device. */
static CUresult bind(void)
{
    int count;
    CUresult result = cuDeviceGetCount(&count);
    if (result == CUDA_SUCCESS && (thread.device >= count || thread.device >= MOST_DEVICES))
        result = CUDA_ERROR_INVALID_DEVICE;
    if (result != CUDA_SUCCESS) return result;
    pthread_mutex_lock(&lock);
    if (primary[thread.device].context == NULL)
        result = cuDevicePrimaryCtxRetain(&primary[thread.device].context, thread.device);
    thread.bound = primary[thread.device].context;
    thread.bound_device = thread.device;
    thread.bound_generation = primary[thread.device].generation;
    pthread_mutex_unlock(&lock);
    return result == CUDA_SUCCESS ? cuCtxSetCurrent(thread.bound) : result;
}

/* Whether the thread's primary context is one that has been reset since. */
static bool is_stale(CUcontext current)
{
    if (current != thread.bound) return false;
    pthread_mutex_lock(&lock);
    const bool stale = thread.bound_generation != primary[thread.bound_device].generation;
    pthread_mutex_unlock(&lock);
    return stale;
}

bool runtime_begin(void)
{
    CUcontext current = NULL;
    if (!runtime_initialised()) return false;
    thread.why = cuCtxGetCurrent(&current);
    if (thread.why == CUDA_SUCCESS && (current == NULL || is_stale(current))) thread.why = bind();
    return thread.why == CUDA_SUCCESS;
}

int runtime_device(void)
{
    CUcontext current = NULL;
    CUdevice device;
    if (!runtime_initialised() || cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == NULL || is_stale(current))
        return thread.device;
    return cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : thread.device;
}

void runtime_use_device(int device)
{
    thread.device = device;
    cuCtxSetCurrent(NULL);
}

void runtime_forget(int device)
{
    pthread_mutex_lock(&lock);
    primary[device].context = NULL;
    primary[device].generation++;
    pthread_mutex_unlock(&lock);
}

API(cudaGetLastError, (void))
{
    const cudaError_t last = thread.last;
    thread.last = cudaSuccess;
    return last;
}

API(cudaPeekAtLastError, (void)) { return thread.last; }
