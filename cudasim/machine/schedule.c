/* Which warp of a cluster runs next, time, deadlock. */
#include "machine/agent.h"

enum { LONGEST_TURN = 64 };

/* splitmix64 */
uint64_t cluster_random(struct cluster *c)
{
    uint64_t z = c->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static struct warp *warp_at(struct cluster *c, uint32_t number)
{
    uint32_t cta = 0;
    while (number >= c->cta[cta].warps) number -= c->cta[cta++].warps;
    return &c->cta[cta].warp[number];
}

static struct warp *next_warp(struct cluster *c)
{
    const uint32_t warps = c->ctas * c->cta[0].warps;
    const bool random = c->grid->machine->options.schedule == SCHEDULE_RANDOM;
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

/* The soonest end of a wait that time ends; UINT64_MAX: none. */
static uint64_t soonest_timeout(const struct cluster *c)
{
    uint64_t soonest = UINT64_MAX;
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++) {
            const struct warp *w = &c->cta[i].warp[j];
            for (uint32_t g = 0; g < w->group_count; g++)
                if (w->groups[g].blocked && w->groups[g].wait.until != 0 && w->groups[g].wait.until < soonest)
                    soonest = w->groups[g].wait.until;
        }
    return soonest;
}

/* Nothing can run: time passes until something can.  False: nothing ever will. */
static bool pass_time(struct cluster *c)
{
    const uint64_t timeout = soonest_timeout(c);
    if (timeout < c->next_due) {
        c->now = timeout;
        return true;
    }
    if (!agents_advance(c)) return false;
    return agents_run(c) != TRAP_FAULT;
}

bool cluster_run(struct cluster *c, uint64_t steps)
{
    const struct machine_options *options = &c->grid->machine->options;
    const uint64_t end = c->now + steps;
    while (c->now < end) {
        if (c->live_ctas == 0 && c->operations == NULL) return true;
        if (atomic_load_explicit(&c->grid->stop, memory_order_relaxed)) return true;
        struct warp *w = next_warp(c);
        if (w == NULL) {
            if (pass_time(c)) continue;
            report_deadlock(c);
            return true;
        }
        const uint32_t turn = options->schedule == SCHEDULE_RANDOM ? 1 + (uint32_t)(cluster_random(c) % LONGEST_TURN)
                                                                   : LONGEST_TURN;
        if (warp_run(w, turn) == TRAP_FAULT) return true;
        if (options->step_limit != 0 && c->now > options->step_limit) {
            report_deadlock(c);
            return true;
        }
    }
    return false;
}
