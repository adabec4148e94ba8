/* Tensor copies through PTX in CUDA C, compiled by nvcc: a pipeline of loads, stores and reductions of swizzled tiles,
 * a multicast. tensor.ptx beside it is what
 *     nvcc -arch=sm_90a -ptx tensor.cu
 * of CUDA 13.0 gave; where nvcc is found the tests compile it anew as well. */
#include <cstdint>

constexpr int TILE = 32, STAGES = 3, THREADS = 128;
struct alignas(64) tensor_map { char bytes[128]; };

__device__ static uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ static void barrier_init(uint64_t *bar, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(bar)), "r"(count) : "memory");
}
__device__ static void barrier_expect(uint64_t *bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
                 : "memory");
}
__device__ static void barrier_arrive(uint64_t *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(bar)) : "memory");
}
__device__ static void barrier_wait(uint64_t *bar, uint32_t parity)
{
    uint32_t done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(shared_address(bar)), "r"(parity) : "memory");
    } while (done == 0);
}

__device__ static void load_tile(void *to, const tensor_map *map, int x, int y, uint64_t *bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
                 "[%4];"
                 :: "r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(bar)) : "memory");
}
__device__ static void store_tile(const tensor_map *map, int x, int y, const void *from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(map), "r"(x), "r"(y), "r"(shared_address(from)) : "memory");
}
__device__ static void add_tile(const tensor_map *map, int x, int y, const void *from)
{
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;"
                 :: "l"(map), "r"(x), "r"(y), "r"(shared_address(from)) : "memory");
}

/* The element of row r, column c of a tile of 32 x 32 floats whose rows of 128 bytes are swizzled. */
__device__ static int swizzled(int r, int c) { return r * TILE + ((c / 4 ^ r % 8) * 4 + c % 4); }

/* out = 2 in + 1, sums += in; in tiles of 32 x 32, those of one row of tiles by one CTA.  Warp 0 loads, the other three
 * compute. */
extern "C" __global__ void __launch_bounds__(THREADS)
scale_and_sum(const __grid_constant__ tensor_map in, const __grid_constant__ tensor_map out,
              const __grid_constant__ tensor_map sums, int tiles)
{
    __shared__ alignas(1024) float stage[STAGES][TILE * TILE];
    __shared__ alignas(1024) float result[TILE * TILE];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / 32, y = blockIdx.x * TILE;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) barrier_init(&full[i], 1), barrier_init(&empty[i], THREADS - 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warp == 0) {
        if (threadIdx.x != 0) return;
        asm volatile("prefetch.tensormap [%0];" :: "l"(&in));
        for (int i = 0; i < tiles; i++) {
            barrier_wait(&empty[i % STAGES], (i / STAGES & 1) ^ 1);
            barrier_expect(&full[i % STAGES], TILE * TILE * 4);
            load_tile(stage[i % STAGES], &in, i * TILE, y, &full[i % STAGES]);
        }
        for (int i = tiles; i < tiles + STAGES; i++) barrier_wait(&empty[i % STAGES], (i / STAGES & 1) ^ 1);
        return;
    }
    const int thread = threadIdx.x - 32;
    for (int i = 0; i < tiles; i++) {
        float *tile = stage[i % STAGES];
        barrier_wait(&full[i % STAGES], i / STAGES & 1);
        if (thread == 0) {
            add_tile(&sums, 0, y, tile);
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");        /* also of the result's last store */
        }
        asm volatile("bar.sync 1, 96;" ::: "memory");
        for (int e = thread; e < TILE * TILE; e += THREADS - 32) {
            const int at = swizzled(e / TILE, e % TILE);
            result[at] = 2.0f * tile[at] + 1.0f;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("bar.sync 1, 96;" ::: "memory");
        barrier_arrive(&empty[i % STAGES]);
        if (thread == 0) store_tile(&out, i * TILE, y, result);
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* Both CTAs of a pair get the halves of a tile of 64 x 32: each loads its half for both.  CTA 0 writes the sum of each
 * row over its even columns, CTA 1 over the odd ones. */
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(64)
    share(const __grid_constant__ tensor_map in, float *out)
{
    __shared__ alignas(1024) float tile[2][TILE * TILE];
    __shared__ uint64_t bar;
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        barrier_init(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        barrier_expect(&bar, 2 * TILE * TILE * 4);
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%2, %3}], [%4], %5;"
                     :: "r"(shared_address(tile[rank])), "l"(&in), "r"(0), "r"(rank * TILE), "r"(shared_address(&bar)),
                        "h"((uint16_t)3)
                     : "memory");
    barrier_wait(&bar, 0);
    float sum = 0;
    for (int c = rank; c < TILE; c += 2) sum += tile[threadIdx.x / TILE][swizzled(threadIdx.x % TILE, c)];
    out[rank * 64 + threadIdx.x] = sum;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
