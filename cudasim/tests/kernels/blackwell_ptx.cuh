// The instructions of sm_100a that the kernels use beside Hopper's: one function each, named after it (PTX ISA 9.7.16).
#pragma once
#include "hopper_ptx.cuh"

enum kind { F16, TF32, I8, F8F6F4, MXF8F6F4, MXF4, MXF4NVF4_2X, MXF4NVF4_4X };

__device__ __forceinline__ bool elect() // the same lane each time
{
    u32 elected;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(elected)::"memory");
    return elected != 0;
}

// ---- tensor memory ----

#define BY_GROUP(G, before, after, ...) \
    do { \
        if constexpr ((G) == 1) asm volatile(before "cta_group::1" after __VA_ARGS__); \
        else asm volatile(before "cta_group::2" after __VA_ARGS__); \
    } while (0)

template <int G, int COLUMNS> __device__ __forceinline__ void tensor_alloc(u32 to)
{
    BY_GROUP(G, "tcgen05.alloc.", ".sync.aligned.shared::cta.b32 [%0], %1;", ::"r"(to), "n"(COLUMNS) : "memory");
    BY_GROUP(G, "tcgen05.relinquish_alloc_permit.", ".sync.aligned;", ::: "memory");
}
template <int G, int COLUMNS> __device__ __forceinline__ void tensor_dealloc(u32 address)
{
    BY_GROUP(G, "tcgen05.dealloc.", ".sync.aligned.b32 %0, %1;", ::"r"(address), "n"(COLUMNS) : "memory");
}
__device__ __forceinline__ void tensor_fence_before()
{
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tensor_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }
__device__ __forceinline__ void tensor_wait_load() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void tensor_wait_store() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

#define LIST_32 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%" \
    "30,%31}"
#define OUT8(r, i) \
    "=r"(r[i]), "=r"(r[i + 1]), "=r"(r[i + 2]), "=r"(r[i + 3]), "=r"(r[i + 4]), "=r"(r[i + 5]), "=r"(r[i + 6]), \
        "=r"(r[i + 7])
#define IN8(r, i) \
    "r"(r[i]), "r"(r[i + 1]), "r"(r[i + 2]), "r"(r[i + 3]), "r"(r[i + 4]), "r"(r[i + 5]), "r"(r[i + 6]), "r"(r[i + 7])
// 32 columns of the warp's own lanes; `address` names the first of them.
__device__ __forceinline__ void tensor_load_32(u32 (&r)[32], u32 address)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32 " LIST_32 ", [%32];"
                 : OUT8(r, 0), OUT8(r, 8), OUT8(r, 16), OUT8(r, 24)
                 : "r"(address));
}
// The low halves of 64 columns, two to a register.
__device__ __forceinline__ void tensor_load_halves(u32 (&r)[32], u32 address)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.pack::16b.b32 " LIST_32 ", [%32];"
                 : OUT8(r, 0), OUT8(r, 8), OUT8(r, 16), OUT8(r, 24)
                 : "r"(address));
}
__device__ __forceinline__ void tensor_store_32(u32 address, const u32 (&r)[32])
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x32.b32 [%32], " LIST_32 ";" ::IN8(r, 0), IN8(r, 8), IN8(r, 16),
                 IN8(r, 24), "r"(address)
                 : "memory");
}
__device__ __forceinline__ void tensor_store_4(u32 address, uint4 r)
{
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%4], {%0, %1, %2, %3};" ::"r"(r.x), "r"(r.y), "r"(r.z),
                 "r"(r.w), "r"(address)
                 : "memory");
}

// A block of 128 x 4 scales, 512 bytes without swizzle, to 4 columns.
template <int G> __device__ __forceinline__ void tensor_copy_scales(u32 to, u32 from)
{
    const u64 descriptor = (u64)((from & 0x3ffff) >> 4) | 1ull << 16 | (u64)(128 >> 4) << 32 | 1ull << 46;
    BY_GROUP(G, "tcgen05.cp.", ".32x128b.warpx4 [%0], %1;", ::"r"(to), "l"(descriptor) : "memory");
}

