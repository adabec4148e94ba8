/* The bound that Blackwell's kernels for codes are held to. */
#ifndef TESTS_CUDA_CODES_BOUND_H
#define TESTS_CUDA_CODES_BOUND_H

#include "cuda/harness/gpu.h"

/* D, fp32, of two single matrices lies within what its K may cut of the exact product. */
void check_bound(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                 const float *d, const char *what);

#endif
