/* Grids: variables of a module, clusters and their CTAs, host threads. */
#include "launch.h"
#include "deadlock.h"
#include "machine/async/agent.h"
#include "machine/async/async_copy.h"
#include "machine/async/mbarrier.h"
#include "machine/tensor/sms.h"
#include "machine/check/between.h"
#include "machine/check/checks.h"
#include "machine/check/dependent.h"
#include "machine/tensor/tensor_pipe.h"
#include "machine/profile/watch.h"
#include "schedule.h"
#include "warp.h"
#include "machine/mma/wgmma.h"
#include "machine/core/global_memory.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLICE_STEPS = 4096, MAX_RESIDENT = 64 };

struct machine_options machine_default_options(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct machine_options options = {
        .seed = 1, .threads = processors < 1 ? 1 : (uint32_t)processors, .sms = 4, .check_uninitialised = true,
        .check_races = true, .overlap = true
    };
    rules_default(options.rule);
    return options;
}

void machine_open(struct machine *machine, const struct device_limits *device, const struct machine_options *options)
{
    *machine = (struct machine){ .device = device, .options = *options };
    global_open(&machine->memory, UINT64_C(1) << 36);
}

void machine_close(struct machine *machine) { global_close(&machine->memory); }

/* ---- variables of a module ---- */

static void relocate(struct image *image, struct machine *machine, const struct variable *v)
{
    uint8_t *host = global_host(&machine->memory, image->address[v->index], v->bytes);
    for (uint32_t i = 0; i < v->relocation_count; i++) {
        const struct relocation *r = &v->relocations[i];
        const uint64_t target = r->function != NULL ? CODE_WINDOW + 16 * (uint64_t)r->function->index
                                                    : image->address[r->variable->index];
        const uint64_t value = target + (uint64_t)r->addend;
        memcpy(host + r->offset, &value, sizeof value);
    }
}

bool image_open(struct image *image, struct machine *machine, const struct module *module)
{
    machine->dependent_grids |= module->waits_for_grids || module->launches_dependents;
    machine->early_grids |= module->launches_dependents;
    *image = (struct image){ .module = module, .address = calloc(module->variable_count + 1, sizeof *image->address) };
    if (image->address == NULL) return false;
    for (uint32_t i = 0; i < module->variable_count; i++) {
        const struct variable *v = module->variables[i];
        if (v->space == SPACE_SHARED || v->bytes == 0) continue;
        const uint64_t base = v->managed ? global_map(&machine->memory, v->bytes, ALLOCATION_MANAGED)
                                         : global_allocate(&machine->memory, v->bytes, v->align, v->name);
        if (base == 0) {
            image_close(image, machine);
            return false;
        }
        image->address[i] = base;
        /* the newest is the last */
        struct allocation *made = &machine->memory.allocation[machine->memory.count - 1];
        made->read_only = v->space == SPACE_CONST, made->name = v->name;
        if (v->initial != NULL) memcpy(global_host(&machine->memory, base, v->bytes), v->initial, v->bytes);
    }
    for (uint32_t i = 0; i < module->variable_count; i++) relocate(image, machine, module->variables[i]);
    return true;
}

void image_close(struct image *image, struct machine *machine)
{
    for (uint32_t i = 0; image->address != NULL && i < image->module->variable_count; i++)
        if (image->address[i] != 0) global_release(&machine->memory, image->address[i]);
    free(image->address);
    *image = (struct image){ 0 };
}

/* ---- a cluster ---- */

static bool open_cta(struct cta *cta, struct cluster *c, uint32_t rank)
{
    const struct grid *grid = c->grid;
    const uint32_t *extent = grid->cluster_extent;
    const uint32_t in_cluster[3] = { rank % extent[0], rank / extent[0] % extent[1], rank / (extent[0] * extent[1]) };
    *cta = (struct cta){ .cluster = c, .rank = rank, .shared_base = rank << SHARED_RANK_SHIFT,
                         .shared_bytes = grid->shared_bytes,
                         .threads = grid->threads_per_cta };
    for (int i = 0; i < 3; i++) cta->id[i] = c->id[i] * extent[i] + in_cluster[i];
    cta->live_threads = cta->threads;
    const uint32_t warps = (cta->threads + LANES - 1) / LANES;
    cta->shared = calloc(1, cta->shared_bytes);
    cta->warp = calloc(warps, sizeof *cta->warp);
    if (cta->shared == NULL || cta->warp == NULL || !shadow_open(&cta->shadow, cta->shared_bytes)) return false;
    for (; cta->warps < warps; cta->warps++) {
        const uint32_t threads = cta->threads - cta->warps * LANES;
        if (!warp_open(&cta->warp[cta->warps], cta, cta->warps, threads >= LANES ? UINT32_MAX : (1u << threads) - 1)) {
            cta->warps++;
            return false;
        }
    }
    return true;
}

