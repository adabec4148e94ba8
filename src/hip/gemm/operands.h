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

/* The launches that make them. */
bsm_status bsmi_hip_make_operands(const struct bsmi_hip_run *run);

/* As the kernel is given them.  Fails with BSM_EALIGN for rows or scales that were to be read as they are and are not
 * aligned. */
bsm_status bsmi_hip_fill_operands(const struct bsmi_hip_run *run, struct bsmi_hip_gemm_parameters *parameters);

#endif
