/* Graphs: their nodes and edges. */
#include "runtime/core/runtime.h"

API(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags)) { return IN_CONTEXT(cuGraphCreate(graph, flags)); }
API(cudaGraphDestroy, (cudaGraph_t graph)) { return IN_CONTEXT(cuGraphDestroy(graph)); }
API(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph)) { return IN_CONTEXT(cuGraphClone(clone, graph)); }

API(cudaGraphNodeFindInClone, (cudaGraphNode_t * found, cudaGraphNode_t original, cudaGraph_t clone))
{
    return IN_CONTEXT(cuGraphNodeFindInClone(found, original, clone));
}

API(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count))
{
    return IN_CONTEXT(cuGraphGetNodes(graph, nodes, count));
}

API(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count))
{
    return IN_CONTEXT(cuGraphGetRootNodes(graph, nodes, count));
}

API(cudaGraphGetEdges,
    (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, CUgraphEdgeData *edges, size_t *count))
{
    return IN_CONTEXT(cuGraphGetEdges_v2(graph, from, to, edges, count));
}

API(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t *nodes, CUgraphEdgeData *edges, size_t *count))
{
    return IN_CONTEXT(cuGraphNodeGetDependencies_v2(node, nodes, edges, count));
}

API(cudaGraphNodeGetDependentNodes,
    (cudaGraphNode_t node, cudaGraphNode_t *nodes, CUgraphEdgeData *edges, size_t *count))
{
    return IN_CONTEXT(cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count));
}

API(cudaGraphAddDependencies, (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                               const CUgraphEdgeData *edges, size_t count))
{
    return IN_CONTEXT(cuGraphAddDependencies_v2(graph, from, to, edges, count));
}

API(cudaGraphRemoveDependencies, (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                                  const CUgraphEdgeData *edges, size_t count))
{
    return IN_CONTEXT(cuGraphRemoveDependencies_v2(graph, from, to, edges, count));
}

API(cudaGraphDestroyNode, (cudaGraphNode_t node)) { return IN_CONTEXT(cuGraphDestroyNode(node)); }

API(cudaGraphNodeGetType, (cudaGraphNode_t node, CUgraphNodeType *type))
{
    return IN_CONTEXT(cuGraphNodeGetType(node, type));
}
