/* Quantizing by the recipes and policies that bsmi_quantize has not: bounds of a block's largest magnitude, a smallest
 * scale, squares that share a scale, four over six.  The bits of bsm_quantize, all the exact path; one thread takes a
 * block, or a square, at a time. */
#include "cuda/params/policies.h"
#include "exact_blocks.cuh"
#include "tensor_scale.cuh"

/* Four over six: recipes.c, in its order of sums ------------------------------------------------------------------- */

__device__ static double squared_error(const bsmi_quantize_parameters &p, const block_quantizer &q, const square &of,
                                       uint32_t scale_code)
{
    const bsmi_device_reals &s = p.source;
    const double scale = (double)decode_scale(q.scale, scale_code);
    const bsmi_division by = bsmi_division_of(scale, q.tensor_scale, q.divides);
    const int64_t first = source_index(s, of, of.first_row) + of.block * p.destination.block * s.column_stride;
    const int count = count_of(p.destination, of.block);
    double sum = 0;
    for (int i = 0; i < count; i++) {
        const double x = load_real(s.type, s.data, first + i * s.column_stride);
        if (!isfinite(x)) continue;
        const uint32_t code = encode_element(q.element, x * by.factor / by.divisor, BSM_ROUND_NEAREST_EVEN, true, 0);
        const double error =
            x - bsmi_scaled_value((double)decode_element(q.element, code), scale, q.tensor_scale, q.divides);
        sum += error * error;
    }
    return sum;
}

__device__ static uint32_t four_over_six_code(const bsmi_quantize_parameters &p, const block_quantizer &q,
                                              const square &of, float amax)
{
    const bsmi_fraction r = bsmi_scaled_amax(amax, q.tensor_scale, q.divides);
    const uint32_t six = bsmi_nearest_code(&element_of(q.element), &element_of(BSM_E4M3), r);
    const uint32_t four = bsmi_nearest_code_of_4(&element_of(BSM_E4M3), r);
    if (four == six) return six;
    return squared_error(p, q, of, four) < squared_error(p, q, of, six) ? four : six;
}

/* A block, or a square --------------------------------------------------------------------------------------------- */

__device__ static void quantize_square(const bsmi_policies_parameters &p, const block_quantizer &q,
                                       const scale_places &places, const square &of)
{
    const bsmi_device_matrix &m = p.all.destination;
    const magnitudes found = scan(p.all, of);
    const bool is_nan = found.largest >= 0x7f800000 && p.all.nonfinite == BSM_NONFINITE_PROPAGATE;
    const float amax = bsmi_clamped(p.clamp, __uint_as_float(found.largest_finite));
    uint32_t scale_code = 0;
    if (is_nan) scale_code = q.scale == BSM_E8M0 ? 0xff : 0x7f;
    else if (amax > 0 && q.recipe == BSM_RECIPE_FOUR_OVER_SIX) scale_code = four_over_six_code(p.all, q, of, amax);
    else if (amax > 0) scale_code = exact_scale_code(q, amax);
    scale_code = max(scale_code, (uint32_t)p.smallest_scale);
    unsigned char *scales = m.scales + of.matrix * m.scale_batch_bytes;
    for (int64_t row = of.first_row; row < of.first_row + of.rows; row++) {
        store_row(p.all, q, of, row, is_nan, scale_code);
        if (count_of(m, of.block) > 0)
            scales[place_in(places.row, row) + place_in(places.column, of.block)] = (unsigned char)scale_code;
    }
}

extern "C" __global__ void __launch_bounds__(BSMI_POLICIES_THREADS)
    bsmi_quantize_policies(const __grid_constant__ bsmi_policies_parameters p)
{
    ptx_griddepcontrol_wait();
    const bsmi_device_matrix &m = p.all.destination;
    const float t = find_tensor_scale(p.all, p.clamp);
    if (m.columns == 0) return;
    const block_quantizer q = make_quantizer(m, t, p.all.recipe, p.all.rounding, p.all.nonfinite, p.all.seed, false);
    const scale_places places = make_places(m.layout);
    /* columns that are stored together */
    const int64_t unit = m.packing == BSM_PACKING_GGUF && m.scale == BSM_UE4M3 ? 64 : m.block;
    const int64_t across = (m.columns + unit - 1) / unit * (unit / m.block),
                  down = (m.rows + p.block_rows - 1) / p.block_rows;
    const int64_t all = m.batch * down * across, apart = (int64_t)gridDim.x * BSMI_POLICIES_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * BSMI_POLICIES_THREADS + threadIdx.x; i < all; i += apart) {
        const int64_t first_row = i / across % down * p.block_rows, rest = m.rows - first_row;
        quantize_square(p, q, places,
                        { i / across / down, first_row, i % across, (int)(rest < p.block_rows ? rest : p.block_rows) });
    }
}
