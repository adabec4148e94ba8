/* The words by which other projects' files say how a model is quantized. */
#ifndef BSMI_QUANTIZATION_CONFIG_H
#define BSMI_QUANTIZATION_CONFIG_H

#include "blockscale/writer.h"
#include "json_text.h"
#include "texts.h"

/* What there is to say. */
struct bsmi_quantization {
    bsm_convention convention;  /* NONE: nothing is quantized */
    bsm_format format;          /* of all weights; NONE where they differ */
    bool input_scales;          /* every weight has a scale for its input */
    bool head;                  /* the module lm_head is quantized */
    struct bsmi_texts left;     /* modules that keep their numbers */
};

/* Whether the convention has words for the format. */
bool bsmi_quantization_has_words(const struct bsmi_quantization *q);

/* The value of config.json's "quantization_config". */
void bsmi_quantization_config(struct bsmi_json_writer *json, const struct bsmi_quantization *q);

/* The whole of ModelOpt's hf_quant_config.json. */
void bsmi_quantization_hf_quant_config(struct bsmi_json_writer *json, const struct bsmi_quantization *q);

#endif
