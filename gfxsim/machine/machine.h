/* The machine: plain structs by scope, machine > grid > workgroup > wave > lanes.
 *
 * A workgroup belongs to one host thread: nothing in it needs a lock.  Waves run one after the other between barriers,
 * in an order that the seed decides; what they do to each other's LDS bytes is told from events, not from that order.
 */
#ifndef GFXSIM_MACHINE_MACHINE_H
#define GFXSIM_MACHINE_MACHINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/instruction.h"
#include "image/code_object.h"
#include "options.h"
#include "simulator/report_text.h"

enum {
    LANES = 64,
    LDS_BYTES = 163840,                   /* of a workgroup, and of a compute unit */
    MOST_WAVES = 16,
    MOST_PRIVATE = 131072,                /* scratch memory of a lane */
    VGPRS = 512,                          /* rows: v0..v255, then a0..a255 */
    AGPR = 256,
    SGPRS = 128, VCC = 106, M0 = 124, EXEC = 126
};

/* ---- reports (report.h) ---- */

struct report {
    enum report_code code;
    uint32_t workgroup[3], wave, lane;    /* lane: the first that is concerned; NO_LANE */
    uint32_t pc;
    char kernel[REPORT_NAME_BYTES];
    char sentence[512];
    char text[2048];                      /* all of it, one block */
};
enum { NO_LANE = LANES };

/* ---- memory that kernels reach (memory.h) ---- */

enum allocation_kind { ALLOCATION_DEVICE, ALLOCATION_HOST, ALLOCATION_CODE, ALLOCATION_ARGUMENTS };
struct allocation { uint64_t base, bytes; enum allocation_kind kind; };
struct memory {
    uint8_t *window;                      /* reserved addresses; given out once */
    uint64_t used;
    struct allocation *allocation;        /* sorted by address */
    uint32_t count, capacity;
};

/* ---- results under way (events.h) ---- */

/* A flat instruction counts in vmcnt and in lgkmcnt: while one is under way only 0 says anything of either. */
enum counter { COUNTER_VM, COUNTER_DS, COUNTER_SMEM, COUNTER_FLAT, COUNTERS };
enum { NEEDS_VM = 1, NEEDS_LGKM = 2 };
enum event_kind { EVENT_LOAD, EVENT_STORE, EVENT_TO_LDS, EVENT_DS_READ, EVENT_DS_WRITE, EVENT_SCALAR };

struct event {
    enum counter counter;
    enum event_kind kind;
    const struct insn *in;
    uint32_t serial;                      /* of the workgroup: struct lds_event */
    bool delivered;
    uint8_t needs;                        /* of a flat instruction: counters that have not been 0 since */
    uint16_t first, dwords;               /* registers that it writes: VGPR rows or SGPRs; 0 dwords: none */
    uint64_t lanes;
    uint8_t bytes;                        /* of memory a lane */
    uint64_t address[LANES];
    uint8_t present[LANES];               /* dwords of a lane that are read; zero comes for the others */
    uint32_t lds[LANES];                  /* destination in LDS */
    uint32_t data[16][LANES];             /* what comes (DS, atomics: known at issue) */
    uint64_t defined[16][4];
};

/* What LDS remembers of an instruction: by serial. */
struct lds_event {
    uint32_t pc;
    uint16_t wave;
    bool to_lds, complete, atomic;
    uint32_t published;                   /* the number of barriers behind which all waves see it; UINT32_MAX: not
                                             yet */
};

struct lds {
    uint32_t bytes;
    uint8_t *data;
    uint8_t *defined;                     /* a byte each */
    uint32_t *writer;                     /* serial of the last write of each byte; 0: none */
    uint32_t *reader[MOST_WAVES];         /* serial of each wave's last read */
    struct lds_event *event;
    uint32_t events, capacity;
};

/* ---- hazards (hazards.h): the wait state in which a register was last written, and by what ---- */

enum writer { WRITER_NONE, WRITER_VALU, WRITER_TRANSCENDENTAL, WRITER_PARTIAL, WRITER_MATRIX, WRITER_SALU };
struct written { uint32_t at; uint8_t by, passes; uint16_t first, dwords; };

struct workgroup;

