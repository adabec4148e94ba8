/* What stands beside the weights in a model's folder. */
#ifndef BSMI_MODEL_H
#define BSMI_MODEL_H

#include "outputs.h"
#include "quantization_config.h"

struct bsmi_model {
    const bsm_context *context;
    struct bsmi_outputs *outputs;
    const char *input;        /* the checkpoint that the weights come from; NULL: none */
    const char *output;       /* the folder that is written */
    char *folder;             /* the one that `input` is about; NULL: none, or not known yet */
    struct bsmi_texts copied, not_copied, notes;
};

/* Writes config.json, and ModelOpt's hf_quant_config.json; the config.json of the input without its
 * quantization_config where nothing is quantized.  Errors: BSM_EIO, BSM_EFILE, BSM_EINVAL, BSM_ENOMEM. */
bsm_status bsmi_model_configure(struct bsmi_model *model, const struct bsmi_quantization *q);

/* Copies the other files of the input's folder, where a config.json says that this is a model's: all but weights, their
 * indexes, and the configurations that are written anew.  Nothing is copied onto itself. */
bsm_status bsmi_model_copy_files(struct bsmi_model *model);

/* The folder that the input is about: itself, or the one that the file lies in.  Errors: BSM_EIO, BSM_ENOMEM. */
bsm_status bsmi_model_find_folder(struct bsmi_model *model);

void bsmi_model_free(struct bsmi_model *model);

#endif
