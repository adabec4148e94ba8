/* The generic epilogue: S in memory to D, everything of the contract (include/blockscale/matmul.h), with the formulas
 * and the rounding of src/cpu/epilogue.c and src/cpu/epilogue.
 *
 * CTA: 256 threads, in groups of 32 .. 256 threads that take a row of D each, eight columns of D a thread and step. */
#include "finish_sums.cuh"
#include "gated_rows.cuh"

/* What is the same along a row. */
struct finish_row {
    int64_t matrix, row;
    const float *sums;
    int32_t a_exponent;
    const int32_t *b_exponents;           /* NULL: all 0 */
    float factor;                         /* unless alpha is per column */
    bool adds_c, adds_bias;
    float beta, bias;                     /* bias: per row */
    const unsigned char *c;
    int64_t bias_first;                   /* per column */
};

struct row_threads { int thread, threads, octets, padded_octets, last_count; };

__device__ static inline int count_in(const row_threads &w, int number)
{
    return number < w.octets - 1 ? 8 : number == w.octets - 1 ? w.last_count : 0;
}

__device__ static finish_row begin_row(const bsmi_epilogue_parameters &e, int64_t number)
{
    finish_row r = {};
    r.matrix = e.grouped ? find_group(e, number) : number / e.m;
    r.row = e.grouped ? number : number - r.matrix * e.m;
    r.sums = e.sums + (e.grouped ? 0 : r.matrix * e.sums_batch_pitch) + r.row * e.sums_pitch;
    r.a_exponent =
        e.a_exponents == nullptr || e.sums_are_scaled ? 0 : e.a_exponents[r.matrix * e.a_exponent_step + r.row];
    r.b_exponents = e.b_exponents == nullptr ? nullptr : e.b_exponents + r.matrix * e.b_exponent_step;
    if (e.alpha == nullptr) r.factor = factor_of(e, 1);
    else if (e.alpha_per != BSM_PER_COLUMN)
        r.factor = factor_of(e, e.alpha[e.alpha_per == BSM_PER_ROW     ? r.row
                                        : e.alpha_per == BSM_PER_BATCH ? r.matrix
                                                                       : 0]);
    r.beta = e.beta == nullptr || e.c == nullptr ? 0 : *e.beta;
    r.adds_c = r.beta != 0;
    r.c = e.c + r.matrix * e.c_batch_bytes + r.row * e.c_row_bytes;
    r.adds_bias = e.bias != nullptr;
    r.bias_first = r.matrix * e.bias_batch_pitch;
    if (r.adds_bias && e.bias_per == BSM_PER_ROW)
        r.bias = (float)load_real(e.bias_type, e.bias, (e.grouped ? 0 : r.bias_first) + r.row);
    return r;
}

/* t before the activation: fma(f, S, fma(beta, C, bias)), terms that are absent left out. */
__device__ static inline float finish_sum(const bsmi_epilogue_parameters &e, const finish_row &r, float sum,
                                          int64_t column)
{
    if (r.a_exponent != 0 || r.b_exponents != nullptr) {
        const int exponent = bsmi_sum_exponent(r.a_exponent, r.b_exponents == nullptr ? 0 : r.b_exponents[column]);
        if (exponent != 0) sum = __double2float_rn((double)sum * bsmi_double_power_of_two(exponent));
    }
    float factor = r.factor;
    if (e.alpha != nullptr && e.alpha_per == BSM_PER_COLUMN) factor = factor_of(e, e.alpha[column]);
    if (!r.adds_c && !r.adds_bias) return factor * sum;
    float addend = r.bias;
    if (r.adds_bias && e.bias_per != BSM_PER_ROW) addend = (float)load_real(e.bias_type, e.bias, r.bias_first + column);
    if (r.adds_c) {
        const int type = e.c_element == BSM_FP32   ? BSM_REAL_FP32
                         : e.c_element == BSM_BF16 ? BSM_REAL_BF16
                                                   : BSM_REAL_FP16;
        const float c = (float)load_real(type, r.c, column);
        addend = r.adds_bias ? fmaf(r.beta, c, addend) : r.beta * c;
    }
    return fmaf(factor, sum, addend);
}

__device__ __noinline__ static float activate(int activation, float t)
{
    return __double2float_rn(bsmi_activation((bsm_activation)activation, (double)t));
}

/* S, whose parts are added in their order. */
__device__ static inline float load_sum(const bsmi_epilogue_parameters &e, const finish_row &r, int64_t column)
{
    float sum = r.sums[column];
    for (int part = 1; part < e.sums_parts; part++) sum += r.sums[part * e.sums_part_pitch + column];
    return sum;
}

