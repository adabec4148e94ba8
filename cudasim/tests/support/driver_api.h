/* The driver API for tests of the driver itself: functions found by name at run time, in libcudasim.so or, with
 * CUDASIM_TEST_LIBRARY, in another libcuda, so that the same tables can be asked of a real driver. */
#ifndef CUDASIM_TESTS_SUPPORT_DRIVER_API_H
#define CUDASIM_TESTS_SUPPORT_DRIVER_API_H

#include "driver/core/api.h"
#include "test.h"

/* NULL and a failure: not there. */
void *driver_symbol(struct test *t, const char *name);
/* The library under test is the simulator: what a real driver answers by a crash may be asked. */
bool driver_is_simulated(void);
/* cuInit, and the primary context made current to the calling thread. */
void driver_begin(struct test *t);
/* After a fault: the primary context anew. */
void driver_reset(struct test *t);

/* DRIVER_CALLS(LIST): a pointer of its name for each X(name, (parameters)) of the list, and a function that finds them
 * all. */
#define DRIVER_POINTER(name, parameters) static CUresult (*name) parameters;
#define DRIVER_FIND(name, parameters) found = driver_symbol(t, #name), memcpy(&name, &found, sizeof found);
#define DRIVER_CALLS(LIST) \
    LIST(DRIVER_POINTER) \
    static void find_calls(struct test *t) \
    { \
        void *found; \
        LIST(DRIVER_FIND) \
    }

#define GIVES(t, expected, call) \
    do { \
        const CUresult gives_result = (call); \
        if (gives_result != (expected)) FAIL(t, "%s gives %d, not %d", #call, (int)gives_result, (int)(expected)); \
    } while (0)
#define OK(t, call) GIVES(t, CUDA_SUCCESS, call)
/* Where what follows would use what the call did not give. */
#define OK_OR_RETURN(t, call) \
    do { \
        const CUresult needed_result = (call); \
        if (needed_result == CUDA_SUCCESS) break; \
        FAIL(t, "%s gives %d, not 0", #call, (int)needed_result); \
        return; \
    } while (0)

#endif
