/* Read bandwidth of several threads, for programs that load this as a library. */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST_THREADS = 256, LINE = 1024 };

struct reader {
    pthread_t thread;
    const char *memory;
    size_t bytes;
    atomic_int *waiting;
    double from, to;
    uint64_t sum;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Begins when all are there. */
static void *read_share(void *argument)
{
    struct reader *r = argument;
    atomic_fetch_sub(r->waiting, 1);
    while (atomic_load(r->waiting) > 0) { }
    r->from = now();
    r->sum = read_all(r->memory, r->bytes);
    r->to = now();
    return NULL;
}

double read_seconds(const void *memory, size_t bytes, int threads)
{
    static struct reader readers[MOST_THREADS];
    static volatile uint64_t kept;
    if (threads < 1 || threads > MOST_THREADS) return 0;
    atomic_int waiting = threads;
    const size_t share = bytes / (size_t)threads / LINE * LINE;
    int made = 1;
    for (int i = 0; i < threads; i++)
        readers[i] = (struct reader) { .memory = (const char *)memory + (size_t)i * share, .bytes = share,
                                       .waiting = &waiting };
    while (made < threads && pthread_create(&readers[made].thread, NULL, read_share, &readers[made]) == 0) made++;
    atomic_fetch_sub(&waiting, threads - made);
    read_share(&readers[0]);
    double from = readers[0].from, to = readers[0].to;
    for (int i = 1; i < made; i++) {
        pthread_join(readers[i].thread, NULL);
        if (readers[i].from < from) from = readers[i].from;
        if (readers[i].to > to) to = readers[i].to;
    }
    for (int i = 0; i < made; i++) kept = kept + readers[i].sum;
    return made == threads ? to - from : 0;
}
