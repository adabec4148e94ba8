/* The driver API for tests: functions of libcudasim.so, found at run time as a user's program finds them. */
#ifndef CUDASIM_TESTS_SUPPORT_KERNEL_API_H
#define CUDASIM_TESTS_SUPPORT_KERNEL_API_H

#include "driver/core/api.h"
#include "test.h"

struct api {
    CUresult (*init)(unsigned), (*device_get)(CUdevice *, int), (*primary_retain)(CUcontext *, CUdevice),
        (*set_current)(CUcontext), (*synchronize)(void);
    CUresult (*primary_reset)(CUdevice);
    CUresult (*mem_alloc)(CUdeviceptr *, size_t), (*mem_free)(CUdeviceptr),
        (*to_device)(CUdeviceptr, const void *, size_t), (*to_host)(void *, CUdeviceptr, size_t);
    CUresult (*memset8)(CUdeviceptr, unsigned char, size_t);
    CUresult (*module_load)(CUmodule *, const char *), (*module_load_data)(CUmodule *, const void *),
        (*module_unload)(CUmodule);
    CUresult (*get_function)(CUfunction *, CUmodule, const char *),
        (*get_global)(CUdeviceptr *, size_t *, CUmodule, const char *);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                       void **, void **);
    CUresult (*error_name)(CUresult, const char **);
    CUresult (*set_attribute)(CUfunction, int, int);
    CUresult (*encode_tiled)(void *map, int type, uint32_t rank, void *address, const uint64_t *dim,
                             const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,
                             int interleave, int swizzle, int promotion, int fill);
};

/* The library, opened once; NULL (and a failure) where it cannot be. */
const struct api *api_get(struct test *t);
/* A buffer with a copy of `bytes`. */
CUdeviceptr api_buffer(struct test *t, const void *bytes, size_t size);
void api_read(struct test *t, CUdeviceptr from, void *bytes, size_t size);
void api_free(struct test *t, CUdeviceptr buffer); /* 0: nothing */

/* A tensor map of rows of `columns` elements, `pitch` bytes apart, as cuTensorMapEncodeTiled makes it of plain
 * numbers. */
struct api_map { _Alignas(64) uint8_t bytes[128]; };
enum { MAP_UINT8 = 0, MAP_FLOAT16 = 6, MAP_PACKED_4 = 14, MAP_PACKED_6 = 15, SWIZZLE_NONE = 0, SWIZZLE_128B = 3 };
struct api_map api_matrix_map(struct test *t, CUdeviceptr at, int type, int swizzle, const uint64_t extent[2],
                              uint64_t pitch, uint32_t box_columns, uint32_t box_rows);
/* The entry of a module that is loaded once, with so much dynamic shared memory; NULL: a failure. */
CUfunction api_function(struct test *t, const char *file, const char *entry, uint32_t shared);

/* Takes `--schedules N` from the arguments, and sets the device where the environment names none: before api_get. */
int api_begin(int argc, char **argv, const char *device);

#define OK(t, call) \
    do { \
        const CUresult ok_result = (call); \
        if (ok_result != CUDA_SUCCESS) FAIL(t, "%s gives %d", #call, (int)ok_result); \
    } while (0)

#endif
