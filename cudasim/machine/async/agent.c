/* Operations under way. */
#include "agent.h"
#include "machine/profile/watch.h"
#include "machine/core/random.h"

#include <stdlib.h>

static void insert(struct cluster *c, struct agent_operation *operation)
{
    struct agent_operation **link = &c->operations;
    while (*link != NULL && (*link)->due <= operation->due) link = &(*link)->next;
    operation->next = *link;
    *link = operation;
    c->next_due = c->operations->due;
}

enum { LATEST_STEPS = 100000, HELD_STEPS = 16 };

/* 0 ... most: as often below 2 as from 1024 to 2047. */
static uint64_t skewed(struct cluster *c, uint64_t most)
{
    const uint32_t bits = 64 - (uint32_t)__builtin_clzll(most | 1);
    /* in this order, whatever the compiler */
    const uint64_t choice = cluster_random(c), width = 1 + cluster_random(c) % bits;
    const uint64_t steps = choice % (UINT64_C(1) << width);
    return steps < most ? steps : most;
}

static uint64_t duration(struct cluster *c, uint64_t least, uint64_t most)
{
    switch (c->grid->machine->options.schedule) {
    case SCHEDULE_EARLIEST: return least;
    case SCHEDULE_LATEST: return most > LATEST_STEPS ? most : LATEST_STEPS;
    default: return least + skewed(c, most - least);
    }
}

void agent_start(struct agent_operation *operation, uint64_t least, uint64_t most)
{
    struct cluster *c = operation->cluster;
    operation->issued = c->now;
    operation->due = c->now + duration(c, least, most);
    operation->serial = c->operation_serial++;
    if (c->grid->watch != NULL) watch_started(operation);
    insert(c, operation);
}

static bool held_back(const struct cluster *c, const struct agent_operation *operation)
{
    if (operation->kind->may_complete != NULL && !operation->kind->may_complete(operation)) return true;
    if (operation->order == 0) return false;
    for (const struct agent_operation *o = c->operations; o != NULL; o = o->next)
        if (o->order == operation->order && o->serial < operation->serial) return true;
    return false;
}

static struct agent_operation **first_ready(struct cluster *c, uint64_t until)
{
    for (struct agent_operation **link = &c->operations; *link != NULL && (*link)->due <= until; link = &(*link)->next)
        if (!held_back(c, *link)) return link;
    return NULL;
}

static void finish(struct cluster *c, struct agent_operation *operation)
{
    if (c->grid->watch != NULL) watch_completed(operation);
    operation->kind->complete(operation);
    if (operation->kind->drop != NULL) operation->kind->drop(operation);
    free(operation);
    cluster_event(c);
}

/* What is due but held back is looked at again when another operation has completed, else now and then: other state may
 * hold it. */
static uint64_t next_due(const struct cluster *c)
{
    const struct agent_operation *o = c->operations;
    if (o == NULL || o->due > c->now) return o == NULL ? UINT64_MAX : o->due;
    while (o != NULL && o->due <= c->now) o = o->next;
    const uint64_t again = c->now + HELD_STEPS;
    return o != NULL && o->due < again ? o->due : again;
}

trap agents_run(struct cluster *c)
{
    struct agent_operation **link;
    while ((link = first_ready(c, c->now)) != NULL) {
        struct agent_operation *operation = *link;
        *link = operation->next;
        bool done = false;
        if (operation->kind->step(operation, &done) == TRAP_FAULT) {
            if (operation->kind->drop != NULL) operation->kind->drop(operation);
            free(operation);
            return TRAP_FAULT;
        }
        if (done) {
            finish(c, operation);
        } else {
            operation->due = c->now + 1 + duration(c, 0, 1);
            insert(c, operation);
        }
    }
    c->next_due = next_due(c);
    return TRAP_NONE;
}

uint64_t agents_soonest(const struct cluster *c)
{
    for (const struct agent_operation *o = c->operations; o != NULL; o = o->next)
        if (!held_back(c, o)) return o->due;
    return UINT64_MAX;
}

bool agents_advance(struct cluster *c)
{
    const uint64_t due = agents_soonest(c);
    if (due == UINT64_MAX) return false;
    if (c->now < due) c->now = due;
    return true;
}

static bool is_awaited(const struct cluster *c, const struct agent_operation *operation)
{
    for (uint32_t i = 0; i < c->ctas; i++)
        for (uint32_t j = 0; j < c->cta[i].warps; j++) {
            const struct warp *w = &c->cta[i].warp[j];
            for (uint32_t g = 0; g < w->group_count; g++) {
                const struct wait *wait = &w->groups[g].wait;
                if (!w->groups[g].blocked || wait->kind != operation->signals) continue;
                if (wait->kind == WAIT_MBARRIER ? wait->object == operation->object : w == operation->warp) return true;
            }
        }
    return false;
}

void agents_force(struct cluster *c)
{
    struct agent_operation **chosen = first_ready(c, UINT64_MAX);
    if (chosen == NULL) return;
    for (struct agent_operation **link = chosen; *link != NULL; link = &(*link)->next) {
        if ((*link)->signals == WAIT_NONE || held_back(c, *link) || !is_awaited(c, *link)) continue;
        chosen = link;
        break;
    }
    struct agent_operation *operation = *chosen;
    *chosen = operation->next;
    operation->due = c->now;
    operation->next = c->operations;
    c->operations = operation;
    c->next_due = c->now;
}

void agents_drop(struct cluster *c)
{
    while (c->operations != NULL) {
        struct agent_operation *operation = c->operations;
        c->operations = operation->next;
        if (operation->kind->drop != NULL) operation->kind->drop(operation);
        free(operation);
    }
    c->next_due = UINT64_MAX;
}
