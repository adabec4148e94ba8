/* Rows of bf16, some of which are late: warps beside the producer decode them from memory to memory, and the producer
 * waits for those of its tile.
 *
 * A warp has few registers: it decodes octets whose exponents of rows are 0 and nothing else (decode_early.cu has the
 * others), and has a chunk under way while it decodes the one before. */
#pragma once

#include "bf16.cuh"
#include "cuda/dequantize/fast_path_octets.cuh"
#include "cuda/params/late_rows.h"
#include "cuda/ptx/ready.cuh"

enum { LATE_OCTETS = BSMI_LATE_CHUNK_COLUMNS / 8 / 32 };      /* that a lane has under way */

/* A chunk on its way: octet 32 i + lane, and scales of all lanes' octets. */
template <fast_packing packing, int scale_kind> struct late_chunk {
    octet codes[LATE_OCTETS];
    uint32_t scales;                      /* e8m0: number `lane`; ue4m3: numbers 2 lane and 2 lane + 1 */

    __device__ inline void load(const unsigned char *from, const unsigned char *scales_from)
    {
#pragma unroll
        for (int i = 0; i < LATE_OCTETS; i++) {
            if (packing == FAST_NIBBLES) codes[i] = { __ldg((const uint32_t *)from + 32 * i), 0 };
            else {
                const uint2 two = __ldg((const uint2 *)from + 32 * i);
                codes[i] = { two.x, two.y };
            }
        }
        scales = scale_kind == BSM_UE4M3 ? __ldg((const uint16_t *)scales_from) : __ldg(scales_from);
    }
    __device__ inline uint32_t scale_of(int i, uint32_t lane) const
    {
        const uint32_t there = __shfl_sync(0xffffffff, scales, i * 8 + lane / 4);
        return scale_kind == BSM_UE4M3 ? there >> (lane / 2 % 2 * 8) & 0xff : there;
    }
};

/* `chunks` chunks from octet `first` of the late rows on, whose e8m0 scales are normal numbers of bf16. */
template <fast_packing packing, int element, int scale_kind>
__device__ static inline void decode_chunks(const bsmi_late_rows &l, int64_t first, int32_t chunks, uint32_t lane)
{
    constexpr int OCTET = packing == FAST_NIBBLES ? 4 : 8, SCALES = scale_kind == BSM_UE4M3 ? 2 : 1;
    const unsigned char *codes = l.codes + (first + lane) * OCTET,
                        *scales = l.scales + first / (scale_kind == BSM_UE4M3 ? 2 : 4) + lane * SCALES;
    uint16_t *to = l.decoded + (first + lane) * 8;
    late_chunk<packing, scale_kind> next;
    next.load(codes, scales);
#pragma unroll 1
    for (int32_t left = chunks; left > 0; left--) {
        const late_chunk<packing, scale_kind> chunk = next;
        codes += BSMI_LATE_CHUNK_COLUMNS / 8 * OCTET, scales += 32 * SCALES;
        if (left > 1) next.load(codes, scales);
#pragma unroll
        for (int i = 0; i < LATE_OCTETS; i++) {
            bool special;
            uint4 v = decode_fast<packing, element>(chunk.codes[i], 0, false, &special);
            if (special) v = mend_special<element>(chunk.codes[i], v);
            const uint32_t scale = chunk.scale_of(i, lane);
            ptx_store_16(to + 32 * 8 * i,
                         multiply(v, scale_kind == BSM_UE4M3 ? scale_pair(BSM_UE4M3, scale, 0) : scale * 0x00800080));
        }
        to += BSMI_LATE_CHUNK_COLUMNS;
    }
}

__device__ static inline void decode_job(const bsmi_late_rows &l, int32_t job, uint32_t lane)
{
    const int64_t first = (int64_t)job * l.chunks * (BSMI_LATE_CHUNK_COLUMNS / 8);
    switch (l.element << 4 | l.scale) {
#define WAY(packing, element, scale) \
    case element << 4 | scale: decode_chunks<packing, element, scale>(l, first, l.chunks, lane); return;
        BSMI_LATE_PATHS(WAY)
#undef WAY
    }
}

/* Until rows [first, first + ROWS) of so many are there. */
template <int ROWS> __device__ static inline void await_rows(const bsmi_late_rows &l, int32_t first, int32_t rows)
{
    const int32_t end = l.jobs == 0 ? 0 : min(first + ROWS, rows) - l.first;
    for (int32_t row = max(first - l.first, 0) & -BSMI_LATE_PANEL_ROWS; row < end; row += BSMI_LATE_PANEL_ROWS) {
        const int32_t panel = row / BSMI_LATE_PANEL_ROWS, before = panel << l.panel_shift;
        const uint32_t wanted = (uint32_t)min(1 << l.panel_shift, l.jobs - before);
        while (load_acquire_gpu(l.ready + panel) < wanted) nanosleep(64);
    }
}

struct operand_late_rows : operand_bf16 {
    static constexpr int PRODUCER_REGISTERS = 56, CONSUMER_REGISTERS = 224;

    /* A warp takes jobs until all are taken.  It waits for nobody, and jobs are taken in the order in which tiles want
     * them: what a producer waits for will be there, whichever CTAs have found a place. */
    __device__ static inline void decode(const bsmi_late_rows_parameters &p)
    {
        const uint32_t lane = threadIdx.x % 32;
        const int32_t of_b = p.late[1].jobs, all = of_b + p.late[0].jobs;
        if (all == 0) return;
        griddepcontrol_wait();
        int32_t next = lane == 0 ? (int32_t)atomicAdd(p.taken, 1) : 0;
        for (;;) {
            const int32_t job = __shfl_sync(0xffffffff, next, 0);
            if (job >= all) return;
            if (lane == 0) next = (int32_t)atomicAdd(p.taken, 1);  /* on its way meanwhile */
            const bsmi_late_rows &l = p.late[job < of_b];
            const int32_t number = job < of_b ? job : job - of_b;
            if (l.early == nullptr || l.early[number] == 0) decode_job(l, number, lane);
            __syncwarp();
            if (lane == 0) red_release_gpu_add(l.ready + (number >> l.panel_shift), 1);
        }
    }

    template <class CONFIG>
    __device__ static inline void await(const bsmi_late_rows_parameters &p, const gemm_tile &tile)
    {
        const bsmi_epilogue_parameters &e = p.shared_memory.epilogue;
        await_rows<CONFIG::ROWS>(p.late[0], tile.row, (int32_t)e.m);
        await_rows<CONFIG::COLUMNS>(p.late[1], tile.column, (int32_t)e.n);
        fence_proxy_async();                                  /* ordinary stores wrote what TMA reads */
    }
};
