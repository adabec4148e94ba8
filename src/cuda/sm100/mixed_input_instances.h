/* The mixed-input GEMM kernels for Blackwell's tensor memory: A is rows of bf16, B e2m1 with scales, which is decoded
 * into tensor memory, the first operand of D^T = B A^T.
 *
 * One kernel for each format of B, bsmi_gemm_tensor_CODES, makes tiles of any number of rows of A that an instruction
 * takes as its N; so the lines of this table are choices of the plan, for a person cuda_tcgen05_CODES_TILE: with scales
 * that lie as BSM_LAYOUT_128X4 or are brought to it in front of the kernel, or (_prepacked) once.
 *
 *        tile        rows */
#ifndef BSMI_SM100_MIXED_INPUT_INSTANCES_H
#define BSMI_SM100_MIXED_INPUT_INSTANCES_H

#include "gemm_instances.h"

#define BSMI_SM100_MIXED_INPUT(X) \
    X(16x128,    16)              \
    X(32x128,    32)              \
    X(64x128,    64)              \
    X(128x128,  128)

enum { BSMI_SM100_MIXED_INPUT_THREADS = 512, BSMI_SM100_MIXED_INPUT_ROWS = 128, BSMI_SM100_MIXED_INPUT_STAGES = 6,
       BSMI_SM100_MIXED_INPUT_CODE_STAGES = 6, BSMI_SM100_MIXED_INPUT_OPERAND_STAGES = 4 };

/* Shared memory: the rings of A's rows, of B's codes and of their scales, 512 bytes for four scales of 128 rows; two
 * barriers for each stage of these, of tensor memory, and of accumulators; where tensor memory begins.  block: 32 or 16
 * columns have a scale. */
#define BSMI_SM100_MIXED_INPUT_SHARED_BYTES(block)                                                                \
    (BSMI_SM100_MIXED_INPUT_STAGES * (BSMI_SM100_MIXED_INPUT_ROWS * 128 + 16)                                     \
     + BSMI_SM100_MIXED_INPUT_CODE_STAGES * (BSMI_SM100_ROWS * 128 + 256 / (4 * (block)) * 512 + 16)              \
     + BSMI_SM100_MIXED_INPUT_OPERAND_STAGES * 16 + 2 * 16 + 16)

#endif
