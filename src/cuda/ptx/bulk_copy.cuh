/* Bulk copies of tiles and of bytes (PTX ISA 9.7.9.27, 9.7.9.25.4), for tensors of any rank: one function an
 * instruction, with the forms of tensor_copy.cuh's three-dimensional ones that Blackwell adds.  One thread issues.
 *
 * at: the box's first element, innermost coordinate first, as many as the map has dimensions.  to, from, barrier:
 * addresses of shared memory.  CTAS 1 or 2 (.cta_group, sm_100a): with 2 the barrier may be that of either CTA of the
 * pair (ptx_even_cta); 0: without.  Hints are policies of the L2 cache: createpolicy below. */
#pragma once

#include <stdint.h>

#include "cuda/ptx/tensor_copy.cuh"

/* The same address in the pair's even CTA: an address of the cluster has the CTA's rank in bits 24 and up. */
__device__ static inline uint32_t ptx_even_cta(uint32_t address) { return address & 0xfeffffff; }

enum bulk_reduction { BULK_ADD, BULK_MIN, BULK_MAX, BULK_AND, BULK_OR, BULK_XOR, BULK_INC, BULK_DEC };

// clang-format off
template <int CTAS> struct bulk_group_words;
template <> struct bulk_group_words<0> { static constexpr char text[] = ""; };
template <> struct bulk_group_words<1> { static constexpr char text[] = ".cta_group::1"; };
template <> struct bulk_group_words<2> { static constexpr char text[] = ".cta_group::2"; };
template <bulk_reduction R> struct bulk_reduction_words;
template <> struct bulk_reduction_words<BULK_ADD> { static constexpr char text[] = "add"; };
template <> struct bulk_reduction_words<BULK_MIN> { static constexpr char text[] = "min"; };
template <> struct bulk_reduction_words<BULK_MAX> { static constexpr char text[] = "max"; };
template <> struct bulk_reduction_words<BULK_AND> { static constexpr char text[] = "and"; };
template <> struct bulk_reduction_words<BULK_OR>  { static constexpr char text[] = "or"; };
template <> struct bulk_reduction_words<BULK_XOR> { static constexpr char text[] = "xor"; };
template <> struct bulk_reduction_words<BULK_INC> { static constexpr char text[] = "inc"; };
template <> struct bulk_reduction_words<BULK_DEC> { static constexpr char text[] = "dec"; };

#define COORDINATES_1 "r"(at[0])
#define COORDINATES_2 "r"(at[0]), "r"(at[1])
#define COORDINATES_3 "r"(at[0]), "r"(at[1]), "r"(at[2])
#define COORDINATES_4 "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
#define COORDINATES_5 "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
#define LOAD_WORDS(RANK, group) \
    "cp.async.bulk.tensor." #RANK "d" group ".shared::cluster.global.tile.mbarrier::complete_tx::bytes"

/* The instructions for RANK coordinates, LIST in the text; P, Q, R, S, T are the numbers of the operands behind
 * them. */
