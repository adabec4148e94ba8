/* What config.json says of a quantization, see quantization_config.h.
 *
 * Sources of keys and words: modelopt.torch.export of nvidia-modelopt 0.47 (get_quant_config, convert_hf_quant_config_format), the
 * preset schemes of compressed-tensors 0.20, and the config.json of openai/gpt-oss. */
#include "quantization_config.h"

#include <string.h>

/* How the projects call a format. */
static const struct words {
    bsm_format format;
    const char *algorithm, *weight_only;        /* ModelOpt's, with and without scales for inputs */
    const char *packed, *strategy, *scale_type; /* compressed-tensors' */
    int bits, group;
    bool modelopt_has_group, modelopt_has_config_group; /* ModelOpt writes the size; and a config group */
} words[] = {
    { BSM_NVFP4, "NVFP4", "W4A16_NVFP4", "nvfp4-pack-quantized", "tensor_group", "torch.float8_e4m3fn", 4, 16, true, true },
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

bool quantization_has_words(const struct quantization *q)
{
    const bsm_convention c = q->convention;
    if (c == BSM_CONVENTION_GPT_OSS) return q->format == BSM_MXFP4;
    const struct words *w = find(q->format);
    return w != NULL && (c == BSM_CONVENTION_COMPRESSED_TENSORS || (c == BSM_CONVENTION_MODELOPT && w->algorithm != NULL));
}

/* Lists ------------------------------------------------------------------------------------------------------------ */

/* A model whose head is its embedding has no tensor for the head, but a module: it must be said to be left. */
static void add_left(yyjson_mut_doc *doc, const struct quantization *q, yyjson_mut_val *object, const char *key)
{
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, key);
    bool head = q->head;
    for (int i = 0; i < q->left_count; i++) {
        yyjson_mut_arr_add_str(doc, list, q->left[i]);
        if (strcmp(q->left[i], "lm_head") == 0) head = true;
    }
    if (!head) yyjson_mut_arr_add_str(doc, list, "lm_head");
}

static void add_targets(yyjson_mut_doc *doc, yyjson_mut_val *group)
{
    yyjson_mut_val *targets = yyjson_mut_obj_add_arr(doc, group, "targets");
    yyjson_mut_arr_add_str(doc, targets, "Linear");
}

static void add_producer(yyjson_mut_doc *doc, yyjson_mut_val *object)
{
    char version[32];
    const int number = bsm_version();
    yyjson_mut_val *producer = yyjson_mut_obj_add_obj(doc, object, "producer");
    snprintf(version, sizeof version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    yyjson_mut_obj_add_str(doc, producer, "name", "blockscale");
    yyjson_mut_obj_add_strcpy(doc, producer, "version", version);
}

/* ModelOpt --------------------------------------------------------------------------------------------------------- */

static const char *algorithm_of(const struct quantization *q)
{
    const struct words *w = find(q->format);
    return q->input_scales ? w->algorithm : w->weight_only;
}

static void add_modelopt_numbers(yyjson_mut_doc *doc, const struct words *w, yyjson_mut_val *group, const char *key)
{
    yyjson_mut_val *numbers = yyjson_mut_obj_add_obj(doc, group, key);
    yyjson_mut_obj_add_bool(doc, numbers, "dynamic", false);
    yyjson_mut_obj_add_int(doc, numbers, "num_bits", w->bits);
    yyjson_mut_obj_add_str(doc, numbers, "type", "float");
    if (w->group > 0) yyjson_mut_obj_add_int(doc, numbers, "group_size", w->group);
}

static void add_modelopt_group(yyjson_mut_doc *doc, const struct quantization *q, yyjson_mut_val *object)
{
    const struct words *w = find(q->format);
    yyjson_mut_val *groups = yyjson_mut_obj_add_obj(doc, object, "config_groups");
    yyjson_mut_val *group = yyjson_mut_obj_add_obj(doc, groups, "group_0");
    const bool inputs = q->input_scales || strcmp(w->algorithm, w->weight_only) == 0; /* FP8 is both, by its name */
    if (inputs) add_modelopt_numbers(doc, w, group, "input_activations");
    add_modelopt_numbers(doc, w, group, "weights");
    add_targets(doc, group);
}

static yyjson_mut_val *modelopt_config(yyjson_mut_doc *doc, const struct quantization *q)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    if (find(q->format)->modelopt_has_config_group) add_modelopt_group(doc, q, object);
    add_left(doc, q, object, "ignore");
    yyjson_mut_obj_add_str(doc, object, "quant_algo", algorithm_of(q));
    add_producer(doc, object);
    yyjson_mut_obj_add_str(doc, object, "quant_method", "modelopt");
    return object;
}

