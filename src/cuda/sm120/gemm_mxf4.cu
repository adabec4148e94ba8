/* The GEMM kernels by mma.sync that multiply e2m1 with an e8m0 scale for 32. */
#include "gemm.cuh"

template <class CONFIG> using sum_of = one_pair<CONFIG, gemm_pair<MMA_SYNC_E2M1, MMA_SYNC_E2M1, false>>;
#define KERNEL(...) GEMM_KERNEL(mxf4, KIND_MXF4, sum_of, __VA_ARGS__)
BSMI_SM120_GEMM_OF_4_BITS(KERNEL)
