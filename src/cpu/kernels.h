/* What the folders of kernels give to the table: tiles of S in portable C (portable/), microkernels for x86-64 (x86/)
 * and for Arm (arm/).  Each microkernel is of the file with its name. */
#ifndef BSMI_KERNELS_H
#define BSMI_KERNELS_H

#include "microkernel.h"

/* Tiles of S for any pair, in fp32 panels: portable/tile_template.h, compiled for every CPU and once more for AVX2 and
 * FMA.  What adds columns [k, end) of K, k a multiple of 256, goes on from the sums that the tile has. */
size_t bsmi_tile_scratch_portable(int64_t rows, int64_t columns);
void bsmi_tile_fp32_chains_portable(const struct bsmi_tile *tile, void *scratch);
void bsmi_tile_add_fp32_chains_portable(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_add_exact_blocks_portable(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_exact_blocks_portable(const struct bsmi_tile *tile, void *scratch);
#if defined(__x86_64__)
size_t bsmi_tile_scratch_avx2_fma(int64_t rows, int64_t columns);
void bsmi_tile_fp32_chains_avx2_fma(const struct bsmi_tile *tile, void *scratch);
void bsmi_tile_add_fp32_chains_avx2_fma(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_add_exact_blocks_avx2_fma(const struct bsmi_tile *tile, int64_t k, int64_t end, void *scratch);
void bsmi_tile_exact_blocks_avx2_fma(const struct bsmi_tile *tile, void *scratch);

extern const struct bsmi_microkernel bsmi_fp4_few_rows_avx2, bsmi_fp4_avx2;
extern const struct bsmi_microkernel bsmi_int8_dot_few_rows_avx2, bsmi_int8_dot_avx2, bsmi_int8_dot_vnni;
extern const struct bsmi_microkernel bsmi_fp32_chains_few_rows_avx2, bsmi_fp32_chains_few_rows_avx512;
extern const struct bsmi_microkernel bsmi_fp32_chains_avx2, bsmi_fp32_chains_avx512;
extern const struct bsmi_microkernel bsmi_bf16_dot_avx512, bsmi_bf16_dot_few_rows_avx512;

/* How B is prepacked for one row (x86/one_row/panels.h). */
extern const struct bsmi_b_panels bsmi_fp4_panels, bsmi_fp8_panels, bsmi_nvfp4_panels;

/* Tiles of S by AMX, and with its bits. */
size_t bsmi_bf16_tiles_amx_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_bf16_tiles_amx(const struct bsmi_tile *tile, void *scratch);
size_t bsmi_int8_tiles_amx_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_int8_tiles_amx(const struct bsmi_tile *tile, void *scratch);
size_t bsmi_bf16_few_rows_amx_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_bf16_few_rows_amx(const struct bsmi_tile *tile, void *scratch);
size_t bsmi_bf16_dot_one_row_avx512_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_bf16_dot_one_row_avx512(const struct bsmi_tile *tile, void *scratch);
size_t bsmi_nvfp4_one_row_avx512_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_nvfp4_one_row_avx512(const struct bsmi_tile *tile, void *scratch);
size_t bsmi_fp4_one_row_vnni_scratch_bytes(int64_t rows, int64_t columns);
void bsmi_fp4_one_row_vnni(const struct bsmi_tile *tile, void *scratch);
#elif defined(__aarch64__)
extern const struct bsmi_microkernel bsmi_int8_dot_i8mm, bsmi_int8_dot_dotprod, bsmi_bf16_mmla;
#endif

#endif
