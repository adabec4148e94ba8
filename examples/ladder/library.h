/* Step 6: the library's own kernel (src/cuda/sm100), through the library's interface. */
#ifndef LADDER_LIBRARY_H
#define LADDER_LIBRARY_H

#include "device.h"

/* A problem as the library sees it, with its plan. */
struct library_product {
    bsm_context *context;                 /* of the GPU */
    bsm_matrix a, b, d;
    bsm_matmul call;
    bsm_plan *plan;
    void *workspace;
    size_t workspace_bytes;
};

/* Plans the product of a loaded problem with the library's kernel of this tile ("128x256").  Ends the program, with a
 * sentence, if it cannot. */
void library_plan(struct library_product *product, bsm_context *context, const struct loaded *loaded, const char *tile);
void library_free(struct library_product *product);

/* Puts the product into the default stream. */
void library_launch(const struct library_product *product);

#endif
