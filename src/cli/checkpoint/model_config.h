/* The files beside a model's weights that say how they are quantized: config.json, and ModelOpt's hf_quant_config.json. */
#ifndef CLI_MODEL_CONFIG_H
#define CLI_MODEL_CONFIG_H

#include "quantization_config.h"

/* Writes them into folder `output`: the config.json beside checkpoint `input` (NULL: an empty one) with a quantization_config.
 * Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int model_config_write(struct cli *cli, const char *input, const char *output, const struct quantization *quantization);

/* The config.json beside checkpoint `input` without its quantization_config; nothing where there is none. */
int model_config_remove(struct cli *cli, const char *input, const char *output);

#endif
