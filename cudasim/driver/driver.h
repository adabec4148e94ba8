/* The state behind the cu* calls: one device, its primary context and others, all under one lock.  Streams run their work when it is
 * given to them: everything is done, in order, when a call returns; a fault of a kernel is kept and returned by later calls, as a real
 * device does. */
#ifndef CUDASIM_DRIVER_DRIVER_H
#define CUDASIM_DRIVER_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "driver/api.h"
#include "machine/machine.h"

struct CUfunc_st {
    struct CUmod_st *module;
    const struct function *function;
    int maximum_dynamic_shared;           /* set by cuFuncSetAttribute */
    bool non_portable_cluster;
};

struct CUmod_st {
    struct CUmod_st *next;
    struct CUctx_st *context;
    const struct CUlib_st *library;       /* it was loaded for a library; NULL */
    struct module *module;
    struct image image;
    struct CUfunc_st *function;           /* one per function of the module */
};

/* The nodes of a graph that the next captured work depends on. */
struct tail { CUgraphNode *node; size_t count, capacity; };

/* A capture: from cuStreamBeginCapture on, over all streams that events join to it. */
struct capture;

struct CUstream_st {
    struct CUstream_st *next;
    struct CUctx_st *context;
    unsigned flags;
    int priority;
    struct capture *capture;              /* NULL: work runs when it is given */
    struct tail tail;
};
struct CUevent_st {
    struct CUevent_st *next;
    struct CUctx_st *context;
    unsigned flags;
    bool recorded;
    uint64_t nanoseconds;
    struct capture *capture;              /* it was last recorded in one: only streams may wait for it */
    struct tail tail;
};

struct CUctx_st {
    struct CUctx_st *next;
    struct machine machine;
    struct CUmod_st *modules;
    struct CUstream_st *streams;
    struct CUevent_st *events;
    CUresult fault;                       /* sticky */
    unsigned flags;
    bool primary;
    struct capture *captures;
};

struct driver {
    pthread_mutex_t lock;
    bool initialised;
    const struct device_limits *device;
    struct machine_options options;
    struct CUctx_st *contexts;            /* all that live */
    struct CUctx_st *primary;
    int primary_users;
    struct CUgraph_st *graphs;            /* all that live */
    struct CUgraphExec_st *executables;
    struct CUlib_st *libraries;
    uint64_t captures;                    /* begun so far: their identities */
};
extern struct driver driver;

/* Every exported function begins with one of these and ends with leave(result). */
CUresult driver_enter(void);              /* initialised? takes the lock */
CUresult driver_enter_context(struct CUctx_st **context);   /* and has a current context without a fault */
CUresult driver_leave(CUresult result);

struct CUctx_st *context_open(bool primary);
/* watch.c: CUDASIM_TRACE, CUDASIM_PROFILE; NULL where neither is set. */
struct watch *driver_watch(void);
/* watch.c: takes away the instruction that CUDASIM_MUTATE names, where the module has it. */
void driver_mutate(struct module *module);
void context_close(struct CUctx_st *context);
bool context_lives(const struct CUctx_st *context);
bool event_lives(const struct CUctx_st *context, const struct CUevent_st *event);
/* A CUfunction, or a CUkernel in its place (which becomes its function). */
bool function_lives(const struct CUctx_st *context, struct CUfunc_st **function);
bool stream_lives(const struct CUctx_st *context, const struct CUstream_st *stream);    /* NULL, 1 and 2 are the default streams */

/* Says it on stderr, unless CUDASIM_QUIET is set: reports, and what the API has no code for. */
__attribute__((format(printf, 1, 2))) void driver_say(const char *format, ...);
/* The code that CUDA gives for such a fault. */
CUresult driver_fault_code(enum report_code code);


#endif
