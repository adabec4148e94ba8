/* A pool of threads that any number of callers share.
 *
 * A caller opens a job and goes to work at once.  Threads that are free enter it, as long as it is open; the caller
 * closes it when it finds nothing left to do, and waits for those that entered.  A thread that the system gave no
 * processor in the meantime has not entered and is not waited for: on a machine with other work a product takes as
 * long as on one thread, not as long as until everybody had one. Whoever waits looks at a number for a moment, as
 * calls often follow one another closely, and then sleeps. Threads are made when they are first wanted, and end when
 * the library is unloaded.
 *
 * Who enters or leaves a job changes one number of it, without a lock: sixteen threads that come at the same moment
 * would wait for one another longer than a small product takes.  The lock is for sleeping and for making threads. */
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

enum { MOST_HELPERS = BSMI_MOST_THREADS - 1, MOST_JOBS = BSMI_MOST_THREADS, SPIN_NANOSECONDS = 50000,
       LOOKS_PER_CLOCK = 64 };

/* A job's state: how many more may enter, how many of those that entered are at work, and whether the last of these
 * is to wake the caller.  The other fields are the caller's to write as long as the state is 0. */
#define PLACE ((uint64_t)1)
#define ACTIVE ((uint64_t)1 << 16)
#define CALLER_SLEEPS ((uint64_t)1 << 32)
static inline int places_in(uint64_t state) { return (int)(state % ACTIVE); }
static inline int active_in(uint64_t state) { return (int)(state % CALLER_SLEEPS / ACTIVE); }

struct job {
    _Alignas(BSMI_ALIGNMENT) _Atomic uint64_t state;
    _Atomic bool taken;                   /* by a caller */
    bsmi_work *work;
    void *argument;
    int helpers;
};

static struct {
    struct job jobs[MOST_JOBS];
    _Alignas(BSMI_ALIGNMENT) _Atomic unsigned opened;      /* counts jobs */
    _Alignas(BSMI_ALIGNMENT) _Atomic int used_jobs;        /* of jobs, those that were ever taken are below */
    _Atomic int count, asleep, processors;                 /* of the threads */
    _Atomic bool closed;
    pthread_mutex_t lock;                 /* for threads, count, asleep, closed */
    pthread_cond_t wanted, left;          /* a job was opened, or the library is unloaded; a sleeping caller's job is
                                             done */
    pthread_t threads[MOST_HELPERS];
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .wanted = PTHREAD_COND_INITIALIZER, .left = PTHREAD_COND_INITIALIZER };

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

/* Not where it would keep others of the pool, or their caller, from a processor. */
static bool may_spin(void) { return pool.count - pool.asleep < pool.processors; }

static bool was_opened(void *seen)
{
    return atomic_load_explicit(&pool.opened, memory_order_relaxed) != *(unsigned *)seen;
}

static bool is_done(void *argument)
{
    struct job *const job = argument;
    return active_in(atomic_load_explicit(&job->state, memory_order_relaxed)) == 0;
}

/* Until it is so, but not for long. */
static inline void spin_until(bool (*so)(void *), void *argument)
{
    const int64_t end = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < LOOKS_PER_CLOCK; i++) {
            if (so(argument)) return;
            rest();
        }
    } while (nanoseconds() < end);
}

/* Helpers ---------------------------------------------------------------------------------------------------------- */

/* 0: nobody may. */
static int enter(struct job *job)
{
    uint64_t state = job->state;
    while (places_in(state) > 0)
        if (atomic_compare_exchange_weak(&job->state, &state, state - PLACE + ACTIVE))
            return job->helpers - places_in(state) + 1;
    return 0;
}

/* The job may be another caller's as soon as its state is 0. */
static void leave(struct job *job)
{
    const uint64_t before = atomic_fetch_sub(&job->state, ACTIVE);
    if (active_in(before) > 1 || before < CALLER_SLEEPS) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.left);
    pthread_mutex_unlock(&pool.lock);
}

static bool help_somebody(void)
{
    const int used = pool.used_jobs;
    for (int i = 0; i < used; i++) {
        struct job *const job = &pool.jobs[i];
        const int number = enter(job);
        if (number == 0) continue;
        job->work(job->argument, number);
        leave(job);
        return true;
    }
    return false;
}

/* Over all jobs. */
static int count_in_jobs(int (*in)(uint64_t))
{
    const int used = pool.used_jobs;
    int sum = 0;
    for (int i = 0; i < used; i++) sum += in(pool.jobs[i].state);
    return sum;
}

/* A job that is opened after this has looked finds it asleep. */
static void sleep_until_wanted(unsigned seen)
{
    pthread_mutex_lock(&pool.lock);
    pool.asleep++;
    if (pool.opened == seen && !pool.closed) pthread_cond_wait(&pool.wanted, &pool.lock);
    pool.asleep--;
    pthread_mutex_unlock(&pool.lock);
}

