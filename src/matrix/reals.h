/* Checked views of real numbers: fp32, fp64, fp16 and bf16 with any strides. */
#ifndef BSMI_REALS_H
#define BSMI_REALS_H

#include "blockscale/matrix.h"
#include "format/format.h"

struct bsmi_reals {
    bsm_real type;
    int64_t rows, columns, row_stride, column_stride, batch, batch_stride;
    unsigned char *data;
};

/* Checks `given`; name as above. */
bsm_status bsmi_reals_resolve(const char *name, const bsm_real_matrix *given, struct bsmi_reals *reals);

static inline int64_t bsmi_real_index(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t column)
{
    return batch * r->batch_stride + row * r->row_stride + column * r->column_stride;
}

/* Number `index` of an array of reals, as a double (exact), and one rounded into it (ties to even; never through
 * another type).  NaN is stored as the type's canonical quiet NaN. */
double bsmi_real_load(bsm_real type, const void *data, int64_t index);
void bsmi_real_store(bsm_real type, void *data, int64_t index, double value);

/* count numbers of one row, from column k, as floats; fp64 is rounded. */
void bsmi_reals_row(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t k, int64_t count, float *values);
/* The same as doubles: exact. */
void bsmi_reals_row_wide(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t k, int64_t count,
                         double *values);

#endif
