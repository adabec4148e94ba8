/* Threads of a product, and the floating-point mode they run in. */
#include "core.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef _OPENMP
#include <omp.h>

/* OpenMP run-times do not survive fork: a child that opens a team waits for threads that do not exist in it.  The handler
 * is installed when the library is loaded, not by its first call, because other code of the process may have opened a
 * team, and forked, before that. */
static _Atomic bool in_forked_child;
static void note_fork(void) { in_forked_child = true; }
__attribute__((constructor)) static void install_fork_handler(void) { pthread_atfork(NULL, NULL, note_fork); }
#endif

int bsmi_default_threads(void)
{
#ifdef _OPENMP
    const int threads = omp_get_max_threads();
    return BSMI_MAX(1, BSMI_MIN(threads, 1024));
#else
    return 1;
#endif
}

/* Rounding to nearest, subnormals kept: on x86-64 glibc's FE_DFL_ENV clears flush-to-zero and denormals-are-zero too,
 * which tests/core checks. */
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
    if (threads > count) threads = (int)count;
    if (threads > 1 && !in_forked_child) {
        run_team(threads, count, task, argument);
        return;
    }
#endif
    (void)threads;
    run_serial(count, task, argument);
}