yyjson_mut_val *quantization_hf_quant_config(yyjson_mut_doc *doc, const struct quantization *q)
{
    const struct words *w = find(q->format);
    yyjson_mut_val *top = yyjson_mut_obj(doc);
    add_producer(doc, top);
    yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, top, "quantization");
    yyjson_mut_obj_add_str(doc, object, "quant_algo", algorithm_of(q));
    yyjson_mut_obj_add_null(doc, object, "kv_cache_quant_algo");
    if (w->modelopt_has_group) yyjson_mut_obj_add_int(doc, object, "group_size", w->group);
    add_left(doc, q, object, "exclude_modules");
    return top;
}

/* compressed-tensors ----------------------------------------------------------------------------------------------- */

/* local: inputs of NVFP4, whose block scales are found as they come, under the tensor scale that is stored. */
static void add_numbers(yyjson_mut_doc *doc, const struct words *w, yyjson_mut_val *group, const char *key, bool local)
{
    yyjson_mut_val *numbers = yyjson_mut_obj_add_obj(doc, group, key);
    yyjson_mut_obj_add_int(doc, numbers, "num_bits", w->bits);
    yyjson_mut_obj_add_str(doc, numbers, "type", "float");
    yyjson_mut_obj_add_bool(doc, numbers, "symmetric", true);
    if (w->group > 0) yyjson_mut_obj_add_int(doc, numbers, "group_size", w->group);
    yyjson_mut_obj_add_str(doc, numbers, "strategy", w->strategy);
    if (local) yyjson_mut_obj_add_str(doc, numbers, "dynamic", "local");
    else yyjson_mut_obj_add_bool(doc, numbers, "dynamic", false);
    if (w->scale_type != NULL) yyjson_mut_obj_add_str(doc, numbers, "scale_dtype", w->scale_type);
}

static yyjson_mut_val *compressed_tensors_config(yyjson_mut_doc *doc, const struct quantization *q)
{
    const struct words *w = find(q->format);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_val *groups = yyjson_mut_obj_add_obj(doc, object, "config_groups");
    yyjson_mut_val *group = yyjson_mut_obj_add_obj(doc, groups, "group_0");
    add_targets(doc, group);
    add_numbers(doc, w, group, "weights", false);
    if (q->input_scales) add_numbers(doc, w, group, "input_activations", q->format == BSM_NVFP4);
    else yyjson_mut_obj_add_null(doc, group, "input_activations");
    yyjson_mut_obj_add_null(doc, group, "output_activations");
    yyjson_mut_obj_add_str(doc, group, "format", w->packed);
    yyjson_mut_obj_add_str(doc, object, "quant_method", "compressed-tensors");
    yyjson_mut_obj_add_null(doc, object, "kv_cache_scheme");
    yyjson_mut_obj_add_str(doc, object, "format", w->packed);
    yyjson_mut_obj_add_str(doc, object, "quantization_status", "compressed");
    add_left(doc, q, object, "ignore");
    return object;
}

/* gpt-oss ---------------------------------------------------------------------------------------------------------- */

static yyjson_mut_val *gpt_oss_config(yyjson_mut_doc *doc, const struct quantization *q)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    add_left(doc, q, object, "modules_to_not_convert");
    yyjson_mut_obj_add_str(doc, object, "quant_method", "mxfp4");
    return object;
}

yyjson_mut_val *quantization_config(yyjson_mut_doc *doc, const struct quantization *q)
{
    switch (q->convention) {
    case BSM_CONVENTION_COMPRESSED_TENSORS: return compressed_tensors_config(doc, q);
    case BSM_CONVENTION_GPT_OSS: return gpt_oss_config(doc, q);
    default: return modelopt_config(doc, q);
    }
}
