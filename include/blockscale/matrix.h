/* Descriptions of matrices in the caller's memory: block-scaled (or plain) codes, and strided real numbers. */
#ifndef BLOCKSCALE_MATRIX_H
#define BLOCKSCALE_MATRIX_H

#include "context.h"
#include "format.h"
#include "scale_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the codes of a row lie in bytes. */
typedef enum bsm_packing {
    BSM_PACKING_DEFAULT,                 /* 4 bits: LOW_FIRST; 6 bits: BIT_STREAM; 8, 16, 32 bits: one after the
                                            other */
    BSM_PACKING_LOW_FIRST,               /* 4 bits: element 2i in bits 0-3, 2i+1 in bits 4-7 (torch, CUTLASS, Triton,
                                            gpt-oss) */
    BSM_PACKING_HIGH_FIRST,              /* 4 bits: element 2i in bits 4-7 */
    BSM_PACKING_BIT_STREAM,              /* 6 bits: little-endian stream, element i at bits [6i, 6i+6): 4 in 3 bytes */
    BSM_PACKING_BYTES,                   /* 4, 6 bits: one per byte, in the low bits (ml_dtypes, torchao's fp6); upper
                                            bits ignored */
    BSM_PACKING_GGUF,                    /* MXFP4, NVFP4: GGUF blocks, scale and nibbles together, nibbles in halves */
    BSM_PACKING_COUNT
} bsm_packing;

typedef enum bsm_tensor_scale_use {
    BSM_TENSOR_SCALE_MULTIPLIES,         /* value = element * scale * t   (ModelOpt, torchao) */
    BSM_TENSOR_SCALE_DIVIDES             /* value = element * scale / t   (compressed-tensors); t is never inverted in
                                            fp32 */
} bsm_tensor_scale_use;

/* Which elements are neighbours in memory.  A matrix has the same rows, columns, blocks and scales either way. */
typedef enum bsm_major {
    BSM_MAJOR_K,                         /* those of a row: A as M x K, B as N x K */
    BSM_MAJOR_MN,                        /* those of a column: A as K x M, B as K x N (Triton's second operand, a
                                            weight of x @ w) */
    BSM_MAJOR_COUNT
} bsm_major;

/* rows x columns codes: blocks run along the columns, and the last block of a row may be short.
 * Element (b, r, k) is code number b * batch_pitch + r * pitch + k in the units of the packing; MN-major,
 * b * batch_pitch + k * pitch + r.
 *   data     4-, 6- and 8-bit elements: no alignment.  16- and 32-bit elements: aligned to their size.
 *   pitch    elements between rows, >= columns; 0: tight, columns rounded up to a row that ends on a byte (gguf: on a
 *            block).  A row starts on a byte: a pitch of packed 4-bit elements is even, of 6-bit ones a multiple of 4,
 *            of gguf blocks a multiple of 32 (MXFP4) or 64 (NVFP4).
 *   major    MN: what is said of a row here is said of the `rows` codes of a column: pitch is between columns and >=
 *            rows, they begin on a byte, and two 4-bit codes of a byte are neighbours in a column.  Scales lie as they
 *            do for K: a row of them for each row, in scale_layout.  Not with packing GGUF, whose blocks run along K.
 *            A and B of products (bsm_matmul, bsm_matmul_exact) may be so; other functions refuse it.
 *   scales   bsm_matrix_scale_bytes of them, in scale_layout, for every matrix of the batch.  NULL for unscaled
 *            formats.  packing GGUF goes with the gguf scale layout of the format, and scales == data.
 *   tensor_scale  one fp32 factor for the whole matrix, by pointer; NULL: 1.  Finite and > 0.
 *   batch    number of matrices, 0 is read as 1.  batch_pitch in elements, with the same rule as pitch;
 *            scale_batch_pitch in bytes.  Both are ignored when batch is 1, and 0 means tight.
 * Bytes behind the last code of a row, padding bits and padding scales are never read into a result; a function that
 * writes the matrix writes the padding bits of a row's last byte, and padding scales, as zeros.
 * What is written must not overlap itself: matrices of a batch lie one behind the other, or interleave by whole
 * rows. */
typedef struct bsm_matrix {
    size_t struct_size;                  /* sizeof(bsm_matrix) where the caller was compiled */
    bsm_format format;
    bsm_packing packing;
    int64_t rows, columns;
    void *data;
    int64_t pitch;
    void *scales;
    bsm_scale_layout scale_layout;
    float *tensor_scale;
    bsm_tensor_scale_use tensor_scale_use;
    bsm_major major;                     /* no field moved for it: there was padding, which has to be 0 */
    int64_t batch, batch_pitch, scale_batch_pitch;
} bsm_matrix;

/* Which elements of a row are kept; those left out are zeros that nothing stores. */
typedef enum bsm_sparsity {
    BSM_SPARSITY_NONE,                   /* all */
    BSM_SPARSITY_2_4,                    /* 2 of every 4 columns */
    BSM_SPARSITY_4_8_PAIRS,              /* 4 of every 8, in pairs of columns 2i and 2i + 1: elements of 4 bits */
    BSM_SPARSITY_COUNT
} bsm_sparsity;

