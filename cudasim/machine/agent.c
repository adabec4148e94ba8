/* Operations under way. */
#include "machine/agent.h"
#include "machine/watch.h"

#include <stdlib.h>

static void insert(struct cluster *c, struct agent_operation *operation)
{
    struct agent_operation **link = &c->operations;
    while (*link != NULL && (*link)->due <= operation->due) link = &(*link)->next;
    operation->next = *link;
    *link = operation;
    c->next_due = c->operations->due;
}

static uint64_t duration(struct cluster *c, uint64_t least, uint64_t most)
{
    switch (c->grid->machine->options.schedule) {
    case SCHEDULE_EARLIEST: return least;
    case SCHEDULE_LATEST: return most;
    default: return least + cluster_random(c) % (most - least + 1);
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

static struct agent_operation **first_ready(struct cluster *c)
{
    for (struct agent_operation **link = &c->operations; *link != NULL && (*link)->due <= c->now; link = &(*link)->next)
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

trap agents_run(struct cluster *c)
{
    struct agent_operation **link;
    while ((link = first_ready(c)) != NULL) {
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
            operation->due = c->now + 1;
            insert(c, operation);
        }
    }
    c->next_due = c->operations == NULL ? UINT64_MAX : c->operations->due > c->now ? c->operations->due : c->now + 1;
    return TRAP_NONE;
}

bool agents_advance(struct cluster *c)
{
    if (c->operations == NULL) return false;
    if (c->now < c->operations->due) c->now = c->operations->due;
    else c->now++;
    return true;
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
