/* Graphs: nodes and edges. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"

CUDASIM_EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
CUDASIM_EXPORT CUresult cuGraphDestroy(CUgraph graph);
CUDASIM_EXPORT CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUDASIM_EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph clone);
CUDASIM_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUDASIM_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUDASIM_EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
CUDASIM_EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                                           size_t *count);
CUDASIM_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count);
CUDASIM_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                                      size_t *count);
CUDASIM_EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count);
CUDASIM_EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
                                                        size_t *count);
CUDASIM_EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                               size_t count);
CUDASIM_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                                  const CUgraphEdgeData *edges, size_t count);
CUDASIM_EXPORT CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                                  size_t count);
CUDASIM_EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                                     const CUgraphEdgeData *edges, size_t count);
CUDASIM_EXPORT CUresult cuGraphDestroyNode(CUgraphNode node);
CUDASIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type);

/* ---- inside ---- */

struct CUgraph_st *graph_new(void)
{
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (graph == NULL || handle_add(graph, HANDLE_GRAPH)) return graph;
    free(graph);
    return NULL;
}

static void node_free(struct CUgraphNode_st *node)
{
    work_free(&node->work);
    handle_remove(node);
    free(node->dependency);
    free(node);
}

void graph_free(struct CUgraph_st *graph)
{
    if (graph == NULL) return;
    for (struct CUgraphNode_st *n = graph->first, *next; n != NULL; n = next) {
        next = n->next;
        node_free(n);
    }
    handle_remove(graph);
    free(graph);
}

struct CUgraphNode_st *graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *const *dependency, size_t count,
                                 struct work *work)
{
    struct CUgraphNode_st *node = calloc(1, sizeof *node);
    struct CUgraphNode_st **copy = malloc((count + 1) * sizeof *copy);
    if (node == NULL || copy == NULL || !handle_add(node, HANDLE_NODE)) {
        work_free(work);
        free(node), free(copy);
        return NULL;
    }
    if (count != 0) memcpy(copy, dependency, count * sizeof *copy);
    *node = (struct CUgraphNode_st){ .graph = graph, .work = *work, .dependency = copy, .dependencies = count };
    if (work->type == CU_GRAPH_NODE_TYPE_GRAPH) work->graph->child = true;
    *(graph->last == NULL ? &graph->first : &graph->last->next) = node;
    graph->last = node;
    graph->nodes++;
    return node;
}

struct CUgraph_st *graph_clone(const struct CUgraph_st *graph)
{
    struct CUgraph_st *clone = graph_new();
    struct CUgraphNode_st **made = calloc(graph->nodes + 1, sizeof *made);
    size_t number = 0;
    for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) n->index = number++;
    for (struct CUgraphNode_st *n = graph->first; clone != NULL && made != NULL && n != NULL; n = n->next) {
        struct work work;
        made[n->index] = work_copy(&work, &n->work) ? graph_add(clone, NULL, 0, &work) : NULL;
        if (made[n->index] == NULL) graph_free(clone), clone = NULL;
        else made[n->index]->original = n;
    }
    for (struct CUgraphNode_st *n = graph->first; clone != NULL && made != NULL && n != NULL; n = n->next) {
        struct CUgraphNode_st *copy = made[n->index];
        struct CUgraphNode_st **dependency = malloc((n->dependencies + 1) * sizeof *dependency);
        if (dependency == NULL) {
            graph_free(clone), clone = NULL;
            break;
        }
        for (size_t i = 0; i < n->dependencies; i++) dependency[i] = made[n->dependency[i]->index];
        free(copy->dependency);
        copy->dependency = dependency;
        copy->dependencies = n->dependencies;
    }
    if (made == NULL) graph_free(clone), clone = NULL;
    free(made);
    return clone;
}

