/* The runtime's numbers and layouts against the toolkit's own header, where there is one of CUDA 13. */
#include "test.h"

#include "runtime/core/numbers.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#endif

#if defined(CUDART_VERSION) && CUDART_VERSION >= 13000 && CUDART_VERSION < 14000
typedef struct cudaMemcpy3DParms cudaMemcpy3DParms;
typedef struct cudaPointerAttributes cudaPointerAttributes;
typedef struct cudaMemPoolProps cudaMemPoolProps;
typedef struct cudaFuncAttributes cudaFuncAttributes;
typedef struct cudaKernelNodeParams cudaKernelNodeParams;
typedef struct cudaDeviceProp cudaDeviceProp;

static void error_codes_are_cudas(struct test *t)
{
#define X(name, value) if (cuda##name != (value)) FAIL(t, "cuda" #name " is %d, not %d", (int)cuda##name, value);
    CUDA_ERRORS(X)
#undef X
}

static void structs_have_cudas_layouts(struct test *t)
{
#define X(type, bytes) if (sizeof(type) != (bytes)) FAIL(t, #type " has %zu bytes, not %d", sizeof(type), bytes);
    CUDA_RUNTIME_SIZES(X)
#undef X
#define X(type, field, offset) \
    if (offsetof(type, field) != (offset)) FAIL(t, #field " stands at %zu, not %d", offsetof(type, field), offset);
    CUDA_RUNTIME_OFFSETS(X)
#undef X
}
#else
static void error_codes_are_cudas(struct test *t) { test_skip(t, "no cuda_runtime_api.h of CUDA 13"); }
static void structs_have_cudas_layouts(struct test *t) { test_skip(t, "no cuda_runtime_api.h of CUDA 13"); }
#endif

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(error_codes_are_cudas), TEST(structs_have_cudas_layouts) };
    return TEST_MAIN(argc, argv, cases);
}
