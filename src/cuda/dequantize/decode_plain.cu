/* Operands that lie plainly as rows of bf16, with the bits of bsmi_decode, and plain scales: one operand or two.
 *
 * A CTA takes some whole rows, which are one stretch of codes, of scales and of bf16, once; CTAs begin in the order of
 * memory, and none is the last for long.  A thread has three octets under way.  What an operand is was told apart by
 * the host: a launch waits for each 128 bytes of its instructions to come, and those of bsmi_decode in front of its
 * first load take longer than decoding a few rows.
 *
 * Rows are written as if their exponents were 0; where a scale of any of a CTA's rows is far out, all of them are
 * written again. */
#include "cuda/scales/plain_scales.cuh"
#include "plain_rows.cuh"

/* What lies plainly: packing, element, scale. */
#define PLAIN_PATHS(X) \
    X(FAST_NIBBLES, BSM_E2M1, BSM_E8M0) \
    X(FAST_NIBBLES, BSM_E2M1, BSM_UE4M3) \
    X(FAST_BYTES, BSM_E4M3, BSM_E8M0) \
    X(FAST_BYTES, BSM_E5M2, BSM_E8M0) \
    X(FAST_BYTES, BSM_INT8, BSM_E8M0) \
    X(FAST_STREAM, BSM_E2M3, BSM_E8M0) \
    X(FAST_STREAM, BSM_E3M2, BSM_E8M0)

__device__ static inline bool write_rows(const bsmi_plain_rows &j, int64_t first_row, int32_t rows)
{
    const bool bands = j.band_bytes != 0;
    switch (j.element << 4 | j.scale) {
#define WAY(packing, element, scale) \
    case element << 4 | scale: \
        return bands ? write_plain_rows<packing, element, scale, true>(j, first_row, rows) \
                     : write_plain_rows<packing, element, scale, false>(j, first_row, rows);
        PLAIN_PATHS(WAY)
#undef WAY
    default: return false;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    bsmi_decode_plain(const __grid_constant__ bsmi_decode_plain_parameters p)
{
    const int32_t cta = (int32_t)blockIdx.x, of_second = cta - p.first_ctas;
    if (p.dependents_first) griddepcontrol_launch_dependents();
    ptx_griddepcontrol_wait();
    if (!p.dependents_first) griddepcontrol_launch_dependents();    /* the next kernel's CTAs may begin wherever these
                                                                       end */
    if (of_second < 0) decode_rows<write_rows>(p.rows[0], p.general.operands[0], cta);
    else if (p.loads_scales != 0)
        load_plain_scales(p.scales, p.general.scales, of_second, (int32_t)gridDim.x - p.first_ctas);
    else decode_rows<write_rows>(p.rows[1], p.general.operands[1], of_second);
}
