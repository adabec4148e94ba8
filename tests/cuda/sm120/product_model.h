/* A second model of tensor cores' products, with the scales of blocks or without, bit for bit, for finite codes and
 * scales: what is published of those of compute capability 12.x and 10.x (arXiv 2511.10909;
 * cudasim/docs/tensor-core.md has the steps), in 64-bit integers. */
#ifndef TESTS_CUDA_SM120_PRODUCT_MODEL_H
#define TESTS_CUDA_SM120_PRODUCT_MODEL_H

#include "blockscale.h"

enum model_kind { MODEL_MXF8F6F4, MODEL_MXF4, MODEL_MXF4NVF4, MODEL_F16, MODEL_TF32 };

/* The sum over columns [first, end) of K of row `row` of a's matrix and row `column` of b's, a chain of products from
 * zero on; first is a multiple of a product's columns, and behind `end` there are products of zeros. */
struct model_rows { const bsm_matrix *a, *b; int64_t a_matrix, row, b_matrix, column; };
float model_sum(enum model_kind kind, const struct model_rows *rows, int64_t first, int64_t end);

/* Columns of one product. */
int64_t model_columns(enum model_kind kind);

#endif
