/* Tasks: each index once, in the default floating-point mode, and in a child of fork. */
#include "core/core.h"
#include "core/pool.h"
#include "test.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* Each index once -------------------------------------------------------------------------------------------------- */

enum { MOST = 100000 };
struct visits {
    _Atomic unsigned char *times;
    _Atomic int64_t total, bad_worker, other_thread;
    int threads;
    pthread_t caller;
};

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
                if (visits->times[k] != 1) {
                    FAIL(t, "index %" PRId64 " of %" PRId64 ": %d times", k, counts[i], visits->times[k]);
                    break;
                }
            if (threads[j] == 1) CHECK(t, visits->other_thread == 0);
            visits_free(visits);
        }
}

static void visit_slowly(void *argument, int64_t index, int worker)
{
    usleep(3000);
    visit(argument, index, worker);
}

/* Also where others need longer than the caller. */
static void waits_for_every_task(struct test *t)
{
    struct visits *visits = visits_new(3);
    for (int i = 1; i <= 10; i++) {
        bsmi_parallel_for(3, 5, visit_slowly, visits);
        CHECK(t, visits->total == 5 * i);
    }
    CHECK(t, visits->other_thread > 0);
    usleep(10000);                                                        /* whoever was not waited for still writes */
    visits_free(visits);
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
    for (int i = 0; i < CALLERS; i++)
        CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, visit_from_a_thread, visits) == 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    CHECK(t, visits->total == CALLERS * 50 * 100 && visits->bad_worker == 0);
    for (int k = 0; k < 100; k++) CHECK(t, visits->times[k] == CALLERS * 50);
    visits_free(visits);
}

/* Tasks that wait for one another, 20 s at most: only threads of their own can bring them together, however busy the
 * machine. */
struct meeting { int wanted; _Atomic int arrived, met; };

static void meet(void *argument, int64_t index, int worker)
{
    struct meeting *meeting = argument;
    (void)index, (void)worker;
    meeting->arrived++;
    for (int i = 0; i < 20000 && meeting->arrived < meeting->wanted; i++) usleep(1000);
    meeting->met += meeting->arrived == meeting->wanted;
}

static void uses_the_threads_it_is_given(struct test *t)
{
    for (int i = 0; i < 20; i++) {
        struct meeting meeting = { .wanted = 2 };
        bsmi_parallel_for(2, 2, meet, &meeting);
        CHECK(t, meeting.met == 2);
    }
}

static void *meet_in_a_thread(void *argument)
{
    bsmi_parallel_for(2, 2, meet, argument);
    return NULL;
}

/* Nobody gets less because others are at work. */
static void every_caller_has_its_threads(struct test *t)
{
    enum { CALLERS = 12 };
    struct meeting meeting = { .wanted = 2 * CALLERS };
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, meet_in_a_thread, &meeting) == 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    CHECK(t, meeting.met == 2 * CALLERS);
}

/* A task's own tasks run on its thread. */
static void visit_all(void *argument, int64_t index, int worker)
{
    struct visits *visits = visits_new(1);
    (void)worker;
    bsmi_parallel_for(4, 3, visit_slowly, visits);
    if (visits->total == 3 && visits->other_thread == 0 && visits->bad_worker == 0)
        ((_Atomic unsigned char *)argument)[index]++;
    visits_free(visits);
}

static void tasks_of_tasks(struct test *t)
{
    _Atomic unsigned char right[6] = { 0 };
    bsmi_parallel_for(3, 6, visit_all, right);
    for (int i = 0; i < 6; i++) CHECK(t, right[i] == 1);
}

/* Threads of somebody else ----------------------------------------------------------------------------------------- */

struct call { void (*function)(void *argument); void *argument; };
static void *make_call(void *argument)
{
    const struct call *call = argument;
    call->function(call->argument);
    return NULL;
}

static _Atomic int regions;
static _Atomic unsigned asked_for;
static void on_new_threads(void (*function)(void *), void *argument, unsigned threads, unsigned flags)
{
    struct call call = { function, argument };
    pthread_t others[16];
    regions++;
    asked_for = threads;
    for (unsigned i = 1; i < threads; i++) pthread_create(&others[i], NULL, make_call, &call);
    if (flags == 0) function(argument);
    for (unsigned i = 1; i < threads; i++) pthread_join(others[i], NULL);
}

static void on_the_caller(void (*function)(void *), void *argument, unsigned threads, unsigned flags)
{
    (void)threads;
    (void)flags;
    function(argument);
}

static void not_at_all(void (*function)(void *), void *argument, unsigned threads, unsigned flags)
{
    (void)function;
    (void)argument;
    (void)threads;
    (void)flags;
}

