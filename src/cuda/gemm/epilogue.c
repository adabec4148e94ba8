/* What follows S, as the kernels that finish D are given it; and what D needs before. */
#include "cuda/driver/matrix.h"
#include "lowering.h"

static int32_t *exponents(const struct bsmi_cuda_operand *o, unsigned char *workspace)
{
    return o->has_exponents ? (int32_t *)(void *)(workspace + o->exponents_at) : NULL;
}

/* The GEMM kernel finds the exponents of B's rows, and nobody else learns them: prepacked weights begin with theirs. */
static bool finds_exponents(const struct bsmi_cuda_multiply *c, const struct bsmi_product *p)
{
    return p->b.scale == BSM_E8M0 && c->b.any_scales && !bsmi_cuda_wants_prepacked(c);
}

void bsmi_cuda_fill_epilogue(const struct bsmi_cuda_multiply *c, const struct bsmi_product *p, unsigned char *workspace,
                             struct bsmi_epilogue_parameters *e)
{
    const bool grouped = p->groups > 0;
    e->m = p->m, e->n = p->n, e->matrices = grouped ? p->groups : p->batch, e->grouped = grouped;
    e->group_starts = grouped ? (const int64_t *)(void *)(workspace + c->tables_at) : NULL;
    if (!c->direct) {
        e->sums = (float *)(void *)(workspace + c->sums_at), e->sums_pitch = c->sums_pitch;
        e->sums_batch_pitch = grouped ? 0 : p->m * c->sums_pitch;
        e->sums_are_scaled = finds_exponents(c, p);
        if (c->split_k) e->sums_parts = c->parts, e->sums_part_pitch = p->m * p->batch * c->sums_pitch;
    }
    e->a_exponents = exponents(&c->a, workspace);
    e->b_exponents = bsmi_cuda_wants_prepacked(c) ? p->b_panels : exponents(&c->b, workspace);
    e->a_exponent_step = p->a.batch == 1 && p->column_groups == 0 ? 0 : p->m;
    e->b_exponent_step = p->b.batch == 1 && p->column_groups == 0 ? 0 : p->n;
    bsmi_device_fill_epilogue(p, e);
}

bsm_status bsmi_cuda_clear_amax(const struct bsmi_cuda_queue *queue, const struct bsmi_product *p)
{
    if (p->amax == NULL) return BSM_OK;
    return BSMI_DRIVER_CALL(queue->gpu->driver, cuMemsetD32Async,
                            ((CUdeviceptr)(uintptr_t)p->amax, 0, 1, queue->stream), "clearing amax at %p",
                            (void *)p->amax);
}

bsm_status bsmi_cuda_clear_padding(struct bsmi_cuda_queue *queue, const struct bsmi_product *product)
{
    const struct bsmi_matrix *d = &product->d;
    if (d->block == 0 || d->map.padded_rows * d->map.padded_columns == d->map.rows * d->map.columns) return BSM_OK;
    const struct bsmi_clear_padding_parameters p = { d->scales, bsmi_cuda_layout(&d->map), d->batch,
                                                     d->scale_batch_bytes };
    return bsmi_cuda_launch(queue, BSMI_KERNEL_CLEAR_PADDING,
                            bsmi_ceil_div(d->map.padded_rows * d->map.padded_columns * d->batch, BSMI_CONVERT_THREADS),
                            &p);
}