static void close_cluster(struct cluster *c)
{
    agents_drop(c);
    sms_leave(c);
    for (uint32_t i = 0; c->cta != NULL && i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++) {
            wgmma_close(&c->cta[i].warp[j]);
            async_copies_close(&c->cta[i].warp[j]);
        }
    for (uint32_t i = 0; c->cta != NULL && i < c->ctas; i++) tensor_pipe_close(&c->cta[i]);
    clocks_close(c);
    between_leave(c);
    watch_close_cluster(c);
    for (uint32_t i = 0; c->cta != NULL && i < c->ctas; i++) {
        struct cta *cta = &c->cta[i];
        for (uint32_t j = 0; j < cta->warps; j++) warp_close(&cta->warp[j]);
        mbarriers_close(cta);
        tensor_memory_close(cta);
        shadow_close(&cta->shadow);
        free(cta->warp), free(cta->shared);
    }
    free(c->cta);
    free(c);
}

static void cluster_place(const struct grid *grid, uint64_t index, uint32_t id[3])
{
    const uint32_t *extent = grid->clusters_extent;
    id[0] = (uint32_t)(index % extent[0]);
    id[1] = (uint32_t)(index / extent[0] % extent[1]);
    id[2] = (uint32_t)(index / ((uint64_t)extent[0] * extent[1]));
}

static uint32_t ctas_of_cluster(const struct grid *grid)
{
    return grid->cluster_extent[0] * grid->cluster_extent[1] * grid->cluster_extent[2];
}

bool grid_cancel_cluster(struct grid *grid, uint32_t id[3])
{
    const uint64_t index = atomic_fetch_add(&grid->next_cluster, 1);
    if (index >= grid->clusters) return false;
    cluster_place(grid, index, id);
    atomic_fetch_add(&grid->launched, ctas_of_cluster(grid));
    atomic_fetch_add(&grid->ended, 1);
    return true;
}

static struct cluster *open_cluster(struct grid *grid, uint64_t index)
{
    struct cluster *c = calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->grid = grid;
    c->index = (uint32_t)index;
    cluster_place(grid, index, c->id);
    c->ctas = c->live_ctas = ctas_of_cluster(grid);
    c->random =
        grid->machine->options.seed * UINT64_C(0x2545f4914f6cdd1d) + index * UINT64_C(0x9e3779b97f4a7c15) + grid->id;
    c->next_due = UINT64_MAX;
    c->events = 1;
    c->cta = calloc(c->ctas, sizeof *c->cta);
    for (uint32_t i = 0; c->cta != NULL && i < c->ctas; i++)
        if (!open_cta(&c->cta[i], c, i)) {
            close_cluster(c);
            return NULL;
        }
    if (c->cta != NULL && clocks_open(c) && watch_open_cluster(c)) return c;
    close_cluster(c);
    return NULL;
}

/* ---- host threads ---- */

/* A host thread's part of a grid. */
struct share {
    struct grid *grid;
    struct cluster **resident;
    uint32_t resident_count, resident_limit;
    struct sm_set *set;
    uint32_t sets;
    uint64_t random;
};

/* A host thread, with its share of each of the grids. */
struct worker {
    struct share *share;
    uint32_t grids;
    bool no_memory;
};

static uint64_t share_random(struct share *share)
{
    share->random = (share->random + share->grid->machine->options.seed) * UINT64_C(0x5851f42d4c957f2d) +
                    UINT64_C(0x14057b7ef767814f);
    return share->random >> 33;
}

/* How many clusters may be resident now.  Those that have not started can be cancelled by others: under the schedule
 * `earliest` as few as possible, under `latest` all but the first, at random anything. */
static uint32_t residency(struct share *share)
{
    const struct grid *grid = share->grid;
    if (!grid->module->cancels_clusters || grid->launch->cooperative) return share->resident_limit;
    switch (grid->machine->options.schedule) {
    case SCHEDULE_EARLIEST: return share->resident_limit;
    case SCHEDULE_LATEST: return 1;
    default: break;
    }
    const uint64_t how = share_random(share) % 4;
    return how == 0   ? share->resident_limit
           : how == 1 ? 1
                      : 1 + (uint32_t)(share_random(share) % share->resident_limit);
}

