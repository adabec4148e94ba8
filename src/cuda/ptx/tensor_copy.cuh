/* Tensor copies between global and shared memory (PTX ISA 9.7.9.27): one function an instruction.  Maps lie in a
 * kernel's parameters, data and barriers in shared memory; coordinates are (column, row, matrix). */
#pragma once

#include <stdint.h>

/* 9.7.9.15 */
__device__ static inline void prefetch_tensormap(const void *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"((uint64_t)map) : "memory");
}

/* 9.7.9.27.1.2; the barrier gets the bytes of the whole box, also of what lies outside and is filled with zeros. */
__device__ static inline void tensor_load(uint32_t to, const void *map, int32_t column, int32_t row, int32_t matrix,
                                          uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                 "%4}], [%5];" ::
                 "r"(to), "l"((uint64_t)map), "r"(column), "r"(row), "r"(matrix), "r"(barrier) : "memory");
}

/* The same into the CTA's own shared memory, without the window of the cluster: the one form in which sm_120 takes maps
 * of codes that are padded (9.7.9.27.1.2; PTX ISA 8.6). */
__device__ static inline void tensor_load_cta(uint32_t to, const void *map, int32_t column, int32_t row, int32_t matrix,
                                              uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                 "%4}], [%5];" ::
                 "r"(to), "l"((uint64_t)map), "r"(column), "r"(row), "r"(matrix), "r"(barrier) : "memory");
}

/* The same into every CTA of the cluster whose bit is set, and to the barrier there, at the same addresses as here. */
__device__ static inline void tensor_load_multicast(uint32_t to, const void *map, int32_t column, int32_t row,
                                                    int32_t matrix, uint32_t barrier, uint16_t ctas)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::
                 "r"(to), "l"((uint64_t)map), "r"(column), "r"(row), "r"(matrix), "r"(barrier), "h"(ctas) : "memory");
}

/* Bytes that follow each other, in multiples of 16, from and to multiples of 16 (9.7.9.25.4.1 cp.async.bulk). */
__device__ static inline void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                 "r"(to), "l"((uint64_t)from), "r"(bytes), "r"(barrier) : "memory");
}

/* 9.7.9.27.1.2; what lies outside the tensor is not written. */
__device__ static inline void tensor_store(const void *map, uint32_t from, int32_t column, int32_t row, int32_t matrix)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::
                 "l"((uint64_t)map), "r"(column), "r"(row), "r"(matrix), "r"(from) : "memory");
}

/* 9.7.9.27.2.1 */
__device__ static inline void bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/* Until all but PENDING of this thread's groups have read their shared memory (9.7.9.27.2.2). */
template <int PENDING> __device__ static inline void bulk_wait_group_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* Shared memory written by ordinary stores may then be read by TMA (9.7.13.4). */
__device__ static inline void fence_proxy_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
