/* What the user should know of a checkpoint that was written: files copied, what it lacks, and which programs load
 * it. */
#ifndef CLI_WRITTEN_H
#define CLI_WRITTEN_H

#include "writer.h"

struct written {
    const struct writer *writer;          /* finished */
    const char *input;                    /* NULL where a single matrix was quantized */
    bsm_convention convention;            /* of its weights; NONE: numbers again */
    bsm_format format;
    bool input_scales;                    /* every weight has one */
};

/* Lines of text. */
void written_print(const struct written *written);
/* Keys of an open JSON object: "copied", "lacks", "loaded_by". */
void written_print_json(struct cli_json *json, const struct written *written);

#endif
