/* Workgroups: their waves in turns from barrier to barrier, in an order that the seed decides; on several host
 * threads, each with a workgroup of its own. */
#include "grid.h"

#include "events.h"
#include "lds.h"
#include "memory.h"
#include "report.h"
#include "simulator/random.h"
#include "wave.h"

#include <stdlib.h>
#include <string.h>

/* What a wave costs before its first step, in steps, about. */
enum { START_STEPS = 256 };

static void close_workgroup(struct workgroup *g)
{
    for (uint32_t i = 0; i < MOST_WAVES; i++)
        if (g->wave[i] != NULL) {
            events_free(g->wave[i]);
            free(g->wave[i]->private_data);
            free(g->wave[i]->private_defined);
            free(g->wave[i]);
        }
    lds_close(&g->lds);
    free(g);
}

static struct workgroup *open_workgroup(struct grid *grid)
{
    struct workgroup *g = calloc(1, sizeof *g);
    if (g == NULL) return NULL;
    g->grid = grid;
    g->waves = (grid->threads + LANES - 1) / LANES;
    bool ok = lds_open(&g->lds, grid->lds_bytes, g->waves, grid->machine->options.check_races);
    for (uint32_t i = 0; i < g->waves && ok; i++) ok = (g->wave[i] = calloc(1, sizeof *g->wave[i])) != NULL;
    for (uint32_t i = 0; i < g->waves && ok && grid->private_bytes != 0; i++) {
        g->wave[i]->private_data = malloc((size_t)LANES * grid->private_bytes);
        g->wave[i]->private_defined = malloc((size_t)LANES * grid->private_bytes);
        ok = g->wave[i]->private_data != NULL && g->wave[i]->private_defined != NULL;
    }
    if (ok) return g;
    close_workgroup(g);
    return NULL;
}

/* A permutation of the waves, drawn for each stretch between barriers. */
static void draw_order(struct workgroup *g, uint32_t order[MOST_WAVES])
{
    const enum schedule s = g->grid->machine->options.schedule;
    for (uint32_t i = 0; i < g->waves; i++) order[i] = s == SCHEDULE_LATEST ? g->waves - 1 - i : i;
    for (uint32_t i = g->waves; s == SCHEDULE_RANDOM && i > 1; i--) {
        const uint32_t k = (uint32_t)(random_next(&g->random) % i), held = order[i - 1];
        order[i - 1] = order[k];
        order[k] = held;
    }
}

static bool meet(struct workgroup *g)
{
    const struct machine_options *o = &g->grid->machine->options;
    const struct wave *first = NULL, *ended = NULL;
    for (uint32_t i = 0; i < g->waves; i++) {
        struct wave *w = g->wave[i];
        if (w->ended) ended = w;
        else if (first == NULL) first = w;
    }
    for (uint32_t i = 0; i < g->waves && first != NULL; i++) {
        struct wave *w = g->wave[i];
        const struct insn *in = &g->grid->launch->program->insn[w->barrier_pc / 4];
        char there[256];
        if (!w->ended && w->barrier_pc != first->barrier_pc && o->same_barrier) {
            insn_at(w, first->barrier_pc, there);
            wave_fault(w, in, NO_LANE, REPORT_BARRIER, "is where this wave waits, while wave %u waits at %s "
                       "(GFXSIM_BARRIERS=any allows it)", first->index, there);
            return false;
        }
        if (!w->ended && ended != NULL && o->same_barrier) {
            wave_fault(w, in, NO_LANE, REPORT_BARRIER, "is where this wave waits, while wave %u has ended without "
                       "coming to it (GFXSIM_BARRIERS=any allows it)", ended->index);
            return false;
        }
    }
    return true;
}

static bool run_workgroup(struct workgroup *g)
{
    for (uint32_t live = g->waves; live > 0;) {
        uint32_t order[MOST_WAVES];
        draw_order(g, order);
        for (uint32_t i = 0; i < g->waves; i++) {
            struct wave *w = g->wave[order[i]];
            if (w->ended) continue;
            const trap t = wave_run(w);
            if (t == TRAP_FAULT) return false;
            if (t == TRAP_END) w->ended = true, live--;
        }
        if (live > 0 && !meet(g)) return false;
    }
    return true;
}

static void start_workgroup(struct workgroup *g, uint64_t number)
{
    const struct grid *grid = g->grid;
    const uint32_t *extent = grid->launch->grid;
    g->id[0] = (uint32_t)(number % extent[0]);
    g->id[1] = (uint32_t)(number / extent[0] % extent[1]);
    g->id[2] = (uint32_t)(number / extent[0] / extent[1]);
    g->random = random_mixed(grid->machine->options.seed * UINT64_C(0x9e3779b97f4a7c15) + number);
    g->steps = 0;
    lds_clear(&g->lds, g->waves);
    for (uint32_t i = 0; i < g->waves; i++) wave_start(g->wave[i], g, i);
}

static void *work(void *argument)
{
    struct grid *grid = argument;
    const uint64_t limit = grid->machine->options.grid_step_limit;
    struct workgroup *g = open_workgroup(grid);
    if (g == NULL) grid_fault(grid, REPORT_RESOURCES, "there is no memory for the registers of a workgroup");
    while (g != NULL && !atomic_load(&grid->stop)) {
        const uint64_t number = atomic_fetch_add(&grid->next, 1);
        if (number >= grid->workgroups) break;
        start_workgroup(g, number);
        const bool ok = run_workgroup(g);
        uint64_t steps = (uint64_t)START_STEPS * g->waves;
        for (uint32_t i = 0; i < g->waves; i++) steps += g->wave[i]->steps;
        const uint64_t all = atomic_fetch_add(&grid->steps, steps) + steps;
        if (!ok) break;
        if (limit != 0 && all > limit)
            grid_fault(grid, REPORT_STEPS,
                       "its workgroups have taken %llu steps, the limit of %llu (GFXSIM_GRID_STEPS) "
                       "is reached in number %llu of %llu workgroups",
                       (unsigned long long)all, (unsigned long long)limit, (unsigned long long)number,
                       (unsigned long long)grid->workgroups);
    }
    if (g != NULL) {
        atomic_fetch_add(&grid->bank_conflicts, g->bank_conflicts);
        atomic_fetch_add(&grid->lds_accesses, g->lds_accesses);
        close_workgroup(g);
    }
    return NULL;
}