/* A matrix half of whose elements are stored.  &sparse.matrix is given where a bsm_matrix is taken: A and B of products
 * (bsm_matmul, bsm_matmul_exact), the destination of bsm_sparsify, the source of bsm_dequantize, and the functions
 * below; other functions refuse it.  (bsm_matrix itself does not grow: bsm_weight has one in its middle.)
 *   matrix   struct_size is sizeof(bsm_sparse_matrix).  columns counts all elements, kept or not, and is a multiple of
 *            4 (4_8_PAIRS: 8).  data and scales are those of an ordinary matrix of columns / 2, the kept elements of a
 *            row in the order of their columns: pitch and batch_pitch count kept elements, and a scale is that of a
 *            block of them.  So it covers twice as many columns, 64 of most formats, 32 of NVFP4 and of MXFP4 with
 *            blocks of 16, as sparse products of Blackwell's tensor cores have it (CUTLASS: 64 and 32 columns of K a
 *            scale).  Major K, no packing GGUF.
 *   metadata 4 bits for each group of 4 columns (8): the places in it, 0 to 3, of its two kept elements (pairs), the
 *            lower place in bits 0-1 and the higher one in bits 2-3.  Legal are 4, 8, 9, 12, 13 and 14.  Group g of a
 *            row has bits 4 (g % 2) and up of the row's byte g / 2; rows are metadata_pitch bytes apart and matrices
 *            metadata_batch_pitch (0: tight).  NULL where sparsity is NONE, which is an ordinary matrix. */
typedef struct bsm_sparse_matrix {
    bsm_matrix matrix;
    bsm_sparsity sparsity;
    void *metadata;
    int64_t metadata_pitch, metadata_batch_pitch;
} bsm_sparse_matrix;

/* Checks every rule above except what only reading the data could tell; the sentence names the field.
 * Pointers may be NULL when there is nothing behind them (rows or columns 0).
 * Errors: BSM_EINVAL, BSM_EALIGN, BSM_EOVERFLOW, BSM_EUNSUPPORTED. */
BSM_API bsm_status bsm_matrix_check(const bsm_matrix *matrix);

/* Bytes that data and scales must have, the whole batch included.  Reads the description only, pointers may be NULL.
 * Unscaled formats have 0 scale bytes; with GGUF packing the scales are inside data, and scale bytes are 0. */
BSM_API bsm_status bsm_matrix_data_bytes(const bsm_matrix *matrix, int64_t *bytes);
BSM_API bsm_status bsm_matrix_scale_bytes(const bsm_matrix *matrix, int64_t *bytes);

/* Bytes that metadata must have, likewise: 0 unless sparse. */
BSM_API bsm_status bsm_matrix_metadata_bytes(const bsm_matrix *matrix, int64_t *bytes);

/* ceil(columns / block), of a sparse matrix ceil(columns / 2 / block); 0 for unscaled formats. */
BSM_API int64_t bsm_matrix_scale_columns(const bsm_matrix *matrix);

/* Single codes: for inspection and tests, one check per call, and so slow.  The index must lie in the matrix.  What is
 * left out of a sparse matrix has the code 0, and cannot be set. */
BSM_API bsm_status bsm_matrix_get_code(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t column,
                                       uint32_t *code);
BSM_API bsm_status bsm_matrix_set_code(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t column,
                                       uint32_t code);
BSM_API bsm_status bsm_matrix_get_scale(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t scale_column,
                                        uint8_t *code);
BSM_API bsm_status bsm_matrix_set_scale(const bsm_matrix *matrix, int64_t batch, int64_t row, int64_t scale_column,
                                        uint8_t code);

BSM_API const char *bsm_packing_name(int packing);
BSM_API int bsm_packing_from_name(const char *name);     /* -1 when not known */
BSM_API const char *bsm_major_name(int major);           /* "k", "mn"; NULL for numbers not listed */
BSM_API int bsm_major_from_name(const char *name);       /* -1 when not known */
BSM_API const char *bsm_sparsity_name(int sparsity);     /* "none", "2:4", "4:8"; NULL for numbers not listed */
BSM_API int bsm_sparsity_from_name(const char *name);    /* -1 when not known */

/* Real numbers with any strides. */
typedef enum bsm_real { BSM_REAL_FP32, BSM_REAL_FP16, BSM_REAL_BF16, BSM_REAL_FP64, BSM_REAL_COUNT } bsm_real;

BSM_API const char *bsm_real_name(int real);
BSM_API size_t bsm_real_bytes(int real);                 /* 0 for numbers not listed */

/* Element (b, r, c) lies at data + (b * batch_stride + r * row_stride + c * column_stride) * size.
 * Strides are in elements and may be negative or, for a source, zero; elements of a destination must not overlap.
 * data is aligned to the size of an element.
 * row_stride 0 with rows > 1 is taken literally (every row is the same); there is no "tight" default. */
typedef struct bsm_real_matrix {
    size_t struct_size;                  /* sizeof(bsm_real_matrix) where the caller was compiled */
    bsm_real type;
    int64_t rows, columns;
    void *data;
    int64_t row_stride, column_stride;
    int64_t batch, batch_stride;         /* batch 0 is read as 1 */
} bsm_real_matrix;

#ifdef __cplusplus
}
#endif
#endif
