/* Every call of libamdhip64 fails once: the status says so, the sentence names the call, and what was had is given
 * back.  On a library whose calls fail on demand (failing_libamdhip64.c). */
#include "blockscale.h"
#include "failing_libamdhip64.h"
#include "test.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { M = 8, N = 40, K = 64, MOST_CALLS = 2000 };

static struct failing *failing;

static bool find_library(struct test *t)
{
    const char *path = getenv("BLOCKSCALE_LIBHIP");
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    struct failing *(*state)(void) = NULL;
    if (library != NULL) *(void **)&state = dlsym(library, "failing_state");
    if (state == NULL || bsm_backend_missing(BSM_BACKEND_HIP)[0] != '\0') {
        test_skip(t, state == NULL ? "BLOCKSCALE_LIBHIP does not name the library whose calls fail on demand"
                                   : bsm_backend_missing(BSM_BACKEND_HIP));
        return false;
    }
    failing = state();
    return true;
}

/* Products by codes and by rows of bf16, prepacked weights, quantizing.  The first status that is not OK. */
static bsm_status use(bsm_context *gpu, char *at)
{
    bsm_matrix a = { .struct_size = sizeof a, .format = BSM_MXFP4, .rows = M, .columns = K, .data = at,
                     .scales = at + 2048 },
               b = a, d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N,
                            .data = at + 12288 };
    bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &d, .amax = (float *)(void *)(at + 10240) };
    const bsm_real_matrix source = { .struct_size = sizeof source, .rows = M, .columns = K, .type = BSM_REAL_FP32,
                                     .data = at + 16384, .row_stride = K, .column_stride = 1 };
    bsm_plan *plan = NULL;
    b.rows = N, b.data = at + 4096, b.scales = at + 8192;
    bsm_status status = bsm_quantize(gpu, &source, NULL, &a, NULL);
    if (status == BSM_OK) status = bsm_multiply(gpu, &call);
    if (status == BSM_OK) status = bsm_plan_create(gpu, &call, &plan);
    if (status == BSM_OK) status = bsm_plan_pack_b(plan, &call, at + 32768, 16384);
    call.b_panels = at + 32768;
    if (status == BSM_OK) status = bsm_plan_run(plan, &call, at + 65536, 32768);
    bsm_plan_destroy(plan);
    call.b_panels = NULL, a.format = BSM_FORMAT_BF16, a.scales = NULL;
    if (status == BSM_OK) status = bsm_multiply(gpu, &call);
    return status == BSM_OK ? bsm_context_synchronize(gpu) : status;
}

static bsm_status use_gpu(void)
{
    static const unsigned char zeros[131072];
    const bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_HIP };
    bsm_device_info info = { .struct_size = sizeof info };
    bsm_context *gpu = NULL;
    void *memory = NULL;
    bsm_status status = bsm_device_describe(BSM_BACKEND_HIP, 0, &info);
    if (status == BSM_OK) status = bsm_context_create(&options, &gpu);
    if (status != BSM_OK) return status;
    status = bsm_device_allocate(gpu, sizeof zeros, &memory);
    if (status == BSM_OK) status = bsm_device_write(gpu, memory, zeros, sizeof zeros);
    if (status == BSM_OK) status = use(gpu, memory);
    float first = 7;
    if (status == BSM_OK) status = bsm_device_read(gpu, &first, (char *)memory + 12288, sizeof first);
    const bsm_status released = memory == NULL ? BSM_OK : bsm_device_release(gpu, memory);
    bsm_context_destroy(gpu);
    return status != BSM_OK ? status : released;
}

/* Calls that only give something back when a context is destroyed: what fails in them is told to nobody. */
static bool may_fail_silently(const char *call)
{
    static const char *const all[] = { "hipModuleUnload", "hipEventDestroy", "hipFree", "hipGetDevice",
                                       "hipSetDevice" };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i], call) == 0) return true;
    return false;
}

/* One use with call number n failing; false when there are not so many. */
static bool fail_call(struct test *t, long n)
{
    failing->calls = 0, failing->fail_at = n, failing->live = 0, failing->current = 1, failing->leaving = 0,
    failing->failed[0] = '\0';
    const bsm_status status = use_gpu();
    failing->fail_at = 0;
    if (failing->failed[0] == '\0') return false;
    if (status == BSM_OK ? !may_fail_silently(failing->failed) : strstr(bsm_last_error(), failing->failed) == NULL)
        FAIL(t, "call %ld, %s, failed: status %d, \"%s\"", n, failing->failed, (int)status, bsm_last_error());
    const bool of_device = strcmp(failing->failed, "hipGetDevice") == 0 || strcmp(failing->failed, "hipSetDevice") == 0;
    /* A GPU that cannot be made current keeps what was to be given back. */
    if (failing->live != 0 && (!of_device || failing->leaving))
        FAIL(t, "call %ld, %s, failed: %ld things were not given back", n, failing->failed, failing->live);
    if (failing->current != 1 && !failing->leaving)
        FAIL(t, "call %ld, %s, failed: GPU %d stayed the current one", n, failing->failed, failing->current);
    return true;
}

static void works(struct test *t)
{
    failing->live = 0;
    if (use_gpu() != BSM_OK) FAIL(t, "afterwards: %s", bsm_last_error());
    CHECK(t, failing->live == 0);
}

static void every_call_of_a_first_context_fails_once(struct test *t)
{
    if (!find_library(t)) return;
    long failures = 0;
    for (long n = 1; n < MOST_CALLS && fail_call(t, n); n += n < 12 ? 1 : 11) failures++;
    CHECK(t, failures > 20);
    works(t);
}

/* While another context keeps the kernels loaded. */
static void every_call_of_a_further_context_fails_once(struct test *t)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_HIP };
    bsm_context *keeper = NULL;
    if (!find_library(t)) return;
    CHECK_OR_RETURN(t, bsm_context_create(&options, &keeper) == BSM_OK);
    long failures = 0;
    for (long n = 1; n < MOST_CALLS && fail_call(t, n); n++) failures++;
    CHECK(t, failures > 60);
    works(t);
    bsm_context_destroy(keeper);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_call_of_a_first_context_fails_once),
                                              TEST(every_call_of_a_further_context_fails_once) };
    return TEST_MAIN(argc, argv, cases);
}
