/* The error of a product whose D is fp32, ours and cuBLAS's: the largest |D - exact| over the sum of |a||b|, of a sample of rows
 * and columns that is the same for both. */
#include "product.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 64 }; /* rows, and columns: 4096 elements */

/* Sample number i of `count`: spread over all of them. */
static int64_t sample_index(int i, int64_t count) { return i * (count - 1) / (SAMPLES - 1); }

/* The sampled rows of a coded matrix in host memory, tensor scale left out. */
static bsm_matrix sampled_rows(const struct gpu *gpu, const struct coded *coded)
{
    bsm_matrix all = coded->matrix, some = coded->matrix;
    int64_t data, scales;
    some.rows = SAMPLES, some.tensor_scale = NULL;
    gpu_library(bsm_matrix_data_bytes(&some, &data), "a sample");
    gpu_library(bsm_matrix_scale_bytes(&some, &scales), "a sample");
    some.data = malloc((size_t)data);
    some.scales = scales > 0 ? malloc((size_t)scales) : NULL;
    for (int i = 0; i < SAMPLES; i++) {
        const int64_t row = sample_index(i, all.rows), row_data = data / SAMPLES, row_scales = scales / SAMPLES;
        gpu_library(
            bsm_device_read(gpu->context, (char *)some.data + i * row_data, (char *)all.data + row * row_data, (size_t)row_data),
            "codes");
        if (row_scales > 0)
            gpu_library(bsm_device_read(gpu->context, (char *)some.scales + i * row_scales, (char *)all.scales + row * row_scales,
                                        (size_t)row_scales),
                        "scales");
    }
    return some;
}

static bsm_real_matrix fp64(double *data)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix),
                              .type = BSM_REAL_FP64,
                              .rows = SAMPLES,
                              .columns = SAMPLES,
                              .data = data,
                              .row_stride = SAMPLES,
                              .column_stride = 1 };
}

struct exact {
    double sum[SAMPLES * SAMPLES], magnitude[SAMPLES * SAMPLES];
};

static struct exact *exact_of(const struct gpu *gpu, const struct places *p)
{
    struct exact *exact = malloc(sizeof *exact);
    const bsm_matrix a = sampled_rows(gpu, &p->a[0]), b = sampled_rows(gpu, &p->b[0]);
    const bsm_real_matrix sum = fp64(exact->sum), magnitude = fp64(exact->magnitude);
    gpu_library(bsm_matmul_exact(gpu->cpu, &a, &b, &sum, &magnitude), "the exact product");
    free(a.data), free(a.scales), free(b.data), free(b.scales);
    return exact;
}

/* Not a number anywhere gives not a number. */
static double largest_error(const struct gpu *gpu, const struct places *p, const float *d, const struct exact *exact)
{
    double largest = 0;
    float *row = malloc((size_t)p->shape.n * sizeof *row);
    for (int i = 0; i < SAMPLES; i++) {
        const int64_t first = sample_index(i, p->shape.m) * p->shape.n;
        gpu_library(bsm_device_read(gpu->context, row, d + first, (size_t)p->shape.n * sizeof *row), "D");
        for (int j = 0; j < SAMPLES; j++) {
            const double factor = (double)p->alpha, got = (double)row[sample_index(j, p->shape.n)],
                         want = factor * exact->sum[i * SAMPLES + j];
            const double error = fabs(got - want) / (factor * exact->magnitude[i * SAMPLES + j]);
            largest = error <= largest ? largest : error;
        }
    }
    free(row);
    return largest;
}

void measure_error(struct bench *bench, const struct pair *pair, const struct shape *shape)
{
    struct gpu *gpu = &bench->gpu;
    char work[64], text[40];
    if (gpu->cublas.handle == NULL) return;
    pair_text(pair, work, sizeof work), shape_text(shape, text, sizeof text);
    const int64_t mark = gpu->memory_used, cold_bytes = gpu->cold_bytes;
    struct own own;
    gpu->cold_bytes = 0; /* one product: nothing is timed */
    struct places *p = places_take(bench, pair, shape, BSM_FORMAT_FP32), *bf16 = places_dequantized(bench, p);
    own_make(bench, p, BSM_FORMAT_FP32, BSM_COMPUTE_EXACT, &own);
    struct exact *exact = exact_of(gpu, p);
    if (!own_run(&own)) gpu_stop("our product: %s", bsm_last_error());
    gpu_wait(gpu);
    const double ours = largest_error(gpu, p, p->d[0], exact);
    cublas_multiply(gpu, shape->m, shape->n, shape->k, p->alpha, bf16->a[0].matrix.data, bf16->b[0].matrix.data, p->d[0],
                    BSM_FORMAT_FP32);
    gpu_wait(gpu);
    struct row *row = table_row(&bench->table, SECTION_ERROR, work, text, "cuBLAS on bf16, D fp32");
    snprintf(row->about, sizeof row->about, "%s", own.kernel);
    row_values(row, ours, largest_error(gpu, p, p->d[0], exact));
    own_free(&own);
    free(p), free(bf16), free(exact);
    gpu->cold_bytes = cold_bytes;
    gpu_give_back(gpu, mark);
}
