/* The GEMM kernels by mma.sync that multiply rows of bf16. */
#include "gemm.cuh"

template <class CONFIG> using sum_of = one_pair<CONFIG, gemm_pair<MMA_SYNC_E4M3, MMA_SYNC_E4M3, false>>;
#define KERNEL(...) GEMM_KERNEL(bf16, KIND_BF16, sum_of, __VA_ARGS__)
BSMI_SM120_GEMM_BF16(KERNEL)