CUresult graph_check_nodes(const struct CUgraph_st *graph, struct CUgraphNode_st *const *node, size_t count)
{
    if (count != 0 && node == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (!handle_is(node[i], HANDLE_NODE) || node[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
        for (size_t j = 0; j < i; j++)
            if (node[j] == node[i]) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult begin_graph(CUgraph graph, const void *pointer)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    return pointer == NULL || !handle_is(graph, HANDLE_GRAPH) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult begin_node(CUgraphNode node, const void *pointer)
{
    const CUresult result = driver_enter();
    if (result != CUDA_SUCCESS) return result;
    return pointer == NULL || !handle_is(node, HANDLE_NODE) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- graphs ---- */

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    CUresult result = driver_enter();
    if (result == CUDA_SUCCESS && (graph == NULL || flags != 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && (*graph = graph_new()) == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult result = begin_graph(graph, graph);
    if (result == CUDA_SUCCESS && (graph->child || capture_fills(graph))) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) graph_free(graph);
    return driver_leave(result);
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
    CUresult result = begin_graph(graph, clone);
    if (result == CUDA_SUCCESS && (*clone = graph_clone(graph)) == NULL) result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph clone)
{
    CUresult result = begin_graph(clone, found);
    if (result == CUDA_SUCCESS && !handle_is(original, HANDLE_NODE)) result = CUDA_ERROR_INVALID_VALUE;
    struct CUgraphNode_st *n = result == CUDA_SUCCESS ? clone->first : NULL;
    while (n != NULL && n->original != original) n = n->next;
    if (result == CUDA_SUCCESS && n == NULL) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *found = n;
    return driver_leave(result);
}

/* ---- lists: with nodes == NULL the number alone; places behind the last become NULL ---- */

struct list { CUgraphNode *nodes; size_t room, used; };

static void list_add(struct list *list, struct CUgraphNode_st *node)
{
    if (list->nodes != NULL && list->used < list->room) list->nodes[list->used] = node;
    list->used++;
}

static void list_end(const struct list *list, size_t *count)
{
    for (size_t i = list->used; list->nodes != NULL && i < list->room; i++) list->nodes[i] = NULL;
    *count = list->nodes != NULL && list->room < list->used ? list->room : list->used;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots_only)
{
    const CUresult result = begin_graph(graph, count);
    if (result == CUDA_SUCCESS) {
        struct list list = { nodes, *count, 0 };
        for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next)
            if (!roots_only || n->dependencies == 0) list_add(&list, n);
        list_end(&list, count);
    }
    return driver_leave(result);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, false);
}
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, true);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *count)
{
    CUresult result = begin_graph(graph, count);
    if (result == CUDA_SUCCESS && (from == NULL) != (to == NULL)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct list sources = { from, *count, 0 }, targets = { to, *count, 0 };
        if (edges != NULL && from != NULL) memset(edges, 0, *count * sizeof *edges);
        for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next)
            for (size_t i = 0; i < n->dependencies; i++) list_add(&sources, n->dependency[i]), list_add(&targets, n);
        list_end(&targets, count);
        list_end(&sources, count);
    }
    return driver_leave(result);
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    const CUresult result = begin_node(node, count);
    if (result == CUDA_SUCCESS) {
        struct list list = { nodes, *count, 0 };
        if (edges != NULL && nodes != NULL) memset(edges, 0, *count * sizeof *edges);
        for (size_t i = 0; i < node->dependencies; i++) list_add(&list, node->dependency[i]);
        list_end(&list, count);
    }
    return driver_leave(result);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependencies_v2(node, nodes, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
    const CUresult result = begin_node(node, count);
    if (result == CUDA_SUCCESS) {
        struct list list = { nodes, *count, 0 };
        if (edges != NULL && nodes != NULL) memset(edges, 0, *count * sizeof *edges);
        for (struct CUgraphNode_st *n = node->graph->first; n != NULL; n = n->next)
            for (size_t i = 0; i < n->dependencies; i++)
                if (n->dependency[i] == node) list_add(&list, n);
        list_end(&list, count);
    }
    return driver_leave(result);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, count);
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    const CUresult result = begin_node(node, type);
    if (result == CUDA_SUCCESS) *type = node->work.type;
    return driver_leave(result);
}

/* ---- edges ---- */

static size_t find_edge(const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
    size_t at = 0;
    while (at < to->dependencies && to->dependency[at] != from) at++;
    return at;
}

static bool add_edge(struct CUgraphNode_st *from, struct CUgraphNode_st *to)
{
    struct CUgraphNode_st **larger = realloc(to->dependency, (to->dependencies + 1) * sizeof *larger);
    if (larger == NULL) return false;
    to->dependency = larger;
    larger[to->dependencies++] = from;
    return true;
}

static void remove_edge(struct CUgraphNode_st *to, size_t at)
{
    memmove(&to->dependency[at], &to->dependency[at + 1], (to->dependencies - at - 1) * sizeof *to->dependency);
    to->dependencies--;
}

/* Edges that exist must not be added, others not be removed: all are looked at before one is changed. */
static CUresult check_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count, bool exist)
{
    if (count != 0 && (from == NULL || to == NULL)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (graph_check_nodes(graph, &from[i], 1) != CUDA_SUCCESS || graph_check_nodes(graph, &to[i], 1) != CUDA_SUCCESS
            || from[i] == to[i] || (find_edge(from[i], to[i]) < to[i]->dependencies) != exist)
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t j = 0; j < i; j++)
            if (from[j] == from[i] && to[j] == to[i]) return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    CUresult result = begin_graph(graph, graph);
    if (result == CUDA_SUCCESS && edges != NULL) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS) result = check_edges(graph, from, to, count, false);
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        if (!add_edge(from[i], to[i])) result = CUDA_ERROR_OUT_OF_MEMORY;
    return driver_leave(result);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edges, size_t count)
{
    CUresult result = begin_graph(graph, graph);
    if (result == CUDA_SUCCESS && edges != NULL) result = CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS) result = check_edges(graph, from, to, count, true);
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) remove_edge(to[i], find_edge(from[i], to[i]));
    return driver_leave(result);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
    CUresult result = begin_node(node, node);
    if (result == CUDA_SUCCESS && capture_fills(node->graph)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct CUgraph_st *graph = node->graph;
        struct CUgraphNode_st **link = &graph->first, *before = NULL;
        for (struct CUgraphNode_st *n = graph->first; n != NULL; n = n->next) {
            const size_t at = find_edge(node, n);
            if (at < n->dependencies) remove_edge(n, at);
        }
        for (; *link != node; link = &(*link)->next) before = *link;
        *link = node->next;
        if (graph->last == node) graph->last = before;
        graph->nodes--;
        node_free(node);
    }
    return driver_leave(result);
}
