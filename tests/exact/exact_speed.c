/* exact_speed: products of bsm_matmul_exact per second of processor time, on one thread, for every pair of formats; the
 * best of three.  Processor time, so that other programs on the machine disturb less.
 *
 *     exact_speed [M N K]     192 x 192 x 2048 without arguments; scales within 2^+-20, elements over all finite codes
 *
 * Prints one line per pair, and the slowest last. */
#include "blockscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t state = 1;
static uint64_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 20;
}

static void stop(const char *what)
{
    fprintf(stderr, "exact_speed: %s: %s\n", what, bsm_last_error());
    exit(1);
}

static uint32_t finite_code(bsm_element element, int bits)
{
    for (;;) {
        const uint32_t code = (uint32_t)(next_random() & (((uint64_t)1 << bits) - 1));
        const float value = bsm_element_decode(element, code);
        if (value - value == 0) return code;
    }
}

static bsm_matrix make(bsm_format format, int64_t rows, int64_t columns)
{
    const bsm_format_info *info = bsm_format_get((int)format);
    const int bits = bsm_element_get((int)info->element)->bits;
    bsm_matrix m = { .struct_size = sizeof m, .format = format, .rows = rows, .columns = columns };
    int64_t bytes, scale_bytes = 0;
    if (bsm_matrix_data_bytes(&m, &bytes) != BSM_OK || bsm_matrix_scale_bytes(&m, &scale_bytes) != BSM_OK)
        stop("sizes");
    unsigned char *data = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64), *scales = malloc((size_t)scale_bytes + 1);
    if (data == NULL || scales == NULL) stop("memory");
    for (int64_t i = 0; i < bytes; i++) data[i] = (unsigned char)next_random();
    for (int64_t i = 0; i < scale_bytes; i++)
        scales[i] = (unsigned char)(info->scale == BSM_E8M0 ? 107 + next_random() % 41 : next_random() % 127);
    m.data = data;
    if (info->scale != BSM_UNSCALED) m.scales = scales;
    else free(scales);
    if (bits >= 8)                                            /* 4- and 6-bit elements have no NaN and no infinity */
        for (int64_t i = 0; i < rows * columns; i++) {
            const uint32_t code = finite_code(info->element, bits);
            if (bits == 8) data[i] = (unsigned char)code;
            else if (bits == 16) ((uint16_t *)(void *)data)[i] = (uint16_t)code;
            else ((uint32_t *)(void *)data)[i] = code;
        }
    return m;
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 4) {
        fprintf(stderr, "usage: exact_speed [M N K]\n");
        return 2;
    }
    const int64_t m = argc == 4 ? atoll(argv[1]) : 192, n = argc == 4 ? atoll(argv[2]) : 192,
                  k = argc == 4 ? atoll(argv[3]) : 2048;
    if (m < 1 || n < 1 || k < 1) {
        fprintf(stderr, "exact_speed: M, N and K are at least 1\n");
        return 2;
    }
    const bsm_context_options options = { .struct_size = sizeof options, .threads = 1 };
    bsm_context *context;
    if (bsm_context_create(&options, &context) != BSM_OK) stop("context");
    double *data = malloc((size_t)(m * n) * sizeof *data);
    if (data == NULL) stop("memory");
    const bsm_real_matrix sum = { .struct_size = sizeof sum, .type = BSM_REAL_FP64, .rows = m, .columns = n,
                                  .data = data,
                                  .row_stride = n, .column_stride = 1 };
    double slowest = 0;
    const char *slowest_a = "", *slowest_b = "";
    for (int a = 1; a < BSM_FORMAT_COUNT; a++)
        for (int b = 1; b < BSM_FORMAT_COUNT; b++) {
            const bsm_matrix ma = make((bsm_format)a, m, k), mb = make((bsm_format)b, n, k);
            double best = 0;
            for (int repeat = 0; repeat < 3; repeat++) {
                const double start = seconds();
                if (bsm_matmul_exact(context, &ma, &mb, &sum, NULL) != BSM_OK) stop("product");
                const double rate = (double)m * (double)n * (double)k / (seconds() - start) / 1e6;
                if (rate > best) best = rate;
            }
            printf("%-14s x %-14s %8.0f million products per second\n", bsm_format_get(a)->name,
                   bsm_format_get(b)->name, best);
            fflush(stdout);
            if (slowest == 0 || best < slowest) {
                slowest = best;
                slowest_a = bsm_format_get(a)->name, slowest_b = bsm_format_get(b)->name;
            }
            free(ma.data), free(ma.scales), free(mb.data), free(mb.scales);
        }
    printf("slowest: %s x %s, %.0f million products per second (M=%lld N=%lld K=%lld, one thread)\n", slowest_a,
           slowest_b, slowest, (long long)m, (long long)n, (long long)k);
    free(data);
    bsm_context_destroy(context);
    return 0;
}
