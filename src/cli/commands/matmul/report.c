/* The summary of blockscale matmul. */
#include "matmul.h"
#include "cli/matrices/layout_map.h"

#include <inttypes.h>
#include <math.h>

static double flops(const struct matmul_job *job)
{
    const bsm_matrix *a = job->product.a, *b = job->product.b;
    return 2 * (double)a->rows * (double)b->rows * (double)a->columns;
}

static void text_of_layout(const bsm_matrix *m, char *text, size_t room)
{
    if (bsm_format_get((int)m->format)->scale == BSM_UNSCALED) snprintf(text, room, "-");
    else layout_text(&m->scale_layout, text, room);
}

/* Text ------------------------------------------------------------------------------------------------------------- */

static void print_row(struct cli_table *table, const char *name, const bsm_matrix *m, const bsm_quantize_stats *stats)
{
    char layout[64];
    const bsm_format_info *info = bsm_format_get((int)m->format);
    text_of_layout(m, layout, sizeof layout);
    cli_table_cell(table, "%s", name);
    cli_table_cell(table, "%" PRId64 " x %" PRId64, m->rows, m->columns);
    cli_table_cell(table, "%s", info->name);
    cli_table_cell(table, "%.2f", info->bits_per_element);
    cli_table_cell(table, "%s", layout);
    if (stats == NULL) cli_table_cell(table, "-");
    else if (stats->nan_blocks > 0) cli_table_cell(table, "NaN blocks");
    else if (isinf(stats->snr_db)) cli_table_cell(table, "exact");
    else cli_table_cell(table, "%.2f", stats->snr_db);
    if (stats == NULL) cli_table_cell(table, "-");
    else cli_table_cell(table, "%" PRId64, stats->saturated_elements);
}

static void print_matrices(const struct matmul_job *job)
{
    static const struct cli_column columns[] = { { "", CLI_LEFT },          { "shape", CLI_RIGHT },
                                                 { "format", CLI_LEFT },    { "bits", CLI_RIGHT },
                                                 { "scales", CLI_LEFT },    { "SNR dB", CLI_RIGHT },
                                                 { "saturated", CLI_RIGHT } };
    struct cli_table *table = cli_table_new(columns, 7);
    print_row(table, "A", job->product.a, job->a.stored ? NULL : &job->a.stats);
    print_row(table, "B", job->product.b, job->b.stored ? NULL : &job->b.stats);
    print_row(table, "D", job->product.d, NULL);
    cli_table_print(table, stdout);
    cli_table_free(table);
}

static void print_check(const struct matmul_check *check)
{
    if (!check->done) {
        printf("check    not done; --check compares with the exact product\n");
        return;
    }
    printf("sums     at most %.3g eps * sum |a||b| from the exact ones (eps = 2^-24; fp32 sums may reach %.4g)\n",
           check->worst, check->bound);
    if (check->beyond > 0) printf("WRONG    %" PRId64 " sums are further off than fp32 sums can be\n", check->beyond);
    if (!check->has_snr) return;
    if (isinf(check->snr_db)) printf("product  the same as that of the numbers before quantizing\n");
    else printf("product  %.2f dB signal to noise, against that of the numbers before quantizing\n", check->snr_db);
}

static void print_text(const struct matmul_job *job)
{
    print_matrices(job);
    plan_print("kernel   ", job->kernel, job->settings->verbose);
    printf("time     %.3f ms, the fastest of %d; %.2f GFLOP/s\n", 1e3 * job->seconds, job->runs,
           flops(job) / job->seconds * 1e-9);
    if (job->gpu == NULL && cli_waited(job->seconds, job->processor_seconds))
        printf("waited   for a processor most of that time, it had one for %.3f ms: this machine does other work\n",
               1e3 * job->processor_seconds);
    printf("largest  %.6g\n", (double)job->amax);
    print_check(&job->check);
}

/* JSON ------------------------------------------------------------------------------------------------------------- */

static void json_matrix(struct cli_json *json, const char *key, const bsm_matrix *m, const bsm_quantize_stats *stats)
{
    char layout[64];
    const bsm_format_info *info = bsm_format_get((int)m->format);
    text_of_layout(m, layout, sizeof layout);
    cli_json_object(json, key);
    cli_json_integer(json, "rows", m->rows);
    cli_json_integer(json, "columns", m->columns);
    cli_json_text(json, "format", info->name);
    cli_json_number(json, "bits_per_element", info->bits_per_element);
    cli_json_text(json, "scale_layout", info->scale == BSM_UNSCALED ? NULL : layout);
    if (m->tensor_scale != NULL) cli_json_number(json, "tensor_scale", (double)*m->tensor_scale);
    if (stats != NULL) {
        cli_json_number(json, "snr_db", stats->snr_db);
        cli_json_boolean(json, "exact", isinf(stats->snr_db));
        cli_json_integer(json, "saturated_elements", stats->saturated_elements);
        cli_json_integer(json, "flushed_blocks", stats->flushed_blocks);
        cli_json_integer(json, "nan_blocks", stats->nan_blocks);
    }
    cli_json_end(json);
}

static void print_json(const struct matmul_job *job)
{
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    json_matrix(&json, "a", job->product.a, job->a.stored ? NULL : &job->a.stats);
    json_matrix(&json, "b", job->product.b, job->b.stored ? NULL : &job->b.stats);
    json_matrix(&json, "d", job->product.d, NULL);
    cli_json_integer(&json, "d_nan", job->d_silent.nan);
    cli_json_integer(&json, "d_infinite", job->d_silent.infinite);
    cli_json_text(&json, "kernel", job->kernel);
    cli_json_number(&json, "seconds", job->seconds);
    cli_json_number(&json, "processor_seconds", job->processor_seconds);
    cli_json_integer(&json, "runs", job->runs);
    cli_json_number(&json, "gflops", flops(job) / job->seconds * 1e-9);
    cli_json_number(&json, "amax", (double)job->amax);
    if (job->check.done) {
        cli_json_object(&json, "check");
        cli_json_number(&json, "worst_error_eps", job->check.worst);
        cli_json_number(&json, "bound_eps", job->check.bound);
        cli_json_integer(&json, "sums_beyond_bound", job->check.beyond);
        if (job->check.has_snr) cli_json_number(&json, "product_snr_db", job->check.snr_db);
        cli_json_end(&json);
    }
    cli_json_end(&json);
}

void matmul_report(const struct cli *cli, const struct matmul_job *job)
{
    if (cli->json) print_json(job);
    else print_text(job);
}
