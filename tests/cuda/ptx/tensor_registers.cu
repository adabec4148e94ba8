/* Loads and stores of every shape of tensor memory, for test_tensor_registers.c: where each register lies. */
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/tensor_registers.cuh"

enum { COLUMNS = 64, LANES = 128 };

/* Fills tensor memory with 1 + lane * COLUMNS + column; returns the address of this warp's first lane. */
__device__ static uint32_t begin(uint32_t *shared)
{
    if (threadIdx.x < 32) {
        tcgen05_alloc<1, COLUMNS>(shared_address(shared));
        tcgen05_relinquish_alloc_permit<1>();
    }
    __syncthreads();
    uint32_t r[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) r[i] = 1 + threadIdx.x * COLUMNS + i;
    const uint32_t address = *shared + (threadIdx.x / 32 << 21);
    tcgen05_st<SHAPE_32X32B, COLUMNS>(address, r);
    tcgen05_wait_st();
    return address;
}

__device__ static void end(const uint32_t *shared)
{
    __syncthreads();
    if (threadIdx.x < 32) tcgen05_dealloc<1, COLUMNS>(*shared);
}

/* A thread's registers to out[thread * COLUMNS]. */
template <int COUNT> __device__ static void keep(uint32_t *out, uint32_t (&r)[COUNT])
{
    tcgen05_wait_ld(r);
    for (int i = 0; i < COUNT; i++) out[threadIdx.x * COLUMNS + i] = r[i];
}

template <tcgen05_shape SHAPE, int REPEAT, tcgen05_width WIDTH>
__device__ static void load(uint32_t *out, uint32_t lane)
{
    __shared__ uint32_t shared;
    uint32_t r[REPEAT * tcgen05_shape_words<SHAPE>::registers];
    tcgen05_ld<SHAPE, REPEAT, WIDTH>(r, begin(&shared) + (lane << 16));
    keep(out, r);
    end(&shared);
}

/* 0, 1, ... of each thread, thread * COLUMNS apart, stored over what was there; then all cells. */
template <tcgen05_shape SHAPE, int REPEAT> __device__ static void store(uint32_t *out, uint32_t lane)
{
    __shared__ uint32_t shared;
    const uint32_t address = begin(&shared);
    uint32_t r[REPEAT * tcgen05_shape_words<SHAPE>::registers], cells[COLUMNS];
    for (uint32_t i = 0; i < sizeof r / sizeof r[0]; i++) r[i] = 0x10000 + threadIdx.x * COLUMNS + i;
    tcgen05_st<SHAPE, REPEAT>(address + (lane << 16), r);
    tcgen05_wait_st();
    tcgen05_ld<SHAPE_32X32B, COLUMNS>(cells, address);
    keep(out, cells);
    end(&shared);
}

#define KERNEL(name, call) \
    extern "C" __global__ void __launch_bounds__(LANES) name(uint32_t *out, uint32_t lane) { call(out, lane); }
KERNEL(load_32x32b, (load<SHAPE_32X32B, 16, WORDS>))
KERNEL(load_16x64b, (load<SHAPE_16X64B, 8, WORDS>))
KERNEL(load_16x128b, (load<SHAPE_16X128B, 4, WORDS>))
KERNEL(load_16x256b, (load<SHAPE_16X256B, 4, WORDS>))
KERNEL(load_halves, (load<SHAPE_32X32B, 16, HALVES>))
KERNEL(store_16x64b, (store<SHAPE_16X64B, 8>))
KERNEL(store_16x128b, (store<SHAPE_16X128B, 4>))
KERNEL(store_16x256b, (store<SHAPE_16X256B, 4>))

extern "C" __global__ void __launch_bounds__(LANES) load_16x32bx2(uint32_t *out, uint32_t lane)
{
    __shared__ uint32_t shared;
    uint32_t r[8];
    tcgen05_ld_16x32bx2<24>(r, begin(&shared) + (lane << 16));
    keep(out, r);
    end(&shared);
}

extern "C" __global__ void __launch_bounds__(LANES) store_16x32bx2(uint32_t *out, uint32_t lane)
{
    __shared__ uint32_t shared;
    const uint32_t address = begin(&shared);
    uint32_t r[8], cells[COLUMNS];
    for (uint32_t i = 0; i < 8; i++) r[i] = 0x10000 + threadIdx.x * COLUMNS + i;
    tcgen05_st_16x32bx2<24>(address + (lane << 16), r);
    tcgen05_wait_st();
    tcgen05_ld<SHAPE_32X32B, COLUMNS>(cells, address);
    keep(out, cells);
    end(&shared);
}
