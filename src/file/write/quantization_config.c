/* What config.json says of a quantization, see quantization_config.h.
 *
 * Sources of keys and words: modelopt.torch.export of nvidia-modelopt 0.47 (get_quant_config,
 * convert_hf_quant_config_format), the preset schemes of compressed-tensors 0.20, and the config.json of
 * openai/gpt-oss. */
#include "quantization_config.h"

#include <stdio.h>

/* How the projects call a format. */
static const struct words {
    bsm_format format;
    const char *algorithm, *weight_only;        /* ModelOpt's, with and without scales for inputs */
    const char *packed, *strategy, *scale_type; /* compressed-tensors' */
    int bits, group;
    bool modelopt_has_group, modelopt_has_config_group; /* ModelOpt writes the size; and a config group */
} words[] = {
    { BSM_NVFP4, "NVFP4", "W4A16_NVFP4", "nvfp4-pack-quantized", "tensor_group", "torch.float8_e4m3fn", 4, 16, true,
      true },
    { BSM_MXFP4, "mxfp4", "mxfp4", "mxfp4-pack-quantized", "group", "torch.uint8", 4, 32, false, false },
    { BSM_MXFP6_E2M3, NULL, NULL, "mxfp6-pack-quantized", "group", "torch.uint8", 6, 32, false, false },
    { BSM_MXFP8_E4M3, "MXFP8", "MXFP8", "mxfp8-quantized", "group", "torch.uint8", 8, 32, true, false },
    { BSM_FORMAT_E4M3, "FP8", "FP8", "float-quantized", "tensor", NULL, 8, 0, false, true },
};

static const struct words *find(bsm_format format)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].format == format) return &words[i];
    return NULL;
}

bool bsmi_quantization_has_words(const struct bsmi_quantization *q)
{
    const bsm_convention c = q->convention;
    if (c == BSM_CONVENTION_GPT_OSS) return q->format == BSM_MXFP4;
    const struct words *w = find(q->format);
    return w != NULL &&
           (c == BSM_CONVENTION_COMPRESSED_TENSORS || (c == BSM_CONVENTION_MODELOPT && w->algorithm != NULL));
}

/* Lists ----------------------------------------------------------------------------------------------------------- */

static void put_boolean(struct bsmi_json_writer *json, const char *key, bool value)
{
    bsmi_json_word(json, key, value ? "true" : "false");
}

/* A model whose head is its embedding has no tensor for the head, but a module: it must be said to be left. */
static void put_left(struct bsmi_json_writer *json, const struct bsmi_quantization *q, const char *key)
{
    bool head = q->head;
    bsmi_json_open(json, key, '[');
    for (int64_t i = 0; i < q->left.count; i++) {
        bsmi_json_text(json, NULL, q->left.items[i]);
        if (strcmp(q->left.items[i], "lm_head") == 0) head = true;
    }
    if (!head) bsmi_json_text(json, NULL, "lm_head");
    bsmi_json_close(json, ']');
}

static void put_targets(struct bsmi_json_writer *json)
{
    bsmi_json_open(json, "targets", '[');
    bsmi_json_text(json, NULL, "Linear");
    bsmi_json_close(json, ']');
}

