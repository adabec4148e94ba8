/* The epilogue of swapped instances: a lane of the accumulator is a column of D, so a thread has one column, CHUNK rows
 * at a time, and a warp stores 32 neighbours of a row.  The formulas are those of cuda/epilogue/gemm_epilogue.cuh. */
#pragma once

#include "cuda/epilogue/gemm_amax.cuh"
#include "cuda/epilogue/gemm_quantized.cuh"
#include "cuda/epilogue/gemm_store.cuh"
#include "gemm_parts.cuh"

/* What belongs to this thread's column. */
struct gemm_column {
    int32_t column, exponent;
    float factor, bias;
    bool is_stored;
};

__device__ static inline gemm_column gemm_column_of(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                                    const gemm_tile &tile)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    gemm_column c = { tile.column + (int32_t)(threadIdx.x % 128), 0, finish.f, -0.0f, false };
    if (c.column >= e.n) return c;
    if (e.b_exponents != nullptr) c.exponent = e.b_exponents[tile.matrix * e.b_exponent_step + c.column];
    if (finish.column_factors) c.factor = factor_of(finish, e.alpha[c.column]);
    if (finish.column_biases) c.bias = load_bias(e, tile.matrix * e.bias_batch_pitch + c.column);
    c.is_stored = c.exponent != BSMI_ROW_FALLBACK;
    return c;
}

/* t = f S + (beta C + bias), with what belongs to the row, which is the same for the whole warp. */
__device__ static inline float finish_sum(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                          const gemm_column &c, const gemm_tile &tile, int32_t row, int32_t exponent,
                                          float sum)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    if (e.a_exponents != nullptr || e.b_exponents != nullptr)
        sum = times_power_of_two(sum, bsmi_sum_exponent(exponent, c.exponent));
    if (finish.changes) {
        const bool c_is_fp32 = e.c_element == BSM_FP32;
        float factor = c.factor, addend = c.bias;
        if (e.alpha != nullptr && e.alpha_per == BSM_PER_ROW) factor = factor_of(finish, e.alpha[row]);
        if (e.alpha != nullptr && e.alpha_per == BSM_PER_BATCH) factor = factor_of(finish, e.alpha[tile.matrix]);
        if (e.bias != nullptr && e.bias_per == BSM_PER_ROW)
            addend = load_bias(e, (e.grouped ? 0 : tile.matrix * e.bias_batch_pitch) + row);
        if (finish.beta != 0) {
            const unsigned char *of_row = e.c + (e.grouped ? 0 : tile.matrix * e.c_batch_bytes) + row * e.c_row_bytes;
            addend =
                fmaf(finish.beta,
                     load_number(of_row + (int64_t)c.column * (c_is_fp32 ? 4 : 2), c_is_fp32, e.c_element == BSM_BF16),
                     addend);
        }
        sum = fmaf(factor, sum, addend);
    }
    return isnan(sum) ? __int_as_float(0x7fc00000) : sum;
}

/* Finishes the sums of rows that D has, raises amax to their magnitudes, and tells which those are: bit i for
 * sums[i]. */
template <class CONFIG>
__device__ static inline uint32_t finish_column(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                                const gemm_tile &tile, const gemm_column &c, int32_t first_row,
                                                float (&sums)[CONFIG::SUMS], uint32_t &amax)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    uint32_t exists = 0;
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i++) {
        const int32_t row = first_row + i;
        if (row < tile.row_begin || row >= tile.row_end) continue;
        const int32_t exponent = e.a_exponents == nullptr ? 0 : e.a_exponents[tile.matrix * e.a_exponent_step + row];
        if (!c.is_stored || exponent == BSMI_ROW_FALLBACK) continue;
        if (p.direct) sums[i] = finish_sum(p, finish, c, tile, row, exponent, sums[i]);
        if (CONFIG::BLOCKS > 0 && p.direct && e.activation == BSM_ACT_RELU) sums[i] = relu(sums[i]);
        if (CONFIG::BLOCKS > 0 && p.direct && e.amax != nullptr) amax = raise_amax(amax, sums[i]);
        exists |= 1u << i;
    }
    return exists;
}

template <class CONFIG>
__device__ static inline void store_column(const bsmi_blackwell_parameters &p, const gemm_job &job,
                                           const gemm_column &c, int32_t first_row, uint32_t exists,
                                           const float (&sums)[CONFIG::SUMS])
{
    gemm_output output = gemm_output_of(p, job.tile.matrix);
    if (p.split_k) output.data += job.part * p.epilogue.sums_part_pitch * 4;
    const int64_t bytes = output.element == BSM_FP32 ? 4 : 2;
#pragma unroll
    for (int i = 0; i < CONFIG::SUMS; i++)
        if (exists >> i & 1)
            store_pair(output.data + (first_row + i) * output.row_bytes + c.column * bytes, output.element, sums[i], 0,
                       true, false);
}

/* Eight rows at a time, of which a warp has 32 columns. */
template <class CONFIG>
__device__ static inline void quantize_column(const bsmi_blackwell_parameters &p, const gemm_tile &tile,
                                              const gemm_column &c, const gemm_quantizer &quantizer, int32_t first_row,
                                              uint32_t exists, const float (&sums)[CONFIG::SUMS])
{
#pragma unroll
    for (int first = 0; first < CONFIG::SUMS; first += 8) {
        eight t;
#pragma unroll
        for (int i = 0; i < 8; i++) t.x[i] = exists >> (first + i) & 1 ? sums[first + i] : 0;
        store_columns_quantized(p, quantizer, tile, first_row + first, c.column - (int32_t)(threadIdx.x % 32), t);
    }
}

/* Four warps, each with the 32 lanes that it can reach. */
template <class CONFIG>
__device__ static inline void finish_swapped(const bsmi_blackwell_parameters &p, const gemm_finish &finish,
                                             const gemm_job &job, const gemm_quantizer *quantizer, uint32_t accumulator,
                                             uint32_t drained, uint32_t &amax)
{
    const gemm_column column = gemm_column_of(p, finish, job.tile);
    const uint32_t lanes = accumulator + (threadIdx.x % 128 / 32 * 32 << 16);
#pragma unroll 1
    for (int chunk = 0; chunk < CONFIG::CHUNKS; chunk++) {
        uint32_t words[CONFIG::CHUNK];
        float sums[CONFIG::SUMS];
        tcgen05_ld<SHAPE_32X32B, CONFIG::CHUNK>(words, lanes + chunk * CONFIG::CHUNK);
        tcgen05_wait_ld(words);
#pragma unroll
        for (int i = 0; i < CONFIG::SUMS; i++) sums[i] = __uint_as_float(words[i]);
        if (chunk == CONFIG::CHUNKS - 1) release_accumulator<CONFIG>(drained);
        if (!add_parts<CONFIG>(p, job, chunk, sums)) continue;
        const int32_t row = job.tile.row + chunk * CONFIG::CHUNK;
        const uint32_t exists = finish_column<CONFIG>(p, finish, job.tile, column, row, sums, amax);
        if (CONFIG::BLOCKS > 0 && quantizes(p))
            quantize_column<CONFIG>(p, job.tile, column, *quantizer, row, exists, sums);
        else store_column<CONFIG>(p, job, column, row, exists, sums);
    }
}