/* The hardware spreads CTAs over its SMs; which of them meet on one is nobody's promise. */
static bool is_packed(struct share *share)
{
    switch (share->grid->machine->options.schedule) {
    case SCHEDULE_EARLIEST: return false;
    case SCHEDULE_LATEST: return true;
    default: return share_random(share) % 2 == 0;
    }
}

/* The host has no memory for a cluster: false. */
static bool take_clusters(struct share *share)
{
    struct grid *grid = share->grid;
    const uint32_t limit = residency(share);
    while (share->resident_count < limit && !atomic_load(&grid->stop)) {
        const uint64_t index = atomic_fetch_add(&grid->next_cluster, 1);
        if (index >= grid->clusters) break;
        struct cluster *c = open_cluster(grid, index);
        if (c == NULL) return false;
        share->resident[share->resident_count++] = c;
        sms_place(share->set, share->sets, c, is_packed(share));
    }
    return true;
}

/* How long a cluster runs before the next one's turn. */
static uint64_t slice(struct share *share)
{
    const struct machine_options *options = &share->grid->machine->options;
    if (options->schedule != SCHEDULE_RANDOM) return SLICE_STEPS;
    return 1 + share_random(share) % SLICE_STEPS;
}

static void count_steps(struct cluster *c)
{
    const uint64_t limit = c->grid->machine->options.grid_step_limit, its = c->now + CLUSTER_STEPS;
    if (limit != 0 && atomic_fetch_add(&c->grid->all_steps, its) + its > limit) report_steps(c, true);
    uint64_t most = atomic_load(&c->grid->steps);
    while (c->now > most && !atomic_compare_exchange_weak(&c->grid->steps, &most, c->now)) { }
}

static void close_ranks(struct share *share)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < share->resident_count; i++)
        if (share->resident[i] != NULL) share->resident[left++] = share->resident[i];
    share->resident_count = left;
}

/* Runs the clusters that are resident in turns, so that one may wait for what another writes to global memory. */
static void run_resident(struct share *share)
{
    struct grid *grid = share->grid;
    const bool latest = grid->machine->options.schedule == SCHEDULE_LATEST;
    for (uint32_t i = share->resident_count; i-- > 0;) {
        struct cluster **c = &share->resident[latest ? i : share->resident_count - 1 - i];
        if (!cluster_run(*c, slice(share))) continue;
        count_steps(*c);
        close_cluster(*c);
        atomic_fetch_add(&grid->ended, 1);
        *c = NULL;
    }
    close_ranks(share);
}

/* Whether a grid has begun or, all CTAs in front having let it, begins now.  The schedule `latest` lets those end. */
static bool has_begun(struct grid *grid)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (atomic_load(&grid->begun)) return true;
    const struct grid *b = grid->before;
    const bool latest = grid->machine->options.schedule == SCHEDULE_LATEST;
    if (!atomic_load(&b->begun)) return false;
    if (!grid_has_ended(b) && (latest || atomic_load(&b->launched) < b->clusters * ctas_of_cluster(b))) return false;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&grid->begun)) *grid->beside = grids_in_flight_behind(b);
    atomic_store(&grid->begun, true);
    pthread_mutex_unlock(&lock);
    return true;
}

static void stop_all(const struct worker *worker)
{
    bool stopped = worker->no_memory;
    for (uint32_t i = 0; i < worker->grids; i++) stopped = stopped || atomic_load(&worker->share[i].grid->stop);
    for (uint32_t i = 0; stopped && i < worker->grids; i++) atomic_store(&worker->share[i].grid->stop, true);
}

/* False: no cluster is left. */
static bool take_all(struct worker *worker, uint32_t *resident)
{
    bool left = false;
    *resident = 0;
    for (uint32_t i = 0; i < worker->grids; i++) {
        struct share *share = &worker->share[i];
        if (!has_begun(share->grid)) left = left || !atomic_load(&share->grid->stop);
        else if (!take_clusters(share)) worker->no_memory = true;
        *resident += share->resident_count;
    }
    return left || *resident != 0;
}

/* The newest grid's clusters first: always under `earliest`, half of the time at random. */
static bool newest_first(struct worker *worker)
{
    const enum schedule schedule = worker->share[0].grid->machine->options.schedule;
    if (worker->grids == 1 || schedule != SCHEDULE_RANDOM) return schedule == SCHEDULE_EARLIEST;
    return share_random(&worker->share[worker->grids - 1]) % 2 == 0;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    uint32_t resident;
    fesetenv(FE_DFL_ENV);
    while (take_all(worker, &resident)) {
        const bool newest = newest_first(worker);
        for (uint32_t i = 0; i < worker->grids; i++)
            run_resident(&worker->share[newest ? worker->grids - 1 - i : i]);
        stop_all(worker);
        if (resident == 0) sched_yield(); /* clusters of other host threads have not let the next grid begin */
    }
    return NULL;
}

