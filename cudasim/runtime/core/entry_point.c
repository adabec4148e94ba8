/* Functions of the driver by their names, versions, and what belongs to no other file. */
#include "runtime.h"

#include <string.h>

enum { SYMBOL_FOUND = 0 };

bool runtime_driver_call(const char *name, void *pointer)
{
    void *found = NULL;
    int status;
    const CUresult result = cuGetProcAddress_v2(name, &found, CUDART_VERSION, 0, &status);
    if (result != CUDA_SUCCESS || status != SYMBOL_FOUND) return false;
    memcpy(pointer, &found, sizeof found);
    return true;
}

API(cudaGetDriverEntryPointByVersion,
    (const char *symbol, void **function, unsigned version, unsigned long long flags, int *status))
{
    enum { PER_THREAD_STREAM = 2 };
    if (symbol == NULL || function == NULL) return runtime_fail(cudaErrorInvalidValue);
    if (flags == 0 && runtime_null_is_own) flags = PER_THREAD_STREAM;
    return WITHOUT_CONTEXT(cuGetProcAddress_v2(symbol, function, (int)version, flags, status));
}

API(cudaGetDriverEntryPoint, (const char *symbol, void **function, unsigned long long flags, int *status))
{
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

API(cudaDriverGetVersion, (int *version)) { return WITHOUT_CONTEXT(cuDriverGetVersion(version)); }

API(cudaRuntimeGetVersion, (int *version))
{
    if (version == NULL) return runtime_fail(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* Nothing is recorded between them: a profile is asked for by CUDASIM_PROFILE. */
API(cudaProfilerStart, (void)) { return WITHOUT_CONTEXT(CUDA_SUCCESS); }
API(cudaProfilerStop, (void)) { return WITHOUT_CONTEXT(CUDA_SUCCESS); }
