/* The machine: plain structs by scope, machine > grid > cluster > cta > warp > lanes.
 *
 * A cluster with its CTAs, shared memories, barriers and agents belongs to one host thread: nothing in it needs a
 * lock.  Global memory is shared by host threads and is read and written by relaxed atomics of the access's width.  A
 * handler executes one instruction for the lanes of a mask; registers are rows of LANES values, so its loop over lanes
 * has no dispatch inside. */
#ifndef CUDASIM_MACHINE_CORE_MACHINE_H
#define CUDASIM_MACHINE_CORE_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"
#include "options.h"
#include "ptx/ptx.h"
#include "ptx/special.h"
#include "ptx/table.h"
#include "simulator/report_text.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#define THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define THREAD_SANITIZER 0
#endif

/* What a handler gives back. */
enum trap_code {
    TRAP_NONE,                            /* done; on to the next instruction */
    TRAP_JUMP,                            /* done; the handler has set program counters itself */
    TRAP_WAIT,                            /* not done: w->group->wait says for what; run again when something has
                                             happened */
    TRAP_FAULT                            /* the report is written; the grid ends */
};

/* ---- reports (report.h) ---- */

struct report {
    enum report_code code;
    const char *kernel;
    uint32_t cta[3], warp, lane;          /* lane: the first that is concerned; NO_LANE */
    uint32_t pc, ptx_line;
    const char *source_file;              /* NULL without debug lines */
    uint32_t source_line;
    const char *section;                  /* of the PTX manual */
    char sentence[512];
    char text[2048];                      /* all of it, one block */
};
enum { NO_LANE = 32 };

/* ---- global memory (global_memory.h) ---- */

enum allocation_kind { ALLOCATION_DEVICE, ALLOCATION_HOST, ALLOCATION_MANAGED, ALLOCATION_REGISTERED,
                       ALLOCATION_VIRTUAL };
struct allocation {
    uint64_t base, bytes;                 /* device address; never used twice in a process, so that stale pointers are
                                             seen */
    uint8_t *host;
    bool read_only, owned;                /* owned: host is freed with it */
    bool mapped;                          /* host == base, and is unmapped with it */
    uint8_t kind;                         /* enum allocation_kind: what the driver's callers see of it */
    uint8_t devices;                      /* a bit for each device whose kernels reach it; 0: those of its own memory's
                                             machine, and of machines that have it as a peer (address_space.h) */
    uint8_t read_only_devices;            /* a bit for each that may not write */
    const void *pool;                     /* the driver's, that it came from; NULL: none */
    uint8_t *written;                     /* shadow, a bit per byte; NULL: not watched */
    _Atomic uint32_t *writer, *reader;    /* grids, by four bytes (dependent.h); NULL: not watched */
    const char *name;                     /* of a module's variable */
};

struct global_memory {
    struct allocation *allocation;        /* by rising base */
    uint32_t count, capacity;
    uint64_t next, used, limit;
    uint32_t device;                      /* its number in the space */
    struct address_space *space;          /* that it shares with memories of other devices; NULL: none */
    struct global_memory *beside;         /* the next memory of the space */
    const struct global_memory **peer;    /* those that its machine's kernels reach */
    uint32_t peers;
};

enum { MOST_DEVICES = 8 };
struct address_space { uint64_t next; uint32_t devices; struct global_memory *first; };   /* address_space.h */

/* Windows of the generic address space.  Shared addresses have 32 bits: rank in the cluster << 24 | offset, as on
 * hardware. Memory that host and kernels share lies at its address in global memory, where ThreadSanitizer lets
 * programs map none below that. */
#define GLOBAL_WINDOW (THREAD_SANITIZER ? UINT64_C(0x00007e8000000000) : UINT64_C(0x0000700000000000))
#define SHARED_WINDOW UINT64_C(0x00007fa000000000)
#define LOCAL_WINDOW  UINT64_C(0x00007fb000000000)
#define PARAM_WINDOW  UINT64_C(0x00007fc000000000)
#define CODE_WINDOW   UINT64_C(0x00007fd000000000)
#define WINDOW_BYTES  UINT64_C(0x100000000)
enum { SHARED_RANK_SHIFT = 24, LOCAL_BASE = 64, PARAMETER_LIMIT = 32768 };

