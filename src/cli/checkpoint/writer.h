/* The library's writer of checkpoints over the command's own outputs: complete at the end of the command, or absent. */
#ifndef CLI_WRITER_H
#define CLI_WRITER_H

#include "cli/cli.h"

struct writer {
    struct cli *cli;
    bsm_writer *writer;
    const char *output;   /* as the user wrote it: a file, or a folder that is made */
    bool has_said;        /* what failed was printed by the command's outputs */
};

/* OUT.gguf is a GGUF file, OUT.safetensors that, and anything else a folder with model.safetensors. */
bool writer_is_gguf(const char *output);
bool writer_is_folder(const char *output);

/* model: the checkpoint that the weights come from; NULL: none.  Returns CLI_DONE, or prints and returns
 * CLI_BAD_INPUT. */
int writer_start(struct cli *cli, struct writer *writer, const char *output, const char *model);

/* The exit code for what a bsm_writer function returned: prints what failed, once. */
int writer_check(struct writer *writer, bsm_status status);

/* Announces a tensor; and writes all of its bytes. */
int writer_add_tensor(struct writer *writer, const bsm_tensor *tensor, int64_t *number);
int writer_put_tensor(struct writer *writer, int64_t number, const bsm_tensor *tensor);

/* Ends the checkpoint, and prints the notes of what it lacks. */
int writer_finish(struct writer *writer);
void writer_end(struct writer *writer);

#endif
