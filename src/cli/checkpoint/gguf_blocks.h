/* Tensors of GGUF files that are no weights here, but can be read as numbers: Q8_0. */
#ifndef CLI_GGUF_BLOCKS_H
#define CLI_GGUF_BLOCKS_H

#include "cli/cli.h"

bool gguf_blocks_are_read(const bsm_tensor *tensor);

/* The tensor's numbers, each rounded once to `type`, into room for all of them. */
bsm_status gguf_blocks_values(struct cli *cli, const bsm_tensor *tensor, bsm_real type, void *numbers);

#endif
