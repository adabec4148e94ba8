/* The driver's numbers against the toolkit's own header, where there is one. */
#include "test.h"

#include "driver/core/numbers.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

static void status_codes_are_cudas(struct test *t)
{
#define X(name, value, text) \
    if (CUDA_##name != (value)) FAIL(t, "CUDA_" #name " is %d, not %d", (int)CUDA_##name, value);
    CU_RESULTS(X)
#undef X
}

static void device_attributes_are_cudas(struct test *t)
{
#define X(name, value) \
    if (CU_DEVICE_ATTRIBUTE_##name != (value)) FAIL(t, #name " is %d, not %d", (int)CU_DEVICE_ATTRIBUTE_##name, value);
    CU_DEVICE_ATTRIBUTES(X)
#undef X
}

static void launch_attributes_are_cudas(struct test *t)
{
#define X(name, value) \
    if (CU_LAUNCH_ATTRIBUTE_##name != (value)) FAIL(t, #name " is %d, not %d", (int)CU_LAUNCH_ATTRIBUTE_##name, value);
    CU_LAUNCH_ATTRIBUTES(X)
#undef X
}

static void structs_have_cudas_sizes(struct test *t)
{
#define X(type, bytes) if (sizeof(type) != (bytes)) FAIL(t, #type " has %zu bytes, not %d", sizeof(type), bytes);
    CU_SIZES(X)
#undef X
}
#else
static void status_codes_are_cudas(struct test *t) { test_skip(t, "no cuda.h"); }
static void device_attributes_are_cudas(struct test *t) { test_skip(t, "no cuda.h"); }
static void launch_attributes_are_cudas(struct test *t) { test_skip(t, "no cuda.h"); }
static void structs_have_cudas_sizes(struct test *t) { test_skip(t, "no cuda.h"); }
#endif

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(status_codes_are_cudas), TEST(device_attributes_are_cudas),
                                              TEST(launch_attributes_are_cudas), TEST(structs_have_cudas_sizes) };
    return TEST_MAIN(argc, argv, cases);
}
