/* Streams. */
#include "runtime/core/runtime.h"

API(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority))
{
    return IN_CONTEXT(cuStreamCreateWithPriority(stream, flags, priority));
}

API(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags))
{
    return IN_CONTEXT(cuStreamCreateWithPriority(stream, flags, 0));
}

API(cudaStreamCreate, (cudaStream_t * stream)) { return cudaStreamCreateWithFlags(stream, CU_STREAM_DEFAULT); }

API(cudaStreamDestroy, (cudaStream_t stream)) { return IN_CONTEXT(cuStreamDestroy_v2(stream)); }

API(cudaStreamGetPriority, (cudaStream_t stream, int *priority))
{
    return IN_CONTEXT(cuStreamGetPriority(runtime_stream(stream), priority));
}

API(cudaStreamGetFlags, (cudaStream_t stream, unsigned *flags))
{
    return IN_CONTEXT(cuStreamGetFlags(runtime_stream(stream), flags));
}

API(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id))
{
    return IN_CONTEXT(cuStreamGetId(runtime_stream(stream), id));
}

API(cudaStreamGetDevice, (cudaStream_t stream, int *device))
{
    return IN_CONTEXT(cuStreamGetDevice(runtime_stream(stream), device));
}

API(cudaStreamSynchronize, (cudaStream_t stream)) { return IN_CONTEXT(cuStreamSynchronize(runtime_stream(stream))); }
API(cudaStreamQuery, (cudaStream_t stream)) { return IN_CONTEXT(cuStreamQuery(runtime_stream(stream))); }

API(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags))
{
    return IN_CONTEXT(cuStreamWaitEvent(runtime_stream(stream), event, flags));
}

API(cudaStreamAddCallback,
    (cudaStream_t stream, void (*callback)(CUstream, CUresult, void *), void *user, unsigned flags))
{
    return IN_CONTEXT(cuStreamAddCallback(runtime_stream(stream), callback, user, flags));
}
