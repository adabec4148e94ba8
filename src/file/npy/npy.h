/* The head of an .npy file: what stands before the data. */
#ifndef BSMI_NPY_H
#define BSMI_NPY_H

#include "blockscale/npy.h"
#include "core/core.h"

/* The fixed bytes at the start: magic, version, length of the header that follows. */
enum { BSMI_NPY_PREAMBLE = 12 };          /* of versions 2.0 and 3.0; 10 of version 1.0 */
struct bsmi_npy_preamble { size_t header_at, header_bytes; };

/* start: the file's first bytes, min(file_bytes, BSMI_NPY_PREAMBLE) of them. */
bsm_status bsmi_npy_read_preamble(const unsigned char *start, uint64_t file_bytes, struct bsmi_npy_preamble *preamble);

/* Reads the header's text, a Python dict, into type, rank, shape, fortran_order, bytes and descr of array. */
bsm_status bsmi_npy_read_header(const char *text, size_t length, bsm_npy *array);

/* Types by number and by the text of 'descr'. */
bsm_status bsmi_npy_type_from_descr(const char *descr, bsm_npy_type *type);
const char *bsmi_npy_descr(bsm_npy_type type);

/* Product of the shape times size; true on overflow.  Dimensions of 0 are skipped by the check, as numpy does, so that
 * every accepted shape has strides that fit. */
bool bsmi_npy_shape_bytes(int rank, const int64_t *shape, size_t size, int64_t *bytes);

#endif
