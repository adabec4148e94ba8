/* Tensor scales that weights share, see checkpoint_job.h. */
#include "checkpoint_job.h"
#include "cli/checkpoint/shared_scale.h"

#include <stdlib.h>
#include <string.h>

static int find_own_scale(struct cli *cli, struct job *job, struct job_item *item)
{
    bsm_quantize_options how = job->request->how;
    how.struct_size = sizeof how;
    const bsm_status status = shared_scale_of(cli, &item->real, &how, &item->matrix, &item->shared_scale);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, item->name, status);
}

static struct job_item *next_member(const struct job *job, const struct job_item *item)
{
    return item->next_member > 0 ? &job->items[item->next_member] : NULL;
}

/* Readers of compressed-tensors round the scale of e4m3 to the type of the model: one that is a bf16 number stays what
 * it is. */
static bool wants_short_scale(const struct job *job, const struct job_item *item)
{
    return item->name != NULL && job->convention == BSM_CONVENTION_COMPRESSED_TENSORS
           && job->request->format == BSM_FORMAT_E4M3;
}

int job_share_scale(struct cli *cli, struct job *job, struct job_item *first)
{
    float scale = 0;
    int result = CLI_DONE;
    if (first->shared_scale != 0 || (first->next_member == 0 && !wants_short_scale(job, first))) return CLI_DONE;
    for (struct job_item *item = first; result == CLI_DONE && item != NULL; item = next_member(job, item)) {
        result = job_with_numbers(cli, job, item, find_own_scale);
        scale = shared_scale_join(scale, item->shared_scale, item->matrix.tensor_scale_use);
    }
    if (wants_short_scale(job, first)) scale = shared_scale_shorten(scale);
    for (struct job_item *item = first; item != NULL; item = next_member(job, item)) item->shared_scale = scale;
    return result;
}

void job_find_groups(struct cli *cli, struct job *job)
{
    if (!job_has_tensor_scale(job->request)) return;
    struct fused_weight *weights = cli_memory(cli, job->count, sizeof *weights);
    for (int64_t i = 0; i < job->count; i++) {
        const struct job_item *item = &job->items[i];
        const char *name = item->name != NULL ? item->name : "";
        weights[i] = (struct fused_weight){ .name = name, .length = (int64_t)strlen(name),
                                            .columns = item->real.columns };
    }
    fused_find(cli, job->request->share, weights, job->count, &job->shared);
    int64_t *next = cli_memory(cli, job->shared.count + 1, sizeof *next);
    for (int64_t i = job->count - 1; i >= 0; i--) {
        if (weights[i].group < 0) continue;
        job->items[i].next_member = next[weights[i].group];
        next[weights[i].group] = i;
    }
    free(next);
    free(weights);
}
