/* The HIP API's types and numbers, as far as this library has them (HIP 6.3's header), and the state behind it. */
#ifndef GFXSIM_HIP_HIP_H
#define GFXSIM_HIP_HIP_H

#include "machine/launch.h"

#define HIP_EXPORT __attribute__((visibility("default")))

typedef int hipError_t;
typedef int hipDevice_t;
typedef void *hipDeviceptr_t;
typedef struct hip_stream *hipStream_t;
typedef struct hip_event *hipEvent_t;
typedef struct hip_module *hipModule_t;
typedef struct hip_function *hipFunction_t;
typedef struct hip_graph *hipGraph_t;
typedef struct hip_graph_exec *hipGraphExec_t;

enum {
    hipSuccess = 0,
    hipErrorInvalidValue = 1,
    hipErrorOutOfMemory = 2,
    hipErrorNotInitialized = 3,
    hipErrorInvalidConfiguration = 9,
    hipErrorInvalidDevicePointer = 17,
    hipErrorInvalidDevice = 101,
    hipErrorInvalidImage = 200,
    hipErrorNoBinaryForGpu = 209,
    hipErrorInvalidHandle = 400,
    hipErrorNotFound = 500,
    hipErrorNotReady = 600,
    hipErrorIllegalAddress = 700,
    hipErrorLaunchOutOfResources = 701,
    hipErrorLaunchTimeOut = 702,
    hipErrorLaunchFailure = 719,
    hipErrorNotSupported = 801,
    hipErrorStreamCaptureUnsupported = 900,
    hipErrorStreamCaptureInvalidated = 901,
    hipErrorStreamCaptureUnmatched = 903,
    hipErrorIllegalState = 401,
    hipErrorUnknown = 999
};

/* ---- state (state.c) ---- */

struct hip_module {
    struct code_object object;
    struct program program;
    struct hip_function *functions;
    struct hip_module *next;
};
struct hip_function { struct hip_module *module; const struct kernel *kernel; struct hip_function *next; };
struct hip_event { struct hip_event *next; bool recorded; double milliseconds; };
struct hip_stream { struct hip_stream *next; struct hip_graph *capture; };

enum work_kind { WORK_COPY, WORK_FILL, WORK_LAUNCH };
struct work {
    enum work_kind kind;
    void *to;
    const void *from;
    uint64_t bytes;                       /* of a fill: of the pattern, 1 or 4 */
    uint64_t count;
    uint32_t value;
    struct hip_function *function;
    uint32_t grid[3], block[3], lds;
    uint8_t *arguments;
    uint32_t argument_bytes;
};
struct hip_graph { struct hip_graph *next; struct work *work; uint32_t count, capacity; };
struct hip_graph_exec { struct hip_graph_exec *next; struct work *work; uint32_t count; };

struct hip {
    pthread_mutex_t lock;
    bool initialised;
    bool counts;                          /* GFXSIM_COUNTS */
    hipError_t fault;                     /* of a kernel: given by all later calls */
    struct machine machine;
    struct hip_module *modules;
    struct hip_stream *streams;
    struct hip_event *events;
    struct hip_graph *graphs;
    struct hip_graph_exec *execs;
};
extern struct hip hip;

/* Takes the lock, and initialises at the first call; what it gives is an error that the caller returns by hip_leave. */
hipError_t hip_enter(void);
hipError_t hip_leave(hipError_t result);
__attribute__((format(printf, 1, 2)))
void hip_say(const char *format, ...);

/* A stream's handle: NULL, 1 and 2 are the default ones. */
bool stream_lives(hipStream_t stream);
struct hip_graph *stream_capture(hipStream_t stream);
bool function_lives(hipFunction_t f);

/* ---- work (work.c): runs at once, or goes to the graph that the stream captures ---- */

hipError_t work_submit(hipStream_t stream, const struct work *w);
hipError_t work_run(const struct work *w);
void work_free(struct work *w, uint32_t count);
bool work_copy(struct work *to, const struct work *from);

#endif
