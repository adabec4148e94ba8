/* What can be given to a stream or stand in a graph: one struct for all of it, run at once or recorded by a capture. */
#ifndef CUDASIM_DRIVER_WORK_H
#define CUDASIM_DRIVER_WORK_H

#include "driver/driver.h"

enum work_kind { WORK_EMPTY, WORK_KERNEL, WORK_COPY, WORK_FILL, WORK_HOST, WORK_EVENT_RECORD, WORK_EVENT_WAIT };

/* Rows of a copy: where the first byte lies, bytes from row to row and from slice to slice. */
struct place { bool on_device; CUdeviceptr device; void *host; size_t pitch, slice; };

struct work {
    enum work_kind kind;
    union {
        struct {
            struct CUfunc_st *function;
            uint32_t grid[3], block[3], cluster[3], dynamic_shared;
            bool explicit_cluster;
            uint8_t *parameters;          /* owned */
        } kernel;
        struct { struct place to, from; size_t width, height, depth; } copy;      /* width in bytes */
        struct { CUdeviceptr to; size_t pitch, width, height; unsigned value, element; } fill;   /* width in elements */
        struct { CUhostFn *function; void *user; } host;
        struct CUevent_st *event;
    } as;
};

/* Runs it now.  A fault of a kernel is the context's from then on. */
CUresult work_run(struct CUctx_st *context, const struct work *work);
/* What must hold whether it runs now or is recorded. */
CUresult work_check(struct CUctx_st *context, const struct work *work);
void work_release(struct work *work);
bool work_clone(struct work *to, const struct work *from);

/* Takes the work over: runs it, or, where the stream is capturing, adds it to the graph. */
CUresult stream_submit(struct CUctx_st *context, CUstream stream, struct work *work);
/* The same for calls that return when the work is done: they are refused while anything that they would wait for is captured. */
CUresult stream_submit_blocking(struct CUctx_st *context, struct work *work);

/* What the caller described, checked as far as no memory is looked at. */
CUresult work_from_kernel_node(const CUDA_KERNEL_NODE_PARAMS *parameters, struct work *work);
CUresult work_from_copy(const CUDA_MEMCPY3D *copy, struct work *work);
CUresult work_from_fill(const CUDA_MEMSET_NODE_PARAMS *fill, struct work *work);
/* launch.c: fills a kernel's work from what the caller gave; the caller releases it. */
CUresult work_from_launch(const CUlaunchConfig *config, struct CUfunc_st *function, void **parameters, void **extra, struct work *work);

#endif
