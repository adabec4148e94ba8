/* Every n-th call of the driver fails once: the library says so, keeps nothing, and works again afterwards. */
#include "blockscale.h"
#include "shim.h"
#include "test.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { M = 6, N = 10, K = 64, MOST_CALLS = 2000 };

static struct shim *shim;

static bool find_shim(struct test *t)
{
    const char *path = getenv("BLOCKSCALE_LIBCUDA");
    if (bsm_backend_missing(BSM_BACKEND_CUDA)[0] != '\0') {
        test_skip(t, bsm_backend_missing(BSM_BACKEND_CUDA));
        return false;
    }
    void *library = path != NULL ? dlopen(path, RTLD_NOW) : NULL;
    struct shim *(*state)(void) = NULL;
    if (library != NULL) *(void **)&state = dlsym(library, "shim_state");
    if (state == NULL) {
        test_skip(t, "BLOCKSCALE_LIBCUDA does not name the library whose calls fail on demand");
        return false;
    }
    shim = state();
    return true;
}

/* The first status that is not OK; D's first number if all went well. */
static bsm_status multiply_once(bsm_context *gpu, float *first)
{
    static const unsigned char ones[K * N];                      /* e2m1 code 0: zeros; scales 2^-127 */
    bsm_matrix a = { .struct_size = sizeof a, .format = BSM_MXFP4, .rows = M, .columns = K }, b = a;
    bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = M, .columns = N };
    b.rows = N;
    bsm_matmul call = { .struct_size = sizeof call, .a = &a, .b = &b, .d = &d };
    void *memory = NULL;
    bsm_plan *plan = NULL;
    bsm_status status = bsm_device_allocate(gpu, 1 << 16, &memory);
    if (status != BSM_OK) return status;
    char *at = memory;
    a.data = at, a.scales = at + 2048, b.data = at + 4096, b.scales = at + 6144, d.data = at + 8192;
    status = bsm_device_write(gpu, a.data, ones, sizeof ones);
    if (status == BSM_OK) status = bsm_device_write(gpu, b.data, ones, sizeof ones);
    if (status == BSM_OK) status = bsm_profile_begin(gpu);
    if (status == BSM_OK) status = bsm_multiply(gpu, &call);
    int kernels;
    if (status == BSM_OK) status = bsm_profile_end(gpu, NULL, 0, &kernels);
    if (status == BSM_OK) status = bsm_plan_create(gpu, &call, &plan);
    if (status == BSM_OK && bsm_plan_workspace_bytes(plan) > 32768) status = BSM_EINVAL;
    if (status == BSM_OK) status = bsm_plan_run(plan, &call, at + 16384, 32768);
    if (status == BSM_OK) status = bsm_context_synchronize(gpu);
    if (status == BSM_OK) status = bsm_device_read(gpu, first, d.data, sizeof *first);
    bsm_plan_destroy(plan);
    const bsm_status released = bsm_device_release(gpu, memory);
    return status != BSM_OK ? status : released;
}

static bsm_status use_gpu(float *first)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_CUDA };
    bsm_context *gpu = NULL;
    bsm_status status = bsm_context_create(&options, &gpu);
    if (status == BSM_OK) status = multiply_once(gpu, first);
    bsm_context_destroy(gpu);
    return status;
}

/* Calls that only give something back: what fails in them is told to nobody when a context is destroyed. */
static bool may_fail_silently(const char *call)
{
    return strcmp(call, "cuModuleUnload") == 0 || strcmp(call, "cuEventDestroy") == 0
           || strcmp(call, "cuDevicePrimaryCtxRelease") == 0 || strcmp(call, "cuMemFree") == 0
           || strcmp(call, "cuCtxPopCurrent") == 0 || strcmp(call, "cuCtxPushCurrent") == 0;
}

/* One use with call number n failing; false when there are not so many calls. */
static bool fail_call(struct test *t, long n, long live)
{
    float first = 7;
    shim->calls = 0, shim->fail_at = n, shim->live = 0, shim->failed[0] = '\0';
    const bsm_status status = use_gpu(&first);
    shim->fail_at = 0;
    if (shim->failed[0] == '\0') return false;
    if (status == BSM_OK ? !may_fail_silently(shim->failed) : strstr(bsm_last_error(), shim->failed) == NULL)
        FAIL(t, "call %ld, %s, failed: status %d, sentence \"%s\"", n, shim->failed, (int)status, bsm_last_error());
    /* A context that cannot be made current keeps its modules. */
    if (shim->live != live && strcmp(shim->failed, "cuCtxPushCurrent") != 0)
        FAIL(t, "call %ld, %s, failed: %ld things were not given back", n, shim->failed, shim->live - live);
    return true;
}

static void works(struct test *t)
{
    float first = 7;
    if (use_gpu(&first) != BSM_OK || first != 0) FAIL(t, "afterwards: %s", bsm_last_error());
}

/* From nothing loaded to nothing loaded.  Simulated, where loading takes seconds, the first calls and then each
 * 29th. */
static void every_call_of_a_first_context_fails_once(struct test *t)
{
    if (!find_shim(t)) return;
    long failures = 0;
    const long step = getenv("SHIM_LIBCUDA") != NULL ? 29 : 1;
    for (long n = 1; n < MOST_CALLS && fail_call(t, n, 0); n += n < 12 ? 1 : step) failures++;
    CHECK(t, failures > 15);
    works(t);
}

/* The same while another context keeps the kernels loaded: every call. */
static void every_call_of_a_further_context_fails_once(struct test *t)
{
    const bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_CUDA };
    bsm_context *keeper = NULL;
    if (!find_shim(t)) return;
    CHECK_OR_RETURN(t, bsm_context_create(&options, &keeper) == BSM_OK);
    long failures = 0;
    for (long n = 1; n < MOST_CALLS && fail_call(t, n, 0); n++) failures++;
    CHECK(t, failures > 30);
    works(t);
    bsm_context_destroy(keeper);
}

/* The context that falls back does so where the GPU fails, and the one that was told to use it does not. */
static void falls_back_only_by_name(struct test *t)
{
    bsm_context_options options = { .struct_size = sizeof options, .backend = BSM_BACKEND_CUDA_OR_CPU };
    bsm_context *context = NULL;
    if (!find_shim(t)) return;
    CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK
                           && bsm_context_backend(context) == BSM_BACKEND_CUDA);
    bsm_context_destroy(context);
    options.device = 9;
    CHECK_OR_RETURN(t, bsm_context_create(&options, &context) == BSM_OK
                           && bsm_context_backend(context) == BSM_BACKEND_CPU);
    bsm_context_destroy(context);
    options.backend = BSM_BACKEND_CUDA;
    CHECK(t, bsm_context_create(&options, &context) == BSM_EDEVICE && context == NULL);
    CHECK(t, strstr(bsm_last_error(), "device=9") != NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_call_of_a_first_context_fails_once),
                                              TEST(every_call_of_a_further_context_fails_once),
                                              TEST(falls_back_only_by_name) };
    return TEST_MAIN(argc, argv, cases);
}
