/* Options of a machine: schedule, checks, how much is simulated at a time. */
#ifndef CUDASIM_MACHINE_CORE_OPTIONS_H
#define CUDASIM_MACHINE_CORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rules.h"

enum schedule { SCHEDULE_RANDOM, SCHEDULE_EARLIEST, SCHEDULE_LATEST };

/* Whether two fences are demanded of modules that use them, or of all (what the manual says; compilers' kernels that
 * have none are known to run): tcgen05.fence around a synchronisation that has release and acquire, and
 * fence.proxy.async between what cp.async wrote and tcgen05 operations that read it. */
enum tensor_fences { TENSOR_FENCES_USED, TENSOR_FENCES_ALWAYS };

/* Whether fence.proxy.async is demanded between a generic read of shared memory and TMA's next write there, by the
 * thread that has read.  The manual demands it of every access; on an H200 reads that nothing has waited for were
 * overtaken by such writes, though an mbarrier lay between.  Kernels of compilers have none, and use what they read
 * before they release it. */
enum read_fences { READ_FENCES_ALWAYS, READ_FENCES_NEVER };

/* How tensor cores sum: by the published models, or in plain chains of fp32. */
enum tensor_mode { TENSOR_MODE_MODEL, TENSOR_MODE_FP32 };

/* What a cluster costs before its first step, in steps, about. */
enum { CLUSTER_STEPS = 1000 };

struct machine_options {
    uint64_t seed;
    enum schedule schedule;
    uint32_t threads;                     /* host threads */
    uint32_t sms;
    uint64_t step_limit;                  /* of a cluster; 0: none */
    uint64_t grid_step_limit;             /* of a grid's clusters together, CLUSTER_STEPS added for each; 0: none */
    bool check_uninitialised, check_races;
    bool overlap;                         /* a programmatic launch begins before the grid in front has ended */
    uint8_t rule[RULE_COUNT];             /* enum rule_level; all off where races are not watched */
    enum tensor_fences tensor_fences;
    enum read_fences read_fences;
    enum tensor_mode tensor_core;         /* TENSOR_MODE_FP32: plain fp32 in place of the models of mma/tensor_core.h */
    uint32_t schedules;                   /* a launch is repeated under so many, which must agree; 0, 1: it is not
                                             (run/schedules.c) */
};

#endif
