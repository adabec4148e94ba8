/* Contexts: options, threads, CPU features, memory that fails, and the cached workspace. */
#include "core/core.h"
#include "counted.h"
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Sets (or, with NULL, unsets) BLOCKSCALE_CPU and creates a context. */
static bsm_status create_with_cpu(const char *list, uint32_t mask, bool portable_only, bsm_context **context)
{
    if (list != NULL) setenv("BLOCKSCALE_CPU", list, 1);
    else unsetenv("BLOCKSCALE_CPU");
    const bsm_context_options options = { .struct_size = sizeof options, .cpu_mask = mask,
                                          .portable_only = portable_only };
    const bsm_status status = bsm_context_create(&options, context);
    unsetenv("BLOCKSCALE_CPU");
    return status;
}

/* Features of a context made that way; ~0 if none was made. */
static uint32_t features_with(const char *list, uint32_t mask, bool portable_only)
{
    bsm_context *context;
    if (create_with_cpu(list, mask, portable_only, &context) != BSM_OK) return ~(uint32_t)0;
    const uint32_t features = bsm_context_cpu_features(context);
    bsm_context_destroy(context);
    return features;
}

static void defaults(struct test *t)
{
    bsm_context *context = NULL;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    CHECK(t, context != NULL);
    CHECK(t, bsm_context_threads(context) == bsmi_default_threads());
    CHECK(t, bsm_context_threads(context) >= 1 && bsm_context_threads(context) <= 1024);
    CHECK(t, bsm_context_cpu_features(context) == bsmi_cpu_detect(BSM_CPU_ALL));
    CHECK(t, context->forced_kernel == -1);
    bsm_context_destroy(context);
}

static void null_arguments(struct test *t)
{
    CHECK(t, bsm_context_create(NULL, NULL) == BSM_EINVAL);
    bsm_context_destroy(NULL);
    CHECK(t, bsm_context_threads(NULL) == 0 && bsm_context_cpu_features(NULL) == 0);
    CHECK(t, bsm_context_set_threads(NULL, 1) == BSM_EINVAL);
}

static void thread_counts(struct test *t)
{
    static const int good[] = { 1, 2, 1023, 1024 }, bad[] = { -1, 1025, INT32_MAX, INT32_MIN };
    bsm_context *context;
    for (int i = 0; i < 4; i++) {
        bsm_context_options options = { .struct_size = sizeof options, .threads = good[i] };
        CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK);
        CHECK(t, bsm_context_threads(context) == good[i]);
        CHECK(t, bsm_context_set_threads(context, bad[i]) == BSM_EINVAL);
        CHECK(t, bsm_context_threads(context) == good[i]);       /* a refused number changes nothing */
        CHECK(t, bsm_context_set_threads(context, 3) == BSM_OK && bsm_context_threads(context) == 3);
        CHECK(t,
              bsm_context_set_threads(context, 0) == BSM_OK && bsm_context_threads(context) == bsmi_default_threads());
        bsm_context_destroy(context);
        options.threads = bad[i];
        context = (bsm_context *)t;
        CHECK(t, bsm_context_create(&options, &context) == BSM_EINVAL && context == NULL);
        CHECK(t, strstr(bsm_last_error(), "options->threads=") != NULL);
    }
}

static void options_of_other_versions(struct test *t)
{
    bsm_context *context;
    struct { bsm_context_options known; int64_t later; } longer = { { .struct_size = sizeof longer, .threads = 5 }, 0 };
    CHECK_OR_RETURN(t, bsm_context_create(&longer.known, &context) == BSM_OK);
    CHECK(t, bsm_context_threads(context) == 5);
    bsm_context_destroy(context);
    longer.later = 1;
    CHECK(t, bsm_context_create(&longer.known, &context) == BSM_EINVAL && context == NULL);
    /* A version that knew only the number of threads: what lies behind it in memory is not read. */
    bsm_context_options shorter = { .struct_size = offsetof(bsm_context_options, cpu_mask), .threads = 6,
                                    .portable_only = true,
                                    .allocator = (const bsm_allocator *)16 };
    CHECK_OR_RETURN(t, bsm_context_create(&shorter, &context) == BSM_OK);
    CHECK(t, bsm_context_threads(context) == 6 && bsm_context_cpu_features(context) == bsmi_cpu_detect(BSM_CPU_ALL));
    bsm_context_destroy(context);
}

