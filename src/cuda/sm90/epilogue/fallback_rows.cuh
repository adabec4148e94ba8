/* Rows and columns of a tile that bf16 cannot hold (decode.cu says which), once the others are stored: as bsmi_sums
 * computes them. */
#pragma once

#include "cuda/epilogue/gemm_epilogue.cuh"
#include "cuda/simt/finish.cuh"
#include "cuda/simt/sums_panel.cuh"

enum { FALLBACK_ROWS = 16, FALLBACK_COLUMNS = 8, FALLBACK_LINES = 8 };

/* A part of the tile. */
struct fallback_memory {
    int64_t rows[FALLBACK_ROWS], columns[FALLBACK_COLUMNS];   /* -1 where there is none */
    sums_panel<FALLBACK_LINES> a[FALLBACK_ROWS / FALLBACK_LINES], b;
};

__device__ static void store_fallback(const bsmi_gemm_parameters &p, int32_t matrix, int64_t row, int64_t column,
                                      float sum)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    if (p.direct) store_finished(e, matrix, row, column, finished_value(e, matrix, row, column, sum));
    else e.sums[matrix * e.sums_batch_pitch + row * e.sums_pitch + column] = sum;
}

/* Every kernel has its own copy of this: of either operand by one function, which is not called often. */
__device__ __noinline__ static void fill_fallback(sums_panel<FALLBACK_LINES> &panel, const bsmi_device_matrix &m,
                                                  int64_t batch, const int64_t *lines, int64_t k, int64_t k_end,
                                                  int run)
{
    fill_panel<128, 1>(panel, m, batch, lines, k, k_end, run);
}

/* By a warpgroup, an element a thread; `mine`: this thread's element is in a fallback row or column. */
template <class PARAMETERS>
__device__ static void compute_fallback_part(const PARAMETERS &p, const gemm_tile &tile, fallback_memory &s,
                                             uint32_t barrier, bool mine)
{
    const int i = (int)threadIdx.x % 128 / FALLBACK_COLUMNS, j = (int)threadIdx.x % FALLBACK_COLUMNS,
              run = run_of(p.a_source, p.b_source);
    float sum = 0;
    for (int64_t k = 0; k < p.k; k += PANEL_DEPTH) {
        barrier_sync(barrier, 128);
        const int32_t a_matrix = p.epilogue.grouped ? 0 : tile.matrix * p.a_batch_step;
        for (int first = 0; first < FALLBACK_ROWS; first += FALLBACK_LINES)
            fill_fallback(s.a[first / FALLBACK_LINES], p.a_source, a_matrix, s.rows + first, k, p.k, run);
        fill_fallback(s.b, p.b_source, tile.matrix * p.b_batch_step, s.columns, k, p.k, run);
        barrier_sync(barrier, 128);
        if (mine)
            sum = add_panels<1>(sum, s.a[i / FALLBACK_LINES], s.b, i % FALLBACK_LINES, j,
                                (int)min((int64_t)PANEL_DEPTH, p.k - k), run);
    }
    if (mine) store_fallback(p, tile.matrix, s.rows[i], s.columns[j], sum);
}

/* Of a tile of so many rows and columns.  Their exponents: tables in shared memory. */
template <class PARAMETERS>
__device__ __noinline__ static void compute_fallback(const PARAMETERS &p, gemm_tile tile, fallback_memory *memory,
                                                     int32_t rows, int32_t columns, uint32_t row_exponents,
                                                     uint32_t column_exponents, uint32_t barrier)
{
    const int32_t i = (int32_t)threadIdx.x % 128 / FALLBACK_COLUMNS, j = (int32_t)threadIdx.x % FALLBACK_COLUMNS;
    for (int32_t first_row = 0; first_row < rows; first_row += FALLBACK_ROWS)
        for (int32_t first_column = 0; first_column < columns; first_column += FALLBACK_COLUMNS) {
            const int32_t row = tile.row + first_row + i, column = tile.column + first_column + j;
            const bool mine = has_row(tile, row) && column < p.epilogue.n
                           && ((int32_t)load_shared(row_exponents + 4 * (first_row + i)) == BSMI_ROW_FALLBACK
                               || (int32_t)load_shared(column_exponents + 4 * (first_column + j)) == BSMI_ROW_FALLBACK);
            if (!barrier_or(barrier, 128, mine)) continue;
            if (j == 0) memory->rows[i] = has_row(tile, row) ? row : -1;
            if (i == 0) memory->columns[j] = column < p.epilogue.n ? column : -1;
            compute_fallback_part(p, tile, *memory, barrier, mine);
        }
    barrier_sync(barrier, 128);                 /* the memory is read */
}
