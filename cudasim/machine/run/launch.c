/* Grids: variables of a module, clusters and their CTAs, host threads. */
#include "launch.h"
#include "deadlock.h"
#include "machine/async/agent.h"
#include "machine/async/async_copy.h"
#include "machine/async/mbarrier.h"
#include "machine/tensor/sms.h"
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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLICE_STEPS = 4096, MAX_RESIDENT = 64 };

struct machine_options machine_default_options(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct machine_options options = {
        .seed = 1, .threads = processors < 1 ? 1 : (uint32_t)processors, .sms = 4, .check_uninitialised = true,
        .check_races = true
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
        const uint64_t base = global_allocate(&machine->memory, v->bytes, v->align, v->name);
        if (base == 0) {
            image_close(image, machine);
            return false;
        }
        image->address[i] = base;
        /* the newest is the last */
        machine->memory.allocation[machine->memory.count - 1].read_only = v->space == SPACE_CONST;
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

bool grid_cancel_cluster(struct grid *grid, uint32_t id[3])
{
    const uint64_t index = atomic_fetch_add(&grid->next_cluster, 1);
    if (index >= grid->clusters) return false;
    cluster_place(grid, index, id);
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
    c->ctas = c->live_ctas = grid->cluster_extent[0] * grid->cluster_extent[1] * grid->cluster_extent[2];
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

struct worker {
    struct grid *grid;
    struct cluster **resident;
    uint32_t resident_limit;
    struct sm_set *set;
    uint32_t sets;
    uint64_t random;
    bool no_memory;
};

static uint64_t worker_random(struct worker *worker)
{
    worker->random = (worker->random + worker->grid->machine->options.seed) * UINT64_C(0x5851f42d4c957f2d) +
                     UINT64_C(0x14057b7ef767814f);
    return worker->random >> 33;
}

/* How many clusters may be resident now.  Those that have not started can be cancelled by others: under the schedule
 * `earliest` as few as possible, under `latest` all but the first, at random anything. */
static uint32_t residency(struct worker *worker)
{
    const struct grid *grid = worker->grid;
    if (!grid->module->cancels_clusters || grid->launch->cooperative) return worker->resident_limit;
    switch (grid->machine->options.schedule) {
    case SCHEDULE_EARLIEST: return worker->resident_limit;
    case SCHEDULE_LATEST: return 1;
    default: break;
    }
    const uint64_t how = worker_random(worker) % 4;
    return how == 0   ? worker->resident_limit
           : how == 1 ? 1
                      : 1 + (uint32_t)(worker_random(worker) % worker->resident_limit);
}

/* The hardware spreads CTAs over its SMs; which of them meet on one is nobody's promise. */
static bool is_packed(struct worker *worker)
{
    switch (worker->grid->machine->options.schedule) {
    case SCHEDULE_EARLIEST: return false;
    case SCHEDULE_LATEST: return true;
    default: return worker_random(worker) % 2 == 0;
    }
}

static uint32_t take_clusters(struct worker *worker, struct cluster **resident, uint32_t count)
{
    struct grid *grid = worker->grid;
    const uint32_t limit = residency(worker);
    while (count < limit && !atomic_load(&grid->stop)) {
        const uint64_t index = atomic_fetch_add(&grid->next_cluster, 1);
        if (index >= grid->clusters) break;
        resident[count] = open_cluster(grid, index);
        if (resident[count] == NULL) {
            worker->no_memory = true;
            atomic_store(&grid->stop, true);
            break;
        }
        sms_place(worker->set, worker->sets, resident[count], is_packed(worker));
        count++;
    }
    return count;
}

/* How long a cluster runs before the next one's turn. */
static uint64_t slice(struct worker *worker)
{
    const struct machine_options *options = &worker->grid->machine->options;
    if (options->schedule != SCHEDULE_RANDOM) return SLICE_STEPS;
    return 1 + worker_random(worker) % SLICE_STEPS;
}

static void count_steps(struct cluster *c)
{
    const uint64_t limit = c->grid->machine->options.grid_step_limit, its = c->now + CLUSTER_STEPS;
    if (limit != 0 && atomic_fetch_add(&c->grid->all_steps, its) + its > limit) report_steps(c, true);
    uint64_t most = atomic_load(&c->grid->steps);
    while (c->now > most && !atomic_compare_exchange_weak(&c->grid->steps, &most, c->now)) { }
}

static uint32_t close_ranks(struct cluster **resident, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        if (resident[i] != NULL) resident[left++] = resident[i];
    return left;
}

/* Runs the clusters that are resident in turns, so that one may wait for what another writes to global memory. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct cluster **resident = worker->resident;
    const bool latest = worker->grid->machine->options.schedule == SCHEDULE_LATEST;
    fesetenv(FE_DFL_ENV);
    uint32_t count = take_clusters(worker, resident, 0);
    while (count != 0) {
        for (uint32_t i = count; i-- > 0;) {
            const uint32_t at = latest ? i : count - 1 - i;
            if (!cluster_run(resident[at], slice(worker))) continue;
            count_steps(resident[at]);
            close_cluster(resident[at]);
            atomic_fetch_add(&worker->grid->ended, 1);
            resident[at] = NULL;
        }
        count = close_ranks(resident, count);
        count = take_clusters(worker, resident, count);
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

static uint32_t ctas_of_cluster(const struct grid *grid)
{
    return grid->cluster_extent[0] * grid->cluster_extent[1] * grid->cluster_extent[2];
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

static bool run_clusters(struct grid *grid)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    struct worker workers[MOST];
    uint32_t count = grid->machine->options.threads, started = 0;
    if (count > MOST) count = MOST;
    if (count > grid->clusters) count = (uint32_t)grid->clusters;
    if (watch_in_order(grid)) count = 1;
    if (count == 0) count = 1;
    const uint32_t limit = resident_clusters(grid, count);
    const uint32_t per_sm = ctas_per_sm(grid), sets = (limit + per_sm - 1) / per_sm;
    struct cluster **resident = calloc((size_t)count * limit, sizeof *resident);
    struct sm_set *set = calloc((size_t)count * sets, sizeof *set);
    bool ok = resident != NULL && set != NULL && sms_open(set, count * sets, ctas_of_cluster(grid), per_sm);
    for (uint32_t i = 0; i < count; i++)
        workers[i] = (struct worker){ .grid = grid, .resident = resident + (size_t)i * limit, .resident_limit = limit,
                                      .set = set + (size_t)i * sets, .sets = sets };
    for (; ok && started < count; started++)
        if (pthread_create(&threads[started], NULL, work, &workers[started]) != 0) break;
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        ok = ok && !workers[i].no_memory;
    }
    if (set != NULL) sms_close(set, count * sets);
    free(set), free(resident);
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

bool grid_run(struct machine *machine, const struct launch *launch, struct report *report)
{
    const struct module *module = launch->image->module;
    struct grid *grid = calloc(1, sizeof *grid);
    uint64_t *symbol = calloc(module->variable_count + 1, sizeof *symbol);
    bool ok = grid != NULL && symbol != NULL;
    if (ok) {
        memcpy(symbol, launch->image->address, module->variable_count * sizeof *symbol);
        *grid = (struct grid){ .machine = machine,
                                .launch = launch,
                                .module = module,
                                .function = launch->function,
                                .code = module->code,
                                .id = ++machine->grids,
                                .symbol = symbol,
                                .watch = machine->watch,
                                .threads_per_cta = launch->block[0] * launch->block[1] * launch->block[2],
                                .clusters = 1 };
        for (int i = 0; i < 3; i++) {
            grid->cluster_extent[i] = launch->cluster[i] == 0 ? 1 : launch->cluster[i];
            grid->clusters_extent[i] = launch->grid[i] / grid->cluster_extent[i];
            grid->clusters *= grid->clusters_extent[i];
        }
        machine->dependent_grids |= launch->beside != NULL;
        dependent_prepare(machine);
        place_shared(grid);
        ok = watch_open(grid) && run_clusters(grid);
        watch_close(grid);
        machine->steps = atomic_load(&grid->steps);
        machine->waited = atomic_load(&grid->waited);
        if (!ok && !grid->reported) grid->report = no_memory(launch);
        ok = ok && !grid->reported;
        if (!ok && report != NULL) *report = grid->report;
    } else if (report != NULL) {
        *report = no_memory(launch);
    }
    free(symbol);
    free(grid);
    return ok;
}