/* Looks for a moment, and the next time sleeps; after that a moment again, as where a job was there is often
 * another. */
static void *helper(void *unused)
{
    bool has_spun = false;
    at_work = true;
    while (!pool.closed) {
        unsigned seen = pool.opened;
        if (help_somebody()) {
            has_spun = false;
        } else if (may_spin() && !has_spun) {
            spin_until(was_opened, &seen);
            has_spun = pool.opened == seen;
        } else {
            sleep_until_wanted(seen);
            has_spun = false;
        }
    }
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
static void add_threads(int missing)
{
    sigset_t before;
    missing = BSMI_MIN(missing, MOST_HELPERS - pool.count);
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

/* NULL: there are too many callers. */
static struct job *take_job(void)
{
    for (int i = 0; i < MOST_JOBS; i++) {
        struct job *const job = &pool.jobs[i];
        bool taken = false;
        if (!atomic_compare_exchange_strong(&job->taken, &taken, true)) continue;
        for (int used = pool.used_jobs; used <= i;)
            if (atomic_compare_exchange_weak(&pool.used_jobs, &used, i + 1)) break;
        return job;
    }
    return NULL;
}

static void open_job(struct job *job)
{
    int calls = 0;
    pthread_mutex_lock(&pool.lock);
    if (!pool.closed) {
        const int free = pool.count - count_in_jobs(active_in), places = count_in_jobs(places_in) + job->helpers;
        job->state = (uint64_t)job->helpers * PLACE;
        pool.opened++;
        add_threads(places - free);
        calls = BSMI_MIN(places - (free - pool.asleep), pool.asleep);
    }
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < calls; i++) pthread_cond_signal(&pool.wanted);
}

static void close_job(struct job *job)
{
    uint64_t state = job->state;
    while (!atomic_compare_exchange_weak(&job->state, &state, state - (uint64_t)places_in(state) * PLACE)) { }
    while (!is_done(job) && may_spin()) {
        state = job->state;
        spin_until(is_done, job);
        if (job->state == state) break;
    }
    if (!is_done(job)) {
        pthread_mutex_lock(&pool.lock);
        atomic_fetch_or(&job->state, CALLER_SLEEPS);
        while (!is_done(job)) pthread_cond_wait(&pool.left, &pool.lock);
        pthread_mutex_unlock(&pool.lock);
    }
    atomic_exchange(&job->state, 0);      /* what those that left have written is there */
    job->taken = false;
}

/* On threads of somebody else: each call of theirs is one of the work's. */
struct shared_work {
    bsmi_work *work;
    void *argument;
    _Atomic int begun;
    int most;
};

static void call_shared_work(void *argument)
{
    struct shared_work *const shared = argument;
    const int number = shared->begun++;
    const bool was_at_work = at_work;
    if (number >= shared->most) return;
    at_work = true;
    shared->work(shared->argument, number);
    at_work = was_at_work;
}

static void run_on_others(bsm_parallel *parallel, int helpers, bsmi_work *work, void *argument)
{
    struct shared_work shared = { work, argument, 0, BSMI_MIN(helpers, MOST_HELPERS) + 1 };
    parallel(call_shared_work, &shared, (unsigned)shared.most, 0);
    if (shared.begun == 0) call_shared_work(&shared);
}

static bsm_parallel *_Atomic others;
void bsm_set_parallel(bsm_parallel *parallel) { others = parallel; }

void bsmi_pool_run(int helpers, bsmi_work *work, void *argument)
{
    const bool alone = helpers <= 0 || at_work || in_forked_child;
    bsm_parallel *const parallel = others;
    if (!alone && parallel != NULL) {
        run_on_others(parallel, helpers, work, argument);
        return;
    }
    struct job *const job = alone ? NULL : take_job();
    if (job == NULL) {
        work(argument, 0);
        return;
    }
    job->work = work, job->argument = argument, job->helpers = BSMI_MIN(helpers, MOST_HELPERS);
    at_work = true;
    open_job(job);
    work(argument, 0);
    close_job(job);
    at_work = false;
}

/* No thread may be left when its code is gone.  One that is at work can only mean that the whole process ends, and
 * then nobody waits; nor where a signal's handler ends it, in the middle of what this thread does with the pool. */
__attribute__((destructor)) static void end_threads(void)
{
    if (in_forked_child || at_work) return;
    pthread_mutex_lock(&pool.lock);
    pool.closed = true;
    const bool all_idle = count_in_jobs(active_in) == 0;
    pthread_cond_broadcast(&pool.wanted);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < pool.count && all_idle; i++) pthread_join(pool.threads[i], NULL);
}
