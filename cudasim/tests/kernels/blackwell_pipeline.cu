// D[M][N] = (A x scales of A)(B x scales of B)^T in f32, by a persistent kernel of specialized warps: mxf8f6f4 (e4m3)
// and mxf4nvf4 (e2m1, a scale for 16).  Tiles of 128 rows for each CTA; a CTA alone, or a pair that shares a tile of
// 256 rows.
//
// Warp 0 loads by TMA into a ring of four stages, warp 1 copies the scales to tensor memory and multiplies, warps 4 to
// 7 store D. full[s]: the bytes of a stage, of both CTAs in a pair; empty[s]: the products that read a stage are
// complete.  filled[i]: the products of accumulator i are complete; drained[i]: its 128 lanes have been read.  One
// thread issues all tcgen05.cp and tcgen05.mma, which run in its order, so the scales in tensor memory are written anew
// for each stage.  In a pair the even CTA issues for both; each holds its rows of A, half of B's rows, its scales of A
// and all scales of B, which one loads for both.
//
// Host: any M and N (D's rows are stored as far as they go); K a multiple of 128 bytes; maps of bytes as in
// blackwell_product.cu, boxes of 128 rows of A, TILE_N / CTAs rows of B; scales in rows of 256 bytes, two rows a block
// of 128 x 4, blocks along K first.
#include "blackwell_ptx.cuh"

constexpr int STAGES = 4, ROWS = 128, ROW_BYTES = 128, STEPS = 4, BLOCK_BYTES = 512, THREADS = 256;
constexpr int FIRST_EPILOGUE_WARP = 4, EPILOGUE_WARPS = 4, TENSOR_COLUMNS = 512;
enum { PRODUCER = 0, MULTIPLIER = 1, ALLOCATOR = 2 };

template <kind KIND_, int G_, int TILE_N_> struct config {
    static constexpr kind KIND = KIND_;
    static constexpr int G = G_, TILE_N = TILE_N_, TILE_M = ROWS * G;
    static constexpr int BLOCKS = KIND == MXF8F6F4 ? 1 : 4;     // blocks of 4 scales along a stage
    static constexpr int ROWS_OF_BLOCKS = (TILE_N + 127) / 128; // of 128 rows of B
    static constexpr int A_BYTES = ROWS * ROW_BYTES, B_BYTES = TILE_N / G * ROW_BYTES;
    static constexpr int SCALES_A_BYTES = BLOCKS * BLOCK_BYTES, SCALES_B_BYTES = ROWS_OF_BLOCKS * SCALES_A_BYTES;
    static constexpr int AT_B = A_BYTES, AT_SCALES_A = AT_B + B_BYTES, AT_SCALES_B = AT_SCALES_A + SCALES_A_BYTES;
    static constexpr int STAGE_BYTES = (AT_SCALES_B + SCALES_B_BYTES + 1023) / 1024 * 1024;
    static constexpr int LOADED_BYTES = G * (AT_SCALES_B + SCALES_B_BYTES); // in both CTAs of a pair
    // Two accumulators where they leave room for the scales.
    static constexpr int ACCUMULATORS = TILE_N <= 128 ? 2 : 1;
    static constexpr int SCALES_A_COLUMN = ACCUMULATORS * TILE_N, SCALES_B_COLUMN = SCALES_A_COLUMN + 4 * BLOCKS;
    static_assert(SCALES_B_COLUMN + 4 * BLOCKS * ROWS_OF_BLOCKS <= TENSOR_COLUMNS, "the columns of an SM");
    static_assert(STAGES * STAGE_BYTES <= 231424, "what a block may have beside its barriers");
};

struct barriers {
    u64 full[STAGES], empty[STAGES], filled[2], drained[2];
    u32 tensor;
};

template <int COUNT> struct ring {
    int at = 0;
    u32 parity;
    __device__ explicit ring(u32 first) : parity(first) {}
    __device__ void next()
    {
        if (++at == COUNT) at = 0, parity ^= 1;
    }
};

struct problem {
    const tensor_map *a, *b, *scales_a, *scales_b;
    float *d;
    int m, n, k_tiles;
};

// The tiles of this CTA, or pair: rows of tiles first.
template <class C> struct tiles {
    int rows, count, at;
    __device__ explicit tiles(const problem &x)
        : rows((x.m + C::TILE_M - 1) / C::TILE_M), count(rows * ((x.n + C::TILE_N - 1) / C::TILE_N)),
          at(blockIdx.x / C::G)
    {
    }
    __device__ bool more() const { return at < count; }
    __device__ void next() { at += gridDim.x / C::G; }
    __device__ int m() const { return at % rows * C::TILE_M; }
    __device__ int n() const { return at / rows * C::TILE_N; }
};

