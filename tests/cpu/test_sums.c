/* S, bit for bit against the naive sum in the kernel's order: every pair of formats, every kernel. */
#include "naive_orders.h"
#include "rare_pairs.h"

#include <math.h>

static bool same_float(float x, float y) { return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0; }

static const int64_t k_grid[] = { 0, 1, 15, 16, 17, 31, 32, 33, 50, 64, 96, 255, 256, 257, 385, 600 };

struct product { struct operand a, b, d; bsm_matmul call; };

static void product_make(struct test *t, struct product *p, bsm_format fa, bsm_format fb, int64_t m, int64_t n,
                         int64_t k, bool small)
{
    const int poison = (int)rnd(t) & 255;
    p->a = operand_make(&(struct shape){ .format = fa, .rows = m, .columns = k }, poison);
    p->b = operand_make(&(struct shape){ .format = fb, .rows = n, .columns = k }, poison ^ 255);
    p->d = operand_make(&(struct shape){ .format = BSM_FORMAT_FP32, .rows = m, .columns = n }, 0xff);
    operand_fill(t, &p->a, small);
    operand_fill(t, &p->b, small);
    p->call = (bsm_matmul){ .struct_size = sizeof p->call, .a = &p->a.m, .b = &p->b.m, .d = &p->d.m };
}

static void product_free(struct product *p) { operand_free(&p->a), operand_free(&p->b), operand_free(&p->d); }

static void check(struct test *t, bsm_context *context, struct product *p, const char *kernel)
{
    const bsm_matrix *a = &p->a.m, *b = &p->b.m;
    const enum unit_order order = unit_order_of(context, &p->call);
    memset(p->d.m.data, 0xff, p->d.data_bytes);
    if (bsm_multiply(context, &p->call) != BSM_OK) {
        FAIL(t, "%s: %s", kernel, bsm_last_error());
        return;
    }
    const float *d = p->d.m.data;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < b->rows; j++) {
            const float expected = naive_sum_in(order, a, 0, i, b, 0, j), found = d[i * b->rows + j];
            if (same_float(expected, found)) continue;
            FAIL(t, "%s x %s, %s, K=%" PRId64 ": D[%" PRId64 ", %" PRId64 "] = %a, not %a",
                 bsm_format_get((int)a->format)->name, bsm_format_get((int)b->format)->name, kernel, a->columns, i, j,
                 (double)found, (double)expected);
            return;
        }
}

/* Every kernel that this machine runs for the pair. */
static void check_kernels(struct test *t, struct product *p)
{
    bsm_context *context;
    CHECK_OR_RETURN(t, bsm_context_create(NULL, &context) == BSM_OK);
    int served = 0;
    for (int i = 0; bsm_kernel_name(i) != NULL; i++) {
        if (!bsm_kernel_serves(context, i, p->a.m.format, p->b.m.format)) continue;
        CHECK(t, bsm_context_force_kernel(context, i) == BSM_OK);
        check(t, context, p, bsm_kernel_name(i));
        served++;
    }
    CHECK(t, served > 0);
    bsm_context_destroy(context);
}

static void every_pair_of_formats(struct test *t)
{
    for (int fa = 1; fa < BSM_FORMAT_COUNT; fa++)
        for (int fb = 1; fb < BSM_FORMAT_COUNT; fb++) {
            struct product p;
            if (pair_is_rare(fa, fb)) continue;
            product_make(t, &p, (bsm_format)fa, (bsm_format)fb, 7, 19, k_grid[rnd_below(t, 16)], false);
            check_kernels(t, &p);
            product_free(&p);
        }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = { TEST(every_pair_of_formats) };
    return TEST_MAIN(argc, argv, cases);
}