static void put_producer(struct bsmi_json_writer *json)
{
    char version[32];
    const int number = bsm_version();
    snprintf(version, sizeof version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    bsmi_json_open(json, "producer", '{');
    bsmi_json_text(json, "name", "blockscale");
    bsmi_json_text(json, "version", version);
    bsmi_json_close(json, '}');
}

/* ModelOpt -------------------------------------------------------------------------------------------------------- */

static const char *algorithm_of(const struct bsmi_quantization *q)
{
    const struct words *w = find(q->format);
    return q->input_scales ? w->algorithm : w->weight_only;
}

static void put_modelopt_numbers(struct bsmi_json_writer *json, const struct words *w, const char *key)
{
    bsmi_json_open(json, key, '{');
    put_boolean(json, "dynamic", false);
    bsmi_json_integer(json, "num_bits", w->bits);
    bsmi_json_text(json, "type", "float");
    if (w->group > 0) bsmi_json_integer(json, "group_size", w->group);
    bsmi_json_close(json, '}');
}

static void put_modelopt_group(struct bsmi_json_writer *json, const struct bsmi_quantization *q)
{
    const struct words *w = find(q->format);
    const bool inputs = q->input_scales || strcmp(w->algorithm, w->weight_only) == 0; /* FP8 is both, by its name */
    bsmi_json_open(json, "config_groups", '{');
    bsmi_json_open(json, "group_0", '{');
    if (inputs) put_modelopt_numbers(json, w, "input_activations");
    put_modelopt_numbers(json, w, "weights");
    put_targets(json);
    bsmi_json_close(json, '}');
    bsmi_json_close(json, '}');
}

static void put_modelopt(struct bsmi_json_writer *json, const struct bsmi_quantization *q)
{
    if (find(q->format)->modelopt_has_config_group) put_modelopt_group(json, q);
    put_left(json, q, "ignore");
    bsmi_json_text(json, "quant_algo", algorithm_of(q));
    put_producer(json);
    bsmi_json_text(json, "quant_method", "modelopt");
}

void bsmi_quantization_hf_quant_config(struct bsmi_json_writer *json, const struct bsmi_quantization *q)
{
    const struct words *w = find(q->format);
    bsmi_json_open(json, NULL, '{');
    put_producer(json);
    bsmi_json_open(json, "quantization", '{');
    bsmi_json_text(json, "quant_algo", algorithm_of(q));
    bsmi_json_word(json, "kv_cache_quant_algo", "null");
    if (w->modelopt_has_group) bsmi_json_integer(json, "group_size", w->group);
    put_left(json, q, "exclude_modules");
    bsmi_json_close(json, '}');
    bsmi_json_close(json, '}');
}

/* compressed-tensors ---------------------------------------------------------------------------------------------- */

/* local: inputs of NVFP4, whose block scales are found as they come, under the tensor scale that is stored. */
static void put_numbers(struct bsmi_json_writer *json, const struct words *w, const char *key, bool local)
{
    bsmi_json_open(json, key, '{');
    bsmi_json_integer(json, "num_bits", w->bits);
    bsmi_json_text(json, "type", "float");
    put_boolean(json, "symmetric", true);
    if (w->group > 0) bsmi_json_integer(json, "group_size", w->group);
    bsmi_json_text(json, "strategy", w->strategy);
    if (local) bsmi_json_text(json, "dynamic", "local");
    else put_boolean(json, "dynamic", false);
    if (w->scale_type != NULL) bsmi_json_text(json, "scale_dtype", w->scale_type);
    bsmi_json_close(json, '}');
}

static void put_compressed_tensors(struct bsmi_json_writer *json, const struct bsmi_quantization *q)
{
    const struct words *w = find(q->format);
    bsmi_json_open(json, "config_groups", '{');
    bsmi_json_open(json, "group_0", '{');
    put_targets(json);
    put_numbers(json, w, "weights", false);
    if (q->input_scales) put_numbers(json, w, "input_activations", q->format == BSM_NVFP4);
    else bsmi_json_word(json, "input_activations", "null");
    bsmi_json_word(json, "output_activations", "null");
    bsmi_json_text(json, "format", w->packed);
    bsmi_json_close(json, '}');
    bsmi_json_close(json, '}');
    bsmi_json_text(json, "quant_method", "compressed-tensors");
    bsmi_json_word(json, "kv_cache_scheme", "null");
    bsmi_json_text(json, "format", w->packed);
    bsmi_json_text(json, "quantization_status", "compressed");
    put_left(json, q, "ignore");
}

/* gpt-oss --------------------------------------------------------------------------------------------------------- */

static void put_gpt_oss(struct bsmi_json_writer *json, const struct bsmi_quantization *q)
{
    put_left(json, q, "modules_to_not_convert");
    bsmi_json_text(json, "quant_method", "mxfp4");
}

void bsmi_quantization_config(struct bsmi_json_writer *json, const struct bsmi_quantization *q)
{
    bsmi_json_open(json, NULL, '{');
    switch (q->convention) {
    case BSM_CONVENTION_COMPRESSED_TENSORS: put_compressed_tensors(json, q); break;
    case BSM_CONVENTION_GPT_OSS: put_gpt_oss(json, q); break;
    default: put_modelopt(json, q); break;
    }
    bsmi_json_close(json, '}');
}
