// C[M][N] = A[M][K] * B[N][K]^T, tiles of 128 x 128 and 128 bytes of K, for every type of Hopper's wgmma.
//
// Three warpgroups: a producer (one thread) loads by TMA into a ring of stages, two consumers multiply 64 rows each by
// wgmma and store by TMA.  full[s]: one arrival and the bytes of a stage; empty[s]: one arrival of each consumer that
// reads what the producer writes.  In a cluster of two the CTAs share the columns: each loads half of B and sends it to
// both. Host: M and N are multiples of 128 (clusters: M of 256), K of 128 bytes; boxes are 64 rows of 128 bytes,
// swizzled by 128 bytes.
#include "hopper_ptx.cuh"

constexpr int STAGES = 3, TILE = 128, ROW_BYTES = 128, BOX_ROWS = 64, BOX_BYTES = BOX_ROWS * ROW_BYTES;
constexpr int OPERAND_BYTES = TILE * ROW_BYTES, STAGE_BYTES = 2 * OPERAND_BYTES;
constexpr int C_BYTES = TILE * TILE * 4;
constexpr int CONSUMERS = 2, THREADS = 128 * (1 + CONSUMERS);
static_assert(STAGES * STAGE_BYTES + C_BYTES + 1024 <= 232448, "what a block may have");

struct barriers {
    u64 full[STAGES], empty[STAGES];
};
struct ring {
    int stage;
    u32 parity;
};
__device__ __forceinline__ void ring_next(ring &r)
{
    if (++r.stage == STAGES) {
        r.stage = 0;
        r.parity ^= 1;
    }
}

// ---- the types ----

struct bf16 {
    typedef float accumulator;
    static constexpr int element_bytes = 2;
    static __device__ void multiply(float (&d)[64], u64 a, u64 b, bool more) { wgmma_bf16(d, a, b, more); }
};
struct e4m3 {
    typedef float accumulator;
    static constexpr int element_bytes = 1;
    static __device__ void multiply(float (&d)[64], u64 a, u64 b, bool more) { wgmma_e4m3(d, a, b, more); }
};
struct e5m2 {
    typedef float accumulator;
    static constexpr int element_bytes = 1;
    static __device__ void multiply(float (&d)[64], u64 a, u64 b, bool more) { wgmma_e5m2(d, a, b, more); }
};
struct s8 {
    typedef int accumulator;
    static constexpr int element_bytes = 1;
    static __device__ void multiply(int (&d)[64], u64 a, u64 b, bool more) { wgmma_s8(d, a, b, more); }
};
struct u8s8 {
    typedef int accumulator;
    static constexpr int element_bytes = 1;
    static __device__ void multiply(int (&d)[64], u64 a, u64 b, bool more) { wgmma_u8(d, a, b, more); }
};

// ---- the roles ----

template <class T, bool CLUSTER>
__device__ void produce(const tensor_map *a, const tensor_map *b, u32 stages, const barriers &bar, int k_tiles, int m,
                        int n, u32 rank)
{
    ring r = { 0, 1 }; // parity 1: every stage begins empty
    for (int i = 0; i < k_tiles; i++, ring_next(r)) {
        const u32 full = shared_address(&bar.full[r.stage]), to_a = stages + r.stage * STAGE_BYTES,
                  to_b = to_a + OPERAND_BYTES;
        const int k = i * (ROW_BYTES / T::element_bytes);
        mbarrier_wait<CLUSTER>(shared_address(&bar.empty[r.stage]), r.parity);
        mbarrier_expect(full, STAGE_BYTES);
        tma_load(to_a, a, full, k, m);
        tma_load(to_a + BOX_BYTES, a, full, k, m + BOX_ROWS);
        if (CLUSTER) {
            tma_load_multicast(to_b + rank * BOX_BYTES, b, full, k, n + (int)rank * BOX_ROWS, 3);
        } else {
            tma_load(to_b, b, full, k, n);
            tma_load(to_b + BOX_BYTES, b, full, k, n + BOX_ROWS);
        }
    }
}

template <bool CLUSTER> __device__ __forceinline__ void release(const barriers &bar, int stage)
{
    if (threadIdx.x % 128 != 0) return;
    const u32 empty = shared_address(&bar.empty[stage]);
    if (CLUSTER) mbarrier_arrive_in(empty, 0), mbarrier_arrive_in(empty, 1);
    else mbarrier_arrive(empty);
}

// A stage is released when the products of the next one have been issued and its own are complete.
template <class T, bool CLUSTER>
__device__ void multiply(typename T::accumulator (&d)[64], u32 stages, const barriers &bar, int k_tiles, int consumer)
{
    ring r = { 0, 0 };
    int previous = 0;
    for (int i = 0; i < k_tiles; i++, ring_next(r)) {
        mbarrier_wait<CLUSTER>(shared_address(&bar.full[r.stage]), r.parity);
        const u64 a = wgmma_descriptor(stages + r.stage * STAGE_BYTES + consumer * BOX_BYTES);
        const u64 b = wgmma_descriptor(stages + r.stage * STAGE_BYTES + OPERAND_BYTES);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; k++) T::multiply(d, a + 2 * k, b + 2 * k, i + k != 0); // 32 bytes of K each
        wgmma_commit();
        wgmma_wait<1>();
        if (i > 0) release<CLUSTER>(bar, previous);
        previous = r.stage;
    }
    wgmma_wait<0>();
}

