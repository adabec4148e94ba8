/* The GEMM kernels for tensor memory that multiply a sparse B, 2:4: kept codes of 4, 6 and 8 bits with their scales, as
 * tcgen05.mma.sp takes them, and a dense A. */
#include "gemm.cuh"

#define KERNEL(tile, columns, ctas, stages, d_box_bytes) \
    extern "C" __global__ void __launch_bounds__(BSMI_SM100_THREADS, 1) \
        bsmi_gemm_sparse_##tile(const __grid_constant__ bsmi_sparse_parameters p) \
    { \
        gemm<gemm_config<MMA_MXF8F6F4, columns, ctas, stages, d_box_bytes, true>>(p); \
    }
BSMI_SM100_GEMM_SPARSE(KERNEL)
