/* Which warp of a cluster runs next, time, deadlock. */
#include "schedule.h"
#include "deadlock.h"
#include "machine/async/agent.h"
#include "machine/core/random.h"
#include "machine/tensor/sms.h"
#include "warp.h"

#include <time.h>

enum { LONGEST_TURN = 64, LONGEST_FAVOUR = 1024 };

static struct warp *warp_at(struct cluster *c, uint32_t number)
{
    uint32_t cta = 0;
    while (number >= c->cta[cta].warps) number -= c->cta[cta++].warps;
    return &c->cta[cta].warp[number];
}

/* Where all warps go on at about the same pace, none is ever far ahead.  Two seeds of three favour some: the warp, or
 * the CTA, of the highest rank runs as long as it can; for some turns, then the ranks are others. */
static uint64_t rank_of(const struct cluster *c, const struct warp *w, uint32_t number, bool whole_ctas)
{
    return random_mixed(c->favour + (whole_ctas ? w->cta->rank : number)) | 1;
}

static struct warp *highest_warp(struct cluster *c, bool whole_ctas, uint64_t *rank)
{
    const uint32_t warps = c->ctas * c->cta[0].warps, first = (uint32_t)(cluster_random(c) % warps);
    struct warp *best = NULL;
    *rank = 0;
    for (uint32_t i = 0; i < warps; i++) {
        const uint32_t number = (first + i) % warps;
        struct warp *w = warp_at(c, number);
        const uint64_t its = rank_of(c, w, number, whole_ctas);
        if (its <= *rank || w->group_count == 0 || !warp_can_run(w)) continue;
        best = w;
        *rank = its;
    }
    return best;
}

/* The lower half does not even run where nothing else can, as long as operations are under way: they overtake it. */
static struct warp *favoured_warp(struct cluster *c, bool whole_ctas)
{
    for (;;) {
        uint64_t rank;
        if (c->favour_turns == 0) {
            c->favour = cluster_random(c);
            c->favour_turns = 1 + (uint32_t)(cluster_random(c) % LONGEST_FAVOUR);
        }
        c->favour_turns--;
        struct warp *w = highest_warp(c, whole_ctas, &rank);
        if (w == NULL || rank > UINT64_MAX / 2 || !agents_advance(c) || agents_run(c) == TRAP_FAULT) return w;
    }
}

static struct warp *next_warp(struct cluster *c)
{
    const uint32_t warps = c->ctas * c->cta[0].warps;
    const struct machine_options *options = &c->grid->machine->options;
    const bool random = options->schedule == SCHEDULE_RANDOM;
    if (random && options->seed % 3 != 1) return favoured_warp(c, options->seed % 3 == 0);
    const uint32_t first = random ? (uint32_t)(cluster_random(c) % warps) : c->next_warp;
    for (uint32_t i = 0; i < warps; i++) {
        const uint32_t number = (first + i) % warps;
        struct warp *w = warp_at(c, number);
        if (w->group_count == 0 || !warp_can_run(w)) continue;
        c->next_warp = (number + 1) % warps;
        return w;
    }
    return NULL;
}

/* The soonest ends of waits that time ends; UINT64_MAX: none. */
struct timeouts { uint64_t any, sleep; };

static struct timeouts timeouts_of(const struct cluster *c)
{
    struct timeouts soonest = { UINT64_MAX, UINT64_MAX };
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++) {
            const struct warp *w = &c->cta[i].warp[j];
            for (uint32_t g = 0; g < w->group_count; g++) {
                const struct wait *wait = &w->groups[g].wait;
                if (!w->groups[g].blocked || wait->until == 0) continue;
                if (wait->until < soonest.any) soonest.any = wait->until;
                if (wait->kind == WAIT_SLEEP && wait->until < soonest.sleep) soonest.sleep = wait->until;
            }
        }
    return soonest;
}

static void set_idle(struct cluster *c, bool idle)
{
    if (c->idle == idle) return;
    c->idle = idle;
    if (idle) atomic_fetch_add(&c->grid->idle, 1);
    else atomic_fetch_sub(&c->grid->idle, 1);
}

/* Every cluster that has begun has ended or is idle: none will write what another looks for.  Others may be between two
 * looks on their host threads: they get some milliseconds. */
