/* The tables of kernels. */
#include "kernels.h"
#include "cuda/sm100/gemm_instances.h"
#include "cuda/sm90/kernels/fused_dequantization_instances.h"
#include "cuda/sm90/kernels/packed_instances.h"
#include "cuda/sm90/kernels/register_instances.h"
#include "cuda/sm90/kernels/shared_memory_instances.h"

#include <stddef.h>
#include <string.h>

const struct bsmi_cuda_kernel bsmi_cuda_kernels[BSMI_KERNEL_COUNT] = {
#define X(id, function, file, threads, most) { function, file, threads, most },
    BSMI_CUDA_KERNELS(X)
#undef X
};

/* Shared memory: the ring (tiles and two barriers a stage), and eight boxes of D for each consumer warpgroup.  left_out: two warpgroups compute
 * what is left out, too. */
#define ROW(in_file, kind, left_out, name, function, rows, columns, groups, cluster_rows, cluster_columns, stages, d_box)                         \
    { name, function, in_file, kind, false, rows, columns, cluster_rows, cluster_columns, 128 * ((groups) + 1),                                       \
      BSMI_SM90_SHARED_MEMORY_BYTES(rows, columns, groups, stages, d_box),                          \
      (rows) / (cluster_columns), (columns) / (cluster_rows), BSMI_GEMM_D_BOX_ROWS, d_box, BSMI_DECODES_NONE, 0, false, false, (left_out) && (groups) == 2, false },
#define LARGE(tile, ...) ROW("sm90/kernels/shared_memory_large", BSMI_GEMM_BF16, false, "cuda_wgmma_" #tile, "bsmi_gemm_" #tile, __VA_ARGS__)
#define SMALL(tile, ...) ROW("sm90/kernels/shared_memory_small", BSMI_GEMM_BF16, true, "cuda_wgmma_" #tile, "bsmi_gemm_" #tile, __VA_ARGS__)
#define INTEGERS(tile, ...) ROW("sm90/kernels/shared_memory_int8", BSMI_GEMM_INTEGERS, false, "cuda_wgmma_int8_" #tile, "bsmi_gemm_int8_" #tile, __VA_ARGS__)
#define REST(tile, ...) ROW("sm90/kernels/shared_memory_int8", BSMI_GEMM_BF16, false, "cuda_wgmma_int8_fallback_" #tile, "bsmi_gemm_int8_fallback_" #tile, __VA_ARGS__)

#define FAST(tile, ...) ROW("sm90/kernels/shared_memory_fp8", BSMI_GEMM_FAST, false, "cuda_wgmma_fp8_requantized_" #tile, "bsmi_gemm_fp8_requantized_" #tile, __VA_ARGS__)

/* The same of Blackwell's; `blocks` of scales and `words` for each column as in sm100/gemm_config.cuh, which checks the sum.  Without boxes
 * of D the rows of the instruction are B's. */
#define TENSOR_MEMORY(kind, id, blocks, words, tile, columns, ctas, stages, d_box)                                                       \
    { "cuda_tcgen05_" #kind "_" #tile, "bsmi_gemm_" #kind "_" #tile, "sm100/gemm_" #kind, id, true,                                      \
      (d_box) == 0 ? (columns) : BSMI_SM100_ROWS, (d_box) == 0 ? BSMI_SM100_ROWS : (columns), ctas, 1,                                   \
      BSMI_SM100_THREADS, BSMI_SM100_SHARED_BYTES(blocks, words, columns, ctas, stages, d_box),                                          \
      (d_box) == 0 ? (columns) : BSMI_SM100_ROWS, (d_box) == 0 ? BSMI_SM100_ROWS : (columns) / (ctas),                                   \
      (d_box) == 0 ? 0 : BSMI_GEMM_D_BOX_ROWS, d_box, BSMI_DECODES_NONE, 0, false, false, false, false },
#define F16(...) TENSOR_MEMORY(f16, BSMI_GEMM_BF16, 0, 3, __VA_ARGS__)
#define MXF8F6F4(...) TENSOR_MEMORY(mxf8f6f4, BSMI_GEMM_MXF8F6F4, 1, 2, __VA_ARGS__)
#define MXF4(...) TENSOR_MEMORY(mxf4, BSMI_GEMM_MXF4, 2, 2, __VA_ARGS__)
#define MXF4NVF4(...) TENSOR_MEMORY(mxf4nvf4, BSMI_GEMM_MXF4NVF4, 4, 2, __VA_ARGS__)

/* Shared memory: the ring of A's rows and B's decoded ones, that of B's codes and their scales (so many pieces of 512 bytes), three numbers
 * for each row and column, and 320 bytes for each row that is on its way to D at one time. */
