/* Products of operands that are refolded for BSM_COMPUTE_FAST: e4m3 codes with a power of two for each row. */
#ifndef BSMI_CUDA_FAST_H
#define BSMI_CUDA_FAST_H

#include "cuda/driver/launch.h"
#include "matrix/matrix.h"

/* An operand in the workspace. */
struct bsmi_fast_operand {
    int64_t row_bytes, batch_bytes;       /* of its codes */
    size_t codes_at, exponents_at;
};

/* Whether products of this pair can be made of refolded operands. */
bool bsmi_fast_serves(bsm_format a, bsm_format b);

/* How operand `m` lies in the workspace, where the two places are the caller's to fill in. */
struct bsmi_fast_operand bsmi_fast_describe(const struct bsmi_matrix *m);

/* Bytes in the workspace, or -1 on overflow. */
int64_t bsmi_fast_codes_bytes(const struct bsmi_matrix *m, const struct bsmi_fast_operand *o);

/* Puts the refolding of both operands into the queue. */
bsm_status bsmi_fast_refold(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *a, const struct bsmi_fast_operand *folded_a,
                            const struct bsmi_matrix *b, const struct bsmi_fast_operand *folded_b, unsigned char *workspace);

/* Maps of both, and how long their rows are; the rest of the parameters is the caller's. */
bsm_status bsmi_fast_map(const struct bsmi_cuda_gpu *gpu, const struct bsmi_gemm_instance *instance, const struct bsmi_matrix *a,
                         const struct bsmi_fast_operand *folded_a, const struct bsmi_matrix *b,
                         const struct bsmi_fast_operand *folded_b, unsigned char *workspace,
                         struct bsmi_gemm_parameters *parameters);

#endif
