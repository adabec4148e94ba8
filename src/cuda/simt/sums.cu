/* S without tensor cores, one thread an element, in the order of sums of the CPU's kernels and with its bits; and the
 * tables of a grouped product.
 *
 *     both elements small integers times a power of two: runs of min(blockA, blockB) sum exactly, S = fma(run, scales,
 * S) else: k ascending, S = fma(a sA, b sB, S)
 *
 * A CTA computes tiles of 16 x 16; 32 columns of K at a time are decoded into shared memory as doubles, in which every
 * product of two scaled elements is exact.  Fallback rows and columns fill tiles, wherever they lie. */
#include "cuda/params/column_groups.h"
#include "cuda/scheduler/gemm_order.h"
#include "cuda/ptx/arithmetic.cuh"
#include "cuda/ptx/threads.cuh"
#include "finish.cuh"
#include "sums_panel.cuh"

enum { ROWS = BSMI_SUMS_ROWS, COLUMNS = BSMI_SUMS_COLUMNS };
static_assert(ROWS * COLUMNS == BSMI_SUMS_THREADS, "a thread an element");

/* Rows and columns of a tile, -1 where there is none: in shared memory. */
struct lines { int64_t rows[ROWS], columns[COLUMNS]; };

struct tile {
    int64_t matrix;
    bool skip_fallback_rows;              /* they are another tile's */
};

__device__ static void store(const bsmi_sums_parameters &p, const tile &t, int64_t row, int64_t column, float sum)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    if (p.direct) store_finished(e, t.matrix, row, column, finished_value(e, t.matrix, row, column, sum));
    else e.sums[t.matrix * e.sums_batch_pitch + row * e.sums_pitch + column] = sum;
}

/* What a CTA works with. */
struct sums_memory { lines l; sums_panel<ROWS> a; sums_panel<COLUMNS> b; };

__device__ __noinline__ static void compute(const bsmi_sums_parameters &p, tile t, sums_memory &s)
{
    const int i = (int)threadIdx.x / COLUMNS, j = (int)threadIdx.x % COLUMNS;
    const int64_t row = s.l.rows[i], column = s.l.columns[j],
                  a_batch = p.epilogue.grouped ? 0 : t.matrix * p.a_batch_step;
    const int run = run_of(p.a, p.b);
    bool mine = row >= 0 && column >= 0;
    if (mine && t.skip_fallback_rows && p.epilogue.a_exponents != nullptr)
        mine = p.epilogue.a_exponents[t.matrix * p.epilogue.a_exponent_step + row] != BSMI_ROW_FALLBACK;
    float sum = 0;
    int64_t first = 0, end = p.k;
    if (p.column_groups != nullptr) {
        first = p.column_groups[t.matrix].first;
        end = first + p.column_groups[t.matrix].columns;
    }
    for (int64_t k = first; k < end; k += PANEL_DEPTH) {
        const int left = (int)min((int64_t)PANEL_DEPTH, end - k);
        __syncthreads();
        fill_panel<BSMI_SUMS_THREADS, 2>(s.a, p.a, a_batch, s.l.rows, k, end, run);
        fill_panel<BSMI_SUMS_THREADS, 2>(s.b, p.b, t.matrix * p.b_batch_step, s.l.columns, k, end, run);
        __syncthreads();
        if (mine) sum = add_panels<4>(sum, s.a, s.b, i, j, left, run);
    }
    if (mine) store(p, t, row, column, sum);
}

/* Neighbouring lines; the CTA is done with the ones before. */
__device__ static void take_lines(int64_t *lines, int64_t first, int64_t end)
{
    static_assert(ROWS == COLUMNS, "either kind");
    __syncthreads();
    if (threadIdx.x < ROWS) lines[threadIdx.x] = first + threadIdx.x < end ? first + threadIdx.x : -1;
    __syncthreads();
}

/* The last group that does not begin behind `position`; empty groups are never it. */
__device__ static int64_t find_group(const int64_t *starts, int64_t groups, int64_t position)
{
    int64_t low = 0, high = groups;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (starts[middle] <= position) low = middle;
        else high = middle;
    }
    return low;
}

