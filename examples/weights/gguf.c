/* y = x W^T with a weight of a GGUF file, type MXFP4 or NVFP4: blocks as ggml has them, from the mapped file.
 *
 *     gguf model.gguf blk.0.ffn_down
 *
 * prints the first numbers of y for x = 1, 1, 1 ... */
#include <blockscale.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    bsm_context *context = NULL;
    bsm_checkpoint *checkpoint = NULL;
    bsm_weight weight = { .struct_size = sizeof weight };
    if (argc != 3 || bsm_context_create(NULL, &context) != BSM_OK
        || bsm_checkpoint_open(context, argv[1], &checkpoint) != BSM_OK
        || bsm_checkpoint_find_weight(checkpoint, argv[2], &weight) != BSM_OK)
        return fprintf(stderr, "gguf FILE WEIGHT: %s\n", bsm_last_error()), 1;
    const bsm_matrix *w = &weight.matrix;
    float *x = malloc((size_t)w->columns * sizeof *x), *y = malloc((size_t)w->rows * sizeof *y);
    for (int64_t i = 0; i < w->columns; i++) x[i] = 1;
    const bsm_matrix a = { .struct_size = sizeof a, .format = BSM_FORMAT_FP32, .rows = 1, .columns = w->columns,
                           .data = x };
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = 1, .columns = w->rows,
                           .data = y };
    const bsm_matmul product = { .struct_size = sizeof product, .a = &a, .b = w, .d = &d };
    if (bsm_multiply(context, &product) != BSM_OK) return fprintf(stderr, "%s\n", bsm_last_error()), 1;
    for (int64_t i = 0; i < w->rows && i < 8; i++) printf("%.9g\n", (double)y[i]);
    free(x), free(y);
    bsm_checkpoint_close(checkpoint);
    bsm_context_destroy(context);
}
