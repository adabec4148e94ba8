/* What keeps a context of an AMD GPU from being made, in sentences; and the CPU in its place. */
#include "blockscale.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static bool says(const char *words) { return strstr(bsm_last_error(), words) != NULL; }

/* A file that is not there, and one that is no libamdhip64: libc. */
static void no_runtime(struct test *t)
{
    static const struct { const char *path, *words; } cases[] = {
        { "/nowhere/libamdhip64.so", "named by BLOCKSCALE_LIBHIP" }, { "libc.so.6", "libc.so.6 lacks hip" },
    };
    const bsm_context_options hip = { .struct_size = sizeof hip, .backend = BSM_BACKEND_HIP },
                              either = { .struct_size = sizeof either, .backend = BSM_BACKEND_HIP_OR_CPU };
    bsm_context *context = NULL;
    int count = 0;
    if (bsm_backend_missing(BSM_BACKEND_HIP)[0] != '\0') {
        CHECK(t, bsm_context_create(&hip, &context) == BSM_EDEVICE && context == NULL && says("not built: "));
        test_skip(t, bsm_backend_missing(BSM_BACKEND_HIP));
        return;
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("BLOCKSCALE_LIBHIP", cases[i].path, 1);
        CHECK(t, bsm_context_create(&hip, &context) == BSM_EDEVICE && context == NULL && says(cases[i].words));
        CHECK(t, bsm_device_count(BSM_BACKEND_HIP, &count) == BSM_EDEVICE && count == 0 && says(cases[i].words));
        CHECK(t, bsm_context_create(&either, &context) == BSM_OK && bsm_context_backend(context) == BSM_BACKEND_CPU);
        bsm_context_destroy(context);
    }
}

static void options(struct test *t)
{
    bsm_context_options negative = { .struct_size = sizeof negative, .backend = BSM_BACKEND_HIP, .device = -1 };
    bsm_context *context = NULL;
    CHECK(t, bsm_context_create(&negative, &context) == BSM_EINVAL && says("options->device=-1"));
    CHECK(t, strcmp(bsm_backend_name(BSM_BACKEND_HIP), "hip") == 0);
    CHECK(t, bsm_backend_from_name("hip_or_cpu") == BSM_BACKEND_HIP_OR_CPU);
}

/* On the simulator (TEST_LIBHIP): one device, and products of a GPU's context find a number that is none refused. */
static void devices(struct test *t)
{
    const char *library = getenv("TEST_LIBHIP");
    bsm_context_options hip = { .struct_size = sizeof hip, .backend = BSM_BACKEND_HIP };
    bsm_device_info info = { .struct_size = sizeof info };
    bsm_context *context = NULL;
    int count = 0;
    if (library == NULL || bsm_backend_missing(BSM_BACKEND_HIP)[0] != '\0') {
        test_skip(t, library == NULL ? "no gfxsim" : bsm_backend_missing(BSM_BACKEND_HIP));
        return;
    }
    setenv("BLOCKSCALE_LIBHIP", library, 1);
    CHECK(t, bsm_device_count(BSM_BACKEND_HIP, &count) == BSM_OK && count == 1);
    CHECK(t, bsm_device_describe(BSM_BACKEND_HIP, 0, &info) == BSM_OK && info.major == 9 && info.minor == 5);
    CHECK(t, bsm_device_describe(BSM_BACKEND_HIP, 1, &info) == BSM_EDEVICE && says("device=1"));
    hip.device = 1;
    CHECK(t, bsm_context_create(&hip, &context) == BSM_EDEVICE && says("device=1: the HIP runtime finds 1 GPU"));
    hip.device = 0;
    CHECK(t, bsm_context_create(&hip, &context) == BSM_OK && bsm_context_backend(context) == BSM_BACKEND_HIP);
    bsm_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(no_runtime), TEST(options), TEST(devices) };
    return TEST_MAIN(argc, argv, cases);
}
