/* Sparse matrices: made from real numbers, and their metadata checked. */
#ifndef BLOCKSCALE_SPARSITY_H
#define BLOCKSCALE_SPARSITY_H

#include "quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bsm_sparsify_stats {
    size_t struct_size;                  /* sizeof(bsm_sparsify_stats) where the caller was compiled */
    int64_t groups, cut_groups;          /* all groups, and those of which a number that is not zero was left out */
    int64_t cut_elements;                /* such numbers */
    double signal, kept;                 /* sums of x^2 over finite numbers: of all, and of those kept, before these
                                            were quantized; kept / signal is the share that is kept */
} bsm_sparsify_stats;

/* Keeps of each group of source's columns what the sparsity of `destination`, a bsm_sparse_matrix, lets it keep, and
 * quantizes that: its codes, scales and metadata are written.  2_4 keeps the two largest magnitudes; 4_8_PAIRS the two
 * pairs with the largest sums of squares (as doubles).  Among equals the lower columns are kept; NaN is as infinity.
 * The kept numbers are quantized as bsm_quantize quantizes a matrix of them, columns / 2 wide, with the same options:
 * a block's scale comes from its kept numbers, and so does a computed tensor scale.  Squares (block_rows) are refused:
 * rows keep different columns.
 *   stats    may be NULL.   quantized  NULL, or what bsm_quantize counts of the kept numbers.
 * Shapes, aliasing, threads, errors as bsm_quantize; CPU contexts only.  The destination is untouched on an error.
 * Allocates the kept numbers and metadata from the context.  bsm_dequantize is the way back. */
BSM_API bsm_status bsm_sparsify(bsm_context *context, const bsm_real_matrix *source,
                                const bsm_quantize_options *options, const bsm_matrix *destination,
                                bsm_sparsify_stats *stats, bsm_quantize_stats *quantized);

/* Reads a sparse matrix's metadata, in host memory: BSM_EINVAL names the first group that has other than the legal
 * ones, its matrix, row and value.  BSM_OK for matrices that are not sparse.  Functions that read a sparse matrix on a
 * CPU check it likewise before they write anything; on a GPU nothing does, and what a group without legal metadata is
 * worth is not said (nothing outside the operands is read or written). */
BSM_API bsm_status bsm_matrix_check_metadata(const bsm_matrix *matrix);

#ifdef __cplusplus
}
#endif
#endif
