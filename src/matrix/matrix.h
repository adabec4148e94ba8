/* A checked matrix: what quantizers, the exact product and the kernels work from. */
#ifndef BSMI_MATRIX_H
#define BSMI_MATRIX_H

#include "blockscale/matrix.h"
#include "format/format.h"
#include "layout/layout.h"

/* A bsm_matrix whose rules were checked and whose defaults were filled in. */
struct bsmi_matrix {
    bsm_format format;
    bsm_element element;
    bsm_scale scale;
    int block;                            /* 0: unscaled */
    int bits;                             /* of an element's code */
    bsm_packing packing;                  /* DEFAULT only for 8, 16 and 32 bits: one code after the other */
    bsm_major major;                      /* MN: pitch and row_bytes are those between columns */
    int64_t rows, columns, scale_columns, batch;
    unsigned char *data, *scales;
    int64_t pitch, row_bytes, batch_bytes;               /* between rows and matrices; pitch in elements */
    int64_t scale_batch_bytes;
    int64_t first_scale;                  /* of some columns of a matrix: scales of a row in front of theirs */
    struct bsmi_scale_map map;            /* of one matrix of the batch; unused when unscaled */
    float *tensor_scale;
    bsm_tensor_scale_use tensor_scale_use;
};

/* Checks `given` whole; name is the argument's ("a", "destination"), so that sentences say "a->pitch=7: ...".
 * Reads no data, nor *tensor_scale: that is a device's business where the matrix lies on a device.
 * An MN-major matrix is refused. */
bsm_status bsmi_matrix_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix);
/* The same for one that may be MN-major: an operand. */
bsm_status bsmi_operand_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix);

/* The codes as they lie in memory, a K-major matrix without scales: of an MN-major one its transpose. */
struct bsmi_matrix bsmi_matrix_stored(const struct bsmi_matrix *matrix);

/* Some columns of a K-major matrix, for reading: `first` is a multiple of its block and of its packing's unit. */
struct bsmi_matrix bsmi_matrix_columns(const struct bsmi_matrix *matrix, int64_t first, int64_t columns);

/* Bytes from the first to the last code of a row of a K-major matrix; of GGUF whole blocks. */
int64_t bsmi_row_used_bytes(const struct bsmi_matrix *matrix);

/* The tensor scale as it lies in host memory: 1 without one.  Fails unless it is finite and > 0. */
bsm_status bsmi_matrix_tensor_scale(const char *name, const struct bsmi_matrix *matrix, float *tensor_scale);

/* First byte of a row of a K-major matrix.  For GGUF that is its first block. */
static inline unsigned char *bsmi_row(const struct bsmi_matrix *m, int64_t batch, int64_t row)
{
    return m->data + batch * m->batch_bytes + row * m->row_bytes;
}

#endif
