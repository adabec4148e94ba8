/* The instances of the GEMM kernels that decode B beside the products, for few rows of A: bsmi_gemm_CODES_TILE, for a person
 * cuda_wgmma_CODES_TILE.
 *
 *   rows, columns    of D that a CTA makes
 *   groups           warpgroups that multiply
 *   ctas             of a cluster: along M, with the same rows of B, of which each decodes its share; together they have all rows of A
 *   stages           of the ring
 *   d_box_bytes      width of the boxes that D leaves by
 *
 *    tile             rows columns groups ctas stages d_box_bytes */
#ifndef BSMI_SM90_BESIDE_INSTANCES_H
#define BSMI_SM90_BESIDE_INSTANCES_H

#define BSMI_SM90_BESIDE(X)                             \
    X(64x96_beside,    64, 96, 1, 4,  8, 64)            \
    X(128x96_beside,  128, 96, 2, 4,  6, 64)

enum {
    BSMI_BESIDE_DECODERS = 12,            /* warps that decode */
    BSMI_BESIDE_CHUNK = 512,              /* columns of K that they decode before they tell of them */
    BSMI_BESIDE_MOST_COLUMNS = 8192,      /* of K: scales of a share lie in shared memory */
    BSMI_BESIDE_LEFT_OUT_BYTES = 6912 + 256   /* for a warpgroup: struct left_out_memory, and exponents of 64 rows */
};

/* Of their shared memory, which begins as that of the kernels for bf16 rows: scales, exponents of columns, what is left out, barriers. */
#define BSMI_SM90_BESIDE_BYTES(block, rows, columns, groups, ctas, stages, d_box_bytes)                                                \
    ((stages) * (((rows) + (columns)) * BSMI_K_STEP * 2 + 16) + (groups) * 8 * BSMI_GEMM_D_BOX_ROWS * (d_box_bytes) +                   \
     (columns) / (ctas) * (BSMI_BESIDE_MOST_COLUMNS / (block) + 16) + (columns) * 4 + (groups) * BSMI_BESIDE_LEFT_OUT_BYTES +           \
     BSMI_BESIDE_MOST_COLUMNS / BSMI_BESIDE_CHUNK * 16)

#endif
