/* A checkpoint whose quantized weights become something else, while all other tensors are passed on as they are. */
#ifndef CLI_REWRITE_H
#define CLI_REWRITE_H

#include "writer.h"

struct rewrite_item {
    int64_t tensor; /* of the codes, or of what is passed on */
    bool is_weight;
    bool is_done; /* no weight, but announced and written by the command itself */
    bsm_weight weight;
    int64_t number; /* at the writer, of what is passed on */
};

struct rewrite {
    bsm_checkpoint *checkpoint;
    struct writer writer;
    struct rewrite_item *items;
    int64_t count, weights;
};

/* Opens the input and sorts its tensors: quantized weights that `takes` wants (their scales belong to them), and
 * others. Returns CLI_DONE, or prints and returns CLI_BAD_INPUT; rewrite_end is to be called in any case. */
int rewrite_start(struct cli *cli, const char *input, const char *output, bool (*takes)(const bsm_weight *weight),
                  struct rewrite *rewrite);

/* Fails where there is nothing to work on: no such weight, and nothing else. */
int rewrite_wants_work(struct cli *cli, const char *input, const struct rewrite *rewrite, int64_t else_to_do);

/* Announces what is passed on and begins the file; writes it, and ends the checkpoint. */
int rewrite_begin(struct rewrite *rewrite);
int rewrite_finish(struct rewrite *rewrite);

void rewrite_end(struct rewrite *rewrite);

/* The weight's name as a text. */
struct rewrite_name {
    char text[4096];
};
struct rewrite_name rewrite_name_of(const bsm_weight *weight);

#endif
