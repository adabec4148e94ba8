/* The matrices of the demo: made up, or from .npy files. */
#include "demo.h"
#include "cli/matrices/sample_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void demo_make_activations(const struct cli *cli, int64_t rows, int64_t columns, struct demo_matrix *matrix)
{
    *matrix = (struct demo_matrix) { .about = "activations: heavy tail, outlier channels", .rows = rows,
                                     .columns = columns, .file_rows = rows,
                                     .data = cli_memory(cli, rows, columns * (int64_t)sizeof(float)) };
    sample_activations(cli->seed, rows, columns, matrix->data);
}

void demo_make_weights(const struct cli *cli, int64_t rows, int64_t columns, struct demo_matrix *matrix)
{
    *matrix = (struct demo_matrix) { .about = "weights: Gaussian", .rows = rows, .columns = columns, .file_rows = rows,
                                     .data = cli_memory(cli, rows, columns * (int64_t)sizeof(float)) };
    sample_weights(cli->seed, rows, columns, matrix->data);
}

void demo_free(struct demo_matrix *matrix)
{
    free(matrix->data);
    matrix->data = NULL;
}

/* The element, whichever type and order the file has. */
static double element(const bsm_npy *array, int64_t row, int64_t column)
{
    const int64_t index = array->fortran_order ? column * array->shape[0] + row : row * array->shape[1] + column;
    switch (array->type) {
    case BSM_NPY_FP32: return (double)((const float *)array->data)[index];
    case BSM_NPY_FP64: return ((const double *)array->data)[index];
    case BSM_NPY_FP16: return (double)bsm_element_decode(BSM_FP16, ((const uint16_t *)array->data)[index]);
    default: return (double)bsm_element_decode(BSM_BF16, ((const uint16_t *)array->data)[index]);
    }
}

static int check(const struct cli *cli, const bsm_npy *array, const char *path, const char *name)
{
    const bool real = array->type == BSM_NPY_FP32 || array->type == BSM_NPY_FP64 || array->type == BSM_NPY_FP16
                      || array->type == BSM_NPY_WORDS;
    if (!real)
        return cli_bad_input(cli, "%s %s: its type is %s; fp32, fp64, fp16 or bf16 is wanted", name, path,
                             array->descr);
    if (array->rank != 2)
        return cli_bad_input(cli, "%s %s: it has %d dimensions; a matrix with 2 is wanted", name, path, array->rank);
    if (array->shape[0] < 1 || array->shape[1] < 1)
        return cli_bad_input(cli, "%s %s: it is %lld x %lld; at least 1 x 1 is wanted", name, path,
                             (long long)array->shape[0], (long long)array->shape[1]);
    return CLI_DONE;
}

static int copy(const struct cli *cli, const bsm_npy *array, const char *path, const char *name,
                struct demo_matrix *matrix)
{
    const int64_t rows = array->shape[0], columns = array->shape[1];
    *matrix = (struct demo_matrix) { .rows = rows, .columns = columns, .file_rows = rows,
                                     .data = cli_memory(cli, rows, columns * (int64_t)sizeof(float)) };
    snprintf(matrix->about, sizeof matrix->about, "%s", path);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const float value = (float)element(array, r, c);
            if (!isfinite(value))
                return cli_bad_input(
                    cli, "%s %s: element [%lld, %lld] is %g in fp32; errors of a product need finite numbers", name,
                    path, (long long)r, (long long)c, (double)value);
            matrix->data[r * columns + c] = value;
        }
    return CLI_DONE;
}

int demo_read(struct cli *cli, const char *path, const char *name, struct demo_matrix *matrix)
{
    bsm_npy array = { .struct_size = sizeof array };
    const bsm_status status = bsm_npy_read(cli->context, path, &array);
    cli_input(path);
    if (status != BSM_OK) return cli_library_failed(cli, name, status);
    int code = check(cli, &array, path, name);
    if (code == CLI_DONE) code = copy(cli, &array, path, name, matrix);
    bsm_npy_release(cli->context, &array);
    return code;
}
