/* bench --device cuda: products on a GPU, beside bf16 x bf16 of the same shape.
 *
 * Operands are copied to the device in several places that are used in turn, so that nobody finds them in L2; a sample
 * is a row of products in one stream, from the first launch to the end of the last.
 *
 * Large products run at the GPU's power limit, whose control looks back about a tenth of a second: in shorter samples
 * one contender is slowed by what the other drew before it.  On one H200, 8192^3, samples of 7 ms: bf16 took 1,520 us
 * beside mxfp8 and 1,640 beside itself, and the GEMM kernel of mxfp8 1,700; in samples of 0.4 s 1,667 and 1,614. */
#include "gpu.h"
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

/* Warms up, and chooses how many products a sample has. */
static bsm_status start(struct side *s)
{
    double seconds = 0;
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

static bsm_status measure_both(struct side *product, struct side *bf16, int64_t rounds)
{
    bsm_status status = start(product);
    if (status == BSM_OK) status = start(bf16);
    for (int64_t i = 0; i < rounds && status == BSM_OK; i++) {
        status = sample(product, product->calls, &product->seconds[i]);
        if (status == BSM_OK) status = sample(bf16, bf16->calls, &bf16->seconds[i]);
    }
    return status;
}

/* Printing --------------------------------------------------------------------------------------------------------- */

static double tflops(const struct bench_gpu *what, int64_t k, double seconds)
{
    return 2e-12 * (double)what->m * (double)what->n * (double)k / seconds;
}

static void print_text(const struct bench_gpu *what, int64_t k, const struct side *product, const struct side *bf16)
{
    printf("K = %lld\n", (long long)k);
    plan_print("  plan     ", product->plan_text, what->verbose || what->explain);
    for (int i = 0; i < 2 && product->rows_text[i][0] != '\0'; i++) {
        printf("  rows     ");
        cli_print_wrapped(stdout, product->rows_text[i], 11, 11);
    }
    if (product->rows_text[0][0] != '\0')
        printf("           so all rows are multiplied as %s; both give the same bits\n",
               product->all_fit ? "int8" : "bf16, the fallback");
    if (what->explain) return;
    printf("  product  %9.2f TFLOP/s median, %9.2f best, %10.2f us median\n",
           tflops(what, k, median(product, what->rounds)), tflops(what, k, best(product, what->rounds)),
           1e6 * median(product, what->rounds));
    printf("  bf16     %9.2f TFLOP/s median, %9.2f best, %10.2f us median\n",
           tflops(what, k, median(bf16, what->rounds)), tflops(what, k, best(bf16, what->rounds)),
           1e6 * median(bf16, what->rounds));
}

static void json_side(struct cli_json *json, const char *key, const struct bench_gpu *what, int64_t k,
                      const struct side *s)
{
    cli_json_object(json, key);
    cli_json_text(json, "plan", s->plan_text);
    if (s->rows_text[0][0] != '\0')
        cli_json_text(json, "rows_of_a", s->rows_text[0]), cli_json_text(json, "rows_of_b", s->rows_text[1]),
            cli_json_boolean(json, "rows_go_as_integers", s->all_fit);
    if (!what->explain) {
        cli_json_number(json, "median_tflops", tflops(what, k, median(s, what->rounds)));
        cli_json_number(json, "best_tflops", tflops(what, k, best(s, what->rounds)));
        cli_json_number(json, "median_seconds", median(s, what->rounds));
        cli_json_integer(json, "products_per_sample", s->calls);
        cli_json_integer(json, "places", s->count);
    }
    cli_json_end(json);
}

static int measure_k(struct cli *cli, bsm_context *gpu, const struct bench_gpu *what, int64_t k, struct cli_json *json)
{
    float *a = cli_memory(cli, what->m, k * (int64_t)sizeof *a), *b = cli_memory(cli, what->n, k * (int64_t)sizeof *b);
    struct side *sides = cli_memory(cli, 2, (int64_t)sizeof *sides);
    sample_activations(cli->seed, what->m, k, a);
    sample_weights(cli->seed, what->n, k, b);
    int code = create_side(cli, gpu, what, what->a, what->b, what->prepacked, k, a, b, &sides[0]);
    if (code == CLI_DONE)
        code = create_side(cli, gpu, what, BSM_FORMAT_BF16, BSM_FORMAT_BF16, false, k, a, b, &sides[1]);
    if (code == CLI_DONE && !what->explain) {
        const bsm_status status = measure_both(&sides[0], &sides[1], what->rounds);
        if (status != BSM_OK) code = cli_library_failed(cli, "product", status);
    }
    if (code == CLI_DONE && json == NULL) print_text(what, k, &sides[0], &sides[1]);
    if (code == CLI_DONE && json != NULL) {
        cli_json_object(json, NULL);
        cli_json_integer(json, "k", k);
        json_side(json, "product", what, k, &sides[0]);
        json_side(json, "bf16", what, k, &sides[1]);
        cli_json_end(json);
    }
    free_side(&sides[0]), free_side(&sides[1]);
    free(sides), free(a), free(b);
    return code;
}

int bench_gpu_run(struct cli *cli, bsm_context *gpu, const struct bench_gpu *what)
{
    bsm_device_info info = { .struct_size = sizeof info };
    struct cli_json json = cli_json_to(stdout);
    int code = CLI_DONE;
    (void)bsm_device_describe(bsm_context_backend(gpu), 0, &info);
    if (cli->json) {
        cli_json_object(&json, NULL);
        cli_json_text(&json, "device", info.name);
        cli_json_text(&json, "a_format", bsm_format_get((int)what->a)->name);
        cli_json_text(&json, "b_format", bsm_format_get((int)what->b)->name);
        cli_json_text(&json, "d_format", bsm_format_get((int)what->d)->name);
        cli_json_integer(&json, "m", what->m);
        cli_json_integer(&json, "n", what->n);
        cli_json_integer(&json, "rounds", what->rounds);
        cli_json_text(&json, "caches", "cold: operands in several places, used in turn");
        cli_json_array(&json, "points");
    } else {
        printf("%s x %s, M = %lld, N = %lld, D %s, on %s\n", bsm_format_get((int)what->a)->name,
               bsm_format_get((int)what->b)->name, (long long)what->m, (long long)what->n,
               bsm_format_get((int)what->d)->name, info.name);
        if (!what->explain) printf("%lld alternating rounds, operands cold in L2\n", (long long)what->rounds);
    }
    for (int64_t k = what->k.first; k <= what->k.last && code == CLI_DONE; k += what->k.step)
        code = measure_k(cli, gpu, what, k, cli->json ? &json : NULL);
    if (cli->json) cli_json_end(&json), cli_json_end(&json);
    return code;
}
