/* cuBLASLt, opened at run time: products of codes, block-scaled where the GPU and the library have them, or with one
 * scale for a matrix. */
#ifndef BENCH_GPU_CUBLAS_LT_H
#define BENCH_GPU_CUBLAS_LT_H

#include "gpu.h"

/* One product, D = alpha A B' in bf16, A and B in block-scaled formats, scales in layout 128x4; or their codes with the
 * scale 1 for all, and sums in the precision of the tensor cores. */
struct cublas_lt {
    bool one_scale;
    char name[64], why[256];              /* why: empty if there is a product to run */
    void *handle, *product, *a, *b, *d, *workspace;
    uint64_t algorithm[8];
    float alpha;
    int (*set)(void *product, int attribute, const void *value, size_t bytes);
    int (*multiply)(void *handle, void *product, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout,
                    const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace,
                    size_t workspace_bytes, CUstream stream);
};

/* Opens the library, describes the product, and asks for an algorithm; `why` says what is missing. */
void cublas_lt_prepare(struct gpu *gpu, bsm_format a, bsm_format b, int64_t m, int64_t n, int64_t k, float alpha,
                       struct cublas_lt *lt);
void cublas_lt_prepare_one_scale(struct gpu *gpu, bsm_format a, bsm_format b, int64_t m, int64_t n, int64_t k, struct cublas_lt *lt);
void cublas_lt_run(const struct gpu *gpu, struct cublas_lt *lt, const bsm_matrix *a, const bsm_matrix *b, void *d);

#endif