static void cpu_masks_only_take_away(struct test *t)
{
    const uint32_t all = bsmi_cpu_detect(BSM_CPU_ALL), known = (BSM_CPU_BF16 << 1) - 1;
    static const struct { const char *list; uint32_t allowed; } lists[] = {
        { NULL, BSM_CPU_ALL }, { "none", 0 }, { "fma", BSM_CPU_FMA }, { "avx2", BSM_CPU_AVX2 | BSM_CPU_FMA },
        { "avx2,fma", BSM_CPU_AVX2 | BSM_CPU_FMA }, { "fma,avx2,", BSM_CPU_AVX2 | BSM_CPU_FMA },
          { "none,fma", BSM_CPU_FMA },
        { "avx512", BSM_CPU_AVX512 | BSM_CPU_AVX2 | BSM_CPU_FMA },
        { "avx512_vnni", BSM_CPU_AVX512_VNNI | BSM_CPU_AVX512 | BSM_CPU_AVX2 | BSM_CPU_FMA },
        { "avx512_bf16",
          BSM_CPU_AVX512_BF16 | BSM_CPU_AVX512_VNNI | BSM_CPU_AVX512 | BSM_CPU_AVX2 | BSM_CPU_FMA },
        { "amx", BSM_CPU_AMX | BSM_CPU_AVX512_VNNI | BSM_CPU_AVX512 | BSM_CPU_AVX2 | BSM_CPU_FMA },
        { "bf16", BSM_CPU_BF16 },
    };
    static const uint32_t masks[] = { 0, BSM_CPU_ALL, BSM_CPU_FMA, BSM_CPU_AVX2, BSM_CPU_ALL - BSM_CPU_AMX, 1u << 30 };
    CHECK(t, (all & ~known) == 0);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (size_t j = 0; j < sizeof masks / sizeof masks[0]; j++) {
            const uint32_t mask = masks[j] == 0 ? (uint32_t)BSM_CPU_ALL : masks[j];
            CHECK(t, features_with(lists[i].list, masks[j], false) == (all & mask & lists[i].allowed));
            CHECK(t, features_with(lists[i].list, masks[j], true) == 0);
        }
}

static void unknown_cpu_features_are_refused(struct test *t)
{
    static const char *const lists[] = { "avx3", "fm", "fmaa", "fma,,avx2", ",", "FMA", "fma;avx2", " fma", "non" };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        bsm_context *context = (bsm_context *)t;
        CHECK(t, create_with_cpu(lists[i], 0, false, &context) == BSM_EINVAL && context == NULL);
        CHECK(t, strncmp(bsm_last_error(), "BLOCKSCALE_CPU=", 15) == 0);
    }
}

static void names_of_cpu_features(struct test *t)
{
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_FMA), "fma") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_AVX2), "avx2") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_AVX512), "avx512") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_AVX512_VNNI), "avx512_vnni") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_DOTPROD), "dotprod") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_I8MM), "i8mm") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_AVX512_BF16), "avx512_bf16") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_AMX), "amx") == 0);
    CHECK(t, strcmp(bsm_cpu_feature_name(BSM_CPU_BF16), "bf16") == 0);
    for (int bit = 9; bit < 32; bit++) CHECK(t, bsm_cpu_feature_name((uint32_t)1 << bit) == NULL);
    CHECK(t, bsm_cpu_feature_name(0) == NULL && bsm_cpu_feature_name(BSM_CPU_FMA | BSM_CPU_AVX2) == NULL);
}

/* The flags of the first processor, each with a space on either side; false where there are none. */
static bool read_flags(char *line, int bytes)
{
    FILE *info = fopen("/proc/cpuinfo", "r");
    bool found = false;
    while (info != NULL && !found && fgets(line, bytes, info) != NULL) found = strncmp(line, "flags", 5) == 0;
    if (info != NULL) fclose(info);
    if (found) line[strcspn(line, "\n")] = ' ';
    return found;
}

static bool has_tiles(const char *flags)
{
    return strstr(flags, " amx_tile ") != NULL && strstr(flags, " amx_bf16 ") != NULL
           && strstr(flags, " amx_int8 ") != NULL && strstr(flags, " avx512vbmi ") != NULL;
}

static void features_are_what_the_cpu_reports(struct test *t)
{
    char line[8192];
    if (!read_flags(line, sizeof line)) { test_skip(t, "no x86 flags in /proc/cpuinfo"); return; }
    CHECK(t, ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_FMA) != 0) == (strstr(line, " fma ") != NULL));
    CHECK(t, ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AVX2) != 0)
                 == (strstr(line, " avx2 ") != NULL && strstr(line, " f16c ") != NULL));
    const bool avx512 = strstr(line, " avx512f ") != NULL && strstr(line, " avx512bw ") != NULL
                        && strstr(line, " avx512dq ") != NULL && strstr(line, " avx512vl ") != NULL;
    CHECK(t, ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AVX512) != 0) == avx512);
    CHECK(t, ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AVX512_VNNI) != 0) == (strstr(line, " avx512_vnni ") != NULL));
    CHECK(t, ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AVX512_BF16) != 0) == (strstr(line, " avx512_bf16 ") != NULL));
    CHECK(t, ((bsmi_cpu_detect(BSM_CPU_ALL) & BSM_CPU_AMX) != 0) == has_tiles(line));
}

