/* The GEMM kernels by mma.sync that multiply codes of a byte each with an e8m0 scale for 32: all pairs of e4m3, e5m2,
 * e3m2, e2m3 and e2m1 but the last with itself.  The types are part of the instruction, so that each pair has a loop of
 * its own; a kernel has all of them, and one epilogue. */
#include "gemm.cuh"

#define EACH_ELEMENT(X, ...) \
    X(E4M3, __VA_ARGS__) X(E5M2, __VA_ARGS__) X(E3M2, __VA_ARGS__) X(E2M3, __VA_ARGS__) X(E2M1, __VA_ARGS__)

template <class CONFIG> struct any_pair {
    template <mma_sync_element A>
    __device__ __forceinline__ static void sum_with(const bsmi_blackwell_parameters &p, gemm_sums<CONFIG> &sums,
                                           const gemm_reader<CONFIG> &reader, uint32_t shared,
                                           gemm_set_ring<CONFIG> &ring, const gemm_job &job)
    {
#define CASE(element, ...) \
    case MMA_SYNC_##element: \
        if constexpr ((A != MMA_SYNC_E2M1 || MMA_SYNC_##element != MMA_SYNC_E2M1) \
                      && (CONFIG::STEP == 128 || (A <= MMA_SYNC_E5M2 && MMA_SYNC_##element <= MMA_SYNC_E5M2))) \
            sum_job<CONFIG, gemm_pair<A, MMA_SYNC_##element, true>>(p, sums, reader, shared, ring, job); \
        break;
        switch (p.b_element) { EACH_ELEMENT(CASE) }
#undef CASE
    }
    __device__ __forceinline__ static void sum(const bsmi_blackwell_parameters &p, gemm_sums<CONFIG> &sums,
                                      const gemm_reader<CONFIG> &reader, uint32_t shared, gemm_set_ring<CONFIG> &ring,
                                      const gemm_job &job)
    {
#define CASE(element, ...) \
    case MMA_SYNC_##element: sum_with<MMA_SYNC_##element>(p, sums, reader, shared, ring, job); break;
        switch (p.a_element) { EACH_ELEMENT(CASE) }
#undef CASE
    }
};

#define KERNEL(...) GEMM_KERNEL(mxf8f6f4, KIND_MXF8F6F4, any_pair, __VA_ARGS__)
BSMI_SM120_GEMM_OF_BYTES(KERNEL)
BSMI_SM120_GEMM_OF_8_BITS(KERNEL)
