/* blockscale quantize of a checkpoint: weights become codes and scales, everything else is passed on as it is.
 *
 * One weight after the other is quantized from the mapped file and written to its place, while the next one is
 * quantized and those behind it are read: memory is that of the codes of two weights, beside the system's cache. */
#include "quantize_checkpoint.h"
#include "checkpoint_job.h"
#include "cli/checkpoint/ahead.h"
#include "cli/checkpoint/behind.h"
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

/* A tensor to write, and the mapped bytes that are not needed any more then. */
struct piece {
    struct job *job;
    int64_t number;           /* at the writer */
    bsm_matrix matrix;        /* of a weight; its memory is the piece's */
    void *data, *scales;
    float tensor_scale;
    bsm_tensor tensor;        /* of the input, mapped */
    bool is_weight, is_mapped;
};

static int write_piece(void *given, bool do_it)
{
    struct piece *piece = given;
    struct writer *w = &piece->job->writer;
    int result = CLI_DONE;
    if (do_it && piece->is_weight)
        result = writer_check(w, bsm_writer_put_weight(w->writer, piece->number, &piece->matrix, NULL));
    else if (do_it) result = writer_put_tensor(w, piece->number, &piece->tensor);
    if (piece->is_mapped)
        ahead_give_back(&(struct ahead_range){ .data = piece->tensor.data, .bytes = piece->tensor.bytes });
    free(piece->scales);
    free(piece->data);
    free(piece);
    return result;
}

static struct piece *new_piece(struct cli *cli, struct job *job, const struct job_item *item)
{
    struct piece *piece = cli_memory(cli, 1, sizeof *piece);
    *piece = (struct piece){ .job = job, .number = item->number, .is_weight = item->name != NULL,
                             .is_mapped = item->tensor >= 0 };
    if (piece->is_mapped) piece->tensor = weights_tensor(job->checkpoint, item->tensor);
    return piece;
}

static int quantize_numbers(struct cli *cli, struct job *job, struct job_item *item)
{
    bsm_quantize_stats *stats = cli_memory(cli, 1, sizeof *stats);
    bsm_quantize_options how = job->request->how;
    struct piece *piece = new_piece(cli, job, item);
    bsm_matrix *matrix = &piece->matrix;
    int64_t data_bytes = 0, scale_bytes = 0;
    *matrix = item->matrix;
    bsm_matrix_data_bytes(matrix, &data_bytes);
    bsm_matrix_scale_bytes(matrix, &scale_bytes);
    matrix->data = piece->data = cli_memory(cli, data_bytes, 1);
    piece->scales = scale_bytes > 0 ? cli_memory(cli, scale_bytes, 1) : NULL;
    matrix->scales = matrix->packing == BSM_PACKING_GGUF ? matrix->data : piece->scales;
    how.struct_size = sizeof how;
    stats->struct_size = sizeof *stats;
    piece->tensor_scale = 1;
    if (job_has_tensor_scale(job->request))
        matrix->tensor_scale = &piece->tensor_scale, how.tensor_scale = BSM_TENSOR_SCALE_COMPUTED;
    if (item->shared_scale > 0) piece->tensor_scale = item->shared_scale, how.tensor_scale = BSM_TENSOR_SCALE_GIVEN;
    const bsm_status status = bsm_quantize(cli->context, &item->real, &how, matrix, stats);
    keep_statistics(job, item, &how, stats);
    free(stats);
    if (status == BSM_OK) return behind_give(job->behind, piece);
    write_piece(piece, false);
    return cli_library_failed(cli, item->name, status);
}

static int do_item(struct cli *cli, struct job *job, struct job_item *item)
{
    if (item->name == NULL) return behind_give(job->behind, new_piece(cli, job, item));
    const int result = job_share_scale(cli, job, item);
    return result == CLI_DONE ? job_with_numbers(cli, job, item, quantize_numbers) : result;
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

/* What each item reads, in order; none of the one matrix. */
static struct ahead_range *ranges_of(struct cli *cli, const struct job *job)
{
    struct ahead_range *ranges = cli_memory(cli, job->count, sizeof *ranges);
    for (int64_t i = 0; i < job->count && job->checkpoint != NULL; i++) {
        const bsm_tensor tensor = weights_tensor(job->checkpoint, job->items[i].tensor);
        ranges[i] = (struct ahead_range){ .data = tensor.data, .bytes = tensor.bytes };
    }
    return ranges;
}

static int do_all(struct cli *cli, struct job *job)
{
    struct progress progress = progress_start(bsm_writer_bytes(job->writer.writer));
    struct ahead_range *ranges = ranges_of(cli, job);
    struct ahead *ahead = ahead_start(ranges, job->count);
    int result = CLI_DONE;
    job->behind = behind_start(cli, write_piece);
    for (int64_t i = 0; result == CLI_DONE && i < job->count; i++) {
        struct job_item *item = &job->items[i];
        progress_show(&progress, item_name(job, item));
        ahead_begin(ahead, i);
        result = do_item(cli, job, item);
        progress_add(&progress, item_bytes(job, item));
    }
    const int written = behind_end(job->behind);
    ahead_end(ahead);
    free(ranges);
    progress_end(&progress);
    return result == CLI_DONE ? written : result;
}

static int run(struct cli *cli, struct job *job)
{
    const struct checkpoint_request *r = job->request;
    int result = job_choose(cli, job);
    if (result == CLI_DONE) result = writer_check(&job->writer, bsm_writer_begin(job->writer.writer));
    if (result == CLI_DONE) job_find_groups(cli, job);
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
