/* Which kernel a product gets on a GPU of AMD, and how a plan of it is described. */
#ifndef BSMI_HIP_SELECT_H
#define BSMI_HIP_SELECT_H

#include "hip/gemm/multiply.h"

/* Kernels that make S: number 0 is the one without matrix instructions, the others are the GEMM instances.  NULL behind
 * the last. */
const char *bsmi_hip_kernel_name(int number);
bool bsmi_hip_kernel_serves(const bsm_context *context, int number, bsm_format a, bsm_format b);

/* Chooses, prepares, and loads the kernel; forced: number of a kernel, or -1.  Fails with BSM_EUNSUPPORTED (also where
 * the forced kernel cannot serve the product: then the sentence names it and the rule), BSM_EOVERFLOW, BSM_EDEVICE. */
bsm_status bsmi_hip_choose(const bsm_context *context, const struct bsmi_product *product, int forced,
                           struct bsmi_hip_multiply *multiply, const char **reason);

/* The same for products with prepacked weights; other: what was chosen without.  multiply->gemm is -1 where no such
 * kernel serves, or the other takes less time. */
bsm_status bsmi_hip_choose_prepacked(const bsm_context *context, const struct bsmi_product *product, int forced,
                                     const struct bsmi_hip_multiply *other, struct bsmi_hip_multiply *multiply);

/* bsm_plan_describe. */
size_t bsmi_hip_describe_plan(const struct bsmi_product *product, const struct bsmi_hip_multiply *multiply,
                              const struct bsmi_hip_multiply *prepacked, const char *reason, char *text, size_t bytes);

/* hip_cost.c: nanoseconds that the GEMM kernel is expected to take; and the launches around it: of operands that are
 * made, of scales that are searched for NaN, of an epilogue of its own. */
double bsmi_hip_cost(const struct bsmi_hip_gpu *gpu, int gemm, const struct bsmi_product *product);
double bsmi_hip_cost_around(const struct bsmi_hip_multiply *multiply, const struct bsmi_product *product);

#endif
