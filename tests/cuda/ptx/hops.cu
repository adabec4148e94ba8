/* Two warps write the same words of shared memory, one after the other, as the warpgroups do that fill a stage of a
 * ring in turn (sm90/mainloop/fused_dequantizer.cuh).  What stands between the writes is the kernel's name. */
#include "cuda/ptx/mbarrier.cuh"
#include "cuda/ptx/threads.cuh"

enum { FIRST_WRITER, RELAY, SECOND_WRITER, ALL_LANES = 32, ONE_LANE = 1 };

struct hops { uint32_t words[32]; uint64_t written, released; };

/* This warp's arrival: of each lane, or of one for all. */
template <int ARRIVALS> __device__ static inline void tell(uint32_t barrier)
{
    if (ARRIVALS == ONE_LANE) __syncwarp();
    if (ARRIVALS == ALL_LANES || threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
}

/* RELAYED: a third warp waits for the first writer, and the second writer for it.  DIRECT: the second waits for the
 * first. */
template <int ARRIVALS, bool RELAYED, bool DIRECT> __device__ static inline void write_in_turn(uint32_t *out)
{
    __shared__ hops memory;
    const uint32_t written = shared_address(&memory.written), released = shared_address(&memory.released),
                   lane = threadIdx.x % 32;
    const uint32_t word = shared_address(&memory.words[lane]);
    if (threadIdx.x == 0) mbarrier_init(written, ARRIVALS), mbarrier_init(released, ARRIVALS);
    __syncthreads();
    if (threadIdx.x / 32 == FIRST_WRITER) {
        store_shared(word, lane);
        tell<ARRIVALS>(written);
    }
    if (threadIdx.x / 32 == RELAY && RELAYED) {
        mbarrier_wait_parity(written, 0);
        tell<ARRIVALS>(released);
    }
    if (threadIdx.x / 32 == SECOND_WRITER) {
        if (RELAYED) mbarrier_wait_parity(released, 0);
        if (DIRECT) mbarrier_wait_parity(written, 0);
        store_shared(word, lane + 100);
    }
    __syncthreads();
    if (threadIdx.x < 32) out[lane] = load_shared(word);
}

#define HOPS(name, arrivals, relayed, direct) \
    extern "C" __global__ void __launch_bounds__(96) hops_##name(uint32_t *out) \
    { \
        write_in_turn<arrivals, relayed, direct>(out); \
    }
HOPS(direct_all_lanes, ALL_LANES, false, true)
HOPS(direct, ONE_LANE, false, true)
HOPS(relayed_all_lanes, ALL_LANES, true, false)
HOPS(relayed, ONE_LANE, true, false)
HOPS(relayed_and_direct, ONE_LANE, true, true)
HOPS(unordered, ONE_LANE, false, false)

/* Relayed by barriers of two warps each. */
extern "C" __global__ void __launch_bounds__(96) hops_relayed_by_bar(uint32_t *out)
{
    __shared__ uint32_t words[32];
    const uint32_t lane = threadIdx.x % 32, word = shared_address(&words[lane]);
    if (threadIdx.x / 32 == FIRST_WRITER) store_shared(word, lane);
    if (threadIdx.x / 32 != SECOND_WRITER) barrier_sync(1, 64);
    if (threadIdx.x / 32 != FIRST_WRITER) barrier_sync(2, 64);
    if (threadIdx.x / 32 == SECOND_WRITER) store_shared(word, lane + 100);
    __syncthreads();
    if (threadIdx.x < 32) out[lane] = load_shared(word);
}
