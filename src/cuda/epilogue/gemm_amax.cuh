/* What comes behind t = f S + (beta C + bias) where the sums are, because it takes a few instructions: relu, and the
 * largest magnitude. Products of codes alone: the others may leave rows out.  Activations with exponentials are
 * bsmi_finish's: docs/design/blackwell.md says why. */
#pragma once

#include "gemm_epilogue.cuh"

__device__ static inline bool goes_on(const bsmi_gemm_parameters &p)
{
    return p.direct && (p.epilogue.activation != BSM_ACT_NONE || p.epilogue.amax != nullptr);
}

/* NaN stays. */
__device__ static inline float relu(float t) { return t <= 0 ? 0 : t; }

/* As bits of a float; the one NaN is larger than all numbers. */
__device__ static inline uint32_t raise_amax(uint32_t amax, float t)
{
    return max(amax, __float_as_uint(t) & 0x7fffffff);
}

/* Of what a thread has of a tile, D's rows and columns count. */
template <int SUMS>
__device__ static inline void apply_relu_and_amax(const bsmi_epilogue_parameters &e, const gemm_part &part,
                                                  float (&sums)[SUMS], uint32_t &amax)
{
    if (e.activation == BSM_ACT_RELU) {
#pragma unroll
        for (int i = 0; i < SUMS; i++) sums[i] = relu(sums[i]);
    }
    if (e.amax == nullptr) return;
    const int32_t columns = (int32_t)e.n - part.column;
    uint32_t of_row[2] = { 0, 0 };
#pragma unroll
    for (int i = 0; i < SUMS; i += 4) {
        const uint32_t first = i * 2 < columns ? 0x7fffffff : 0, second = i * 2 + 1 < columns ? 0x7fffffff : 0;
#pragma unroll
        for (int half = 0; half < 2; half++)
            of_row[half] = max(of_row[half], max(__float_as_uint(sums[i + 2 * half]) & first,
                                                 __float_as_uint(sums[i + 2 * half + 1]) & second));
    }
    if (has_row(part, part.row)) amax = max(amax, of_row[0]);
    if (has_row(part, part.row + 8)) amax = max(amax, of_row[1]);
}

/* Of a warp's numbers, when it has finished its last tile. */
__device__ static inline void store_amax(const bsmi_gemm_parameters &p, uint32_t amax)
{
    if (!p.direct || p.epilogue.amax == nullptr) return;
    amax = __reduce_max_sync(0xffffffff, amax);
    if (threadIdx.x % 32 == 0 && amax > 0) atomicMax(p.epilogue.amax, amax);
}
