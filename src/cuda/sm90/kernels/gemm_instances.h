/* The instances of the GEMM kernels.
 *
 *   tile             its name: the kernel is bsmi_gemm_TILE, for a person cuda_wgmma_TILE
 *   rows, columns    of D that a CTA makes; each consumer warpgroup takes rows / groups of them
 *   groups           consumer warpgroups
 *   cluster          CTAs along M, which share B's tiles, and along N, which share A's
 *   stages           of the ring in shared memory
 *   d_box_bytes      of a row of a box that D is stored by: divides the bytes of a tile's row for every type of D
 *
 *    tile         rows cols groups cluster stages d_box_bytes */
#ifndef BSMI_SM90_GEMM_INSTANCES_H
#define BSMI_SM90_GEMM_INSTANCES_H

/* Rows of a box that D is stored by: a warp's. */
enum { BSMI_GEMM_D_BOX_ROWS = 16 };

#define BSMI_SM90_GEMM_LARGE(X)                          \
    X(128x256_2x1,  128, 256, 2, 2, 1,  4, 128) \
    X(128x224_2x1,  128, 224, 2, 2, 1,  4,  64) \
    X(128x224_1x2,  128, 224, 2, 1, 2,  4,  64) \
    X(128x192_2x1,  128, 192, 2, 2, 1,  4, 128)

#define BSMI_SM90_GEMM_SMALL(X)                          \
    X(128x128_1x1,  128, 128, 2, 1, 1,  6, 128) \
    X(128x96_1x1,   128,  96, 2, 1, 1,  7,  64) \
    X(128x64_1x1,   128,  64, 2, 1, 1,  8, 128) \
    X(64x128_1x1,    64, 128, 1, 1, 1,  8, 128) \
    X(64x96_1x1,     64,  96, 1, 1, 1, 10,  64) \
    X(64x48_1x1,     64,  48, 1, 1, 1, 15,  32)

/* The decoding kernels, each for several kinds of codes: the kernel is bsmi_gemm_CODES_TILE, for a person cuda_wgmma_CODES_TILE.
 *
 *   rows             of D that a CTA makes, the columns of wgmma: as few as the product has; of columns it makes 64
 *   cluster_columns  CTAs along N, which share A's tiles
 *   decoders         warpgroups that decode
 *   stages           of the ring of A's rows and B's decoded rows
 *   code_stages      of the ring of B's codes
 *
 *    tile        rows cluster decoders stages code_stages */
#define BSMI_SM90_DECODING(X)                \
    X(128x64_1x1,  128, 1, 3,  6,  7) \
    X(256x64_1x2,  256, 2, 3,  4,  5)

/* For codes of a byte alone: those of four bits have register_instances.h. */
#define BSMI_SM90_DECODING_BYTES(X) X(64x64_1x1, 64, 1, 4, 7, 9)

/* Those that decode e2m1 in the registers of two warpgroups that multiply; of columns they make 128.
 *
 *    tile         rows cluster stages code_stages */
#define BSMI_SM90_WIDE_DECODING(X)           \
    X(256x128_1x1, 256, 1, 4, 3)

#endif
