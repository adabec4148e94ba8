/* Executable graphs.  A launch runs the steps in some order that the edges allow: by creation under
 * CUDASIM_SCHEDULE=earliest, the last first under latest, otherwise by chance (CUDASIM_SEED), so that a missing edge
 * shows. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "graph.h"

CUDASIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUDASIM_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                                              size_t log_size);
CUDASIM_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                                     CUDA_GRAPH_INSTANTIATE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags);
CUDASIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec);
CUDASIM_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
CUDASIM_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUDASIM_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info);
CUDASIM_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                          const CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                       const CUDA_MEMCPY3D *parameters, CUcontext context);
CUDASIM_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                       const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context);
CUDASIM_EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                     const CUDA_HOST_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event);
CUDASIM_EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event);
CUDASIM_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled);
CUDASIM_EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *enabled);

enum { FLAG_DEVICE_LAUNCH = 4, ALL_FLAGS = 15 };
enum { INSTANTIATE_SUCCESS = 0, INSTANTIATE_ERROR = 1, INSTANTIATE_INVALID_STRUCTURE = 2,
       INSTANTIATE_NOT_SUPPORTED = 3 };

/* ---- flattening ---- */

static void exec_free(struct CUgraphExec_st *exec)
{
    handle_remove(exec);
    for (size_t i = 0; i < exec->steps; i++) work_free(&exec->step[i].work), free(exec->step[i].dependency);
    free(exec->step);
    free(exec);
}

static struct step *add_step(struct CUgraphExec_st *exec)
{
    if (exec->steps == exec->capacity) {
        const size_t capacity = exec->capacity == 0 ? 16 : 2 * exec->capacity;
        struct step *larger = realloc(exec->step, capacity * sizeof *larger);
        if (larger == NULL) return NULL;
        exec->step = larger;
        exec->capacity = capacity;
    }
    exec->step[exec->steps] = (struct step){ .work.type = CU_GRAPH_NODE_TYPE_EMPTY, .enabled = true };
    return &exec->step[exec->steps++];
}

static bool waits_for(struct step *step, size_t number)
{
    size_t *larger = realloc(step->dependency, (step->dependencies + 1) * sizeof *larger);
    if (larger == NULL) return false;
    step->dependency = larger;
    larger[step->dependencies++] = number;
    return true;
}

/* Adds the graph's nodes; those without dependencies wait for step `before` (SIZE_MAX: none).  Steps come in an order
 * that the edges allow.  A child becomes: a step that waits for what the child waits for, its nodes, a step that waits
 * for all of them. */
static CUresult flatten(struct CUgraphExec_st *exec, struct CUgraph_st *graph, size_t before);

static CUresult add_node(struct CUgraphExec_st *exec, struct CUgraphNode_st *node, const size_t *step_of, size_t before,
                         size_t *made)
{
    const bool child = node->work.type == CU_GRAPH_NODE_TYPE_GRAPH;
    struct step *step = add_step(exec);
    if (step == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    const size_t number = exec->steps - 1;
    step->source = node;
    if (!child && !work_copy(&step->work, &node->work)) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < node->dependencies; i++)
        if (!waits_for(step, step_of[node->dependency[i]->index])) return CUDA_ERROR_OUT_OF_MEMORY;
    if (node->dependencies == 0 && before != SIZE_MAX && !waits_for(step, before)) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = number;
    if (!child) return CUDA_SUCCESS;
    const CUresult result = flatten(exec, node->work.graph, number);
    struct step *last = result == CUDA_SUCCESS ? add_step(exec) : NULL;
    if (last == NULL) return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
    *made = exec->steps - 1;
    for (size_t i = number; i < *made; i++)
        if (!waits_for(last, i)) return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

static CUresult flatten(struct CUgraphExec_st *exec, struct CUgraph_st *graph, size_t before)
{
    size_t number = 0, done = 0;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) n->index = number++;
    size_t *step_of = malloc((number + 1) * sizeof *step_of);
    if (step_of == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < number; i++) step_of[i] = SIZE_MAX;
    CUresult result = CUDA_SUCCESS;
    for (bool moved = true; moved && result == CUDA_SUCCESS;) {
        moved = false;
        for (struct CUgraphNode_st *n = graph->first; n != NULL && result == CUDA_SUCCESS; n = n->next) {
            bool ready = step_of[n->index] == SIZE_MAX;
            for (size_t i = 0; i < n->dependencies; i++) ready = ready && step_of[n->dependency[i]->index] != SIZE_MAX;
            if (!ready) continue;
            result = add_node(exec, n, step_of, before, &step_of[n->index]);
            moved = true;
            done++;
        }
    }
    free(step_of);
    return result == CUDA_SUCCESS && done != number ? CUDA_ERROR_INVALID_VALUE : result;
}

