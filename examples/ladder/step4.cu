/* Step 4: the packed blocks go from shared to tensor memory by tcgen05.cp: no thread touches a scale.
 *
 * One thread issues copies and products, which run in that order (PTX ISA 9.7.16.6.4.2); the others wait for the sums.
 *
 *   barrier         arrives                                     waits
 *   full            thread 0, and TMA's bytes of all four       thread 0, before it copies and multiplies
 *   done            the commit behind the products              thread 0, before it overwrites the stage; all,
 *                                                               before they read D
 *   __syncthreads   all, thread 0 when it has issued all        all, before they wait for `done`
 *   __syncthreads   all, their sums read                        warp 0, before it gives the columns back */
#include "tile.cuh"

template <class F>
__device__ static inline void multiply_all(const ladder_parameters &p, stage<F> &s, uint64_t *full, uint64_t *done,
                                           uint32_t tensor, int m, int n)
{
    for (int k = 0; k < p.k_tiles; k++) {
        if (k > 0) wait(done, (k - 1) & 1);
        mbarrier_arrive_expect_tx(shared_address(full), F::OPERAND_BYTES + F::SCALE_BYTES);
        load_operands<F>(p, s, full, k, m, n);
        load_scales<F>(p, s, full, k, m, n);
        wait(full, k & 1);
        copy_scales<F>(tensor, s);
        multiply<F>(tensor, 0, s, k > 0);
        tcgen05_commit<1>(shared_address(done));
    }
}

template <class F> __device__ static inline void step4(const ladder_parameters &p)
{
    __shared__ uint64_t barriers[2];
    __shared__ uint32_t address;
    uint64_t *full = &barriers[0], *done = &barriers[1];
    const int m = (int)blockIdx.x * TILE_M, n = (int)blockIdx.y * F::N;
    if (threadIdx.x == 0) init_barriers(barriers, 2);
    const uint32_t tensor = allocate_columns(&address);

    if (threadIdx.x == 0) multiply_all<F>(p, stages<F>()[0], full, done, tensor, m, n);
    __syncthreads(); /* all know: what is waited for is the last tile's phase of `done` */
    wait(done, (p.k_tiles - 1) & 1);
    tcgen05_fence_after_thread_sync();
    store_tile<F>(p, tensor, 0, m, n);
    __syncthreads();
    release_columns(tensor);
}

LADDER_ONE_STAGE_KERNELS(step4)
