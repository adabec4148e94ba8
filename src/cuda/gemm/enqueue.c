/* A product on a GPU: its launches in their order. */
#include "cuda/driver/matrix.h"
#include "lowering.h"

static int64_t matrices(const struct bsmi_product *p) { return p->groups > 0 ? p->groups : p->batch; }

static const int64_t *group_tiles(const struct bsmi_cuda_run *run)
{
    if (run->product->groups == 0) return NULL;
    return (const int64_t *)bsmi_cuda_at(run, run->multiply->tables_at) + run->product->groups + 1;
}

/* Where codes are multiplied, a tile reads whole blocks of 128 rows of scales, or, if it has fewer rows, from one
 * block: the tiles of a group begin at such a multiple that none of them reaches into a second block; those of swapped
 * instances at a multiple of 32 at least, where tensor memory has the next lane.  TMA loads MN-major rows
 * from multiples of 16 bytes on. */
static int32_t row_alignment(const struct bsmi_cuda_multiply *c, const struct bsmi_product *p)
{
    enum { LINE_ROWS = 8 };
    const struct bsmi_gemm_instance *gemm = c->gemm < 0 ? NULL : &bsmi_gemm_instances[c->gemm];
    if (gemm == NULL || !bsmi_gemm_multiplies_codes(gemm)) return p->a.major == BSM_MAJOR_MN ? LINE_ROWS : 0;
    if (!bsmi_gemm_has_tensor_memory(gemm)) return BSMI_MIN(128, gemm->tile_rows);
    return bsmi_gemm_is_swapped(gemm) ? BSMI_MAX(32, gemm->tile_rows) : 128;
}

static bsm_status make_group_tables(struct bsmi_cuda_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_gemm_instance *gemm = run->multiply->gemm < 0 ? NULL : &bsmi_gemm_instances[run->multiply->gemm];
    if (p->groups == 0 || (gemm != NULL && gemm->adds_up_groups && run->multiply->direct)) return BSM_OK;
    const struct bsmi_group_tables_parameters parameters = {
        .group_rows = p->group_rows,
        .groups = p->groups,
        .m = p->m,
        .tile_rows = gemm != NULL ? gemm->tile_rows * gemm->cluster_rows : BSMI_SUMS_ROWS,
        .row_alignment = row_alignment(run->multiply, p),
        .column_tiles = gemm != NULL ? run->multiply->column_tiles : bsmi_ceil_div(p->n, BSMI_SUMS_COLUMNS),
        .group_starts = bsmi_cuda_at(run, run->multiply->tables_at),
        .group_tiles = (int64_t *)bsmi_cuda_at(run, run->multiply->tables_at) + p->groups + 1,
    };
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_GROUP_TABLES, 1, &parameters);
}

/* Of D as plain numbers, if TMA can store them. */
static bsm_status map_d(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *instance,
                        struct bsmi_gemm_parameters *g)
{
    const struct bsmi_matrix *d = &run->product->d;
    if (!run->multiply->direct || instance->d_box_rows == 0 || d->block != 0) return BSM_OK;
    const int type = d->element == BSM_FP32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                     : d->element == BSM_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                              : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    const struct bsmi_cuda_rows rows = { d->data, type, d->columns, d->rows, d->batch, d->row_bytes, d->batch_bytes };
    if (!bsmi_cuda_can_map(&rows)) return BSM_OK;
    const int swizzle = instance->d_box_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                        : instance->d_box_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                      : CU_TENSOR_MAP_SWIZZLE_32B;
    g->has_d_map = 1;
    return bsmi_cuda_map(run->queue.gpu, &rows, instance->d_box_bytes / (d->bits / 8), instance->d_box_rows, swizzle,
                         &g->d);
}

bsm_status bsmi_cuda_run_gemm(struct bsmi_cuda_run *run, int gemm, const struct bsmi_lowering *operands)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    const struct bsmi_gemm_instance *instance = &bsmi_gemm_instances[gemm];
    union bsmi_gemm_launch given;
    memset(&given, 0, sizeof given);
    given.gemm = (struct bsmi_gemm_parameters){
        .a_batch_step = p->a.batch > 1, .b_batch_step = p->b.batch > 1, .direct = c->direct, .row_tiles = c->row_tiles,
        .column_tiles = c->column_tiles, .group_tiles = group_tiles(run), .epilogue = run->epilogue,
        .row_alignment = row_alignment(c, p),
        .last_row =
            p->groups > 0 && (!bsmi_gemm_reads_prepacked(instance) || instance->adds_up_groups)
                ? 0
                : bsmi_gemm_last_row(instance, p->m),
        .band_rows = bsmi_gemm_band(instance, run->queue.gpu->gemm_clusters[gemm], p->groups > 0 ? 0 : c->row_tiles),
        .tiles = bsmi_cuda_tiles(instance, p),
    };
    bsm_status status = operands->fill(run, instance, &given);
    const int64_t tiles = given.gemm.tiles;
    if (status == BSM_OK) status = map_d(run, instance, &given.gemm);
    return status == BSM_OK ? bsmi_cuda_launch_gemm(&run->queue, gemm, c->split_k ? tiles * c->parts : tiles, &given)
                            : status;
}

