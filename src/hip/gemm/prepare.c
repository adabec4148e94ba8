/* How a product goes on a GPU of AMD, and what lies where in the workspace. */
#include "operands.h"
#include "hip/params/kernels.h"

bool bsmi_hip_fits(const struct bsmi_product *p)
{
    const int64_t most = ((int64_t)1 << 31) - 512, most_k = 1 << 18;
    return p->k > 0 && p->k < most_k && p->m < most && p->n < most && p->batch < most && p->b.batch < most;
}

/* A grid has less than 2^32 threads, of which a workgroup has 256: of the kernel, and of those that look for NaN
 * scales, a wave for 32 rows. */
bool bsmi_hip_can_launch(const struct bsmi_hip_instance *i, const struct bsmi_product *p)
{
    const int64_t most = (int64_t)1 << 24;
    const int64_t rows = bsmi_ceil_div(p->m, i->rows), columns = bsmi_ceil_div(p->n, i->columns);
    int64_t tiles, a_rows, b_rows;
    return !bsmi_mul_overflows(p->groups > 0 ? rows + 2 * p->groups : rows * p->batch, columns, &tiles) && tiles < most
           && !bsmi_mul_overflows(p->m, p->a.batch, &a_rows) && !bsmi_mul_overflows(p->n, p->b.batch, &b_rows)
           && BSMI_MAX(a_rows, b_rows) / 128 < most;
}

int64_t bsmi_hip_tiles(const struct bsmi_hip_instance *i, const struct bsmi_product *p)
{
    const int64_t rows = bsmi_ceil_div(p->m, i->rows), columns = bsmi_ceil_div(p->n, i->columns);
    return (p->groups > 0 ? rows + 2 * p->groups : rows * p->batch) * columns;
}

static bool place_all(const struct bsmi_product *p, struct bsmi_hip_multiply *c)
{
    int64_t end = 0, rows;
    if (c->gemm >= 0 && (bsmi_hip_place_operand(&p->a, &c->a, &end) || bsmi_hip_place_operand(&p->b, &c->b, &end)))
        return true;
    if (p->groups > 0 && bsmi_hip_place(p->groups + 1, 2 * (int64_t)sizeof(int64_t), &c->tables_at, &end)) return true;
    if (p->column_groups > 0
        && bsmi_hip_place(p->column_groups, (int64_t)sizeof(struct bsmi_hip_column_group), &c->tables_at, &end))
        return true;
    if (c->direct && bsmi_hip_place(bsmi_hip_factors(p), (int64_t)sizeof(float), &c->factors_at, &end)) return true;
    c->sums_pitch = bsmi_round_up(p->n, 32);
    if (c->direct) rows = 0;
    else if (bsmi_mul_overflows(p->m, p->batch, &rows) || bsmi_mul_overflows(rows, c->sums_pitch, &rows))
        return true;
    if (bsmi_hip_place(rows, (int64_t)sizeof(float), &c->sums_at, &end)) return true;
    c->workspace_bytes = (size_t)end;
    return false;
}

bsm_status bsmi_hip_prepare(const struct bsmi_product *p, int gemm, struct bsmi_hip_multiply *c)
{
    bsm_status status = BSM_OK;
    *c = (struct bsmi_hip_multiply){ .gemm = gemm };
    if (gemm >= 0) {
        const struct bsmi_hip_instance *i = &bsmi_hip_instances[gemm];
        (void)bsmi_hip_serves(i, p->a.format, p->b.format, &c->pair);
        c->row_tiles = bsmi_ceil_div(p->m, i->rows), c->column_tiles = bsmi_ceil_div(p->n, i->columns);
        status = bsmi_hip_describe_operands(i, p, c);
        c->direct = bsmi_hip_finishes_directly(p, c);
    }
    if (status == BSM_OK && place_all(p, c))
        return bsmi_fail(BSM_EOVERFLOW,
                         "a product of %lld x %lld x %lld: its workspace has more bytes than an int64_t counts",
                         (long long)p->m, (long long)p->n, (long long)p->k);
    return status;
}
