/* How a quantized matrix is written: names, types and shapes by convention. */
#ifndef CLI_WEIGHT_STORE_H
#define CLI_WEIGHT_STORE_H

#include "checkpoint_writer.h"

/* A weight that was announced to a writer; numbers of its tensors, -1 for none. */
struct weight_store {
    bsm_convention convention;
    bsm_matrix matrix;                    /* packing, scale layout and use of the tensor scale: no pointers */
    int64_t codes, scales, tensor_scale;
};

/* Whether a convention has a name for a format: NULL, or a sentence about what it has. */
const char *weight_store_refuses(bsm_convention convention, bsm_format format);

/* Announces weight `name`.  with_tensor_scale: it has one.  Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int weight_store_add(struct cli *cli, struct checkpoint_writer *writer, const char *name, bsm_convention convention,
                     bsm_format format, int64_t batch, int64_t rows, int64_t columns, bool with_tensor_scale,
                     struct weight_store *store);

/* Writes it.  matrix: store->matrix with its pointers. */
int weight_store_put(struct cli *cli, struct checkpoint_writer *writer, const struct weight_store *store, const bsm_matrix *matrix);

#endif
