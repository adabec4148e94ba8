/* Building graphs: nodes and their order. */
#include "driver/graph.h"

#include <stdlib.h>
#include <string.h>

struct CUgraph_st *graph_open(struct CUctx_st *context)
{
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (graph == NULL) return NULL;
    *graph = (struct CUgraph_st){ .next = driver.graphs, .context = context };
    graph->last = &graph->nodes;
    driver.graphs = graph;
    return graph;
}

static void free_node(struct CUgraphNode_st *node)
{
    work_release(&node->work);
    free(node->after);
    free(node);
}

void graph_close(struct CUgraph_st *graph)
{
    struct CUgraph_st **link = &driver.graphs;
    while (*link != graph) link = &(*link)->next;
    *link = graph->next;
    while (graph->nodes != NULL) {
        struct CUgraphNode_st *node = graph->nodes;
        graph->nodes = node->next;
        free_node(node);
    }
    free(graph);
}

bool graph_lives(const struct CUgraph_st *graph)
{
    for (const struct CUgraph_st *g = driver.graphs; g != NULL; g = g->next)
        if (g == graph) return true;
    return false;
}

static bool is_of(const struct CUgraph_st *graph, const struct CUgraphNode_st *node)
{
    for (const struct CUgraphNode_st *n = graph->nodes; n != NULL; n = n->next)
        if (n == node) return true;
    return false;
}

bool graph_node_lives(const struct CUgraphNode_st *node)
{
    for (const struct CUgraph_st *g = driver.graphs; g != NULL; g = g->next)
        if (is_of(g, node)) return true;
    return false;
}

CUresult graph_add(struct CUgraph_st *graph, struct work *work, const CUgraphNode *after, size_t count, CUgraphNode *node)
{
    CUresult result = count != 0 && after == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (!is_of(graph, after[i])) result = CUDA_ERROR_INVALID_VALUE;
    struct CUgraphNode_st *made = result == CUDA_SUCCESS ? calloc(1, sizeof *made) : NULL;
    CUgraphNode *list = made != NULL ? calloc(count + 1, sizeof *list) : NULL;
    if (result == CUDA_SUCCESS && list == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(made);
        work_release(work);
        return result;
    }
    if (count != 0) memcpy(list, after, count * sizeof *list);
    *made = (struct CUgraphNode_st){ .graph = graph, .work = *work, .after = list, .after_count = count };
    *work = (struct work){ .kind = WORK_EMPTY };
    *graph->last = made;
    graph->last = &made->next;
    graph->count++;
    if (node != NULL) *node = made;
    return CUDA_SUCCESS;
}

/* Kahn's way, in the order of adding, over counts of nodes that still have to come before. */
CUgraphNode *graph_order(struct CUgraph_st *graph, bool *circular)
{
    CUgraphNode *order = calloc(graph->count + 1, sizeof *order);
    bool *placed = calloc(graph->count + 1, sizeof *placed);
    size_t count = 0, index = 0;
    *circular = false;
    for (CUgraphNode n = graph->nodes; n != NULL; n = n->next) n->index = index++;
    bool moved = order != NULL && placed != NULL;
    while (moved && count < graph->count) {
        moved = false;
        for (CUgraphNode n = graph->nodes; n != NULL; n = n->next) {
            bool ready = !placed[n->index];
            for (size_t i = 0; i < n->after_count && ready; i++) ready = placed[n->after[i]->index];
            if (!ready) continue;
            placed[n->index] = moved = true;
            order[count++] = n;
        }
    }
    *circular = order != NULL && placed != NULL && count < graph->count;
    free(placed);
    if (count == graph->count && order != NULL) return order;
    free(order);
    return NULL;
}

static void mark(CUgraphNode node, bool *seen)
{
    if (seen[node->index]) return;
    seen[node->index] = true;
    for (size_t i = 0; i < node->after_count; i++) mark(node->after[i], seen);
}

