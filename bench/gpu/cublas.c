/* cuBLAS, opened at run time: bf16 products with sums in fp32, see gpu.h. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Numbers of cublas_api.h and library_types.h. */
enum { NO_TRANSPOSE = 0, TRANSPOSE = 1, TYPE_FP32 = 0, TYPE_BF16 = 14, SUMS_FP32 = 68, BEST_ALGORITHM = -1 };
enum { WORKSPACE_BYTES = 64 << 20 };

static void *open_library(char *why, size_t room)
{
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so",
                                         "/usr/local/cuda/lib64/libcublas.so" };
    const char *given = getenv("BENCH_CUBLAS");
    void *library = given != NULL ? dlopen(given, RTLD_NOW) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && given == NULL && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (library == NULL)
        snprintf(why, room, "no %s could be opened (BENCH_CUBLAS may name it)", given != NULL ? given : "libcublas");
    return library;
}

void cublas_open(struct gpu *gpu)
{
    struct cublas *c = &gpu->cublas;
    int (*create)(void **), (*set_stream)(void *, CUstream), (*set_workspace)(void *, void *, size_t),
        (*get_version)(void *, int *), version = 0;
    void *library = open_library(c->why, sizeof c->why), *handle = NULL;
    if (library == NULL) return;
    if (!gpu_symbol(library, "cublasCreate_v2", &create) || !gpu_symbol(library, "cublasSetStream_v2", &set_stream) ||
        !gpu_symbol(library, "cublasSetWorkspace_v2", &set_workspace) ||
        !gpu_symbol(library, "cublasGetVersion_v2", &get_version) || !gpu_symbol(library, "cublasGemmEx", &c->gemm)) {
        snprintf(c->why, sizeof c->why, "libcublas lacks a function that is needed: older than 12.0?");
        return;
    }
    if (create(&handle) != 0 || set_stream(handle, gpu->stream) != 0 || get_version(handle, &version) != 0 ||
        set_workspace(handle, gpu_take(gpu, WORKSPACE_BYTES), WORKSPACE_BYTES) != 0) {
        snprintf(c->why, sizeof c->why, "cuBLAS could not be started on this GPU");
        return;
    }
    c->handle = handle;
    snprintf(c->name, sizeof c->name, "cuBLAS %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

/* Rows of ours are columns of cuBLAS: D' = B A'. */
void cublas_multiply(const struct gpu *gpu, int64_t m, int64_t n, int64_t k, float alpha, const void *a, const void *b, void *d,
                     bsm_format d_format)
{
    const float zero = 0;
    const int status = gpu->cublas.gemm(gpu->cublas.handle, TRANSPOSE, NO_TRANSPOSE, (int)n, (int)m, (int)k, &alpha, b, TYPE_BF16,
                                        (int)k, a, TYPE_BF16, (int)k, &zero, d, d_format == BSM_FORMAT_FP32 ? TYPE_FP32 : TYPE_BF16,
                                        (int)n, SUMS_FP32, BEST_ALGORITHM);
    if (status != 0) gpu_stop("cublasGemmEx: status %d for %lld x %lld x %lld", status, (long long)m, (long long)n, (long long)k);
}