/* Tiles that Linux refuses ----------------------------------------------------------------------------------------- */

#define WITH_A_SMALL_SIGNAL_STACK "--with-a-small-signal-stack"

/* In a program of its own, which has not asked yet: says which features a context has, and again once the small stack
 * is gone. */
static int features_with_a_small_signal_stack(void)
{
    static char room[4096];
    const stack_t small = { .ss_sp = room, .ss_size = sizeof room }, none = { .ss_flags = SS_DISABLE };
    if (sigaltstack(&small, NULL) != 0) return perror("sigaltstack"), 1;
    const uint32_t refused = features_with(NULL, 0, false);
    if (sigaltstack(&none, NULL) != 0) return perror("sigaltstack"), 1;
    printf("%x %x\n", refused, features_with(NULL, 0, false));
    return 0;
}

static void refused_tiles_are_an_absent_feature(struct test *t)
{
    char line[8192], program[4096], command[4200];
    if (!read_flags(line, sizeof line) || !has_tiles(line)) { test_skip(t, "no AMX in /proc/cpuinfo"); return; }
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    CHECK_OR_RETURN(t, length > 0);
    program[length] = '\0';
    snprintf(command, sizeof command, "'%s' " WITH_A_SMALL_SIGNAL_STACK, program);
    FILE *child = popen(command, "r");
    unsigned refused = 0, later = 0;
    CHECK_OR_RETURN(t, child != NULL);
    const int read = fscanf(child, "%x %x", &refused, &later);
    CHECK(t, pclose(child) == 0);
    CHECK(t, read == 2 && refused == (bsmi_cpu_detect(BSM_CPU_ALL) & ~(unsigned)BSM_CPU_AMX) && later == refused);
}

/* Memory ----------------------------------------------------------------------------------------------------------- */

static bsm_status create_counted(struct counted *counted, bsm_context **context)
{
    const bsm_allocator allocator = counted_allocator(counted);       /* copied: this one ends here */
    const bsm_context_options options = { .struct_size = sizeof options, .allocator = &allocator };
    return bsm_context_create(&options, context);
}

static void every_failing_allocation(struct test *t)
{
    struct counted counted = { 0 };
    bsm_context *context;
    CHECK_OR_RETURN(t, create_counted(&counted, &context) == BSM_OK);
    const int64_t calls = counted.calls;
    bsm_context_destroy(context);
    CHECK(t, calls > 0 && counted.live == 0 && counted.errors == 0);
    for (int forever = 0; forever < 2; forever++)
        for (int64_t n = 1; n <= calls; n++) {
            struct counted failing = { .fail_at = n, .forever = forever != 0 };
            context = (bsm_context *)t;
            CHECK(t, create_counted(&failing, &context) == BSM_ENOMEM && context == NULL);
            CHECK(t, failing.calls == n && failing.live == 0 && failing.errors == 0);
        }
}

static void half_an_allocator_is_refused(struct test *t)
{
    struct counted counted = { 0 };
    bsm_allocator allocator = counted_allocator(&counted);
    const bsm_context_options options = { .struct_size = sizeof options, .allocator = &allocator };
    bsm_context *context = (bsm_context *)t;
    allocator.release = NULL;
    CHECK(t, bsm_context_create(&options, &context) == BSM_EINVAL && context == NULL);
    CHECK(t, strstr(bsm_last_error(), "allocator->release") != NULL);
    allocator = (bsm_allocator){ NULL, counted_release, &counted };
    CHECK(t, bsm_context_create(&options, &context) == BSM_EINVAL && context == NULL);
    CHECK(t, strstr(bsm_last_error(), "allocator->allocate") != NULL);
    CHECK(t, counted.calls == 0 && counted.errors == 0);
}

static void memory_is_aligned(struct test *t)
{
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
        void *memory = bsmi_allocate(context, bytes);
        CHECK(t, memory != NULL && (uintptr_t)memory % BSMI_ALIGNMENT == 0);
        bsmi_release(context, memory, bytes);
    }
    CHECK(t, bsmi_allocate(context, 0) == NULL);
    bsmi_release(context, NULL, 0);
    bsm_context_destroy(context);
}

