/* What quantize asks for of a whole checkpoint. */
#ifndef CLI_CHECKPOINT_REQUEST_H
#define CLI_CHECKPOINT_REQUEST_H

#include "cli/matrices/matrices.h"

struct checkpoint_request {
    const char *input, *output;           /* input: a checkpoint, or (real != NULL) where the one matrix came from */
    const struct cli_real *real;
    bsm_format format;
    bsm_convention convention;            /* NONE: that of the output's kind */
    const char *include, *exclude;        /* patterns; NULL: the usual ones */
    const char *share;                    /* rules of fused.h for weights that share a tensor scale */
    bsm_quantize_options how;
};

#endif
