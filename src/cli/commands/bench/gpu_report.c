/* What bench on a GPU prints: one table over K, a table of kernels, JSON, or a line chart. */
#include "gpu_point.h"
#include "cli/plot/chart.h"

#include <stdlib.h>
#include <string.h>

static const char *format_name(bsm_format format) { return bsm_format_get((int)format)->name; }

static double tflops(const struct bench_gpu *what, int64_t k, double seconds)
{
    return 2e-12 * (double)what->m * (double)what->n * (double)k / seconds;
}

static void bytes_text(int64_t bytes, char *text, size_t room)
{
    if (bytes < 1 << 20) snprintf(text, room, "%.1f KiB", (double)bytes / 1024);
    else snprintf(text, room, "%.1f MiB", (double)bytes / (1 << 20));
}

/* Text ------------------------------------------------------------------------------------------------------------- */

static void print_plan(const struct gpu_report *report, const struct gpu_side *side)
{
    static const char with_packed[] = "; with prepacked B: ";
    const char *packed = report->what->prepacked ? strstr(side->plan, with_packed) : NULL;
    plan_print("  plan     ", side->plan, report->what->verbose || report->what->explain);
    if (packed != NULL) printf("  packed B %s\n", packed + strlen(with_packed));
    for (int i = 0; i < 2 && side->rows[i][0] != '\0'; i++) {
        printf("  rows     ");
        cli_print_wrapped(stdout, side->rows[i], 11, 11);
    }
    if (side->rows[0][0] != '\0')
        printf("           so all rows are multiplied as %s; both give the same bits\n",
               side->all_fit ? "int8" : "bf16, the fallback");
}

static bool is_same_plan(const struct gpu_report *report, const struct gpu_side *side, const struct gpu_side *other)
{
    char text[2][PLAN_TEXT_BYTES];
    if (report->what->explain || report->what->verbose || side->rows[0][0] != '\0') return false;
    plan_in_short(side->plan, CLI_PAGE_WIDTH, text[0], sizeof text[0]);
    plan_in_short(other->plan, CLI_PAGE_WIDTH, text[1], sizeof text[1]);
    return strcmp(text[0], text[1]) == 0;
}

/* Of each K whose plan is another than that of the K before; where plans are asked for, of every K. */
static void print_plans(const struct gpu_report *report)
{
    for (int i = 0; i < report->count; i++) {
        const struct gpu_side *side = &report->points[i].product;
        if (i > 0 && is_same_plan(report, side, &report->points[i - 1].product)) continue;
        printf("K = %lld\n", (long long)report->points[i].k);
        print_plan(report, side);
    }
}

static void print_points(const struct gpu_report *report)
{
    static const struct cli_column columns[] = {
        { "K", CLI_RIGHT },         { "best", CLI_RIGHT },   { "median", CLI_RIGHT }, { "time", CLI_RIGHT },
        { "bf16 best", CLI_RIGHT }, { "median", CLI_RIGHT }, { "ratio", CLI_RIGHT },  { "A + B + D", CLI_RIGHT },
    };
    struct cli_table *table = cli_table_new(columns, 8);
    for (int i = 0; i < report->count; i++) {
        const struct gpu_point *p = &report->points[i];
        char bytes[32];
        bytes_text(p->product.bytes, bytes, sizeof bytes);
        cli_table_cell(table, "%lld", (long long)p->k);
        cli_table_cell(table, "%.2f", tflops(report->what, p->k, p->product.best));
        cli_table_cell(table, "%.2f", tflops(report->what, p->k, p->product.median));
        cli_table_cell(table, "%.2f us", 1e6 * p->product.median);
        cli_table_cell(table, "%.2f", tflops(report->what, p->k, p->bf16.best));
        cli_table_cell(table, "%.2f", tflops(report->what, p->k, p->bf16.median));
        cli_table_cell(table, "%.2fx", p->bf16.median / p->product.median);
        cli_table_cell(table, "%s", bytes);
    }
    printf("\n");
    cli_table_print(table, stdout);
    cli_table_free(table);
    printf("\nTFLOP/s; time: of a product, median; ratio: times as fast as bf16 x bf16, median over\n"
           "median; A + B + D: bytes.\n");
    if (report->simulated) printf("The GPU is simulated: all times are those of the simulator on this machine.\n");
}

