/* A pool of threads that any number of callers share.
 *
 * A caller opens a job and goes to work at once.  Threads that are free enter it, as long as it is open; the caller
 * closes it when it finds nothing left to do, and waits for those that entered.  A thread that the system gave no
 * processor in the meantime has not entered and is not waited for: on a machine with other work a product takes as
 * long as on one thread, not as long as until everybody had one. Whoever waits looks at a number for a moment, as
 * calls often follow one another closely, and then sleeps. Threads are made when they are first wanted, and end when
 * the library is unloaded. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE                       /* CPU_COUNT, for compilers that are called by hand */
#endif
#include "pool.h"
#include "core.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { MOST_HELPERS = BSMI_MOST_THREADS - 1, SPIN_NANOSECONDS = 50000, LOOKS_PER_CLOCK = 64 };

struct job {
    bsmi_work *work;
    void *argument;
    int helpers, entered;
    _Atomic int active;                   /* of those that entered: at work */
    bool caller_sleeps;
    pthread_cond_t done;
    struct job *next;
};

static struct {
    pthread_mutex_t lock;                 /* for all of this and for jobs */
    pthread_cond_t wanted;                /* a job was opened, or the library is unloaded */
    struct job *jobs;                     /* open ones, the oldest first */
    _Atomic int places;                   /* how many more may enter them */
    pthread_t threads[MOST_HELPERS];
    int count, busy, asleep;              /* of the threads */
    int processors;
    bool closed;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER };

static _Thread_local bool at_work;        /* this thread is within some job, or is one of the pool's */

/* Threads do not exist in a child of fork, and whoever held the lock may be among them: a child keeps off the pool. */
static _Atomic bool in_forked_child;
static void note_fork(void) { in_forked_child = true; }
__attribute__((constructor)) static void install_fork_handler(void) { pthread_atfork(NULL, NULL, note_fork); }

int bsmi_processors(void)
{
    cpu_set_t set;
    const bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    const int count = known ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return BSMI_MAX(1, count);
}

/* Waiting ---------------------------------------------------------------------------------------------------------- */

static inline void rest(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Until *number is no longer `value`, but not for long. */
static void spin_while(_Atomic int *number, int value)
{
    const int64_t end = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (atomic_load_explicit(number, memory_order_relaxed) != value) return;
            rest();
        }
    } while (nanoseconds() < end);
}

/* Not where it would keep others of the pool, or their caller, from a processor. */
static bool may_spin(void) { return pool.count - pool.asleep < pool.processors; }

/* Helpers: everything here is called, and returns, with the lock held ---------------------------------------------- */

static struct job *find_open_job(void)
{
    struct job *job = pool.jobs;
    while (job != NULL && job->entered == job->helpers) job = job->next;
    return job;
}

static void help(struct job *job)
{
    const int number = ++job->entered;
    pool.places--;
    pool.busy++;
    job->active++;
    pthread_mutex_unlock(&pool.lock);
    job->work(job->argument, number);
    pthread_mutex_lock(&pool.lock);
    pool.busy--;
    if (--job->active == 0 && job->caller_sleeps) pthread_cond_signal(&job->done);
}

/* Looks for a moment, and the next time sleeps; after that a moment again, as where a job was there is often
 * another. */
static void wait_for_job(bool *has_spun)
{
    if (may_spin() && !*has_spun) {
        pthread_mutex_unlock(&pool.lock);
        spin_while(&pool.places, 0);
        pthread_mutex_lock(&pool.lock);
        *has_spun = true;
    } else {
        pool.asleep++;
        pthread_cond_wait(&pool.wanted, &pool.lock);
        pool.asleep--;
        *has_spun = false;
    }
}

static void *helper(void *unused)
{
    bool has_spun = false;
    at_work = true;
    pthread_mutex_lock(&pool.lock);
    while (!pool.closed) {
        struct job *job = find_open_job();
        if (job == NULL) {
            wait_for_job(&has_spun);
        } else {
            help(job);
            has_spun = false;
        }
    }
    pthread_mutex_unlock(&pool.lock);
    return unused;
}

/* Signals are for the program's own threads, but for those that a thread brings upon itself. */
static void block_signals(sigset_t *before)
{
    static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

/* As many threads as there are places to fill.  Where there can be no more, those that are there must do. */
static void add_threads(void)
{
    const int missing = BSMI_MIN(pool.places - (pool.count - pool.busy), MOST_HELPERS - pool.count);
    sigset_t before;
    if (missing <= 0) return;
    block_signals(&before);
    for (int i = 0; i < missing; i++) {
        if (pthread_create(&pool.threads[pool.count], NULL, helper, NULL) != 0) break;
        pool.count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool.processors = bsmi_processors();
}

/* Callers ---------------------------------------------------------------------------------------------------------- */

static void open_job(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    struct job **last = &pool.jobs;
    while (*last != NULL) last = &(*last)->next;
    if (pool.closed) job->helpers = 0;
    *last = job;
    pool.places += job->helpers;
    add_threads();
    const int awake = pool.count - pool.busy - pool.asleep, calls = BSMI_MIN(pool.places - awake, pool.asleep);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < calls; i++) pthread_cond_signal(&pool.wanted);
}

static void close_job(struct job *job)
{
    pthread_mutex_lock(&pool.lock);
    struct job **at = &pool.jobs;
    while (*at != job) at = &(*at)->next;
    *at = job->next;
    pool.places -= job->helpers - job->entered;
    if (job->active > 0 && may_spin()) {
        pthread_mutex_unlock(&pool.lock);
        for (int active; (active = job->active) > 0;) {
            spin_while(&job->active, active);
            if (job->active == active) break;
        }
        pthread_mutex_lock(&pool.lock);
    }
    job->caller_sleeps = true;
    while (job->active > 0) pthread_cond_wait(&job->done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

void bsmi_pool_run(int helpers, bsmi_work *work, void *argument)
{
    struct job job = { .work = work, .argument = argument, .helpers = BSMI_MIN(helpers, MOST_HELPERS),
                       .done = PTHREAD_COND_INITIALIZER };
    if (helpers <= 0 || at_work || in_forked_child) {
        work(argument, 0);
        return;
    }
    at_work = true;
    open_job(&job);
    work(argument, 0);
    close_job(&job);
    pthread_cond_destroy(&job.done);
    at_work = false;
}

/* No thread may be left when its code is gone.  One that is at work can only mean that the whole process ends, and
 * then nobody waits; nor where a signal's handler ends it, in the middle of what this thread does with the pool. */
__attribute__((destructor)) static void end_threads(void)
{
    if (in_forked_child || at_work) return;
    pthread_mutex_lock(&pool.lock);
    pool.closed = true;
    const bool all_idle = pool.busy == 0;
    pthread_cond_broadcast(&pool.wanted);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.count && all_idle; i++) pthread_join(pool.threads[i], NULL);
}
