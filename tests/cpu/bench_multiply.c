/* Speed of one product: bench_multiply FORMAT_A FORMAT_B M N K [THREADS [KERNEL]].  Prints the best of several runs,
 * GFLOP/s of processor time. */
#include "blockscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Codes and scales that are small finite numbers in every format. */
static bsm_matrix make(bsm_format format, int64_t rows, int64_t columns)
{
    bsm_matrix m = { .struct_size = sizeof m, .format = format, .rows = rows, .columns = columns };
    int64_t data_bytes = 0, scale_bytes = 0;
    if (bsm_matrix_data_bytes(&m, &data_bytes) != BSM_OK || bsm_matrix_scale_bytes(&m, &scale_bytes) != BSM_OK) exit(1);
    unsigned char *data = aligned_alloc(64, (size_t)(data_bytes + 64) / 64 * 64);
    const int size = bsm_element_get((int)bsm_format_get((int)format)->element)->bits / 8;
    for (int64_t i = 0; i < data_bytes; i++)
        data[i] = (unsigned char)(i * 7919 % 23 + (size < 2 || i % size == size - 1 ? 0x2c : 0));
    m.data = data;
    if (scale_bytes > 0) {
        m.scales = malloc((size_t)scale_bytes);
        memset(m.scales, format == BSM_NVFP4 ? 0x38 : 127, (size_t)scale_bytes);
    }
    return m;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: %s FORMAT_A FORMAT_B M N K [THREADS [KERNEL]]\n", argv[0]);
        return 2;
    }
    const int64_t m = atoll(argv[3]), n = atoll(argv[4]), k = atoll(argv[5]);
    const bsm_matrix a = make(bsm_format_from_name(argv[1]), m, k), b = make(bsm_format_from_name(argv[2]), n, k);
    bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = m, .columns = n };
    d.data = malloc((size_t)(m * n + 1) * sizeof(float));
    const bsm_context_options options = { .struct_size = sizeof options, .threads = argc > 6 ? atoi(argv[6]) : 1 };
    const bsm_matmul product = { .struct_size = sizeof product, .a = &a, .b = &b, .d = &d };
    bsm_context *context;
    bsm_plan *plan;
    char text[512];
    if (bsm_context_create(&options, &context) != BSM_OK) return 1;
    for (int i = 0; argc > 7 && bsm_kernel_name(i) != NULL; i++)
        if (strcmp(argv[7], bsm_kernel_name(i)) == 0) bsm_context_force_kernel(context, i);
    if (bsm_plan_create(context, &product, &plan) != BSM_OK) {
        fprintf(stderr, "%s\n", bsm_last_error());
        return 1;
    }
    bsm_plan_describe(plan, text, sizeof text);
    double best = 1e30;
    for (double start = cpu_seconds(); cpu_seconds() - start < 1.5;) {
        const double before = cpu_seconds();
        if (bsm_multiply(context, &product) != BSM_OK) return 1;
        const double took = cpu_seconds() - before;
        if (took < best) best = took;
    }
    printf("%.2f GFLOP/s (%.3f ms): %s\n", 2e-9 * (double)m * (double)n * (double)k / best, best * 1e3, text);
    bsm_plan_destroy(plan);
    bsm_context_destroy(context);
    return 0;
}
