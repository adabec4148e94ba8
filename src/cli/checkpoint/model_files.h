/* The other files of a model's folder: tokenizer, generation settings, chat template, code. */
#ifndef CLI_MODEL_FILES_H
#define CLI_MODEL_FILES_H

#include "cli/cli.h"

struct model_files {
    char **names; /* copied, in the order of their names */
    int count;
    char **left; /* folders, and files too large to be such: not copied */
    int left_count;
};

/* Copies what lies beside checkpoint `input` into folder `output`, where a config.json says that this is a model's folder: every
 * file but weights, their indexes, and the configurations that are written anew.  Nothing is copied onto itself.
 * Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int model_files_copy(struct cli *cli, const char *input, const char *output, struct model_files *files);
void model_files_free(struct model_files *files);

/* What was copied: lines of text, or "copied" of a JSON object. */
void model_files_print(const struct model_files *files);
void model_files_print_json(struct cli_json *json, const struct model_files *files);

/* The folder that a checkpoint's path is about: itself, or the one that the file lies in. */
struct model_folder {
    char path[4096];
};
int model_folder_of(struct cli *cli, const char *input, struct model_folder *folder);

#endif
