/* bench_lowerings: one product of MXFP4 by the kernel that the plan takes, by one that is given bf16 rows, and by cuBLAS on the same
 * values in bf16 dequantized beforehand; in turn, and each by itself; a line for each.
 *
 * bench_lowerings M N K NUMBERS [ROUNDS]; NUMBERS: normal, student (t with 4 degrees of freedom), outliers (normal, one in a thousand
 * 64 times larger).  Whether rows go as integers depends on the numbers: how many may is printed, by the spread of their scales. */
#include "loop.h"
#include "operands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_WRONG_USAGE = 2, EXIT_NO_DEVICE = 4, ROUNDS = 15, MOST_SIDE = 65536, WAYS = 3, MOST_SPREAD = 3, NUMBERS = 1 << 24 };
static const double settled_seconds = 0.25;
static const char *const kernel_of_bf16 = "cuda_wgmma_128x256_2x1";

struct product {
    struct gpu gpu;
    int64_t m, n, k;
    struct coded a, b;
    void *a_values, *b_values;
    bsm_matrix d;
    bsm_matmul call;
    bsm_plan *plan, *plan_of_bf16;
    void *workspace;
};

static int64_t number_of(const char *text, int64_t most)
{
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > most) gpu_stop("%s: a whole number from 1 to %lld is wanted", text, (long long)most);
    return value;
}

/* The pool's normal numbers as others. */
static void change_pool(struct gpu *gpu, const char *numbers)
{
    enum { DEGREES = 4, ONE_IN = 1000, TIMES = 64 };
    const int64_t count = gpu->pool_count, apart = count / (DEGREES + 1);
    const bool student = strcmp(numbers, "student") == 0, outliers = strcmp(numbers, "outliers") == 0;
    if (!student && !outliers) return;
    uint16_t *from = malloc((size_t)count * sizeof *from), *to = malloc((size_t)count * sizeof *to);
    if (from == NULL || to == NULL) gpu_stop("no memory for %lld numbers", (long long)count);
    gpu_library(bsm_device_read(gpu->context, from, gpu->pool, (size_t)count * sizeof *from), "random numbers");
    for (int64_t i = 0; i < count; i++) {
        double value = bsm_element_decode(BSM_BF16, from[i]), squares = 0;
        for (int j = 1; j <= DEGREES && student; j++) squares += pow(bsm_element_decode(BSM_BF16, from[(i + j * apart) % count]), 2);
        if (student) value /= sqrt(squares / DEGREES);
        if (outliers && (uint32_t)((uint64_t)i * 2654435761u >> 7) % ONE_IN == 0) value *= TIMES;
        to[i] = (uint16_t)bsm_element_encode(BSM_BF16, value, BSM_ROUND_NEAREST_EVEN, true, 0);
    }
    gpu_library(bsm_device_write(gpu->context, gpu->pool, to, (size_t)count * sizeof *to), "random numbers");
    free(from), free(to);
}

/* rows x columns of the pool's numbers, over and over from number `first` on. */
static struct coded take_operand(struct gpu *gpu, int64_t rows, int64_t columns, int64_t first)
{
    struct coded c = { .matrix = { .struct_size = sizeof(bsm_matrix), .format = BSM_MXFP4, .rows = rows, .columns = columns } };
    int64_t data, scales, piece;
    gpu_library(bsm_matrix_data_bytes(&c.matrix, &data), "bytes of codes");
    gpu_library(bsm_matrix_scale_bytes(&c.matrix, &scales), "bytes of scales");
    c.matrix.data = gpu_take(gpu, data), c.matrix.scales = gpu_take(gpu, scales);
    const int64_t mark = gpu->memory_used;
    uint16_t *numbers = gpu_take(gpu, 2 * rows * columns);
    for (int64_t at = 0; at < rows * columns; at += piece, first = 0) {
        piece = gpu->pool_count - first < rows * columns - at ? gpu->pool_count - first : rows * columns - at;
        gpu_copy(gpu, numbers + at, (uint16_t *)gpu->pool + first, 2 * piece);
    }
    const bsm_real_matrix source = bf16_rows(numbers, rows, columns);
    const bsm_quantize_options options = { .struct_size = sizeof options };
    gpu_library(bsm_quantize(gpu->context, &source, &options, &c.matrix, NULL), "quantizing operands");
    gpu_wait(gpu);
    gpu_give_back(gpu, mark);
    return c;
}

static void make_product(struct product *p)
{
    struct gpu *gpu = &p->gpu;
    p->a = take_operand(gpu, p->m, p->k, 0), p->b = take_operand(gpu, p->n, p->k, NUMBERS / 3 + 128);
    p->a_values = gpu_take(gpu, 2 * p->m * p->k), p->b_values = gpu_take(gpu, 2 * p->n * p->k);
    coded_dequantize(gpu, &p->a, p->a_values), coded_dequantize(gpu, &p->b, p->b_values);
    p->d = plain_rows(BSM_FORMAT_BF16, gpu_take(gpu, 2 * p->m * p->n), p->m, p->n);
    p->call = (bsm_matmul){ .struct_size = sizeof p->call, .a = &p->a.matrix, .b = &p->b.matrix, .d = &p->d };
    gpu_library(bsm_plan_create(gpu->context, &p->call, &p->plan), "a plan");
    int kernel = 0;
    while (bsm_kernel_name(kernel) != NULL && strcmp(bsm_kernel_name(kernel), kernel_of_bf16) != 0) kernel++;
    gpu_library(bsm_context_force_kernel(gpu->context, kernel), kernel_of_bf16);
    gpu_library(bsm_plan_create(gpu->context, &p->call, &p->plan_of_bf16), "a plan of bf16 rows");
    const size_t one = bsm_plan_workspace_bytes(p->plan), other = bsm_plan_workspace_bytes(p->plan_of_bf16);
    p->workspace = gpu_take(gpu, (int64_t)(one > other ? one : other));
}