/* Whether sums of a row become t by one factor, and biases at most. */
__device__ static inline bool has_one_factor(const bsmi_epilogue_parameters &e, const finish_row &r)
{
    return r.a_exponent == 0 && r.b_exponents == nullptr && !r.adds_c
           && (e.alpha == nullptr || e.alpha_per != BSM_PER_COLUMN);
}

/* t before the activation of columns [first, + count), count <= 8, of the product; the rest zeros. */
__device__ static eight finished_sums(const bsmi_epilogue_parameters &e, const finish_row &r, int64_t first, int count)
{
    eight t;
    if (count == 8 && e.sums_part_pitch % 4 == 0 && aligned_to(r.sums + first, 16)) {
        t = load_eight_sums(e, r.sums + first);
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++) t.x[i] = i < count ? load_sum(e, r, first + i) : 0;
    }
    const uint16_t *biases = (const uint16_t *)e.bias + r.bias_first + first;
    if (count == 8 && has_one_factor(e, r) && r.adds_bias && e.bias_per != BSM_PER_ROW && e.bias_type == BSM_REAL_BF16
        && aligned_to(biases, 16)) {
        add_biases(t, r.factor, biases);
        return t;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count) t.x[i] = finish_sum(e, r, t.x[i], first + i);
    return t;
}

/* Columns [8 number, + count) of a row of D; the rest zeros. */
__device__ static eight finish_eight(const bsmi_epilogue_parameters &e, const finish_row &r, int number, int count)
{
    const int64_t first = (int64_t)number * 8;
    if (e.gate == BSM_GATE_NONE) {
        eight t = finished_sums(e, r, first, count);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < count && e.activation != BSM_ACT_NONE) t.x[i] = activate(e.activation, t.x[i]);
        return t;
    }
    const bool split = e.gate == BSM_GATE_SPLIT, quick = has_quick_gate(e);
    const eight a = finished_sums(e, r, split ? first : 2 * first, split ? count : min(2 * count, 8)),
                b = finished_sums(e, r, split ? e.n / 2 + first : 2 * first + 8, split ? count : max(2 * count - 8, 0));
    eight t;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float gate = split ? a.x[i] : i < 4 ? a.x[2 * i % 8] : b.x[2 * i % 8],
                    up = split ? b.x[i] : i < 4 ? a.x[2 * i % 8 + 1] : b.x[2 * i % 8 + 1];
        bool sure = false;
        t.x[i] = 0;
        if (i >= count) continue;
        if (quick) t.x[i] = quick_gated(e.activation == BSM_ACT_SWIGLU_CLAMPED, gate, up, &sure);
        if (!sure) t.x[i] = activate_gated(e.activation, gate, up);
    }
    return t;
}

/* Largest |t| as the bits of a float; any NaN as the canonical one, which is larger than everything. */
__device__ static inline uint32_t raise_amax(uint32_t amax, const eight &t, int count)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (i < count) amax = max(amax, min(__float_as_uint(t.x[i]) & 0x7fffffff, 0x7fc00000u));
    return amax > 0x7f800000 ? 0x7fc00000 : amax;
}

/* D without scales: rounded once, NaN canonical. ------------------------------------------------------------------- */

__device__ static inline uint32_t fp16_code(float t) { return isnan(t) ? 0x7e00 : ptx_cvt_f16x2(0, t) & 0xffff; }

__device__ static inline uint32_t fp32_code(float t) { return isnan(t) ? 0x7fc00000 : __float_as_uint(t); }

/* t / tensor scale, or t * it where it divides, by way of double: store.c has the reason why that rounds once. */
__device__ static inline double unscaled(const bsmi_device_matrix &d, float t)
{
    if (d.tensor_scale == nullptr) return (double)t;
    const double scale = (double)*d.tensor_scale;
    return d.tensor_scale_divides ? (double)t * scale : (double)t / scale;
}

__device__ static inline uint32_t plain_code(const bsmi_epilogue_parameters &e, float t)
{
    const bsmi_device_matrix &d = e.d;
    if (d.tensor_scale == nullptr && d.bits > 8)
        return d.element == BSM_FP32 ? fp32_code(t) : d.element == BSM_BF16 ? bf16_code(t) : fp16_code(t);
    return encode_element(d.element, unscaled(d, t), BSM_ROUND_NEAREST_EVEN, d.bits == 8 && !e.d_no_saturate, 0);
}

