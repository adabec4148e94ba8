/* blockscale demo: two matrices in every format: how many bits, how good, how fast. */
#include "cli/matrices/compare.h"
#include "demo.h"
#include "cli/machine/machine.h"
#include "cli/matrices/operand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings { const char *a, *b, *svg; int64_t m, n, k, rounds; bool all; };
static const struct settings defaults = { .m = 256, .n = 256, .k = 1024, .rounds = 21 };

#define LENGTH_MAX ((int64_t)1 << 30)
static const double sample_seconds = 0.003;
static const int64_t terms_wanted = (int64_t)1 << 26;      /* M N K that takes seconds on two slow cores; */
static const int64_t products_of_an_output = 64;              /* what an element of D costs besides its K products */

/* Besides every format with itself: narrow weights under wide activations. */
static const struct { bsm_format a, b; } mixed[] = {
    { BSM_FORMAT_BF16, BSM_MXFP4 }, { BSM_FORMAT_BF16, BSM_NVFP4 }, { BSM_MXFP8_E4M3, BSM_MXFP4 },
};

static const char *format_name(bsm_format format) { return bsm_format_get((int)format)->name; }

/* Everything that one row's product needs. */
struct workload {
    struct cli *cli;
    struct operand a, b;
    float *d;
    bsm_matrix d_matrix;
    bsm_matmul product;
};

static bool run_product(void *argument)
{
    const struct workload *w = argument;
    return bsm_multiply(w->cli->context, &w->product) == BSM_OK;
}

double demo_gflops(const struct demo *demo, const struct demo_row *row)
{
    return 2e-9 * (double)demo->a.rows * (double)demo->b.rows * (double)demo->a.columns / measure_best(&row->time);
}

double demo_ratio(const struct demo *demo, const struct demo_row *row)
{
    return measure_best(&demo->row[demo->fp32].time) / measure_best(&row->time);
}

static void add_row(struct demo *demo, bsm_format a, bsm_format b)
{
    struct demo_row *row = &demo->row[demo->count++];
    *row = (struct demo_row) { .a = a, .b = b };
    row->bits = (bsm_format_get((int)a)->bits_per_element + bsm_format_get((int)b)->bits_per_element) / 2;
    if (a == b) snprintf(row->name, sizeof row->name, "%s", format_name(a));
    else snprintf(row->name, sizeof row->name, "%s x %s", format_name(a), format_name(b));
}

static void list_rows(struct demo *demo)
{
    for (int f = BSM_FORMAT_NONE + 1; f < BSM_FORMAT_COUNT; f++) {
        const bsm_format_info *info = bsm_format_get(f);
        if (f == BSM_FORMAT_FP32) demo->fp32 = demo->count;
        if (info->block == 0 && info->bits_per_element < 8) continue;       /* nobody has such models */
        add_row(demo, (bsm_format)f, (bsm_format)f);
    }
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++) add_row(demo, mixed[i].a, mixed[i].b);
}

/* Quantizes both matrices, with statistics, and multiplies. */
static int compute(struct cli *cli, const struct demo *demo, struct workload *w, struct demo_row *row)
{
    bsm_quantize_stats stats_a = { .struct_size = sizeof stats_a }, stats_b = stats_a;
    const int64_t m = demo->a.rows, n = demo->b.rows, k = demo->a.columns;
    *w = (struct workload) { .cli = cli, .d = cli_memory(cli, m, n * (int64_t)sizeof(float)) };
    int code = operand_create_plain(cli, &w->a, row->a, m, k);
    if (code == CLI_DONE) code = operand_create_plain(cli, &w->b, row->b, n, k);
    if (code != CLI_DONE) return code;
    bsm_status status = operand_quantize(cli, &w->a, demo->a.data, k, &stats_a);
    if (status == BSM_OK) status = operand_quantize(cli, &w->b, demo->b.data, k, &stats_b);
    if (status != BSM_OK) return cli_library_failed(cli, row->name, status);
    row->snr_a = stats_a.snr_db, row->snr_b = stats_b.snr_db;
    w->d_matrix = fp32_rows(m, n, w->d, n);
    w->product = (bsm_matmul) { .struct_size = sizeof(bsm_matmul), .a = &w->a.matrix, .b = &w->b.matrix,
                                .d = &w->d_matrix };
    status = bsm_multiply(cli->context, &w->product);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, row->name, status);
}

/* |D - R| / |R| in Frobenius' norm. */
static double relative_error(const float *d, const double *reference, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        const double e = (double)d[i] - reference[i];
        difference += e * e, size += reference[i] * reference[i];
    }
    return sqrt(difference / size);
}

