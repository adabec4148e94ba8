/* bench --device cuda: products on a GPU, beside bf16 x bf16 of the same shape.
 *
 * Operands are copied to the device in several places that are used in turn, so that nobody finds them in L2; a sample
 * is a row of products in one stream, from the first launch to the end of the last.
 *
 * Large products run at the GPU's power limit, whose control looks back about a tenth of a second: in shorter samples
 * one contender is slowed by what the other drew before it.  On one H200, 8192^3, samples of 7 ms: bf16 took 1,520 us
 * beside mxfp8 and 1,640 beside itself, and the GEMM kernel of mxfp8 1,700; in samples of 0.4 s 1,667 and 1,614. */
#include "gpu.h"
#include "gpu_profile.h"
#include "cli/machine/device.h"
#include "int8_rows.h"
#include "cli/machine/measure.h"
#include "cli/machine/plan_text.h"
#include "cli/matrices/operand.h"
#include "cli/matrices/sample_data.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 16 };
static const int64_t cold_bytes = (int64_t)256 << 20;          /* of all places: several times an L2 */
static const double sample_seconds = 0.4;

/* One pair of formats at one K. */
struct side {
    bsm_context *gpu;
    struct operand a, b;
    void *d;
    bsm_matrix d_matrix;
    bsm_matmul product;
    struct device_product places[MOST_PLACES];
    int count, next;
    bsm_plan *plan;
    void *workspace;
    char plan_text[PLAN_TEXT_BYTES], rows_text[2][192]; /* rows_text: of a plan that multiplies int8 rows */
    bool all_fit;
    int calls;                            /* products of a sample */
    double seconds[MEASURE_ROUNDS];       /* of one product, by round */
};

/* B of every place. */
static bsm_status pack_b(struct side *s)
{
    const size_t bytes = bsm_plan_b_panels_bytes(s->plan);
    bsm_status status = BSM_OK;
    for (int i = 0; i < s->count && status == BSM_OK; i++) {
        void *panels = NULL;
        if (bytes > 0) status = device_product_allocate(&s->places[i], bytes, &panels);
        if (status == BSM_OK) status = bsm_plan_pack_b(s->plan, &s->places[i].call, panels, bytes);
        s->places[i].call.b_panels = panels;
    }
    return status;
}

static bsm_status make_places(struct side *s, bool prepacked)
{
    const int64_t bytes = s->a.data_bytes + s->a.scale_bytes + s->b.data_bytes + s->b.scale_bytes;
    s->count = (int)(cold_bytes / (bytes + 1)) + 2;
    if (s->count > MOST_PLACES) s->count = MOST_PLACES;
    bsm_status status = BSM_OK;
    for (int i = 0; i < s->count && status == BSM_OK; i++)
        status = device_product_create(s->gpu, &s->product, &s->places[i]);
    if (status == BSM_OK) status = bsm_plan_create(s->gpu, &s->places[0].call, &s->plan);
    if (status == BSM_OK) bsm_plan_describe(s->plan, s->plan_text, sizeof s->plan_text);
    if (status == BSM_OK && plan_multiplies_int8_rows(s->plan_text)) {
        s->all_fit = int8_rows_describe("A", &s->a.matrix, s->rows_text[0], sizeof s->rows_text[0]);
        s->all_fit &= int8_rows_describe("B", &s->b.matrix, s->rows_text[1], sizeof s->rows_text[1]);
    }
    if (status == BSM_OK)
        status = device_product_allocate(&s->places[0], bsm_plan_workspace_bytes(s->plan), &s->workspace);
    return status == BSM_OK && prepacked ? pack_b(s) : status;
}

static int create_side(struct cli *cli, bsm_context *gpu, const struct bench_gpu *what, bsm_format a, bsm_format b,
                       bool prepacked, int64_t k, const float *a_source, const float *b_source, struct side *s)
{
    s->gpu = gpu;
    int code = operand_create_plain(cli, &s->a, a, what->m, k);
    if (code == CLI_DONE) code = operand_create_plain(cli, &s->b, b, what->n, k);
    if (code != CLI_DONE) return code;
    bsm_status status = operand_quantize(cli, &s->a, a_source, k, NULL);
    if (status == BSM_OK) status = operand_quantize(cli, &s->b, b_source, k, NULL);
    if (status != BSM_OK) return cli_library_failed(cli, "quantize", status);
    s->d = cli_memory(cli, what->m, what->n * 4);
    s->d_matrix =
        (bsm_matrix){ .struct_size = sizeof(bsm_matrix), .format = what->d, .rows = what->m, .columns = what->n,
                      .data = s->d };
    s->product = (bsm_matmul){ .struct_size = sizeof(bsm_matmul),
                               .a = &s->a.matrix,
                               .b = &s->b.matrix,
                               .d = &s->d_matrix,
                               .compute = what->compute,
                               .order = what->order };
    status = make_places(s, prepacked);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, NULL, status);
}

static void free_side(struct side *s)
{
    bsm_plan_destroy(s->plan);
    for (int i = 0; i < s->count; i++) device_product_free(&s->places[i]);
    operand_free(&s->a), operand_free(&s->b);
    free(s->d);
}

