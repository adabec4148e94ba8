/* What quantizing a checkpoint did, see checkpoint_job.h. */
#include "checkpoint_job.h"

#include <inttypes.h>
#include <math.h>

/* Weights that became the same numbers are in no sum: what inspect --against counts too. */
static double overall(const struct job *job)
{
    return job->changed > 0 ? 10 * log10(job->signal / job->noise) : (double)INFINITY;
}

static void print_overall(const struct job *job)
{
    if (job->changed == 0) printf("every number is exact\n");
    else
        printf("signal to noise of the %" PRId64 " weight%s that changed %.2f dB\n", job->changed,
               job->changed == 1 ? "" : "s", overall(job));
}

static void print_text(const struct job *job)
{
    static const struct cli_column columns[] = { { "weight", CLI_LEFT },
                                                 { "shape", CLI_RIGHT },
                                                 { "snr dB", CLI_RIGHT },
                                                 { "saturated", CLI_RIGHT },
                                                 { "blocks to zero", CLI_RIGHT } };
    struct cli_table *table = cli_table_new(columns, 5);
    for (int64_t i = 0; i < job->count; i++) {
        const struct job_item *item = &job->items[i];
        if (item->name == NULL) continue;
        cli_table_cell(table, "%s", item->name);
        if (job_batch(item) == 1) cli_table_cell(table, "%" PRId64 "x%" PRId64, item->real.rows, item->real.columns);
        else
            cli_table_cell(table, "%" PRId64 "x%" PRId64 "x%" PRId64, job_batch(item), item->real.rows,
                           item->real.columns);
        cli_table_cell(table, "%.2f", item->snr_db);
        cli_table_cell(table, "%" PRId64, item->saturated_elements);
        cli_table_cell(table, "%" PRId64, item->flushed_blocks);
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
    printf("\n%s: %" PRId64 " weights as %s of %s, %" PRId64 " tensors passed on", bsm_writer_path(job->writer.writer),
           job->weights, bsm_format_get((int)job->request->format)->name, bsm_convention_name((int)job->convention),
           job->count - job->weights);
    if (job->left > 0) printf(" (%" PRId64 " for their row length)", job->left);
    printf("\n%" PRId64 " bytes, before %" PRId64 "; ", bsm_writer_bytes(job->writer.writer), job->bytes_before);
    print_overall(job);
    if (job->shared.count > 0) {
        printf("tensor scales shared: ");
        fused_print(&job->shared, stdout);
        printf(" (--share-tensor-scales)\n");
    }
    written_print(&job->written);
}

static void print_json(const struct job *job)
{
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "output", bsm_writer_path(job->writer.writer));
    cli_json_text(&json, "format", bsm_format_get((int)job->request->format)->name);
    cli_json_text(&json, "convention", bsm_convention_name((int)job->convention));
    cli_json_integer(&json, "bytes", bsm_writer_bytes(job->writer.writer));
    cli_json_integer(&json, "bytes_before", job->bytes_before);
    cli_json_integer(&json, "passed_on", job->count - job->weights);
    cli_json_number(&json, "snr_db", overall(job));
    cli_json_integer(&json, "changed", job->changed);
    cli_json_array(&json, "weights");
    for (int64_t i = 0; i < job->count; i++) {
        const struct job_item *item = &job->items[i];
        if (item->name == NULL) continue;
        cli_json_object(&json, NULL);
        cli_json_text(&json, "name", item->name);
        cli_json_integer(&json, "batch", job_batch(item));
        cli_json_integer(&json, "rows", item->real.rows);
        cli_json_integer(&json, "columns", item->real.columns);
        cli_json_number(&json, "snr_db", item->snr_db);
        cli_json_integer(&json, "saturated_elements", item->saturated_elements);
        cli_json_integer(&json, "flushed_blocks", item->flushed_blocks);
        cli_json_integer(&json, "nan_blocks", item->nan_blocks);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    fused_print_json(&json, "shared_tensor_scales", &job->shared);
    written_print_json(&json, &job->written);
    cli_json_end(&json);
}

void job_print(const struct cli *cli, const struct job *job)
{
    if (cli->json) print_json(job);
    else print_text(job);
}
