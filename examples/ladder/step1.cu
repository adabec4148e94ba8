/* Step 1: scales as checkpoints store them, a row of scales for each row of a matrix, through registers into tensor
 * memory.
 *
 * A CTA computes one tile; one stage, everything in turn.  Every thread fetches the scales of its lane; a warp's 32
 * threads read 32 rows, each from another line of memory, and all four warps read the same.
 *
 *   barrier         arrives                                     waits
 *   full            thread 0, and TMA's bytes of A and B        thread 0, before it multiplies
 *   __syncthreads   all, their scales in tensor memory          thread 0, before it multiplies
 *   done            the commit behind the products              all, before they overwrite operands and scales,
 *                                                               or read D
 *   __syncthreads   all, their sums read                        warp 0, before it gives the columns back */
#include "tile.cuh"

/* Rows first + lane, + 32, ... of a tile of K; rows outside the matrix count as zero, and nothing is stored for
 * them. */
template <int ROWS, int SCALES>
__device__ static inline lane_scales<ROWS, (SCALES + 3) / 4> fetch(const uint8_t *scales, int first, int rows,
                                                                   int pitch, int k)
{
    lane_scales<ROWS, (SCALES + 3) / 4> x;
#pragma unroll
    for (int i = 0; i < ROWS / 32; i++) {
        const int row = first + 32 * i + (int)threadIdx.x % 32;
        row_scales<SCALES> of_row = {};
        if (row < rows)
            of_row = *reinterpret_cast<const row_scales<SCALES> *>(scales + (int64_t)row * pitch + SCALES * k);
        for (int g = 0; g < (SCALES + 3) / 4; g++) x.word[g][i] = of_row.word(g);
    }
    return x;
}

template <class F> __device__ static inline void step1(const ladder_parameters &p)
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
            mbarrier_arrive_expect_tx(shared_address(full), F::OPERAND_BYTES);
            load_operands<F>(p, s, full, k, m, n);
        }
        __syncwarp();
        fetch<TILE_M, F::SCALES_A_TILE>(p.a_scales, m, p.m, p.scale_columns, k).store(tensor + F::A_SCALE_COLUMN);
        fetch<F::N, F::SCALES_A_TILE>(p.b_scales, n, p.n, p.scale_columns, k).store(tensor + F::B_SCALE_COLUMN);
        tcgen05_wait_st();
        tcgen05_fence_before_thread_sync();
        __syncthreads();
        if (threadIdx.x == 0) {
            wait(full, k & 1);
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

LADDER_REGISTER_KERNELS(step1)
