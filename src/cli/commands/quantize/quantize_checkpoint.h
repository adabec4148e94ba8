/* Quantizing a whole checkpoint. */
#ifndef CLI_QUANTIZE_CHECKPOINT_H
#define CLI_QUANTIZE_CHECKPOINT_H

#include "checkpoint_request.h"

/* Returns an enum cli_exit. */
int quantize_checkpoint(struct cli *cli, const struct checkpoint_request *request);

#endif
