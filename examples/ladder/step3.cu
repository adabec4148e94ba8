/* Step 3: scales come packed, in blocks of 128x4 (512 bytes: 32 rows of 16), by TMA with the operands, and go through
 * registers.
 *
 * Row l of a block is what lane l of tensor memory holds in 4 columns: rows l, l + 32, l + 64, l + 96 of the matrix, 4
 * scales of each.  A thread reads 16 bytes for each block, neighbours side by side.
 *
 *   barrier         arrives                                     waits
 *   full            thread 0, and TMA's bytes of all four       all, before they read scales; thread 0 then multiplies
 *   __syncthreads   all, their scales in tensor memory          thread 0, before it multiplies
 *   done            the commit behind the products              all, before the stage is overwritten, or D read
 *   __syncthreads   all, their sums read                        warp 0, before it gives the columns back */
#include "tile.cuh"

/* This lane's 16 bytes of each block. */
template <int ROWS, int GROUPS>
__device__ static inline lane_scales<ROWS, GROUPS> read(const uint8_t (*blocks)[GROUPS][SCALE_BLOCK_BYTES])
{
    lane_scales<ROWS, GROUPS> x;
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int i = 0; i < ROWS / SCALE_BLOCK_ROWS; i++) {
            const uint4 four = reinterpret_cast<const uint4 *>(blocks[i][g])[threadIdx.x % 32];
            x.word[g][4 * i] = four.x, x.word[g][4 * i + 1] = four.y, x.word[g][4 * i + 2] = four.z,
                          x.word[g][4 * i + 3] = four.w;
        }
    return x;
}

template <class F> __device__ static inline void step3(const ladder_parameters &p)
{
    __shared__ uint64_t barriers[2];
    __shared__ uint32_t address;
    uint64_t *full = &barriers[0], *done = &barriers[1];
    stage<F> &s = stages<F>()[0];
    const int m = (int)blockIdx.x * TILE_M, n = (int)blockIdx.y * F::N;
    if (threadIdx.x == 0) init_barriers(barriers, 2);
    const uint32_t tensor = allocate_columns(&address);

    for (int k = 0; k < p.k_tiles; k++) {
        if (threadIdx.x == 0) {
            mbarrier_arrive_expect_tx(shared_address(full), F::OPERAND_BYTES + F::SCALE_BYTES);
            load_operands<F>(p, s, full, k, m, n);
            load_scales<F>(p, s, full, k, m, n);
        }
        __syncwarp();
        wait(full, k & 1);
        read<TILE_M, F::GROUPS>(&s.a_scales).store(tensor + F::A_SCALE_COLUMN);
        read<F::N, F::GROUPS>(s.b_scales).store(tensor + F::B_SCALE_COLUMN);
        tcgen05_wait_st();
        fence_proxy_async();              /* behind the reads of scales: TMA fills their place again */
        tcgen05_fence_before_thread_sync();
        __syncthreads();
        if (threadIdx.x == 0) {
            tcgen05_fence_after_thread_sync();
            multiply<F>(tensor, 0, s, k > 0);
            tcgen05_commit<1>(shared_address(done));
        }
        __syncwarp();
        wait(done, k & 1);
        tcgen05_fence_after_thread_sync();
    }
    store_tile<F>(p, tensor, 0, m, n);
    __syncthreads();
    release_columns(tensor);
}

LADDER_ONE_STAGE_KERNELS(step3)
