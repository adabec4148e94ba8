/* Tasks: each index once, in the default floating-point mode, and in a child of fork. */
#include "core/core.h"
#include "test.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* Each index once ---------------------------------------------------------------------------------------------------- */

enum { MOST = 100000 };
struct visits { _Atomic unsigned char *times; _Atomic int64_t total, bad_worker, other_thread; int threads; pthread_t caller; };

static void visit(void *argument, int64_t index, int worker)
{
    struct visits *visits = argument;
    visits->times[index]++;
    visits->total++;
    if (worker < 0 || worker >= visits->threads) visits->bad_worker++;
    if (!pthread_equal(pthread_self(), visits->caller)) visits->other_thread++;
}

static struct visits *visits_new(int threads)
{
    struct visits *visits = calloc(1, sizeof *visits);
    visits->times = calloc(MOST, sizeof *visits->times);
    visits->threads = threads;
    visits->caller = pthread_self();
    return visits;
}

static void visits_free(struct visits *visits) { free((void *)visits->times), free(visits); }

static void covers_each_index_once(struct test *t)
{
    static const int64_t counts[] = { 0, 1, 2, 3, 7, 64, 1000, MOST };
    static const int threads[] = { 1, 2, 3, 5, 16 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (size_t j = 0; j < sizeof threads / sizeof threads[0]; j++) {
            struct visits *visits = visits_new(threads[j]);
            bsmi_parallel_for(threads[j], counts[i], visit, visits);
            CHECK(t, visits->total == counts[i] && visits->bad_worker == 0);
            for (int64_t k = 0; k < counts[i]; k++)
                if (visits->times[k] != 1) { FAIL(t, "index %" PRId64 " of %" PRId64 ": %d times", k, counts[i], visits->times[k]); break; }
            if (threads[j] == 1) CHECK(t, visits->other_thread == 0);
            visits_free(visits);
        }
}

static void *visit_from_a_thread(void *argument)
{
    for (int i = 0; i < 50; i++) bsmi_parallel_for(2, 100, visit, argument);
    return NULL;
}

static void several_callers_at_once(struct test *t)
{
    enum { CALLERS = 4 };
    struct visits *visits = visits_new(2);
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, visit_from_a_thread, visits) == 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    CHECK(t, visits->total == CALLERS * 50 * 100 && visits->bad_worker == 0);
    for (int k = 0; k < 100; k++) CHECK(t, visits->times[k] == CALLERS * 50);
    visits_free(visits);
}

#ifdef _OPENMP
/* Two tasks that wait for each other, 60 s at most: only two threads can bring them together, however busy the machine. */
struct meeting { _Atomic int arrived; bool met[2]; };

static void meet(void *argument, int64_t index, int worker)
{
    struct meeting *meeting = argument;
    (void)worker;
    meeting->arrived++;
    for (int i = 0; i < 60000 && meeting->arrived < 2; i++) usleep(1000);
    meeting->met[index] = meeting->arrived == 2;
}
#endif

static void uses_the_threads_it_is_given(struct test *t)
{
#ifdef _OPENMP
    if (omp_get_thread_limit() < 2) { test_skip(t, "one thread only"); return; }
    struct meeting meeting = { 0 };
    bsmi_parallel_for(2, 2, meet, &meeting);
    CHECK(t, meeting.met[0] && meeting.met[1]);
#else
    test_skip(t, "built without OpenMP");
#endif
}

static void default_number_of_threads(struct test *t)
{
    const int given = bsmi_default_threads();
    CHECK(t, given >= 1 && given <= 1024);
#ifdef _OPENMP
    omp_set_num_threads(5);
    CHECK(t, bsmi_default_threads() == 5);
    omp_set_num_threads(5000);
    CHECK(t, bsmi_default_threads() == 1024);
    omp_set_num_threads(given);
#endif
}

/* Floating-point mode ------------------------------------------------------------------------------------------------ */

