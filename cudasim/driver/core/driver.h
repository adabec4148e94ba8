/* The state behind the cu* calls: devices, their primary contexts and others, all under one lock.  Streams run their
 * work when it is given to them: everything is done, in order, when a call returns; a fault of a kernel is kept and
 * returned by later calls in its context, as a real device does. */
#ifndef CUDASIM_DRIVER_CORE_DRIVER_H
#define CUDASIM_DRIVER_CORE_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "api.h"
#include "handle.h"
#include "machine/core/address_space.h"

/* What cuFuncSetAttribute and cuKernelSetAttribute change. */
struct function_settings {
    int maximum_dynamic_shared;           /* -1: not set */
    int carveout, cluster[3], cluster_policy;
    bool non_portable_cluster;
};

struct CUfunc_st {
    struct CUmod_st *module;
    const struct function *function;
    struct function_settings settings;
};

struct CUmod_st {
    struct CUmod_st *next;
    struct CUctx_st *context;
    struct module *module;
    struct image image;
    struct CUfunc_st *function;           /* one per function of the module */
    struct CUlib_st *library;             /* which owns `module`; NULL: the module does */
};

struct capture;
struct CUstream_st {
    struct CUstream_st *next;
    struct CUctx_st *context;
    unsigned flags;
    int priority;
    uint64_t id;
    bool legacy, per_thread;
    pthread_t thread;                     /* whose it is, if per_thread */
    struct capture *capture;              /* capture.h; NULL: none */
    struct CUgraphNode_st **tail;         /* while capturing: the nodes that the next one will depend on */
    size_t tail_count;
    struct grids_in_flight flight;        /* kernels that the next one may run beside */
};

struct CUevent_st {
    struct CUevent_st *next;
    struct CUctx_st *context;
    unsigned flags;
    bool recorded;
    uint64_t nanoseconds;
    uint64_t capture;                     /* number of the capture in which it was recorded last; 0: none */
    struct CUgraphNode_st **tail;         /* the nodes that it stands for */
    size_t tail_count;
};

struct CUctx_st {
    struct CUctx_st *next;
    uint64_t id;
    CUdevice device;
    struct machine machine;
    struct CUmod_st *modules;
    struct CUstream_st *streams;          /* with the default streams, made when first used */
    struct CUevent_st *events;
    struct host_range *host_ranges;       /* host_memory.c */
    struct reservation *reservations;     /* virtual.c */
    uint64_t limit[8];                    /* cuCtxSetLimit */
    CUresult fault;                       /* sticky */
    unsigned flags;
    bool primary;
};

struct device {
    const struct device_limits *limits;
    struct CUctx_st *primary;
    int primary_users;
    unsigned primary_flags;
    struct CUmemPoolHandle_st *pool;      /* that cuMemAllocAsync takes from (pool.c); NULL: the default one */
};

#define DEVICE_MEMORY (UINT64_C(64) << 30)

struct driver {
    pthread_mutex_t lock;
    bool initialised;
    struct device device[MOST_DEVICES];
    uint32_t devices;
    struct address_space space;           /* of the memory of all contexts */
    struct machine_options options;
    struct rule_book rule_book;           /* of all contexts */
    struct CUctx_st *contexts;            /* all that live */
    uint64_t stream_ids, context_ids;
};
extern struct driver driver;

/* Every exported function begins with one of these and ends with leave(result). */
CUresult driver_enter(void);              /* initialised? takes the lock; kernels that are held run */
CUresult driver_enter_context(struct CUctx_st **context);   /* and has a current context without a fault */
CUresult driver_enter_launch(struct CUctx_st **context);    /* the same; kernels that are held stay so */
CUresult driver_leave(CUresult result);
/* Calls a function of the program, which may take long but may call nothing of the driver: the lock is free
 * meanwhile. */
void driver_call_host(CUhostFn *function, void *user);

/* device.c: INVALID_DEVICE where there is none of that number. */
CUresult device_check(CUdevice device);
/* peer.c: kernels of one can reach memory of the other: not the same, and of one family. */
bool devices_are_peers(CUdevice device, CUdevice peer);
/* Of the current context's device; without a context, of device 0. */
const struct device_limits *limits_now(void);

struct CUctx_st *context_open(CUdevice device, bool primary);
void context_close(struct CUctx_st *context);
bool context_lives(const struct CUctx_st *context);
/* context_settings.c */
enum { LIMIT_STACK = 0, LIMIT_PRINTF = 1, LIMIT_HEAP = 2 };
bool context_flags_valid(unsigned flags);
/* The context of a call that may name one: NULL is the current one. */
CUresult context_or_current(struct CUctx_st *named, struct CUctx_st **context);

