/* Dequantizing a whole checkpoint. */
#ifndef CLI_DEQUANTIZE_CHECKPOINT_H
#define CLI_DEQUANTIZE_CHECKPOINT_H

#include "cli/cli.h"

/* Returns an enum cli_exit. */
int dequantize_checkpoint(struct cli *cli, const char *input, const char *output, bsm_real type);

#endif
