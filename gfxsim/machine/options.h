/* Options of a machine: schedule, checks, numerics. */
#ifndef GFXSIM_MACHINE_OPTIONS_H
#define GFXSIM_MACHINE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* When results of memory instructions come: as soon as they are issued, as late as s_waitcnt allows, or at random
 * places between. */
enum schedule { SCHEDULE_RANDOM, SCHEDULE_EARLIEST, SCHEDULE_LATEST };

/* How matrix instructions round, which AMD has not published: the exact sum with C, rounded once; fp32 fused
 * multiply-adds along K within a block of 32, blocks added in fp32; groups of 16 products with C, aligned and cut at 24
 * bits as on CDNA3. */
enum rounding { ROUNDING_EXACT, ROUNDING_FMA, ROUNDING_GROUPS };

struct machine_options {
    uint64_t seed;
    enum schedule schedule;
    uint32_t schedules;                   /* a launch is repeated under so many, which must leave the same bytes */
    uint32_t threads;                     /* host threads */
    uint64_t step_limit;                  /* of a workgroup, in instructions of its waves; 0: none */
    uint64_t grid_step_limit;             /* of all workgroups of a launch; 0: none */
    enum rounding rounding;
    bool check_races, check_uninitialised, check_hazards;
    bool same_barrier;                    /* all waves must come to one s_barrier of the program */
};

#endif
