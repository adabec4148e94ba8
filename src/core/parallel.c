/* Threads of a product, and the floating-point mode they run in. */
#include "core.h"

#include <fenv.h>
#include <pthread.h>

#ifdef _OPENMP
#include <omp.h>
#endif

/* OpenMP run-times do not survive fork: a child that opens a team waits for threads that do not exist in it. */
static volatile bool in_forked_child;
static void note_fork(void) { in_forked_child = true; }
static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;
static void install_fork_handler(void) { pthread_atfork(NULL, NULL, note_fork); }

int bsmi_default_threads(void)
{
#ifdef _OPENMP
    const int threads = omp_get_max_threads();
    return BSMI_MAX(1, BSMI_MIN(threads, 1024));
#else
    return 1;
#endif
}

/* Rounding to nearest, subnormals kept.  On x86-64 FE_DFL_ENV clears flush-to-zero and denormals-are-zero too. */
static void run_serial(int64_t count, bsmi_task *task, void *argument)
{
    fenv_t callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    for (int64_t i = 0; i < count; i++) task(argument, i, 0);
    fesetenv(&callers);
}

#ifdef _OPENMP
static void run_team(int threads, int64_t count, bsmi_task *task, void *argument)
{
#pragma omp parallel num_threads(threads)
    {
        fenv_t callers;
        fegetenv(&callers);
        fesetenv(FE_DFL_ENV);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < count; i++) task(argument, i, omp_get_thread_num());
        fesetenv(&callers);
    }
}
#endif

void bsmi_parallel_for(int threads, int64_t count, bsmi_task *task, void *argument)
{
#ifdef _OPENMP
    pthread_once(&fork_handler_once, install_fork_handler);
    if (threads > count) threads = (int)count;
    if (threads > 1 && !in_forked_child) {
        run_team(threads, count, task, argument);
        return;
    }
#endif
    (void)threads;
    run_serial(count, task, argument);
}
