/* The handles that are alive.  A handle is a pointer that a caller gives back: it is looked up here before it is
 * followed, so that garbage and destroyed handles give an error code.  Under the driver's lock. */
#ifndef CUDASIM_DRIVER_CORE_HANDLE_H
#define CUDASIM_DRIVER_CORE_HANDLE_H

#include <stdbool.h>

enum handle_kind {
    HANDLE_NONE,
    HANDLE_CONTEXT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_LIBRARY,
    HANDLE_KERNEL,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_EXEC,
    HANDLE_POOL
};

bool handle_add(const void *object, enum handle_kind kind);     /* false: no memory.  An object may be added twice. */
void handle_remove(const void *object);
bool handle_is(const void *object, enum handle_kind kind);

#endif