static void kernel_row(const struct gpu_report *report, struct cli_table *table, const struct gpu_point *point,
                       const struct gpu_kernel *kernel)
{
    char bytes[32];
    cli_table_cell(table, "%s", kernel->time.kernel);
    cli_table_cell(table, "%lld", (long long)point->k);
    cli_table_cell(table, "%lld", (long long)kernel->time.ctas);
    if (report->simulated) {
        bytes_text(kernel->bytes, bytes, sizeof bytes);
        cli_table_cell(table, "%lld", (long long)kernel->instructions);
        cli_table_cell(table, "%s", bytes);
        return;
    }
    cli_table_cell(table, "%.2f us", 1e6 * kernel->time.seconds);
    if (kernel->time.multiplies) cli_table_cell(table, "%.2f", tflops(report->what, point->k, kernel->time.seconds));
    else cli_table_cell(table, "-");
    bytes_text(point->product.bytes, bytes, sizeof bytes);
    cli_table_cell(table, "%s", kernel->time.multiplies ? bytes : "-");
}

static void print_kernels(const struct gpu_report *report)
{
    static const struct cli_column timed[] = { { "kernel", CLI_LEFT },  { "K", CLI_RIGHT },
                                               { "CTAs", CLI_RIGHT },   { "time", CLI_RIGHT },
                                               { "TFLOP/s", CLI_RIGHT }, { "A + B + D", CLI_RIGHT } },
                                   counted[] = { { "kernel", CLI_LEFT }, { "K", CLI_RIGHT }, { "CTAs", CLI_RIGHT },
                                                 { "instructions", CLI_RIGHT }, { "bytes", CLI_RIGHT } };
    struct cli_table *table = cli_table_new(report->simulated ? counted : timed, report->simulated ? 5 : 6);
    for (int i = 0; i < report->count; i++)
        for (int j = 0; j < report->points[i].product.kernel_count; j++)
            kernel_row(report, table, &report->points[i], &report->points[i].product.kernels[j]);
    printf("\nThe kernels of one product:\n\n");
    cli_table_print(table, stdout);
    cli_table_free(table);
    cli_print_wrapped(stdout, report->simulated
                                  ? "Simulated counts, no times: instructions of warps, those of waiting loops too, "
                                    "which vary with the schedule; bytes of device memory that the kernel reads and "
                                    "writes, in caches or not."
                                  : "Each kernel between two events, starting when the one in front of it has ended: "
                                    "in a product they overlap.",
                      0, 0);
}

void gpu_report_text(const struct gpu_report *report)
{
    const struct bench_gpu *what = report->what;
    printf("%s x %s, M = %lld, N = %lld, D %s, on %s\n", format_name(what->a), format_name(what->b),
           (long long)what->m, (long long)what->n, format_name(what->d), report->device.name);
    if (!what->explain) printf("%lld alternating rounds, operands cold in L2\n", (long long)what->rounds);
    print_plans(report);
    if (!what->explain) print_points(report);
    if (what->profile) print_kernels(report);
}

/* JSON ------------------------------------------------------------------------------------------------------------- */

static void json_kernels(struct cli_json *json, const struct gpu_report *report, int64_t k, const struct gpu_side *side)
{
    cli_json_array(json, "kernels");
    for (int i = 0; i < side->kernel_count; i++) {
        const struct gpu_kernel *kernel = &side->kernels[i];
        cli_json_object(json, NULL);
        cli_json_text(json, "kernel", kernel->time.kernel);
        cli_json_integer(json, "ctas", kernel->time.ctas);
        cli_json_integer(json, "threads", kernel->time.threads);
        if (report->simulated) {
            cli_json_integer(json, "simulated_instructions", kernel->instructions);
            cli_json_integer(json, "simulated_bytes", kernel->bytes);
        } else {
            cli_json_number(json, "seconds", kernel->time.seconds);
            if (kernel->time.multiplies)
                cli_json_number(json, "tflops", tflops(report->what, k, kernel->time.seconds));
        }
        cli_json_end(json);
    }
    cli_json_end(json);
}