// Relaxed: tcgen05's fences around the hand-over are enough for what lies in tensor memory (9.7.16.6.4.4).
template <int G> __device__ __forceinline__ void wait_relaxed(u32 barrier, u32 parity)
{
    u32 done;
    do {
        if constexpr (G == 1)
            asm volatile(
                "{\n.reg .pred p;\nmbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2;\n"
                "selp.u32 %0, 1, 0, p;\n}"
                : "=r"(done)
                : "r"(barrier), "r"(parity)
                : "memory");
        else
            asm volatile(
                "{\n.reg .pred p;\nmbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], %2;\n"
                "selp.u32 %0, 1, 0, p;\n}"
                : "=r"(done)
                : "r"(barrier), "r"(parity)
                : "memory");
    } while (done == 0);
}

// At the CTA, or the even CTA of the pair, whose products follow.
template <int G> __device__ __forceinline__ void arrive_relaxed(u32 barrier)
{
    if constexpr (G == 1)
        asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    else
        asm volatile("{\n.reg .b32 a;\nmapa.shared::cluster.u32 a, %0, 0;\n"
                     "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [a];\n}" ::"r"(barrier)
                     : "memory");
}

// ---- the roles ----

template <class C>
__device__ __forceinline__ void load_stage(const problem &x, u32 stage, u32 full, int k_tile, int m, int n, u32 rank)
{
    constexpr int G = C::G, BLOCKS = C::BLOCKS;
    const int row = m + (int)rank * ROWS;
    tma_load_of<G>(stage, x.a, full, k_tile * ROW_BYTES, row);
    tma_load_of<G>(stage + C::AT_B, x.b, full, k_tile * ROW_BYTES, n + (int)rank * (C::TILE_N / G));
    tma_load_of<G>(stage + C::AT_SCALES_A, x.scales_a, full, 0, (row / 128 * x.k_tiles + k_tile) * 2 * BLOCKS);
    for (int i = 0; i < C::ROWS_OF_BLOCKS; i++) { // in a pair, by turns for both
        const u32 to = stage + C::AT_SCALES_B + i * C::SCALES_A_BYTES;
        const int from = ((n / 128 + i) * x.k_tiles + k_tile) * 2 * BLOCKS;
        if (G == 1) tma_load(to, x.scales_b, full, 0, from);
        else if (i % 2 == (int)rank) tma_load_to_pair(to, x.scales_b, full, 0, from);
    }
}

template <class C> __device__ __forceinline__ void produce(const problem &x, barriers &bar, u32 stages, u32 rank)
{
    ring<STAGES> r(1); // parity 1: every stage begins empty
    for (tiles<C> tile(x); tile.more(); tile.next())
        for (int k = 0; k < x.k_tiles; k++, r.next()) {
            const u32 full = shared_address(&bar.full[r.at]);
            mbarrier_wait<(C::G > 1)>(shared_address(&bar.empty[r.at]), r.parity);
            if (rank == 0) mbarrier_expect(full, C::LOADED_BYTES);
            load_stage<C>(x, stages + r.at * C::STAGE_BYTES, full, k, tile.m(), tile.n(), rank);
        }
}

template <class C> __device__ __forceinline__ void multiply_stage(u32 stage, u32 tensor, u32 d, bool first)
{
    constexpr u32 FORMAT = C::KIND == MXF8F6F4 ? 1u << 23 : 1u << 7 | 1u << 10; // e4m3 with ue8m0, e2m1 with ue4m3
    constexpr u32 SHAPE = FORMAT | (u32)C::TILE_N >> 3 << 17 | (u32)C::TILE_M >> 4 << 24;
    for (int i = 0; i < C::BLOCKS; i++)
        tensor_copy_scales<C::G>(tensor + C::SCALES_A_COLUMN + 4 * i, stage + C::AT_SCALES_A + i * BLOCK_BYTES);
    for (int i = 0; i < C::BLOCKS; i++)
        for (int j = 0; j < C::ROWS_OF_BLOCKS; j++)
            tensor_copy_scales<C::G>(tensor + C::SCALES_B_COLUMN + 4 * (i * C::ROWS_OF_BLOCKS + j),
                                     stage + C::AT_SCALES_B + (j * C::BLOCKS + i) * BLOCK_BYTES);
#pragma unroll
    for (int step = 0; step < STEPS; step++) { // 32 bytes of K each
        const u32 block = C::BLOCKS == 1 ? 0 : step, id = C::BLOCKS == 1 ? step : 0;
        tensor_mma<C::KIND == MXF8F6F4 ? MXF8F6F4 : MXF4NVF4_4X, C::G, false>(
            d, tensor_descriptor(stage) + 2 * step, tensor_descriptor(stage + C::AT_B) + 2 * step,
            SHAPE | id << 29 | id << 4, tensor + C::SCALES_A_COLUMN + 4 * block,
            tensor + C::SCALES_B_COLUMN + 4 * C::ROWS_OF_BLOCKS * block, !first || step != 0);
    }
}

