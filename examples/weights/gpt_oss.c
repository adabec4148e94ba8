/* y = x W^T with an expert's weight of a gpt-oss checkpoint: MXFP4 from the mapped file, nothing converted.
 *
 *     gpt_oss model/ model.layers.0.mlp.experts.down_proj 3
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
    bsm_matrix expert;
    if (argc != 4 || bsm_context_create(NULL, &context) != BSM_OK
        || bsm_checkpoint_open(context, argv[1], &checkpoint) != BSM_OK
        || bsm_checkpoint_find_weight(checkpoint, argv[2], &weight) != BSM_OK
        || bsm_weight_tile(&weight, atoi(argv[3]), 0, 0, &expert) != BSM_OK)
        return fprintf(stderr, "gpt_oss CHECKPOINT WEIGHT EXPERT: %s\n", bsm_last_error()), 1;
    float *x = malloc((size_t)expert.columns * sizeof *x), *y = malloc((size_t)expert.rows * sizeof *y);
    for (int64_t i = 0; i < expert.columns; i++) x[i] = 1;
    const bsm_matrix a = { .struct_size = sizeof a, .format = BSM_FORMAT_FP32, .rows = 1, .columns = expert.columns,
                           .data = x };
    const bsm_matrix d = { .struct_size = sizeof d, .format = BSM_FORMAT_FP32, .rows = 1, .columns = expert.rows,
                           .data = y };
    const bsm_matmul product = { .struct_size = sizeof product, .a = &a, .b = &expert, .d = &d };
    if (bsm_multiply(context, &product) != BSM_OK) return fprintf(stderr, "%s\n", bsm_last_error()), 1;
    for (int64_t i = 0; i < expert.rows && i < 8; i++) printf("%.9g\n", (double)y[i]);
    free(x), free(y);
    bsm_checkpoint_close(checkpoint);
    bsm_context_destroy(context);
}
