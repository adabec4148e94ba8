/* A BLAS library as netlib's reference is one: three loops and no name of its own.  With BLAS_CORE, one that
 * says who it is, as OpenBLAS does. */
#ifdef BLAS_CORE
const char *openblas_get_config(void);
const char *openblas_get_corename(void);
const char *openblas_get_config(void) { return "as slow as the reference"; }
const char *openblas_get_corename(void) { return BLAS_CORE; }
#endif

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc)
{
    (void)order, (void)transpose_a, (void)transpose_b;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            volatile float sum = 0;                    /* one addition after the other */
            for (int p = 0; p < k; p++) sum += a[i * lda + p] * b[j * ldb + p];
            c[i * ldc + j] = alpha * sum + (beta != 0 ? beta * c[i * ldc + j] : 0);
        }
}
