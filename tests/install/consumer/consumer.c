/* A small program of a user: compiles as C99, C11 and C++17, quantizes, multiplies, and checks a sum it knows. */
#include <blockscale.h>

#include <stdio.h>
#include <stdlib.h>

/* 2 x 64 ones as MXFP4, times themselves: every element of D is 64. */
static int multiply(bsm_context *context)
{
    float ones[128], d[4] = { 0, 0, 0, 0 };
    unsigned char codes[64], scales[4];
    bsm_real_matrix source = { sizeof(bsm_real_matrix), BSM_REAL_FP32, 2, 64, NULL, 64, 1, 0, 0 };
    bsm_matrix a = { sizeof(bsm_matrix), BSM_MXFP4, BSM_PACKING_DEFAULT, 2, 64, NULL, 0, NULL, { BSM_LAYOUT_LINEAR, 0, 0, 0 }, NULL,
                     BSM_TENSOR_SCALE_MULTIPLIES, BSM_MAJOR_K, 0, 0, 0 };
    bsm_matrix result = a;
    bsm_matmul product = { sizeof(bsm_matmul), NULL, NULL, NULL, BSM_PER_TENSOR, NULL, NULL, NULL, BSM_REAL_FP32, BSM_PER_TENSOR, 0,
                           BSM_ACT_NONE, BSM_GATE_NONE, NULL, BSM_RECIPE_DEFAULT, BSM_NONFINITE_PROPAGATE, false, NULL, 0, NULL, NULL, NULL,
                           BSM_COMPUTE_EXACT, BSM_ORDER_K, NULL };
    int i;
    for (i = 0; i < 128; i++) ones[i] = 1;
    source.data = ones;
    a.data = codes;
    a.scales = scales;
    result.format = BSM_FORMAT_FP32;
    result.columns = 2;
    result.data = d;
    product.a = product.b = &a;
    product.d = &result;
    if (bsm_quantize(context, &source, NULL, &a, NULL) != BSM_OK) return 1;
    if (bsm_multiply(context, &product) != BSM_OK) return 1;
    return !(d[0] == 64 && d[1] == 64 && d[2] == 64 && d[3] == 64);
}

int main(void)
{
    bsm_context *context;
    int wrong;
    if (bsm_version() != BSM_VERSION || bsm_context_create(NULL, &context) != BSM_OK) return 2;
    wrong = multiply(context);
    if (wrong) fprintf(stderr, "%s\n", bsm_last_error());
    bsm_context_destroy(context);
    if (!wrong) printf("64\n");
    return wrong;
}
