/* Codes, elements and scales of a row of a matrix, in any packing and layout. */
#ifndef BSMI_MATRIX_ROWS_H
#define BSMI_MATRIX_ROWS_H

#include "matrix.h"

/* Codes [k, k + count) of a row, one per byte; elements of at most 8 bits.  Any k and count within the row. */
void bsmi_row_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count, uint8_t *codes);

/* The codes themselves of a row of a sparse matrix, `size` bytes each: 1 for at most 8 bits, else 2 or 4.  Nothing
 * outside the row is read or written, whatever its metadata are. */
void bsmi_sparse_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count, void *codes,
                       size_t size);

/* As bsmi_row_codes, written.  k is a multiple of 16; unless k + count ends the row, count is one too.  Padding bits of
 * the row's last byte (of GGUF: the rest of its last block) are written as zeros. */
void bsmi_row_store_codes(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t k, int64_t count,
                          const uint8_t *codes);

/* Elements [k, k + count) of a row, decoded, without scales: exact.  table: bsmi_element_table of the element, or NULL
 * for elements of 16 and 32 bits. */
void bsmi_row_elements(const struct bsmi_matrix *m, const float *table, int64_t batch, int64_t row, int64_t k,
                       int64_t count, float *values);

/* Scale codes [s, s + count) of a row; block-scaled formats only. */
void bsmi_row_scales(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t s, int64_t count, uint8_t *codes);

static inline unsigned char *bsmi_scale_pointer(const struct bsmi_matrix *m, int64_t batch, int64_t row, int64_t s)
{
    return m->scales + batch * m->scale_batch_bytes + bsmi_scale_at(&m->map, row, m->first_scale + s);
}

/* Writes zeros into the padding scales of every matrix of the batch. */
void bsmi_matrix_clear_scale_padding(const struct bsmi_matrix *m);

#endif