static void workspace_grows_and_is_kept(struct test *t)
{
    struct counted counted = { 0 };
    bsm_context *context;
    CHECK_OR_RETURN(t, create_counted(&counted, &context) == BSM_OK);
    const int64_t before = counted.calls;
    void *small = bsmi_workspace_lock(context, 0);                    /* 0 bytes: NULL still means failure only */
    CHECK(t, small != NULL);
    bsmi_workspace_unlock(context);
    unsigned char *large = bsmi_workspace_lock(context, 10000);
    CHECK_OR_RETURN(t, large != NULL && (uintptr_t)large % BSMI_ALIGNMENT == 0);
    memset(large, 1, 10000);
    bsmi_workspace_unlock(context);
    const int64_t grown = counted.calls;
    for (size_t bytes = 0; bytes <= 10000; bytes += 1250) {
        CHECK(t, bsmi_workspace_lock(context, bytes) == large);       /* kept, so a second product allocates nothing */
        bsmi_workspace_unlock(context);
    }
    CHECK(t, counted.calls == grown && grown > before);
    CHECK(t, counted.live_bytes < 20000);                             /* the smaller ones were released */
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
}

/* From 2 MiB on whole huge pages, also where these are refused; written to the last byte. */
static void large_workspaces_are_whole_huge_pages(struct test *t)
{
    enum { HUGE = 2 << 20 };
    static const size_t sizes[] = { HUGE - 1, HUGE, HUGE + 1, 3 * HUGE + 4097 };
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *memory = bsmi_workspace_lock(context, sizes[i]);
        CHECK_OR_RETURN(t, memory != NULL);
        CHECK(t, (uintptr_t)memory % (sizes[i] < HUGE ? BSMI_ALIGNMENT : HUGE) == 0);
        memset(memory, 1, sizes[i]);
        bsmi_workspace_unlock(context);
    }
    CHECK(t, bsmi_workspace_lock(context, SIZE_MAX - 1) == NULL);
    bsm_context_destroy(context);
}

static void workspace_that_fails_is_not_locked(struct test *t)
{
    struct counted counted = { 0 };
    bsm_context *context;
    CHECK_OR_RETURN(t, create_counted(&counted, &context) == BSM_OK);
    CHECK(t, bsmi_workspace_lock(context, 100) != NULL);
    bsmi_workspace_unlock(context);
    counted.fail_at = counted.calls + 1;
    CHECK(t, bsmi_workspace_lock(context, 1000) == NULL);
    void *again = bsmi_workspace_lock(context, 1000);                 /* would hang if it were locked */
    CHECK_OR_RETURN(t, again != NULL);
    memset(again, 1, 1000);
    bsmi_workspace_unlock(context);
    bsm_context_destroy(context);
    CHECK(t, counted.live == 0 && counted.errors == 0);
}

struct turn { bsm_context *context; int64_t *unprotected; };

static void *take_turns(void *argument)
{
    const struct turn *turn = argument;
    for (int i = 0; i < 2000; i++) {
        int64_t *shared = bsmi_workspace_lock(turn->context, sizeof *shared * (size_t)(1 + i % 100));
        if (shared == NULL) return NULL;
        const int64_t seen = *turn->unprotected;
        shared[i % 100] = seen;
        *turn->unprotected = shared[i % 100] + 1;
        bsmi_workspace_unlock(turn->context);
    }
    return NULL;
}

static void threads_take_turns_at_the_workspace(struct test *t)
{
    enum { THREADS = 4 };
    bsm_context *context;
    int64_t counter = 0;
    pthread_t threads[THREADS];
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    struct turn turn = { context, &counter };
    for (int i = 0; i < THREADS; i++) CHECK_OR_RETURN(t, pthread_create(&threads[i], NULL, take_turns, &turn) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK(t, counter == THREADS * 2000);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        TEST(defaults),
        TEST(null_arguments),
        TEST(thread_counts),
        TEST(options_of_other_versions),
        TEST(cpu_masks_only_take_away),
        TEST(unknown_cpu_features_are_refused),
        TEST(names_of_cpu_features),
        TEST(features_are_what_the_cpu_reports),
        TEST(refused_tiles_are_an_absent_feature),
        TEST(every_failing_allocation),
        TEST(half_an_allocator_is_refused),
        TEST(memory_is_aligned),
        TEST(workspace_grows_and_is_kept),
        TEST(large_workspaces_are_whole_huge_pages),
        TEST(workspace_that_fails_is_not_locked),
        TEST(threads_take_turns_at_the_workspace),
    };
    if (argc == 2 && strcmp(argv[1], WITH_A_SMALL_SIGNAL_STACK) == 0) return features_with_a_small_signal_stack();
    return TEST_MAIN(argc, argv, cases);
}
