/* blockscale bench: the speed of a product against the fp32 product and, where there is one, a BLAS library. */
#include "bench.h"
#include "gpu.h"
#include "gpu_profile.h"
#include "cli/machine/device.h"
#include "cli/machine/machine.h"
#include "cli/matrices/operand.h"
#include "cli/matrices/sample_data.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    int format;                           /* a bsm_format, or MIXED */
    bsm_format a_format, b_format, d_format;
    int64_t m, n, k, rounds;
    struct cli_range k_range;
    const char *plot;
    int device;
    bsm_compute compute;
    bsm_order order;
    bool no_blas, explain, verbose, prepacked, profile;
};
static const struct settings defaults = { .format = BSM_NVFP4, .d_format = BSM_FORMAT_FP32, .m = 256, .n = 256,
                                          .rounds = 15 };
static const struct cli_range default_range = { 512, 2048, 512 };

/* --format: one of all formats, or A in MXFP8 and B in MXFP4. */
enum { MIXED = BSM_FORMAT_COUNT };
static const char *format_or_mixed(int value) { return value == MIXED ? "mixed" : cli_formats.name(value); }
static int from_format_or_mixed(const char *name)
{
    return strcmp(name, "mixed") == 0 ? MIXED : cli_formats.from_name(name);
}
static const struct cli_choices bench_formats = { format_or_mixed, from_format_or_mixed, BSM_FORMAT_NONE + 1,
                                                  MIXED + 1 };

enum { POINTS_MAX = 256 };
#define LENGTH_MAX ((int64_t)1 << 40)      /* sizes in bytes then fit an int64_t; memory ends long before */
static const double sample_seconds = 0.005;

/* What the contenders work on. */
struct workload {
    struct cli *cli;
    const float *a_source, *b_source;     /* the pitch of both is k_max */
    int64_t m, n, k, k_max;
    struct operand a, b, a_fp32, b_fp32;
    float *d;
    bsm_matrix d_matrix;
    bsm_matmul product, fp32;
    const struct blas_peer *peer;
};

static bool run_product(void *argument)
{
    const struct workload *w = argument;
    return bsm_multiply(w->cli->context, &w->product) == BSM_OK;
}

static bool run_fp32(void *argument)
{
    const struct workload *w = argument;
    return bsm_multiply(w->cli->context, &w->fp32) == BSM_OK;
}

static bool run_peer(void *argument)
{
    const struct workload *w = argument;
    blas_peer_multiply(w->peer, w->m, w->n, w->k, w->a_fp32.matrix.data, w->b_fp32.matrix.data, w->d);
    return true;
}

static bool run_quantize_a(void *argument)
{
    struct workload *w = argument;
    return operand_quantize(w->cli, &w->a, w->a_source, w->k_max, NULL) == BSM_OK;
}

static bool run_quantize_b(void *argument)
{
    struct workload *w = argument;
    return operand_quantize(w->cli, &w->b, w->b_source, w->k_max, NULL) == BSM_OK;
}

static void describe_plan(const struct cli *cli, const bsm_matmul *product, char *text, size_t bytes)
{
    bsm_plan *plan = NULL;
    text[0] = '\0';
    if (bsm_plan_create(cli->context, product, &plan) == BSM_OK) bsm_plan_describe(plan, text, bytes);
    bsm_plan_destroy(plan);
}

static int prepare(struct workload *w, const struct bench_report *report)
{
    struct cli *cli = w->cli;
    int code = operand_create_plain(cli, &w->a, report->a, w->m, w->k);
    if (code == CLI_DONE) code = operand_create_plain(cli, &w->b, report->b, w->n, w->k);
    if (code == CLI_DONE) code = operand_create_plain(cli, &w->a_fp32, BSM_FORMAT_FP32, w->m, w->k);
    if (code == CLI_DONE) code = operand_create_plain(cli, &w->b_fp32, BSM_FORMAT_FP32, w->n, w->k);
    if (code != CLI_DONE) return code;
    bsm_status status = operand_quantize(cli, &w->a_fp32, w->a_source, w->k_max, NULL);
    if (status == BSM_OK) status = operand_quantize(cli, &w->b_fp32, w->b_source, w->k_max, NULL);
    if (status != BSM_OK) return cli_library_failed(cli, "quantize", status);
    w->d_matrix = fp32_rows(w->m, w->n, w->d, w->n);
    w->product = (bsm_matmul) { .struct_size = sizeof(bsm_matmul), .a = &w->a.matrix, .b = &w->b.matrix,
                                .d = &w->d_matrix, .order = report->order };
    w->fp32 = (bsm_matmul) { .struct_size = sizeof(bsm_matmul), .a = &w->a_fp32.matrix, .b = &w->b_fp32.matrix,
                             .d = &w->d_matrix };
    return CLI_DONE;
}

