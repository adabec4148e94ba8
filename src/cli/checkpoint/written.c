/* What the user should know of a written checkpoint, see written.h. */
#include "written.h"
#include "cli/io/mask.h"

/* Programs that `make test-upstream` loads such files with: every number is the one that the file says.  vLLM is its
 * CPU build, with plain kernels where that has none (tests/upstream/vllm_kernels.py). */
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
    if (w->input == NULL || !writer_is_folder(w->writer->output)) return NULL;
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++)
        if (readers[i].convention == w->convention && readers[i].format == w->format &&
            readers[i].input_scales == w->input_scales)
            return readers[i].programs;
    return NULL;
}

/* What programs may want and the file has not; NULL: nothing. */
static const char *lacks(const struct written *w)
{
    if (writer_is_gguf(w->writer->output))
        return "tensors alone, under the names of the input: the keys of a model (architecture, tokenizer) are not "
               "written, so llama.cpp does not load it as one";
    const bool two_levels = w->format == BSM_NVFP4 || w->format == BSM_FORMAT_E4M3; /* others have no stored scales of
                                                                                       inputs */
    if (w->convention == BSM_CONVENTION_NONE || w->input_scales || !two_levels) return NULL;
    if (w->convention == BSM_CONVENTION_MODELOPT && w->format == BSM_FORMAT_E4M3)
        return "no scales for inputs, which take calibration: ModelOpt's FP8 wants X.input_scale; "
               "--convention compressed_tensors says that inputs are not quantized";
    return "no scales for inputs, which take calibration: weights alone are quantized";
}

static void print_names(const char *what, const bsm_writer *writer,
                        const char *(*name_of)(const bsm_writer *writer, int64_t index))
{
    const char *name;
    for (int64_t i = 0; (name = name_of(writer, i)) != NULL; i++) {
        char masked[256 + 1];
        snprintf(masked, sizeof masked, "%s", name);
        mask_text(masked);
        printf("%s %s", i > 0 ? "," : what, masked);
    }
    if (name_of(writer, 0) != NULL) printf("\n");
}

void written_print(const struct written *w)
{
    const char *missing = lacks(w), *programs = programs_for(w);
    print_names("copied:", w->writer->writer, bsm_writer_copied);
    print_names("not copied (folders, or more than 64 MiB):", w->writer->writer, bsm_writer_not_copied);
    if (missing != NULL) printf("has %s\n", missing);
    if (programs != NULL) printf("was loaded, in such files, by %s\n", programs);
}

void written_print_json(struct cli_json *json, const struct written *w)
{
    const char *name;
    cli_json_array(json, "copied");
    for (int64_t i = 0; (name = bsm_writer_copied(w->writer->writer, i)) != NULL; i++) cli_json_text(json, NULL, name);
    cli_json_end(json);
    cli_json_text(json, "has", lacks(w));
    cli_json_text(json, "loaded_by", programs_for(w));
}
