/* Which way a product takes on a GPU. */
#ifndef BSMI_CUDA_ROADS_H
#define BSMI_CUDA_ROADS_H

#include "cuda/gemm/multiply.h"

/* Kernels that make S: number 0 is the SIMT kernel, the others are the GEMM instances.  NULL behind the last. */
const char *bsmi_cuda_kernel_name(int number);
bool bsmi_cuda_kernel_serves(const bsm_context *context, int number, bsm_format a, bsm_format b);

/* Chooses and prepares; forced: number of a kernel, or -1.  Fails with BSM_EUNSUPPORTED (also where the forced kernel cannot serve the
 * product: then the sentence names it and the rule), BSM_EOVERFLOW. */
bsm_status bsmi_cuda_choose(const bsm_context *context, const struct bsmi_product *product, int forced,
                            struct bsmi_cuda_multiply *multiply, const char **reason);

/* The same among instances that read panels, for products that have some; multiply->gemm is -1 where none serves, or none is faster than
 * `other`.  A forced one that reads panels is `other` itself. */
bsm_status bsmi_cuda_choose_packed(const bsm_context *context, const struct bsmi_product *product, int forced,
                                   const struct bsmi_cuda_multiply *other, struct bsmi_cuda_multiply *multiply);

/* bsm_plan_describe. */
size_t bsmi_cuda_describe_plan(const struct bsmi_product *product, const struct bsmi_cuda_multiply *multiply,
                               const struct bsmi_cuda_multiply *packed, const char *reason, char *text, size_t bytes);

#endif
