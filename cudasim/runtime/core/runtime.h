/* What the files of the runtime share: a thread's state, and how a call begins and ends.
 *
 * The runtime has little of its own: which device a thread uses, its last error, and what programs have registered
 * (module/registry.h).  All else is the driver's.  A call is
 *
 *     API(cudaThis, (int *value)) { return IN_CONTEXT(cuThis(value)); }
 */
#ifndef CUDASIM_RUNTIME_CORE_RUNTIME_H
#define CUDASIM_RUNTIME_CORE_RUNTIME_H

#include <stdbool.h>

#include "api.h"
#include "driver_calls.h"

/* Whether the driver is initialised; why not is kept for runtime_why. */
bool runtime_initialised(void);
/* And a context is current: the program's own if it has set one, else the primary one of the thread's device. */
bool runtime_begin(void);
CUresult runtime_why(void);
/* Keeps an error as the thread's last one, and gives it. */
cudaError_t runtime_end(CUresult result);
cudaError_t runtime_fail(cudaError_t error);

#define IN_CONTEXT(call) runtime_end(runtime_begin() ? (call) : runtime_why())
#define WITHOUT_CONTEXT(call) runtime_end(runtime_initialised() ? (call) : runtime_why())

/* The device of the thread; without a context nothing need be initialised for it. */
int runtime_device(void);
void runtime_use_device(int device);
/* The primary context of the device has gone: threads that used it take the next one. */
void runtime_forget(int device);

/* Within the forms of calls for which the default stream is the thread's own (per_thread.c). */
extern _Thread_local bool runtime_null_is_own;
CUstream runtime_stream(cudaStream_t stream);

/* Puts a function of the driver, by its name, where a pointer to such a function lies; false: this driver has none. */
bool runtime_driver_call(const char *name, void *pointer);

#endif