/* A tile of all, whose lines it takes. */
__device__ static tile locate(const bsmi_sums_parameters &p, int64_t index, lines &l)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int64_t column_tiles = ceil_div(e.n, COLUMNS), row_tiles = ceil_div(e.m, ROWS);
    tile t = { 0, false };
    int64_t row, row_end = e.m;
    if (e.grouped) {
        t.matrix = find_group(p.group_tiles, e.matrices, index);
        index -= p.group_tiles[t.matrix];
        row = e.group_starts[t.matrix] + index / column_tiles * ROWS;
        row_end = e.group_starts[t.matrix + 1];
    } else {
        t.matrix = index / (row_tiles * column_tiles);
        index %= row_tiles * column_tiles;
        row = index / column_tiles * ROWS;
    }
    take_lines(l.rows, row, row_end);
    take_lines(l.columns, index % column_tiles * COLUMNS, e.n);
    return t;
}

__device__ static void compute_all(const bsmi_sums_parameters &p, sums_memory &s)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const int64_t tiles =
        e.grouped ? p.group_tiles[e.matrices] : ceil_div(e.m, ROWS) * ceil_div(e.n, COLUMNS) * e.matrices;
    for (int64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
        const tile t = locate(p, index, s.l);
        compute(p, t, s);
    }
}

/* Fallback rows and columns --------------------------------------------------------------------------------------- */

/* By the whole CTA: the next lines from *position to end - 1 that are fallback, 16 at most; how many they are. */
__device__ static int next_fallback(int64_t *lines, const int32_t *exponents, int64_t *position, int64_t end)
{
    const int lane = (int)threadIdx.x & 31;
    __syncthreads();
    int64_t at = *position;
    int found = 0;
    while (found < ROWS && at < end) {
        const bool out = at + lane < end && exponents[at + lane] == BSMI_ROW_FALLBACK;
        const uint32_t all = __ballot_sync(0xffffffff, out);
        const int rank = found + __popc(all & ((1u << lane) - 1));
        const uint32_t rest = __ballot_sync(0xffffffff, out && rank >= ROWS);
        if (threadIdx.x < 32 && out && rank < ROWS) lines[rank] = at + lane;
        found = min(found + __popc(all), (int)ROWS);
        at += rest != 0 ? __ffs((int)rest) - 1 : 32;
    }
    if (threadIdx.x < ROWS && (int)threadIdx.x >= found) lines[threadIdx.x] = -1;
    *position = at;
    __syncthreads();
    return found;
}

/* Those of a matrix of A, 16 of them with all of B's rows at a time.  *item counts tiles, for all CTAs alike. */
__device__ static void compute_rows(const bsmi_sums_parameters &p, int64_t matrix, int64_t begin, int64_t end,
                                    int64_t *item, sums_memory &s)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    while (next_fallback(s.l.rows, e.a_exponents + matrix * e.a_exponent_step, &begin, end) > 0)
        for (int64_t column = 0; column < e.n; column += COLUMNS, ++*item) {
            if (*item % gridDim.x != blockIdx.x) continue;
            take_lines(s.l.columns, column, e.n);
            compute(p, { matrix, false }, s);
        }
}

__device__ static void compute_columns(const bsmi_sums_parameters &p, int64_t matrix, int64_t begin, int64_t end,
                                       int64_t *item, sums_memory &s)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    int64_t column = 0;
    while (next_fallback(s.l.columns, e.b_exponents + matrix * e.b_exponent_step, &column, e.n) > 0)
        for (int64_t row = begin; row < end; row += ROWS, ++*item) {
            if (*item % gridDim.x != blockIdx.x) continue;
            take_lines(s.l.rows, row, end);
            compute(p, { matrix, true }, s);
        }
}

/* Of this thread's part of the flags, which are on their way together. */
__device__ static inline bool any_flag(const bsmi_fallback &l)
{
    enum { AT_ONCE = 8 };
    uint32_t any = 0;
    for (int base = (int)threadIdx.x; base < l.count; base += BSMI_SUMS_THREADS * AT_ONCE) {
        uint32_t flags[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            flags[i] = 0;
            if (base + BSMI_SUMS_THREADS * i < l.count)
                flags[i] = ptx_load_relaxed(l.flags + base + BSMI_SUMS_THREADS * i);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) any |= flags[i];
    }
    return any != 0;
}

/* Flags are read before the GEMM kernel in front has ended: it waited for the kernel that wrote them before it let this
 * one begin. */