static bool run_plan(void *argument)
{
    const struct product *p = argument;
    return bsm_plan_run(p->plan, &p->call, p->workspace, bsm_plan_workspace_bytes(p->plan)) == BSM_OK;
}

static bool run_bf16(void *argument)
{
    const struct product *p = argument;
    return bsm_plan_run(p->plan_of_bf16, &p->call, p->workspace, bsm_plan_workspace_bytes(p->plan_of_bf16)) == BSM_OK;
}

static bool run_cublas(void *argument)
{
    const struct product *p = argument;
    cublas_multiply(&p->gpu, p->m, p->n, p->k, 1, p->a_values, p->b_values, p->d.data, BSM_FORMAT_BF16);
    return true;
}

/* Rows whose scales span at most three powers of two. */
static int64_t rows_that_fit(const struct gpu *gpu, const bsm_matrix *m)
{
    const int64_t columns = bsm_matrix_scale_columns(m);
    int64_t fit = 0;
    unsigned char *scales = malloc((size_t)(m->rows * columns));
    if (scales == NULL) gpu_stop("no memory");
    gpu_library(bsm_device_read(gpu->context, scales, m->scales, (size_t)(m->rows * columns)), "scales");
    for (int64_t row = 0; row < m->rows; row++) {
        int least = 255, most = 0;
        for (int64_t s = 0; s < columns; s++) {
            const int scale = scales[row * columns + s];
            least = scale < least ? scale : least, most = scale > most ? scale : most;
        }
        fit += most - least <= MOST_SPREAD;
    }
    free(scales);
    return fit;
}

static void print(const char *how, struct way *ways, const struct loop_state *states)
{
    for (int i = 0; i < WAYS; i++)
        printf("  %-12s %-24s %8.1f us at %4.0f MHz, %.3f of cuBLAS' speed\n", how, ways[i].contender.name, 1e6 * measure_median(&ways[i].contender),
               states[i].known ? states[i].mhz : 0, measure_median(&ways[WAYS - 1].contender) / measure_median(&ways[i].contender));
}

static void measure_ways(struct product *p, int rounds)
{
    struct way ways[WAYS] = { { .contender = { .name = "the plan's kernel", .run = run_plan, .argument = p } },
                              { .contender = { .name = kernel_of_bf16, .run = run_bf16, .argument = p } },
                              { .contender = { .name = "cuBLAS", .run = run_cublas, .argument = p } } };
    struct way *const all[WAYS] = { &ways[0], &ways[1], &ways[2] };
    const int count = p->gpu.cublas.handle != NULL ? WAYS : WAYS - 1;
    struct loop_state states[WAYS] = { { 0 } };
    if (count < WAYS) gpu_stop("%s", p->gpu.cublas.why);
    for (int i = 0; i < WAYS; i++) loop_prepare(&p->gpu, all[i], 1);
    loop_run(&p->gpu, all, WAYS, rounds, &states[0]);
    states[1] = states[2] = states[0];
    print("in turn", ways, states);
    loop_run_settled(&p->gpu, all, WAYS, 2, rounds < ROUNDS ? 0 : settled_seconds, states);
    print("by itself", ways, states);
    for (int i = 0; i < WAYS; i++) loop_release(&p->gpu, all[i]);
}

int main(int argc, char **argv)
{
    static struct product p;
    char text[1000];
    if (argc < 5 || argc > 6) {
        fprintf(stderr, "usage: bench_lowerings M N K normal|student|outliers [ROUNDS]\n");
        return EXIT_WRONG_USAGE;
    }
    p.m = number_of(argv[1], MOST_SIDE), p.n = number_of(argv[2], MOST_SIDE), p.k = number_of(argv[3], MOST_SIDE);
    const int rounds = argc == 6 ? (int)number_of(argv[5], MEASURE_ROUNDS) : ROUNDS;
    if (!gpu_open(&p.gpu, 10 * (p.m + p.n) * p.k + 2 * p.m * p.n + ((int64_t)256 << 20), NUMBERS, 0)) return EXIT_NO_DEVICE;
    change_pool(&p.gpu, argv[4]);
    make_product(&p);
    bsm_plan_describe(p.plan, text, sizeof text);
    printf("%lld x %lld x %lld, %s: scales span at most %d powers of two in %lld rows of A, %lld of B\n  %s\n", (long long)p.m, (long long)p.n,
           (long long)p.k, argv[4], MOST_SPREAD, (long long)rows_that_fit(&p.gpu, &p.a.matrix), (long long)rows_that_fit(&p.gpu, &p.b.matrix), text);
    measure_ways(&p, rounds);
    bsm_plan_destroy(p.plan), bsm_plan_destroy(p.plan_of_bf16);
    gpu_close(&p.gpu);
    return 0;
}
