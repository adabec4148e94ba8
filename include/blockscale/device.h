/* GPUs: what contexts with BSM_BACKEND_CUDA or BSM_BACKEND_HIP take and do, and the device memory that their callers
 * need.
 *
 * With such a context every pointer inside a bsm_matrix, a bsm_real_matrix, a bsm_scales or a bsm_matmul is a device
 * pointer: codes, scales, tensor scales, alpha, beta, bias, amax, group_rows and group_columns.  The host never reads
 * what they point to; descriptions themselves lie in host memory.  So errors that only data could tell are not found: a
 * tensor scale that is not finite and > 0 gives what its arithmetic gives, negative group_rows and group_columns count
 * as 0, rows beyond M and columns beyond K are left out, a group along K that would not begin with a block begins with
 * the next one, C without a pointer is not read.
 *
 * bsm_multiply, bsm_plan_run, bsm_quantize, bsm_dequantize and bsm_scales_convert_on put their work into a stream and
 * return; the next work of that stream finds it done.  bsm_plan_run allocates nothing, waits for nothing, and may be
 * captured into a graph.  An error that the GPU meets later is reported by a later call, as with every CUDA
 * or HIP function. */
#ifndef BLOCKSCALE_DEVICE_H
#define BLOCKSCALE_DEVICE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why this build has no kernels for a backend ("not built: nvcc was not found"); empty if it has; NULL for numbers not
 * listed. */
BSM_API const char *bsm_backend_missing(int backend);

/* How many devices the backend has on this machine; the CPU is one.  Errors: BSM_EINVAL; BSM_EDEVICE says why there are
 * none. */
BSM_API bsm_status bsm_device_count(bsm_backend backend, int *count);

typedef struct bsm_device_info {
    size_t struct_size;                  /* sizeof(bsm_device_info) where the caller was compiled */
    char name[128];                      /* as the driver spells it */
    int major, minor;                    /* compute capability: 9, 0 is Hopper; 9, 5 of HIP is gfx950 */
    int multiprocessors;                 /* or compute units */
    int driver_version;                  /* 12040: the driver is for CUDA 12.4; of HIP as hipRuntimeGetVersion counts */
    int64_t memory_bytes;
} bsm_device_info;

/* Fills info for device number `device` of BSM_BACKEND_CUDA or BSM_BACKEND_HIP.  Errors: BSM_EINVAL, BSM_EDEVICE. */
BSM_API bsm_status bsm_device_describe(bsm_backend backend, int device, bsm_device_info *info);

/* Device memory for programs that have no CUDA or HIP of their own; any pointer of the context's device will do for the
 * library.  allocate: aligned to 256 bytes; 0 bytes give NULL.  write and read return when the bytes are there; they
 * are in order with the context's stream.  Errors: BSM_EINVAL (a CPU context, NULL), BSM_ENOMEM, BSM_EDEVICE. */
BSM_API bsm_status bsm_device_allocate(bsm_context *context, size_t bytes, void **memory);
BSM_API bsm_status bsm_device_release(bsm_context *context, void *memory);
BSM_API bsm_status bsm_device_write(bsm_context *context, void *to, const void *from, size_t bytes);
BSM_API bsm_status bsm_device_read(bsm_context *context, void *to, const void *from, size_t bytes);

/* Waits for everything in the context's stream.  A CPU context has nothing to wait for.  Errors: BSM_EDEVICE, also for
 * what went wrong in work that was given to the device before. */
BSM_API bsm_status bsm_context_synchronize(bsm_context *context);

#ifdef __cplusplus
}
#endif
#endif