/* ---- shadow of shared memory (checks.h) ---- */

enum {
    SHADOW_WRITTEN = 1,                   /* by anybody since the CTA began */
    SHADOW_BARRIER = 2                    /* part of a live mbarrier object */
};

struct granule;                           /* last writer and readers of four bytes: clocks.h */
struct shadow {
    uint8_t *state;                       /* SHADOW_*, a byte per byte of shared memory: always there */
    struct granule *granule;              /* NULL until the first access while races are watched */
};

/* ---- waiting ---- */

enum wait_kind {
    WAIT_NONE,
    WAIT_CONVERGENCE,
    WAIT_BARRIER,
    WAIT_WARP_BARRIER,
    WAIT_CLUSTER_BARRIER,
    WAIT_MBARRIER,
    WAIT_ASYNC_GROUP,
    WAIT_MMA,
    WAIT_TENSOR_MEMORY,
    WAIT_REGISTERS,
    WAIT_SLEEP,
    WAIT_GRID,
    WAIT_KIND_COUNT
};

struct wait {
    enum wait_kind kind;
    uint64_t object;                      /* barrier number, shared address, group count, ...: shown in reports */
    uint64_t detail;                      /* parity, mask, ... */
    uint64_t until;                       /* the step at which it ends anyway; 0: never */
};

/* Lanes that stand at the same instruction in frames of the same place. */
struct group {
    uint32_t lanes, pc;
    uint32_t base;                        /* first row of the frame */
    uint32_t depth;                       /* of calls */
    uint32_t local;                       /* byte offset of the frame in local memory */
    uint32_t stage;                       /* of an instruction that waits: 0 when it begins; handlers may count up */
    uint64_t ticket;                      /* for such handlers */
    bool blocked;
    uint64_t blocked_at;                  /* cluster.events when it blocked */
    struct wait wait;
    uint64_t waiting_since;               /* step; 0: it does not wait, or nobody watches (watch.h) */
};

struct call_frame { uint32_t return_pc, base, local; };

struct warp {
    struct cta *cta;
    uint32_t index;                       /* in the CTA */
    uint32_t carry;                       /* of add.cc and the like, a bit per lane */
    uint32_t live;                        /* lanes that have not exited */
    uint64_t *frame;                      /* row 0 of the running group: what handlers read */
    struct group *group;                  /* the running group */
    struct group groups[LANES];
    uint32_t group_count;
    uint64_t chosen_at, hold_until;       /* steps: when the running group was chosen, how long it stays (fairness) */
    uint64_t *registers;
    uint32_t rows;                        /* allocated */
    uint8_t *local;                       /* [LANES][local_bytes] */
    uint32_t local_bytes;
    struct call_frame (*calls)[LANES];    /* [depth][lane] */
    uint32_t call_capacity;
    const struct allocation *recent;      /* the last allocation that was found */
    uint32_t barrier_mask[LANES];         /* bar.warp.sync: the mask that a lane has arrived with; 0: none */
    uint32_t barrier_passed;              /* lanes whose mask is complete, and that have not gone on yet */
    uint32_t cluster_arrived;             /* barrier.cluster: lanes that have arrived and not waited, and at which
                                             phase */
    uint64_t cluster_ticket[LANES];
    void *engine[4];                      /* state of async engines per warp, by enum agent_engine; freed by them */
    struct warp_clocks *clocks;           /* happens-before (clocks.h); NULL: races are not watched */
    struct row_use *row_use;              /* wgmma's registers (wgmma.h), [row_uses]; NULL: the warp has executed no
                                             wgmma.fence */
    uint32_t row_uses, wgmma_fences;      /* wgmma.fence executed so far */
    uint32_t maximum_registers, register_turns;           /* setmaxnreg: registers per thread, how often it was
                                                             executed */
};

/* bar / barrier: 16 of them per CTA. */
struct cta_barrier {
    uint32_t arrived, expected;
    uint64_t turn;
    uint32_t reduction, votes, last_reduction, last_votes;
    bool in_use;
};

struct mbarrier_table;
struct tensor_memory;                     /* of an SM: tensor_memory.h */
struct sm { uint32_t index; struct tensor_memory *tensor; };
struct sm_set;                            /* SMs that several clusters share: sms.h */

