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

/* Readers of compressed-tensors round the scale of e4m3 to the type of the model: one that is a bf16 number stays what
 * it is. */
static bool wants_short_scale(const struct job *job, const struct job_item *item)
{
    return item->name != NULL && job->convention == BSM_CONVENTION_COMPRESSED_TENSORS
           && job->request->format == BSM_FORMAT_E4M3;
}

/* Every member of a group gets the scale of its largest number. */
static int share_scales(struct cli *cli, struct job *job, const struct fused_weight *weights)
{
    float *scales = cli_memory(cli, job->shared.count + 1, sizeof *scales);
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < job->count; i++) {
        struct job_item *item = &job->items[i];
        const int64_t group = weights[i].group;
        if (group < 0 && !wants_short_scale(job, item)) continue;
        result = job_with_numbers(cli, job, item, find_own_scale);
        if (group >= 0)
            scales[group] = shared_scale_join(scales[group], item->shared_scale, item->matrix.tensor_scale_use);
    }
    for (int64_t i = 0; i < job->count; i++) {
        struct job_item *item = &job->items[i];
        if (weights[i].group >= 0) item->shared_scale = scales[weights[i].group];
        if (wants_short_scale(job, item)) item->shared_scale = shared_scale_shorten(item->shared_scale);
    }
    free(scales);
    return result;
}

int job_share_scales(struct cli *cli, struct job *job)
{
    if (!job_has_tensor_scale(job->request)) return CLI_DONE;
    struct fused_weight *weights = cli_memory(cli, job->count, sizeof *weights);
    for (int64_t i = 0; i < job->count; i++) {
        const struct job_item *item = &job->items[i];
        const char *name = item->name != NULL ? item->name : "";
        weights[i] = (struct fused_weight){ .name = name, .length = (int64_t)strlen(name),
                                            .columns = item->real.columns };
    }
    fused_find(cli, job->request->share, weights, job->count, &job->shared);
    const int result = share_scales(cli, job, weights);
    free(weights);
    return result;
}