static struct bsmi_fallback flags_of(const struct bsmi_cuda_run *run, const struct bsmi_cuda_operand *o, int32_t ctas)
{
    return (struct bsmi_fallback){ o->has_exponents ? bsmi_cuda_at(run, o->fallback_at) : NULL,
                                   o->has_exponents ? ctas : 0 };
}

bsm_status bsmi_cuda_run_sums(struct bsmi_cuda_run *run, bool only_fallback)
{
    const struct bsmi_product *p = run->product;
    const bool is_packed = bsmi_cuda_wants_prepacked(run->multiply);
    const struct bsmi_sums_parameters parameters = {
        .a = bsmi_cuda_matrix(&p->a),
        .b = bsmi_cuda_matrix(&p->b),
        .k = p->k,
        .a_batch_step = p->a.batch > 1,
        .b_batch_step = p->b.batch > 1,
        .only_fallback = only_fallback,
        .direct = run->multiply->direct,
        .a_fallback = flags_of(run, &run->multiply->a, run->a_flags),
        .b_fallback = is_packed ? bsmi_cuda_packed_flags(p) : flags_of(run, &run->multiply->b, run->b_flags),
        .group_tiles = group_tiles(run),
        .epilogue = run->epilogue,
        .column_groups = bsmi_cuda_column_table(run),
    };
    const int64_t row_tiles = bsmi_ceil_div(p->m, BSMI_SUMS_ROWS) + p->groups,
                  column_tiles = bsmi_ceil_div(p->n, BSMI_SUMS_COLUMNS);
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_SUMS,
                            only_fallback ? run->queue.gpu->sm_count : row_tiles * column_tiles * p->batch,
                            &parameters);
}

static bsm_status finish(struct bsmi_cuda_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_finish_parameters parameters = { run->epilogue };
    if (run->multiply->direct) return BSM_OK;
    return bsmi_cuda_launch(&run->queue, BSMI_KERNEL_FINISH, p->m * p->batch * bsmi_ceil_div(p->n, 1024), &parameters);
}

/* Where D is finished decides where S lies. */
static bsm_status check_direct(const struct bsmi_cuda_run *run)
{
    const struct bsmi_cuda_multiply *c = run->multiply;
    if (c->direct == (bsmi_cuda_finishes_directly(run->product, c->gemm) && !c->split_k)) return BSM_OK;
    return bsmi_fail(
        BSM_EINVAL,
        "amax or d->tensor_scale is NULL in one and given in the other of the plan's description and this one: on a "
        "GPU make another plan");
}

static bsm_status enqueue(struct bsmi_cuda_run *run)
{
    const struct bsmi_product *p = run->product;
    const struct bsmi_cuda_multiply *c = run->multiply;
    bsm_status status = check_direct(run);
    if (status == BSM_OK) status = bsmi_cuda_clear_amax(&run->queue, p);
    if (status != BSM_OK || p->m == 0 || p->n == 0 || matrices(p) == 0) return status;
    bsmi_cuda_fill_epilogue(c, p, run->workspace, &run->epilogue);
    status = bsmi_cuda_clear_padding(&run->queue, p);
    if (status == BSM_OK) status = make_group_tables(run);
    if (status == BSM_OK) status = bsmi_cuda_make_column_tables(run);
    if (status == BSM_OK) status = c->lowering == NULL ? bsmi_cuda_run_sums(run, false) : c->lowering->enqueue(run);
    return status == BSM_OK ? finish(run) : status;
}

static CUstream stream_of(const struct bsmi_cuda_device *device, const struct bsmi_product *p)
{
    return p->stream != NULL ? p->stream : device->stream;
}

static bsm_status run_here(const struct bsmi_cuda_device *device, const struct bsmi_cuda_multiply *c,
                           const struct bsmi_product *p, void *workspace)
{
    const struct bsmi_product read = bsmi_k_major_product(&c->k_major, p, workspace);
    struct bsmi_cuda_run run = { .queue = bsmi_cuda_queue_of(device, stream_of(device, p)), .multiply = c,
                                 .product = &read,
                                 .workspace = bsmi_k_major_behind(&c->k_major, workspace) };
    const bsm_status status = bsmi_cuda_copy_operands(&run.queue, &c->k_major, p, &read);
    return status == BSM_OK ? enqueue(&run) : status;
}

bsm_status bsmi_cuda_run(bsm_context *context, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p,
                         void *workspace)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, run_here(device, c, p, workspace));
}

static bsm_status multiply_entered(struct bsmi_cuda_device *device, const struct bsmi_cuda_multiply *c,
                                   const struct bsmi_product *p)
{
    const CUstream stream = stream_of(device, p);
    void *workspace;
    if (c->workspace_bytes == 0) return run_here(device, c, p, NULL);
    const bsm_status status = bsmi_workspace_acquire(&device->workspace, stream, c->workspace_bytes, &workspace);
    if (status != BSM_OK) return status;
    return bsmi_workspace_release(&device->workspace, stream, run_here(device, c, p, workspace));
}

bsm_status bsmi_cuda_multiply(bsm_context *context, const struct bsmi_cuda_multiply *c, const struct bsmi_product *p)
{
    struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, multiply_entered(device, c, p));
}
