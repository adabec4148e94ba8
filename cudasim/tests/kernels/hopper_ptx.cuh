// The instructions of sm_90a that the kernels use: one function each, named after it, with its section of the PTX
// manual.
#pragma once

typedef unsigned u32;
typedef unsigned long long u64;
typedef unsigned char u8;

struct alignas(64) tensor_map {
    u64 opaque[16];
}; // as cuTensorMapEncodeTiled fills it

__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// ---- mbarrier (9.7.13.15) ----

__device__ __forceinline__ void mbarrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void mbarrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_in(u32 barrier, u32 rank) // of the cluster's CTA `rank`
{
    asm volatile(
        "{\n.reg .b32 a;\nmapa.shared::cluster.u32 a, %0, %1;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, "
        "[a];\n}" ::
            "r"(barrier),
        "r"(rank)
        : "memory");
}
template <bool CLUSTER> __device__ __forceinline__ bool mbarrier_try_wait(u32 barrier, u32 parity)
{
    u32 done;
    if (CLUSTER)
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    else
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    return done != 0;
}
template <bool CLUSTER> __device__ __forceinline__ void mbarrier_wait(u32 barrier, u32 parity)
{
    while (!mbarrier_try_wait<CLUSTER>(barrier, parity)) {}
}

// ---- fences, barriers, registers (9.7.13, 9.7.19) ----

__device__ __forceinline__ void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void barrier_sync(u32 number, u32 threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ u32 cluster_rank()
{
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
template <int COUNT> __device__ __forceinline__ void registers_down()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void registers_up()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// ---- TMA (9.7.9.27) ----

__device__ __forceinline__ void tma_load(u32 to, const tensor_map *map, u32 barrier, int x, int y)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
            to),
        "l"(map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}
__device__ __forceinline__ void tma_load_multicast(u32 to, const tensor_map *map, u32 barrier, int x, int y,
                                                   unsigned short ctas)
{
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
        "{%3, %4}], [%2], %5;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(ctas)
        : "memory");
}
__device__ __forceinline__ void tma_store(const tensor_map *map, u32 from, int x, int y)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(from),
                 "r"(x), "r"(y)
                 : "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void bulk_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// ---- stmatrix (9.7.14.5.16) ----

__device__ __forceinline__ void stmatrix_x4(u32 to, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c),
                 "r"(d)
                 : "memory");
}

// ---- wgmma (9.7.15) ----

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// K-major, rows of 128 bytes in a 128-byte swizzle; `address` may point into the atom.
__device__ __forceinline__ u64 wgmma_descriptor(u32 address)
{
    return (u64)((address & 0x3ffff) >> 4) | 1ull << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62;
}

#define D8(c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define D64(c)   D8(c, 0), D8(c, 8), D8(c, 16), D8(c, 24), D8(c, 32), D8(c, 40), D8(c, 48), D8(c, 56)
#define REGISTERS_64 \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%" \
    "30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59," \
    "%60,%61,%62," \
    "%63}"
#define WGMMA(name, type, constraint, words, rest) \
    __device__ __forceinline__ void name(type(&d)[64], u64 a, u64 b, bool accumulate) \
    { \
        asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128" words \
                     " " REGISTERS_64 ", %64, %65, p" rest ";\n}" \
                     : D64(constraint) \
                     : "l"(a), "l"(b), "r"((u32)accumulate)); \
    }
WGMMA(wgmma_bf16, float, "+f", "k16.f32.bf16.bf16", ", 1, 1, 0, 0")
WGMMA(wgmma_e4m3, float, "+f", "k32.f32.e4m3.e4m3", ", 1, 1")
WGMMA(wgmma_e5m2, float, "+f", "k32.f32.e5m2.e4m3", ", 1, 1")
WGMMA(wgmma_s8, int, "+r", "k32.s32.s8.s8", "")
WGMMA(wgmma_u8, int, "+r", "k32.s32.u8.s8", "")
#undef WGMMA
