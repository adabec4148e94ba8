/* One product by one instance of the GEMM kernels, on gfxsim, and the same by the library on the CPU. */
#ifndef BSM_TESTS_GFX950_GEMM_CASE_H
#define BSM_TESTS_GFX950_GEMM_CASE_H

#include "hip/params/gemm.h"
#include "test.h"

#include <blockscale/matmul.h>

struct gemm_instance {
    const char *tile;
    int rows, columns, threads, dim;
    bool scaled, prepacked;
};
extern const struct gemm_instance gemm_instances[];
extern const int gemm_instance_count;

/* What is multiplied.  Formats are bsm_format. */
struct gemm_case {
    const struct gemm_instance *instance;
    bsm_format a, b;
    int64_t m, n, k;
    int64_t a_batch, b_batch;             /* 0 counts as 1 */
    int groups;                           /* with b_batch groups: rows of each, their sum m */
    const int64_t *group_rows;
    int band_rows;                        /* 0: 4 */
    bool wide;                            /* all finite codes and many scales: sums are rounded, and held to a bound */
    int nan_scale;                        /* 1: a row of A has a NaN scale, 2: a row of B, 3: A has a NaN code */
    bool flagged_nans;                    /* rows with NaN scales are found by bsmi_nan_scales_gfx950 */
    /* The epilogue; direct 0: S.  d: fp32, bf16, fp16, or MXFP8, MXFP6, MXFP4; then by this recipe, and with scales in
     * rows or in lane order.  amax is always asked for. */
    bool direct;
    bsm_recipe recipe;
    bool scales_in_lane_order;
    const float *alpha;
    bsm_per alpha_per;
    const float *beta;
    bsm_format c, d;
    const void *bias;
    bsm_real bias_type;
    bsm_per bias_per;
    bool relu;
    int64_t d_pitch;                      /* elements; 0: tight */
};

/* Runs both and compares all of D, and what lies around it. */
void gemm_case_run(struct test *t, const struct gemm_case *of);

#endif
