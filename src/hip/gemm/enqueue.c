/* A product on a GPU of AMD: its launches in their order. */
#include "operands.h"
#include "device/matrix.h"
#include "hip/params/kernels.h"

static void *at(const struct bsmi_hip_run *run, size_t offset) { return run->workspace + offset; }
static int64_t matrices(const struct bsmi_product *p) { return p->groups > 0 ? p->groups : p->batch; }

static int32_t *exponents(const struct bsmi_hip_run *run, const struct bsmi_hip_operand *o)
{
    return run->multiply->gemm >= 0 && o->has_exponents ? at(run, o->exponents_at) : NULL;
}

static void fill_epilogue(struct bsmi_hip_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_hip_multiply *c = run->multiply;
    struct bsmi_epilogue_parameters *e = &run->epilogue;
    const bool grouped = p->groups > 0;
    *e = (struct bsmi_epilogue_parameters){
        .m = p->m, .n = p->n, .matrices = matrices(p), .grouped = grouped,
        .group_starts = grouped ? at(run, c->tables_at) : NULL,
        .sums = at(run, c->sums_at), .sums_pitch = c->sums_pitch,
        .sums_batch_pitch = grouped ? 0 : p->m * c->sums_pitch,
        .a_exponents = exponents(run, &c->a), .b_exponents = exponents(run, &c->b),
        .a_exponent_step = p->a.batch == 1 ? 0 : p->m, .b_exponent_step = p->b.batch == 1 ? 0 : p->n,
    };
    bsmi_device_fill_epilogue(p, e);
}

/* In front of the sums --------------------------------------------------------------------------------------------- */

static bsm_status clear_padding(const struct bsmi_hip_run *run)
{
    const struct bsmi_matrix *d = &run->product->d;
    const int64_t all = d->map.padded_rows * d->map.padded_columns;
    if (d->block == 0 || all == d->map.rows * d->map.columns) return BSM_OK;
    const struct bsmi_clear_padding_parameters p = { d->scales, bsmi_device_layout_of(&d->map), d->batch,
                                                     d->scale_batch_bytes };
    return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_CLEAR_PADDING, bsmi_ceil_div(all * d->batch, BSMI_HIP_THREADS),
                           &p);
}

static bsm_status make_tables(const struct bsmi_hip_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_hip_multiply *c = run->multiply;
    if (p->column_groups > 0) {
        const struct bsmi_hip_column_tables_parameters columns = { p->group_columns, p->column_groups, p->k,
                                                                   bsmi_product_column_unit(p),
                                                                   at(run, c->tables_at) };
        return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_COLUMN_TABLES, 1, &columns);
    }
    if (p->groups == 0) return BSM_OK;
    int64_t *starts = at(run, c->tables_at);
    const struct bsmi_hip_group_tables_parameters rows = {
        .group_rows = p->group_rows,
        .groups = p->groups,
        .m = p->m,
        .tile_rows = c->gemm < 0 ? BSMI_HIP_SUMS_ROWS : bsmi_hip_instances[c->gemm].rows,
        .column_tiles = c->column_tiles,
        .group_starts = starts,
        .group_tiles = starts + p->groups + 1,
    };
    return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_GROUP_TABLES, 1, &rows);
}

/* S ---------------------------------------------------------------------------------------------------------------- */

/* Without matrix instructions: all of S, or the fallback rows and columns. */
static bsm_status run_sums(const struct bsmi_hip_run *run, bool only_fallback)
{
    const struct bsmi_product *p = run->product;
    const int64_t row_tiles = bsmi_ceil_div(p->m, BSMI_HIP_SUMS_ROWS) + p->groups,
                  tiles = row_tiles * bsmi_ceil_div(p->n, BSMI_HIP_SUMS_COLUMNS) * p->batch;
    const struct bsmi_hip_sums_parameters sums = {
        .a = bsmi_device_matrix_of(&p->a),
        .b = bsmi_device_matrix_of(&p->b),
        .k = p->k,
        .a_batch_step = p->a.batch > 1,
        .b_batch_step = p->b.batch > 1,
        .only_fallback = only_fallback,
        .tiles = tiles,
        .column_groups = p->column_groups > 0 ? at(run, run->multiply->tables_at) : NULL,
        .epilogue = run->epilogue,
    };
    return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_SUMS, tiles, &sums);
}

