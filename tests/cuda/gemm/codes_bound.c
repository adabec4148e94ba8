#include "codes_bound.h"

#include <math.h>
#include <stdlib.h>

/* A sum of products of one step is cut to 25 bits behind the largest of them and of the sum before, and rounded to 24
 * bits, both toward zero: cudasim/docs/tensor-core.md. */
static double bound_of(double magnitude, int64_t k)
{
    const double steps = ceil((double)k / 32);
    return magnitude * steps * (34 * ldexp(1, -25) + ldexp(1, -23)) + ldexp(1, -149);
}

void check_bound(struct test *t, const struct contexts *c, const struct operand *a, const struct operand *b,
                        const float *d, const char *what)
{
    const int64_t m = a->m.rows, n = b->m.rows;
    double *sum = malloc((size_t)(m * n) * 8), *magnitude = malloc((size_t)(m * n) * 8);
    const bsm_real_matrix s = {
        .struct_size = sizeof s, .type = BSM_REAL_FP64, .rows = m, .columns = n, .data = sum, .row_stride = n,
        .column_stride = 1
    };
    bsm_real_matrix g = s;
    g.data = magnitude;
    CHECK(t, bsm_matmul_exact(c->cpu, &a->m, &b->m, &s, &g) == BSM_OK);
    for (int64_t i = 0; i < m * n; i++)
        if (!(fabs((double)d[i] - sum[i]) <= bound_of(magnitude[i], a->m.columns))) {
            FAIL(t, "%s: element %d is %a, exactly %a: bound %a", what, (int)i, (double)d[i], sum[i],
                 bound_of(magnitude[i], a->m.columns));
            break;
        }
    free(sum), free(magnitude);
}
