/* Copies.  Each is a CUDA_MEMCPY3D; those in a stream go through work.c. */
#include <string.h>

#include "driver/graph/capture.h"
#include "machine/core/global_memory.h"

CUDASIM_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUDASIM_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
CUDASIM_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUDASIM_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream);

/* One end of a copy. */
struct end { CUmemorytype type; uint64_t address; size_t x, y, z, pitch, height; };

static struct end source_of(const CUDA_MEMCPY3D *c)
{
    const uint64_t address = c->srcMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)c->srcHost : c->srcDevice;
    return (struct end){ c->srcMemoryType, address, c->srcXInBytes, c->srcY, c->srcZ, c->srcPitch, c->srcHeight };
}

static struct end target_of(const CUDA_MEMCPY3D *c)
{
    const uint64_t address = c->dstMemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)c->dstHost : c->dstDevice;
    return (struct end){ c->dstMemoryType, address, c->dstXInBytes, c->dstY, c->dstZ, c->dstPitch, c->dstHeight };
}

/* Host bytes behind an address.  All memory has one address space: an address that a device has given, now or before,
 * is a device's, whatever the call says; others are the program's own, which a call that says DEVICE must not
 * name. */
static uint8_t *bytes_at(struct CUctx_st *context, CUmemorytype type, uint64_t address, size_t bytes)
{
    const bool device = address >= GLOBAL_WINDOW && address < driver.space.next;
    if (device) return memory_host(context, address, bytes);
    return type == CU_MEMORYTYPE_DEVICE ? NULL : (uint8_t *)(uintptr_t)address;
}

static size_t row_at(const struct end *e, size_t y, size_t z)
{
    return ((e->z + z) * e->height + e->y + y) * e->pitch + e->x;
}

static bool end_is_valid(struct CUctx_st *context, const struct end *e, const CUDA_MEMCPY3D *c)
{
    if (e->type != CU_MEMORYTYPE_HOST && e->type != CU_MEMORYTYPE_DEVICE && e->type != CU_MEMORYTYPE_UNIFIED)
        return false;
    if (e->address == 0 || e->pitch > INT32_MAX || e->x > INT32_MAX || c->WidthInBytes > SIZE_MAX / 2) return false;
    if ((c->Height > 1 || c->Depth > 1 || e->y != 0) && e->pitch < e->x + c->WidthInBytes) return false;
    if (c->Depth > 1 && e->height < e->y + c->Height) return false;
    for (size_t z = 0; z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y += c->Height == 1 ? 1 : c->Height - 1)
            if (bytes_at(context, e->type, e->address + row_at(e, y, z), c->WidthInBytes) == NULL) return false;
    return true;
}

CUresult copy_check(struct CUctx_st *context, const CUDA_MEMCPY3D *c)
{
    const struct end from = source_of(c), to = target_of(c);
    if (from.type == CU_MEMORYTYPE_ARRAY || to.type == CU_MEMORYTYPE_ARRAY) {
        driver_say("cudasim: arrays and textures are not simulated\n");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0) return CUDA_SUCCESS;
    return end_is_valid(context, &from, c) && end_is_valid(context, &to, c) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_run(struct CUctx_st *context, const CUDA_MEMCPY3D *c)
{
    const struct end from = source_of(c), to = target_of(c);
    if (c->WidthInBytes == 0) return CUDA_SUCCESS;
    for (size_t z = 0; z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y++) {
            uint8_t *target = bytes_at(context, to.type, to.address + row_at(&to, y, z), c->WidthInBytes);
            const uint8_t *source = bytes_at(context, from.type, from.address + row_at(&from, y, z), c->WidthInBytes);
            if (target == NULL || source == NULL) return CUDA_ERROR_INVALID_VALUE;
            memmove(target, source, c->WidthInBytes);
        }
    return CUDA_SUCCESS;
}

CUresult copy_submit(struct CUctx_st *context, const CUDA_MEMCPY3D *copy, CUstream handle, bool waits)
{
    struct CUstream_st *stream = stream_find(context, handle);
    CUresult result = stream == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && waits) result = capture_enter(stream);
    struct work work = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };
    if (result == CUDA_SUCCESS) work.copy = *copy, result = copy_check(context, copy);
    if (result == CUDA_SUCCESS) result = work_submit(context, handle, &work);
    if (result == CUDA_SUCCESS && waits) streams_land(context);
    return result;
}

static CUresult submit(const CUDA_MEMCPY3D *copy, CUstream stream, bool waits)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && copy == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = copy_submit(context, copy, stream, waits);
    return driver_leave(result);
}

static CUDA_MEMCPY3D line(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from, size_t bytes)
{
    return (CUDA_MEMCPY3D){ .srcMemoryType = from_type, .srcHost = (const void *)(uintptr_t)from, .srcDevice = from,
                            .dstMemoryType = to_type, .dstHost = (void *)(uintptr_t)to, .dstDevice = to,
                            .WidthInBytes = bytes, .Height = 1, .Depth = 1 };
}

static CUDA_MEMCPY3D plane(const CUDA_MEMCPY2D *c)
{
    return (CUDA_MEMCPY3D){ .srcXInBytes = c->srcXInBytes,
                            .srcY = c->srcY,
                            .srcMemoryType = c->srcMemoryType,
                            .srcHost = c->srcHost,
                            .srcDevice = c->srcDevice,
                            .srcPitch = c->srcPitch,
                            .dstXInBytes = c->dstXInBytes,
                            .dstY = c->dstY,
                            .dstMemoryType = c->dstMemoryType,
                            .dstHost = c->dstHost,
                            .dstDevice = c->dstDevice,
                            .dstPitch = c->dstPitch,
                            .WidthInBytes = c->WidthInBytes,
                            .Height = c->Height,
                            .Depth = 1 };
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, bytes);
    return submit(&copy, stream, false);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, bytes);
    return submit(&copy, NULL, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)from, bytes);
    return submit(&copy, stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)from, bytes);
    return submit(&copy, NULL, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)to, CU_MEMORYTYPE_DEVICE, from, bytes);
    return submit(&copy, stream, false);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_HOST, (uint64_t)(uintptr_t)to, CU_MEMORYTYPE_DEVICE, from, bytes);
    return submit(&copy, NULL, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes);
    return submit(&copy, stream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    const CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, bytes);
    return submit(&copy, NULL, true);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
    const CUDA_MEMCPY3D whole = copy == NULL ? (CUDA_MEMCPY3D){ 0 } : plane(copy);
    return submit(copy == NULL ? NULL : &whole, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy) { return cuMemcpy2D_v2(copy); }

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    const CUDA_MEMCPY3D whole = copy == NULL ? (CUDA_MEMCPY3D){ 0 } : plane(copy);
    return submit(copy == NULL ? NULL : &whole, stream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy) { return submit(copy, NULL, true); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream) { return submit(copy, stream, false); }
