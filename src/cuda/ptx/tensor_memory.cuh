/* Tensor memory (PTX ISA 9.7.16): 128 lanes x 512 columns of 32 bits in each SM.  An address has the lane in bits
 * 31-16, the column in bits 15-0.  One function an instruction; CTAS is .cta_group: 1, or 2 for a pair, the same in all
 * instructions of a kernel. */
#pragma once

#include "cuda/ptx/descriptors.h"

/* ---- columns (9.7.16.7.1): whole warps; in a pair a warp of each CTA ---- */

/* Waits until there are so many free columns (a power of two, at least 32), and stores the first one's address in
 * shared memory. */
template <int CTAS, int COLUMNS> __device__ static inline void tcgen05_alloc(uint32_t to)
{
    asm volatile("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to), "n"(COLUMNS), "n"(CTAS)
                 : "memory");
}
template <int CTAS, int COLUMNS> __device__ static inline void tcgen05_dealloc(uint32_t address)
{
    asm volatile("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(address), "n"(COLUMNS), "n"(CTAS)
                 : "memory");
}
/* This CTA will not allocate again: another one on the SM may. */
template <int CTAS> __device__ static inline void tcgen05_relinquish_alloc_permit()
{
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(CTAS) : "memory");
}

/* ---- order (9.7.16.6) ---- */

/* Between a thread's tensor-memory instructions and the barrier at which it hands over, and behind the barrier
 * (9.7.16.11). */
__device__ static inline void tcgen05_fence_before_thread_sync()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ static inline void tcgen05_fence_after_thread_sync()
{
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/* Until the warp's loads, its stores, are complete (9.7.16.8). */
__device__ static inline void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ static inline void tcgen05_wait_st() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

/* The same, and the compiler reads none of these registers before it. */
template <int COUNT> __device__ static inline void tcgen05_wait_ld(uint32_t (&r)[COUNT])
{
    tcgen05_wait_ld();
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("" : "+r"(r[i]));
}

/* Arrives at the barrier (of this CTA) when all mma, cp and shift that this thread has issued are complete
 * (9.7.16.12). */
template <int CTAS> __device__ static inline void tcgen05_commit(uint32_t barrier)
{
    asm volatile("tcgen05.commit.cta_group::%1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier),
                 "n"(CTAS)
                 : "memory");
}
/* The same at the barriers of that offset in all CTAs of the cluster whose bit is set. */
template <int CTAS> __device__ static inline void tcgen05_commit_multicast(uint32_t barrier, uint16_t ctas)
{
    asm volatile(
        "tcgen05.commit.cta_group::%2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            barrier),
        "h"(ctas), "n"(CTAS)
        : "memory");
}

/* ---- from shared memory (9.7.16.9.2): one thread; complete with its commit, in order before its products ---- */

enum tcgen05_cp_shape { CP_128X256B, CP_128X128B, CP_64X128B_02_13, CP_64X128B_01_23, CP_32X128B, CP_4X256B };
enum tcgen05_cp_format { CP_AS_IT_IS, CP_FP6, CP_FP4 }; /* 6-, 4-bit elements in units of 16 bytes become bytes */

// clang-format off
template <tcgen05_cp_shape SHAPE> struct tcgen05_cp_words;
template <> struct tcgen05_cp_words<CP_128X256B>      { static constexpr char text[] = "128x256b"; };
template <> struct tcgen05_cp_words<CP_128X128B>      { static constexpr char text[] = "128x128b"; };
template <> struct tcgen05_cp_words<CP_64X128B_02_13> { static constexpr char text[] = "64x128b.warpx2::02_13"; };
template <> struct tcgen05_cp_words<CP_64X128B_01_23> { static constexpr char text[] = "64x128b.warpx2::01_23"; };
template <> struct tcgen05_cp_words<CP_32X128B>       { static constexpr char text[] = "32x128b.warpx4"; };
template <> struct tcgen05_cp_words<CP_4X256B>        { static constexpr char text[] = "4x256b"; };
template <tcgen05_cp_format FORMAT> struct tcgen05_cp_format_words;
template <> struct tcgen05_cp_format_words<CP_AS_IT_IS> { static constexpr char text[] = ""; };
template <> struct tcgen05_cp_format_words<CP_FP6>      { static constexpr char text[] = ".b8x16.b6x16_p32"; };
template <> struct tcgen05_cp_format_words<CP_FP4>      { static constexpr char text[] = ".b8x16.b4x16_p64"; };
// clang-format on

/* Rows of a K-major matrix to lanes; CP_32X128B: 32 rows of 16 bytes to 4 columns, four times over, as scales are
 * wanted. */
template <int CTAS, tcgen05_cp_shape SHAPE, tcgen05_cp_format FORMAT = CP_AS_IT_IS>
__device__ static inline void tcgen05_cp(uint32_t to, uint64_t from)
{
    asm volatile("tcgen05.cp.cta_group::%2.%3%4 [%0], %1;" ::"r"(to), "l"(from), "n"(CTAS),
                 "C"(tcgen05_cp_words<SHAPE>::text), "C"(tcgen05_cp_format_words<FORMAT>::text)
                 : "memory");
}

/* 31 lanes from an aligned one on, 32 bytes of each, one lane down (9.7.16.9.3). */
template <int CTAS> __device__ static inline void tcgen05_shift_down(uint32_t address)
{
    asm volatile("tcgen05.shift.cta_group::%1.down [%0];" ::"r"(address), "n"(CTAS) : "memory");
}
