/* A checkpoint that is written piece by piece: what was announced, and how far it is. */
#ifndef BSMI_WRITER_H
#define BSMI_WRITER_H

#include "file/tensors/tensors.h"
#include "model.h"
#include "spelling.h"

struct bsmi_written_tensor {
    bsm_tensor tensor;
    char *name;               /* the writer's own; tensor.name too */
    int64_t offset, done;     /* in the file; bytes that were put */
    bool is_other;            /* announced by itself, and no part of a weight */
};

/* Numbers of its tensors, -1 for none. */
struct bsmi_written_weight {
    char *name;
    bsm_convention convention;
    bsm_matrix matrix;        /* without pointers */
    int64_t codes, scales, tensor_scale, input_scale;
};

enum bsmi_writer_state { BSMI_WRITER_ANNOUNCING, BSMI_WRITER_WRITING, BSMI_WRITER_FINISHED, BSMI_WRITER_FAILED };

struct bsm_writer {
    bsm_context *context;
    enum bsmi_writer_state state;
    bsm_checkpoint_kind kind;
    bool is_folder;
    char *output, *path, *input;          /* as given; the file of the weights; the model that is read */
    struct bsmi_outputs outputs;
    struct bsmi_output *file;
    struct bsmi_model model;
    struct bsmi_texts metadata;           /* key, value, key, value ... */
    struct bsmi_written_tensor *tensors;
    int64_t count, room;
    struct bsmi_written_weight *weights;
    int64_t weight_count, weight_room;
    int64_t *others, other_count, other_room;     /* numbers of the tensors that are no part of a weight */
};

/* Fails unless the writer is in this state. */
bsm_status bsmi_writer_check(const bsm_writer *w, enum bsmi_writer_state state);
int64_t bsmi_writer_padded(const bsm_writer *w, int64_t bytes);

/* One tensor of the caller's, read whole, in a file of this kind; `bytes` becomes what it needs.  Errors:
 * BSM_EINVAL. */
bsm_status bsmi_tensor_check(bsm_checkpoint_kind kind, bsm_tensor *tensor);

#endif
