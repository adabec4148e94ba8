/* Tensor scales of weights that programs fuse, merged where a file has them apart. */
#ifndef CLI_MERGE_SCALES_H
#define CLI_MERGE_SCALES_H

#include "fused.h"
#include "rewrite.h"

struct merge_scales {
    struct fused fused;            /* groups whose members have different tensor scales */
    const bsm_matrix **largest;    /* of each item of the rewrite: the member with the largest factor; NULL: in no group */
    int64_t weights;               /* that get new block scales */
    bsm_merge_stats stats;         /* of them */
};

/* Finds the groups among a rewrite's NVFP4 weights.  Matrices point into the items. */
void merge_scales_find(const struct cli *cli, const struct rewrite *rewrite, const char *rules, struct merge_scales *merge);
void merge_scales_free(struct merge_scales *merge);

/* The block scales of item i under the largest member's tensor scale, linear and tight, into `scales`; and that tensor scale, which
 * is used as the item's own.  Returns CLI_DONE, or prints and returns CLI_BAD_INPUT. */
int merge_scales_of(struct cli *cli, struct merge_scales *merge, const struct rewrite *rewrite, int64_t i, uint8_t *scales,
                    float *tensor_scale);

#endif