static int measure_point(struct workload *w, const struct bench_report *report, struct bench_point *point)
{
    point->k = w->k;
    point->quantize_a = (struct contender) { .name = "quantize A", .run = run_quantize_a, .argument = w };
    point->quantize_b = (struct contender) { .name = "quantize B", .run = run_quantize_b, .argument = w };
    point->product = (struct contender) { .name = "product", .run = run_product, .argument = w };
    point->fp32 = (struct contender) { .name = "fp32 product", .run = run_fp32, .argument = w };
    point->peer = (struct contender) { .name = w->peer->name, .run = run_peer, .argument = w };
    struct contender *quantizers[] = { &point->quantize_a, &point->quantize_b };
    struct contender *products[] = { &point->product, &point->fp32, &point->peer };

    int code = prepare(w, report);
    if (code != CLI_DONE) return code;
    const int rounds = (int)report->rounds;
    int failed = measure(quantizers, 2, rounds < 3 ? rounds : 3, sample_seconds);
    if (failed >= 0) return cli_library_failed(w->cli, quantizers[failed]->name, BSM_EINVAL);
    failed = measure(products, report->has_peer ? 3 : 2, rounds, sample_seconds);
    if (failed >= 0) return cli_library_failed(w->cli, products[failed]->name, BSM_EINVAL);
    point->a_bytes = w->a.data_bytes + w->a.scale_bytes;
    point->b_bytes = w->b.data_bytes + w->b.scale_bytes;
    describe_plan(w->cli, &w->product, point->product_plan, sizeof point->product_plan);
    describe_plan(w->cli, &w->fp32, point->fp32_plan, sizeof point->fp32_plan);
    return CLI_DONE;
}

static void release(struct workload *w)
{
    operand_free(&w->a), operand_free(&w->b), operand_free(&w->a_fp32), operand_free(&w->b_fp32);
}

static int measure_range(struct cli *cli, struct bench_report *report, const struct cli_range *range)
{
    const int64_t m = report->m, n = report->n, k_max = range->first + (report->count - 1) * range->step;
    float *a = cli_memory(cli, m, k_max * (int64_t)sizeof *a), *b = cli_memory(cli, n, k_max * (int64_t)sizeof *b);
    float *d = cli_memory(cli, m, n * (int64_t)sizeof *d);
    const bool progress = isatty(STDERR_FILENO);
    int code = CLI_DONE;
    sample_activations(cli->seed, m, k_max, a);
    sample_weights(cli->seed, n, k_max, b);
    for (int i = 0; i < report->count && code == CLI_DONE; i++) {
        struct workload w = { .cli = cli, .a_source = a, .b_source = b, .m = m, .n = n,
                              .k = range->first + i * range->step,
                              .k_max = k_max, .d = d, .peer = &report->peer };
        if (progress) fprintf(stderr, "\rK = %lld, %d of %d\033[K", (long long)w.k, i + 1, report->count);
        code = measure_point(&w, report, &report->points[i]);
        release(&w);
    }
    if (progress) fprintf(stderr, "\r\033[K");
    free(a), free(b), free(d);
    return code;
}

/* The K's to measure: --k, --k-range, or the default range. */
static int choose_range(const struct cli *cli, const struct settings *s, struct cli_range *range)
{
    if (s->k != 0 && s->k_range.first != 0) return cli_wrong_usage(cli, "--k and --k-range exclude each other");
    *range = s->k != 0 ? (struct cli_range) { s->k, s->k, 1 } : s->k_range.first != 0 ? s->k_range : default_range;
    const int64_t points = (range->last - range->first) / range->step + 1;
    if (points > POINTS_MAX)
        return cli_wrong_usage(cli, "--k-range has %lld points; %d is the most, so take a larger step",
                               (long long)points, POINTS_MAX);
    return CLI_DONE;
}

static bsm_format a_format(const struct settings *s)
{
    if (s->a_format != BSM_FORMAT_NONE) return s->a_format;
    return s->format == MIXED ? BSM_MXFP8_E4M3 : (bsm_format)s->format;
}
static bsm_format b_format(const struct settings *s)
{
    if (s->b_format != BSM_FORMAT_NONE) return s->b_format;
    return s->format == MIXED ? BSM_MXFP4 : (bsm_format)s->format;
}

