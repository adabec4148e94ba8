/* Nodes as the runtime has them, and as the driver does. */
#ifndef CUDASIM_RUNTIME_GRAPH_NODE_H
#define CUDASIM_RUNTIME_GRAPH_NODE_H

#include "runtime/core/runtime.h"

CUresult node_kernel(const cudaKernelNodeParams *parameters, CUDA_KERNEL_NODE_PARAMS *node);
/* The context that copies and fills of a node are made in. */
CUcontext node_context(void);

#endif
