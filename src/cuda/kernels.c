/* The tables of kernels. */
#include "kernels.h"
#include "cuda/sm90/gemm_instances.h"

#include <stddef.h>

const struct bsmi_cuda_kernel bsmi_cuda_kernels[BSMI_KERNEL_COUNT] = {
#define X(id, function, file, threads, waits) { function, file, threads, waits },
    BSMI_CUDA_KERNELS(X)
#undef X
};

/* Shared memory: the ring (tiles and two barriers a stage), and eight boxes of D for each consumer warpgroup. */
#define ROW(in_file, name, function, rows, columns, groups, cluster_rows, cluster_columns, stages, d_box)                                \
    { name, function, in_file, rows, columns, cluster_rows, cluster_columns, 128 * ((groups) + 1),                                       \
      (stages) * (((rows) + (columns)) * BSMI_K_STEP * 2 + 16) + (groups) * 8 * BSMI_GEMM_D_BOX_ROWS * (d_box),                          \
      (rows) / (cluster_columns), (columns) / (cluster_rows), BSMI_GEMM_D_BOX_ROWS, d_box, true },
#define LARGE(tile, ...) ROW("sm90/gemm_large", "cuda_wgmma_" #tile, "bsmi_gemm_" #tile, __VA_ARGS__)
#define SMALL(tile, ...) ROW("sm90/gemm_small", "cuda_wgmma_" #tile, "bsmi_gemm_" #tile, __VA_ARGS__)

const struct bsmi_gemm_instance bsmi_gemm_instances[] = {
    BSMI_SM90_GEMM_LARGE(LARGE)
    BSMI_SM90_GEMM_SMALL(SMALL)
    { NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, false },
};
const int bsmi_gemm_instance_count = sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1;
_Static_assert(sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1 <= BSMI_MOST_GEMM_INSTANCES, "raise the limit");
