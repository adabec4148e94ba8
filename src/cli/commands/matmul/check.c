/* How right a product is: its sums against the exact ones, and against those of the numbers before they were
 * quantized. */
#include "cli/machine/device.h"
#include "matmul.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* The exact product makes some 50 million products a second and core. */
static const double MOST_PRODUCTS_UNASKED = 0x1p26;

bool matmul_wants_check(const struct matmul_job *job)
{
    const bsm_matrix *a = job->product.a, *b = job->product.b;
    const double products = (double)a->rows * (double)b->rows * (double)a->columns;
    if (job->settings->compute != BSM_COMPUTE_EXACT) return false;
    return !job->settings->no_check && (job->settings->check || products <= MOST_PRODUCTS_UNASKED);
}

static bsm_real_matrix doubles(double *data, int64_t rows, int64_t columns)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix),
                              .type = BSM_REAL_FP64,
                              .rows = rows,
                              .columns = columns,
                              .data = data,
                              .row_stride = columns,
                              .column_stride = 1 };
}

/* What a tensor scale multiplies by. */
static double factor(const bsm_matrix *m)
{
    if (m->tensor_scale == NULL) return 1;
    return m->tensor_scale_use == BSM_TENSOR_SCALE_DIVIDES ? 1 / (double)*m->tensor_scale : (double)*m->tensor_scale;
}

/* One element of f S against the exact S; magnitude is the sum of |a||b|. */
static void compare(struct matmul_check *check, double got, double f, double exact_sum, double magnitude, double tiny)
{
    const double exact = f * exact_sum, largest = (f > 1 ? f : 1) * magnitude;
    if (isnan(exact) || isinf(exact)) {
        check->beyond += isnan(exact) ? !isnan(got) : !(got <= exact && got >= exact);
        return;
    }
    if (largest > (double)FLT_MAX / 2) return;               /* sums may leave the range of fp32 on the way */
    const double unit = 0x1p-24 * f * magnitude + tiny, error = fabs(got - exact);
    if (!(error <= check->bound * unit)) check->beyond++;
    if (error > check->worst * unit) check->worst = error / unit;
}

/* sums: f S in fp32, as the kernel gives it. */
static int compare_with_exact(struct cli *cli, struct matmul_job *job, const float *sums)
{
    const bsm_matrix *a = job->product.a, *b = job->product.b;
    const int64_t m = a->rows, n = b->rows;
    double *exact = cli_memory(cli, m * n, (int64_t)sizeof *exact),
           *magnitude = cli_memory(cli, m * n, (int64_t)sizeof *magnitude);
    const bsm_real_matrix into = doubles(exact, m, n), magnitudes = doubles(magnitude, m, n);
    const bsm_status status = bsm_matmul_exact(cli->context, a, b, &into, &magnitudes);
    /* K roundings of sums, one of f, one of f S; each rounding near zero errs by 2^-150 at most, times f. */
    const double f = factor(a) * factor(b), tiny = 0x1p-150 * (f > 1 ? f : 1);
    job->check.bound = (double)a->columns + 3;
    for (int64_t i = 0; i < m * n && status == BSM_OK; i++)
        compare(&job->check, (double)sums[i], f, exact[i], magnitude[i], tiny);
    free(exact);
    free(magnitude);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, "exact product", status);
}

/* Signal to noise of the sums, the signal being the product of the real numbers. */
static int compare_with_real(struct cli *cli, struct matmul_job *job, const float *sums)
{
    if (job->a.stored || job->b.stored) return CLI_DONE;
    const bsm_matrix a = cli_real_matrix(&job->a.real), b = cli_real_matrix(&job->b.real);
    const int64_t count = a.rows * b.rows;
    double *exact = cli_memory(cli, count, (int64_t)sizeof *exact), signal = 0, noise = 0;
    const bsm_real_matrix into = doubles(exact, a.rows, b.rows);
    const bsm_status status = bsm_matmul_exact(cli->context, &a, &b, &into, NULL);
    for (int64_t i = 0; i < count && status == BSM_OK; i++) {
        const double error = (double)sums[i] - exact[i];
        if (!isfinite(error)) continue;
        signal += exact[i] * exact[i];
        noise += error * error;
    }
    free(exact);
    job->check.has_snr = signal > 0;
    job->check.snr_db = 10 * log10(signal / noise);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, "exact product", status);
}

/* D holds f S itself: nothing is done to it, and it is fp32. */
static bool is_plain(const struct matmul_job *job)
{
    const struct matmul_settings *s = job->settings;
    const bool factor_is_1 = s->alpha >= 1 && s->alpha <= 1 && job->d.matrix.tensor_scale == NULL;
    return factor_is_1 && s->c == NULL && s->bias == NULL && s->activation == BSM_ACT_NONE && s->gate == BSM_GATE_NONE
           && s->d_format == BSM_FORMAT_FP32;
}

/* f S of the same operands, without epilogue. */
static int multiply_plainly(struct cli *cli, const struct matmul_job *job, float *sums)
{
    const bsm_matrix *a = job->product.a, *b = job->product.b;
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = a->rows, .columns = b->rows,
                           .data = sums };
    const bsm_matmul plain = { .struct_size = sizeof plain, .a = a, .b = b, .d = &d };
    struct device_product device = { .count = 0 };
    bsm_status status;
    if (job->gpu == NULL) {
        status = bsm_multiply(cli->context, &plain);
    } else {
        status = device_product_create(job->gpu, &plain, &device);
        if (status == BSM_OK) status = bsm_multiply(job->gpu, &device.call);
        if (status == BSM_OK) status = device_product_read(&device);
        device_product_free(&device);
    }
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, NULL, status);
}

int matmul_check(struct cli *cli, struct matmul_job *job)
{
    float *again = NULL;
    const float *sums = job->d.matrix.data;
    int result = CLI_DONE;
    if (!is_plain(job)) {
        again = cli_memory(cli, job->product.a->rows * job->product.b->rows, (int64_t)sizeof *again);
        result = multiply_plainly(cli, job, again);
        sums = again;
    }
    if (result == CLI_DONE) result = compare_with_exact(cli, job, sums);
    if (result == CLI_DONE) result = compare_with_real(cli, job, sums);
    job->check.done = result == CLI_DONE;
    free(again);
    return result;
}
