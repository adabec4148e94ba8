/* Weights of checkpoints, as the command uses them. */
#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include "cli/cli.h"

/* Opens a checkpoint and notes its files as inputs.  Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int weights_open(struct cli *cli, const char *path, bsm_checkpoint **checkpoint);

/* A path that is no .npy file and no "random:...": a checkpoint, or nothing that is known. */
bool weights_is_checkpoint(const char *path);

/* Weight (or tensor) of a number that exists; prints what is wrong with it. */
int weights_get(struct cli *cli, const bsm_checkpoint *checkpoint, int64_t index, bsm_weight *weight);
bsm_tensor weights_tensor(const bsm_checkpoint *checkpoint, int64_t index);

/* A matrix of numbers called X.weight, which is what models call a linear module X. */
bool weights_is_module(const bsm_checkpoint *checkpoint, int64_t index);

/* Experts of gpt-oss in blocks, X_blocks: transformers keeps their numbers as X, each matrix transposed: [experts, K,
 * N]. */
bool weights_is_transposed(const bsm_checkpoint *checkpoint, const bsm_weight *weight);

/* Whether a name matches one of the shell patterns in a list with commas; NULL matches nothing. */
bool weights_match(const char *patterns, const char *name, int64_t length);

/* Numbers in all, and bits of storage for each: codes and scales. */
int64_t weights_numbers(const bsm_weight *weight);
double weights_bits(const bsm_weight *weight);

/* Whether numbers are others than before, by the sums of their squares and of what they are off: by more than a
 * rounding to fp32, 2^-24 of each, which an exact product of a code and its scales may need. */
bool weights_changed(double signal, double noise);

/* Matrix `batch` as fp32 numbers, rows x columns, tight.  Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int weights_values(struct cli *cli, const bsm_weight *weight, int64_t batch, float *values);

/* Adds the scale codes of all blocks to histogram[256]. */
void weights_count_scales(const bsm_weight *weight, int64_t *histogram);

/* "mxfp4", "e4m3 128x128" ...: format and tiles. */
struct weights_text { char text[64]; };
struct weights_text weights_format(const bsm_weight *weight);

#endif