static void json_side(struct cli_json *json, const char *key, const struct gpu_report *report, int64_t k,
                      const struct gpu_side *side)
{
    cli_json_object(json, key);
    cli_json_text(json, "plan", side->plan);
    if (side->rows[0][0] != '\0')
        cli_json_text(json, "rows_of_a", side->rows[0]), cli_json_text(json, "rows_of_b", side->rows[1]),
            cli_json_boolean(json, "rows_go_as_integers", side->all_fit);
    if (!report->what->explain) {
        cli_json_number(json, "median_tflops", tflops(report->what, k, side->median));
        cli_json_number(json, "best_tflops", tflops(report->what, k, side->best));
        cli_json_number(json, "median_seconds", side->median);
        cli_json_integer(json, "products_per_sample", side->calls);
        cli_json_integer(json, "places", side->places);
        cli_json_integer(json, "bytes", side->bytes);
    }
    if (side->kernel_count > 0) json_kernels(json, report, k, side);
    cli_json_end(json);
}

void gpu_report_json(const struct gpu_report *report)
{
    const struct bench_gpu *what = report->what;
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "device", report->device.name);
    cli_json_boolean(&json, "simulated", report->simulated);
    cli_json_text(&json, "a_format", format_name(what->a));
    cli_json_text(&json, "b_format", format_name(what->b));
    cli_json_text(&json, "d_format", format_name(what->d));
    cli_json_integer(&json, "m", what->m);
    cli_json_integer(&json, "n", what->n);
    cli_json_integer(&json, "rounds", what->rounds);
    cli_json_text(&json, "caches", "cold: operands in several places, used in turn");
    cli_json_array(&json, "points");
    for (int i = 0; i < report->count; i++) {
        cli_json_object(&json, NULL);
        cli_json_integer(&json, "k", report->points[i].k);
        json_side(&json, "product", report, report->points[i].k, &report->points[i].product);
        json_side(&json, "bf16", report, report->points[i].k, &report->points[i].bf16);
        cli_json_end(&json);
    }
    cli_json_end(&json), cli_json_end(&json);
}

/* Chart ------------------------------------------------------------------------------------------------------------ */

void gpu_report_plot(const struct gpu_report *report, FILE *file)
{
    const struct bench_gpu *what = report->what;
    const int count = report->count, version = bsm_version();
    char title[160], subtitle[256], name[96], note[256];
    double *values = cli_memory(NULL, 3 * (int64_t)count, (int64_t)sizeof *values);
    double *k = values, *product = values + count, *bf16 = values + 2 * count;
    for (int i = 0; i < count; i++) {
        const struct gpu_point *p = &report->points[i];
        k[i] = (double)p->k;
        product[i] = tflops(what, p->k, p->product.median), bf16[i] = tflops(what, p->k, p->bf16.median);
    }
    snprintf(name, sizeof name, "%s x %s", format_name(what->a), format_name(what->b));
    snprintf(title, sizeof title, "%s against bf16, M = %lld, N = %lld", name, (long long)what->m, (long long)what->n);
    snprintf(subtitle, sizeof subtitle, "%s; blockscale %d.%d.%d", report->device.name, version / 10000,
             version / 100 % 100, version % 100);
    snprintf(note, sizeof note, "%s Median of %lld alternating rounds, operands cold in L2.",
             report->simulated ? "Simulated: the simulator's speed, not a GPU's." : "Higher is faster.",
             (long long)what->rounds);
    const struct chart chart = {
        .title = title, .subtitle = subtitle, .note = note, .x_label = "K (length of the sums)",
        .y_label = "TFLOP/s", .series_count = 2,
        .series = { { name, SVG_BLUE, SVG_DOT, count, k, product },
                    { "bf16 x bf16", SVG_ORANGE, SVG_SQUARE, count, k, bf16 } },
    };
    chart_lines(file, &chart);
    free(values);
}
