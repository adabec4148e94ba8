/* The table of GEMM kernels.  A row is made of a line of the kernels' own tables: columns there are arguments here. */
#include "instances.h"
#include "costs.h"
#include "cuda/sm100/gemm_instances.h"
#include "cuda/sm100/mixed_input_instances.h"
#include "cuda/sm120/gemm_instances.h"
#include "cuda/sm120/mixed_input_instances.h"
#include "cuda/sm90/kernels/fused_dequantization_instances.h"
#include "cuda/sm90/kernels/mixed_input_groups_instances.h"
#include "cuda/sm90/kernels/mixed_input_instances.h"
#include "cuda/sm90/kernels/shared_memory_instances.h"

#include <stddef.h>

#define NAMES(prefix, tile, in_file) \
    .name = "cuda_wgmma_" prefix #tile, .function = "bsmi_gemm_" prefix #tile, .file = "sm90/kernels/" in_file
#define TILE(rows, columns, along_m, along_n) \
    .tile_rows = rows, .tile_columns = columns, .cluster_rows = along_m, .cluster_columns = along_n, \
    .a_box_rows = (rows) / (along_n), .b_box_rows = (columns) / (along_m)

/* Both operands in shared memory. */
#define SHARED_MEMORY(rows, columns, groups, along_m, along_n, stages, d_box) \
    .main_loop = BSMI_MAIN_LOOP_SHARED_MEMORY, TILE(rows, columns, along_m, along_n), \
    .threads = 128 * ((groups) + 1), .sm_ctas = 1, \
    .shared_bytes = BSMI_SM90_SHARED_MEMORY_BYTES(rows, columns, groups, stages, d_box), \
    .d_box_rows = BSMI_GEMM_D_BOX_ROWS, .d_box_bytes = d_box
