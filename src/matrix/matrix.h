/* A checked matrix: what quantizers, the exact product and the kernels work from. */
#ifndef BSMI_MATRIX_H
#define BSMI_MATRIX_H

#include "blockscale/matrix.h"
#include "format/format.h"
#include "layout/layout.h"

/* A bsm_matrix (or bsm_sparse_matrix) whose rules were checked and whose defaults were filled in. */
struct bsmi_matrix {
    bsm_format format;
    bsm_element element;
    bsm_scale scale;
    int block;                            /* columns under a scale, of a sparse matrix kept or not; 0: unscaled */
    int bits;                             /* of an element's code */
    bsm_packing packing;                  /* DEFAULT only for 8, 16 and 32 bits: one code after the other */
    bsm_major major;                      /* MN: pitch and row_bytes are those between columns */
    bsm_sparsity sparsity;                /* other than NONE: pitch counts kept elements */
    int64_t rows, columns, scale_columns, batch;
    unsigned char *data, *scales;
    int64_t pitch, row_bytes, batch_bytes;               /* between rows and matrices; pitch in elements */
    int64_t scale_batch_bytes;
    int64_t first_scale;                  /* of some columns of a matrix: scales of a row in front of theirs */
    struct bsmi_scale_map map;            /* of one matrix of the batch; unused when unscaled */
    float *tensor_scale;
    bsm_tensor_scale_use tensor_scale_use;
    unsigned char *metadata;              /* of a sparse one */
    int64_t metadata_row_bytes, metadata_batch_bytes;
};

/* Checks `given` whole; name is the argument's ("a", "destination"), so that sentences say "a->pitch=7: ...".
 * Reads no data, nor *tensor_scale: that is a device's business where the matrix lies on a device.
 * An MN-major matrix is refused, and a sparse one. */
bsm_status bsmi_matrix_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix);
/* The same for one that may be MN-major or sparse: an operand. */
bsm_status bsmi_operand_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix);
/* The same for one whose codes and scales are not where `given` says, which is nowhere: data and scales stay NULL. */
bsm_status bsmi_operand_resolve_without_data(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix);
/* For one that may be sparse, not MN-major. */
bsm_status bsmi_sparse_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix);

/* The codes as they lie in memory, a K-major matrix without scales: of an MN-major one its transpose, of a sparse one
 * the kept elements. */
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

/* Of a sparse matrix: elements that are kept or left out together, columns of a group, bytes of a row's metadata. */
static inline int bsmi_sparse_unit(const struct bsmi_matrix *m) { return m->sparsity == BSM_SPARSITY_2_4 ? 1 : 2; }
static inline int bsmi_sparse_columns(const struct bsmi_matrix *m) { return 4 * bsmi_sparse_unit(m); }
static inline int64_t bsmi_metadata_row_bytes(const struct bsmi_matrix *m)
{
    const int64_t byte = 2 * bsmi_sparse_columns(m);
    return m->columns / byte + (m->columns % byte != 0);
}

/* The four bits of a group. */
static inline int bsmi_metadata(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t group)
{
    return m->metadata[batch * m->metadata_batch_bytes + row * m->metadata_row_bytes + group / 2] >> 4 * (group % 2)
           & 15;
}

#endif
