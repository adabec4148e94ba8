/* What backends of GPUs do alike on the host, over calls of their drivers: the GPUs that contexts use, and the
 * workspace that a context keeps. */
#ifndef BSMI_DEVICE_GPUS_H
#define BSMI_DEVICE_GPUS_H

#include "core/core.h"

#include <pthread.h>

/* The process's GPUs of one backend: loaded for the first context of one, unloaded behind the last.  One lock for all:
 * loading is rare. */
enum { BSMI_MOST_GPUS = 64 };
struct bsmi_gpus {
    pthread_mutex_t lock;
    int users[BSMI_MOST_GPUS];
    bsm_status (*load)(int number);
    void (*unload)(int number);
};
bsm_status bsmi_gpus_acquire(struct bsmi_gpus *gpus, int number);
void bsmi_gpus_release(struct bsmi_gpus *gpus, int number);

/* Calls of a driver, with the GPU current; a failure has its sentence. */
struct bsmi_workspace_calls {
    bsm_status (*is_capturing)(const void *gpu, void *stream, bool *capturing);
    bsm_status (*allocate)(const void *gpu, size_t bytes, void **memory);
    bsm_status (*release)(const void *gpu, void *memory);      /* waits for the work that uses it */
    bsm_status (*wait)(const void *gpu, void *stream, void *event);
    /* An earlier failure stays the status. */
    bsm_status (*record)(const void *gpu, void *stream, void *event, bsm_status status);
};

/* A context's workspace.  free: an event, recorded behind the last work that uses it. */
struct bsmi_workspace {
    const struct bsmi_workspace_calls *calls;
    const void *gpu;
    pthread_mutex_t lock;
    void *memory, *free;
    size_t bytes;
};

/* The workspace, at least `bytes` long, for work in `stream`: that work waits for what used it before.  Locked for the
 * calling thread until unlock, which marks it as in use by what the stream has now.  On failure nothing is locked. */
bsm_status bsmi_workspace_acquire(struct bsmi_workspace *workspace, void *stream, size_t bytes, void **memory);
bsm_status bsmi_workspace_release(struct bsmi_workspace *workspace, void *stream, bsm_status status);

#endif
