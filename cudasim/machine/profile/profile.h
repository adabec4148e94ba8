/* A profile: what a grid executed, moved and waited for, by instruction; and how long each engine of a real device
 * would need for it by published rates, which is an estimate. */
#ifndef CUDASIM_MACHINE_PROFILE_PROFILE_H
#define CUDASIM_MACHINE_PROFILE_PROFILE_H

#include <pthread.h>
#include <stdio.h>

#include "machine/core/operation.h"

enum profile_place { GLOBAL_READ, GLOBAL_WRITTEN, SHARED_READ, SHARED_WRITTEN, LOCAL_READ, LOCAL_WRITTEN,
                     PROFILE_PLACES };

/* Of one instruction. */
struct insn_counts {
    uint64_t warps, threads; /* how often it was executed */
    uint64_t bytes[PROFILE_PLACES];
    uint64_t wavefronts, ideal; /* of accesses to shared memory: as its banks need them, and without conflicts */
    uint64_t waits, waited;     /* times that a warp waited there, and steps */
};

/* What kind of access an instruction is. */
enum profile_access {
    ACCESS_NONE,
    ACCESS_LOAD,
    ACCESS_STORE,
    ACCESS_ATOMIC,
    ACCESS_REDUCE,
    ACCESS_LOAD_MATRIX,
    ACCESS_STORE_MATRIX,
    ACCESS_COPY
};

struct profile {
    FILE *file; /* where each launch's profile is written; NULL: nowhere */
    bool json;  /* one object a line */
    pthread_mutex_t lock;
    struct insn_counts *counts; /* by program counter: of the last grid */
    uint8_t *access;            /* enum profile_access, by program counter */
    uint32_t code_count;
};

struct profile *profile_open(FILE *file, bool json);
void profile_close(struct profile *profile);

/* ---- for watch.c ---- */

bool profile_open_grid(struct profile *profile, const struct grid *grid);
void profile_close_grid(struct profile *profile, const struct grid *grid);
bool profile_open_cluster(struct cluster *c);
void profile_close_cluster(struct profile *profile, struct cluster *c);
void profile_before(struct warp *w, const struct insn *in, uint32_t lanes);
void profile_after(struct warp *w, const struct insn *in, uint32_t lanes, trap t, bool begins_to_wait, uint64_t waited);
void profile_moved(const struct agent_operation *operation, enum moved what, uint64_t bytes);

/* ---- profile_summary.c, profile_print.c ---- */

enum { PROFILE_NAME_BYTES = 128 };
struct profile_kind {
    char name[PROFILE_NAME_BYTES];
    uint64_t warps, threads;
};
struct profile_traffic {
    const char *name;
    uint64_t bytes[PROFILE_PLACES];
};
/* sparse: operations with the zeros, which take half of the time. */
struct profile_product {
    char name[PROFILE_NAME_BYTES];
    const char *type;
    bool sparse;
    uint64_t instructions, operations;
};
enum { TRAFFIC_THREADS, TRAFFIC_MATRIX, TRAFFIC_ATOMIC, TRAFFIC_COPY, TRAFFIC_BULK, TRAFFIC_COUNT };
struct profile_time {
    const char *engine, *source;
    double cycles, seconds;
}; /* of the busiest SM; cycles 0: device-wide */

struct profile_summary {
    struct profile_kind *kind; /* by falling number of warps */
    uint32_t kinds;
    uint64_t warps, threads;
    struct profile_traffic traffic[TRAFFIC_COUNT];
    struct profile_product *product;
    uint32_t products;
    uint64_t wavefronts, ideal;
    struct profile_time *time; /* none: no published rates for this device */
    uint32_t times;
    uint32_t sms; /* of the device that the times are for: those that have work */
};

/* False: no host memory. */
bool profile_summarise(struct profile_summary *summary, const struct profile *profile, const struct grid *grid);
void profile_summary_free(struct profile_summary *summary);
void profile_print(const struct profile *profile, const struct profile_summary *summary, const struct grid *grid);

#endif