static int run_on_gpu(struct cli *cli, const struct settings *s, const struct cli_range *range)
{
    bsm_context *gpu;
    FILE *plot = NULL;
    if (s->plot != NULL && s->explain) return cli_wrong_usage(cli, "--explain measures nothing: leave out --plot");
    if (s->profile && s->explain) return cli_wrong_usage(cli, "--explain measures nothing: leave out --profile");
    const struct bench_gpu what = { .a = a_format(s),         .b = b_format(s),     .d = s->d_format,
                                    .m = s->m,                .n = s->n,            .rounds = s->rounds,
                                    .k = *range,              .compute = s->compute, .order = s->order,
                                    .prepacked = s->prepacked, .explain = s->explain, .verbose = s->verbose,
                                    .profile = s->profile };
    int code = s->profile ? gpu_profile_prepare(cli) : CLI_DONE;
    if (code != CLI_DONE) return code;
    code = device_open(cli, s->device, &gpu);
    if (code == CLI_DONE && s->plot != NULL && (plot = cli_output(cli, s->plot)) == NULL) code = CLI_BAD_INPUT;
    if (code == CLI_DONE) code = bench_gpu_run(cli, gpu, &what, plot);
    bsm_context_destroy(gpu);
    return code;
}

/* The plan alone. */
static int explain_on_cpu(struct cli *cli, const struct settings *s, int64_t k)
{
    struct operand a, b;
    char text[PLAN_TEXT_BYTES] = "";
    int code = operand_create_plain(cli, &a, a_format(s), s->m, k);
    if (code == CLI_DONE) code = operand_create_plain(cli, &b, b_format(s), s->n, k);
    if (code != CLI_DONE) return code;
    float *d = cli_memory(cli, s->m, s->n * (int64_t)sizeof *d);
    const bsm_matrix d_matrix = fp32_rows(s->m, s->n, d, s->n);
    const bsm_matmul product = { .struct_size = sizeof product, .a = &a.matrix, .b = &b.matrix, .d = &d_matrix,
                                 .order = s->order };
    describe_plan(cli, &product, text, sizeof text);
    printf("K = %lld\n", (long long)k);
    plan_print("  plan     ", text[0] != '\0' ? text : bsm_last_error(), true);
    operand_free(&a), operand_free(&b), free(d);
    return CLI_DONE;
}

static int run(struct cli *cli, const void *given)
{
    const struct settings *s = given;
    struct cli_range range = default_range;
    int code = choose_range(cli, s, &range);
    if (code != CLI_DONE) return code;
    if (s->device != 0) return run_on_gpu(cli, s, &range);
    for (int64_t k = range.first; s->explain && k <= range.last && code == CLI_DONE; k += range.step)
        code = explain_on_cpu(cli, s, k);
    if (s->explain) return code;
    if (s->d_format != BSM_FORMAT_FP32) return cli_wrong_usage(cli, "--d-format is for --device cuda or hip");
    if (s->prepacked) return cli_wrong_usage(cli, "--prepacked is for --device cuda or hip");
    if (s->compute != BSM_COMPUTE_EXACT)
        return cli_wrong_usage(cli, "--compute is for --device cuda or hip: the CPU computes exactly");
    if (s->profile) return cli_wrong_usage(cli, "--profile is for --device cuda: it tells of a GPU's kernels");
    if (s->order == BSM_ORDER_ANY)
        return cli_wrong_usage(cli, "--order any is for --device cuda or hip: on the CPU it changes nothing");
    FILE *plot = NULL;
    /* before a long measurement */
    if (s->plot != NULL && (plot = cli_output(cli, s->plot)) == NULL) return CLI_BAD_INPUT;

    struct bench_report report = { .a = a_format(s), .b = b_format(s), .m = s->m, .n = s->n,
                                   .order = s->order, .rounds = s->rounds, .verbose = s->verbose,
                                   .threads = bsm_context_threads(cli->context),
                                   .count = (int)((range.last - range.first) / range.step + 1) };
    machine_processor(report.machine, sizeof report.machine);
    report.has_peer =
        !s->no_blas && s->m <= INT_MAX && s->n <= INT_MAX && range.last <= INT_MAX &&
        blas_peer_open(&report.peer, report.threads, bsm_context_cpu_features(cli->context));
    report.points = cli_memory(cli, report.count, (int64_t)sizeof *report.points);
    code = measure_range(cli, &report, &range);
    if (code == CLI_DONE) {
        if (cli->json) bench_report_json(&report);
        else bench_report_text(&report);
        if (plot != NULL) bench_report_plot(&report, plot);
    }
    free(report.points);
    return code;
}

