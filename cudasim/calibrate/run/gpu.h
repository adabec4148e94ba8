/* A driver library, found at run time: the GPU's libcuda.so.1 or libcudasim.so. */
#ifndef CUDASIM_CALIBRATE_RUN_GPU_H
#define CUDASIM_CALIBRATE_RUN_GPU_H

#include "calibrate/forms/calibrate.h"
#include "driver/core/api.h"

struct gpu {
    CUresult (*init)(unsigned), (*driver_version)(int *), (*device_get)(CUdevice *, int),
        (*device_name)(char *, int, CUdevice);
    CUresult (*primary_retain)(CUcontext *, CUdevice), (*set_current)(CUcontext), (*synchronize)(void);
    CUresult (*allocate)(CUdeviceptr *, size_t), (*release)(CUdeviceptr);
    CUresult (*to_device)(CUdeviceptr, const void *, size_t), (*to_host)(void *, CUdeviceptr, size_t);
    CUresult (*fill8)(CUdeviceptr, unsigned char, size_t);
    CUresult (*load)(CUmodule *, const void *, unsigned, CUjit_option *, void **), (*unload)(CUmodule);
    CUresult (*get_function)(CUfunction *, CUmodule, const char *),
        (*set_attribute)(CUfunction, CUfunction_attribute, int);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                       void **, void **);
    CUresult (*launch_with)(const CUlaunchConfig *, CUfunction, void **, void **);
    CUresult (*error_name)(CUresult, const char **);
    CUresult (*encode_tiled)(void *, unsigned, unsigned, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                             const uint32_t *, unsigned, unsigned, unsigned, unsigned);   /* NULL: there is none */
    CUdeviceptr input, output;
    size_t input_size, output_size;
};

/* Opens library and device 0.  Returns NULL, or what went wrong. */
const char *gpu_open(struct gpu *g, const char *library);
const char *gpu_error(const struct gpu *g, CUresult result);

/* A module with the entries of cases[0..count); on refusal NULL, with the driver's words in log. */
CUmodule gpu_load(const struct gpu *g, const struct calibration_case *cases, uint32_t count, char *log, size_t size);
/* Runs entry `number` of the module.  bytes: output_bytes of the case. */
CUresult gpu_run(struct gpu *g, CUmodule module, const struct calibration_case *one, uint32_t number, uint8_t *bytes);

#endif