struct wave {
    struct workgroup *group;
    uint32_t index;
    uint32_t pc, next;                    /* next: where the instruction that runs leads */
    bool ended;
    bool indexing;                        /* s_set_gpr_idx_on */
    uint32_t mode;                        /* the register MODE, as s_setreg numbers its bits */
    uint32_t barriers, barrier_pc;        /* s_barrier executed; where the last one stands */
    bool scc, scc_defined;
    uint32_t vgprs, agprs;                /* that it has */
    uint32_t sgpr[SGPRS], sgpr_undefined[SGPRS];          /* a bit a bit */
    uint64_t sgpr_event[SGPRS / 64];      /* pending: SMEM under way */
    uint32_t vgpr[VGPRS][LANES];
    uint64_t defined[VGPRS][4];           /* lanes, for each byte of a register */
    uint8_t pending[VGPRS];               /* counter + 1 of the event that will write it */
    uint8_t pending_loads[VGPRS];
    struct event **event;                 /* under way, oldest first */
    uint32_t events, event_capacity;
    struct event *spare[64];
    uint32_t spares;
    uint32_t *unpublished;                /* serials that are complete and not behind a barrier yet */
    uint32_t unpublished_count, unpublished_capacity;
    uint32_t state;                       /* wait states passed */
    struct written vgpr_written[VGPRS];
    struct written sgpr_written[SGPRS];
    uint64_t random;
    const struct allocation *recent;
    uint64_t lane_exists;
    uint8_t *private_data, *private_defined;              /* scratch memory: [LANES][private_bytes] of the grid */
    uint64_t steps;
};

struct workgroup {
    struct grid *grid;
    uint32_t id[3], number;
    struct wave *wave[MOST_WAVES];
    uint32_t waves;
    struct lds lds;
    uint64_t random;
    uint64_t bank_conflicts, lds_accesses;
    uint64_t steps;
};

struct machine {
    struct machine_options options;
    struct memory memory;
    uint64_t launches;
    uint64_t bank_conflicts, lds_accesses, steps;         /* of the last launch */
};

/* A code object in the machine's memory, decoded. */
struct program {
    const struct code_object *object;
    uint64_t base;                        /* address of the image */
    struct insn *insn;                    /* by dword of the text */
    uint32_t text_bytes;
    uint64_t text;                        /* offset in the image */
    uint32_t *completed;                  /* by dword: results that an s_waitcnt there has waited for; NULL: not
                                             counted (a test counts, with one host thread) */
};

struct launch {
    const struct program *program;
    const struct kernel *kernel;
    uint32_t grid[3], block[3];           /* grid in workgroups */
    uint32_t dynamic_lds;
    const uint8_t *arguments;
    uint32_t argument_bytes;
};

struct grid {
    struct machine *machine;
    const struct launch *launch;
    uint64_t arguments, packet;           /* addresses: of the arguments, of the dispatch's description */
    uint64_t workgroups;
    uint32_t lds_bytes, private_bytes, threads;
    _Atomic uint64_t next;
    _Atomic bool stop, reported;
    _Atomic uint64_t steps, bank_conflicts, lds_accesses;
    struct report report;                 /* of the first fault */
    pthread_mutex_t atomics;              /* of global memory */
};

/* MODE: denormals of fp32 become zero, in and out; too large fp8 become the largest one; vector instructions are passed
 * over. */
enum { MODE_DENORMALS = 0x30, MODE_SATURATES = 1 << 23, MODE_INDEXING = 1 << 27, MODE_SKIPS = 1 << 28 };
static inline bool wave_flushes(const struct wave *w) { return (w->mode & MODE_DENORMALS) == 0; }

static inline const struct machine_options *wave_options(const struct wave *w)
{
    return &w->group->grid->machine->options;
}

/* Flat addresses: the upper half tells LDS and scratch memory, whose offset the lower half is, from memory. */
enum { LDS_APERTURE = 0x10000, PRIVATE_APERTURE = 0x20000 };

#define FOR_LANES(lane, lanes) \
    for (uint64_t lane##_left = (lanes), lane = 0; \
         lane##_left != 0 && (lane = (uint64_t)__builtin_ctzll(lane##_left), true); lane##_left &= lane##_left - 1)

static inline uint64_t wave_exec(const struct wave *w) { return w->sgpr[EXEC] | (uint64_t)w->sgpr[EXEC + 1] << 32; }

#endif
