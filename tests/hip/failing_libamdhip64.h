/* What the counting libamdhip64 tells its test. */
#ifndef TESTS_HIP_FAILING_H
#define TESTS_HIP_FAILING_H

struct failing {
    long calls, fail_at;                  /* calls so far; number of the one that fails, 0: none */
    long live;                            /* allocations, modules and events */
    int current;                          /* the current GPU */
    char failed[64];                      /* the call that did */
    int leaving;                          /* it was hipSetDevice back to number 1 */
};
struct failing *failing_state(void);      /* exported by the library */

#endif
