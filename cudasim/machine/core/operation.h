/* An asynchronous operation under way: how engines describe themselves is in async/agent.h. */
#ifndef CUDASIM_MACHINE_CORE_OPERATION_H
#define CUDASIM_MACHINE_CORE_OPERATION_H

#include "machine.h"

enum agent_engine { ENGINE_TMA, ENGINE_CP_ASYNC, ENGINE_TENSOR, ENGINE_OTHER, ENGINE_COUNT };

struct agent_kind {
    const char *name;                     /* "cp.async.bulk.tensor": in reports */
    enum agent_engine engine;
    /* NULL: always.  False holds the operation back without blame (an order that other state decides). */
    bool (*may_complete)(const struct agent_operation *operation);
    /* TRAP_NONE and *done, or TRAP_FAULT with the report written. */
    trap (*step)(struct agent_operation *operation, bool *done);
    void (*complete)(struct agent_operation *operation);
    void (*drop)(struct agent_operation *operation);        /* frees what it holds, also after complete; NULL:
                                                               nothing */
};

struct agent_operation {
    const struct agent_kind *kind;
    struct agent_operation *next;
    struct cluster *cluster;
    struct cta *cta;
    struct warp *warp;                    /* who issued it */
    const struct insn *in;
    uint32_t lane;
    uint64_t order;                       /* 0: none */
    uint64_t issued, due;                 /* steps */
    uint64_t serial;                      /* counts all operations of a cluster's run: ties and order */
    /* What is signalled, as threads that wait for it say (struct wait), for the schedule `latest`; WAIT_NONE: not
     * said. */
    enum wait_kind signals;
    uint64_t object;                      /* WAIT_MBARRIER: its shared address; else not looked at: the warp is the
                                             same */
};

/* What an operation moves, for the profile. */
enum moved { MOVED_FROM_GLOBAL, MOVED_TO_GLOBAL, MOVED_FROM_SHARED, MOVED_TO_SHARED, MOVED_COUNT };

#endif