/* D against the exact product of the codes and scales.  f, the tensor scales together, is known exactly as the fp32
 * number that matmul.h defines, and multiplying by it is one more rounding. */
static int check_exact(struct cli *cli, const struct demo *demo, const struct workload *w, struct demo_row *row)
{
    const int64_t m = demo->a.rows, n = demo->b.rows, k = demo->a.columns;
    double *sum = cli_memory(cli, m, n * (int64_t)sizeof *sum),
           *magnitude = cli_memory(cli, m, n * (int64_t)sizeof *magnitude);
    const bsm_real_matrix sums = real_rows(BSM_REAL_FP64, m, n, sum, n),
                          magnitudes = real_rows(BSM_REAL_FP64, m, n, magnitude, n);
    const bsm_status status = bsm_matmul_exact(cli->context, &w->a.matrix, &w->b.matrix, &sums, &magnitudes);
    if (status == BSM_OK) {
        const float factor = (float)((double)w->a.tensor_scale * (double)w->b.tensor_scale);
        for (int64_t i = 0; i < m * n; i++) sum[i] *= (double)factor, magnitude[i] *= (double)factor;
        const struct difference difference = compare_bound((struct compare_shape){ m, n, n }, w->d, sum, magnitude,
                                                           (struct compare_limit){ .roundings = k + 1 }, &row->worst);
        const double units = (double)(k + 1) * COMPARE_EPS;
        row->allowed = (double)(k + 1) / (1 - units);
        row->within = !difference.found;
    }
    free(sum), free(magnitude);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, "the exact product", status);
}

/* R: the exact product of the matrices before quantizing. */
static int exact_reference(struct cli *cli, const struct demo *demo, double *reference)
{
    const int64_t m = demo->a.rows, n = demo->b.rows, k = demo->a.columns;
    const bsm_matrix a = fp32_rows(m, k, demo->a.data, k), b = fp32_rows(n, k, demo->b.data, k);
    const bsm_real_matrix sums = real_rows(BSM_REAL_FP64, m, n, reference, n);
    const bsm_status status = bsm_matmul_exact(cli->context, &a, &b, &sums, NULL);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, "the exact product of the matrices", status);
}

static int time_rows(struct cli *cli, struct demo *demo, struct workload *workloads)
{
    struct contender *contenders[DEMO_ROWS];
    for (int i = 0; i < demo->count; i++) {
        demo->row[i].time = (struct contender) { .name = demo->row[i].name, .run = run_product,
                                                 .argument = &workloads[i] };
        contenders[i] = &demo->row[i].time;
    }
    const int failed = measure(contenders, demo->count, demo->rounds, sample_seconds);
    return failed < 0 ? CLI_DONE : cli_library_failed(cli, demo->row[failed].name, BSM_EINVAL);
}

static int fill_rows(struct cli *cli, struct demo *demo)
{
    const bool progress = isatty(STDERR_FILENO);
    double *reference = cli_memory(cli, demo->a.rows, demo->b.rows * (int64_t)sizeof *reference);
    struct workload *workloads = cli_memory(cli, demo->count, (int64_t)sizeof *workloads);
    if (progress) fprintf(stderr, "\rthe exact product ...\033[K");
    int code = exact_reference(cli, demo, reference);
    for (int i = 0; i < demo->count && code == CLI_DONE; i++) {
        if (progress) fprintf(stderr, "\r%d of %d: %s ...\033[K", i + 1, demo->count, demo->row[i].name);
        code = compute(cli, demo, &workloads[i], &demo->row[i]);
        if (code == CLI_DONE) code = check_exact(cli, demo, &workloads[i], &demo->row[i]);
        if (code == CLI_DONE)
            demo->row[i].error = relative_error(workloads[i].d, reference, demo->a.rows * demo->b.rows);
    }
    if (progress) fprintf(stderr, "\rtiming ...\033[K");
    if (code == CLI_DONE) code = time_rows(cli, demo, workloads);
    if (progress) fprintf(stderr, "\r\033[K");
    for (int i = 0; i < demo->count; i++) {
        operand_free(&workloads[i].a), operand_free(&workloads[i].b);
        free(workloads[i].d);
    }
    free(workloads), free(reference);
    return code;
}

/* Uses the first rows alone where all would take minutes. */
static void shorten(struct demo_matrix *matrix, int64_t rows)
{
    if (rows < 1) rows = 1;
    if (rows < matrix->rows) matrix->rows = rows;
}