static bsm_status run_gemm(const struct bsmi_hip_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_hip_multiply *c = run->multiply;
    const struct bsmi_hip_instance *instance = &bsmi_hip_instances[c->gemm];
    const int64_t tiles = bsmi_hip_tiles(instance, p);
    int64_t *starts = p->groups > 0 ? at(run, c->tables_at) : NULL;
    struct bsmi_hip_gemm_parameters g = {
        .m = p->m, .n = p->n, .k = c->k, .row_tiles = c->row_tiles, .column_tiles = c->column_tiles, .tiles = tiles,
        .matrices = (int32_t)matrices(p), .band_rows = 8, .group_starts = starts,
        .group_tiles = starts == NULL ? NULL : starts + p->groups + 1,
        .finish = { .d = (unsigned char *)run->epilogue.sums,
                    .d_row_bytes = c->sums_pitch * (int64_t)sizeof(float),
                    .d_batch_bytes = run->epilogue.sums_batch_pitch * (int64_t)sizeof(float),
                    .d_element = BSM_FP32 },
    };
    if (c->direct) bsmi_hip_fill_direct(run, &g.finish);
    const bsm_status status = bsmi_hip_fill_operands(run, &g);
    return status == BSM_OK ? bsmi_hip_launch_gemm(&run->queue, c->gemm, c->pair, &g, tiles) : status;
}

static bsm_status make_sums(const struct bsmi_hip_run *run)
{
    const struct bsmi_hip_multiply *c = run->multiply;
    if (c->gemm < 0) return run_sums(run, false);
    bsm_status status = bsmi_hip_make_operands(run);
    if (status == BSM_OK) status = run_gemm(run);
    if (status != BSM_OK || (!c->a.has_exponents && !c->b.has_exponents)) return status;
    return run_sums(run, true);
}

/* D ---------------------------------------------------------------------------------------------------------------- */

static bsm_status finish(const struct bsmi_hip_run *run)
{
    const struct bsmi_matrix *d = &run->product->d;
    const struct bsmi_hip_finish_parameters parameters = { run->epilogue };
    if (run->multiply->direct) return BSM_OK;
    const int64_t units = bsmi_ceil_div(d->columns, d->block == 0 ? 1 : d->block) * d->rows * d->batch;
    return bsmi_hip_launch(&run->queue, BSMI_HIP_KERNEL_FINISH, bsmi_ceil_div(units, BSMI_HIP_THREADS), &parameters);
}

static bsm_status enqueue(struct bsmi_hip_run *run)
{
    const struct bsmi_product *p = run->product;
    bsm_status status = bsmi_hip_check_direct(run);
    if (status == BSM_OK && p->amax != NULL) status = bsmi_hip_fill_word(&run->queue, p->amax, 0, "clearing amax");
    if (status != BSM_OK || p->m == 0 || p->n == 0 || matrices(p) == 0) return status;
    fill_epilogue(run);
    status = clear_padding(run);
    if (status == BSM_OK) status = make_tables(run);
    if (status == BSM_OK) status = bsmi_hip_make_factors(run);
    if (status == BSM_OK) status = make_sums(run);
    return status == BSM_OK ? finish(run) : status;
}

static hipStream_t stream_of(const struct bsmi_hip_device *device, const struct bsmi_product *p)
{
    return p->stream != NULL ? p->stream : device->stream;
}

static bsm_status run_here(const struct bsmi_hip_device *device, const struct bsmi_hip_multiply *c,
                           const struct bsmi_product *p, void *workspace)
{
    const struct bsmi_product read = bsmi_k_major_product(&c->k_major, p, workspace);
    struct bsmi_hip_run run = { .queue = { device->gpu, stream_of(device, p) }, .multiply = c, .product = &read,
                                .workspace = bsmi_k_major_behind(&c->k_major, workspace) };
    const bsm_status status = bsmi_hip_copy_operands(&run.queue, &c->k_major, p, &read);
    return status == BSM_OK ? enqueue(&run) : status;
}

bsm_status bsmi_hip_run(bsm_context *context, const struct bsmi_hip_multiply *c, const struct bsmi_product *p,
                        void *workspace)
{
    const struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    int before;
    const bsm_status status = bsmi_hip_enter(device->gpu, &before);
    return status != BSM_OK ? status : bsmi_hip_leave(device->gpu, before, run_here(device, c, p, workspace));
}

static bsm_status multiply_entered(struct bsmi_hip_device *device, const struct bsmi_hip_multiply *c,
                                   const struct bsmi_product *p)
{
    const hipStream_t stream = stream_of(device, p);
    void *workspace;
    if (c->workspace_bytes == 0) return run_here(device, c, p, NULL);
    const bsm_status status = bsmi_workspace_acquire(&device->workspace, stream, c->workspace_bytes, &workspace);
    if (status != BSM_OK) return status;
    return bsmi_workspace_release(&device->workspace, stream, run_here(device, c, p, workspace));
}

bsm_status bsmi_hip_multiply(bsm_context *context, const struct bsmi_hip_multiply *c, const struct bsmi_product *p)
{
    struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    int before;
    const bsm_status status = bsmi_hip_enter(device->gpu, &before);
    return status != BSM_OK ? status : bsmi_hip_leave(device->gpu, before, multiply_entered(device, c, p));
}
