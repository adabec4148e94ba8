/* Tensor scales of weights that programs fuse, merged where a file has them apart. */
#ifndef CLI_MERGE_SCALES_H
#define CLI_MERGE_SCALES_H

#include "fused.h"
#include "rewrite.h"

struct merge_scales {
    struct fused fused;         /* groups whose members have different tensor scales */
    const bsm_matrix **largest; /* of each weight: the member with the largest factor; NULL: in no group */
    int64_t weights;            /* that get new block scales */
    bsm_merge_stats stats;      /* of them */
};

/* Finds the groups among weights (NULL: none in this place); those of NVFP4 can be members.  Matrices point into the
 * weights. */
void merge_scales_find(const struct cli *cli, const bsm_weight *const *weights, int64_t count, const char *rules,
                       struct merge_scales *merge);
void merge_scales_free(struct merge_scales *merge);

/* The block scales of weight i of the rewrite under the largest member's tensor scale, linear and tight, into `scales`;
 * and that tensor scale, which is used as the weight's own.  Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int merge_scales_of(struct cli *cli, struct merge_scales *merge, const struct rewrite *rewrite, int64_t i,
                    uint8_t *scales, float *tensor_scale);

#endif
