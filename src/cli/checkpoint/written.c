/* What comes after a checkpoint's weights, see written.h. */
#include "written.h"
#include "checkpoint_writer.h"
#include "model_config.h"

#include <stdlib.h>

/* Programs that `make test-upstream` loads such files with: every number is the one that the file says.  vLLM is its CPU build, with
 * plain kernels where that has none (tests/upstream/vllm_kernels.py). */
#define TRANSFORMERS "transformers 5.17 with compressed-tensors 0.20"
static const struct readers {
    bsm_convention convention;
    bsm_format format;
    bool input_scales;
    const char *programs;
} readers[] = {
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_NVFP4, false, TRANSFORMERS ", vLLM 0.32" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP4, false, TRANSFORMERS ", vLLM 0.32" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_MXFP8_E4M3, false, TRANSFORMERS ", vLLM 0.32" },
    { BSM_CONVENTION_COMPRESSED_TENSORS, BSM_FORMAT_E4M3, false, TRANSFORMERS ", vLLM 0.32" },
    { BSM_CONVENTION_MODELOPT, BSM_NVFP4, false, "vLLM 0.32" },
    { BSM_CONVENTION_MODELOPT, BSM_MXFP8_E4M3, false, "vLLM 0.32" },
    { BSM_CONVENTION_GPT_OSS, BSM_MXFP4, false, "transformers 5.17, vLLM 0.32" },
};

static const char *programs_for(const struct written *w)
{
    const struct quantization *q = &w->quantization;
    if (w->input == NULL || !checkpoint_writer_is_folder(w->output)) return NULL;
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (readers[i].convention == q->convention && readers[i].format == q->format && readers[i].input_scales == q->input_scales)
            return readers[i].programs;
    return NULL;
}

/* What programs may want and the file has not; NULL: nothing. */
static const char *lacks(const struct written *w)
{
    const struct quantization *q = &w->quantization;
    if (w->kind == BSM_CHECKPOINT_GGUF)
        return "tensors alone, under the names of the input: the keys of a model (architecture, tokenizer) are not written, so "
               "llama.cpp does not load it as one";
    const bool two_levels = q->format == BSM_NVFP4 || q->format == BSM_FORMAT_E4M3; /* inputs of the others have no stored scales */
    if (q->convention == BSM_CONVENTION_NONE || q->input_scales || !two_levels) return NULL;
    if (q->convention == BSM_CONVENTION_MODELOPT && q->format == BSM_FORMAT_E4M3)
        return "no scales for inputs, which take calibration: ModelOpt's FP8 wants X.input_scale; --convention compressed_tensors "
               "says that inputs are not quantized";
    return "no scales for inputs, which take calibration: weights alone are quantized";
}

int written_finish(struct cli *cli, struct written *w)
{
    if (!checkpoint_writer_is_folder(w->output)) return CLI_DONE;
    const bool quantized = w->quantization.convention != BSM_CONVENTION_NONE;
    const int result = quantized ? model_config_write(cli, w->input, w->output, &w->quantization)
                                 : model_config_remove(cli, w->input, w->output);
    return result == CLI_DONE && w->input != NULL ? model_files_copy(cli, w->input, w->output, &w->files) : result;
}

void written_free(struct written *w)
{
    for (int i = 0; i < w->quantization.left_count; i++) free(w->quantization.left[i]);
    free(w->quantization.left);
    w->quantization = (struct quantization){ .left = NULL };
    model_files_free(&w->files);
}

void written_print(const struct written *w)
{
    const char *missing = lacks(w), *programs = programs_for(w);
    model_files_print(&w->files);
    if (missing != NULL) printf("has %s\n", missing);
    if (programs != NULL) printf("was loaded, in such files, by %s\n", programs);
}

void written_print_json(struct cli_json *json, const struct written *w)
{
    model_files_print_json(json, &w->files);
    cli_json_text(json, "has", lacks(w));
    cli_json_text(json, "loaded_by", programs_for(w));
}