// ---- products ----

// K-major, rows of 128 bytes in a 128-byte swizzle; `address` may point into the atom.
__device__ __forceinline__ u64 tensor_descriptor(u32 address)
{
    return (u64)((address & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

#define MMA_PLAIN(G, words, a, constraint) \
    BY_GROUP(G, "{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.", words " [%0], " a ", %2, %3, p;\n}", \
             ::"r"(d), constraint, "l"(b), "r"(shape), "r"((u32)more) \
             : "memory")
#define MMA_SCALED(G, words, a, constraint) \
    BY_GROUP(G, "{\n.reg .pred p;\nsetp.ne.u32 p, %4, 0;\ntcgen05.mma.", \
             words " [%0], " a ", %2, %3, [%5], [%6], p;\n}", ::"r"(d), constraint, "l"(b), "r"(shape), \
             "r"((u32)more), "r"(scales_a), "r"(scales_b) \
             : "memory")
#define MMA(form, words) \
    do { \
        if constexpr (A_IN_TENSOR_MEMORY) form(G, words, "[%1]", "r"((u32)a)); \
        else form(G, words, "%1", "l"(a)); \
    } while (0)

// a: a descriptor, or an address of tensor memory; shape: the instruction descriptor.
template <kind KIND, int G, bool A_IN_TENSOR_MEMORY>
__device__ __forceinline__ void tensor_mma(u32 d, u64 a, u64 b, u32 shape, u32 scales_a, u32 scales_b, bool more)
{
    if constexpr (KIND == F16) MMA(MMA_PLAIN, ".kind::f16");
    if constexpr (KIND == TF32) MMA(MMA_PLAIN, ".kind::tf32");
    if constexpr (KIND == I8) MMA(MMA_PLAIN, ".kind::i8");
    if constexpr (KIND == F8F6F4) MMA(MMA_PLAIN, ".kind::f8f6f4");
    if constexpr (KIND == MXF8F6F4) MMA(MMA_SCALED, ".kind::mxf8f6f4.block_scale.scale_vec::1X");
    if constexpr (KIND == MXF4) MMA(MMA_SCALED, ".kind::mxf4.block_scale.scale_vec::2X");
    if constexpr (KIND == MXF4NVF4_2X) MMA(MMA_SCALED, ".kind::mxf4nvf4.block_scale.scale_vec::2X");
    if constexpr (KIND == MXF4NVF4_4X) MMA(MMA_SCALED, ".kind::mxf4nvf4.block_scale.scale_vec::4X");
}

// Arrives at `barrier` when the thread's products and copies so far are complete; in a pair, at both CTAs' barriers of
// that offset.
template <int G> __device__ __forceinline__ void tensor_commit(u32 barrier)
{
    if constexpr (G == 1)
        asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier)
                     : "memory");
    else
        asm volatile(
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                barrier),
            "h"((unsigned short)3)
            : "memory");
}

// ---- TMA of a pair: the bytes are signalled to the even CTA ----

constexpr u32 EVEN_CTA = 0xfeffffff; // clears the lowest bit of the rank

template <int G> __device__ __forceinline__ void tma_load_of(u32 to, const tensor_map *map, u32 barrier, int x, int y)
{
    if constexpr (G == 1) {
        tma_load(to, map, barrier, x, y);
    } else {
        asm volatile(
            "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, "
            "%4}], [%2];" ::"r"(to),
            "l"(map), "r"(barrier & EVEN_CTA), "r"(x), "r"(y)
            : "memory");
    }
}
__device__ __forceinline__ void tma_load_to_pair(u32 to, const tensor_map *map, u32 barrier, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(map), "r"(barrier & EVEN_CTA), "r"(x), "r"(y), "h"((unsigned short)3)
        : "memory");
}
