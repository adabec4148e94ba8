/* An operand whose codes a GEMM kernel decodes itself. */
#ifndef BSMI_CUDA_DECODING_H
#define BSMI_CUDA_DECODING_H

#include "cuda/driver/launch.h"
#include "multiply.h"

enum { BSMI_CODES_BOX_BYTES = 128 }; /* of a row, in a box of the codes' tensor map */

/* Its rows as bytes. */
struct bsmi_cuda_rows bsmi_cuda_code_rows(const struct bsmi_matrix *matrix);

/* Makes the operand one that is decoded in the kernel; any_scales: in registers. */
void bsmi_cuda_describe_codes(const struct bsmi_matrix *matrix, bool any_scales, struct bsmi_cuda_operand *operand);

#endif