struct cta {
    struct cluster *cluster;
    uint32_t id[3], rank;
    uint8_t *shared;
    uint32_t shared_bytes;                /* valid offsets: shared_reserved ... shared_bytes-1 */
    uint32_t shared_base;                 /* rank << 24 */
    struct shadow shadow;
    struct warp *warp;
    uint32_t warps, threads, live_threads;
    uint32_t free_registers;              /* per thread of a warp: what setmaxnreg.dec released */
    struct cta_barrier barrier[16];
    struct mbarrier_table *mbarriers;     /* mbarrier.h; NULL until the first mbarrier.init */
    struct sm *sm;                        /* NULL until the first tcgen05 instruction */
    bool launched;                        /* a thread has executed griddepcontrol.launch_dependents */
    bool cancel_failed;                   /* a thread has observed that a clusterlaunchcontrol.try_cancel failed */
};

struct agent_operation;
struct between;
struct cluster_order;

struct cluster {
    struct grid *grid;
    uint32_t id[3], index;
    struct cta *cta;
    uint32_t ctas, live_ctas;
    uint64_t now;                         /* steps: instructions executed, and time passed while nothing could run */
    uint64_t events;                      /* counts what may end a wait */
    uint64_t random;                      /* state of the schedule's numbers */
    struct agent_operation *operations;   /* under way, by rising due step (agent.h) */
    uint64_t next_due;                    /* of the first; UINT64_MAX */
    uint64_t operation_serial;            /* started so far */
    uint32_t next_warp;                   /* round robin */
    uint64_t favour;                      /* what warps or CTAs come first now (schedule.c), and for how many turns */
    uint32_t favour_turns;
    uint32_t barrier_arrived;             /* barrier.cluster: threads */
    uint64_t barrier_turn;
    struct cluster_clocks *clocks;        /* happens-before (clocks.h); NULL: races are not watched */
    struct cluster_order *order;          /* the same between clusters (between.h); NULL: nothing yet */
    /* Threads that poll for what nobody writes: rounds in which time passed and nothing else happened. */
    uint64_t idle_events, idle_rounds;
    bool idle;                            /* counted in grid.idle */
    struct insn_counts *counts;           /* by program counter (profile.c); NULL: no profile */
    struct sm_set *sms;                   /* where it is resident */
    bool yields;                          /* other clusters have their turn, which may be of the next grid */
    bool before_ended;                    /* it knows that the grid in front has */
    bool starved;                         /* it waits for what other clusters on its SMs hold, and nothing has come
                                             since it
                                             looked */
};

/* Who watches the steps of a grid (profile/watch.h); NULL: nobody. */
struct trace;
struct profile;
struct watch { struct trace *trace; struct profile *profile; };

/* Grids before this one in its stream that may not have ended when it begins (dependent.h). */
enum { MOST_IN_FLIGHT = 4 };
struct grid_in_flight {
    uint32_t run;
    bool early;                           /* the next grid may begin while it reads */
    char kernel[64];
};
struct grids_in_flight { struct grid_in_flight grid[MOST_IN_FLIGHT]; uint32_t count; };

struct machine {
    const struct device_limits *device;
    struct machine_options options;
    struct global_memory memory;
    uint64_t grids;                       /* launched so far */
    bool dependent_grids, early_grids;    /* some module has griddepcontrol; its .launch_dependents */
    atomic_flag wide_lock;                /* of 16-byte atomics */
    void (*print)(void *user, const char *text, size_t length);   /* vprintf of kernels */
    void *print_user;
    struct rule_book *rule_book;          /* of what is reported and goes on; NULL: it is not kept */
    struct watch *watch;                  /* trace and profile (watch.h); NULL: none */
    uint64_t steps;                       /* of the longest cluster of the last launch, under any of its schedules */
    struct grids_in_flight in_flight;     /* of the last launch and those before it: what the next may run beside */
};

/* A module on a machine: where its variables lie. */
struct image {
    const struct module *module;
    uint64_t *address;                    /* by variable index; 0 for shared ones */
};

struct launch {
    const struct image *image;
    const struct function *function;
    uint32_t grid[3], block[3], cluster[3];
    bool explicit_cluster;
    bool cooperative;                     /* all clusters are resident together */
    uint32_t dynamic_shared;
    const uint8_t *parameters;            /* function->parameter_bytes */
    const struct grids_in_flight *beside; /* NULL: all before it have ended */
};