static void more_often_than_asked(void (*function)(void *), void *argument, unsigned threads, unsigned flags)
{
    (void)flags;
    for (unsigned i = 0; i < 3 * threads; i++) function(argument);
}

/* Whoever they are, and however many come. */
static void threads_of_somebody_else(struct test *t)
{
    static bsm_parallel *const all[] = { on_new_threads, on_the_caller, not_at_all, more_often_than_asked };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct visits *visits = visits_new(4);
        bsm_set_parallel(all[i]);
        bsmi_parallel_for(4, 1000, visit, visits);
        bsm_set_parallel(NULL);
        CHECK(t, visits->total == 1000 && visits->bad_worker == 0);
        for (int k = 0; k < 1000; k++) CHECK(t, visits->times[k] == 1);
        visits_free(visits);
    }
}

static void regions_within(void *argument, int64_t index, int worker)
{
    (void)index;
    (void)worker;
    bsmi_parallel_for(4, 10, visit, argument);
}

/* One region for the outer tasks, with as many threads as they may use; tasks of tasks open no more, and one thread
 * none. */
static void regions_are_opened_once(struct test *t)
{
    struct visits *visits = visits_new(1);
    bsm_set_parallel(on_new_threads);
    regions = 0;
    bsmi_parallel_for(3, 20, regions_within, visits);
    CHECK(t, regions == 1 && asked_for == 3 && visits->total == 200);
    bsmi_parallel_for(1, 20, visit, visits);
    CHECK(t, regions == 1 && visits->total == 220);
    bsm_set_parallel(NULL);
    bsmi_parallel_for(3, 20, visit, visits);
    CHECK(t, regions == 1 && visits->total == 240);
    visits_free(visits);
}

static void default_number_of_threads(struct test *t)
{
    static const struct {
        const char *wanted;
        int threads;
    } wishes[] = { { "5", 5 }, { "5000", 1024 }, { "3,2", 3 }, { " 7 ", 7 }, { "1", 1 } };
    static const char *const nonsense[] = { "", "0", "-3", "four", "4x", "99999999999999999999x" };
    const char *given = getenv("OMP_NUM_THREADS");
    char *kept = given != NULL ? strdup(given) : NULL;
    unsetenv("OMP_NUM_THREADS");
    const int of_the_machine = bsmi_default_threads();
    CHECK(t, of_the_machine >= 1 && of_the_machine <= 1024);
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        setenv("OMP_NUM_THREADS", wishes[i].wanted, 1);
        CHECK(t, bsmi_default_threads() == wishes[i].threads);
    }
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        setenv("OMP_NUM_THREADS", nonsense[i], 1);
        CHECK(t, bsmi_default_threads() == of_the_machine);
    }
    if (kept != NULL) setenv("OMP_NUM_THREADS", kept, 1);
    else unsetenv("OMP_NUM_THREADS");
    free(kept);
}

/* What waiting costs ----------------------------------------------------------------------------------------------- */

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void compute(void *argument, int64_t index, int worker)
{
    volatile double sum = 0;
    (void)index, (void)worker;
    for (int i = 0; i < *(const int *)argument; i++) sum = sum + 1;
}

static double seconds_of_calls(int threads, int calls, int additions)
{
    const double before = processor_seconds();
    for (int i = 0; i < calls; i++) bsmi_parallel_for(threads, 8, compute, &additions);
    return processor_seconds() - before;
}

/* With two other programs to a processor, work on two threads costs little more processor time than on one: who waits
 * for a thread that has no processor sleeps. */
static void other_programs_cost_little(struct test *t)
{
    enum { MOST_PROGRAMS = 64, CALLS = 30, ADDITIONS = 200000 };
    pid_t programs[MOST_PROGRAMS];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int count = 0;
    if (processors > MOST_PROGRAMS / 2) { test_skip(t, "too many processors to keep busy"); return; }
    bsmi_parallel_for(2, 8, compute, &(int){ 0 });
    for (; count < 2 * processors; count++)
        if ((programs[count] = fork()) == 0) {
            alarm(60);
            for (volatile unsigned i = 0;; i++) { }
        }
    const double alone = seconds_of_calls(1, CALLS, ADDITIONS), together = seconds_of_calls(2, CALLS, ADDITIONS);
    for (int i = 0; i < count; i++)
        CHECK(t, programs[i] > 0 && kill(programs[i], SIGKILL) == 0 && waitpid(programs[i], NULL, 0) == programs[i]);
    if (together > 2 * alone)
        FAIL(t, "%.1f ms of the processor on one thread, %.1f ms on two", 1e3 * alone, 1e3 * together);
}

static double seconds_while_asleep(void)
{
    const struct timespec pause = { .tv_nsec = 100000000 };
    const double before = processor_seconds();
    nanosleep(&pause, NULL);
    return processor_seconds() - before;
}

