/* The files of one checkpoint that is written: all get their names, or none. */
#ifndef BSMI_OUTPUTS_H
#define BSMI_OUTPUTS_H

#include "blockscale/writer.h"
#include "core/core.h"

struct bsmi_output;

struct bsmi_outputs {
    const bsm_context *context;
    bool given;                           /* the caller keeps the files: `files` does everything */
    bsm_writer_files files;
    struct bsmi_output *first;
    char *folder;                         /* that was made; NULL: none */
};

void bsmi_outputs_start(struct bsmi_outputs *outputs, const bsm_context *context, const bsm_writer_files *files);

/* Errors of all of them: BSM_EIO, BSM_ENOMEM. */
bsm_status bsmi_outputs_read(struct bsmi_outputs *outputs, const char *path);             /* notes an input */
bsm_status bsmi_outputs_make_folder(struct bsmi_outputs *outputs, const char *path);
bsm_status bsmi_outputs_create(struct bsmi_outputs *outputs, const char *path, struct bsmi_output **output);
bsm_status bsmi_output_write(struct bsmi_outputs *outputs, struct bsmi_output *output, int64_t at, const void *data,
                             size_t bytes);

/* Closes and renames everything. */
bsm_status bsmi_outputs_finish(struct bsmi_outputs *outputs);
/* Removes what was not finished. */
void bsmi_outputs_end(struct bsmi_outputs *outputs);

#endif
