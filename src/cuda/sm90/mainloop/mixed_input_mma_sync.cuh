/* Products of a warp by mma.sync: 16 decoded rows of B in registers, and rows of A in shared memory, which ldmatrix
 * reads. */
#pragma once

#include "cuda/ptx/mma_sync.cuh"
#include "mixed_input_multiply.cuh"

/* Of A's rows, 128 bytes each, swizzled as TMA does it: four matrices of eight rows and 16 bytes are the second operand
 * of a product of 16 rows, in the order of K, then of rows; or of two products of eight rows. */
template <int ROWS> __device__ static inline uint32_t place_of_rows(uint32_t lane)
{
    const uint32_t row = lane % 8, number = lane / 8;
    return ROWS == 8 ? row * 128 + (number ^ row) * 16 : (number / 2 * 8 + row) * 128 + (number % 2 ^ row) * 16;
}

/* Products of a step that one load serves, and words of each load. */
template <class CONFIG> struct row_fragments {
    static constexpr int PRODUCTS = CONFIG::ROWS == 8 ? 2 : 1, LOADS = (CONFIG::ROWS + 15) / 16;
    uint32_t of[LOADS][4];
};

/* Of products from PRODUCTS * number on of the step whose rows lie at `rows`: the number is bits of an address that
 * nothing else sets. */
template <class CONFIG>
__device__ static inline void load_rows_of_products(uint32_t rows, int number, row_fragments<CONFIG> &fragments)
{
#pragma unroll
    for (int i = 0; i < fragments.LOADS; i++)
        ldmatrix_x4(fragments.of[i], (rows ^ number * fragments.PRODUCTS * 32) + i * 16 * 128);
}

template <class CONFIG>
__device__ static inline void multiply_product(const uint32_t *weights, const row_fragments<CONFIG> &rows, int product,
                                               tile_sums<CONFIG> &sums)
{
    const uint32_t a[4] = { weights[0], weights[1], weights[2], weights[3] };
#pragma unroll
    for (int i = 0; i < CONFIG::ROWS / 8; i++) {
        const int pair = rows.PRODUCTS == 2 ? product % 2 : i % 2;
        const uint32_t of_rows[2] = { rows.of[i / 2][pair * 2], rows.of[i / 2][pair * 2 + 1] };
        float(&d)[4] = *(float(*)[4])(sums + 4 * i);
        mma_sync_bf16(d, a, of_rows);
    }
}

/* A step: four products of 16 columns.  Rows are loaded while those before them are multiplied. */
template <class CONFIG>
__device__ static inline void multiply_rows(uint32_t rows, const step_operand &operand, tile_sums<CONFIG> &sums)
{
    constexpr int PRODUCTS = row_fragments<CONFIG>::PRODUCTS, LOADS = 4 / PRODUCTS;
    row_fragments<CONFIG> fragments[2];
    load_rows_of_products<CONFIG>(rows, 0, fragments[0]);
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        if (i + 1 < LOADS) load_rows_of_products<CONFIG>(rows, i + 1, fragments[(i + 1) % 2]);
#pragma unroll
        for (int product = i * PRODUCTS; product < (i + 1) * PRODUCTS; product++)
            multiply_product<CONFIG>(operand + 4 * product, fragments[i % 2], product, sums);
    }
}