/* Threads that wait, and far more of them than processors, in calls that are over before most begin. */
static void idle_threads_cost_little(struct test *t)
{
    seconds_of_calls(2, 20, 10000);
    const double one = seconds_while_asleep();
    bsmi_parallel_for(40, 40, compute, &(int){ 1000 });
    const double used = seconds_of_calls(40, 200, 10), many = seconds_while_asleep();
    if (one > 0.01 || many > 0.01)
        FAIL(t, "%.1f and %.1f ms of the processor while nothing is done for 100 ms", 1e3 * one, 1e3 * many);
    if (used > 2) FAIL(t, "%.1f s of the processor for 200 calls that do nothing", used);
}

/* Floating-point mode ---------------------------------------------------------------------------------------------- */

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
    volatile const float up = one + half_place, down = -one - half_place, halved = smallest_normal * half,
                         kept = smallest * one;
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

/* Of the threads of the pool, too, as work before may have left it. */
static void spoil_mode_of_pool(void *argument, int number)
{
    (void)number;
    spoil_mode(*(const int *)argument);
    usleep(200);                                                          /* so that others come to it */
}

static void tasks_run_in_the_default_mode(struct test *t)
{
    static const int roundings[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    fenv_t before;
    fegetenv(&before);
    for (int i = 0; i < 4; i++)
        for (int threads = 1; threads <= 4; threads++) {
            _Atomic int64_t wrong = 0;
            int rounding_of_pool = roundings[i];
            bsmi_pool_run(3, spoil_mode_of_pool, &rounding_of_pool);
            spoil_mode(roundings[i]);
            const unsigned mine = control();
            bsmi_parallel_for(threads, 64, look_at_mode, &wrong);
            const unsigned after = control();
            const int rounding = fegetround();
            fesetenv(&before);
            CHECK(t, wrong == 0);
            CHECK(t, after == mine && rounding == roundings[i]);
        }
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

/* Fork ------------------------------------------------------------------------------------------------------------- */

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

/* First in the table: nothing has called the library yet. */
static void fork_before_the_first_call(struct test *t) { CHECK(t, visit_in_child() == 0); }

static void fork_after_use(struct test *t)
{
    struct visits *visits = visits_new(4);
    bsmi_parallel_for(4, 1000, visit, visits);
    CHECK(t, visit_in_child() == 0);
    bsmi_parallel_for(4, 1000, visit, visits);                        /* the parent goes on */
    CHECK(t, visits->total == 2000);
    visits_free(visits);
}

static void *visit_until_told(void *argument)
{
    struct visits *visits = visits_new(3);
    while (!*(_Atomic bool *)argument) bsmi_parallel_for(3, 50, visit, visits);
    visits_free(visits);
    return NULL;
}

/* While others are at work, and hold whatever they hold. */
static void fork_during_use(struct test *t)
{
    enum { CALLERS = 3 };
    _Atomic bool enough = false;
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, visit_until_told, &enough) == 0);
    for (int i = 0; i < 50; i++) CHECK(t, visit_in_child() == 0);
    enough = true;
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
}

/* Signals are for the program's threads: a handler never runs on one of the pool. */
static _Atomic int wrong_thread;
static pthread_t main_thread;
static void note_thread(int signal)
{
    (void)signal;
    if (!pthread_equal(pthread_self(), main_thread)) wrong_thread++;
}

static void signal_process(void *argument, int64_t index, int worker)
{
    (void)argument, (void)worker;
    if (index % 10 == 0) kill(getpid(), SIGUSR1);
    usleep(100);
}

static void signals_are_left_alone(struct test *t)
{
    struct sigaction action = { .sa_handler = note_thread }, before;
    main_thread = pthread_self();
    CHECK_OR_RETURN(t, sigaction(SIGUSR1, &action, &before) == 0);
    bsmi_parallel_for(4, 200, signal_process, NULL);
    CHECK(t, sigaction(SIGUSR1, &before, NULL) == 0 && wrong_thread == 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(fork_before_the_first_call),
        TEST(covers_each_index_once),
        TEST(waits_for_every_task),
        TEST(several_callers_at_once),
        TEST(uses_the_threads_it_is_given),
        TEST(every_caller_has_its_threads),
        TEST(tasks_of_tasks),
        TEST(threads_of_somebody_else),
        TEST(regions_are_opened_once),
        TEST(default_number_of_threads),
        TEST(other_programs_cost_little),
        TEST(spoiled_mode_is_seen),
        TEST(tasks_run_in_the_default_mode),
        TEST(fork_after_use),
        TEST(fork_during_use),
        TEST(signals_are_left_alone),
        TEST(idle_threads_cost_little),
    };
    return TEST_MAIN(argc, argv, cases);
}
