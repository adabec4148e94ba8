/* Running what was given to a stream. */
#include "driver/work.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static CUresult run_kernel(struct CUctx_st *context, const struct work *work)
{
    struct launch l = { .image = &work->as.kernel.function->module->image,
                        .function = work->as.kernel.function->function,
                        .dynamic_shared = work->as.kernel.dynamic_shared,
                        .explicit_cluster = work->as.kernel.explicit_cluster,
                        .parameters = work->as.kernel.parameters };
    memcpy(l.grid, work->as.kernel.grid, sizeof l.grid);
    memcpy(l.block, work->as.kernel.block, sizeof l.block);
    memcpy(l.cluster, work->as.kernel.cluster, sizeof l.cluster);
    struct report *report = calloc(1, sizeof *report);
    if (report == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!machine_run(&context->machine, &l, report)) {
        driver_say("%s", report->text);
        context->fault = driver_fault_code(report->code);
    }
    free(report);
    return CUDA_SUCCESS;
}

/* The bytes of one row; NULL: not in one allocation. */
static uint8_t *row_of(struct CUctx_st *context, const struct place *p, size_t slice, size_t row, size_t bytes)
{
    const size_t offset = slice * p->slice + row * p->pitch;
    if (p->on_device) return global_host(&context->machine.memory, p->device + offset, bytes);
    return (uint8_t *)p->host + offset;
}

static CUresult each_row(struct CUctx_st *context, const struct work *work, bool move)
{
    const size_t width = work->as.copy.width;
    if (width == 0) return CUDA_SUCCESS;
    for (size_t z = 0; z < work->as.copy.depth; z++)
        for (size_t y = 0; y < work->as.copy.height; y++) {
            uint8_t *to = row_of(context, &work->as.copy.to, z, y, width), *from = row_of(context, &work->as.copy.from, z, y, width);
            if (to == NULL || from == NULL) return CUDA_ERROR_INVALID_VALUE;
            if (move) memmove(to, from, width);
        }
    return CUDA_SUCCESS;
}

static CUresult each_fill(struct CUctx_st *context, const struct work *work, bool write)
{
    const size_t element = work->as.fill.element, width = work->as.fill.width;
    if (width == 0 || work->as.fill.height == 0) return CUDA_SUCCESS;
    if (width > SIZE_MAX / element || work->as.fill.to % element != 0) return CUDA_ERROR_INVALID_VALUE;
    if (work->as.fill.height > 1 && (work->as.fill.pitch < width * element || work->as.fill.pitch % element != 0)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t y = 0; y < work->as.fill.height; y++) {
        uint8_t *row = global_host(&context->machine.memory, work->as.fill.to + y * work->as.fill.pitch, width * element);
        if (row == NULL) return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; write && i < width; i++) memcpy(row + i * element, &work->as.fill.value, element);
    }
    return CUDA_SUCCESS;
}

CUresult work_check(struct CUctx_st *context, const struct work *work)
{
    switch (work->kind) {
    case WORK_COPY: return each_row(context, work, false);
    case WORK_FILL: return each_fill(context, work, false);
    case WORK_HOST: return work->as.host.function == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    default: return CUDA_SUCCESS;         /* kernels were checked when the work was made */
    }
}

static void call_host(const struct work *work)
{
    CUhostFn *const function = work->as.host.function;
    void *const user = work->as.host.user;
    pthread_mutex_unlock(&driver.lock);   /* other threads go on; the function itself may not call cu... */
    function(user);
    pthread_mutex_lock(&driver.lock);
}

static void record(struct CUevent_st *event)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->recorded = true;
    event->nanoseconds = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

CUresult work_run(struct CUctx_st *context, const struct work *work)
{
    if (context->fault != CUDA_SUCCESS) return context->fault;
    switch (work->kind) {
    case WORK_KERNEL: return run_kernel(context, work);
    case WORK_COPY: return each_row(context, work, true);
    case WORK_FILL: return each_fill(context, work, true);
    case WORK_HOST: call_host(work); return CUDA_SUCCESS;
    case WORK_EVENT_RECORD: record(work->as.event); return CUDA_SUCCESS;
    default: return CUDA_SUCCESS;
    }
}

void work_release(struct work *work)
{
    if (work->kind == WORK_KERNEL) free(work->as.kernel.parameters);
    *work = (struct work){ .kind = WORK_EMPTY };
}

bool work_clone(struct work *to, const struct work *from)
{
    *to = *from;
    if (from->kind != WORK_KERNEL) return true;
    const size_t bytes = from->as.kernel.function->function->parameter_bytes + 16;
    to->as.kernel.parameters = malloc(bytes);
    if (to->as.kernel.parameters == NULL) {
        to->kind = WORK_EMPTY;
        return false;
    }
    memcpy(to->as.kernel.parameters, from->as.kernel.parameters, bytes);
    return true;
}
