/* Step 5: software-pipelined and persistent: four stages, loads run ahead of the products, and from a tile of D into
 * the next.
 *
 * As many CTAs as there are SMs; each takes every gridDim.x-th tile.  One thread issues everything: it multiplies stage
 * i, then refills the stage of i - 1, whose products finish while those of i run.  When a tile's products are done all
 * threads store its sums; meanwhile the first stages of the next tile arrive, but the tensor cores have nothing to do.
 *
 *   barrier         arrives                                          waits
 *   full[s]         thread 0, and TMA's bytes of the stage           thread 0, before it copies and multiplies
 *   empty[s]        the commit behind the stage's products           thread 0, before it refills the stage
 *   done            the commit behind a tile's last products         all, before they read D
 *   __syncthreads   all, their sums read                             thread 0, before the next tile's first product;
 *                                                                    warp 0, before it gives the columns back */
#include "tile.cuh"

enum { STAGES = 4 };

/* A CTA's way through its tiles, a tile of K at a time; stage and parity come along. */
struct position {
    int tile, k, stage;
    uint32_t parity;

    __device__ void advance(int k_tiles)
    {
        if (++k == k_tiles) k = 0, tile += (int)gridDim.x;
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

struct barriers {
    uint64_t full[STAGES], empty[STAGES], done;
}; /* one arrival each */

/* Tiles of D in bands of eight rows of them, a band's columns one behind the other: CTAs that run at one time share
 * lines of A and of B in the L2 cache. */
struct tiles {
    enum { BAND = 8 };
    int rows, columns, count;

    __device__ explicit tiles(const ladder_parameters &p)
        : rows((p.m + TILE_M - 1) / TILE_M), columns((p.n + TILE_N - 1) / TILE_N), count(rows * columns)
    {
    }
    __device__ int first_row(int tile) const { return tile / (BAND * columns) * BAND; }
    __device__ int band_rows(int tile) const { return min(static_cast<int>(BAND), rows - first_row(tile)); }
    __device__ int m(int tile) const
    {
        return (first_row(tile) + tile % (BAND * columns) % band_rows(tile)) * TILE_M;
    }
    __device__ int n(int tile) const { return tile % (BAND * columns) / band_rows(tile) * TILE_N; }
};

/* Fills the stage at `at`, which is empty, and goes on. */
template <class F>
__device__ static inline void load(const ladder_parameters &p, const tiles &all, barriers &bar, position &at)
{
    uint64_t *full = &bar.full[at.stage];
    stage<F> &s = stages<F>()[at.stage];
    mbarrier_arrive_expect_tx(shared_address(full), F::OPERAND_BYTES + F::SCALE_BYTES);
    load_operands<F>(p, s, full, at.k, all.m(at.tile), all.n(at.tile));
    load_scales<F>(p, s, full, at.k, all.m(at.tile), all.n(at.tile));
    at.advance(p.k_tiles);
}

/* The products of one tile of D; `loads` is STAGES - 1 ahead of `at`, as long as there are tiles.  In the ring's first
 * pass a stage begins empty: waiting for the parity of the phase before the first returns at once. */
template <class F>
__device__ static inline void multiply_tile(const ladder_parameters &p, const tiles &all, barriers &bar, position &at,
                                            position &loads, uint32_t tensor)
{
    for (int k = 0; k < p.k_tiles; k++, at.advance(p.k_tiles)) {
        stage<F> &s = stages<F>()[at.stage];
        wait(&bar.full[at.stage], at.parity);
        copy_scales<F>(tensor, s);
        multiply<F>(tensor, s, k > 0);
        tcgen05_commit<1>(shared_address(&bar.empty[at.stage]));
        if (loads.tile >= all.count) continue;
        wait(&bar.empty[loads.stage], loads.parity ^ 1);
        load<F>(p, all, bar, loads);
    }
    tcgen05_commit<1>(shared_address(&bar.done));
}

template <class F> __device__ static inline void step5(const ladder_parameters &p)
{
    __shared__ barriers bar;
    __shared__ uint32_t address;
    const tiles all(p);
    if (threadIdx.x == 0) init_barriers(bar.full, sizeof bar / sizeof(uint64_t));
    const uint32_t tensor = allocate_columns(&address);

    position at = { (int)blockIdx.x, 0, 0, 0 }, loads = at;
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES - 1 && loads.tile < all.count; i++) load<F>(p, all, bar, loads);
    uint32_t parity = 0;
    for (int tile = (int)blockIdx.x; tile < all.count; tile += (int)gridDim.x, parity ^= 1) {
        if (threadIdx.x == 0) {
            tcgen05_fence_after_thread_sync();
            multiply_tile<F>(p, all, bar, at, loads, tensor);
        }
        __syncwarp();
        wait(&bar.done, parity);
        tcgen05_fence_after_thread_sync();
        store_tile(p, tensor, all.m(tile), all.n(tile));
        tcgen05_fence_before_thread_sync();
        __syncthreads();
    }
    release_columns(tensor);
}

LADDER_KERNELS(step5)
