/* Step 5: software-pipelined and persistent: four stages (fewer if they are too large), loads run ahead of the
 * products, and from a tile of D into the next.
 *
 * As many CTAs as there are SMs; each takes every gridDim.x-th tile.  One thread issues everything: it multiplies stage
 * i, then refills the stage of i - 1, whose products finish while those of i run.  When a tile's products are done all
 * threads store its sums; meanwhile the first stages of the next tile arrive, but the tensor cores have nothing to do:
 * 256 columns of sums fit only once beside the scales.  Tiles of less than 256 columns have two accumulators in turn:
 * the products of a tile are issued before the sums of the one before it are stored.
 *
 *   barrier         arrives                                          waits
 *   full[s]         thread 0, and TMA's bytes of the stage           thread 0, before it copies and multiplies
 *   empty[s]        the commit behind the stage's products           thread 0, before it refills the stage
 *   done[a]         the commit behind the last products of a tile    all, before they read D
 *                   in accumulator a
 *   __syncthreads   all, their sums read                             thread 0, before the next product in the same
 *                                                                    accumulator; warp 0, before it gives the columns
 *                                                                    back */
#include "tile.cuh"

template <class F> struct ring {
    static constexpr int FIT = (SHARED_BYTES - 1024) / (int)sizeof(stage<F>);
    static constexpr int STAGES = FIT < LADDER_STAGES ? FIT : LADDER_STAGES;
    static_assert(STAGES >= 2, "one stage is loaded while another is multiplied");
};

/* A CTA's way through its tiles, a tile of K at a time; stage and parity come along. */
struct position {
    int tile, k, stage;
    uint32_t parity;

    template <int STAGES> __device__ void advance(int k_tiles)
    {
        if (++k == k_tiles) k = 0, tile += (int)gridDim.x;
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

struct barriers {
    uint64_t full[LADDER_STAGES], empty[LADDER_STAGES], done[2];
}; /* one arrival each */

/* Tiles of D, `width` columns each, in bands of eight rows of them, a band's columns one behind the other: CTAs that
 * run at one time share lines of A and of B in the L2 cache. */
struct tiles {
    enum { BAND = 8 };
    int width, rows, columns, count;

    __device__ tiles(const ladder_parameters &p, int width_)
        : width(width_), rows((p.m + TILE_M - 1) / TILE_M), columns((p.n + width - 1) / width), count(rows * columns)
    {
    }
    __device__ int first_row(int tile) const { return tile / (BAND * columns) * BAND; }
    __device__ int band_rows(int tile) const { return min(static_cast<int>(BAND), rows - first_row(tile)); }
    __device__ int m(int tile) const
    {
        return (first_row(tile) + tile % (BAND * columns) % band_rows(tile)) * TILE_M;
    }
    __device__ int n(int tile) const { return tile % (BAND * columns) / band_rows(tile) * width; }
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
    at.advance<ring<F>::STAGES>(p.k_tiles);
}

/* The products of one tile of D, into accumulator `a`; `loads` is STAGES - 1 ahead of `at`, as long as there are tiles.
 * In the ring's first pass a stage begins empty: waiting for the parity of the phase before the first returns at once.
 */
template <class F>
__device__ static inline void multiply_tile(const ladder_parameters &p, const tiles &all, barriers &bar, position &at,
                                            position &loads, uint32_t tensor, int a)
{
    for (int k = 0; k < p.k_tiles; k++, at.advance<ring<F>::STAGES>(p.k_tiles)) {
        stage<F> &s = stages<F>()[at.stage];
        wait(&bar.full[at.stage], at.parity);
        copy_scales<F>(tensor, s);
        multiply<F>(tensor, a * F::N, s, k > 0);
        tcgen05_commit<1>(shared_address(&bar.empty[at.stage]));
        if (loads.tile >= all.count) continue;
        wait(&bar.empty[loads.stage], loads.parity ^ 1);
        load<F>(p, all, bar, loads);
    }
    tcgen05_commit<1>(shared_address(&bar.done[a]));
}

template <class F> __device__ static inline void step5(const ladder_parameters &p)
{
    __shared__ barriers bar;
    __shared__ uint32_t address;
    const tiles all(p, F::N);
    if (threadIdx.x == 0) init_barriers(bar.full, sizeof bar / sizeof(uint64_t));
    const uint32_t tensor = allocate_columns(&address);

    position at = { (int)blockIdx.x, 0, 0, 0 }, loads = at;
    if (threadIdx.x == 0)
        for (int i = 0; i < ring<F>::STAGES - 1 && loads.tile < all.count; i++) load<F>(p, all, bar, loads);
    /* The tile whose sums are stored is as many behind the one that is multiplied as there are accumulators more than
     * one. */
    constexpr int BEHIND = F::ACCUMULATORS - 1;
    const int mine = (all.count - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x;
    for (int i = 0; i < mine + BEHIND; i++) {
        if (threadIdx.x == 0 && i < mine) {
            tcgen05_fence_after_thread_sync();
            multiply_tile<F>(p, all, bar, at, loads, tensor, i % F::ACCUMULATORS);
        }
        __syncwarp();
        if (i < BEHIND) continue;
        const int stored = i - BEHIND, a = stored % F::ACCUMULATORS;
        const int tile = (int)blockIdx.x + stored * (int)gridDim.x;
        wait(&bar.done[a], stored / F::ACCUMULATORS & 1);
        tcgen05_fence_after_thread_sync();
        store_tile<F>(p, tensor, a * F::N, all.m(tile), all.n(tile));
        tcgen05_fence_before_thread_sync();
        __syncthreads();
    }
    release_columns(tensor);
}

LADDER_KERNELS(step5)