static const struct cli_option options[] = {
    { "--format", 'f', "FORMAT", "of both operands (nvfp4); mixed: A in mxfp8_e4m3, B in mxfp4",
      CLI_CHOICE(struct settings, format, &bench_formats) },
    { "--a-format", 0, "FORMAT", "of A", CLI_FORMAT(struct settings, a_format) },
    { "--b-format", 0, "FORMAT", "of B", CLI_FORMAT(struct settings, b_format) },
    { "--d-format", 0, "FORMAT", "of D, on a GPU (fp32)", CLI_FORMAT(struct settings, d_format) },
    { "--device", 0, "NAME", "cpu, cuda or hip: the first GPU, beside bf16 x bf16 there",
      CLI_DEVICE(struct settings, device) },
    { "--compute", 0, "HOW", "on a GPU: exact, or fast, which may requantize MXFP8 and MXFP6 to FP8",
      CLI_COMPUTE(struct settings, compute) },
    { "--order", 0, "HOW",
      "of sums: k, the same for every M and N; any, which permits others on a GPU; "
      "portable, the same on every machine; split_k, as k, but two parts of K where weights are prepacked on Hopper",
      CLI_ORDER(struct settings, order) },
    { "--prepacked", 0, NULL, "on a GPU: B is packed once, before", CLI_FLAG(struct settings, prepacked) },
    { "--explain", 0, NULL, "print the kernel that the plan chooses, and why; measure nothing",
      CLI_FLAG(struct settings, explain) },
    { "--m", 'm', "M", "rows of A and D (256)", CLI_INTEGER(struct settings, m), .low = 1, .high = LENGTH_MAX },
    { "--n", 'n', "N", "rows of B, columns of D (256)", CLI_INTEGER(struct settings, n), .low = 1, .high = LENGTH_MAX },
    { "--k", 'k', "K", "length of the sums", CLI_INTEGER(struct settings, k), .low = 1, .high = LENGTH_MAX },
    { "--k-range", 0, "RANGE", "several K, FIRST:LAST:STEP (512:2048:512)", CLI_RANGE(struct settings, k_range),
      .low = 1,
      .high = LENGTH_MAX },
    { "--rounds", 'r', "N", "samples of each product (15)", CLI_INTEGER(struct settings, rounds), .low = 1,
      .high = MEASURE_ROUNDS },
    { "--plot", 0, "FILE.svg", "a line chart of GFLOP/s (on a GPU TFLOP/s) over K", CLI_TEXT(struct settings, plot) },
    { "--profile", 0, NULL, "on a GPU of CUDA: what each kernel of the product takes; where it is simulated, counts",
      CLI_FLAG(struct settings, profile) },
    { "--no-blas", 0, NULL, "do not look for a BLAS library to compare with", CLI_FLAG(struct settings, no_blas) },
    { "--verbose", 'v', NULL, "all that the plans say of their kernels", CLI_FLAG(struct settings, verbose) },
    { .name = NULL },
};

const struct cli_verb cli_verb_bench = {
    .name = "bench",
    .summary = "speed of a product, against fp32 and a BLAS library: GFLOP/s and ratios",
    .usage = "[options]",
    .about = "Multiplies A (M x K, activations with outlier channels) and B (N x K, Gaussian weights) into fp32, in "
             "alternating rounds with the library's own fp32 x fp32 product and with cblas_sgemm where libopenblas, "
             "libmkl_rt, libblis or libblas is installed; netlib's reference BLAS is named, but not compared with.\n"
             "Each sample lasts at least 5 ms; the same buffers are used again, so caches are as warm as they can be. "
             "On a GPU it lasts 0.4 s, so that each contender runs at its own power and clock, and operands are cold "
             "in L2. The ratio is how many times as fast as the fp32 product: best over best, and the median of the "
             "rounds' own ratios. Quantizing is timed apart.",
    .example = "blockscale bench --format mxfp4 --m 64 --n 64 --k 256\n"
               "blockscale bench --a-format bf16 --b-format mxfp4 -m 64 --k-range 128:512:128 -r 3 --plot k.svg",
    .options = options, .defaults = &defaults, .settings_bytes = sizeof defaults, .run = run,
};
