/* The words by which other projects' files say how a model is quantized. */
#ifndef CLI_QUANTIZATION_CONFIG_H
#define CLI_QUANTIZATION_CONFIG_H

#include "cli/cli.h"

#include <yyjson/yyjson.h>

/* What there is to say. */
struct quantization {
    bsm_convention convention;
    bsm_format format; /* of all weights; NONE where they differ */
    bool input_scales; /* every weight has a scale for its input */
    bool head;         /* the module lm_head is quantized */
    char **left;       /* modules that keep their numbers */
    int left_count;
};

/* Whether the convention has words for the format. */
bool quantization_has_words(const struct quantization *quantization);

/* The value of config.json's "quantization_config". */
yyjson_mut_val *quantization_config(yyjson_mut_doc *doc, const struct quantization *quantization);

/* The whole of ModelOpt's hf_quant_config.json. */
yyjson_mut_val *quantization_hf_quant_config(yyjson_mut_doc *doc, const struct quantization *quantization);

#endif