struct grid {
    struct machine *machine;
    const struct launch *launch;
    const struct module *module;
    const struct function *function;
    const struct insn *code;
    uint64_t id;                          /* part of its random numbers */
    uint32_t run;                         /* what memory remembers of it (dependent.h): larger than all before it */
    uint64_t *symbol;                     /* addresses by variable index; shared ones: offsets in the CTA */
    uint32_t shared_bytes;                /* of a CTA: reserved + static + dynamic */
    uint32_t threads_per_cta;
    uint32_t cluster_extent[3], clusters_extent[3];
    uint64_t clusters;
    _Atomic uint64_t next_cluster;
    _Atomic uint64_t ended, idle;         /* clusters */
    struct between *between;              /* what its clusters do to each other (between.h); NULL: not watched */
    struct grid *before;                  /* that may still run: griddepcontrol.wait waits for it; NULL: none */
    struct grids_in_flight *beside;       /* where its launch's is made up when it begins */
    bool followed;                        /* by a grid that may begin before this one has ended */
    _Atomic bool begun;
    _Atomic uint64_t launched;            /* CTAs that have executed griddepcontrol.launch_dependents, or ended */
    _Atomic bool stop;
    _Atomic bool reported;
    _Atomic bool waited;                  /* some thread has executed griddepcontrol.wait */
    _Atomic uint32_t tensor_group;        /* cta_group of the tcgen05 instructions so far; 0: none yet */
    struct report report;                 /* of the first fault */
    struct watch *watch;                  /* NULL: none */
    _Atomic uint64_t steps;               /* of the longest cluster that has ended */
    _Atomic uint64_t all_steps;           /* of all that have ended, as grid_step_limit counts them */
};

/* An access of a warp's lanes to memory: memory/access.h. */
struct access {
    enum space space;
    uint32_t bytes;                       /* per lane */
    bool writes, reads;
    bool strong;                          /* atomic, relaxed, volatile: does not race with others like it */
    bool locates;                         /* the place alone is asked for: the caller checks the access itself */
    bool mbarrier;                        /* by an mbarrier operation: may touch a live object */
    const uint64_t *stored;               /* what each lane will write, if it is told: at most 8 bytes; NULL: it is
                                             not */
    uint64_t address[LANES];              /* as the instruction names it, in `space` */
    uint8_t *host[LANES];
    struct cta *owner[LANES];             /* whose shared memory it is; NULL: not shared */
    uint32_t offset[LANES];               /* in it */
    uint32_t global;                      /* lanes whose access is to global memory */
};

/* instructions/threads/special.c */
uint64_t special_value(const struct warp *w, uint32_t lane, enum special special);
static inline bool grid_has_ended(const struct grid *g) { return atomic_load(&g->ended) == g->clusters; }
/* Something happened that may end a wait. */
static inline void cluster_event(struct cluster *c) { c->events++; }

/* ---- registers ---- */

#define FOR_LANES(lane, lanes) \
    for (uint32_t lane##_left = (lanes), lane = 0; \
         lane##_left != 0 && (lane = (uint32_t)__builtin_ctz(lane##_left), true); lane##_left &= lane##_left - 1)

static inline uint64_t *register_row(const struct warp *w, uint32_t slot) { return w->frame + (size_t)slot * LANES; }
static inline const uint64_t *source_row(const struct warp *w, const struct operand *o)
{
    return o->row != NULL ? o->row : register_row(w, o->slot);
}
static inline const uint64_t *source(const struct warp *w, const struct insn *in, int i)
{
    return source_row(w, &in->operand[i]);
}
static inline uint64_t *destination(const struct warp *w, const struct insn *in, int i)
{
    return register_row(w, in->operand[i].slot);
}
/* A predicate operand as a mask of lanes. */
static inline uint32_t predicate_lanes(const struct warp *w, const struct operand *o, uint32_t lanes)
{
    const uint64_t *row = source_row(w, o);
    uint32_t set = 0;
    FOR_LANES(l, lanes) set |= (uint32_t)(row[l] & 1) << l;
    return o->negated ? lanes & ~set : set;
}
static inline int64_t sign_extend(uint64_t value, uint32_t bits)
{
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

#endif
