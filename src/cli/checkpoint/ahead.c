/* Reading ahead, see ahead.h. */
#define _DEFAULT_SOURCE
#include "ahead.h"
#include "threads.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A step is what is read between two looks at whether more is wanted. */
enum { STEP = 8 << 20, WINDOW = 512 << 20 };

struct ahead {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    const struct ahead_range *ranges;
    int64_t count;
    int64_t begun, worked; /* the range that is worked on, and the bytes of all in front of it */
    bool ended;
};

/* The whole pages around or within a piece of a mapped file. */
struct pages { char *first; size_t bytes; };

static struct pages pages_around(const void *data, int64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data / page * page,
                    to = ((uintptr_t)data + (uintptr_t)bytes + page - 1) / page * page;
    return (struct pages){ (char *)from, to - from }; /* NOLINT(performance-no-int-to-ptr) */
}

static struct pages pages_within(const void *data, int64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)data + page - 1) / page * page,
                    to = ((uintptr_t)data + (uintptr_t)bytes) / page * page;
    return (struct pages){ (char *)from, to > from ? to - from : 0 }; /* NOLINT(performance-no-int-to-ptr) */
}

/* The disk is told of the next step first, then this thread waits for this one: a file that became shorter is an error
 * of madvise here, not a fault. */
static void read_step(const char *at, int64_t bytes, int64_t next)
{
    const struct pages now = pages_around(at, bytes), later = pages_around(at + bytes, next);
    if (next > 0) madvise(later.first, later.bytes, MADV_WILLNEED);
#ifdef MADV_POPULATE_READ
    madvise(now.first, now.bytes, MADV_POPULATE_READ);
#else
    madvise(now.first, now.bytes, MADV_WILLNEED);
#endif
}

/* Waits until the step, behind `position` bytes of all ranges, is within the window; false at the end. */
static bool wait_for_turn(struct ahead *a, int64_t position)
{
    pthread_mutex_lock(&a->lock);
    while (!a->ended && position > a->worked + WINDOW) pthread_cond_wait(&a->moved, &a->lock);
    const bool goes_on = !a->ended;
    pthread_mutex_unlock(&a->lock);
    return goes_on;
}

static void *read_all(void *argument)
{
    struct ahead *a = argument;
    int64_t position = 0;
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t at = 0; at < a->ranges[i].bytes; at += STEP) {
            const int64_t left = a->ranges[i].bytes - at, now = left < STEP ? left : STEP;
            if (!wait_for_turn(a, position)) return NULL;
            read_step((const char *)a->ranges[i].data + at, now, left - now < STEP ? left - now : STEP);
            position += now;
        }
    return NULL;
}

struct ahead *ahead_start(const struct ahead_range *ranges, int64_t count)
{
    struct ahead *a = calloc(1, sizeof *a);
    if (a == NULL) return NULL;
    *a = (struct ahead){ .ranges = ranges, .count = count };
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->moved, NULL);
    if (threads_start(&a->thread, read_all, a)) return a;
    free(a);
    return NULL;
}

void ahead_begin(struct ahead *a, int64_t range)
{
    if (a == NULL) return;
    pthread_mutex_lock(&a->lock);
    for (; a->begun < range; a->begun++) a->worked += a->ranges[a->begun].bytes;
    pthread_cond_signal(&a->moved);
    pthread_mutex_unlock(&a->lock);
}

void ahead_give_back(const struct ahead_range *range)
{
    const struct pages pages = pages_within(range->data, range->bytes);
    if (pages.bytes > 0) madvise(pages.first, pages.bytes, MADV_DONTNEED);
}

void ahead_end(struct ahead *a)
{
    if (a == NULL) return;
    pthread_mutex_lock(&a->lock);
    a->ended = true;
    pthread_cond_signal(&a->moved);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
