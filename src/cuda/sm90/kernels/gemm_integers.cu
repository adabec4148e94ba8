/* The GEMM kernels of products of integers, and those for bf16 rows that take their place: the kernel of gemm.cuh, if its condition holds.
 *
 * To the producer rows of integers are rows of half as many numbers of 16 bits. */
#include "cuda/scheduler/condition.cuh"
#include "cuda/sm90/mainloop/gemm.cuh"
#include "cuda/sm90/mainloop/integer_consumer.cuh"
#include "integer_instances.h"

template <class CONFIG> struct integer_roles {
    __device__ static inline void begin(uint32_t shared) { initialize_barriers<CONFIG>(shared); }
    __device__ static inline void work(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
    {
        constexpr int PRODUCER = 40, CONSUMER = 232; /* registers: as in gemm.cuh */
        if (group == 0) {
            setmaxnreg_dec<PRODUCER>();
            if (warp_of_cta() == 0 && elect_sync()) produce<CONFIG>(p, shared, cta);
        } else {
            setmaxnreg_inc<CONSUMER>();
            consume_integers<CONFIG>(p, shared, cta, group - 1);
        }
    }
};

/* p: the first member of bsmi_conditional_gemm_parameters. */
template <class ROLES> struct conditional_roles {
    static constexpr bool WAITS_FIRST = true;
    __device__ static inline void begin(uint32_t shared) { ROLES::begin(shared); }
    __device__ static inline void work(const bsmi_gemm_parameters &p, uint32_t shared, gemm_cta cta, uint32_t group)
    {
        if (condition_holds(reinterpret_cast<const bsmi_conditional_gemm_parameters &>(p).condition)) ROLES::work(p, shared, cta, group);
    }
};

#define CONDITIONAL_KERNEL(name, roles, rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes)      \
    extern "C" __global__ void __launch_bounds__(128 * (groups + 1), 1)                                                  \
        bsmi_gemm_##name(const __grid_constant__ bsmi_conditional_gemm_parameters p)                                     \
    {                                                                                                                    \
        using CONFIG = gemm_config<rows, columns, groups, cluster_rows, cluster_columns, stages, d_box_bytes>;           \
        gemm<CONFIG, conditional_roles<roles<CONFIG>>>(p.gemm);                                                          \
    }
#define INTEGERS(tile, ...) CONDITIONAL_KERNEL(integers_##tile, integer_roles, __VA_ARGS__)
#define REST(tile, ...) CONDITIONAL_KERNEL(rest_##tile, gemm_roles, __VA_ARGS__)

BSMI_SM90_GEMM_INTEGERS(INTEGERS)
BSMI_SM90_GEMM_INTEGERS(REST)
