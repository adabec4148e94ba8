/* blockscale quantize of a checkpoint: weights become codes and scales, everything else is passed on as it is.
 *
 * One weight after the other is quantized from the mapped file and written to its place: memory is that of the largest
 * one. */
#include "quantize_checkpoint.h"
#include "checkpoint_job.h"
#include "cli/checkpoint/weights.h"
#include "cli/io/progress.h"

#include <stdlib.h>

static void keep_statistics(struct job *job, struct job_item *item, const bsm_quantize_options *how,
                            const bsm_quantize_stats *stats)
{
    const struct silent found = silent_quantized(&item->real, how, stats);
    silent_add(&job->silent, item->name, &found);
    item->snr_db = stats->snr_db;
    item->flushed_blocks = stats->flushed_blocks;
    item->saturated_elements = stats->saturated_elements;
    item->nan_blocks = stats->nan_blocks;
    if (!weights_changed(stats->signal, stats->noise)) return;
    job->changed++;
    job->signal += stats->signal;
    job->noise += stats->noise;
}

static int quantize_numbers(struct cli *cli, struct job *job, struct job_item *item)
{
    bsm_quantize_stats *stats = cli_memory(cli, 1, sizeof *stats);
    bsm_quantize_options how = job->request->how;
    bsm_matrix matrix = item->matrix;
    float tensor_scale = 1;
    int64_t data_bytes = 0, scale_bytes = 0;
    bsm_matrix_data_bytes(&matrix, &data_bytes);
    bsm_matrix_scale_bytes(&matrix, &scale_bytes);
    matrix.data = cli_memory(cli, data_bytes, 1);
    void *scales = scale_bytes > 0 ? cli_memory(cli, scale_bytes, 1) : NULL;
    matrix.scales = matrix.packing == BSM_PACKING_GGUF ? matrix.data : scales;
    how.struct_size = sizeof how;
    stats->struct_size = sizeof *stats;
    if (job_has_tensor_scale(job->request))
        matrix.tensor_scale = &tensor_scale, how.tensor_scale = BSM_TENSOR_SCALE_COMPUTED;
    if (item->shared_scale > 0) tensor_scale = item->shared_scale, how.tensor_scale = BSM_TENSOR_SCALE_GIVEN;
    const bsm_status status = bsm_quantize(cli->context, &item->real, &how, &matrix, stats);
    int result = status == BSM_OK ? CLI_DONE : cli_library_failed(cli, item->name, status);
    if (result == CLI_DONE)
        result = writer_check(&job->writer, bsm_writer_put_weight(job->writer.writer, item->number, &matrix, NULL));
    keep_statistics(job, item, &how, stats);
    free(scales);
    free(matrix.data);
    free(stats);
    return result;
}

static int do_item(struct cli *cli, struct job *job, struct job_item *item)
{
    if (item->name != NULL) return job_with_numbers(cli, job, item, quantize_numbers);
    const bsm_tensor tensor = weights_tensor(job->checkpoint, item->tensor);
    return writer_put_tensor(&job->writer, item->number, &tensor);
}

static const char *item_name(const struct job *job, const struct job_item *item)
{
    return item->name != NULL ? item->name : weights_tensor(job->checkpoint, item->tensor).name;
}

static int64_t item_bytes(const struct job *job, const struct job_item *item)
{
    int64_t bytes = 0;
    if (item->name == NULL) return weights_tensor(job->checkpoint, item->tensor).bytes;
    bsm_matrix_data_bytes(&item->matrix, &bytes);
    return bytes;
}

static int do_all(struct cli *cli, struct job *job)
{
    struct progress progress = progress_start(bsm_writer_bytes(job->writer.writer));
    int result = CLI_DONE;
    for (int64_t i = 0; result == CLI_DONE && i < job->count; i++) {
        struct job_item *item = &job->items[i];
        progress_show(&progress, item_name(job, item));
        result = do_item(cli, job, item);
        progress_add(&progress, item_bytes(job, item));
    }
    progress_end(&progress);
    return result;
}

static int run(struct cli *cli, struct job *job)
{
    const struct checkpoint_request *r = job->request;
    int result = job_choose(cli, job);
    if (result == CLI_DONE) result = writer_check(&job->writer, bsm_writer_begin(job->writer.writer));
    if (result == CLI_DONE) result = job_share_scales(cli, job);
    if (result == CLI_DONE) result = do_all(cli, job);
    if (result == CLI_DONE) silent_warn_weights(cli, &job->silent, r->format);
    if (result == CLI_DONE) result = writer_finish(&job->writer);
    job->written = (struct written){
        .writer = &job->writer, .input = r->real != NULL ? NULL : r->input, .convention = job->convention,
        .format = r->format
    };
    if (result == CLI_DONE) job_print(cli, job);
    return result;
}

/* The convention that is asked for, or goes with the preset and the output; fails where it does not go with them. */
static int choose_convention(struct cli *cli, const struct checkpoint_request *request, bsm_convention *convention)
{
    const bool gguf = writer_is_gguf(request->output);
    *convention = request->convention;
    if (*convention == BSM_CONVENTION_NONE && request->how.preset == BSM_PRESET_COMPRESSED_TENSORS)
        *convention = BSM_CONVENTION_COMPRESSED_TENSORS;
    if (*convention == BSM_CONVENTION_NONE) *convention = gguf ? BSM_CONVENTION_GGUF : BSM_CONVENTION_MODELOPT;
    if ((*convention == BSM_CONVENTION_GGUF) != gguf)
        return cli_wrong_usage(cli, "--convention %s: goes with an output called X%s",
                               bsm_convention_name((int)*convention),
                               *convention == BSM_CONVENTION_GGUF ? ".gguf" : ".safetensors, or a folder");
    if (bsm_writer_check_format(*convention, request->format) == BSM_OK) return CLI_DONE;
    return cli_wrong_usage(cli, "--format %s: %s", bsm_format_get((int)request->format)->name, bsm_last_error());
}

int quantize_checkpoint(struct cli *cli, const struct checkpoint_request *request)
{
    struct job job = { .request = request };
    const char *model = request->real == NULL ? request->input : NULL;
    int result = choose_convention(cli, request, &job.convention);
    if (result != CLI_DONE) return result;
    result = writer_start(cli, &job.writer, request->output, model);
    if (result == CLI_DONE && model != NULL) result = weights_open(cli, model, &job.checkpoint);
    if (result == CLI_DONE) result = run(cli, &job);
    for (int64_t i = 0; i < job.count; i++) free(job.items[i].name);
    free(job.items);
    free(job.used);
    fused_free(&job.shared);
    writer_end(&job.writer);
    bsm_checkpoint_close(job.checkpoint);
    return result;
}
