/* Codes of MN-major matrices, K-major. */
#ifndef BSMI_MATRIX_TRANSPOSE_H
#define BSMI_MATRIX_TRANSPOSE_H

#include "matrix.h"

/* The codes of a piece of `from`, which is MN-major, into `to`, which is K-major and of the same element, rows and
 * columns, in any packing but GGUF's. */
enum { BSMI_TRANSPOSED_ROWS = 64, BSMI_TRANSPOSED_COLUMNS = 1024 };
int64_t bsmi_transpose_pieces(const struct bsmi_matrix *from);
void bsmi_transpose_piece(const struct bsmi_matrix *from, const struct bsmi_matrix *to, int64_t piece);

#endif
