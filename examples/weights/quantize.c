/* A model of fp32, fp16 or bf16 numbers as MXFP4, under ModelOpt's names, with its config.json and all other files:
 *
 *     quantize model/ quantized/
 *
 * Every matrix X.weight whose rows are whole blocks is quantized, all other tensors are passed on.  No more than one
 * weight's codes are in memory. */
#include <blockscale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(void) { return fprintf(stderr, "quantize MODEL FOLDER: %s\n", bsm_last_error()), 1; }

/* The numbers of tensor `index`; false: it is passed on. */
static bool is_quantized(const bsm_checkpoint *model, int64_t index, bsm_real_matrix *numbers, char *name, size_t room)
{
    bsm_weight w = { .struct_size = sizeof w };
    bsm_tensor t = { .struct_size = sizeof t };
    if (bsm_checkpoint_weight(model, index, &w) != BSM_OK || bsm_checkpoint_tensor(model, index, &t) != BSM_OK)
        return false;
    const int real = t.type == BSM_TENSOR_F32    ? BSM_REAL_FP32
                     : t.type == BSM_TENSOR_F16  ? BSM_REAL_FP16
                     : t.type == BSM_TENSOR_BF16 ? BSM_REAL_BF16
                                                 : -1;
    if (w.convention != BSM_CONVENTION_PLAIN || real < 0 || t.rank != 2 || w.matrix.columns % 32 != 0) return false;
    if (strlen(t.name) == (size_t)w.name_length) return false; /* not called X.weight */
    snprintf(name, room, "%.*s", (int)w.name_length, w.name);
    *numbers = (bsm_real_matrix){ .struct_size = sizeof *numbers, .type = (bsm_real)real, .rows = w.matrix.rows,
                                  .columns = w.matrix.columns, .data = w.matrix.data, .row_stride = w.matrix.columns,
                                  .column_stride = 1 };
    return true;
}

static bsm_status announce(bsm_writer *writer, const bsm_checkpoint *model, int64_t index, int64_t *number,
                           bsm_matrix *codes)
{
    char name[4096];
    bsm_real_matrix numbers;
    bsm_tensor t = { .struct_size = sizeof t };
    bsm_checkpoint_tensor(model, index, &t);
    if (!is_quantized(model, index, &numbers, name, sizeof name)) return bsm_writer_add_tensor(writer, &t, number);
    const bsm_writer_weight weight = { .struct_size = sizeof weight, .name = name,
                                       .convention = BSM_CONVENTION_MODELOPT,
                                       .format = BSM_MXFP4, .rows = numbers.rows, .columns = numbers.columns };
    return bsm_writer_add_weight(writer, &weight, number, codes);
}

static bsm_status put(bsm_context *context, bsm_writer *writer, const bsm_checkpoint *model, int64_t index,
                      int64_t number, bsm_matrix *codes)
{
    const bsm_quantize_options options = { .struct_size = sizeof options, .recipe = BSM_RECIPE_MSE };
    char name[4096];
    bsm_real_matrix numbers;
    bsm_tensor t = { .struct_size = sizeof t };
    int64_t data_bytes, scale_bytes;
    bsm_checkpoint_tensor(model, index, &t);
    if (!is_quantized(model, index, &numbers, name, sizeof name))
        return bsm_writer_put(writer, number, t.data, t.bytes);
    bsm_matrix_data_bytes(codes, &data_bytes), bsm_matrix_scale_bytes(codes, &scale_bytes);
    codes->data = malloc((size_t)data_bytes + 1), codes->scales = malloc((size_t)scale_bytes + 1);
    bsm_status status = bsm_quantize(context, &numbers, &options, codes, NULL);
    if (status == BSM_OK) status = bsm_writer_put_weight(writer, number, codes, NULL);
    free(codes->data), free(codes->scales);
    return status;
}

int main(int argc, char **argv)
{
    bsm_context *context = NULL;
    bsm_checkpoint *model = NULL;
    bsm_writer *writer = NULL;
    const bsm_writer_options options = { .struct_size = sizeof options, .model = argc == 3 ? argv[1] : NULL };
    if (argc != 3 || bsm_context_create(NULL, &context) != BSM_OK
        || bsm_checkpoint_open(context, argv[1], &model) != BSM_OK
        || bsm_writer_create(context, argv[2], &options, &writer) != BSM_OK)
        return failed();
    const int64_t count = bsm_checkpoint_tensor_count(model);
    int64_t *numbers = calloc((size_t)count + 1, sizeof *numbers);
    bsm_matrix *codes = calloc((size_t)count + 1, sizeof *codes);
    bsm_status status = BSM_OK;
    for (int64_t i = 0; status == BSM_OK && i < count; i++) status = announce(writer, model, i, &numbers[i], &codes[i]);
    if (status == BSM_OK) status = bsm_writer_begin(writer);
    for (int64_t i = 0; status == BSM_OK && i < count; i++)
        status = put(context, writer, model, i, numbers[i], &codes[i]);
    if (status == BSM_OK) status = bsm_writer_finish(writer);
    if (status != BSM_OK) failed();
    bsm_writer_destroy(writer); /* removes what is not finished */
    bsm_checkpoint_close(model);
    bsm_context_destroy(context);
    free(numbers), free(codes);
    return status != BSM_OK;
}
