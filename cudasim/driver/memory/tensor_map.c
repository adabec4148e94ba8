/* Tensor maps: the entries of machine/tensor_map.h.  They need no context, as in CUDA. */
#include "machine/async/tensor_map.h"

#include "driver/core/driver.h"

CUDASIM_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, cuuint32_t rank, void *address,
                                               const cuuint64_t *dimensions, const cuuint64_t *strides,
                                               const cuuint32_t *box, const cuuint32_t *element_strides, int interleave,
                                               int swizzle, int l2_promotion, int fill);
CUDASIM_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address);
CUDASIM_EXPORT CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int type, cuuint32_t rank, void *address,
                                                const cuuint64_t *dimensions, const cuuint64_t *strides,
                                                const int *lower_corner, const int *upper_corner, cuuint32_t channels,
                                                cuuint32_t pixels, const cuuint32_t *element_strides, int interleave,
                                                int swizzle, int l2_promotion, int fill);

static CUresult finish(int failed, const char *call, const char *sentence)
{
    if (failed) driver_say("cudasim: %s: %s\n", call, sentence);
    return driver_leave(failed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, cuuint32_t rank, void *address,
                                const cuuint64_t *dimensions, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *element_strides, int interleave, int swizzle, int l2_promotion,
                                int fill)
{
    char sentence[256] = "an argument is NULL";
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return driver_leave(result);
    int failed =
        map == NULL || dimensions == NULL || box == NULL || element_strides == NULL || (rank > 1 && strides == NULL);
    if (!failed)
        failed =
            tensor_map_encode_tiled(limits_now(), map, (unsigned)type, rank, (uint64_t)(uintptr_t)address, dimensions,
                                    strides, box, element_strides, (unsigned)interleave, (unsigned)swizzle,
                                    (unsigned)l2_promotion, (unsigned)fill, sentence, sizeof sentence);
    return finish(failed, "cuTensorMapEncodeTiled", sentence);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
    char sentence[256] = "the map is NULL";
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return driver_leave(result);
    const int failed =
        map == NULL
        || tensor_map_replace_address(limits_now(), map, (uint64_t)(uintptr_t)address, sentence, sizeof sentence);
    return finish(failed, "cuTensorMapReplaceAddress", sentence);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int type, cuuint32_t rank, void *address,
                                 const cuuint64_t *dimensions, const cuuint64_t *strides, const int *lower_corner,
                                 const int *upper_corner, cuuint32_t channels, cuuint32_t pixels,
                                 const cuuint32_t *element_strides, int interleave, int swizzle, int l2_promotion,
                                 int fill)
{
    (void)map, (void)type, (void)rank, (void)address, (void)dimensions, (void)strides, (void)lower_corner,
        (void)upper_corner;
    (void)channels, (void)pixels, (void)element_strides, (void)interleave, (void)swizzle, (void)l2_promotion,
        (void)fill;
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return driver_leave(result);
    driver_say("cudasim: cuTensorMapEncodeIm2col: im2col maps are not simulated\n");
    return driver_leave(CUDA_ERROR_NOT_SUPPORTED);
}
