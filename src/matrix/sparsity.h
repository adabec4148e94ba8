/* Sparse matrices: what their metadata keep. */
#ifndef BSMI_MATRIX_SPARSITY_H
#define BSMI_MATRIX_SPARSITY_H

#include "matrix.h"

/* Where the kept elements of a row have element `column`; -1: it is left out. */
int64_t bsmi_kept_column(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t column);

/* Fails unless all metadata are legal; BSM_OK for a matrix that is not sparse. */
bsm_status bsmi_metadata_check(const char *name, const struct bsmi_matrix *matrix);

#endif
