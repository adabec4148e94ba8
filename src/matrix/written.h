/* What a function writes must not overlap itself. */
#ifndef BSMI_WRITTEN_H
#define BSMI_WRITTEN_H

#include "matrix.h"
#include "reals.h"

/* Fails, naming the pitch, if matrices of the batch, their rows or their scales overlap: for what a function writes. */
bsm_status bsmi_matrix_check_written(const char *name, const struct bsmi_matrix *matrix);

/* Fails, naming the stride, if elements overlap: for what a function writes. */
bsm_status bsmi_reals_check_written(const char *name, const struct bsmi_reals *reals);

#endif