#define BULK_TENSOR(RANK, LIST, P, Q, R, S, T) \
    /* A box to shared memory; the barrier gets the bytes of the whole box (9.7.9.27.1.2). */ \
    template <int CTAS = 0> __device__ static inline void \
    cp_async_bulk_tensor_load(uint32_t to, const void *map, const int32_t (&at)[RANK], uint32_t barrier) \
    { \
        asm volatile(LOAD_WORDS(RANK, S) " [" P "], [" Q ", {" LIST "}], [" R "];" ::COORDINATES_##RANK, \
                     "r"(to), "l"((uint64_t)map), "r"(barrier), "C"(bulk_group_words<CTAS>::text) : "memory"); \
    } \
    template <int CTAS = 0> __device__ static inline void \
    cp_async_bulk_tensor_load_hint(uint32_t to, const void *map, const int32_t (&at)[RANK], uint32_t barrier, \
                                   uint64_t policy) \
    { \
        asm volatile(LOAD_WORDS(RANK, S) ".L2::cache_hint [" P "], [" Q ", {" LIST "}], [" R "], " T ";" \
                     ::COORDINATES_##RANK, \
                     "r"(to), "l"((uint64_t)map), "r"(barrier), "C"(bulk_group_words<CTAS>::text), \
                     "l"(policy) : "memory"); \
    } \
    /* The same into every CTA of the cluster whose bit is set, and to the barriers there. */ \
    template <int CTAS = 0> __device__ static inline void \
    cp_async_bulk_tensor_load_multicast(uint32_t to, const void *map, const int32_t (&at)[RANK], uint32_t barrier, \
                                        uint16_t ctas) \
    { \
        asm volatile(LOAD_WORDS(RANK, S) ".multicast::cluster [" P "], [" Q ", {" LIST "}], [" R "], " T ";" \
                     ::COORDINATES_##RANK, \
                     "r"(to), "l"((uint64_t)map), "r"(barrier), "C"(bulk_group_words<CTAS>::text), \
                     "h"(ctas) : "memory"); \
    } \
    /* A box from shared memory; what lies outside the tensor is not written. */ \
    __device__ static inline void cp_async_bulk_tensor_store(const void *map, uint32_t from, \
                                                             const int32_t (&at)[RANK]) \
    { \
        asm volatile("cp.async.bulk.tensor." #RANK "d.global.shared::cta.tile.bulk_group" \
                     " [" P ", {" LIST "}], [" Q "];" \
                     :: COORDINATES_##RANK, "l"((uint64_t)map), "r"(from) : "memory"); \
    } \
    __device__ static inline void \
    cp_async_bulk_tensor_store_hint(const void *map, uint32_t from, const int32_t (&at)[RANK], uint64_t policy) \
    { \
        asm volatile("cp.async.bulk.tensor." #RANK "d.global.shared::cta.tile.bulk_group.L2::cache_hint" \
                     " [" P ", {" LIST "}], [" Q "], " R ";" \
                     ::COORDINATES_##RANK, "l"((uint64_t)map), "r"(from), "l"(policy) \
                     : "memory"); \
    } \
    /* Combined with what the tensor holds (9.7.9.27.1.3). */ \
    template <bulk_reduction REDUCTION> __device__ static inline void \
    cp_reduce_async_bulk_tensor(const void *map, uint32_t from, const int32_t (&at)[RANK]) \
    { \
        asm volatile("cp.reduce.async.bulk.tensor." #RANK "d.global.shared::cta." R ".tile.bulk_group" \
                     " [" P ", {" LIST "}], [" Q "];" :: \
                     COORDINATES_##RANK, "l"((uint64_t)map), "r"(from), \
                     "C"(bulk_reduction_words<REDUCTION>::text) : "memory"); \
    } \
    /* A box to the L2 cache (9.7.9.27.1.4). */ \
    __device__ static inline void cp_async_bulk_prefetch_tensor(const void *map, const int32_t (&at)[RANK]) \
    { \
        asm volatile("cp.async.bulk.prefetch.tensor." #RANK "d.L2.global.tile [" P ", {" LIST "}];" :: \
                     COORDINATES_##RANK, "l"((uint64_t)map) : "memory"); \
    }
BULK_TENSOR(1, "%0", "%1", "%2", "%3", "%4", "%5")
BULK_TENSOR(2, "%0, %1", "%2", "%3", "%4", "%5", "%6")
BULK_TENSOR(3, "%0, %1, %2", "%3", "%4", "%5", "%6", "%7")
BULK_TENSOR(4, "%0, %1, %2, %3", "%4", "%5", "%6", "%7", "%8")
BULK_TENSOR(5, "%0, %1, %2, %3, %4", "%5", "%6", "%7", "%8", "%9")
#undef BULK_TENSOR
#undef LOAD_WORDS
#undef COORDINATES_1
#undef COORDINATES_2
#undef COORDINATES_3
#undef COORDINATES_4
#undef COORDINATES_5
// clang-format on

/* Four rows of a matrix whose map's boxes have one row, one behind another in shared memory, and back (9.7.9.27.1.2,
 * sm_100). */
template <int CTAS = 0>
__device__ static inline void cp_async_bulk_tensor_gather4(uint32_t to, const void *map, int32_t column,
                                                           const int32_t (&rows)[4], uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d%8.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
                 "l"((uint64_t)map), "r"(column), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(barrier),
                 "C"(bulk_group_words<CTAS>::text)
                 : "memory");
}
__device__ static inline void cp_async_bulk_tensor_scatter4(const void *map, uint32_t from, int32_t column,
                                                            const int32_t (&rows)[4])
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%1, %2, %3, %4, %5}], "
                 "[%6];" ::"l"(
                     (uint64_t)map),
                 "r"(column), "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(from)
                 : "memory");
}

/* ---- bytes (9.7.9.25.4.1): addresses and sizes are multiples of 16 ---- */

__device__ static inline void cp_async_bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"((uint64_t)from), "r"(bytes), "r"(barrier)
                 : "memory");
}
__device__ static inline void cp_async_bulk_load_multicast(uint32_t to, const void *from, uint32_t bytes,
                                                           uint32_t barrier, uint16_t ctas)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"((uint64_t)from), "r"(bytes), "r"(barrier), "h"(ctas)
                 : "memory");
}
/* To another CTA of the cluster: both addresses from mapa_shared_cluster. */
__device__ static inline void cp_async_bulk_to_cta(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
        "r"(from), "r"(bytes), "r"(barrier)
        : "memory");
}
__device__ static inline void cp_async_bulk_store(void *to, uint32_t from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"((uint64_t)to), "r"(from),
                 "r"(bytes)
                 : "memory");
}
/* 9.7.9.25.4.2: sums of f32. */
__device__ static inline void cp_reduce_async_bulk_add_f32(void *to, uint32_t from, uint32_t bytes)
{
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"((uint64_t)to),
                 "r"(from), "r"(bytes)
                 : "memory");
}
/* 9.7.9.25.4.3 */
__device__ static inline void cp_async_bulk_prefetch(const void *from, uint32_t bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"((uint64_t)from), "r"(bytes) : "memory");
}

/* Until all but PENDING of this thread's groups are complete and their bytes written (9.7.9.27.2.2). */
template <int PENDING> __device__ static inline void bulk_wait_group()
{
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* ---- policies of the L2 cache (9.7.9.18) ---- */

__device__ static inline uint64_t createpolicy_evict_first()
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ static inline uint64_t createpolicy_evict_last()
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