static int choose_matrices(struct cli *cli, const struct settings *s, struct demo *demo)
{
    int code = CLI_DONE;
    if (s->a != NULL) code = demo_read(cli, s->a, "A", &demo->a);
    if (s->b != NULL && code == CLI_DONE) code = demo_read(cli, s->b, "B", &demo->b);
    if (code != CLI_DONE) return code;
    if (s->a == NULL) demo_make_activations(cli, s->m, s->b != NULL ? demo->b.columns : s->k, &demo->a);
    if (s->b == NULL) demo_make_weights(cli, s->n, demo->a.columns, &demo->b);
    if (demo->a.columns != demo->b.columns)
        return cli_bad_input(
            cli, "A is %lld x %lld and B is %lld x %lld: A is M x K and B is N x K, so both have K columns%s",
            (long long)demo->a.rows, (long long)demo->a.columns, (long long)demo->b.rows, (long long)demo->b.columns,
            demo->a.columns == demo->b.rows ? "; save B transposed" : "");
    if (s->all) return CLI_DONE;
    const int64_t cost = demo->a.columns + products_of_an_output;
    if (s->b != NULL) shorten(&demo->b, terms_wanted / cost / 64);         /* leaves 64 rows for A */
    if (s->a != NULL) shorten(&demo->a, terms_wanted / cost / demo->b.rows);
    return CLI_DONE;
}

static bool all_within(const struct demo *demo)
{
    for (int i = 0; i < demo->count; i++)
        if (!demo->row[i].within) return false;
    return true;
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    FILE *svg = NULL;
    if (s->svg != NULL && (svg = cli_output(cli, s->svg)) == NULL) return CLI_BAD_INPUT;
    struct demo *demo = cli_memory(cli, 1, (int64_t)sizeof *demo);
    demo->rounds = (int)s->rounds, demo->threads = bsm_context_threads(cli->context);
    machine_processor(demo->machine, sizeof demo->machine);
    list_rows(demo);
    int code = choose_matrices(cli, s, demo);
    if (code == CLI_DONE) code = fill_rows(cli, demo);
    if (code == CLI_DONE) {
        if (cli->json) demo_report_json(demo);
        else demo_report_text(demo, s->svg, s->a != NULL || s->b != NULL);
        if (svg != NULL) demo_picture(demo, svg);
        code = all_within(demo) ? CLI_DONE : CLI_DIFFERS;
    }
    demo_free(&demo->a), demo_free(&demo->b);
    free(demo);
    return code;
}

static const struct cli_option options[] = {
    { "--a", 'a', "A.npy", "your own A, M x K", CLI_TEXT(struct settings, a) },
    { "--b", 'b', "B.npy", "your own B, N x K", CLI_TEXT(struct settings, b) },
    { "--svg", 'o', "FILE.svg", "a picture of the table", CLI_TEXT(struct settings, svg) },
    { "--all", 0, NULL, "all rows of large files, not only as many as seconds allow", CLI_FLAG(struct settings, all) },
    { "--m", 'm', "M", "rows of an A that is made up (256)", CLI_INTEGER(struct settings, m), .low = 1,
      .high = LENGTH_MAX },
    { "--n", 'n', "N", "rows of a B that is made up (256)", CLI_INTEGER(struct settings, n), .low = 1,
      .high = LENGTH_MAX },
    { "--k", 'k', "K", "columns of both, when both are made up (1024)", CLI_INTEGER(struct settings, k), .low = 1,
      .high = LENGTH_MAX },
    { "--rounds", 'r', "N", "samples of each speed (21)", CLI_INTEGER(struct settings, rounds), .low = 1,
      .high = MEASURE_ROUNDS },
    { .name = NULL },
};

const struct cli_verb cli_verb_demo = {
    .name = "demo",
    .summary = "two matrices in every format: bits, errors and speed, as a table and a picture",
    .usage = "[options]",
    .about = "Quantizes two matrices into every format and multiplies them. Without files A has the statistics of "
             "activations (heavy tail, a few channels 20 to 60 times as large) and B those of weights (Gaussian); "
             "--seed makes others.\n"
             "The table shows the signal-to-noise ratio of both operands; the error of the product, relative to the "
             "exact product of the matrices before quantizing; how far the product is from the exact product of what "
             "it multiplied, in units of 2^-24 * sum |a||b|; and the speed, also as a multiple of the fp32 product's.\n"
             "Exit code 1 if a product is further from the exact one than gamma_n allows.",
    .example = "blockscale demo --m 32 --n 32 --k 256 --svg demo.svg\n"
               "blockscale demo --m 16 --n 48 --k 128 --rounds 1 --json",
    .options = options, .defaults = &defaults, .settings_bytes = sizeof defaults, .run = run,
};