bool graph_reaches(const struct CUgraph_st *graph, CUgraphNode node, const struct tail *tail)
{
    size_t index = 0;
    for (CUgraphNode n = graph->nodes; n != NULL; n = n->next) n->index = index++;
    bool *seen = calloc(graph->count + 1, sizeof *seen);
    if (seen == NULL) return false;
    for (size_t i = 0; i < tail->count; i++) mark(tail->node[i], seen);
    const bool reached = seen[node->index];
    free(seen);
    return reached;
}

/* ---- calls ---- */

CUDASIM_EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
CUDASIM_EXPORT CUresult cuGraphDestroy(CUgraph graph);
CUDASIM_EXPORT CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUDASIM_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                                const CUDA_KERNEL_NODE_PARAMS *parameters);
CUDASIM_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                             const CUDA_MEMCPY3D *copy, CUcontext context);
CUDASIM_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                             const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context);
CUDASIM_EXPORT CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                           const CUDA_HOST_NODE_PARAMS *host);
CUDASIM_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count);
CUDASIM_EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUDASIM_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUDASIM_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUDASIM_EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUDASIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type);
CUDASIM_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *before, size_t *count);
CUDASIM_EXPORT CUresult cuGraphDestroyNode(CUgraphNode node);

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (graph == NULL || flags != 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (*graph = graph_open(NULL)) == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

/* Enters; then the graph must live. */
static CUresult begin(const struct CUgraph_st *graph)
{
    const CUresult result = driver_enter();
    return result == CUDA_SUCCESS && !graph_lives(graph) ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    const CUresult result = begin(graph);
    if (result == CUDA_SUCCESS) graph_close(graph);
    return driver_leave(result);
}

static CUresult copy_nodes(struct CUgraph_st *to, struct CUgraph_st *from)
{
    bool circular;
    CUgraphNode *order = graph_order(from, &circular), *made = order == NULL ? NULL : calloc(from->count + 1, sizeof *made),
                *after = made == NULL ? NULL : calloc(from->count + 1, sizeof *after);
    CUresult result = after == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    for (size_t i = 0; i < from->count && result == CUDA_SUCCESS; i++) {
        struct work work;
        for (size_t j = 0; j < order[i]->after_count; j++) after[j] = made[order[i]->after[j]->index];
        result = work_clone(&work, &order[i]->work) ? graph_add(to, &work, after, order[i]->after_count, &made[order[i]->index])
                                                    : CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(order), free(made), free(after);
    return result;
}

CUresult cuGraphClone(CUgraph *copy, CUgraph graph)
{
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS && copy == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (*copy = graph_open(graph->context)) == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        result = copy_nodes(*copy, graph);
        if (result != CUDA_SUCCESS) graph_close(*copy);
    }
    return driver_leave(result);
}

/* Adds work that a call has made, if that went well, to a graph that lives. */
static CUresult finish(CUresult result, struct work *work, CUgraph graph, const CUgraphNode *after, size_t count, CUgraphNode *node)
{
    if (result == CUDA_SUCCESS && node == NULL) {
        work_release(work);
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) result = graph_add(graph, work, after, count, node);
    return driver_leave(result);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    struct work work = { .kind = WORK_EMPTY };
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS) result = work_from_kernel_node(parameters, &work);
    return finish(result, &work, graph, after, count, node);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_MEMCPY3D *copy,
                              CUcontext context)
{
    struct work work = { .kind = WORK_EMPTY };
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS && (copy == NULL || !context_lives(context))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = work_from_copy(copy, &work);
    return finish(result, &work, graph, after, count, node);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    struct work work = { .kind = WORK_EMPTY };
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS && (fill == NULL || !context_lives(context))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = work_from_fill(fill, &work);
    return finish(result, &work, graph, after, count, node);
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, const CUDA_HOST_NODE_PARAMS *host)
{
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS && (host == NULL || host->fn == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    struct work work = { .kind = WORK_HOST };
    if (result == CUDA_SUCCESS) work.as.host.function = host->fn, work.as.host.user = host->userData;
    return finish(result, &work, graph, after, count, node);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count)
{
    struct work work = { .kind = WORK_EMPTY };
    return finish(begin(graph), &work, graph, after, count, node);
}

static bool add_after(CUgraphNode node, CUgraphNode before)
{
    for (size_t i = 0; i < node->after_count; i++)
        if (node->after[i] == before) return false;
    CUgraphNode *larger = realloc(node->after, (node->after_count + 1) * sizeof *larger);
    if (larger == NULL) return false;
    node->after = larger;
    node->after[node->after_count++] = before;
    return true;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS && count != 0 && (from == NULL || to == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (!is_of(graph, from[i]) || !is_of(graph, to[i]) || from[i] == to[i]) result = CUDA_ERROR_INVALID_VALUE;
        else if (graph_reaches(graph, to[i], &(struct tail){ .node = (CUgraphNode[]){ from[i] }, .count = 1 })) result = CUDA_ERROR_INVALID_VALUE;
        else if (!add_after(to[i], from[i])) result = CUDA_ERROR_INVALID_VALUE;
    }
    return driver_leave(result);
}

/* Fills a caller's array as CUDA does: with NULL only the count; the rest of a long array with NULL. */
struct listing { CUgraphNode *out, *second; size_t room, found; };
static void list(struct listing *l, CUgraphNode a, CUgraphNode b)
{
    if (l->out != NULL && l->found < l->room) {
        l->out[l->found] = a;
        if (l->second != NULL) l->second[l->found] = b;
    }
    l->found++;
}
static void list_end(struct listing *l, size_t *count)
{
    for (size_t i = l->found; l->out != NULL && i < l->room; i++) {
        l->out[i] = NULL;
        if (l->second != NULL) l->second[i] = NULL;
    }
    *count = l->out == NULL || l->found < l->room ? l->found : l->room;
}

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS && count == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct listing l = { .out = nodes, .room = *count };
        for (CUgraphNode n = graph->nodes; n != NULL; n = n->next)
            if (!roots || n->after_count == 0) list(&l, n, NULL);
        list_end(&l, count);
    }
    return driver_leave(result);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) { return get_nodes(graph, nodes, count, false); }
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) { return get_nodes(graph, nodes, count, true); }

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    CUresult result = begin(graph);
    if (result == CUDA_SUCCESS && (count == NULL || (from == NULL) != (to == NULL))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct listing l = { .out = from, .second = to, .room = *count };
        for (CUgraphNode n = graph->nodes; n != NULL; n = n->next)
            for (size_t i = 0; i < n->after_count; i++) list(&l, n->after[i], n);
        list_end(&l, count);
    }
    return driver_leave(result);
}

