/* Which GEMM instance a product gets on a GPU, and how a plan of it is described. */
#ifndef BSMI_CUDA_SELECT_H
#define BSMI_CUDA_SELECT_H

#include "cuda/gemm/multiply.h"

/* Kernels that make S: number 0 is the SIMT kernel, the others are the GEMM instances.  NULL behind the last. */
const char *bsmi_cuda_kernel_name(int number);
bool bsmi_cuda_kernel_serves(const bsm_context *context, int number, bsm_format a, bsm_format b);

/* Whether the product, or the forced kernel, multiplies its sparse B as it is stored. */
bool bsmi_cuda_takes_sparse(const bsm_context *context, const struct bsmi_product *product, int forced);

/* Which MN-major operands the kernels that may be chosen (the forced one) read as they are stored; the others are to be
 * copied K-major before anything is chosen. */
struct bsmi_read_majors { bool a, b; };
struct bsmi_read_majors bsmi_cuda_read_majors(const bsm_context *context, const struct bsmi_product *product,
                                              int forced);

/* Chooses and prepares; forced: number of a kernel, or -1.  Fails with BSM_EUNSUPPORTED (also where the forced kernel
 * cannot serve the product: then the sentence names it and the rule), BSM_EOVERFLOW. */
bsm_status bsmi_cuda_choose(const bsm_context *context, const struct bsmi_product *product, int forced,
                            struct bsmi_cuda_multiply *multiply, const char **reason);

/* The same among instances that read prepacked weights, for products that have some; multiply->gemm is -1 where none
 * serves, or none is faster than `other`.  A forced one that reads them is `other` itself. */
bsm_status bsmi_cuda_choose_prepacked(const bsm_context *context, const struct bsmi_product *product, int forced,
                                   const struct bsmi_cuda_multiply *other, struct bsmi_cuda_multiply *multiply);

/* bsm_plan_describe. */
size_t bsmi_cuda_describe_plan(const struct bsmi_product *product, const struct bsmi_cuda_multiply *multiply,
                               const struct bsmi_cuda_multiply *prepacked, const char *reason, char *text,
                               size_t bytes);

#endif
