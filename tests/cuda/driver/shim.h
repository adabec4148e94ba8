/* What the counting libcuda tells its test. */
#ifndef TESTS_CUDA_SHIM_H
#define TESTS_CUDA_SHIM_H

struct shim {
    long calls, fail_at;                  /* calls so far; number of the one that fails, 0: none */
    long live;                            /* allocations, modules, events, retained and current contexts */
    char failed[64];                      /* the call that did */
    /* Calls of a kind so far, whoever makes them, and the stream of the last launch. */
    long launches, copies, waits, allocations, releases;
    void *stream;
};
struct shim *shim_state(void);            /* exported by the shim */

#endif