#ifdef __x86_64__
enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040, CONTROL_BITS = 0xffc0 };
static void flush_subnormals(void) { _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO); }
static unsigned control(void) { return _mm_getcsr() & CONTROL_BITS; }
#else
static void flush_subnormals(void) { }
static unsigned control(void) { return 0; }
#endif

/* 1 + 2^-24 is halfway; 2^-149 is the smallest subnormal. */
static bool mode_is_default(void)
{
    volatile const float one = 1, half_place = 0x1p-24f, smallest = 0x1p-149f, smallest_normal = 0x1p-126f, half = 0.5f;
    volatile const float up = one + half_place, down = -one - half_place, halved = smallest_normal * half, kept = smallest * one;
    return fegetround() == FE_TONEAREST && up == 1 && down == -1 && halved > 0 && kept > 0;
}

static void look_at_mode(void *argument, int64_t index, int worker)
{
    (void)index, (void)worker;
    if (!mode_is_default()) ++*(_Atomic int64_t *)argument;
}

static void spoil_mode(int rounding)
{
    fesetround(rounding);
    flush_subnormals();
}

static void tasks_run_in_the_default_mode(struct test *t)
{
    static const int roundings[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    fenv_t before;
    fegetenv(&before);
    for (int i = 0; i < 4; i++)
        for (int threads = 1; threads <= 4; threads++) {
            _Atomic int64_t wrong = 0;
#ifdef _OPENMP
#pragma omp parallel num_threads(4)
            spoil_mode(roundings[i]);                                 /* the threads of the pool that the library will use */
#endif
            spoil_mode(roundings[i]);
            const unsigned mine = control();
            bsmi_parallel_for(threads, 64, look_at_mode, &wrong);
            const unsigned after = control();
            const int rounding = fegetround();
            fesetenv(&before);
            CHECK(t, wrong == 0);
            CHECK(t, after == mine && rounding == roundings[i]);
        }
#ifdef _OPENMP
#pragma omp parallel num_threads(4)
    fesetenv(FE_DFL_ENV);
#endif
    fesetenv(&before);
}

static void spoiled_mode_is_seen(struct test *t)                      /* the check above can fail */
{
    fenv_t before;
    fegetenv(&before);
    fesetround(FE_UPWARD);
    const bool rounding_seen = !mode_is_default();
    fesetenv(&before);
    flush_subnormals();
    const bool flush_seen = !mode_is_default();
    fesetenv(&before);
    CHECK(t, rounding_seen && mode_is_default());
#ifdef __x86_64__
    CHECK(t, flush_seen);
#else
    (void)flush_seen;
#endif
}

/* Fork --------------------------------------------------------------------------------------------------------------- */

/* In a child: visits every index on one thread, or is killed by its alarm.  Returns the child's exit status. */
static int visit_in_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(600);
        struct visits *visits = visits_new(1);
        bsmi_parallel_for(4, 1000, visit, visits);
        _exit(visits->total == 1000 && visits->other_thread == 0 && visits->bad_worker == 0 ? 0 : 1);
    }
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return status;
}

/* First in the table: nothing has called the library yet, but the process has opened a team. */
static void fork_before_the_first_call(struct test *t)
{
#ifdef _OPENMP
    int members = 0;
#pragma omp parallel num_threads(4) reduction(+ : members)
    members++;
    CHECK(t, members >= 1);
#endif
    CHECK(t, visit_in_child() == 0);
}

static void fork_after_use(struct test *t)
{
    struct visits *visits = visits_new(4);
    bsmi_parallel_for(4, 1000, visit, visits);
    CHECK(t, visit_in_child() == 0);
    bsmi_parallel_for(4, 1000, visit, visits);                        /* the parent goes on */
    CHECK(t, visits->total == 2000);
    visits_free(visits);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(fork_before_the_first_call), TEST(covers_each_index_once), TEST(several_callers_at_once),
        TEST(uses_the_threads_it_is_given), TEST(default_number_of_threads), TEST(spoiled_mode_is_seen),
        TEST(tasks_run_in_the_default_mode), TEST(fork_after_use),
    };
    return TEST_MAIN(argc, argv, cases);
}
