/* A checkpoint that is written piece by piece, in any order: complete at the end, or absent. */
#ifndef CLI_CHECKPOINT_WRITER_H
#define CLI_CHECKPOINT_WRITER_H

#include "cli/cli.h"

struct checkpoint_writer {
    bsm_checkpoint_kind kind;
    const char *output;  /* as the user wrote it: a file, or a folder that is made */
    bsm_tensor *tensors; /* names are the writer's own */
    int64_t *offsets;    /* in the file; known once it is open */
    int64_t count, room;
    FILE *file;
    char path[4096];
};

/* OUT.gguf is a GGUF file, OUT.safetensors that, and anything else a folder with model.safetensors. */
void checkpoint_writer_start(struct checkpoint_writer *writer, const char *output);
bool checkpoint_writer_is_folder(const char *output);

/* Announces a tensor (name, type, gguf_type, rank, shape, bytes); returns its number.  The name is copied. */
int64_t checkpoint_writer_add(const struct cli *cli, struct checkpoint_writer *writer, const bsm_tensor *tensor);

/* Opens the file and writes what stands before the data, after asking whether the disk has room for all of it.
 * Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int checkpoint_writer_open(struct cli *cli, struct checkpoint_writer *writer, const bsm_metadata *metadata, int64_t metadata_count);

/* All bytes of an announced tensor; or a part of them, from byte `at` on. */
int checkpoint_writer_put(struct cli *cli, struct checkpoint_writer *writer, int64_t number, const void *data, int64_t bytes);
int checkpoint_writer_put_part(struct cli *cli, struct checkpoint_writer *writer, int64_t number, int64_t at, const void *data,
                               int64_t bytes);

int64_t checkpoint_writer_bytes(const struct checkpoint_writer *writer);
void checkpoint_writer_free(struct checkpoint_writer *writer);

#endif
