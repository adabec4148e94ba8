/* A checked matrix, and where its elements lie: what quantizers, the exact product and the kernels read and write through. */
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
    int64_t rows, columns, scale_columns, batch;
    unsigned char *data, *scales;
    int64_t pitch, row_bytes, batch_bytes;               /* between rows and matrices; pitch in elements */
    int64_t scale_batch_bytes;
    struct bsmi_scale_map map;            /* of one matrix of the batch; unused when unscaled */
    float *tensor_scale;
    bsm_tensor_scale_use tensor_scale_use;
};

/* Checks `given` whole; name is the argument's ("a", "destination"), so that sentences say "a->pitch=7: ...".
 * Reads no data, nor *tensor_scale: that is a device's business where the matrix lies on a device. */
bsm_status bsmi_matrix_resolve(const char *name, const bsm_matrix *given, struct bsmi_matrix *matrix);

/* Fails, naming the pitch, if matrices of the batch, their rows or their scales overlap: for what a function writes. */
bsm_status bsmi_matrix_check_written(const char *name, const struct bsmi_matrix *matrix);

/* Bytes from the first to the last code of a row; of GGUF whole blocks. */
int64_t bsmi_row_used_bytes(const struct bsmi_matrix *matrix);

/* The tensor scale as it lies in host memory: 1 without one.  Fails unless it is finite and > 0. */
bsm_status bsmi_matrix_tensor_scale(const char *name, const struct bsmi_matrix *matrix, float *tensor_scale);

/* First byte of a row.  For GGUF that is its first block. */
static inline unsigned char *bsmi_row(const struct bsmi_matrix *m, int64_t batch, int64_t row)
{
    return m->data + batch * m->batch_bytes + row * m->row_bytes;
}

/* Codes [k, k + count) of a row, one per byte; elements of at most 8 bits.  Any k and count within the row. */
void bsmi_row_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count, uint8_t *codes);

/* The same, written.  k is a multiple of 16; unless k + count ends the row, count is one too.  Padding bits of the row's
 * last byte (of GGUF: the rest of its last block) are written as zeros. */
void bsmi_row_store_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count, const uint8_t *codes);

/* Elements [k, k + count) of a row, decoded, without scales: exact.  table: bsmi_element_table of the element, or NULL for
 * elements of 16 and 32 bits. */
void bsmi_row_elements(const struct bsmi_matrix *m, const float *table, int64_t batch, int64_t row, int64_t k, int64_t count,
                       float *values);

/* Scale codes [s, s + count) of a row; block-scaled formats only. */
void bsmi_row_scales(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t s, int64_t count, uint8_t *codes);
static inline unsigned char *bsmi_scale_pointer(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t s)
{
    return m->scales + batch * m->scale_batch_bytes + bsmi_scale_at(&m->map, row, s);
}

/* Writes zeros into the padding scales of every matrix of the batch. */
void bsmi_matrix_clear_scale_padding(const struct bsmi_matrix *m);

/* Real numbers ------------------------------------------------------------------------------------------------------- */

struct bsmi_reals {
    bsm_real type;
    int64_t rows, columns, row_stride, column_stride, batch, batch_stride;
    unsigned char *data;
};

/* Checks `given`; name as above. */
bsm_status bsmi_reals_resolve(const char *name, const bsm_real_matrix *given, struct bsmi_reals *reals);

/* Fails, naming the stride, if elements overlap: for what a function writes. */
bsm_status bsmi_reals_check_written(const char *name, const struct bsmi_reals *reals);

static inline int64_t bsmi_real_index(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t column)
{
    return batch * r->batch_stride + row * r->row_stride + column * r->column_stride;
}

/* Number `index` of an array of reals, as a double (exact), and one rounded into it (ties to even; never through another
 * type).  NaN is stored as the type's canonical quiet NaN. */
double bsmi_real_load(bsm_real type, const void *data, int64_t index);
void bsmi_real_store(bsm_real type, void *data, int64_t index, double value);

/* count numbers of one row, from column k, as floats; fp64 is rounded. */
void bsmi_reals_row(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t k, int64_t count, float *values);
/* The same as doubles: exact. */
void bsmi_reals_row_wide(const struct bsmi_reals *r, int64_t batch, int64_t row, int64_t k, int64_t count, double *values);

#endif
