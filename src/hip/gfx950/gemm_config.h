/* One instance of the GEMM kernels: a pair of elements and a tile, which the command line names (-DA=E4M3 -DB=E2M1
 * -DTILE=256x256; without A and B the rows are bf16; -DPREPACKED=1: B is prepacked).  Sizes, and places in LDS. */
#ifndef BSMI_GFX950_GEMM_CONFIG_H
#define BSMI_GFX950_GEMM_CONFIG_H

#include "../params/gemm.h"
#include "device.h"

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define OF_TILE(field) JOIN(TILE_, TILE, field)
#define FIELDS_OF_TILE(tile, rows, columns, along_m, along_n, dim) \
    TILE_##tile##_ROWS = (rows), TILE_##tile##_COLUMNS = (columns), TILE_##tile##_ALONG_M = (along_m), \
    TILE_##tile##_ALONG_N = (along_n), TILE_##tile##_DIM = (dim),

#define BITS_OF(element) ((element) <= BSMI_HIP_E5M2 ? 8 : (element) <= BSMI_HIP_E3M2 ? 6 : 4)

#ifndef PREPACKED
#define PREPACKED 0
#endif
#ifdef A
enum { BSMI_HIP_GEMM_SCALED(FIELDS_OF_TILE) BSMI_HIP_GEMM_PREPACKED(FIELDS_OF_TILE) SCALED = 1 };
enum { A_ELEMENT = JOIN(BSMI_HIP_, A, ), B_ELEMENT = JOIN(BSMI_HIP_, B, ) };
enum { A_BITS = BITS_OF(A_ELEMENT), B_BITS = BITS_OF(B_ELEMENT) };
#else
enum { BSMI_HIP_GEMM_BF16(FIELDS_OF_TILE) SCALED = 0 };
enum { A_ELEMENT = 0, B_ELEMENT = 0, A_BITS = 16, B_BITS = 16 };
#endif

enum {
    ROWS = OF_TILE(_ROWS), COLUMNS = OF_TILE(_COLUMNS), ALONG_M = OF_TILE(_ALONG_M), ALONG_N = OF_TILE(_ALONG_N),
    DIM = OF_TILE(_DIM),

    /* An MFMA takes MFMA_K columns of K; LANES_K lanes share a row of them. */
    LANES_K = 64 / DIM,
    MFMA_K = SCALED ? 2048 / DIM : 32,

    /* A step of K: 128 bytes of a row of the wider operand, or less. */
    STEP = !SCALED ? 64 : A_BITS == 4 && B_BITS == 4 ? 256 : 128,
    PRODUCTS = STEP / MFMA_K,
    A_ROW_BYTES = STEP * A_BITS / 8,
    B_ROW_BYTES = STEP * B_BITS / 8,

    /* A wave has WAVE_ROWS x WAVE_COLUMNS of the tile, in quarters: half its rows, half its columns. */
    WAVES = ALONG_M * ALONG_N,
    THREADS = 64 * WAVES,
    WAVE_ROWS = ROWS / ALONG_M,
    WAVE_COLUMNS = COLUMNS / ALONG_N,
    ROW_PARTS = WAVE_ROWS / DIM,
    COLUMN_PARTS = WAVE_COLUMNS / DIM,
    HALF_ROWS = ROW_PARTS / 2,
    HALF_COLUMNS = COLUMN_PARTS / 2,

    /* Loads to LDS: 16 bytes a lane, of all waves LOADED; so many for a half of A or B.  The scales of a step take
     * one load of each wave. */
    LOADED = 16 * THREADS,
    A_LOADS = (ROWS / 2 * A_ROW_BYTES + LOADED - 1) / LOADED,
    B_LOADS = PREPACKED ? 0 : (COLUMNS / 2 * B_ROW_BYTES + LOADED - 1) / LOADED,
    FIRST_LOADS = A_LOADS + B_LOADS + SCALED,
    SECOND_LOADS = A_LOADS + B_LOADS,

    /* LDS: two stages of A's rows in halves, of B's, of scales, so that from a lane's place in each of these an
     * instruction's offset of 16 bits reaches all of it.  Scales: 256 bytes of each 32 rows, in units of 4 times 32
     * rows, which a wave loads. */
    A_HALF_BYTES = A_LOADS * LOADED,
    B_HALF_BYTES = B_LOADS * LOADED,
    AT_B = 4 * A_HALF_BYTES,
    AT_SCALES = AT_B + 4 * B_HALF_BYTES,
    STAGES_BYTES = AT_SCALES + 2 * SCALED * LOADED,
    A_UNITS = (ROWS + 127) / 128,
    B_UNITS = PREPACKED ? 0 : (COLUMNS + 127) / 128,

    /* The epilogue: DIM rows of a wave's sums at a time, 16 bytes more a row so that 16 rows lie in banks of their
     * own. */
    PITCH = 4 * WAVE_COLUMNS + 16,
    PIECE_BYTES = DIM * PITCH,
    LDS_BYTES = STAGES_BYTES > WAVES * PIECE_BYTES ? STAGES_BYTES : WAVES * PIECE_BYTES,

    /* Whether a wave has so many sums that they are AGPRs, and no second one fits its SIMD; workgroups that a CU
     * holds. */
    MANY_SUMS = WAVE_ROWS * WAVE_COLUMNS / 64 > 128,
    GROUPS = MANY_SUMS || LDS_BYTES > 80 * 1024 ? 1 : 2,
};
_Static_assert(WAVE_ROWS % (2 * DIM) == 0 && WAVE_COLUMNS % (2 * DIM) == 0, "a wave has two halves of each");
_Static_assert(!SCALED || A_UNITS + B_UNITS <= WAVES, "one load of each wave brings all scales of a step");
_Static_assert(4 * A_HALF_BYTES <= 65536 && 4 * B_HALF_BYTES <= 65536, "what offsets reach");
_Static_assert(LDS_BYTES <= 160 * 1024, "LDS of a workgroup");

static LDS unsigned char memory[LDS_BYTES] __attribute__((loader_uninitialized, aligned(1024)));

#endif