#define DECODING(in_file, what, row_bytes, pieces, name, function, rows, cluster_columns, decoders, stages, code_stages)                 \
    { name, function, in_file, BSMI_GEMM_BF16, false, rows, 64, 1, cluster_columns, 128 * (2 + (decoders)),                              \
      (stages) * (((rows) + 64) * BSMI_K_STEP * 2 + 16) + (code_stages) * (64 * (row_bytes) + (pieces) * 512 + 16) + 12 * ((rows) + 64) + \
          320 * ((rows) < 32 ? (rows) : 32),                                                                                             \
      (rows) / (cluster_columns), 64, 0, 0, what, 0, false, false, false, false },
#define WIDE_DECODING(what, pieces, name, function, rows, cluster_columns, stages, code_stages)                                          \
    { name, function, "sm90/kernels/decoding_nibbles", BSMI_GEMM_BF16, false, rows, 128, 1, cluster_columns, 128 * 3,                            \
      (stages) * ((rows) * BSMI_K_STEP * 2 + 16) + (code_stages) * (128 * 128 + (pieces) * 512 + 16) + 2 * (12 * ((rows) + 64) + 320 * 32), \
      (rows) / (cluster_columns), 128, 0, 0, what, 0, false, false, false, false },
#define MXFP4(tile, ...)                                                                                                                 \
    DECODING("sm90/kernels/decoding_nibbles", BSMI_DECODES_MXFP4, 128, 2, "cuda_wgmma_mxfp4_" #tile, "bsmi_gemm_mxfp4_" #tile, __VA_ARGS__)
#define NVFP4(tile, ...)                                                                                                                 \
    DECODING("sm90/kernels/decoding_nibbles", BSMI_DECODES_NVFP4, 128, 4, "cuda_wgmma_nvfp4_" #tile, "bsmi_gemm_nvfp4_" #tile, __VA_ARGS__)
#define BYTES(tile, ...)                                                                                                                 \
    DECODING("sm90/kernels/decoding_bytes", BSMI_DECODES_BYTES, 128, 1, "cuda_wgmma_bytes_" #tile, "bsmi_gemm_bytes_" #tile, __VA_ARGS__)
#define STREAM(tile, ...)                                                                                                                \
    DECODING("sm90/kernels/decoding_stream", BSMI_DECODES_STREAM, 2 * BSMI_STREAM_BOX_BYTES, 1, "cuda_wgmma_stream_" #tile, "bsmi_gemm_stream_" #tile, __VA_ARGS__)

#define WIDE_MXFP4(tile, ...) WIDE_DECODING(BSMI_DECODES_MXFP4, 2, "cuda_wgmma_mxfp4_" #tile, "bsmi_gemm_mxfp4_" #tile, __VA_ARGS__)
#define WIDE_NVFP4(tile, ...) WIDE_DECODING(BSMI_DECODES_NVFP4, 4, "cuda_wgmma_nvfp4_" #tile, "bsmi_gemm_nvfp4_" #tile, __VA_ARGS__)

/* Shared memory: the ring of A's rows and B's codes, four steps a stage, the scales of 64 rows, numbers for rows and columns, and sums on
 * their way to D. */
#define REGISTERS(in_file, what, block, name, function, rows, cluster_columns, ctas, stages, columns)                                    \
    { name, function, in_file, BSMI_GEMM_BF16, false, rows, 64, 1, cluster_columns, 128 + 32,                                            \
      (stages) * (4 * (rows) * BSMI_K_STEP * 2 + 64 * 128 + 16) + 64 * ((columns) / (block) + 16) + 12 * ((rows) + 64) +                 \
          320 * ((rows) < 32 ? (rows) : 32),                                                                                             \
      (rows) / (cluster_columns), 64, 0, 0, what, columns, (ctas) == 1, false, true, false },
#define REGISTERS_MXFP4(tile, ...)                                                                                                       \
    REGISTERS("sm90/kernels/register_mxfp4", BSMI_DECODES_MXFP4, 32, "cuda_wgmma_mxfp4_" #tile, "bsmi_gemm_mxfp4_" #tile, __VA_ARGS__)
#define REGISTERS_NVFP4(tile, ...)                                                                                                       \
    REGISTERS("sm90/kernels/register_nvfp4", BSMI_DECODES_NVFP4, 16, "cuda_wgmma_nvfp4_" #tile, "bsmi_gemm_nvfp4_" #tile, __VA_ARGS__)

/* The same with warpgroups that take turns. */
#define TURNS(in_file, what, block, name, function, rows, groups, stages, code_stages, columns)                                            \
    { name, function, in_file, BSMI_GEMM_BF16, false, rows, 64, 1, 1, 128 * ((groups) + 1),                                                \
      BSMI_SM90_TURN_BYTES(block, rows, groups, stages, code_stages, columns), rows, 64, 0, 0, what, columns, true, false, true, true },
#define TURNS_MXFP4(tile, ...)                                                                                                           \
    TURNS("sm90/kernels/register_mxfp4", BSMI_DECODES_MXFP4, 32, "cuda_wgmma_mxfp4_" #tile, "bsmi_gemm_mxfp4_" #tile, __VA_ARGS__)
#define TURNS_NVFP4(tile, ...)                                                                                                           \
    TURNS("sm90/kernels/register_nvfp4", BSMI_DECODES_NVFP4, 16, "cuda_wgmma_nvfp4_" #tile, "bsmi_gemm_nvfp4_" #tile, __VA_ARGS__)

/* Those that read panels. */
#define PACKED(in_file, what, block, name, function, rows, groups, stages, panel_stages)                                         \
    { name, function, in_file, BSMI_GEMM_BF16, false, rows, 64, 1, 1, 128 * ((groups) + 1),                                               \
      BSMI_SM90_PACKED_BYTES(block, rows, groups, stages, panel_stages), rows, 64, 0, 0, what, BSMI_MOST_PANEL_COLUMNS, true, true, true, true },
#define PACKED_MXFP4(tile, ...)                                                                                                          \
    PACKED("sm90/kernels/packed_mxfp4", BSMI_DECODES_MXFP4, 32, "cuda_wgmma_mxfp4_" #tile, "bsmi_gemm_mxfp4_" #tile, __VA_ARGS__)
#define PACKED_NVFP4(tile, ...)                                                                                                          \
    PACKED("sm90/kernels/packed_nvfp4", BSMI_DECODES_NVFP4, 16, "cuda_wgmma_nvfp4_" #tile, "bsmi_gemm_nvfp4_" #tile, __VA_ARGS__)

const struct bsmi_gemm_instance bsmi_gemm_instances[] = {
    BSMI_SM90_GEMM_LARGE(LARGE)
    BSMI_SM90_GEMM_SMALL(SMALL)
    BSMI_SM90_GEMM_INTEGERS(INTEGERS)
    BSMI_SM90_GEMM_INTEGERS(REST)
    BSMI_SM90_DECODING(MXFP4)
    BSMI_SM90_WIDE_DECODING(WIDE_MXFP4)
    BSMI_SM90_DECODING(NVFP4)
    BSMI_SM90_WIDE_DECODING(WIDE_NVFP4)
    BSMI_SM90_DECODING_BYTES(BYTES)
    BSMI_SM90_DECODING(BYTES)
    BSMI_SM90_STREAM(STREAM)
    BSMI_SM90_REGISTERS(REGISTERS_MXFP4)
    BSMI_SM90_REGISTERS(REGISTERS_NVFP4)
    BSMI_SM90_TURNS(TURNS_MXFP4)
    BSMI_SM90_TURNS(TURNS_NVFP4)
    BSMI_SM90_PACKED(PACKED_MXFP4)
    BSMI_SM90_PACKED(PACKED_NVFP4)
    BSMI_SM90_FAST(FAST)
    BSMI_SM100_GEMM_MXF8F6F4(MXF8F6F4)
    BSMI_SM100_GEMM_MXF4(MXF4)
    BSMI_SM100_GEMM_MXF4NVF4(MXF4NVF4)
    BSMI_SM100_GEMM_F16(F16)
    { NULL, NULL, NULL, BSMI_GEMM_BF16, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, BSMI_DECODES_NONE, 0, false, false, false, false },
};
const int bsmi_gemm_instance_count = sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1;
_Static_assert(sizeof bsmi_gemm_instances / sizeof bsmi_gemm_instances[0] - 1 <= BSMI_MOST_GEMM_INSTANCES, "raise the limit");

/* How much of a band the last one lacks, in 1/1024. */
static int64_t lack_of_last_band(int64_t row_tiles, int32_t band)
{
    const int64_t last = row_tiles % band;
    return row_tiles <= band || last == 0 ? 0 : (band - last) * 1024 / band;
}

int32_t bsmi_gemm_band(const struct bsmi_gemm_instance *instance, int clusters, int64_t row_tiles)
{
    const int64_t rows = instance->tile_rows * instance->cluster_rows, columns = instance->tile_columns * instance->cluster_columns;
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
    if (instance->has_tensor_memory || m < instance->tile_rows) return 0;
    return (int32_t)((m - instance->tile_rows + BSMI_GEMM_WARP_ROWS - 1) / BSMI_GEMM_WARP_ROWS * BSMI_GEMM_WARP_ROWS);
}

int bsmi_gemm_rest(int gemm)
{
    if (gemm < 0 || bsmi_gemm_instances[gemm].kind != BSMI_GEMM_INTEGERS) return -1;
    const struct bsmi_gemm_instance *integers = &bsmi_gemm_instances[gemm];
    for (int i = 0; i < bsmi_gemm_instance_count; i++) {
        const struct bsmi_gemm_instance *g = &bsmi_gemm_instances[i];
        const bool same_tiles = g->tile_rows == integers->tile_rows && g->tile_columns == integers->tile_columns
            && g->cluster_rows == integers->cluster_rows && g->cluster_columns == integers->cluster_columns;
        if (same_tiles && g->kind == BSMI_GEMM_BF16 && strcmp(g->file, integers->file) == 0) return i;
    }
    return -1;
}
