/* The driver API for tests: functions of libcudasim.so, found at run time as a user's program finds them. */
#ifndef CUDASIM_TESTS_KERNEL_API_H
#define CUDASIM_TESTS_KERNEL_API_H

#include "driver/api.h"
#include "test.h"

struct api {
    CUresult (*init)(unsigned), (*device_get)(CUdevice *, int), (*primary_retain)(CUcontext *, CUdevice), (*set_current)(CUcontext),
        (*synchronize)(void);
    CUresult (*primary_reset)(CUdevice);
    CUresult (*mem_alloc)(CUdeviceptr *, size_t), (*mem_free)(CUdeviceptr), (*to_device)(CUdeviceptr, const void *, size_t),
        (*to_host)(void *, CUdeviceptr, size_t);
    CUresult (*memset8)(CUdeviceptr, unsigned char, size_t);
    CUresult (*module_load)(CUmodule *, const char *), (*module_load_data)(CUmodule *, const void *), (*module_unload)(CUmodule);
    CUresult (*get_function)(CUfunction *, CUmodule, const char *), (*get_global)(CUdeviceptr *, size_t *, CUmodule, const char *);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
                       void **);
    CUresult (*error_name)(CUresult, const char **);
};

/* The library, opened once; NULL (and a failure) where it cannot be. */
const struct api *api_get(struct test *t);
/* A buffer with a copy of `bytes`. */
CUdeviceptr api_buffer(struct test *t, const void *bytes, size_t size);
void api_read(struct test *t, CUdeviceptr from, void *bytes, size_t size);

#define OK(t, call) \
    do { \
        const CUresult ok_result = (call); \
        if (ok_result != CUDA_SUCCESS) FAIL(t, "%s gives %d", #call, (int)ok_result); \
    } while (0)

#endif
