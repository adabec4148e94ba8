/* A libcublas for bench_gpu on cudasim: looks at what it is asked, and computes nothing. */
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
enum { WRONG = 7, TYPE_FP32 = 0, TYPE_BF16 = 14, SUMS_FP32 = 68 };

EXPORT int cublasCreate_v2(void **handle);
EXPORT int cublasSetStream_v2(void *handle, void *stream);
EXPORT int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes);
EXPORT int cublasGetVersion_v2(void *handle, int *version);
EXPORT int cublasGemmEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                        const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta,
                        void *c, int c_type, int ldc, int compute, int algorithm);

static char the_handle;

int cublasCreate_v2(void **handle)
{
    *handle = &the_handle;
    return 0;
}

int cublasSetStream_v2(void *handle, void *stream) { return handle == &the_handle && stream != NULL ? 0 : WRONG; }
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes)
{
    return handle == &the_handle && workspace != NULL && bytes > 0 ? 0 : WRONG;
}

int cublasGetVersion_v2(void *handle, int *version)
{
    *version = 130100;
    return handle == &the_handle ? 0 : WRONG;
}

int cublasGemmEx(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha, const void *a,
                 int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type,
                 int ldc, int compute, int algorithm)
{
    const int pointers = alpha != NULL && a != NULL && b != NULL && c != NULL && beta != NULL
                         && *(const float *)beta == 0 && *(const float *)alpha > 0;
    const int shape = transpose_a == 1 && transpose_b == 0 && m > 0 && n > 0 && lda == k && ldb == k && ldc == m;
    const int types = a_type == TYPE_BF16 && b_type == TYPE_BF16 && (c_type == TYPE_BF16 || c_type == TYPE_FP32) &&
                      compute == SUMS_FP32 && algorithm == -1;
    return handle == &the_handle && pointers && shape && types ? 0 : WRONG;
}
