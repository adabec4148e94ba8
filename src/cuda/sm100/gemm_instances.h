/* The instances of the GEMM kernels for Blackwell's tensor memory.
 *
 *   tile             its name: the kernel is bsmi_gemm_KIND_TILE, for a person cuda_tcgen05_KIND_TILE
 *   columns          of D that a CTA, or a pair, makes; of rows each CTA makes 128
 *   ctas             1, or 2: a pair, which shares B's rows
 *   stages           of the ring in shared memory
 *   d_box_bytes      of a row of a box that D is stored by; 0: swapped, the tile is `columns` rows of A and 128 of B, D
 * is stored from registers.  Of codes, those of fewer than 32 rows serve products that have no more: the scales of a
 * tile's rows begin with the first of 32
 *
 *        tile        columns ctas stages d_box_bytes */
#ifndef BSMI_SM100_GEMM_INSTANCES_H
#define BSMI_SM100_GEMM_INSTANCES_H

enum { BSMI_SM100_ROWS = 128, BSMI_SM100_THREADS = 256, BSMI_SM100_ROW_BYTES = 128,
       BSMI_SM100_SCALE_BLOCK_BYTES = 512, BSMI_SM100_METADATA_ROW_BYTES = 32 };

/* Shared memory: the ring (tiles, scales and two barriers a stage), eight boxes of D, a table of columns (not where D
 * has no boxes), barriers of two accumulators; what D is quantized by (products of codes). */
#define BSMI_SM100_SHARED_BYTES(blocks, words, columns, ctas, stages, d_box)                                      \
    ((stages) * ((BSMI_SM100_ROWS + (columns) / (ctas)) * BSMI_SM100_ROW_BYTES                                    \
                 + (1 + ((columns) + 127) / 128) * (blocks) * BSMI_SM100_SCALE_BLOCK_BYTES + 16)                  \
     + 8 * 16 * (d_box) + ((d_box) == 0 ? 0 : 4 * (words) * (columns)) + 48         \
     + ((blocks) == 0 ? 0 : BSMI_GEMM_QUANTIZER_BYTES))

/* What the ring has more where B is sparse: of A twice the bytes, and metadata of B's rows. */
#define BSMI_SM100_SPARSE_BYTES(columns, stages) \
    ((stages) * ((columns) * BSMI_SM100_ROW_BYTES + BSMI_SM100_ROWS * BSMI_SM100_METADATA_ROW_BYTES))

#define BSMI_SM100_GEMM_F16(X)       \
    X(256x256, 256, 2, 5, 128)       \
    X(128x256, 256, 1, 4, 128)       \
    X(128x128, 128, 1, 6, 128)       \
    X(128x64,   64, 1, 8, 128)       \
    X(128x32,   32, 1, 8,  64)       \
    X(64x128,   64, 1, 8,   0)       \
    X(32x128,   32, 1, 9,   0)       \
    X(16x128,   16, 1, 10,  0)

#define BSMI_SM100_GEMM_MXF8F6F4(X)  \
    X(256x256, 256, 2, 5, 128)       \
    X(128x256, 256, 1, 4, 128)       \
    X(128x128, 128, 1, 6, 128)       \
    X(128x64,   64, 1, 8, 128)       \
    X(128x32,   32, 1, 8,  64)       \
    X(64x128,   64, 1, 8,   0)       \
    X(32x128,   32, 1, 9,   0)       \
    X(16x128,   16, 1, 10,  0)       \
    X(8x128,     8, 1, 10,  0)

#define BSMI_SM100_GEMM_MXF4(X)      \
    X(256x256, 256, 2, 5, 128)       \
    X(128x256, 256, 1, 4, 128)       \
    X(128x128, 128, 1, 6, 128)       \
    X(128x64,   64, 1, 8, 128)       \
    X(128x32,   32, 1, 8,  64)       \
    X(64x128,   64, 1, 8,   0)       \
    X(32x128,   32, 1, 9,   0)       \
    X(16x128,   16, 1, 10,  0)       \
    X(8x128,     8, 1, 10,  0)

#define BSMI_SM100_GEMM_MXF4NVF4(X)  \
    X(256x256, 256, 2, 5, 128)       \
    X(128x256, 256, 1, 4,  64)       \
    X(128x128, 128, 1, 5, 128)       \
    X(128x64,   64, 1, 7, 128)       \
    X(128x32,   32, 1, 8,  64)       \
    X(64x128,   64, 1, 8,   0)       \
    X(32x128,   32, 1, 9,   0)       \
    X(16x128,   16, 1, 10,  0)       \
    X(8x128,     8, 1, 10,  0)

/* Kind mxf8f6f4, and B is sparse. */
#define BSMI_SM100_GEMM_SPARSE(X)    \
    X(128x128, 128, 1, 4,   0)       \
    X(64x128,   64, 1, 6,   0)       \
    X(16x128,   16, 1, 8,   0)

#endif
