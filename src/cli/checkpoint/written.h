/* What comes after a checkpoint's weights: the other files of a model's folder, and what the user should know of the result. */
#ifndef CLI_WRITTEN_H
#define CLI_WRITTEN_H

#include "model_files.h"
#include "quantization_config.h"

struct written {
    const char *input, *output; /* input: NULL where a single matrix was quantized */
    bsm_checkpoint_kind kind;
    struct quantization quantization; /* convention NONE: numbers again */
    struct model_files files;
};

/* Of a folder: writes the configurations and copies the other files.  Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int written_finish(struct cli *cli, struct written *written);
void written_free(struct written *written);

/* Lines of text: files copied, what the file lacks, and which programs load it. */
void written_print(const struct written *written);
/* Keys of an open JSON object: "copied", "lacks", "loaded_by". */
void written_print_json(struct cli_json *json, const struct written *written);

#endif
