/* In front of a GEMM kernel that decodes late rows itself: the other rows as bf16, with the bits of bsmi_decode_plain,
 * and what the late ones want before.
 *
 * Those have the exponent 0: the warps that decode them have few registers, and know nothing else.  Which of them can
 * have it, their scales say; a job with a scale that is far out is decoded here, as a whole. */
#include "cuda/params/late_rows.h"
#include "plain_rows.cuh"

__device__ static inline bool write_rows(const bsmi_plain_rows &j, int64_t first_row, int32_t rows)
{
    switch (j.element << 4 | j.scale) {
#define WAY(packing, element, scale) \
    case element << 4 | scale: return write_plain_rows<packing, element, scale, false>(j, first_row, rows);
        BSMI_LATE_PATHS(WAY)
#undef WAY
    default: return false;
    }
}

/* Whether a scale of a job's rows, linear and a multiple of 32 bytes, is outside the bounds: by a warp. */
__device__ static inline bool any_scale_outside(const bsmi_plain_rows &j, const unsigned char *scales, int32_t bytes)
{
    const uint32_t least = j.bounds.least * 0x01010101, most = (j.bounds.least + j.bounds.span) * 0x01010101;
    uint32_t outside = 0;
    for (int32_t i = (int32_t)(threadIdx.x % 32); i < bytes / 4; i += 32) {
        const uint32_t four = __ldg((const uint32_t *)scales + i);
        outside |= __vcmpltu4(four, least) | __vcmpgtu4(four, most);
    }
    return __any_sync(0xffffffff, outside != 0);
}

/* A job for each warp of the CTA. */
__device__ static inline void prepare_late_rows(const bsmi_plain_rows &j, const bsmi_late_rows &l,
                                                const bsmi_decode_operand &general, int32_t cta, int32_t flag)
{
    constexpr int32_t WARPS = THREADS / 32;
    __shared__ bool early[WARPS];
    const int32_t first_job = cta * WARPS, jobs = min(WARPS, l.jobs - first_job), warp = (int32_t)threadIdx.x / 32;
    const int64_t first_row = l.first + (int64_t)first_job * l.job_rows;
    const int32_t bytes = l.chunks * (BSMI_LATE_CHUNK_COLUMNS / 32);
    bool fallback = false;
    if (warp < jobs) early[warp] = any_scale_outside(j, l.scales + (int64_t)(first_job + warp) * bytes, bytes);
    for (int32_t i = (int32_t)threadIdx.x; i < jobs * l.job_rows; i += THREADS) j.exponents[first_row + i] = 0;
    __syncthreads();
    if (threadIdx.x < jobs) l.early[first_job + threadIdx.x] = early[threadIdx.x];
    for (int32_t i = 0; i < jobs; i++) {
        if (!early[i]) continue;
        const int64_t row = first_row + (int64_t)i * l.job_rows;
        const bool outside = write_rows(j, row, l.job_rows);
        if (__syncthreads_or(outside) != 0) fallback |= write_rows_again(general, row, l.job_rows);
    }
    if (threadIdx.x == 0) j.fallback[flag] = fallback;
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    bsmi_decode_early(const __grid_constant__ bsmi_decode_early_parameters p)
{
    const bsmi_decode_plain_parameters &plain = p.plain;
    const int32_t cta = (int32_t)blockIdx.x, of_second = cta - p.early_ctas[0], late = of_second - p.early_ctas[1];
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    if (cta == 0)
        for (int32_t i = (int32_t)threadIdx.x; i < p.count; i += THREADS) p.counts[i] = 0;
    if (of_second < 0) decode_rows<write_rows>(plain.rows[0], plain.general.operands[0], cta);
    else if (late < 0) decode_rows<write_rows>(plain.rows[1], plain.general.operands[1], of_second);
    else if (late < p.late_ctas)
        prepare_late_rows(plain.rows[0], p.late[0], plain.general.operands[0], late, p.early_ctas[0] + late);
    else
        prepare_late_rows(plain.rows[1], p.late[1], plain.general.operands[1], late - p.late_ctas,
                          p.early_ctas[1] + late - p.late_ctas);
}
