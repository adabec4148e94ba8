/* Events. */
#include "runtime/core/runtime.h"

API(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags))
{
    return IN_CONTEXT(cuEventCreate(event, flags));
}

API(cudaEventCreate, (cudaEvent_t * event)) { return cudaEventCreateWithFlags(event, 0); }
API(cudaEventDestroy, (cudaEvent_t event)) { return IN_CONTEXT(cuEventDestroy_v2(event)); }

API(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags))
{
    return IN_CONTEXT(cuEventRecordWithFlags(event, runtime_stream(stream), flags));
}

API(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream)) { return cudaEventRecordWithFlags(event, stream, 0); }
API(cudaEventSynchronize, (cudaEvent_t event)) { return IN_CONTEXT(cuEventSynchronize(event)); }
API(cudaEventQuery, (cudaEvent_t event)) { return IN_CONTEXT(cuEventQuery(event)); }

API(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end))
{
    return IN_CONTEXT(cuEventElapsedTime_v2(milliseconds, start, end));
}
