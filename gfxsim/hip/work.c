/* Work given to streams: it has ended when the call returns, in the order of the calls. */
#include "hip.h"

#include "machine/memory.h"

#include <stdlib.h>
#include <string.h>

void work_free(struct work *w, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) free(w[i].arguments);
    free(w);
}

bool work_copy(struct work *to, const struct work *from)
{
    *to = *from;
    if (from->arguments == NULL) return true;
    to->arguments = malloc(from->argument_bytes + 1);
    if (to->arguments != NULL) memcpy(to->arguments, from->arguments, from->argument_bytes);
    return to->arguments != NULL;
}

static hipError_t fault_code(enum report_code code)
{
    switch (code) {
    case REPORT_OUT_OF_BOUNDS: case REPORT_MISALIGNED: return hipErrorIllegalAddress;
    case REPORT_STEPS: return hipErrorLaunchTimeOut;
    case REPORT_RESOURCES: return hipErrorLaunchOutOfResources;
    default: return hipErrorLaunchFailure;
    }
}

static hipError_t run_kernel(const struct work *w)
{
    if (!function_lives(w->function)) return hipErrorInvalidHandle;
    struct report report;
    const struct launch l = { .program = &w->function->module->program, .kernel = w->function->kernel,
                              .grid = { w->grid[0], w->grid[1], w->grid[2] },
                              .block = { w->block[0], w->block[1], w->block[2] }, .dynamic_lds = w->lds,
                              .arguments = w->arguments, .argument_bytes = w->argument_bytes };
    const bool ran = launch_run(&hip.machine, &l, &report);
    if (hip.counts)
        hip_say("gfxsim: kernel %s: %llu instructions touched LDS, %llu bank conflicts\n", l.kernel->name,
                (unsigned long long)hip.machine.lds_accesses, (unsigned long long)hip.machine.bank_conflicts);
    if (ran) return hipSuccess;
    hip_say("%s", report.text);
    hip.fault = fault_code(report.code);
    return hipSuccess;                                                    /* the next call tells of it */
}

/* Part of the machine's memory, all of it allocated; or the host's own. */
static bool reachable(const void *at, uint64_t bytes)
{
    const uint64_t address = (uint64_t)(uintptr_t)at, base = (uint64_t)(uintptr_t)hip.machine.memory.window;
    const bool inside = address >= base && address - base < UINT64_C(1) << 40;
    return !inside || memory_find(&hip.machine.memory, address, bytes) != NULL;
}

hipError_t work_run(const struct work *w)
{
    if (w->kind == WORK_LAUNCH) return run_kernel(w);
    if (!reachable(w->to, w->bytes * (w->kind == WORK_FILL ? w->count : 1))) return hipErrorInvalidValue;
    if (w->kind == WORK_FILL) {
        for (uint64_t i = 0; i < w->count; i++) memcpy((uint8_t *)w->to + i * w->bytes, &w->value, w->bytes);
        return hipSuccess;
    }
    if (!reachable(w->from, w->bytes)) return hipErrorInvalidValue;
    memmove(w->to, w->from, w->bytes);
    return hipSuccess;
}

static hipError_t add(struct hip_graph *g, const struct work *w)
{
    if (g->count == g->capacity) {
        const uint32_t capacity = g->capacity == 0 ? 16 : 2 * g->capacity;
        struct work *grown = realloc(g->work, capacity * sizeof *grown);
        if (grown == NULL) return hipErrorOutOfMemory;
        g->work = grown, g->capacity = capacity;
    }
    if (!work_copy(&g->work[g->count], w)) return hipErrorOutOfMemory;
    g->count++;
    return hipSuccess;
}

hipError_t work_submit(hipStream_t stream, const struct work *w)
{
    if (!stream_lives(stream)) return hipErrorInvalidHandle;
    struct hip_graph *g = stream_capture(stream);
    return g != NULL ? add(g, w) : work_run(w);
}
