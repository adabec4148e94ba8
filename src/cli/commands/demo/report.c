/* What demo prints: one table, or JSON. */
#include "demo.h"

#include <math.h>

static void print_matrix(const char *name, const struct demo_matrix *matrix)
{
    printf("%s  %lld x %lld, %s", name, (long long)matrix->rows, (long long)matrix->columns, matrix->about);
    if (matrix->rows < matrix->file_rows)
        printf(" (the first %lld of %lld rows; --all takes all)", (long long)matrix->rows,
               (long long)matrix->file_rows);
    printf("\n");
}

/* Decibels; exact copies have no noise. */
static void cell_snr(struct cli_table *table, double snr)
{
    if (isinf(snr)) cli_table_cell(table, "exact");
    else cli_table_cell(table, "%.1f dB", snr);
}

static void cell_percent(struct cli_table *table, double error)
{
    if (!isfinite(error)) cli_table_cell(table, "-");
    else cli_table_cell(table, "%.*f %%", error >= 0.01 ? 2 : error >= 1e-4 ? 4 : 6, 100 * error);
}

static const char *duration(int rounds) { return rounds == 1 ? "sample" : "alternating rounds"; }

void demo_report_text(const struct demo *demo, const char *svg_path, bool own_data)
{
    static const struct cli_column columns[] = {
        { "format", CLI_LEFT },          { "bits", CLI_RIGHT },      { "SNR of A", CLI_RIGHT },
          { "SNR of B", CLI_RIGHT },
        { "error of A x B", CLI_RIGHT }, { "off exact", CLI_RIGHT }, { "GFLOP/s", CLI_RIGHT },  { "x fp32", CLI_RIGHT },
    };
    print_matrix("A", &demo->a);
    print_matrix("B", &demo->b);
    printf("on %s, %d thread%s\n\n", demo->machine, demo->threads, demo->threads == 1 ? "" : "s");
    struct cli_table *table = cli_table_new(columns, 8);
    for (int i = 0; i < demo->count; i++) {
        const struct demo_row *row = &demo->row[i];
        cli_table_cell(table, "%s", row->name);
        cli_table_cell(table, "%.4g", row->bits);
        cell_snr(table, row->snr_a);
        cell_snr(table, row->snr_b);
        cell_percent(table, row->error);
        cli_table_cell(table, "%.2g eps%s", row->worst, row->within ? "" : " ✗");
        cli_table_cell(table, "%.2f", demo_gflops(demo, row));
        cli_table_cell(table, "%.2fx", demo_ratio(demo, row));
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
    printf("\nbits: per element, scales included\n"
           "error of A x B: relative to the exact product of the matrices before quantizing\n"
           "off exact: from the exact product of the quantized matrices, in eps * sum |a||b|, eps = 2^-24;\n"
           "           at most %.0f\n"
           "GFLOP/s: best of %d %s, quantizing not counted\n\n",
           demo->row[0].allowed, demo->rounds, duration(demo->rounds));
    if (svg_path != NULL) printf("The picture: %s\n", svg_path);
    else printf("A picture of it:    blockscale demo --svg demo.svg\n");
    if (!own_data)
        printf(
            "Your own matrices:  make demo A=A.npy B=B.npy, or blockscale demo --a A.npy --b B.npy (M x K, N x K)\n");
    printf("Next:               blockscale verify --quick, blockscale bench --format mxfp4, blockscale help\n");
}

static void json_matrix(struct cli_json *json, const char *key, const struct demo_matrix *matrix)
{
    cli_json_object(json, key);
    cli_json_text(json, "about", matrix->about);
    cli_json_integer(json, "rows", matrix->rows);
    cli_json_integer(json, "columns", matrix->columns);
    cli_json_integer(json, "file_rows", matrix->file_rows);
    cli_json_end(json);
}

void demo_report_json(const struct demo *demo)
{
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    json_matrix(&json, "a", &demo->a);
    json_matrix(&json, "b", &demo->b);
    cli_json_text(&json, "machine", demo->machine);
    cli_json_integer(&json, "threads", demo->threads);
    cli_json_integer(&json, "rounds", demo->rounds);
    cli_json_array(&json, "formats");
    for (int i = 0; i < demo->count; i++) {
        const struct demo_row *row = &demo->row[i];
        cli_json_object(&json, NULL);
        cli_json_text(&json, "a_format", bsm_format_get((int)row->a)->name);
        cli_json_text(&json, "b_format", bsm_format_get((int)row->b)->name);
        cli_json_number(&json, "bits_per_element", row->bits);
        cli_json_number(&json, "snr_a_db", row->snr_a);
        cli_json_number(&json, "snr_b_db", row->snr_b);
        cli_json_number(&json, "product_error", row->error);
        cli_json_number(&json, "worst_eps", row->worst);
        cli_json_number(&json, "allowed_eps", row->allowed);
        cli_json_boolean(&json, "within_bound", row->within);
        cli_json_number(&json, "gflops", demo_gflops(demo, row));
        cli_json_number(&json, "ratio_to_fp32", demo_ratio(demo, row));
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}