static uint32_t ctas_per_sm(const struct grid *grid)
{
    const struct device_limits *d = grid->machine->device;
    uint32_t per_sm = d->blocks_per_sm;
    if (per_sm > d->shared_per_sm / grid->shared_bytes) per_sm = d->shared_per_sm / grid->shared_bytes;
    if (per_sm > d->threads_per_sm / grid->threads_per_cta) per_sm = d->threads_per_sm / grid->threads_per_cta;
    const uint32_t registers = grid->function->maxnreg * grid->threads_per_cta; /* ptxas alone knows those of others */
    if (registers != 0 && per_sm > d->registers_per_sm / registers) per_sm = d->registers_per_sm / registers;
    if (per_sm > MOST_PER_SM) per_sm = MOST_PER_SM;
    return per_sm == 0 ? 1 : per_sm;
}

/* How many clusters the SMs hold together, shared among the host threads. */
static uint32_t resident_clusters(const struct grid *grid, uint32_t workers)
{
    const uint32_t ctas = ctas_of_cluster(grid), per_sm = ctas_per_sm(grid);
    uint32_t clusters = (grid->machine->options.sms * per_sm / ctas + workers - 1) / workers;
    if (clusters == 0) clusters = 1;
    if (grid->launch->cooperative) return (uint32_t)((grid->clusters + workers - 1) / workers);
    return clusters > MAX_RESIDENT ? MAX_RESIDENT : clusters;
}

static bool share_open(struct share *share, struct grid *grid, uint32_t workers)
{
    const uint32_t limit = resident_clusters(grid, workers), per_sm = ctas_per_sm(grid);
    *share = (struct share){ .grid = grid, .resident_limit = limit, .sets = (limit + per_sm - 1) / per_sm };
    share->resident = calloc(limit, sizeof(struct cluster *));
    share->set = calloc(share->sets, sizeof *share->set);
    return share->resident != NULL && share->set != NULL
           && sms_open(share->set, share->sets, ctas_of_cluster(grid), per_sm);
}

static void share_close(struct share *share)
{
    if (share->set != NULL) sms_close(share->set, share->sets);
    free(share->set), free(share->resident);
}

static bool run_clusters(struct grid *grid, uint32_t grids)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    struct worker workers[MOST];
    uint64_t clusters = 0;
    for (uint32_t i = 0; i < grids; i++) clusters += grid[i].clusters;
    uint32_t count = grid->machine->options.threads, started = 0;
    if (count > MOST) count = MOST;
    if (count > clusters) count = (uint32_t)clusters;
    if (watch_in_order(grid)) count = 1;
    if (count == 0) count = 1;
    struct share *share = calloc((size_t)count * grids, sizeof *share);
    bool ok = share != NULL;
    for (uint32_t i = 0; ok && i < count; i++) {
        workers[i] = (struct worker){ .share = share + (size_t)i * grids, .grids = grids };
        for (uint32_t g = 0; ok && g < grids; g++) ok = share_open(&workers[i].share[g], &grid[g], count);
    }
    for (; ok && started < count; started++)
        if (pthread_create(&threads[started], NULL, work, &workers[started]) != 0) break;
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        ok = ok && !workers[i].no_memory;
    }
    for (uint32_t i = 0; share != NULL && i < count * grids; i++) share_close(&share[i]);
    free(share);
    return ok && started != 0;
}

/* Shared variables: static ones first, as ptxas places them behind the reserved bytes, then the dynamic ones, which
 * overlap. */
static void place_shared(struct grid *grid)
{
    const struct function *f = grid->function;
    uint64_t at = grid->machine->device->shared_reserved;
    for (uint32_t i = 0; i < f->shared_count; i++) {
        const struct variable *v = f->shared[i];
        if (v->bytes == 0) continue;
        at = (at + v->align - 1) / v->align * v->align;
        grid->symbol[v->index] = at;
        at += v->bytes;
    }
    uint64_t dynamic = at;
    for (uint32_t i = 0; i < f->shared_count; i++)
        if (f->shared[i]->bytes == 0)
            dynamic = (dynamic + f->shared[i]->align - 1) / f->shared[i]->align * f->shared[i]->align;
    for (uint32_t i = 0; i < f->shared_count; i++)
        if (f->shared[i]->bytes == 0) grid->symbol[f->shared[i]->index] = dynamic;
    grid->shared_bytes = (uint32_t)(dynamic + grid->launch->dynamic_shared);
}

