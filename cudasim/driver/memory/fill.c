/* Fills. */
#include <string.h>

#include "driver/graph/work.h"

CUDASIM_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUDASIM_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height);
CUDASIM_EXPORT CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                         size_t height);
CUDASIM_EXPORT CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height);
CUDASIM_EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                          size_t height, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                           size_t height, CUstream stream);
CUDASIM_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                                           CUstream stream);

/* Fills are work of the context's device: they reach what its kernels reach. */
static uint8_t *row(const struct CUctx_st *context, const CUDA_MEMSET_NODE_PARAMS *f, size_t y)
{
    return space_host(&context->machine.memory, f->dst + y * f->pitch, f->width * f->elementSize);
}

static bool row_valid(const struct CUctx_st *context, const CUDA_MEMSET_NODE_PARAMS *f, size_t y)
{
    char why[400];
    const CUdeviceptr at = f->dst + y * f->pitch;
    if (row(context, f, y) != NULL) return true;
    if (space_explain(&context->machine.memory, at, why, sizeof why))
        driver_say("cudasim: a fill on device %d writes global address 0x%llx, %s\n", (int)context->device, at, why);
    return false;
}

CUresult fill_check(struct CUctx_st *context, const CUDA_MEMSET_NODE_PARAMS *f)
{
    if (f->elementSize != 1 && f->elementSize != 2 && f->elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
    if (f->elementSize < 4 && f->value >> (8 * f->elementSize) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (f->width == 0 || f->height == 0) return CUDA_SUCCESS;
    if (f->dst % f->elementSize != 0 || f->width > SIZE_MAX / 4) return CUDA_ERROR_INVALID_VALUE;
    if (f->height > 1
        && (f->pitch % f->elementSize != 0 || f->pitch < f->width * f->elementSize || f->pitch > INT32_MAX))
        return CUDA_ERROR_INVALID_VALUE;
    return row_valid(context, f, 0) && row_valid(context, f, f->height - 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult fill_run(struct CUctx_st *context, const CUDA_MEMSET_NODE_PARAMS *f)
{
    for (size_t y = 0; y < f->height && f->width != 0; y++) {
        uint8_t *to = row(context, f, y);
        if (to == NULL) return CUDA_ERROR_INVALID_VALUE;
        if (f->elementSize == 1) memset(to, (int)f->value, f->width);
        else for (size_t i = 0; i < f->width; i++) memcpy(to + i * f->elementSize, &f->value, f->elementSize);
    }
    return CUDA_SUCCESS;
}

static CUresult submit(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
                       CUstream stream)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    struct work work = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = { to, pitch, value, element, width, height } };
    if (result == CUDA_SUCCESS) result = work_submit(context, stream, &work);
    return driver_leave(result);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return submit(to, 0, value, 1, count, 1, NULL);
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    return submit(to, 0, value, 2, count, 1, NULL);
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count)
{
    return submit(to, 0, value, 4, count, 1, NULL);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return submit(to, 0, value, 1, count, 1, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return submit(to, 0, value, 2, count, 1, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream)
{
    return submit(to, 0, value, 4, count, 1, stream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return submit(to, pitch, value, 1, width, height, NULL);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return submit(to, pitch, value, 2, width, height, NULL);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height)
{
    return submit(to, pitch, value, 4, width, height, NULL);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream stream)
{
    return submit(to, pitch, value, 1, width, height, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream stream)
{
    return submit(to, pitch, value, 2, width, height, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream)
{
    return submit(to, pitch, value, 4, width, height, stream);
}
