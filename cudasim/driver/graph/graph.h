/* Graphs, their nodes, and what they become when they are made executable. */
#ifndef CUDASIM_DRIVER_GRAPH_GRAPH_H
#define CUDASIM_DRIVER_GRAPH_GRAPH_H

#include "work.h"

struct CUgraphNode_st {
    struct CUgraphNode_st *next;
    struct CUgraph_st *graph;
    struct CUgraphNode_st *original;      /* of which it is a clone; may be gone */
    struct work work;
    struct CUgraphNode_st **dependency;
    size_t dependencies;
    size_t index;                         /* for those who walk the graph */
};

struct CUgraph_st {
    struct CUgraphNode_st *first, *last;
    size_t nodes;
    bool child;                           /* belongs to a node */
};

/* A graph flattened: children in place, every node by the numbers of those it waits for. */
struct step {
    struct CUgraphNode_st *source;        /* for comparison; may be gone */
    struct work work;
    size_t *dependency, dependencies;
    bool enabled;
};
struct CUgraphExec_st {
    struct step *step;
    size_t steps, capacity;
    uint64_t flags;
    uint64_t launches;
    uint32_t running;
    bool destroyed;                       /* while it was running */
};

struct CUgraph_st *graph_new(void);
void graph_free(struct CUgraph_st *graph);
struct CUgraph_st *graph_clone(const struct CUgraph_st *graph);
/* Takes the work over in every case; NULL: no memory. */
struct CUgraphNode_st *graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *const *dependency, size_t count,
                                 struct work *work);
/* All of them alive and of the graph, none twice. */
CUresult graph_check_nodes(const struct CUgraph_st *graph, struct CUgraphNode_st *const *node, size_t count);

#endif
