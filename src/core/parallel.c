/* Tasks on several threads, and the floating-point mode they run in. */
#include "core.h"
#include "pool.h"

#include <fenv.h>
#include <stdatomic.h>
#include <stdlib.h>

int bsmi_default_threads(void)
{
    const char *wanted = getenv("OMP_NUM_THREADS");                       /* "4", or "4,2": the first counts */
    char *end = NULL;
    const long number = wanted != NULL ? strtol(wanted, &end, 10) : 0;
    const bool given = number > 0 && (*end == '\0' || *end == ',' || *end == ' ');
    return (int)BSMI_MIN(given ? number : bsmi_processors(), BSMI_MOST_THREADS);
}

struct loop {
    bsmi_task *task;
    void *argument;
    int64_t count;
    _Atomic int64_t next;
};

/* Rounding to nearest, subnormals kept: on x86-64 glibc's FE_DFL_ENV clears flush-to-zero and denormals-are-zero too,
 * which tests/core checks. */
static void run_tasks(void *argument, int worker)
{
    struct loop *loop = argument;
    fenv_t callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    for (int64_t i; (i = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed)) < loop->count;)
        loop->task(loop->argument, i, worker);
    fesetenv(&callers);
}

void bsmi_parallel_for(int threads, int64_t count, bsmi_task *task, void *argument)
{
    struct loop loop = { task, argument, count, 0 };
    bsmi_pool_run((int)BSMI_MIN(threads, count) - 1, run_tasks, &loop);
}