static void run_threads(struct grid *grid)
{
    enum { MOST_THREADS = 64 };
    pthread_t thread[MOST_THREADS];
    uint32_t wanted = grid->machine->options.threads, started = 0;
    if (wanted > MOST_THREADS) wanted = MOST_THREADS;
    if (wanted > grid->workgroups) wanted = (uint32_t)grid->workgroups;
    for (; started + 1 < wanted; started++)
        if (pthread_create(&thread[started], NULL, work, grid) != 0) break;
    work(grid);
    for (uint32_t i = 0; i < started; i++) pthread_join(thread[i], NULL);
}

/* Scratch memory of a lane.  Where the kernel cannot know (recursion) it gets no less than a fixed size. */
static uint32_t private_bytes(const struct kernel *k)
{
    enum { DYNAMIC_STACK = 1 << 11, LEAST_DYNAMIC = 16384 };
    return (k->properties & DYNAMIC_STACK) != 0 && k->private_bytes < LEAST_DYNAMIC ? LEAST_DYNAMIC : k->private_bytes;
}

/* What a kernel may read of its own dispatch (HSA, kernel dispatch packet): threads of a workgroup and of all, bytes of
 * scratch memory and LDS, arguments. */
static bool describe(struct grid *grid)
{
    enum { PACKET_BYTES = 64 };
    const struct launch *l = grid->launch;
    grid->packet = memory_allocate(&grid->machine->memory, PACKET_BYTES, ALLOCATION_ARGUMENTS);
    if (grid->packet == 0) return false;
    uint8_t *at = (uint8_t *)(uintptr_t)grid->packet;
    memset(at, 0, PACKET_BYTES);
    for (int i = 0; i < 3; i++) {
        const uint16_t block = (uint16_t)l->block[i];
        const uint32_t all = l->grid[i] * l->block[i];
        memcpy(at + 4 + 2 * i, &block, 2);
        memcpy(at + 12 + 4 * i, &all, 4);
    }
    memcpy(at + 24, &grid->private_bytes, 4);
    memcpy(at + 28, &grid->lds_bytes, 4);
    memcpy(at + 40, &grid->arguments, 8);
    return true;
}

bool grid_run(struct machine *m, const struct launch *l, const struct machine_options *options, struct report *report)
{
    struct machine_options kept = m->options;
    m->options = *options;
    struct grid *grid = calloc(1, sizeof *grid);
    if (grid == NULL) return false;
    grid->machine = m, grid->launch = l;
    grid->workgroups = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    grid->threads = l->block[0] * l->block[1] * l->block[2];
    grid->lds_bytes = l->kernel->lds_bytes + l->dynamic_lds;
    grid->private_bytes = private_bytes(l->kernel);
    pthread_mutex_init(&grid->atomics, NULL);
    if (grid->private_bytes > MOST_PRIVATE) {
        grid_fault(grid, REPORT_RESOURCES, "its descriptor asks for %u bytes of scratch memory a lane, more than %d",
                   grid->private_bytes, MOST_PRIVATE);
        grid->private_bytes = 0;
    }
    /* MODE: rounding to nearest even, denormals kept, or those of fp32 flushed (LLVM, COMPUTE_PGM_RSRC1) */
    const uint32_t mode = l->kernel->rsrc1 >> 12 & 0xff;
    if (mode != 0xf0 && mode != 0xc0)
        grid_fault(grid, REPORT_ILLEGAL, "its descriptor asks for FLOAT_MODE 0x%x; gfxsim has 0xf0 and 0xc0: rounding "
                   "to nearest, denormals of fp32 kept or flushed, others kept", mode);
    const uint64_t least = (uint64_t)START_STEPS * ((grid->threads + LANES - 1) / LANES),
                   limit = options->grid_step_limit;
    if (limit != 0 && grid->workgroups > limit / least)
        grid_fault(grid, REPORT_STEPS, "it has %llu workgroups, which take more than the limit of %llu steps "
                   "(GFXSIM_GRID_STEPS) even if they do nothing", (unsigned long long)grid->workgroups,
                   (unsigned long long)limit);
    grid->arguments = memory_allocate(&m->memory, l->argument_bytes == 0 ? 1 : l->argument_bytes, ALLOCATION_ARGUMENTS);
    if (grid->arguments == 0 || !describe(grid))
        grid_fault(grid, REPORT_RESOURCES, "there is no memory for its arguments");
    else {
        memcpy((void *)(uintptr_t)grid->arguments, l->arguments, l->argument_bytes);
        run_threads(grid);
        memory_free(&m->memory, grid->packet);
    }
    if (grid->arguments != 0) memory_free(&m->memory, grid->arguments);
    m->steps = atomic_load(&grid->steps);
    m->bank_conflicts = atomic_load(&grid->bank_conflicts);
    m->lds_accesses = atomic_load(&grid->lds_accesses);
    const bool ok = !atomic_load(&grid->reported);
    *report = grid->report;
    pthread_mutex_destroy(&grid->atomics);
    free(grid);
    m->options = kept;
    return ok;
}