template <class C> __device__ __forceinline__ void multiply(const problem &x, barriers &bar, u32 stages)
{
    ring<STAGES> r(0);
    ring<C::ACCUMULATORS> accumulator(1);
    for (tiles<C> tile(x); tile.more(); tile.next(), accumulator.next()) {
        const u32 d = bar.tensor + accumulator.at * C::TILE_N;
        wait_relaxed<C::G>(shared_address(&bar.drained[accumulator.at]), accumulator.parity);
        tensor_fence_after();
        for (int k = 0; k < x.k_tiles; k++, r.next()) {
            mbarrier_wait<(C::G > 1)>(shared_address(&bar.full[r.at]), r.parity);
            multiply_stage<C>(stages + r.at * C::STAGE_BYTES, bar.tensor, d, k == 0);
            tensor_commit<C::G>(shared_address(&bar.empty[r.at]));
        }
        tensor_commit<C::G>(shared_address(&bar.filled[accumulator.at]));
    }
}

template <class C> __device__ __forceinline__ void store_row(const problem &x, u32 tensor, int row, int n)
{
#pragma unroll 1
    for (int first = 0; first < C::TILE_N; first += 32) {
        u32 r[32];
        tensor_load_32(r, tensor + first);
        tensor_wait_load();
        if (row >= x.m) continue;
        float *to = x.d + (size_t)row * x.n + n + first;
#pragma unroll
        for (int i = 0; i < 32; i++)
            if (n + first + i < x.n) to[i] = __uint_as_float(r[i]);
    }
}

template <class C> __device__ __forceinline__ void drain(const problem &x, barriers &bar, u32 rank)
{
    const int lane = threadIdx.x - FIRST_EPILOGUE_WARP * 32;
    ring<C::ACCUMULATORS> r(0);
    for (tiles<C> tile(x); tile.more(); tile.next(), r.next()) {
        mbarrier_wait<(C::G > 1)>(shared_address(&bar.filled[r.at]), r.parity);
        tensor_fence_after();
        store_row<C>(x, bar.tensor + r.at * C::TILE_N + ((u32)lane / 32 << 21), tile.m() + (int)rank * ROWS + lane,
                     tile.n());
        tensor_fence_before();
        if (lane % 32 == 0) arrive_relaxed<C::G>(shared_address(&bar.drained[r.at]));
    }
}

// ---- the kernel ----

template <int G> __device__ __forceinline__ void sync_all()
{
    if (G == 1) __syncthreads();
    else cluster_sync();
}

template <class C> __device__ __forceinline__ void begin(barriers &bar, int warp)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++)
            mbarrier_init(shared_address(&bar.full[i]), 1), mbarrier_init(shared_address(&bar.empty[i]), 1);
        for (int i = 0; i < 2; i++) {
            mbarrier_init(shared_address(&bar.filled[i]), 1);
            mbarrier_init(shared_address(&bar.drained[i]), EPILOGUE_WARPS * C::G);
        }
        if (C::G > 1) fence_mbarrier_init();
    }
    if (warp == ALLOCATOR) tensor_alloc<C::G, TENSOR_COLUMNS>(shared_address(&bar.tensor));
    sync_all<C::G>();
}

template <class C> __device__ __forceinline__ void pipeline(const problem &x)
{
    extern __shared__ __align__(1024) u8 shared[];
    __shared__ barriers bar;
    const int warp = threadIdx.x / 32;
    const u32 stages = shared_address(shared), rank = C::G == 1 ? 0 : cluster_rank();
    begin<C>(bar, warp);
    if (warp == PRODUCER && elect()) produce<C>(x, bar, stages, rank);
    else if (warp == MULTIPLIER && rank == 0 && elect()) multiply<C>(x, bar, stages);
    else if (warp >= FIRST_EPILOGUE_WARP) drain<C>(x, bar, rank);
    __syncwarp();
    sync_all<C::G>(); // the accumulators have been read, and of a pair no CTA ends before the other's commits have
                      // arrived
    if (warp == ALLOCATOR) tensor_dealloc<C::G, TENSOR_COLUMNS>(bar.tensor);
}

#define KERNEL(name, KIND, G, TILE_N, ...) \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) __VA_ARGS__ name( \
        const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b, \
        const __grid_constant__ tensor_map scales_a, const __grid_constant__ tensor_map scales_b, float *d, int m, \
        int n, int k_tiles) \
    { \
        pipeline<config<KIND, G, TILE_N>>({ &a, &b, &scales_a, &scales_b, d, m, n, k_tiles }); \
    }
KERNEL(mxfp8, MXF8F6F4, 1, 128)
KERNEL(mxfp8_wide, MXF8F6F4, 1, 256)
KERNEL(mxfp8_pair, MXF8F6F4, 2, 128, __cluster_dims__(2, 1, 1))
KERNEL(nvfp4, MXF4NVF4_4X, 1, 128)
KERNEL(nvfp4_wide, MXF4NVF4_4X, 1, 256)
KERNEL(nvfp4_pair, MXF4NVF4_4X, 2, 128, __cluster_dims__(2, 1, 1))
KERNEL(nvfp4_pair_wide, MXF4NVF4_4X, 2, 256, __cluster_dims__(2, 1, 1))