static bsm_status sample(struct side *s, int calls, double *seconds)
{
    const double start = cli_seconds();
    bsm_status status = BSM_OK;
    for (int i = 0; i < calls && status == BSM_OK; i++) {
        status = bsm_plan_run(s->plan, &s->places[s->next].call, s->workspace, bsm_plan_workspace_bytes(s->plan));
        s->next = (s->next + 1) % s->count;
    }
    if (status == BSM_OK) status = bsm_context_synchronize(s->gpu);
    *seconds = (cli_seconds() - start) / calls;
    return status;
}

/* Warms up, and chooses how many products a sample has: a simulated GPU has no clock and no power to wait for. */
static bsm_status start(struct side *s, bool simulated)
{
    double seconds = 0;
    s->calls = 1;
    if (simulated) return sample(s, 1, &seconds);
    bsm_status status = sample(s, 2, &seconds);
    if (status == BSM_OK) status = sample(s, 4, &seconds);
    s->calls = seconds > sample_seconds / 4 ? 4 : (int)(sample_seconds / seconds) + 1;
    return status;
}

static int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(const struct side *s, int64_t rounds)
{
    double sorted[MEASURE_ROUNDS];
    memcpy(sorted, s->seconds, (size_t)rounds * sizeof *sorted);
    qsort(sorted, (size_t)rounds, sizeof *sorted, by_size);
    return rounds % 2 == 1 ? sorted[rounds / 2] : (sorted[rounds / 2 - 1] + sorted[rounds / 2]) / 2;
}

static double best(const struct side *s, int64_t rounds)
{
    double least = s->seconds[0];
    for (int64_t i = 1; i < rounds; i++) least = s->seconds[i] < least ? s->seconds[i] : least;
    return least;
}

static bsm_status measure_both(struct side *product, struct side *bf16, int64_t rounds, bool simulated)
{
    bsm_status status = start(product, simulated);
    if (status == BSM_OK) status = start(bf16, simulated);
    for (int64_t i = 0; i < rounds && status == BSM_OK; i++) {
        status = sample(product, product->calls, &product->seconds[i]);
        if (status == BSM_OK) status = sample(bf16, bf16->calls, &bf16->seconds[i]);
    }
    return status;
}

static void tell(const struct side *s, const struct bench_gpu *what, struct gpu_side *told)
{
    memcpy(told->plan, s->plan_text, sizeof told->plan);
    memcpy(told->rows, s->rows_text, sizeof told->rows);
    told->all_fit = s->all_fit;
    told->places = s->count, told->calls = s->calls;
    const double of_d = (double)(what->m * what->n) * bsm_format_get((int)what->d)->bits_per_element / 8;
    told->bytes = s->a.data_bytes + s->a.scale_bytes + s->b.data_bytes + s->b.scale_bytes + (int64_t)of_d;
    if (what->explain) return;
    told->median = median(s, what->rounds), told->best = best(s, what->rounds);
}

static bsm_status run_once(void *argument)
{
    struct side *s = argument;
    double seconds;
    return sample(s, 1, &seconds);
}

static int measure_k(struct cli *cli, bsm_context *gpu, const struct gpu_report *report, struct gpu_point *point)
{
    const struct bench_gpu *what = report->what;
    const int64_t k = point->k;
    float *a = cli_memory(cli, what->m, k * (int64_t)sizeof *a), *b = cli_memory(cli, what->n, k * (int64_t)sizeof *b);
    struct side *sides = cli_memory(cli, 2, (int64_t)sizeof *sides);
    sample_activations(cli->seed, what->m, k, a);
    sample_weights(cli->seed, what->n, k, b);
    int code = create_side(cli, gpu, what, what->a, what->b, what->prepacked, k, a, b, &sides[0]);
    if (code == CLI_DONE)
        code = create_side(cli, gpu, what, BSM_FORMAT_BF16, BSM_FORMAT_BF16, false, k, a, b, &sides[1]);
    if (code == CLI_DONE && !what->explain) {
        const bsm_status status = measure_both(&sides[0], &sides[1], what->rounds, report->simulated);
        if (status != BSM_OK) code = cli_library_failed(cli, "product", status);
    }
    if (code == CLI_DONE && what->profile)
        code = gpu_profile_run(cli, gpu, report->simulated, run_once, &sides[0], &point->product);
    if (code == CLI_DONE) tell(&sides[0], what, &point->product), tell(&sides[1], what, &point->bf16);
    free_side(&sides[0]), free_side(&sides[1]);
    free(sides), free(a), free(b);
    return code;
}

int bench_gpu_run(struct cli *cli, bsm_context *gpu, const struct bench_gpu *what, FILE *plot)
{
    struct gpu_report report = { .what = what, .device = { .struct_size = sizeof report.device },
                                 .count = (int)((what->k.last - what->k.first) / what->k.step + 1) };
    int code = CLI_DONE;
    (void)bsm_device_describe(bsm_context_backend(gpu), 0, &report.device);
    report.simulated = strstr(report.device.name, "cudasim") != NULL || strstr(report.device.name, "gfxsim") != NULL;
    report.points = cli_memory(cli, report.count, (int64_t)sizeof *report.points);
    for (int i = 0; i < report.count && code == CLI_DONE; i++) {
        report.points[i].k = what->k.first + i * what->k.step;
        code = measure_k(cli, gpu, &report, &report.points[i]);
    }
    if (code == CLI_DONE && cli->json) gpu_report_json(&report);
    if (code == CLI_DONE && !cli->json) gpu_report_text(&report);
    if (code == CLI_DONE && plot != NULL) gpu_report_plot(&report, plot);
    free(report.points);
    return code;
}
