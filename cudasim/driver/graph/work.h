/* Work: what is given to a stream or stands in a graph's node. */
#ifndef CUDASIM_DRIVER_GRAPH_WORK_H
#define CUDASIM_DRIVER_GRAPH_WORK_H

#include "driver/core/driver.h"

struct kernel_work {
    CUfunction function;                  /* or a CUkernel */
    int priority;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t preferred[3];                /* the cluster that is preferred to `cluster`; 0: none */
    uint32_t shared_bytes;
    bool explicit_cluster, cooperative;
    bool programmatic;                    /* may begin before the one in front of it has ended */
    uint8_t *parameters;                  /* its own copy */
    uint64_t parameter_bytes;
    void **values;                        /* into it: what cuGraphKernelNodeGetParams gives */
};

struct work {
    CUgraphNodeType type;
    uint64_t context;                     /* number of the one in which it runs, the stream's or the node's; 0: any */
    union {
        struct kernel_work kernel;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS fill;
        CUDA_HOST_NODE_PARAMS host;
        CUevent event;
        CUgraph graph;
    };
};

void work_free(struct work *work);
/* The context in which it runs, `any` if it has none of its own; NULL: it is gone. */
struct CUctx_st *work_context(const struct work *work, struct CUctx_st *any);
bool work_copy(struct work *to, const struct work *from);
/* Whether it could run now: the code that a call gives at once. */
CUresult work_check(struct CUctx_st *context, const struct work *work);
/* Runs it.  The fault of a kernel is kept in the context.  flight: the kernels in front of it that may not have ended,
 * and of those behind it. */
CUresult work_run(struct CUctx_st *context, const struct work *work, struct grids_in_flight *flight);
/* Gives it to a stream, which runs it or, while it captures, adds it to its graph.  Takes the work over in every
 * case. */
CUresult work_submit(struct CUctx_st *context, CUstream stream, struct work *work);

/* launch.c */
CUresult kernel_work_make(struct CUctx_st *context, const CUlaunchConfig *config, CUfunction function,
                          void **parameters, void **extra, struct work *work);
CUresult kernel_work_from_node(struct CUctx_st *context, const CUDA_KERNEL_NODE_PARAMS *node, struct work *work);
/* The new one has the old one's attributes, as on a device. */
void kernel_work_replace(struct work *old, const struct work *with);
void kernel_work_to_node(const struct work *work, CUDA_KERNEL_NODE_PARAMS *node);
CUresult kernel_set_attribute(struct CUctx_st *context, struct kernel_work *k, const CUlaunchAttribute *attribute);
bool kernel_get_attribute(const struct kernel_work *k, CUlaunchAttributeID id, CUlaunchAttributeValue *value);
CUresult kernel_check(struct CUctx_st *context, const struct kernel_work *k);
CUresult kernel_run(struct CUctx_st *context, const struct kernel_work *k, struct grids_in_flight *flight);
/* As work_run, in a stream; a kernel that has griddepcontrol.launch_dependents in its module may be held until the next
 * call, of which one that launches programmatically runs beside it. */
CUresult kernel_submit(struct CUctx_st *context, struct CUstream_st *stream, struct kernel_work *k);
/* copy.c, fill.c */
CUresult copy_check(struct CUctx_st *context, const CUDA_MEMCPY3D *copy);
CUresult copy_run(struct CUctx_st *context, const CUDA_MEMCPY3D *copy);
/* Runs it in the stream, or (`waits`) before the call returns, which a capture may forbid. */
CUresult copy_submit(struct CUctx_st *context, const CUDA_MEMCPY3D *copy, CUstream stream, bool waits);
CUresult fill_check(struct CUctx_st *context, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult fill_run(struct CUctx_st *context, const CUDA_MEMSET_NODE_PARAMS *fill);
/* event.c */
void event_stamp(struct CUevent_st *event);

#endif
