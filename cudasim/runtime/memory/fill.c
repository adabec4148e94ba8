/* Fills: a byte for each byte. */
#include "copy.h"

static CUresult fill(void *to, size_t pitch, int value, size_t width, size_t height, struct copy_way way)
{
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)to;
    const unsigned char byte = (unsigned char)value;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    if (way.in_stream) return cuMemsetD2D8Async(address, pitch, byte, width, height, runtime_stream(way.stream));
    return runtime_null_is_own ? cuMemsetD2D8_v2_ptds(address, pitch, byte, width, height)
                               : cuMemsetD2D8_v2(address, pitch, byte, width, height);
}

API(cudaMemset, (void *to, int value, size_t bytes)) { return IN_CONTEXT(fill(to, bytes, value, bytes, 1, COPY_NOW)); }

API(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream))
{
    return IN_CONTEXT(fill(to, bytes, value, bytes, 1, COPY_IN(stream)));
}

API(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height))
{
    return IN_CONTEXT(fill(to, pitch, value, width, height, COPY_NOW));
}

API(cudaMemset2DAsync, (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream))
{
    return IN_CONTEXT(fill(to, pitch, value, width, height, COPY_IN(stream)));
}

/* Plane by plane: rows behind extent.height are left as they are. */
static CUresult fill_box(cudaPitchedPtr to, int value, cudaExtent extent, struct copy_way way)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; result == CUDA_SUCCESS && z < extent.depth; z++)
        result = fill((char *)to.ptr + z * to.ysize * to.pitch, to.pitch, value, extent.width, extent.height, way);
    return result;
}

API(cudaMemset3D, (cudaPitchedPtr to, int value, cudaExtent extent))
{
    return IN_CONTEXT(fill_box(to, value, extent, COPY_NOW));
}

API(cudaMemset3DAsync, (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream))
{
    return IN_CONTEXT(fill_box(to, value, extent, COPY_IN(stream)));
}