#define LARGE(tile, ...) \
    { NAMES("", tile, "shared_memory_large"), SHARED_MEMORY(__VA_ARGS__), .cost = BSMI_COST_##tile },
/* Two warpgroups compute fallback rows and columns, too. */
#define SMALL(tile, rows, columns, groups, ...) \
    { NAMES("", tile, "shared_memory_small"), SHARED_MEMORY(rows, columns, groups, __VA_ARGS__), \
      .fallback = (groups) == 2 ? BSMI_FALLBACK_IN_KERNEL : BSMI_FALLBACK_BY_SUMS, .cost = BSMI_COST_##tile },
#define COLUMN_GROUPS(tile, ...) \
    { NAMES("column_groups_", tile, "shared_memory_column_groups"), SHARED_MEMORY(__VA_ARGS__), \
      .column_groups = true, .cost = BSMI_COST_column_groups_##tile },
#define LATE_ROWS(tile, ...) \
    { NAMES("late_rows_", tile, "shared_memory_late_rows"), SHARED_MEMORY(__VA_ARGS__), .late_rows = true, \
      .cost = BSMI_COST_late_rows_##tile },
#define INT8(tile, ...) \
    { NAMES("int8_", tile, "shared_memory_int8"), SHARED_MEMORY(__VA_ARGS__), .operands = BSMI_OPERANDS_INT8, \
      .condition = BSMI_RUNS_IF_INT8_FITS, .cost = BSMI_COST_int8_##tile },
#define INT8_FALLBACK(tile, ...) \
    { NAMES("int8_fallback_", tile, "shared_memory_int8"), SHARED_MEMORY(__VA_ARGS__), \
      .condition = BSMI_RUNS_UNLESS_INT8_FITS },
#define FP8_REQUANTIZED(tile, ...) \
    { NAMES("fp8_requantized_", tile, "shared_memory_fp8"), SHARED_MEMORY(__VA_ARGS__), .operands = BSMI_OPERANDS_FP8 },

/* Fused dequantization: the ring of A's rows and B's dequantized ones, that of B's codes and their scales (so many
 * pieces of 512 bytes), three numbers for each row and column, and 320 bytes for each row that is on its way to D at
 * one time. */
#define FUSED(prefix, in_file, what, row_bytes, pieces, tile, rows, along_n, decoders, stages, code_stages) \
    { NAMES(#prefix "_", tile, in_file), .main_loop = BSMI_MAIN_LOOP_FUSED, .source = BSMI_SOURCE_SCALES_128X4, \
      .codes = what, TILE(rows, 64, 1, along_n), .threads = 128 * (2 + (decoders)), .sm_ctas = 1, \
      .cost = BSMI_COST_##prefix##_##tile, \
      .shared_bytes = (stages) * (((rows) + 64) * BSMI_K_STEP * 2 + 16) + \
                      (code_stages) * (64 * (row_bytes) + (pieces) * 512 + 16) + 12 * ((rows) + 64) + \
                      320 * ((rows) < 32 ? (rows) : 32) },
#define MXFP4(...) FUSED(mxfp4, "fused_nibbles", BSMI_CODES_MXFP4, 128, 2, __VA_ARGS__)
#define NVFP4(...) FUSED(nvfp4, "fused_nibbles", BSMI_CODES_NVFP4, 128, 4, __VA_ARGS__)
#define BYTES(...) FUSED(bytes, "fused_bytes", BSMI_CODES_BYTES, 128, 1, __VA_ARGS__)
#define STREAM(...) FUSED(stream, "fused_stream", BSMI_CODES_STREAM, 2 * BSMI_STREAM_BOX_BYTES, 1, __VA_ARGS__)

/* Mixed input. */
#define MIXED_INPUT(prefix, in_file, what, block, tile, from, how, rows, groups, ctas, stages, code_stages, columns) \
    { NAMES(#prefix "_", tile, in_file #prefix), \
      .main_loop = BSMI_MAIN_LOOP_MIXED_INPUT, \
      .source = from, \
      .codes = what, \
      .schedule = how, \
      .fallback = (from) == BSMI_SOURCE_SCALES_128X4 ? BSMI_FALLBACK_BY_SUMS : BSMI_FALLBACK_IN_KERNEL, \
      TILE(rows, BSMI_MIXED_INPUT_COLUMNS(how, groups), 1, 1), \
      .threads = BSMI_MIXED_INPUT_THREADS(groups), \
      .sm_ctas = ctas, \
      .shared_bytes = \
          BSMI_MIXED_INPUT_SHARED_BYTES(block, from, how, rows, groups, ctas, stages, code_stages, columns), \
      .most_columns = columns, \
      .cost = BSMI_COST_##prefix##_##tile },
#define STORED_MXFP4(...) MIXED_INPUT(mxfp4, "mixed_input_", BSMI_CODES_MXFP4, 32, __VA_ARGS__)
#define STORED_NVFP4(...) MIXED_INPUT(nvfp4, "mixed_input_", BSMI_CODES_NVFP4, 16, __VA_ARGS__)
#define PREPACKED_MXFP4(...) MIXED_INPUT(mxfp4, "mixed_input_prepacked_", BSMI_CODES_MXFP4, 32, __VA_ARGS__)
#define PREPACKED_NVFP4(...) MIXED_INPUT(nvfp4, "mixed_input_prepacked_", BSMI_CODES_NVFP4, 16, __VA_ARGS__)

/* Mixed input, rows of prepacked weights. */
#define MIXED_INPUT_ROWS(prefix, in_file, what, block, parts, tile, rows, groups, ...) \
    { NAMES(#prefix "_", tile, in_file #prefix), .main_loop = BSMI_MAIN_LOOP_MIXED_INPUT, .k_parts = parts, \
      .source = BSMI_SOURCE_PREPACKED, .codes = what, .schedule = BSMI_SCHEDULE_ROWS, \
      .fallback = BSMI_FALLBACK_IN_KERNEL, TILE(rows, 64 * (groups), 1, 1), \
      .threads = BSMI_MIXED_INPUT_ROWS_THREADS(groups), .sm_ctas = 1, \
      .shared_bytes = BSMI_MIXED_INPUT_ROWS_SHARED_BYTES(block, parts, rows, groups, __VA_ARGS__), \
      .most_columns = BSMI_PREPACKED_MOST_COLUMNS, .halves = BSMI_MIXED_INPUT_ROWS_HALVES(rows, groups), \
      .cost = BSMI_COST_##prefix##_##tile },
#define ROWS_MXFP4(...) MIXED_INPUT_ROWS(mxfp4, "mixed_input_prepacked_", BSMI_CODES_MXFP4, 32, 1, __VA_ARGS__)
#define ROWS_NVFP4(...) MIXED_INPUT_ROWS(nvfp4, "mixed_input_prepacked_", BSMI_CODES_NVFP4, 16, 1, __VA_ARGS__)
/* K-interleaved, K in two parts, one behind the other. */
#define PARTS_IN_TURN(prefix, what, block, tile, from, how, rows, groups, ctas, ...) \
    { NAMES(#prefix "_", tile, "mixed_input_split_k_" #prefix), .main_loop = BSMI_MAIN_LOOP_MIXED_INPUT, \
      .source = from, .codes = what, .schedule = how, .k_parts = BSMI_K_PARTS, .k_parts_in_turn = true, \
      .fallback = BSMI_FALLBACK_IN_KERNEL, TILE(rows, 64, 1, 1), .threads = BSMI_MIXED_INPUT_THREADS(groups), \
      .sm_ctas = ctas, \
      .shared_bytes = BSMI_MIXED_INPUT_PARTS_SHARED_BYTES(block, from, how, rows, groups, ctas, __VA_ARGS__), \
      .most_columns = BSMI_PREPACKED_MOST_COLUMNS, .cost = BSMI_COST_##prefix##_##tile },
#define PARTS_MXFP4(...) PARTS_IN_TURN(mxfp4, BSMI_CODES_MXFP4, 32, __VA_ARGS__)
#define PARTS_NVFP4(...) PARTS_IN_TURN(nvfp4, BSMI_CODES_NVFP4, 16, __VA_ARGS__)
#define SPLIT_K_MXFP4(...) \
    MIXED_INPUT_ROWS(mxfp4, "mixed_input_split_k_", BSMI_CODES_MXFP4, 32, BSMI_K_PARTS, __VA_ARGS__)
#define SPLIT_K_NVFP4(...) \
    MIXED_INPUT_ROWS(nvfp4, "mixed_input_split_k_", BSMI_CODES_NVFP4, 16, BSMI_K_PARTS, __VA_ARGS__)

/* Mixed input, groups of rows of A with prepacked weights. */
#define MIXED_INPUT_GROUPS(prefix, what, block, tile, rows, groups, ...) \
    { NAMES(#prefix "_", tile, "mixed_input_groups_" #prefix), .main_loop = BSMI_MAIN_LOOP_MIXED_INPUT, \
      .source = BSMI_SOURCE_PREPACKED, .codes = what, .schedule = BSMI_SCHEDULE_ROWS, \
      .fallback = BSMI_FALLBACK_IN_KERNEL, .tile_rows = rows, .tile_columns = 64 * (groups), \
      .cluster_rows = 1, .cluster_columns = 1, .a_box_rows = BSMI_GROUPS_BOX_ROWS, .b_box_rows = 64 * (groups), \
      .threads = BSMI_MIXED_INPUT_ROWS_THREADS(groups), .sm_ctas = 1, .adds_up_groups = true, \
      .shared_bytes = BSMI_MIXED_INPUT_GROUPS_SHARED_BYTES(block, rows, groups, __VA_ARGS__), \
      .most_columns = BSMI_PREPACKED_MOST_COLUMNS, .cost = BSMI_COST_##prefix##_##tile },
#define GROUPS_MXFP4(...) MIXED_INPUT_GROUPS(mxfp4, BSMI_CODES_MXFP4, 32, __VA_ARGS__)
#define GROUPS_NVFP4(...) MIXED_INPUT_GROUPS(nvfp4, BSMI_CODES_NVFP4, 16, __VA_ARGS__)

/* tcgen05; `blocks` of scales and `words` for each column as in sm100/gemm_config.cuh, which checks the sum.  Without
 * boxes of D the rows of the instruction are B's: D^T = B A^T. */
#define TENSOR_MEMORY(kind, multiplied, blocks, words, tile, columns, ctas, stages, d_box) \
    { .name = "cuda_tcgen05_" #kind "_" #tile, \
      .function = "bsmi_gemm_" #kind "_" #tile, \
      .file = "sm100/gemm_" #kind, \
      .main_loop = BSMI_MAIN_LOOP_TENSOR_MEMORY, \
      .operands = multiplied, \
      .step_bytes = BSMI_SM100_ROW_BYTES, \
      .threads = BSMI_SM100_THREADS, \
      .sm_ctas = 1, \
      .tile_rows = (d_box) == 0 ? (columns) : BSMI_SM100_ROWS, \
      .tile_columns = (d_box) == 0 ? BSMI_SM100_ROWS : (columns), \
      .cluster_rows = ctas, \
      .cluster_columns = 1, \
      .a_box_rows = (d_box) == 0 ? (columns) : BSMI_SM100_ROWS, \
      .b_box_rows = (d_box) == 0 ? BSMI_SM100_ROWS : (columns) / (ctas), \
      .d_box_rows = (d_box) == 0 ? 0 : BSMI_GEMM_D_BOX_ROWS, \
      .d_box_bytes = d_box, \
      .shared_bytes = BSMI_SM100_SHARED_BYTES(blocks, words, columns, ctas, stages, d_box) },
#define F16(...) TENSOR_MEMORY(f16, BSMI_OPERANDS_BF16, 0, 3, __VA_ARGS__)
#define MXF8F6F4(...) TENSOR_MEMORY(mxf8f6f4, BSMI_OPERANDS_MXF8F6F4, 1, 2, __VA_ARGS__)
#define MXF4(...) TENSOR_MEMORY(mxf4, BSMI_OPERANDS_MXF4, 2, 2, __VA_ARGS__)
#define MXF4NVF4(...) TENSOR_MEMORY(mxf4nvf4, BSMI_OPERANDS_MXF4NVF4, 4, 2, __VA_ARGS__)

/* Kind mxf8f6f4, and B is sparse. */
#define SPARSE(tile, columns, ctas, stages, d_box) \
    { .name = "cuda_tcgen05_sparse_" #tile, .function = "bsmi_gemm_sparse_" #tile, .file = "sm100/gemm_sparse", \
      .main_loop = BSMI_MAIN_LOOP_TENSOR_MEMORY, .operands = BSMI_OPERANDS_MXF8F6F4, .sparse = true, \
      .step_bytes = BSMI_SM100_ROW_BYTES, .threads = BSMI_SM100_THREADS, .sm_ctas = 1, \
      TILE(columns, BSMI_SM100_ROWS, 1, 1), \
      .shared_bytes = BSMI_SM100_SHARED_BYTES(1, 2, columns, ctas, stages, d_box) \
                      + BSMI_SM100_SPARSE_BYTES(columns, stages) },

/* tcgen05, B decoded into tensor memory: one kernel for all tiles. */
#define TENSOR_MIXED_INPUT(prefix, what, block, from, suffix, tile, rows) \
    { .name = "cuda_tcgen05_" #prefix "_" #tile suffix, .function = "bsmi_gemm_tensor_" #prefix, \
      .file = "sm100/mixed_input_" #prefix, .main_loop = BSMI_MAIN_LOOP_MIXED_INPUT_TENSOR_MEMORY, .source = from, \
      .codes = what, .schedule = BSMI_SCHEDULE_ROWS, TILE(rows, BSMI_SM100_ROWS, 1, 1), \
      .threads = BSMI_SM100_MIXED_INPUT_THREADS, .sm_ctas = 1, \
      .shared_bytes = BSMI_SM100_MIXED_INPUT_SHARED_BYTES(block), .most_columns = BSMI_PREPACKED_MOST_COLUMNS },
#define TENSOR_MXFP4(...) TENSOR_MIXED_INPUT(mxfp4, BSMI_CODES_MXFP4, 32, BSMI_SOURCE_SCALES_128X4, "", __VA_ARGS__)
#define TENSOR_NVFP4(...) TENSOR_MIXED_INPUT(nvfp4, BSMI_CODES_NVFP4, 16, BSMI_SOURCE_SCALES_128X4, "", __VA_ARGS__)
#define TENSOR_PREPACKED_MXFP4(...) \
    TENSOR_MIXED_INPUT(mxfp4, BSMI_CODES_MXFP4, 32, BSMI_SOURCE_PREPACKED, "_prepacked", __VA_ARGS__)
#define TENSOR_PREPACKED_NVFP4(...) \
    TENSOR_MIXED_INPUT(nvfp4, BSMI_CODES_NVFP4, 16, BSMI_SOURCE_PREPACKED, "_prepacked", __VA_ARGS__)

/* mma.sync; of_32: bytes of scales for 32 of codes. */
#define REGISTERS(kind, multiplied, of_32, tile, rows, columns, step, along_m, along_n, schedule, stages) \
    { .name = "cuda_mma_sync_" #kind "_" #tile, .function = "bsmi_gemm_sm120_" #kind "_" #tile, \
      .file = "sm120/gemm_" #kind, .main_loop = BSMI_MAIN_LOOP_REGISTERS, .operands = multiplied, \
      .splits_k = (schedule) == BSMI_SM120_SPLIT_K, .sets = BSMI_SM120_SETS(schedule), .step_bytes = step, \
      .copies_rows = BSMI_SM120_COPIES_ROWS(rows, columns, along_m, along_n), \
      .threads = BSMI_SM120_THREADS(rows, columns, along_m, along_n, schedule), .sm_ctas = 1, \
      TILE(rows, columns, 1, 1), \
      .shared_bytes = BSMI_SM120_SHARED_BYTES(of_32, rows, columns, step, along_m, along_n, schedule, stages) },
#define SM120_BF16(...) REGISTERS(bf16, BSMI_OPERANDS_BF16, 0, __VA_ARGS__)
#define SM120_MXF8F6F4(...) REGISTERS(mxf8f6f4, BSMI_OPERANDS_MXF8F6F4, 1, __VA_ARGS__)
#define SM120_MXF4(...) REGISTERS(mxf4, BSMI_OPERANDS_MXF4, 2, __VA_ARGS__)
#define SM120_MXF4NVF4(...) REGISTERS(mxf4nvf4, BSMI_OPERANDS_MXF4NVF4, 4, __VA_ARGS__)

/* Mixed input by mma.sync. */
#define SM120_MIXED_INPUT(prefix, in_file, what, block, tile, from, rows, groups, a_steps, stages, codes_st, scales) \
    { .name = "cuda_mma_sync_" #prefix "_" #tile, .function = "bsmi_gemm_sm120_" #prefix "_" #tile, \
      .file = "sm120/" in_file #prefix, .main_loop = BSMI_MAIN_LOOP_MIXED_INPUT_REGISTERS, .source = from, \
      .codes = what, .schedule = BSMI_SCHEDULE_ROWS, \
      .fallback = (from) == BSMI_SOURCE_SCALES_128X4 ? BSMI_FALLBACK_BY_SUMS : BSMI_FALLBACK_IN_KERNEL, \
      TILE(rows, 64 * (groups), 1, 1), .threads = BSMI_SM120_MIXED_INPUT_THREADS(groups), .sm_ctas = 1, \
      .shared_bytes = \
          BSMI_SM120_MIXED_INPUT_SHARED_BYTES(block, from, rows, groups, a_steps, stages, codes_st, scales), \
      .most_columns = (scales) > 0 ? (scales) * (block) : BSMI_PREPACKED_MOST_COLUMNS },
#define SM120_STORED_MXFP4(...) SM120_MIXED_INPUT(mxfp4, "mixed_input_", BSMI_CODES_MXFP4, 32, __VA_ARGS__)
#define SM120_STORED_NVFP4(...) SM120_MIXED_INPUT(nvfp4, "mixed_input_", BSMI_CODES_NVFP4, 16, __VA_ARGS__)
#define SM120_PREPACKED_MXFP4(...) SM120_MIXED_INPUT(mxfp4, "mixed_input_prepacked_", BSMI_CODES_MXFP4, 32, __VA_ARGS__)
#define SM120_PREPACKED_NVFP4(...) SM120_MIXED_INPUT(nvfp4, "mixed_input_prepacked_", BSMI_CODES_NVFP4, 16, __VA_ARGS__)

const struct bsmi_gemm_instance bsmi_gemm_instances[] = {
    BSMI_SM90_GEMM_LARGE(LARGE)
    BSMI_SM90_GEMM_SMALL(SMALL)
    BSMI_SM90_GEMM_COLUMN_GROUPS(COLUMN_GROUPS)
    BSMI_SM90_GEMM_INTEGERS(INT8)
    BSMI_SM90_GEMM_INTEGERS(INT8_FALLBACK)
    BSMI_SM90_DECODING(MXFP4)
    BSMI_SM90_MIXED_INPUT_SCALES_128X4(STORED_MXFP4)
    BSMI_SM90_DECODING(NVFP4)
    BSMI_SM90_MIXED_INPUT_SCALES_128X4(STORED_NVFP4)
    BSMI_SM90_DECODING_BYTES(BYTES)
    BSMI_SM90_DECODING(BYTES)
    BSMI_SM90_STREAM(STREAM)
    BSMI_SM90_MIXED_INPUT_AS_STORED(STORED_MXFP4)
    BSMI_SM90_MIXED_INPUT_AS_STORED(STORED_NVFP4)
    BSMI_SM90_MIXED_INPUT_PREPACKED(PREPACKED_MXFP4)
    BSMI_SM90_MIXED_INPUT_PREPACKED(PREPACKED_NVFP4)
    BSMI_SM90_MIXED_INPUT_ROWS(ROWS_MXFP4)
    BSMI_SM90_MIXED_INPUT_ROWS(ROWS_NVFP4)
    BSMI_SM90_MIXED_INPUT_PARTS_IN_TURN(PARTS_MXFP4)
    BSMI_SM90_MIXED_INPUT_PARTS_IN_TURN(PARTS_NVFP4)
    BSMI_SM90_MIXED_INPUT_SPLIT_K(SPLIT_K_MXFP4)
    BSMI_SM90_MIXED_INPUT_SPLIT_K(SPLIT_K_NVFP4)
    BSMI_SM90_MIXED_INPUT_GROUPS(GROUPS_MXFP4)
    BSMI_SM90_MIXED_INPUT_GROUPS(GROUPS_NVFP4)
    BSMI_SM90_FAST(FP8_REQUANTIZED)
    BSMI_SM100_GEMM_MXF8F6F4(MXF8F6F4)
    BSMI_SM100_GEMM_MXF4(MXF4)
    BSMI_SM100_GEMM_MXF4NVF4(MXF4NVF4)
    BSMI_SM100_GEMM_F16(F16)
    BSMI_SM100_GEMM_SPARSE(SPARSE)
    BSMI_SM100_MIXED_INPUT(TENSOR_MXFP4)
    BSMI_SM100_MIXED_INPUT(TENSOR_NVFP4)
    BSMI_SM100_MIXED_INPUT(TENSOR_PREPACKED_MXFP4)
    BSMI_SM100_MIXED_INPUT(TENSOR_PREPACKED_NVFP4)
    BSMI_SM120_GEMM_OF_BYTES(SM120_MXF8F6F4)
    BSMI_SM120_GEMM_OF_8_BITS(SM120_MXF8F6F4)
    BSMI_SM120_GEMM_OF_4_BITS(SM120_MXF4)
    BSMI_SM120_GEMM_OF_4_BITS(SM120_MXF4NVF4)
    BSMI_SM120_GEMM_BF16(SM120_BF16)
    BSMI_SM120_MIXED_INPUT_STORED(SM120_STORED_MXFP4)
    BSMI_SM120_MIXED_INPUT_STORED(SM120_STORED_NVFP4)
    BSMI_SM120_MIXED_INPUT_PREPACKED(SM120_PREPACKED_MXFP4)
    BSMI_SM120_MIXED_INPUT_PREPACKED(SM120_PREPACKED_NVFP4)
    BSMI_SM90_GEMM_LATE_ROWS(LATE_ROWS)
    { .name = NULL },
};
const int bsmi_gemm_instance_count = sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1;
_Static_assert(sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1 <= BSMI_MOST_GEMM_INSTANCES,
               "raise the limit");

/* How much of a band the last one lacks, in 1/1024. */
static int64_t lack_of_last_band(int64_t row_tiles, int32_t band)
{
    const int64_t last = row_tiles % band;
    return row_tiles <= band || last == 0 ? 0 : (band - last) * 1024 / band;
}

int32_t bsmi_gemm_band(const struct bsmi_gemm_instance *instance, int clusters, int64_t row_tiles)
{
    const int64_t rows = instance->tile_rows * instance->cluster_rows,
                  columns = instance->tile_columns * instance->cluster_columns;
    int32_t band = 1;
    while ((band + 1) * (band + 1) * rows <= clusters * columns) band++;
    int32_t best = band;
    for (int32_t away = 1; away <= band / 4; away++) {
        if (lack_of_last_band(row_tiles, band + away) < lack_of_last_band(row_tiles, best)) best = band + away;
        if (lack_of_last_band(row_tiles, band - away) < lack_of_last_band(row_tiles, best)) best = band - away;
    }
    return best;
}

int32_t bsmi_gemm_last_row(const struct bsmi_gemm_instance *instance, int64_t m)
{
    if (bsmi_gemm_is_of_blackwell(instance) || m < instance->tile_rows) return 0;
    return (int32_t)((m - instance->tile_rows + BSMI_GEMM_WARP_ROWS - 1) / BSMI_GEMM_WARP_ROWS * BSMI_GEMM_WARP_ROWS);
}

int64_t bsmi_gemm_tiles_in_halves(const struct bsmi_gemm_instance *instance, int64_t m, int64_t tiles,
                                  int64_t clusters)
{
    const int64_t last = tiles % clusters;
    return instance->halves && m >= instance->tile_rows && 2 * last <= clusters ? last : 0;
}

static bool have_same_tiles(const struct bsmi_gemm_instance *x, const struct bsmi_gemm_instance *y)
{
    return x->tile_rows == y->tile_rows && x->tile_columns == y->tile_columns && x->cluster_rows == y->cluster_rows
           && x->cluster_columns == y->cluster_columns;
}

int bsmi_gemm_int8_fallback(int gemm)
{
    const struct bsmi_gemm_instance *all = bsmi_gemm_instances;
    if (gemm < 0 || all[gemm].operands != BSMI_OPERANDS_INT8) return -1;
    for (int i = 0; i < bsmi_gemm_instance_count; i++)
        if (all[i].condition == BSMI_RUNS_UNLESS_INT8_FITS && have_same_tiles(&all[i], &all[gemm])) return i;
    return -1;
}
