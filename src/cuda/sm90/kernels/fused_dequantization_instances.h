/* The instances of fused dequantization. */
#ifndef BSMI_SM90_FUSED_DEQUANTIZATION_INSTANCES_H
#define BSMI_SM90_FUSED_DEQUANTIZATION_INSTANCES_H

/* The decoding kernels, each for several kinds of codes: the kernel is bsmi_gemm_CODES_TILE, for a person
 * cuda_wgmma_CODES_TILE.
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

/* For codes of a byte alone: those of four bits have mixed_input_instances.h. */
#define BSMI_SM90_DECODING_BYTES(X) X(64x64_1x1, 64, 1, 4, 7, 9)

/* For codes of 6 bits as a stream. */
enum { BSMI_STREAM_BOX_BYTES = 48 };      /* of a row: 64 codes */

#define BSMI_SM90_STREAM(X)                  \
    X(64x64_1x1,    64, 1, 4,  7,  9) \
    X(128x64_1x1,  128, 1, 3,  6,  7) \
    X(256x64_1x1,  256, 1, 3,  4,  5)

#endif