__device__ static void compute_fallback(const bsmi_sums_parameters &p, sums_memory &s)
{
    const bsmi_epilogue_parameters &e = p.epilogue;
    const bool of_rows = any_flag(p.a_fallback), of_columns = any_flag(p.b_fallback);
    const bool rows = __syncthreads_or(of_rows) != 0, columns = __syncthreads_or(of_columns) != 0;
    int64_t item = 0;
    ptx_griddepcontrol_wait();
    if (!rows && !columns) return;
    for (int64_t matrix = 0; matrix < e.matrices; matrix++) {
        const int64_t begin = e.grouped ? e.group_starts[matrix] : 0,
                      end = e.grouped ? e.group_starts[matrix + 1] : e.m;
        if (rows) compute_rows(p, matrix, begin, end, &item, s);
        if (columns) compute_columns(p, matrix, begin, end, &item, s);
    }
}

/* Few registers: it begins beside the CTAs of the GEMM kernel in front. */
extern "C" __global__ void __launch_bounds__(BSMI_SUMS_THREADS, 4)
    bsmi_sums(const __grid_constant__ bsmi_sums_parameters p)
{
    __shared__ sums_memory s;
    if (p.only_fallback) {
        compute_fallback(p, s);
    } else {
        ptx_griddepcontrol_wait();
        compute_all(p, s);
    }
}

/* Tables of groups ------------------------------------------------------------------------------------------------- */

/* Sums of what the threads before this one give, and of all of them: first within warps, then over these. */
struct group_sums { int64_t before, all; };

__device__ static group_sums sums_of_threads(int64_t of_thread, int64_t (&of_warps)[BSMI_GROUP_TABLES_THREADS / 32])
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int64_t upto = of_thread;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int64_t lower = __shfl_up_sync(0xffffffff, upto, distance);
        if (lane >= distance) upto += lower;
    }
    __syncthreads();                      /* sums of the call before are read */
    if (lane == 31) of_warps[warp] = upto;
    __syncthreads();
    group_sums sums = { upto - of_thread, 0 };
    for (int w = 0; w < BSMI_GROUP_TABLES_THREADS / 32; w++) {
        if (w < warp) sums.before += of_warps[w];
        sums.all += of_warps[w];
    }
    return sums;
}

/* Each thread has some neighbouring groups: their rows are added up, and then their tiles. */
extern "C" __global__ void __launch_bounds__(BSMI_GROUP_TABLES_THREADS)
    bsmi_group_tables(const __grid_constant__ bsmi_group_tables_parameters p)
{
    __shared__ int64_t of_warps[BSMI_GROUP_TABLES_THREADS / 32];
    ptx_griddepcontrol_wait();
    griddepcontrol_launch_dependents();
    if (blockIdx.x != 0) return;
    const int64_t of_thread = ceil_div(p.groups, BSMI_GROUP_TABLES_THREADS), first = threadIdx.x * of_thread,
                  end = min(first + of_thread, p.groups);
    int64_t rows = 0, tiles = 0;
    for (int64_t g = first; g < end; g++) rows += max((int64_t)0, min(p.group_rows[g], p.m));
    const group_sums of_rows = sums_of_threads(rows, of_warps);
    int64_t given = of_rows.before;
    for (int64_t g = first; g < end; g++) {
        const int64_t row = min(given, p.m);
        given += max((int64_t)0, min(p.group_rows[g], p.m));
        const int64_t has = min(given, p.m) - row, before = row - bsmi_gemm_first_row(row, p.row_alignment);
        p.group_starts[g] = row;
        if (has > 0) tiles += ceil_div(before + has, p.tile_rows) * p.column_tiles;
    }
    const group_sums of_tiles = sums_of_threads(tiles, of_warps);
    tiles = of_tiles.before;
    for (int64_t g = first; g < end; g++) {
        const int64_t row = p.group_starts[g], next = g + 1 < end ? p.group_starts[g + 1] : min(given, p.m),
                      before = row - bsmi_gemm_first_row(row, p.row_alignment);
        p.group_tiles[g] = tiles;
        if (next > row) tiles += ceil_div(before + next - row, p.tile_rows) * p.column_tiles;
    }
    if (threadIdx.x != 0) return;
    p.group_starts[p.groups] = min(of_rows.all, p.m);
    p.group_tiles[p.groups] = of_tiles.all;
}