// 64 x 128 words as four boxes of 64 rows x 32 columns, swizzled as the map says; then one thread stores them.
template <class ACCUMULATOR>
__device__ void store_words(const ACCUMULATOR (&d)[64], const tensor_map *c, u8 *out, int m, int n, int consumer)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        const int to_row = row + (i & 2) * 4, column = i / 4 * 8 + lane % 4 * 2;
        const int in_row = (column % 32 * 4) ^ (to_row % 8 * 16);
        ACCUMULATOR *to = (ACCUMULATOR *)(out + column / 32 * BOX_BYTES + to_row * ROW_BYTES + in_row);
        to[0] = d[i], to[1] = d[i + 1];
    }
    fence_proxy_async();
    barrier_sync(1 + consumer, 128);
    if (threadIdx.x % 128 != 0) return;
    for (int i = 0; i < 4; i++) tma_store(c, shared_address(out) + i * BOX_BYTES, n + i * 32, m + consumer * 64);
    bulk_commit();
    bulk_wait();
}

__device__ __forceinline__ u32 pack_bf16(float low, float high)
{
    u32 d;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}

// 64 x 128 bf16 as two boxes of 64 rows x 64 columns.
__device__ void store_bf16(const float (&d)[64], const tensor_map *c, u8 *out, int m, int n, int consumer)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
#pragma unroll
    for (int i = 0; i < 8; i++) { // 16 columns: the matrices (rows 0-7, 8-15) x (columns 0-7, 8-15)
        const int column = i * 16 + lane / 16 * 8, in_row = (column % 64 * 2) ^ (row % 8 * 16);
        const float *f = d + 8 * i;
        stmatrix_x4(shared_address(out) + column / 64 * BOX_BYTES + row * ROW_BYTES + in_row, pack_bf16(f[0], f[1]),
                    pack_bf16(f[2], f[3]), pack_bf16(f[4], f[5]), pack_bf16(f[6], f[7]));
    }
    fence_proxy_async();
    barrier_sync(1 + consumer, 128);
    if (threadIdx.x % 128 != 0) return;
    for (int i = 0; i < 2; i++) tma_store(c, shared_address(out) + i * BOX_BYTES, n + i * 64, m + consumer * 64);
    bulk_commit();
    bulk_wait();
}

// ---- the kernel ----

template <bool CLUSTER> __device__ void init(const barriers &bar)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&bar.full[i]), 1);
            mbarrier_init(shared_address(&bar.empty[i]), CONSUMERS * (CLUSTER ? 2 : 1));
        }
        if (CLUSTER) fence_mbarrier_init();
        else fence_proxy_async();
    }
    if (CLUSTER) cluster_sync();
    else __syncthreads();
}

template <class T, bool CLUSTER, bool TO_BF16>
__device__ void gemm(const tensor_map *a, const tensor_map *b, const tensor_map *c, int k_tiles)
{
    extern __shared__ __align__(1024) u8 shared[];
    __shared__ barriers bar;
    const int m = blockIdx.y * TILE, n = blockIdx.x * TILE, warpgroup = threadIdx.x / 128;
    const u32 stages = shared_address(shared), rank = CLUSTER ? cluster_rank() : 0;
    init<CLUSTER>(bar);
    if (warpgroup == 0) {
        registers_down<40>();
        if (threadIdx.x == 0) produce<T, CLUSTER>(a, b, stages, bar, k_tiles, m, n, rank);
    } else {
        registers_up<232>();
        typename T::accumulator d[64];
        const int consumer = warpgroup - 1;
        multiply<T, CLUSTER>(d, stages, bar, k_tiles, consumer);
        u8 *out = shared + STAGES * STAGE_BYTES + consumer * (C_BYTES / CONSUMERS);
        if constexpr (TO_BF16) store_bf16(d, c, out, m, n, consumer);
        else store_words(d, c, out, m, n, consumer);
    }
    if (!CLUSTER) return;
    __syncwarp();
    cluster_sync(); // no CTA ends while the other may still arrive at its barriers
}

#define KERNEL(name, type, cluster, to_bf16, ...) \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) __VA_ARGS__ name( \
        const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b, \
        const __grid_constant__ tensor_map c, int k_tiles) \
    { \
        gemm<type, cluster, to_bf16>(&a, &b, &c, k_tiles); \
    }
KERNEL(gemm_bf16, bf16, false, false)
KERNEL(gemm_bf16_to_bf16, bf16, false, true)
KERNEL(gemm_e4m3, e4m3, false, false)
KERNEL(gemm_e5m2_e4m3, e5m2, false, false)
KERNEL(gemm_s8, s8, false, false)
KERNEL(gemm_u8_s8, u8s8, false, false)
KERNEL(gemm_bf16_cluster, bf16, true, false, __cluster_dims__(1, 2, 1))
KERNEL(gemm_bf16_to_bf16_cluster, bf16, true, true, __cluster_dims__(1, 2, 1))
KERNEL(gemm_e4m3_cluster, e4m3, true, false, __cluster_dims__(1, 2, 1))
KERNEL(gemm_s8_cluster, s8, true, false, __cluster_dims__(1, 2, 1))
