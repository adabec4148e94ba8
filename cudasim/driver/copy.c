/* Copies and fills, one- to three-dimensional, on streams. */
#include <string.h>

#include "driver/work.h"

CUDASIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUDASIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUDASIM_EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy);
CUDASIM_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
CUDASIM_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUDASIM_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height);
CUDASIM_EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height);
CUDASIM_EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height);
CUDASIM_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream);

/* A stream that is none: the call returns when the work is done. */
static CUresult submit(CUresult made, struct work *work, bool blocking, CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS) result = made;
    if (result == CUDA_SUCCESS && !blocking && !stream_lives(context, stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS) return driver_leave(result);
    return driver_leave(blocking ? stream_submit_blocking(context, work) : stream_submit(context, stream, work));
}

/* ---- one row ---- */

static struct place device(CUdeviceptr address) { return (struct place){ .on_device = true, .device = address }; }
static struct place host(const void *pointer) { return (struct place){ .host = (void *)(uintptr_t)pointer }; }

/* Unified addresses: what lies in an allocation of the device is the device's. */
static struct place unified(CUdeviceptr address)
{
    return address >= GLOBAL_WINDOW && address < SHARED_WINDOW ? device(address) : host((const void *)(uintptr_t)address);
}

static CUresult copy_row(struct place to, struct place from, size_t bytes, bool blocking, CUstream stream)
{
    struct work work = { .kind = WORK_COPY, .as.copy = { to, from, bytes, 1, 1 } };
    const bool missing = bytes != 0 && ((!to.on_device && to.host == NULL) || (!from.on_device && from.host == NULL));
    return submit(missing ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, &work, blocking, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) { return copy_row(device(to), host(from), bytes, true, NULL); }
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) { return copy_row(host(to), device(from), bytes, true, NULL); }
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy_row(device(to), device(from), bytes, true, NULL); }
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return copy_row(unified(to), unified(from), bytes, true, NULL); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy_row(device(to), host(from), bytes, false, stream);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_row(host(to), device(from), bytes, false, stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_row(device(to), device(from), bytes, false, stream);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_row(unified(to), unified(from), bytes, false, stream);
}

/* ---- boxes ---- */

/* False: a kind of memory that is not here, no pointer, or a pitch that the rows do not fit in. */
static bool place_of(CUmemorytype type, const void *pointer, CUdeviceptr address, size_t x, size_t y, size_t z, size_t pitch,
                     size_t rows, const CUDA_MEMCPY3D *c, struct place *place)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST: *place = host(pointer); break;
    case CU_MEMORYTYPE_DEVICE: *place = device(address); break;
    case CU_MEMORYTYPE_UNIFIED: *place = unified(address); break;
    default: return false;
    }
    if (pitch == 0) pitch = x + c->WidthInBytes;          /* one row alone */
    if (rows == 0) rows = y + c->Height;
    if (pitch < x + c->WidthInBytes || (c->Depth > 1 && rows < y + c->Height)) return false;
    place->pitch = pitch;
    place->slice = pitch * rows;
    const size_t offset = z * place->slice + y * pitch + x;
    if (place->on_device) place->device += offset;
    else if (place->host != NULL) place->host = (char *)place->host + offset;
    return place->on_device || place->host != NULL;
}

CUresult work_from_copy(const CUDA_MEMCPY3D *c, struct work *work)
{
    *work = (struct work){ .kind = WORK_COPY, .as.copy = { .width = c->WidthInBytes, .height = c->Height, .depth = c->Depth } };
    if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0) {
        work->as.copy.width = 0;
        return CUDA_SUCCESS;
    }
    if (c->srcLOD != 0 || c->dstLOD != 0 || c->reserved0 != NULL || c->reserved1 != NULL) return CUDA_ERROR_INVALID_VALUE;
    if ((c->Height > 1 || c->Depth > 1) && (c->srcPitch == 0 || c->dstPitch == 0)) return CUDA_ERROR_INVALID_VALUE;
    const bool good = place_of(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcZ, c->srcPitch, c->srcHeight, c,
                               &work->as.copy.from) &&
                      place_of(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ, c->dstPitch, c->dstHeight, c,
                               &work->as.copy.to);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_box(const CUDA_MEMCPY3D *copy, bool blocking, CUstream stream)
{
    struct work work = { .kind = WORK_EMPTY };
    const CUresult made = copy == NULL ? CUDA_ERROR_INVALID_VALUE : work_from_copy(copy, &work);
    return submit(made, &work, blocking, stream);
}

static CUresult copy_rows(const CUDA_MEMCPY2D *c, bool blocking, CUstream stream)
{
    if (c == NULL) return copy_box(NULL, blocking, stream);
    const CUDA_MEMCPY3D box = { .srcXInBytes = c->srcXInBytes, .srcY = c->srcY, .srcMemoryType = c->srcMemoryType, .srcHost = c->srcHost,
                                .srcDevice = c->srcDevice, .srcPitch = c->srcPitch, .dstXInBytes = c->dstXInBytes, .dstY = c->dstY,
                                .dstMemoryType = c->dstMemoryType, .dstHost = c->dstHost, .dstDevice = c->dstDevice,
                                .dstPitch = c->dstPitch, .WidthInBytes = c->WidthInBytes, .Height = c->Height, .Depth = 1 };
    return copy_box(&box, blocking, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy) { return copy_rows(copy, true, NULL); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy) { return copy_rows(copy, true, NULL); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream) { return copy_rows(copy, false, stream); }
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy) { return copy_box(copy, true, NULL); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream) { return copy_box(copy, false, stream); }

/* ---- fills ---- */

CUresult work_from_fill(const CUDA_MEMSET_NODE_PARAMS *f, struct work *work)
{
    if (f->elementSize != 1 && f->elementSize != 2 && f->elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
    *work = (struct work){ .kind = WORK_FILL, .as.fill = { f->dst, f->pitch, f->width, f->height, f->value, f->elementSize } };
    return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width, size_t height, bool blocking,
                     CUstream stream)
{
    struct work work = { .kind = WORK_FILL, .as.fill = { to, pitch, width, height, value, element } };
    return submit(CUDA_SUCCESS, &work, blocking, stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) { return fill(to, 0, value, 1, n, 1, true, NULL); }
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n) { return fill(to, 0, value, 2, n, 1, true, NULL); }
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) { return fill(to, 0, value, 4, n, 1, true, NULL); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) { return fill(to, 0, value, 1, n, 1, false, s); }
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream s) { return fill(to, 0, value, 2, n, 1, false, s); }
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream s) { return fill(to, 0, value, 4, n, 1, false, s); }
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return fill(to, pitch, value, 1, width, height, true, NULL);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return fill(to, pitch, value, 2, width, height, true, NULL);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height)
{
    return fill(to, pitch, value, 4, width, height, true, NULL);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream)
{
    return fill(to, pitch, value, 1, width, height, false, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream)
{
    return fill(to, pitch, value, 2, width, height, false, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream)
{
    return fill(to, pitch, value, 4, width, height, false, stream);
}
