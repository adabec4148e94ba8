/* What becomes of A and B before a GEMM kernel: described, placed in the workspace, made there. */
#ifndef BSMI_HIP_OPERANDS_H
#define BSMI_HIP_OPERANDS_H

#include "device/parameters.h"
#include "hip/driver/launch.h"
#include "multiply.h"

/* Bytes behind *end, aligned; true on overflow. */
bool bsmi_hip_place(int64_t count, int64_t bytes_each, size_t *at, int64_t *end);

/* Both operands for the instance, but for their places; k of multiply. */
bsm_status bsmi_hip_describe_operands(const struct bsmi_hip_instance *instance, const struct bsmi_product *product,
                                      struct bsmi_hip_multiply *multiply);

/* Their places behind *end, which moves on; true on overflow. */
bool bsmi_hip_place_operand(const struct bsmi_matrix *matrix, struct bsmi_hip_operand *operand, int64_t *end);

/* One product on its way into a stream. */
struct bsmi_hip_run {
    struct bsmi_hip_queue queue;
    const struct bsmi_hip_multiply *multiply;
    const struct bsmi_product *product;
    unsigned char *workspace;
    struct bsmi_epilogue_parameters epilogue;
};

/* Where things lie in prepacked weights: codes, scales in lane order, and a bit for each row that has a NaN scale. */
struct bsmi_hip_panels {
    int64_t row_bytes, batch_bytes;       /* of codes: between 16 rows, between matrices */
    int64_t scales_at, scale_row_bytes, scale_batch_bytes;
    int64_t nans_at, nan_words;           /* nan_words: of a matrix, 0 without scales */
    int64_t bytes;                        /* of all */
};

/* True on overflow. */
bool bsmi_hip_place_panels(const struct bsmi_matrix *b, struct bsmi_hip_panels *panels);

/* 4 bits low nibble first, 6 bits as a stream of bits, a byte each of 8. */
bool bsmi_hip_has_kernels_packing(const struct bsmi_matrix *matrix);

bsm_status bsmi_hip_fail_alignment(const char *name, const char *member, const void *data);

/* Copies of MN-major operands: `given` is the product as it was asked for, `read` the one that kernels multiply. */
bsm_status bsmi_hip_copy_operands(const struct bsmi_hip_queue *queue, const struct bsmi_k_major *k,
                                  const struct bsmi_product *given, const struct bsmi_product *read);

/* The launches that make them. */
bsm_status bsmi_hip_make_operands(const struct bsmi_hip_run *run);

/* As the kernel is given them.  Fails with BSM_EALIGN for rows or scales that were to be read as they are and are not
 * aligned. */
bsm_status bsmi_hip_fill_operands(const struct bsmi_hip_run *run, struct bsmi_hip_gemm_parameters *parameters);

/* direct.c: whether the GEMM kernel can make D; operands are described.  Numbers of f; and what a plan promised: fails
 * where D is not like that of the plan. */
bool bsmi_hip_finishes_directly(const struct bsmi_product *product, const struct bsmi_hip_multiply *multiply);
int64_t bsmi_hip_factors(const struct bsmi_product *product);
bsm_status bsmi_hip_check_direct(const struct bsmi_hip_run *run);

/* The launch that makes f, where there are tensor scales; and what the kernel is told. */
bsm_status bsmi_hip_make_factors(const struct bsmi_hip_run *run);
void bsmi_hip_fill_direct(const struct bsmi_hip_run *run, struct bsmi_hip_gemm_finish *finish);

#endif