static CUresult begin_node(CUgraphNode node)
{
    const CUresult result = driver_enter();
    return result == CUDA_SUCCESS && !graph_node_lives(node) ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    static const CUgraphNodeType types[] = {
        [WORK_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY, [WORK_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL, [WORK_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
        [WORK_FILL] = CU_GRAPH_NODE_TYPE_MEMSET, [WORK_HOST] = CU_GRAPH_NODE_TYPE_HOST,
        [WORK_EVENT_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD, [WORK_EVENT_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT };
    CUresult result = begin_node(node);
    if (result == CUDA_SUCCESS && type == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *type = types[node->work.kind];
    return driver_leave(result);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *before, size_t *count)
{
    CUresult result = begin_node(node);
    if (result == CUDA_SUCCESS && count == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct listing l = { .out = before, .room = *count };
        for (size_t i = 0; i < node->after_count; i++) list(&l, node->after[i], NULL);
        list_end(&l, count);
    }
    return driver_leave(result);
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
    const CUresult result = begin_node(node);
    if (result == CUDA_SUCCESS) {
        struct CUgraph_st *graph = node->graph;
        struct CUgraphNode_st **link = &graph->nodes;
        graph->last = &graph->nodes;
        while (*link != NULL) {
            if (*link == node) {
                *link = node->next;
                continue;
            }
            struct CUgraphNode_st *n = *link;
            for (size_t i = 0; i < n->after_count;)
                if (n->after[i] == node) n->after[i] = n->after[--n->after_count];
                else i++;
            link = graph->last = &n->next;
        }
        graph->count--;
        free_node(node);
    }
    return driver_leave(result);
}