static CUresult make(struct CUgraph_st *graph, uint64_t flags, struct CUgraphExec_st **made)
{
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
    if (exec == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    exec->flags = flags;
    CUresult result = flatten(exec, graph, SIZE_MAX);
    if (result == CUDA_SUCCESS && !handle_add(exec, HANDLE_EXEC)) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) *made = exec;
    else exec_free(exec);
    return result;
}

/* ---- instantiation ---- */

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    struct CUctx_st *context;
    CUresult result = driver_enter_context(&context);
    if (result == CUDA_SUCCESS && (exec == NULL || parameters == NULL || !handle_is(graph, HANDLE_GRAPH)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (parameters->flags & ~(cuuint64_t)ALL_FLAGS) != 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        parameters->hErrNode_out = NULL;
        parameters->result_out = INSTANTIATE_SUCCESS;
        if ((parameters->flags & FLAG_DEVICE_LAUNCH) != 0) {
            driver_say("cudasim: graphs that a kernel launches are not simulated\n");
            result = CUDA_ERROR_NOT_SUPPORTED;
            parameters->result_out = INSTANTIATE_NOT_SUPPORTED;
        } else {
            result = make(graph, parameters->flags, exec);
            if (result == CUDA_ERROR_INVALID_VALUE) parameters->result_out = INSTANTIATE_INVALID_STRUCTURE;
            else if (result != CUDA_SUCCESS) parameters->result_out = INSTANTIATE_ERROR;
        }
    }
    return driver_leave(result);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters = { .flags = flags };
    return cuGraphInstantiateWithParams(exec, graph, &parameters);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size)
{
    if (error_node != NULL) *error_node = NULL;
    if (log != NULL && log_size != 0) *log = '\0';
    return cuGraphInstantiateWithFlags(exec, graph, 0);
}

static CUresult begin(CUgraphExec exec, const void *pointer)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    return pointer == NULL || !handle_is(exec, HANDLE_EXEC) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    const CUresult result = begin(exec, flags);
    if (result == CUDA_SUCCESS) *flags = exec->flags;
    return driver_leave(result);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    const CUresult result = begin(exec, exec);
    if (result == CUDA_SUCCESS) {
        handle_remove(exec);
        if (exec->running == 0) exec_free(exec);
        else exec->destroyed = true;
    }
    return driver_leave(result);
}

/* ---- launch ---- */

enum state { WAITING, DONE };

static bool is_ready(const struct CUgraphExec_st *exec, const char *state, size_t number)
{
    if (state[number] == DONE) return false;
    for (size_t i = 0; i < exec->step[number].dependencies; i++)
        if (state[exec->step[number].dependency[i]] != DONE) return false;
    return true;
}

/* One of the steps that may run. */
static size_t choose(const struct CUgraphExec_st *exec, const char *state, uint64_t *random)
{
    size_t found = SIZE_MAX;
    uint64_t ready = 0;
    for (size_t i = 0; i < exec->steps; i++) {
        if (!is_ready(exec, state, i)) continue;
        if (found != SIZE_MAX && driver.options.schedule == SCHEDULE_EARLIEST) break;
        *random = *random * UINT64_C(0x5851f42d4c957f2d) + UINT64_C(0x14057b7ef767814f);
        ready++;
        if (driver.options.schedule == SCHEDULE_LATEST || (*random >> 33) % ready == 0) found = i;
    }
    return found;
}

/* A step may call the program's own function, which other threads' calls do not wait for: the context may be gone
 * afterwards. */
