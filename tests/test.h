/* A small harness: a test program lists its tests in one table and calls test_main.
 *
 *     static void decodes_every_code(struct test *t) { CHECK(t, 1 + 1 == 2); }
 *     int main(int argc, char **argv) { static const struct test_case cases[] = { TEST(decodes_every_code) };
 *                                       return TEST_MAIN(argc, argv, cases); }
 *
 * Options: --seed N (random tests), --only NAME, --list.  Prints one line a test that fails, and last
 * "PROGRAM: N passed, N failed, N skipped".  Exit status 1 if anything failed, or if nothing ran. */
#ifndef BSM_TEST_H
#define BSM_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct test {
    const char *name;
    uint64_t seed;                        /* of this run; printed with every failure */
    uint64_t state;                       /* of rnd */
    int failures;
    bool skipped;
};

typedef void test_function(struct test *t);
struct test_case { const char *name; test_function *run; };

#define TEST(function) { #function, function }
#define TEST_MAIN(argc, argv, cases) test_main(argc, argv, cases, (int)(sizeof(cases) / sizeof((cases)[0])))

int test_main(int argc, char **argv, const struct test_case *cases, int count);

/* Prints "file:line: sentence" (the first 10 of a test) and counts a failure. */
__attribute__((format(printf, 4, 5))) void test_fail(struct test *t, const char *file, int line, const char *format, ...);

/* Marks the test as skipped, with the reason. */
void test_skip(struct test *t, const char *reason);

/* A condition that must hold; the test goes on, so that one run shows all failures.  CHECK_OR_RETURN stops the test. */
#define CHECK(t, condition) ((condition) ? (void)0 : test_fail(t, __FILE__, __LINE__, "%s", #condition))
#define CHECK_OR_RETURN(t, condition) \
    do { if (!(condition)) { test_fail(t, __FILE__, __LINE__, "%s", #condition); return; } } while (0)
#define FAIL(t, ...) test_fail(t, __FILE__, __LINE__, __VA_ARGS__)

/* Repeatable random numbers (splitmix64). */
uint64_t rnd(struct test *t);
int64_t rnd_below(struct test *t, int64_t bound);         /* 0 .. bound-1, bound > 0 */
int64_t rnd_between(struct test *t, int64_t low, int64_t high);
double rnd_normal(struct test *t);                        /* mean 0, variance 1 */

/* `bytes` bytes whose end (or start) is followed (preceded) by a page that faults.  Never NULL: the program stops instead.
 * fill is written everywhere. */
void *guarded_at_end(size_t bytes, size_t alignment, int fill);
void *guarded_at_start(size_t bytes, int fill);
void guarded_free(void *memory);

#endif
