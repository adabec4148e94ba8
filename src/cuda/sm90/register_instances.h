/* The instances of the GEMM kernels that decode codes of four bits in registers, each for MXFP4 and for NVFP4: bsmi_gemm_CODES_TILE, for a person
 * cuda_wgmma_CODES_TILE.
 *
 *   rows             of D that a CTA makes; of columns it makes 64
 *   cluster_columns  CTAs along N, which share A's tiles
 *   ctas             of a multiprocessor at one time
 *   stages           of the ring
 *   columns          of K, at most: scales of a tile lie in shared memory
 *
 *    tile                       rows cluster ctas stages columns */
#ifndef BSMI_SM90_REGISTER_INSTANCES_H
#define BSMI_SM90_REGISTER_INSTANCES_H

#define BSMI_SM90_REGISTERS(X)                          \
    X(16x64_1x1_registers,       16, 1, 1,  8, 20480)   \
    X(64x64_1x2_registers,       64, 2, 1,  3, 20480)   \
    X(16x64_1x1_registers_4k,    16, 1, 3,  3,  4096)   \
    X(32x64_1x1_registers_4k,    32, 1, 2,  3,  4096)   \
    X(64x64_1x2_registers_4k,    64, 2, 2,  2,  4096)

#endif
