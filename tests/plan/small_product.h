/* A small product that is right in every field, for tests that change one thing at a time. */
#ifndef SMALL_PRODUCT_H
#define SMALL_PRODUCT_H

#include "blockscale.h"

#include <string.h>

enum { SMALL_M = 4, SMALL_N = 6, SMALL_K = 64 };

/* Everything lies in one struct, so that the same test can put things on one another.  16-bit D, batch 1, not
 * grouped. */
struct small_product {
    bsm_matrix a, b, c, d;
    bsm_matmul call;
    int64_t group_rows[3], group_columns[3];
    float alpha[64], beta, ta, tb, td, amax, bias[64];
    struct {
        _Alignas(64) uint8_t a[2 * SMALL_M * SMALL_K], a_scales[64], b[3 * SMALL_N * SMALL_K], b_scales[64];
        _Alignas(64) float c[3 * SMALL_M * SMALL_N], d[3 * SMALL_M * SMALL_N];
        uint8_t d_scales[64];
    } memory;
};

static inline void small_product_make(struct small_product *x)
{
    memset(x, 0, sizeof *x);
    const bsm_matrix empty = { .struct_size = sizeof empty };
    x->a = x->b = x->c = x->d = empty;
    x->a.format = BSM_MXFP8_E4M3, x->a.rows = SMALL_M, x->a.columns = SMALL_K, x->a.data = x->memory.a,
    x->a.scales = x->memory.a_scales;
    x->b.format = BSM_MXFP8_E5M2, x->b.rows = SMALL_N, x->b.columns = SMALL_K, x->b.data = x->memory.b,
    x->b.scales = x->memory.b_scales;
    x->c.format = BSM_FORMAT_FP32, x->c.rows = SMALL_M, x->c.columns = SMALL_N, x->c.data = x->memory.c;
    x->d.format = BSM_FORMAT_BF16, x->d.rows = SMALL_M, x->d.columns = SMALL_N, x->d.data = x->memory.d;
    for (size_t i = 0; i < sizeof x->memory.a; i++) x->memory.a[i] = (uint8_t)(0x30 + i % 11);
    for (size_t i = 0; i < sizeof x->memory.b; i++) x->memory.b[i] = (uint8_t)(0x38 + i % 7);
    memset(x->memory.a_scales, 127, sizeof x->memory.a_scales);
    memset(x->memory.b_scales, 128, sizeof x->memory.b_scales);
    for (int i = 0; i < 3 * SMALL_M * SMALL_N; i++) x->memory.c[i] = (float)i;
    memset(x->memory.d, 0xee, sizeof x->memory.d);
    memset(x->memory.d_scales, 0xee, sizeof x->memory.d_scales);
    for (int i = 0; i < 64; i++) x->alpha[i] = 1, x->bias[i] = 2;
    x->beta = x->ta = x->tb = x->td = 1;
    x->amax = -7;
    x->group_rows[0] = 3, x->group_rows[1] = 0, x->group_rows[2] = SMALL_M - 3;
    x->group_columns[0] = 0, x->group_columns[1] = 32, x->group_columns[2] = SMALL_K - 32;
    x->call = (bsm_matmul){ .struct_size = sizeof x->call, .a = &x->a, .b = &x->b, .alpha = x->alpha, .beta = &x->beta,
                            .c = &x->c,
                            .bias = x->bias, .bias_per = BSM_PER_COLUMN, .d = &x->d, .amax = &x->amax };
}

static inline void small_product_group(struct small_product *x)
{
    x->b.batch = 3;
    x->call.groups = 3, x->call.group_rows = x->group_rows;
}

/* Groups along K: the last one begins with the second block. */
static inline void small_product_group_columns(struct small_product *x)
{
    x->d.batch = 3;
    x->call.groups = 3, x->call.group_columns = x->group_columns;
}

#endif
