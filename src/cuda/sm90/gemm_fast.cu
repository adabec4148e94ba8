/* BSM_COMPUTE_FAST on Hopper: D = finish(A B^T) of operands that bsmi_refold has made e4m3 codes with a factor for each row and 128 columns.
 *
 * The skeleton, the ring and the storing are those of gemm.cuh.  Each 128 columns of K are summed by wgmma by themselves, from zero, whose
 * sums keep 13 bits; these are added in fp32, in ascending order.  The order depends on K alone. */
#include "fast_consumer.cuh"
#include "fast_producer.cuh"
#include "gemm.cuh"

template <class CONFIG> struct fast_roles {
    static constexpr bool WAITS_FIRST = true;
    __device__ static inline void begin(uint32_t shared)
    {
        constexpr int SENDERS = CONFIG::CLUSTER_ROWS + CONFIG::CLUSTER_COLUMNS - 1;
        for (uint32_t stage = 0; stage < CONFIG::STAGES; stage++) {
            mbarrier_init(full_barrier<CONFIG>(shared, stage), 1);
            mbarrier_init(empty_barrier<CONFIG>(shared, stage), SENDERS * CONFIG::GROUPS * 4);
        }
        fence_mbarrier_init();
    }
    __device__ static inline void work(const bsmi_gemm_parameters &first, uint32_t shared, gemm_cta cta, uint32_t group)
    {
        /* The skeleton knows what these parameters begin with. */
        const bsmi_fast_parameters &p = reinterpret_cast<const bsmi_fast_parameters &>(first);
        /* 65,536 registers for three warpgroups: of a consumer's 240, sums and products are 192. */
        if (group == 0) {
            setmaxnreg_dec<24>();
            if (warp_of_cta() == 0 && elect_sync()) produce_fast<CONFIG>(p, shared, cta);
        } else {
            setmaxnreg_inc<240>();
            consume_fast<CONFIG>(p, shared, cta, group - 1);
        }
    }
};

#define FAST_KERNEL(tile, rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes)                                     \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                                  \
        bsmi_gemm_fast_##tile(const __grid_constant__ bsmi_fast_parameters p)                                                            \
    {                                                                                                                                    \
        using config = fast_config<rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes>;                           \
        gemm<config, fast_roles<config>>(p.gemm);                                                                                            \
    }
BSMI_SM90_FAST(FAST_KERNEL)
