/* What bench prints: a table, JSON, or a line chart. */
#include "bench.h"
#include "cli/plot/chart.h"

#include <stdlib.h>

static const char *format_name(bsm_format format) { return bsm_format_get((int)format)->name; }

double bench_gflops(const struct bench_report *report, const struct bench_point *point, double seconds)
{
    return 2e-9 * (double)report->m * (double)report->n * (double)point->k / seconds;
}

static double best_gflops(const struct bench_report *report, const struct bench_point *point,
                          const struct contender *contender)
{
    return bench_gflops(report, point, measure_best(contender));
}

static double median_gflops(const struct bench_report *report, const struct bench_point *point,
                            const struct contender *contender)
{
    return bench_gflops(report, point, measure_median(contender));
}

static void bytes_text(int64_t bytes, char *text, size_t room)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024 && unit < 4) value /= 1024, unit++;
    snprintf(text, room, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void threads_text(const struct bench_report *report, char *text, size_t room)
{
    snprintf(text, room, "%d thread%s", report->threads, report->threads == 1 ? "" : "s");
}

/* Text ------------------------------------------------------------------------------------------------------------- */

/* The part of the products' time in which no processor worked on them. */
static double waited_share(const struct bench_report *report)
{
    double wall = 0, processor = 0;
    for (int i = 0; i < report->count; i++) {
        wall += report->points[i].product.wall + report->points[i].fp32.wall;
        processor += report->points[i].product.processor + report->points[i].fp32.processor;
    }
    return cli_waited(wall, processor) ? 1 - processor / wall : 0;
}

static void print_remarks(const struct bench_report *report)
{
    const double waited = waited_share(report);
    char text[512];
    if (waited > 0) {
        snprintf(text, sizeof text, "For %.0f %% of their time no processor worked on the products: this machine does "
                 "other work, and the figures say little.", 100 * waited);
        cli_print_wrapped(stdout, text, 0, 0);
    }
    if (report->has_peer) return;
    if (report->peer.reference[0] == '\0') snprintf(text, sizeof text, "No BLAS library to compare with.");
    else
        snprintf(text, sizeof text,
                 "No BLAS library to compare with: %.200s is netlib's reference, which no CPU is meant to run "
                 "fast.",
                 report->peer.reference);
    cli_print_wrapped(stdout, text, 0, 0);
}

void bench_report_text(const struct bench_report *report)
{
    static const struct cli_column columns[] = {
        { "K", CLI_RIGHT },        { "best", CLI_RIGHT },       { "median", CLI_RIGHT }, { "fp32 best", CLI_RIGHT },
        { "median", CLI_RIGHT },   { "ratio", CLI_RIGHT },      { "paired", CLI_RIGHT }, { "A + B", CLI_RIGHT },
        { "quantize", CLI_RIGHT }, { "sgemm best", CLI_RIGHT }, { "median", CLI_RIGHT },
    };
    char threads[32];
    threads_text(report, threads, sizeof threads);
    printf("%s x %s, M = %lld, N = %lld, D fp32\n", format_name(report->a), format_name(report->b),
           (long long)report->m, (long long)report->n);
    printf("%s, %s, %lld alternating rounds, warm caches\n", report->machine, threads, (long long)report->rounds);
    plan_print("  product  ", report->points[0].product_plan, report->verbose);
    plan_print("  fp32     ", report->points[0].fp32_plan, report->verbose);
    if (report->has_peer) printf("  sgemm    %s\n", report->peer.name);
    printf("\n");

    struct cli_table *table = cli_table_new(columns, report->has_peer ? 11 : 9);
    for (int i = 0; i < report->count; i++) {
        const struct bench_point *p = &report->points[i];
        char bytes[32];
        bytes_text(p->a_bytes + p->b_bytes, bytes, sizeof bytes);
        cli_table_cell(table, "%lld", (long long)p->k);
        cli_table_cell(table, "%.2f", best_gflops(report, p, &p->product));
        cli_table_cell(table, "%.2f", median_gflops(report, p, &p->product));
        cli_table_cell(table, "%.2f", best_gflops(report, p, &p->fp32));
        cli_table_cell(table, "%.2f", median_gflops(report, p, &p->fp32));
        cli_table_cell(table, "%.2fx", measure_best(&p->fp32) / measure_best(&p->product));
        cli_table_cell(table, "%.2fx", measure_paired_ratio(&p->fp32, &p->product));
        cli_table_cell(table, "%s", bytes);
        cli_table_cell(table, "%.2f ms", 1e3 * (measure_best(&p->quantize_a) + measure_best(&p->quantize_b)));
        if (!report->has_peer) continue;
        cli_table_cell(table, "%.2f", best_gflops(report, p, &p->peer));
        cli_table_cell(table, "%.2f", median_gflops(report, p, &p->peer));
    }
    cli_table_print(table, stdout);
    cli_table_free(table);
    printf("\nGFLOP/s; ratio: times as fast as fp32, best over best; paired: median of the rounds' ratios;\n"
           "A + B: bytes of codes and scales; quantize: both operands from fp32, best.\n");
    print_remarks(report);
}

/* JSON ------------------------------------------------------------------------------------------------------------- */

static void json_contender(struct cli_json *json, const struct bench_report *report, const struct bench_point *point,
                           const struct contender *contender, const char *key, const char *plan)
{
    cli_json_object(json, key);
    if (plan != NULL) cli_json_text(json, "plan", plan);
    cli_json_number(json, "best_gflops", best_gflops(report, point, contender));
    cli_json_number(json, "median_gflops", median_gflops(report, point, contender));
    cli_json_integer(json, "calls_per_sample", contender->calls);
    cli_json_array(json, "seconds");
    for (int i = 0; i < contender->rounds; i++) cli_json_number(json, NULL, contender->seconds[i]);
    cli_json_end(json);
    cli_json_end(json);
}

void bench_report_json(const struct bench_report *report)
{
    struct cli_json json = cli_json_to(stdout);
    cli_json_object(&json, NULL);
    cli_json_text(&json, "a_format", format_name(report->a));
    cli_json_text(&json, "b_format", format_name(report->b));
    cli_json_text(&json, "d_format", "fp32");
    cli_json_integer(&json, "m", report->m);
    cli_json_integer(&json, "n", report->n);
    cli_json_text(&json, "machine", report->machine);
    cli_json_integer(&json, "threads", report->threads);
    cli_json_integer(&json, "rounds", report->rounds);
    cli_json_text(&json, "caches", "warm");
    cli_json_text(&json, "peer", report->has_peer ? report->peer.name : NULL);
    cli_json_text(&json, "reference_blas", report->peer.reference[0] != '\0' ? report->peer.reference : NULL);
    cli_json_number(&json, "waited_share", waited_share(report));
    cli_json_array(&json, "points");
    for (int i = 0; i < report->count; i++) {
        const struct bench_point *p = &report->points[i];
        cli_json_object(&json, NULL);
        cli_json_integer(&json, "k", p->k);
        json_contender(&json, report, p, &p->product, "product", p->product_plan);
        json_contender(&json, report, p, &p->fp32, "fp32", p->fp32_plan);
        if (report->has_peer) json_contender(&json, report, p, &p->peer, "peer", NULL);
        cli_json_number(&json, "ratio_best", measure_best(&p->fp32) / measure_best(&p->product));
        cli_json_number(&json, "ratio_paired_median", measure_paired_ratio(&p->fp32, &p->product));
        cli_json_number(&json, "quantize_a_seconds", measure_best(&p->quantize_a));
        cli_json_number(&json, "quantize_b_seconds", measure_best(&p->quantize_b));
        cli_json_integer(&json, "a_bytes", p->a_bytes);
        cli_json_integer(&json, "b_bytes", p->b_bytes);
        cli_json_end(&json);
    }
    cli_json_end(&json);
    cli_json_end(&json);
}

/* Chart ------------------------------------------------------------------------------------------------------------ */

void bench_report_plot(const struct bench_report *report, FILE *file)
{
    const int count = report->count;
    char title[160], subtitle[256], threads[32], name[96], note[256];
    double *values = cli_memory(NULL, 4 * (int64_t)count, (int64_t)sizeof *values);
    double *k = values, *product = values + count, *fp32 = values + 2 * count, *peer = values + 3 * count;
    for (int i = 0; i < count; i++) {
        const struct bench_point *p = &report->points[i];
        k[i] = (double)p->k;
        product[i] = best_gflops(report, p, &p->product);
        fp32[i] = best_gflops(report, p, &p->fp32);
        if (report->has_peer) peer[i] = best_gflops(report, p, &p->peer);
    }
    threads_text(report, threads, sizeof threads);
    snprintf(name, sizeof name, "%s x %s", format_name(report->a), format_name(report->b));
    snprintf(title, sizeof title, "%s against fp32, M = %lld, N = %lld", name, (long long)report->m,
             (long long)report->n);
    const int version = bsm_version();
    snprintf(subtitle, sizeof subtitle, "%s, %s; blockscale %d.%d.%d", report->machine, threads, version / 10000,
             version / 100 % 100, version % 100);
    snprintf(note, sizeof note,
             "Higher is faster. Best of %lld alternating rounds, warm caches, quantizing not counted.",
             (long long)report->rounds);
    const struct chart chart = {
        .title = title,
        .subtitle = subtitle,
        .note = note,
        .x_label = "K (length of the sums)",
        .y_label = "GFLOP/s",
        .series_count = report->has_peer ? 3 : 2,
        .series = { { name, SVG_BLUE, SVG_DOT, count, k, product },
                    { "fp32 x fp32", SVG_ORANGE, SVG_SQUARE, count, k, fp32 },
                    { report->peer.name, SVG_GREEN, SVG_DIAMOND, count, k, peer } },
    };
    chart_lines(file, &chart);
    free(values);
}
