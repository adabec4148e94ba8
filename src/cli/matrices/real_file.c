/* Matrices of real numbers from .npy files. */
#include "matrices.h"
#include "sample_data.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const type_names[] = { "auto", "fp32", "fp16", "bf16", "fp64", NULL };
static const char *type_name(int value) { return value >= 0 && value <= CLI_TYPE_FP64 ? type_names[value] : NULL; }
static int type_from_name(const char *name) { return cli_name_index(type_names, name); }
const struct cli_choices cli_types = { type_name, type_from_name, CLI_TYPE_AUTO, CLI_TYPE_FP64 + 1 };

/* Types ------------------------------------------------------------------------------------------------------------ */

static bool type_of(bsm_npy_type stored, bsm_real *type)
{
    switch (stored) {
    case BSM_NPY_FP32: *type = BSM_REAL_FP32; return true;
    case BSM_NPY_FP16: *type = BSM_REAL_FP16; return true;
    case BSM_NPY_FP64: *type = BSM_REAL_FP64; return true;
    case BSM_NPY_WORDS: *type = BSM_REAL_BF16; return true;     /* ml_dtypes has no other type of two bytes */
    default: return false;
    }
}

/* The type that the file's numbers have, from what it says and what the user says. */
static int settle_type(struct cli *cli, const char *path, const bsm_npy *array, int said, bsm_real *type)
{
    if (said == CLI_TYPE_BF16 && array->type == BSM_NPY_UINT16) {
        *type = BSM_REAL_BF16;
        return CLI_DONE;
    }
    if (!type_of(array->type, type))
        return cli_bad_input(cli, "%s: holds numbers of type '%s'; fp32, fp16, bf16 or fp64 is wanted%s", path,
                             array->descr,
                             array->type == BSM_NPY_UINT16 ? " (bf16 bits as uint16: say type bf16)" : "");
    if (said == CLI_TYPE_AUTO && *type == BSM_REAL_FP64)
        return cli_bad_input(
            cli, "%s: holds fp64; say type fp64 to have it rounded to fp32, or save x.astype('float32')", path);
    if (said != CLI_TYPE_AUTO && said - CLI_TYPE_FP32 != (int[]){ 0, 1, 2, 3 }[(int)*type])
        return cli_bad_input(cli, "%s: holds %s ('%s'), not %s as the options say", path, bsm_real_name((int)*type),
                             array->descr, type_names[said]);
    return CLI_DONE;
}

/* Rearranging ------------------------------------------------------------------------------------------------------ */

static void copy_number(const unsigned char *from, bool narrow, size_t bytes, unsigned char *to)
{
    if (!narrow) {
        memcpy(to, from, bytes);
        return;
    }
    double wide;
    memcpy(&wide, from, sizeof wide);
    const float rounded = (float)wide;
    memcpy(to, &rounded, sizeof rounded);
}

/* Rows in order, fp64 as fp32, in memory of our own; in tiles, so that columns of a large file do not miss the
 * cache. */
static void rearrange(const struct cli *cli, const bsm_npy *array, bool columns_first, struct cli_real *real)
{
    enum { TILE = 32 };
    const bool narrow = real->type == BSM_REAL_FP64;
    const int64_t from_bytes = (int64_t)bsm_npy_type_bytes((int)array->type);
    const int64_t to_bytes = narrow ? (int64_t)sizeof(float) : from_bytes;
    const int64_t row_step = columns_first ? 1 : real->columns, column_step = columns_first ? real->rows : 1;
    const unsigned char *from = array->data;
    unsigned char *to = real->own = cli_memory(cli, (int64_t)array->bytes / from_bytes, to_bytes);
    for (int64_t r0 = 0; r0 < real->rows; r0 += TILE)
        for (int64_t c0 = 0; c0 < real->columns; c0 += TILE)
            for (int64_t r = r0; r < r0 + TILE && r < real->rows; r++)
                for (int64_t c = c0; c < c0 + TILE && c < real->columns; c++)
                    copy_number(from + (r * row_step + c * column_step) * from_bytes, narrow, (size_t)from_bytes,
                                to + (r * real->columns + c) * to_bytes);
    if (narrow) real->type = BSM_REAL_FP32;
    real->data = real->own;
}

/* A finite fp64 number that would become an infinity is refused: its whole block would become NaN. */
static int check_range(struct cli *cli, const char *path, const bsm_npy *array)
{
    if (array->type != BSM_NPY_FP64) return CLI_DONE;
    for (size_t i = 0; i < array->bytes / sizeof(double); i++) {
        double wide;
        memcpy(&wide, (const unsigned char *)array->data + i * sizeof wide, sizeof wide);
        if (isfinite(wide) && isinf((float)wide))
            return cli_bad_input(cli, "%s: number %zu is %g, beyond the range of fp32 (%g), to which fp64 is rounded",
                                 path, i, wide, (double)FLT_MAX);
    }
    return CLI_DONE;
}