/* watch.c: CUDASIM_TRACE, CUDASIM_PROFILE; NULL where neither is set. */
struct watch *driver_watch(void);
/* watch.c: takes away the instruction that CUDASIM_MUTATE names, where the module has it. */
void driver_mutate(struct module *module);
/* watch.c: behind a launch; says once that threads came to that instruction. */
void driver_tell_mutation(void);

/* launch.c: runs the kernels that are held. */
void kernels_land(void);

/* stream.c: the stream of a handle, which may be another context's (NULL, 1: the legacy default stream of `context`; 2:
 * the thread's own there); NULL: no such stream. */
extern _Thread_local bool stream_null_is_own;   /* NULL is the thread's own (per_thread.c) */
struct CUstream_st *stream_find(struct CUctx_st *context, CUstream handle);
/* The host has waited: nothing in the streams is in flight. */
void streams_land(struct CUctx_st *context);
void stream_free(struct CUstream_st *stream);
void event_free(struct CUevent_st *event);

/* module.c, function.c: both kinds of handle that may be launched; NULL: no such function. */
struct CUfunc_st *function_find(struct CUctx_st *context, CUfunction handle);
/* Gives the context the module, which is its own (released even where that fails) unless a library owns it. */
CUresult module_open(struct CUctx_st *context, struct module *module, struct CUlib_st *library, struct CUmod_st **made);
void module_close(struct CUmod_st *module);
/* Reads an image; on failure says why on stderr and in the log (NULL: none). */
struct log { char *error, *info; size_t error_size, info_size; };
struct log log_of(unsigned count, const CUjit_option *options, void *const *values);
/* The sizes in the caller's list become what was written. */
void log_end(const struct log *log, unsigned count, const CUjit_option *options, void **values);
CUresult module_read(const void *image, const struct device_limits *device, const struct log *log,
                     struct module **module);
/* Whether the device runs the module; says so where not. */
bool module_runs(const struct module *module, const struct device_limits *device, const struct log *log);
/* The bytes of a file, zeros behind them; NULL: cannot be read. */
char *file_read(const char *name);
struct function_settings function_default_settings(void);
CUresult function_attribute(int *value, int attribute, const struct device_limits *device, const struct module *module,
                            const struct function *f, const struct function_settings *settings);
CUresult function_set_attribute(struct function_settings *settings, const struct device_limits *device,
                                const struct function *f, int attribute, int value);
const struct device_limits *function_device(const struct CUfunc_st *function);
/* Dynamic shared memory that a launch may ask for. */
uint64_t function_dynamic_shared(const struct device_limits *device, const struct function *f,
                                 const struct function_settings *settings);
uint32_t function_registers(const struct function *f);
/* occupancy.c: CTAs that one SM holds. */
uint32_t occupancy_ctas(const struct device_limits *device, const struct function *f, uint32_t threads,
                        uint64_t dynamic_shared);

/* memory.c: the allocation of the address and the context that has it, `context` being asked first, then all; NULL:
 * nobody's. */
const struct allocation *memory_find(struct CUctx_st **context, CUdeviceptr pointer);
/* Bytes [pointer, pointer + bytes) of any context's; NULL: not all of them are one allocation's. */
uint8_t *memory_host(struct CUctx_st *context, CUdeviceptr pointer, uint64_t bytes);
/* What the device has left for another allocation. */
uint64_t memory_left(CUdevice device);
/* Lets the kernels of these devices (a bit each) and no others reach the context's allocation, whatever peers there
 * are. */
void memory_show(struct CUctx_st *context, CUdeviceptr pointer, unsigned devices, const void *pool);
enum { ALL_DEVICES = (1 << MOST_DEVICES) - 1 };
/* virtual.c: the device on which memory of the context lies: its own, or that of what is mapped there. */
CUdevice virtual_device(const struct CUctx_st *context, CUdeviceptr pointer);
/* What cuMemCreate has taken of the device. */
uint64_t virtual_bytes(CUdevice device);

/* host_memory.c, virtual.c, library.c: what a context takes along when it closes. */
void host_ranges_close(struct CUctx_st *context);
void reservations_close(struct CUctx_st *context);

/* Says it on stderr, unless CUDASIM_QUIET is set: reports, and what the API has no code for. */
__attribute__((format(printf, 1, 2))) void driver_say(const char *format, ...);
/* The code that CUDA gives for such a fault. */
CUresult driver_fault_code(enum report_code code);

#endif
