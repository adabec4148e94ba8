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
    X(64x64_1x1_registers,       64, 1, 1,  3, 20480)   \
    X(64x64_1x1_registers_4k,    64, 1, 2,  2,  4096)

/* Those in which warpgroups take turns at a tile; one CTA of a multiprocessor at one time.
 *
 *   groups           warpgroups that take turns
 *   stages           of the ring of A's rows
 *   code_stages      of the ring of B's codes
 *
 *    tile              rows groups stages code_stages columns */
#define BSMI_SM90_TURNS(X)                              \
    X(16x64_1x1_interleaved,  16, 3, 6, 10, 20480)            \
    X(32x64_1x1_interleaved,  32, 3, 4,  6, 20480)

/* Of their shared memory: what kernels and the table of kernels agree on. */
#define BSMI_SM90_TURN_CHUNKS(rows) ((rows) < 32 ? 6912 : 4 * 32 * 80)
#define BSMI_SM90_TURN_BYTES(block, rows, groups, stages, code_stages, columns)                                                            \
    ((stages) * (4 * (rows) * BSMI_K_STEP * 2 + 16) + (code_stages) * (64 * 128 + 16) + 64 * ((columns) / (block) + 16) + 64 * 4 +           \
     8 * 4 + 16 + (groups) * (12 * ((rows) + 64) + 4 * 8) + BSMI_SM90_TURN_CHUNKS(rows) + (rows) * 64 * 4)

#endif