static bool all_idle(const struct grid *grid)
{
    if (grid->before != NULL && !grid_has_ended(grid->before)) return false;
    const uint64_t next = atomic_load(&grid->next_cluster), begun = next < grid->clusters ? next : grid->clusters;
    if (atomic_load(&grid->idle) + atomic_load(&grid->ended) < begun) return false;
    if (begun > 1) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    return true;
}

/* Waits that time ends (mbarrier.try_wait) hide a deadlock: the threads look in vain, again and again.  Called when
 * nothing can run before a timeout; true when nothing has happened for many rounds, in all of the grid. */
static bool is_idle(struct cluster *c, bool sleeps)
{
    enum { ROUNDS = 1000, ROUNDS_OF_SLEEP = 100000, ROUNDS_TOGETHER = 500 };
    if (c->idle_events != c->events) {
        c->idle_events = c->events;
        c->idle_rounds = 0;
        set_idle(c, false);
    }
    const uint64_t most = sleeps ? ROUNDS_OF_SLEEP : ROUNDS;
    if (++c->idle_rounds < most) return false;
    set_idle(c, true);
    if (!all_idle(c->grid)) c->idle_rounds = most;
    return c->idle_rounds > most + (c->grid->clusters == 1 ? 0 : ROUNDS_TOGETHER);
}

/* Nothing can run: time passes until something can.  False: nothing ever will.  The schedule `latest` lets threads
 * sleep out first; those that look again and again it makes wait for an operation. */
static bool pass_time(struct cluster *c)
{
    const bool latest = c->grid->machine->options.schedule == SCHEDULE_LATEST;
    const struct timeouts timeout = timeouts_of(c);
    const uint64_t due = agents_soonest(c), other = latest && due != UINT64_MAX ? timeout.sleep : timeout.any;
    if (other < due) {
        if (is_idle(c, timeout.sleep != UINT64_MAX)) return false;
        c->now = other;
        return true;
    }
    if (due == UINT64_MAX) return false;
    if (latest) agents_force(c);
    else agents_advance(c);
    return agents_run(c) != TRAP_FAULT;
}

/* Threads wait for the grid in front, whose clusters have not all ended: they go on when these have. */
static bool waits_for_grid(const struct cluster *c)
{
    if (c->grid->before == NULL || c->before_ended) return false;
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++) {
            const struct warp *w = &c->cta[i].warp[j];
            for (uint32_t g = 0; g < w->group_count; g++)
                if (w->groups[g].blocked && w->groups[g].wait.kind == WAIT_GRID) return true;
        }
    return false;
}

/* What other grids have done since its last turn. */
static void look_at_grids(struct cluster *c)
{
    const bool ended = c->grid->before != NULL && !c->before_ended && grid_has_ended(c->grid->before);
    if (ended || c->yields) cluster_event(c);
    c->before_ended = c->before_ended || ended;
    c->yields = false;
}

bool cluster_run(struct cluster *c, uint64_t steps)
{
    look_at_grids(c);
    const struct machine_options *options = &c->grid->machine->options;
    const uint64_t end = c->now + steps, rounds = c->idle_rounds;
    while (c->now < end) {
        if (c->live_ctas == 0 && c->operations == NULL) return true;
        if (atomic_load_explicit(&c->grid->stop, memory_order_relaxed)) return true;
        struct warp *w = next_warp(c);
        if (w == NULL) {
            if (pass_time(c)) continue;
            if (!atomic_load(&c->grid->stop) && waits_for_grid(c)) return false;
            if (!atomic_load(&c->grid->stop) && sms_may_wait(c)) {
                set_idle(c, true);
                return false;
            }
            report_deadlock(c);
            return true;
        }
        c->starved = false;
        const uint32_t turn = options->schedule == SCHEDULE_RANDOM ? 1 + (uint32_t)(cluster_random(c) % LONGEST_TURN)
                                                                   : LONGEST_TURN;
        if (warp_run(w, turn) == TRAP_FAULT) return true;
        if (c->yields) return false;
        if (options->step_limit != 0 && c->now > options->step_limit) {
            report_steps(c, false);
            return true;
        }
    }
    if (c->idle_rounds == rounds) set_idle(c, false);
    return false;
}
