/* Memory, copies, fills. */
#include "hip.h"

#include "machine/memory.h"

#include <string.h>

static hipError_t allocate(void **p, size_t bytes, enum allocation_kind kind)
{
    const hipError_t r = hip_enter();
    if (r != hipSuccess || p == NULL) return hip_leave(r != hipSuccess ? r : hipErrorInvalidValue);
    *p = NULL;
    if (bytes == 0) return hip_leave(hipSuccess);
    const uint64_t address = memory_allocate(&hip.machine.memory, bytes, kind);
    *p = (void *)(uintptr_t)address;
    return hip_leave(address == 0 ? hipErrorOutOfMemory : hipSuccess);
}

static hipError_t release(void *p, enum allocation_kind kind)
{
    const hipError_t r = hip_enter();
    if (r != hipSuccess || p == NULL) return hip_leave(r);
    const uint64_t address = (uint64_t)(uintptr_t)p;
    const struct allocation *a = memory_find(&hip.machine.memory, address, 0);
    if (a == NULL || a->base != address || a->kind != kind) return hip_leave(hipErrorInvalidValue);
    memory_free(&hip.machine.memory, address);
    return hip_leave(hipSuccess);
}

HIP_EXPORT hipError_t hipMalloc(void **p, size_t bytes);
hipError_t hipMalloc(void **p, size_t bytes) { return allocate(p, bytes, ALLOCATION_DEVICE); }
HIP_EXPORT hipError_t hipFree(void *p);
hipError_t hipFree(void *p) { return release(p, ALLOCATION_DEVICE); }
HIP_EXPORT hipError_t hipHostMalloc(void **p, size_t bytes, unsigned flags);
hipError_t hipHostMalloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(p, bytes, ALLOCATION_HOST);
}
HIP_EXPORT hipError_t hipHostFree(void *p);
hipError_t hipHostFree(void *p) { return release(p, ALLOCATION_HOST); }

static hipError_t check_stream(hipStream_t stream)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && !stream_lives(stream)) r = hipErrorInvalidHandle;
    if (r == hipSuccess && stream_capture(stream) != NULL) r = hipErrorStreamCaptureUnsupported;
    return hip_leave(r);
}
HIP_EXPORT hipError_t hipMallocAsync(void **p, size_t bytes, hipStream_t stream);
hipError_t hipMallocAsync(void **p, size_t bytes, hipStream_t stream)
{
    const hipError_t r = check_stream(stream);
    return r != hipSuccess ? r : hipMalloc(p, bytes);
}
HIP_EXPORT hipError_t hipFreeAsync(void *p, hipStream_t stream);
hipError_t hipFreeAsync(void *p, hipStream_t stream)
{
    const hipError_t r = check_stream(stream);
    return r != hipSuccess ? r : hipFree(p);
}

static hipError_t submit(hipStream_t stream, const struct work *w)
{
    hipError_t r = hip_enter();
    if (r == hipSuccess && (w->count != 0 || w->kind == WORK_COPY) && w->bytes != 0)
        r = w->to == NULL || (w->kind == WORK_COPY && w->from == NULL) ? hipErrorInvalidValue : work_submit(stream, w);
    return hip_leave(r);
}

static hipError_t copy(void *to, const void *from, size_t bytes, hipStream_t stream)
{
    return submit(stream, &(struct work){ .kind = WORK_COPY, .to = to, .from = from, .bytes = bytes });
}
HIP_EXPORT hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, hipStream_t stream);
hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, hipStream_t stream)
{
    return kind < 0 || kind > 4 ? hipErrorInvalidValue : copy(to, from, bytes, stream);
}
HIP_EXPORT hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind);
hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return hipMemcpyAsync(to, from, bytes, kind, NULL);
}
HIP_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, void *from, size_t bytes, hipStream_t stream)
{
    return copy(to, from, bytes, stream);
}
HIP_EXPORT hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
    return copy(to, from, bytes, stream);
}
HIP_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream)
{
    return copy(to, from, bytes, stream);
}
HIP_EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream);
hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream)
{
    return submit(stream, &(struct work){ .kind = WORK_FILL, .to = to, .bytes = 1, .count = count, .value = value });
}
HIP_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream);
hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream)
{
    return submit(stream, &(struct work){ .kind = WORK_FILL, .to = to, .bytes = 4, .count = count,
                                          .value = (uint32_t)value });
}

struct pointer_attributes { int type, device; void *device_pointer, *host_pointer; int is_managed; unsigned flags; };
HIP_EXPORT hipError_t hipPointerGetAttributes(struct pointer_attributes *a, const void *p);
hipError_t hipPointerGetAttributes(struct pointer_attributes *a, const void *p)
{
    const hipError_t r = hip_enter();
    if (r != hipSuccess || a == NULL) return hip_leave(r != hipSuccess ? r : hipErrorInvalidValue);
    const struct allocation *found = memory_find(&hip.machine.memory, (uint64_t)(uintptr_t)p, 1);
    if (found == NULL || found->kind > ALLOCATION_HOST) return hip_leave(hipErrorInvalidValue);
    *a = (struct pointer_attributes){ .type = found->kind == ALLOCATION_HOST ? 1 : 2,
                                      .device_pointer = (void *)(uintptr_t)p };
    if (found->kind == ALLOCATION_HOST) a->host_pointer = a->device_pointer;
    return hip_leave(hipSuccess);
}