__device__ static inline void store_plain(const bsmi_epilogue_parameters &e, unsigned char *row, int number, int count,
                                          const eight &t)
{
    const int bytes = e.d.bits / 8;
    unsigned char *to = row + (int64_t)number * 8 * bytes;
    uint32_t codes[8];
#pragma unroll
    for (int i = 0; i < 8; i++) codes[i] = i < count ? plain_code(e, t.x[i]) : 0;
    if (bytes == 4) {
        if (count == 8 && aligned_to(to, 16)) {
            ((uint4 *)to)[0] = make_uint4(codes[0], codes[1], codes[2], codes[3]);
            ((uint4 *)to)[1] = make_uint4(codes[4], codes[5], codes[6], codes[7]);
            return;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < count) ((uint32_t *)to)[i] = codes[i];
    } else if (bytes == 2) {
        if (count == 8 && aligned_to(to, 16)) {
            *(uint4 *)to = make_uint4(codes[0] | codes[1] << 16, codes[2] | codes[3] << 16, codes[4] | codes[5] << 16,
                                      codes[6] | codes[7] << 16);
            return;
        }
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < count) ((uint16_t *)to)[i] = (uint16_t)codes[i];
    } else {
        const octet o = { codes[0] | codes[1] << 8 | codes[2] << 16 | codes[3] << 24,
                          codes[4] | codes[5] << 8 | codes[6] << 16 | codes[7] << 24 };
        if (count == 8 && aligned_to(to, 8)) *(uint2 *)to = make_uint2(o.low, o.high);
        else store_bytes(to, o, count);
    }
}

/* Rows ------------------------------------------------------------------------------------------------------------- */

__device__ static uint32_t finish(const bsmi_epilogue_parameters &e, const finish_row &r, const row_threads &w,
                                  const block_quantizer &q, const scale_places &places, uint32_t amax)
{
    const bsmi_device_matrix &d = e.d;
    const int64_t batch = e.grouped ? 0 : r.matrix;
    unsigned char *row = d.data + batch * d.batch_bytes + r.row * d.row_bytes;
    unsigned char *scales =
        d.block == 0 ? nullptr : d.scales + batch * d.scale_batch_bytes + place_in(places.row, r.row);
    for (int base = 0; base < w.padded_octets; base += w.threads) {          /* whole warps go together */
        const int number = base + w.thread, count = count_in(w, number);
        const eight t = finish_eight(e, r, number, count);
        amax = raise_amax(amax, t, count);
        if (d.block != 0)
            store_quantized(d, places.column, row, scales, number, count, w.padded_octets, q,
                            quantize_to_nearest(q, t));
        else if (count > 0) store_plain(e, row, number, count, t);
    }
    return amax;
}

extern "C" __global__ void __launch_bounds__(BSMI_FINISH_THREADS, 3)
    bsmi_finish(const __grid_constant__ bsmi_finish_parameters p)
{
    __shared__ block_quantizer q;
    ptx_griddepcontrol_wait();
    const bsmi_epilogue_parameters &e = p.epilogue;
    const bsmi_device_matrix &d = e.d;
    if (d.columns == 0) return;
    const int64_t rows = e.grouped ? e.group_starts[e.matrices] : e.m * e.matrices;
    if (has_gated_rows(e)) {
        if (e.activation == BSM_ACT_SWIGLU_CLAMPED) finish_gated_rows<true>(e, rows);
        else finish_gated_rows<false>(e, rows);
        return;
    }
    scale_places places = {};
    if (d.block != 0) {
        if (threadIdx.x == 0)
            q = make_quantizer(d, d.tensor_scale == nullptr ? 1 : *d.tensor_scale, e.d_recipe, BSM_ROUND_NEAREST_EVEN,
                               e.d_nonfinite, 0, false);
        places = make_places(d.layout);
        __syncthreads();
    }
    row_threads w;
    const int unit = d.block == 0 ? 1 : d.packing != BSM_PACKING_GGUF ? d.block / 8 : d.scale == BSM_E8M0 ? 4 : 8;
    w.octets = (int)((d.columns + 7) / 8), w.padded_octets = (w.octets + unit - 1) / unit * unit;
    w.last_count = (int)(d.columns - (int64_t)(w.octets - 1) * 8);
    w.threads = 32;
    while (w.threads < BSMI_FINISH_THREADS && w.threads * 2 < w.octets) w.threads *= 2;
    w.thread = (int)threadIdx.x % w.threads;
    const int groups = BSMI_FINISH_THREADS / w.threads, group = (int)threadIdx.x / w.threads;
    uint32_t amax = 0;
    for (int64_t number = (int64_t)blockIdx.x * groups + group; number < rows; number += (int64_t)gridDim.x * groups)
        amax = finish(e, begin_row(e, number), w, q, places, amax);
    if (e.amax == nullptr) return;
    amax = __reduce_max_sync(0xffffffff, amax);
    if (threadIdx.x % 32 == 0 && amax > 0) atomicMax(e.amax, amax);
}