static struct report no_memory(const struct launch *launch)
{
    return (struct report){ .code = REPORT_RESOURCES, .kernel = launch->function->name, .lane = NO_LANE,
                            .sentence = "no host memory for the grid",
                            .text = "cudasim: no host memory for the grid\n" };
}

static bool grid_open(struct grid *grid, struct machine *machine, const struct launch *launch, uint32_t run)
{
    const struct module *module = launch->image->module;
    *grid = (struct grid){ .machine = machine,
                           .launch = launch,
                           .module = module,
                           .function = launch->function,
                           .code = module->code,
                           .id = ++machine->grids,
                           .run = run,
                           .symbol = calloc(module->variable_count + 1, sizeof *grid->symbol),
                           .watch = machine->watch,
                           .threads_per_cta = launch->block[0] * launch->block[1] * launch->block[2],
                           .clusters = 1 };
    if (grid->symbol == NULL) return false;
    memcpy(grid->symbol, launch->image->address, module->variable_count * sizeof *grid->symbol);
    for (int i = 0; i < 3; i++) {
        grid->cluster_extent[i] = launch->cluster[i] == 0 ? 1 : launch->cluster[i];
        grid->clusters_extent[i] = launch->grid[i] / grid->cluster_extent[i];
        grid->clusters *= grid->clusters_extent[i];
    }
    machine->dependent_grids |= launch->beside != NULL;
    place_shared(grid);
    return true;
}

/* The grids of launches that run beside each other; what all but the first begin beside is known when they do. */
struct together {
    struct grid grid[MOST_TOGETHER];
    struct launch launch[MOST_TOGETHER];
    struct grids_in_flight beside[MOST_TOGETHER];
};

/* Numbers for grids of all machines, of which several may write to one memory; those of one call follow each other. */
static uint32_t number_runs(uint32_t count)
{
    static _Atomic uint32_t runs;
    return atomic_fetch_add(&runs, count) + 1;
}

static bool open_all(struct together *t, struct machine *machine, const struct launch *launches, uint32_t count)
{
    const uint32_t run = number_runs(count);
    bool ok = true;
    for (uint32_t i = 0; i < count; i++) {
        t->launch[i] = launches[i];
        if (i > 0) t->launch[i].beside = &t->beside[i];
        ok = grid_open(&t->grid[i], machine, &t->launch[i], run + i) && ok;
        t->grid[i].beside = &t->beside[i];
        t->grid[i].before = i == 0 ? NULL : &t->grid[i - 1];
        t->grid[i].followed = i + 1 < count;
    }
    atomic_store(&t->grid[0].begun, true);
    return ok;
}

static bool run_together(struct together *t, struct machine *machine, const struct launch *launches, uint32_t count,
                         struct report *report)
{
    bool ok = open_all(t, machine, launches, count), reported = false;
    if (ok) {
        dependent_prepare(machine);
        for (uint32_t i = 0; i < count; i++) between_open(&t->grid[i]);
        ok = watch_open(t->grid) && run_clusters(t->grid, count);
        watch_close(t->grid);
    }
    for (uint32_t i = 0; i < count && !reported; i++) {
        reported = atomic_load(&t->grid[i].reported);
        if (reported && report != NULL) *report = t->grid[i].report;
    }
    if (!ok && !reported && report != NULL) *report = no_memory(launches);
    machine->steps = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t steps = atomic_load(&t->grid[i].steps);
        if (steps > machine->steps) machine->steps = steps;
    }
    machine->in_flight = grids_in_flight_behind(&t->grid[count - 1]);
    for (uint32_t i = 0; i < count; i++) between_close(&t->grid[i]), free(t->grid[i].symbol);
    return ok && !reported;
}

bool grids_run(struct machine *machine, const struct launch *launches, uint32_t count, struct report *report)
{
    const bool apart = !machine->options.overlap || machine->watch != NULL;
    struct together *t = calloc(1, sizeof *t);
    bool ok = t != NULL;
    if (!ok && report != NULL) *report = no_memory(launches);
    if (ok && !apart) ok = run_together(t, machine, launches, count, report);
    for (uint32_t i = 0; ok && apart && i < count; i++) {
        struct launch launch = launches[i];
        const struct grids_in_flight behind = machine->in_flight;
        if (i > 0) launch.beside = &behind;
        ok = run_together(t, machine, &launch, 1, report);
    }
    free(t);
    return ok;
}
