/* BSM_COMPUTE_FAST on Hopper: D = finish(A B^T) of operands that bsmi_refold has made e4m3 codes, with an exponent for each row, which the
 * epilogue puts back: the kernel of gemm.cuh, with consumers of its own.
 *
 * To the producer rows of codes are rows of half as many numbers of 16 bits.  The order of sums depends on K alone. */
#include "cuda/sm90/mainloop/fast_consumer.cuh"
#include "fast_instances.h"
#include "cuda/sm90/mainloop/gemm.cuh"

template <class CONFIG> struct fast_roles {
    static constexpr bool WAITS_FIRST = false;
    __device__ static inline void begin(uint32_t shared) { initialize_barriers<CONFIG>(shared); }
    __device__ static inline void work(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
    {
        /* 65,536 registers for three warpgroups: of a consumer's 240, sums and what is under way are 192. */
        if (group == 0) {
            setmaxnreg_dec<24>();
            if (warp_of_cta() == 0 && elect_sync()) produce<CONFIG>(p, shared, cta);
        } else {
            setmaxnreg_inc<240>();
            consume_fast<CONFIG>(p, shared, cta, group - 1);
        }
    }
};

#define FAST_KERNEL(tile, rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes)                                     \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                                  \
        bsmi_gemm_fast_##tile(const __grid_constant__ bsmi_gemm_parameters p)                                                            \
    {                                                                                                                                    \
        using config = gemm_config<rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes>;                           \
        gemm<config, fast_roles<config>>(p);                                                                                             \
    }
BSMI_SM90_FAST(FAST_KERNEL)