static CUresult run_steps(struct CUctx_st *context, struct CUgraphExec_st *exec)
{
    char *state = calloc(exec->steps + 1, 1);
    struct grids_in_flight *flight = calloc(exec->steps + 1, sizeof *flight);
    if (state == NULL || flight == NULL) {
        free(state), free(flight);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t random = driver.options.seed * UINT64_C(0x9e3779b97f4a7c15) + exec->launches++;
    CUresult result = CUDA_SUCCESS;
    bool faulty = context->fault != CUDA_SUCCESS;
    for (size_t done = 0; done < exec->steps && result == CUDA_SUCCESS && !faulty; done++) {
        const size_t at = choose(exec, state, &random);
        const struct step *step = &exec->step[at];
        if (step->enabled && step->dependencies == 1) flight[at] = flight[step->dependency[0]];
        struct CUctx_st *own = work_context(&step->work, context);
        if (step->enabled && own != NULL) result = work_run(own, &step->work, &flight[at]);
        state[at] = DONE;
        if (own == NULL || !context_lives(own) || !context_lives(context)) result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        else faulty = own->fault != CUDA_SUCCESS;
    }
    free(state), free(flight);
    return result;
}

/* A graph launched into a stream that captures becomes a child of its graph on a device; its steps do here. */
static CUresult launch(struct CUctx_st *context, struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
    const CUresult entered = capture_enter(stream);
    if (entered != CUDA_SUCCESS) return entered;
    if (stream->capture != NULL) {
        driver_say("cudasim: cuGraphLaunch into a stream that captures is not simulated: add the graph as a child "
                   "node\n");
        capture_invalidate(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    for (size_t i = 0; i < exec->steps; i++) {
        if (!exec->step[i].enabled) continue;
        struct CUctx_st *own = work_context(&exec->step[i].work, context);
        const CUresult checked = own == NULL                  ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                 : own->fault != CUDA_SUCCESS ? own->fault
                                                              : work_check(own, &exec->step[i].work);
        if (checked != CUDA_SUCCESS) return checked;
    }
    exec->running++;
    stream->flight.count = 0;
    const CUresult result = run_steps(context, exec);
    if (--exec->running == 0 && exec->destroyed) exec_free(exec);
    return result;
}

static CUresult begin_launch(CUgraphExec exec, CUstream handle, struct CUctx_st **context, struct CUstream_st **stream)
{
    const CUresult result = driver_enter_context(context);
    if (result != CUDA_SUCCESS) return result;
    if (!handle_is(exec, HANDLE_EXEC)) return CUDA_ERROR_INVALID_VALUE;
    *stream = stream_find(*context, handle);
    if (*stream == NULL) return CUDA_ERROR_INVALID_HANDLE;
    *context = (*stream)->context;
    return (*context)->fault;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    struct CUctx_st *context;
    struct CUstream_st *stream;
    CUresult result = begin_launch(exec, handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = launch(context, exec, stream);
    return driver_leave(result);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream handle)
{
    struct CUctx_st *context;
    struct CUstream_st *stream;
    CUresult result = begin_launch(exec, handle, &context, &stream);
    if (result == CUDA_SUCCESS) result = capture_enter(stream);
    return driver_leave(result);
}

/* ---- changes ---- */

static bool same_edges(const struct step *a, const struct step *b)
{
    return a->dependencies == b->dependencies &&
           (a->dependencies == 0 || memcmp(a->dependency, b->dependency, a->dependencies * sizeof *a->dependency) == 0);
}

static CUgraphExecUpdateResult compare(const struct CUgraphExec_st *old, const struct CUgraphExec_st *with,
                                       CUgraphNode *node)
{
    for (size_t i = 0; i < old->steps && i < with->steps; i++) {
        *node = with->step[i].source;
        if (old->step[i].work.type != with->step[i].work.type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (!same_edges(&old->step[i], &with->step[i])) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    *node = NULL;
    return old->steps == with->steps ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
}

static CUresult update(struct CUgraphExec_st *exec, struct CUgraph_st *graph, CUgraphExecUpdateResultInfo *info)
{
    struct CUgraphExec_st *with;
    *info = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_ERROR };
    const CUresult result = make(graph, exec->flags, &with);
    if (result != CUDA_SUCCESS) return result;
    info->result = compare(exec, with, &info->errorNode);
    if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        for (size_t i = 0; i < exec->steps; i++) {
            const struct work old = exec->step[i].work;
            exec->step[i].work = with->step[i].work;
            with->step[i].work = old;
        }
    }
    exec_free(with);
    return info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    CUresult result = begin(exec, info);
    if (result == CUDA_SUCCESS && !handle_is(graph, HANDLE_GRAPH)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && exec->running != 0) result = CUDA_ERROR_NOT_PERMITTED;
    if (result == CUDA_SUCCESS) result = update(exec, graph, info);
    return driver_leave(result);
}

/* The step that was made from the node. */
static struct step *step_of(struct CUgraphExec_st *exec, CUgraphNode node, CUgraphNodeType type)
{
    for (size_t i = 0; node != NULL && i < exec->steps; i++)
        if (exec->step[i].source == node) return exec->step[i].work.type == type ? &exec->step[i] : NULL;
    return NULL;
}

static CUresult begin_step(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, const void *parameters,
                           CUcontext named, struct CUctx_st **context, struct step **step)
{
    const CUresult result = begin(exec, parameters);
    if (result != CUDA_SUCCESS) return result;
    *step = step_of(exec, node, type);
    if (*step == NULL || exec->running != 0) return CUDA_ERROR_INVALID_VALUE;
    return context_or_current(named, context);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    struct CUctx_st *context;
    struct step *step;
    struct work work;
    CUresult result = begin_step(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, parameters, NULL, &context, &step);
    if (result == CUDA_SUCCESS) result = kernel_work_from_node(context, parameters, &work);
    if (result == CUDA_SUCCESS) kernel_work_replace(&step->work, &work);
    return driver_leave(result);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *parameters,
                                        CUcontext named)
{
    struct CUctx_st *context;
    struct step *step;
    CUresult result = begin_step(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, parameters, named, &context, &step);
    if (result == CUDA_SUCCESS) result = copy_check(context, parameters);
    if (result == CUDA_SUCCESS) step->work.copy = *parameters, step->work.context = context->id;
    return driver_leave(result);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters,
                                        CUcontext named)
{
    struct CUctx_st *context;
    struct step *step;
    CUresult result = begin_step(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, parameters, named, &context, &step);
    if (result == CUDA_SUCCESS) result = fill_check(context, parameters);
    if (result == CUDA_SUCCESS) step->work.fill = *parameters, step->work.context = context->id;
    return driver_leave(result);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
    struct CUctx_st *context;
    struct step *step;
    CUresult result = begin_step(exec, node, CU_GRAPH_NODE_TYPE_HOST, parameters, NULL, &context, &step);
    if (result == CUDA_SUCCESS && parameters->fn == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) step->work.host = *parameters;
    return driver_leave(result);
}

static CUresult set_event(CUgraphExec exec, CUgraphNode node, CUevent event, CUgraphNodeType type)
{
    struct CUctx_st *context;
    struct step *step;
    CUresult result = begin_step(exec, node, type, event, NULL, &context, &step);
    if (result == CUDA_SUCCESS && !handle_is(event, HANDLE_EVENT)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) step->work.event = event;
    return driver_leave(result);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set_event(exec, node, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set_event(exec, node, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

/* Kernels, copies and fills can be switched off. */
static struct step *switchable(struct CUgraphExec_st *exec, CUgraphNode node)
{
    for (int type = CU_GRAPH_NODE_TYPE_KERNEL; type <= CU_GRAPH_NODE_TYPE_MEMSET; type++) {
        struct step *step = step_of(exec, node, (CUgraphNodeType)type);
        if (step != NULL) return step;
    }
    return NULL;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled)
{
    CUresult result = begin(exec, exec);
    struct step *step = result == CUDA_SUCCESS ? switchable(exec, node) : NULL;
    if (result == CUDA_SUCCESS && step == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) step->enabled = enabled != 0;
    return driver_leave(result);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *enabled)
{
    CUresult result = begin(exec, enabled);
    const struct step *step = result == CUDA_SUCCESS ? switchable(exec, node) : NULL;
    if (result == CUDA_SUCCESS && step == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *enabled = step->enabled;
    return driver_leave(result);
}
