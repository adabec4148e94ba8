/* Kernel bsmi_quantize_row_and_column_quotients: both_powers.cuh for NVFP4 with a tensor scale t in memory, or none.
 *
 * What a CTA does first is short: all of it is in fp32, and a thread makes a factor of each table.
 * Factors are off by less than 2^-22 + 2^-24 of themselves, and quotients by 2^-24 more.  So what fast_bf16.cuh moves
 * by 4 last places is moved by 8 here, 2^-21 to 2^-20, which is less than the 2^-18 that tell close numbers from
 * others. */
#ifndef BSMI_ROW_AND_COLUMN_QUOTIENTS_CUH
#define BSMI_ROW_AND_COLUMN_QUOTIENTS_CUH

#include "row_and_column_powers.cuh"
#include "cuda/ptx/narrow.cuh"

#include <cuda_fp16.h>

struct quotients_job {
    static constexpr bool ALWAYS_STAGED = true;
    static constexpr uint32_t LENGTH = 16;
    both_constants constants;
    int path;                              /* BF16_NVFP4, BF16_NVFP4_POWER, NVFP4_SHORT, or BF16_NONE for the exact
                                             one */
    struct { float factors[128]; } bf16;
};

/* side_of_short of fast_bf16.cuh.  The sign of the gap is right: it is rounded once.  over: 1 / t, roughly. */
__device__ static inline int side_of_eight_bits(float number, float t, float over, bool divides)
{
    const float there = number * (divides ? over : t),
                near = __uint_as_float((__float_as_uint(there) + 0x8000) & 0xffff0000);
    const float gap = divides ? __fmaf_rn(near, t, -number) : __fmaf_rn(-number, t, near);
    if (fabsf(gap) > (divides ? number : there) * 0x1p-18f) return 0;
    return gap > 0 ? 1 : gap < 0 ? -1 : CLOSE_EQUAL;
}

__device__ static inline float moved(float factor, int nudge)
{
    return __uint_as_float(__float_as_uint(factor) + (uint32_t)(8 * nudge));
}

/* By all threads. */
__device__ static inline void make_quotients_job(const bsmi_quantize_parameters &p, float t, quotients_job *job)
{
    const bool divides = p.destination.tensor_scale_divides != 0;
    const int lane = (int)threadIdx.x % 32;
    const float over = __fdividef(1, t);
    const int element = side_of_eight_bits((float)(((lane & 3) * 2 + 1) * (8 + (lane >> 2))), t, over, divides);
    const int scale = side_of_eight_bits((float)(((lane & 15) * 2 + 1) * 6), t, over, divides);
    const uint32_t ups = __ballot_sync(0xffffffff, element == 1), downs = __ballot_sync(0xffffffff, element == -1);
    const int of_amax = (int)__any_sync(0xffffffff, scale == 1) - (int)__any_sync(0xffffffff, scale == -1);
    const bool is_short = __any_sync(0xffffffff, element == CLOSE_EQUAL || scale == CLOSE_EQUAL);
    /* three bits behind the leading one */
    const uint32_t code = threadIdx.x, half = ptx_cvt_f16x2_e4m3x2((uint16_t)code), at = (half >> 7 & 7) * 4;
    const float of_code = __half2float(__ushort_as_half((unsigned short)half));
    const int nudge = is_short ? 0 : (int)((ups >> at & 15) != 0) - (int)((downs >> at & 15) != 0);
    const float factor = moved(divides ? __fdividef(t, of_code) : __fdividef(1, of_code * t), nudge) * 0x1p-14f;
    job->bf16.factors[code] = code == 0 ? 0 : factor;
    if (threadIdx.x != 0) return;
    const uint32_t even = p.destination.packing == BSM_PACKING_HIGH_FIRST ? 0x7632 : 0x5410;
    const float of_largest = moved(divides ? t * (1.0f / 6) : __fdividef(1, 6 * t), is_short ? 0 : of_amax);
    job->constants = { 0, 0, 0, 0, 0, 0x7f7f7f7f, 0x80008000, 0, even, 0x5410 + 0x7632 - even, 0, of_largest };
    job->path = !(t > 0x1p-100f && t < 0x1p100f)          ? BF16_NONE
               : (__float_as_uint(t) & 0x7fffff) == 0 ? BF16_NVFP4_POWER
               : is_short                             ? NVFP4_SHORT
                                                      : BF16_NVFP4;
}

__device__ static inline float read_early(const bsmi_quantize_parameters &p, const quotients_job *)
{
    return given_tensor_scale(p.destination);
}

__device__ static inline void make_jobs(const bsmi_row_and_column_parameters &p, float t_of_rows, float t_of_columns,
                                        quotients_job *jobs)
{
    make_quotients_job(p.rows, t_of_rows, &jobs[0]), make_quotients_job(p.columns, t_of_columns, &jobs[1]);
}

template <bool ROWS>
__device__ static inline uint32_t quantize_tile(const bsmi_quantize_parameters &p, const quotients_job &job,
                                                const uint4 *tile, const powers_places &at, unsigned char *stage)
{
    switch (job.path) {
    case BF16_NVFP4: return quantize_one_path<BF16_NVFP4, ROWS>(p, job, tile, at, stage);
    case BF16_NVFP4_POWER: return quantize_one_path<BF16_NVFP4_POWER, ROWS>(p, job, tile, at, stage);
    case NVFP4_SHORT: return quantize_one_path<NVFP4_SHORT, ROWS>(p, job, tile, at, stage);
    default: return 15;
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_ROW_AND_COLUMN_THREADS, 5)
    bsmi_quantize_row_and_column_quotients(const __grid_constant__ bsmi_row_and_column_parameters p)
{
    quantize_chunks<quotients_job>(p);
}

#endif
