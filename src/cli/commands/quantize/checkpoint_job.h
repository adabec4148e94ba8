/* A checkpoint that is quantized: its tensors, and what became of them. */
#ifndef CLI_CHECKPOINT_JOB_H
#define CLI_CHECKPOINT_JOB_H

#include "checkpoint_request.h"
#include "cli/checkpoint/fused.h"
#include "cli/checkpoint/written.h"
#include "cli/matrices/silent.h"

/* A tensor of the input, and what becomes of it. */
struct job_item {
    int64_t tensor; /* of the input; -1: the one matrix */
    char *name;     /* of the weight; NULL: passed on */
    bsm_real_matrix real;
    bsm_weight weight; /* tile_rows above 0: real has no data, the numbers are this one's */
    bsm_matrix matrix;  /* how its codes are to lie; no pointers */
    int64_t number;     /* at the writer */
    int64_t next_member; /* of its group, behind it; 0: none, or it is in none */
    float shared_scale; /* the tensor scale of its group; 0: its own, or not found yet */
    double snr_db;
    int64_t flushed_blocks, saturated_elements, nan_blocks;
};

struct job {
    const struct checkpoint_request *request;
    bsm_checkpoint *checkpoint; /* NULL: the one matrix */
    bsm_convention convention;
    struct writer writer;
    struct behind *behind; /* writes */
    struct fused shared;
    struct written written;
    struct job_item *items;
    bool *used; /* tensors of the input that are scales of chosen weights */
    int64_t count, weights, left, bytes_before;
    int64_t changed; /* weights whose numbers are others than before: the sums are theirs */
    double signal, noise;
    struct silent_weights silent;
};

/* Each returns CLI_DONE, or prints and returns what to exit with. */

/* choose.c: sorts the input's tensors into weights and others, and announces all of them to the writer. */
int job_choose(struct cli *cli, struct job *job);
/* Does something with a weight's numbers; of tiles they are computed first, one weight's at a time. */
int job_with_numbers(struct cli *cli, struct job *job, struct job_item *item,
                     int (*work)(struct cli *cli, struct job *job, struct job_item *item));

/* share.c: finds the weights that others fuse; and, before the first member of a group is quantized, the tensor scale
 * of all of them.  So numbers are read twice in one go, not once for all groups and once more from the disk. */
void job_find_groups(struct cli *cli, struct job *job);
int job_share_scale(struct cli *cli, struct job *job, struct job_item *first);

/* checkpoint_report.c: what was done, as text or JSON. */
void job_print(const struct cli *cli, const struct job *job);

/* NVFP4 and unscaled e4m3 need a tensor scale; e8m0 formats have none, nor has ggml. */
bool job_has_tensor_scale(const struct checkpoint_request *request);

static inline int64_t job_batch(const struct job_item *item) { return item->real.batch > 1 ? item->real.batch : 1; }

#endif
