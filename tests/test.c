/* The test harness, see test.h. */
#include "test.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FAILURES_SHOWN = 10 };

void test_fail(struct test *t, const char *file, int line, const char *format, ...)
{
    if (t->failures++ >= FAILURES_SHOWN) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "  %s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    if (getenv("BLOCKSCALE_TEST_STOP") != NULL) exit(1);      /* for tests of the tests, which want to know nothing more */
}

void test_skip(struct test *t, const char *reason)
{
    t->skipped = true;
    fprintf(stderr, "  %s: skipped: %s\n", t->name, reason);
}

uint64_t rnd(struct test *t)
{
    uint64_t z = t->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t rnd_below(struct test *t, int64_t bound) { return (int64_t)(rnd(t) % (uint64_t)bound); }
int64_t rnd_between(struct test *t, int64_t low, int64_t high) { return low + rnd_below(t, high - low + 1); }

double rnd_normal(struct test *t)
{
    const double u = ((double)(rnd(t) >> 11) + 0.5) * 0x1p-53, v = (double)(rnd(t) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* A guarded block remembers its mapping in a small table; tests make them in several threads. */
static pthread_mutex_t guarded_lock = PTHREAD_MUTEX_INITIALIZER;
enum { MAX_GUARDED = 256 };
static struct { void *memory, *mapping; size_t length; } guarded[MAX_GUARDED];

static void *map_guarded(size_t bytes, size_t alignment, int fill, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page + page;
    unsigned char *mapping = mmap(NULL, room + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_lock(&guarded_lock);
    int slot = 0;
    while (slot < MAX_GUARDED && guarded[slot].memory != NULL) slot++;
    if (mapping == MAP_FAILED || slot == MAX_GUARDED) {
        fprintf(stderr, "no guarded memory of %zu bytes\n", bytes);
        exit(1);
    }
    memset(mapping, fill, room + 2 * page);
    mprotect(mapping, page, PROT_NONE);
    mprotect(mapping + page + room, page, PROT_NONE);
    /* At the end the block is moved down to its alignment: fewer than `alignment` bytes then lie before the guard. */
    unsigned char *memory = at_end ? mapping + page + (room - bytes) / alignment * alignment : mapping + page;
    guarded[slot].memory = memory, guarded[slot].mapping = mapping, guarded[slot].length = room + 2 * page;
    pthread_mutex_unlock(&guarded_lock);
    return memory;
}

void *guarded_at_end(size_t bytes, size_t alignment, int fill) { return map_guarded(bytes, alignment, fill, true); }
void *guarded_at_start(size_t bytes, int fill) { return map_guarded(bytes, 1, fill, false); }

void guarded_free(void *memory)
{
    pthread_mutex_lock(&guarded_lock);
    for (int slot = 0; slot < MAX_GUARDED; slot++)
        if (guarded[slot].memory == memory && memory != NULL) {
            munmap(guarded[slot].mapping, guarded[slot].length);
            guarded[slot].memory = NULL;
            break;
        }
    pthread_mutex_unlock(&guarded_lock);
}

int test_main(int argc, char **argv, const struct test_case *cases, int count)
{
    uint64_t seed = 1;
    const char *only = NULL, *program = strrchr(argv[0], '/') != NULL ? strrchr(argv[0], '/') + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            for (int j = 0; j < count; j++) printf("%s\n", cases[j].name);
            return 0;
        }
        if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) only = argv[++i];
        else {
            fprintf(stderr, "%s: %s: options are --list, --seed N, --only NAME\n", program, argv[i]);
            return 2;
        }
    }
    setenv("CUDASIM_REPORTS", "stop", 0); /* for cudasim: what it reports ends a kernel, of every rule */
    int passed = 0, failed = 0, skipped = 0;
    for (int j = 0; j < count; j++) {
        if (only != NULL && strcmp(only, cases[j].name) != 0) continue;
        struct test t = { .name = cases[j].name, .seed = seed, .state = seed };
        cases[j].run(&t);
        if (t.failures > 0) {
            failed++;
            fprintf(stderr, "FAILED %s (%d checks); again: %s --only %s --seed %" PRIu64 "\n", t.name, t.failures, argv[0], t.name, seed);
        } else if (t.skipped) {
            skipped++;
        } else {
            passed++;
        }
    }
    printf("%s: %d passed, %d failed, %d skipped\n", program, passed, failed, skipped);
    return failed > 0 || passed + skipped == 0;
}