/* Random ----------------------------------------------------------------------------------------------------------- */

static int make_random(struct cli *cli, const char *path, bool transpose, uint64_t stream, struct cli_real *real)
{
    int64_t shape[2];
    const char *text = strchr(path, ':') + 1;
    for (int i = 0; i < 2; i++) {
        char *end = NULL;
        const bool digit = text[0] >= '0' && text[0] <= '9';
        shape[i] = digit ? strtoll(text, &end, 10) : 0;
        if (!digit || *end != (i == 0 ? 'x' : '\0') || shape[i] < 1 || shape[i] > INT32_MAX)
            return cli_wrong_usage(cli, "%s: random:ROWSxCOLUMNS is wanted, such as random:256x512", path);
        text = end + 1;
    }
    real->type = BSM_REAL_FP32;
    real->rows = shape[transpose ? 1 : 0], real->columns = shape[transpose ? 0 : 1];
    float *data = real->data = real->own = cli_memory(cli, shape[0] * shape[1], (int64_t)sizeof *data);
    for (int64_t i = 0; i < shape[0] * shape[1]; i++) data[i] = (float)sample_normal(cli->seed, stream, (uint64_t)i);
    return CLI_DONE;
}

/* Reading ---------------------------------------------------------------------------------------------------------- */

static int read_array(struct cli *cli, const char *path, int rank, const char *what, bsm_npy *array)
{
    const bsm_status status = bsm_npy_read(cli->context, path, array);
    cli_input(path);
    if (status != BSM_OK) return cli_library_failed(cli, NULL, status);
    if (array->rank != rank)
        return cli_bad_input(cli, "%s: has %d dimension%s; %s", path, array->rank, array->rank == 1 ? "" : "s", what);
    return CLI_DONE;
}

int cli_read_real(struct cli *cli, const char *path, int type, bool transpose, uint64_t stream, struct cli_real *real)
{
    *real = (struct cli_real){ .array = { .struct_size = sizeof(bsm_npy) } };
    if (strncmp(path, "random:", 7) == 0) return make_random(cli, path, transpose, stream, real);
    bsm_npy *array = &real->array;
    int result = read_array(cli, path, 2, "a matrix has 2", array);
    if (result == CLI_DONE) result = settle_type(cli, path, array, type, &real->type);
    if (result == CLI_DONE) result = check_range(cli, path, array);
    if (result != CLI_DONE) {
        cli_real_free(cli, real);
        return result;
    }
    real->rows = array->shape[transpose ? 1 : 0], real->columns = array->shape[transpose ? 0 : 1];
    real->data = array->data;
    const bool columns_first = array->fortran_order != transpose;
    if (!columns_first && real->type != BSM_REAL_FP64) return CLI_DONE;
    rearrange(cli, array, columns_first, real);
    bsm_npy_release(cli->context, array);
    return CLI_DONE;
}

int cli_read_vector(struct cli *cli, const char *path, int type, struct cli_real *real)
{
    *real = (struct cli_real){ .array = { .struct_size = sizeof(bsm_npy) } };
    int result = read_array(cli, path, 1, "one number after the other is wanted, in 1 dimension", &real->array);
    if (result == CLI_DONE) result = settle_type(cli, path, &real->array, type, &real->type);
    if (result == CLI_DONE) result = check_range(cli, path, &real->array);
    if (result != CLI_DONE) {
        cli_real_free(cli, real);
        return result;
    }
    real->rows = 1, real->columns = real->array.shape[0];
    real->data = real->array.data;
    if (real->type == BSM_REAL_FP64) rearrange(cli, &real->array, false, real);
    return CLI_DONE;
}

void cli_real_free(struct cli *cli, struct cli_real *real)
{
    bsm_npy_release(cli->context, &real->array);
    free(real->own);
    real->own = real->data = NULL;
}

bsm_real_matrix cli_real_view(const struct cli_real *real)
{
    return (bsm_real_matrix){ .struct_size = sizeof(bsm_real_matrix),
                              .type = real->type,
                              .rows = real->rows,
                              .columns = real->columns,
                              .data = real->data,
                              .row_stride = real->columns,
                              .column_stride = 1 };
}

bsm_matrix cli_real_matrix(const struct cli_real *real)
{
    const bsm_format format = real->type == BSM_REAL_FP32   ? BSM_FORMAT_FP32
                              : real->type == BSM_REAL_FP16 ? BSM_FORMAT_FP16
                                                            : BSM_FORMAT_BF16;
    return (bsm_matrix){ .struct_size = sizeof(bsm_matrix), .format = format, .rows = real->rows,
                         .columns = real->columns,
                         .data = real->data };
}
