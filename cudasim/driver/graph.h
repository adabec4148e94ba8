/* Graphs: nodes with work and the nodes that they come after. */
#ifndef CUDASIM_DRIVER_GRAPH_H
#define CUDASIM_DRIVER_GRAPH_H

#include "driver/work.h"

struct CUgraphNode_st {
    struct CUgraph_st *graph;
    struct CUgraphNode_st *next;          /* in the order in which they were added */
    struct work work;
    CUgraphNode *after;
    size_t after_count;
    size_t index;                         /* for walks: set by graph_order */
};

struct CUgraph_st {
    struct CUgraph_st *next;
    struct CUctx_st *context;
    struct CUgraphNode_st *nodes, **last;
    size_t count;
};

struct CUgraph_st *graph_open(struct CUctx_st *context);
void graph_close(struct CUgraph_st *graph);
bool graph_lives(const struct CUgraph_st *graph);
bool graph_node_lives(const struct CUgraphNode_st *node);
/* Takes the work over, even where it fails. */
CUresult graph_add(struct CUgraph_st *graph, struct work *work, const CUgraphNode *after, size_t count, CUgraphNode *node);
/* The nodes so that each stands behind those it comes after; NULL: no memory, or *circular. */
CUgraphNode *graph_order(struct CUgraph_st *graph, bool *circular);
/* Whether `node` comes, over any number of steps, before one of the tail, or is one of them. */
bool graph_reaches(const struct CUgraph_st *graph, CUgraphNode node, const struct tail *tail);

#endif
