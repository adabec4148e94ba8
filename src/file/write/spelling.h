/* How a quantized weight is written: names, types and shapes of its tensors, by convention and format. */
#ifndef BSMI_SPELLING_H
#define BSMI_SPELLING_H

#include "blockscale/writer.h"
#include "core/core.h"

struct bsmi_spelling {
    bsm_convention convention;
    bsm_format format;
    const char *codes, *scales, *tensor_scale; /* endings of names; NULL: no such tensor */
    bsm_tensor_type code_type, scale_type;
};

/* NULL: the convention has no name for the format. */
const struct bsmi_spelling *bsmi_spelling_find(bsm_convention convention, bsm_format format);

/* Packing, scale layout and use of the tensor scale; no pointers. */
bsm_matrix bsmi_spelling_matrix(const struct bsmi_spelling *s, int64_t batch, int64_t rows, int64_t columns);

/* How many numbers a row must be a multiple of; 1: any. */
int64_t bsmi_spelling_row_unit(const struct bsmi_spelling *s);

const char *bsmi_spelling_input_scale(const struct bsmi_spelling *s);     /* the ending of its name */

/* The tensors, without their names.  Errors: BSM_EINVAL, BSM_EOVERFLOW. */
bsm_status bsmi_spelling_codes(const struct bsmi_spelling *s, const bsm_matrix *m, bsm_tensor *tensor);
bsm_status bsmi_spelling_scales(const struct bsmi_spelling *s, const bsm_matrix *m, bsm_tensor *tensor);
bsm_tensor bsmi_spelling_fp32(const struct bsmi_spelling *s);             /* one number: a tensor scale, an input
                                                                             scale */

#endif
