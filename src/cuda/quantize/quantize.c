/* Quantizing, dequantizing and converting scale layouts on a GPU: their launches. */
#include "cuda/driver/launch.h"
#include "cuda/driver/matrix.h"
#include "cuda/params/policies.h"
#include "quantize_device.h"

/* Columns of a row that one CTA does at a time: a guess at how much work a grid is for; kernels stride over what there
 * is. */
enum { PIECE_COLUMNS = 1024 };

static int64_t pieces(int64_t rows, int64_t columns, int64_t batch)
{
    return rows * batch * bsmi_ceil_div(columns, PIECE_COLUMNS);
}

/* CTAs of bsmi_quantize.  As many as have a place at one time are done at once, each with rows from all over the
 * matrix.  More of them take rows in the order of memory and leave no SM idle at the end, which is up to 12
 * % faster, where each has so many pieces that its beginning does not count (docs/design/memory-bound.md). */
static int64_t quantizing_ctas(const struct bsmi_cuda_gpu *gpu, const struct bsmi_matrix *destination, int64_t work)
{
    enum { AT_ONE_TIME = 6, MOST = 32 };
    const int64_t sm_count = gpu->sm_count, pieces_each = destination->block == 16 ? 96 : 18;
    return BSMI_MIN(work,
                    BSMI_MIN(sm_count * MOST, BSMI_MAX(sm_count * AT_ONE_TIME, work / pieces_each)));
}

static struct bsmi_cuda_queue queue_of(const bsm_context *context)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    return bsmi_cuda_queue_of(device, device->stream);
}

/* Where the tensor scale will lie. */
static bsm_status find_amax(struct bsmi_cuda_queue *queue, const struct bsmi_quantize_request *r)
{
    uint32_t *word = (uint32_t *)(void *)r->destination.tensor_scale;
    const struct bsmi_amax_parameters amax = { bsmi_cuda_reals(&r->source), word };
    const bsm_status status = BSMI_DRIVER_CALL(queue->gpu->driver, cuMemsetD32Async,
                                               ((CUdeviceptr)(uintptr_t)word, BSMI_NO_AMAX, 1, queue->stream),
                                               "clearing the tensor scale at %p", (void *)word);
    if (status != BSM_OK) return status;
    return bsmi_cuda_launch(queue, BSMI_KERNEL_AMAX, pieces(r->source.rows, r->source.columns, r->source.batch), &amax);
}

static bsm_status clear_padding(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *m)
{
    const int64_t all = m->map.padded_rows * m->map.padded_columns;
    if (m->block == 0 || all == m->map.rows * m->map.columns) return BSM_OK;
    const struct bsmi_clear_padding_parameters p = { m->scales, bsmi_cuda_layout(&m->map), m->batch,
                                                     m->scale_batch_bytes };
    return bsmi_cuda_launch(queue, BSMI_KERNEL_CLEAR_PADDING, bsmi_ceil_div(all * m->batch, BSMI_CONVERT_THREADS), &p);
}

/* Whether a request is for the kernel that has every policy. */
static bool has_policies(const struct bsmi_quantize_request *r)
{
    return r->clamp.low > 0 || r->clamp.high > 0 || r->smallest_scale > 0 || r->block_rows > 1
           || r->recipe == BSM_RECIPE_FOUR_OVER_SIX;
}

static bsm_status launch_policies(struct bsmi_cuda_queue *queue, const struct bsmi_quantize_request *r,
                                  struct bsmi_quantize_parameters all)
{
    const struct bsmi_policies_parameters p = { all, r->clamp, r->smallest_scale, r->block_rows };
    const int64_t squares = r->destination.batch * bsmi_ceil_div(r->destination.rows, r->block_rows) *
                            bsmi_ceil_div(r->destination.columns, r->destination.block);
    const int64_t ctas = bsmi_ceil_div(squares, BSMI_POLICIES_THREADS);
    return bsmi_cuda_launch(queue, BSMI_KERNEL_POLICIES, r->computes_tensor_scale ? BSMI_MAX(1, ctas) : ctas, &p);
}

static struct bsmi_quantize_parameters parameters_of(const struct bsmi_quantize_request *r)
{
    return (struct bsmi_quantize_parameters){
        .source = bsmi_cuda_reals(&r->source),
        .destination = bsmi_cuda_matrix(&r->destination),
        .recipe = bsmi_cuda_recipe(r->recipe, r->destination.scale),
        .rounding = (int32_t)r->rounding,
        .nonfinite = (int32_t)r->nonfinite,
        .no_saturate = r->no_saturate,
        .seed = r->seed,
        .computed = r->computes_tensor_scale ? (uint32_t *)(void *)r->destination.tensor_scale : NULL,
        .largest = r->largest,
        .backward = r->computes_tensor_scale,
    };
}

static bsm_status quantize_entered(struct bsmi_cuda_queue *queue, const struct bsmi_quantize_request *r)
{
    const struct bsmi_quantize_parameters p = parameters_of(r);
    const int64_t work =
        quantizing_ctas(queue->gpu, &r->destination, pieces(r->source.rows, r->source.columns, r->source.batch));
    bsm_status status = r->computes_tensor_scale ? find_amax(queue, r) : BSM_OK;
    if (status == BSM_OK && has_policies(r)) status = launch_policies(queue, r, p);
    else if (status == BSM_OK)
        status = bsmi_cuda_launch(queue, BSMI_KERNEL_QUANTIZE, r->computes_tensor_scale ? BSMI_MAX(1, work) : work, &p);
    return status == BSM_OK ? clear_padding(queue, &r->destination) : status;
}

bsm_status bsmi_cuda_quantize(bsm_context *context, const struct bsmi_quantize_request *request)
{
    struct bsmi_cuda_queue queue = queue_of(context);
    const bsm_status status = bsmi_cuda_enter(queue.gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(queue.gpu, quantize_entered(&queue, request));
}

/* Whether bsmi_quantize_row_and_column writes this destination: both_parameters.h. */
static bool is_for_both(const struct bsmi_quantize_request *r)
{
    const struct bsmi_matrix *m = &r->destination;
    const bool nibbles = m->format == BSM_MXFP4 || m->format == BSM_NVFP4;
    if (!nibbles && m->format != BSM_MXFP8_E4M3 && m->format != BSM_MXFP8_E5M2) return false;
    if (nibbles && m->packing != BSM_PACKING_LOW_FIRST && m->packing != BSM_PACKING_HIGH_FIRST) return false;
    if (r->rounding != BSM_ROUND_NEAREST_EVEN || has_policies(r)) return false;
    if (m->map.layout.kind == BSM_LAYOUT_TILES || m->map.bytes > INT32_MAX || m->row_bytes > INT32_MAX) return false;
    return (uintptr_t)m->data % 16 == 0 && m->row_bytes % 16 == 0;
}

/* The number of its tiles; 0: it does not serve these. */
static int64_t tiles_of_both(const struct bsmi_quantize_request *rows, const struct bsmi_quantize_request *columns)
{
    const struct bsmi_reals *s = &rows->source;
    const int64_t down = s->rows / BSMI_ROW_AND_COLUMN_ROWS, across = s->columns / BSMI_ROW_AND_COLUMN_COLUMNS;
    if (s->type != BSM_REAL_BF16 || s->batch != 1 || s->column_stride != 1 || (uintptr_t)s->data % 16 != 0
        || s->row_stride % 8 != 0)
        return 0;
    if (s->rows % BSMI_ROW_AND_COLUMN_ROWS != 0 || s->columns % BSMI_ROW_AND_COLUMN_COLUMNS != 0 || s->rows > INT32_MAX
        || s->columns > INT32_MAX)
        return 0;
    if (rows->computes_tensor_scale
        && (rows->destination.format != columns->destination.format
            || rows->destination.tensor_scale_use != columns->destination.tensor_scale_use))
        return 0;
    return is_for_both(rows) && is_for_both(columns) && down * across <= INT32_MAX ? down * across : 0;
}

/* Whether bsmi_quantize_row_and_column_powers writes this destination, or bsmi_quantize_row_and_column_quotients,
 * besides. */
static bool is_for_powers(const struct bsmi_quantize_request *r)
{
    const struct bsmi_matrix *m = &r->destination;
    return (m->format == BSM_MXFP8_E4M3 || m->format == BSM_MXFP4) && m->tensor_scale == NULL;
}

static bool is_for_quotients(const struct bsmi_quantize_request *r)
{
    return r->destination.format == BSM_NVFP4 && !r->computes_tensor_scale;
}

static bool has_whole_sectors(const struct bsmi_matrix *m)
{
    const bsm_scale_layout *scales = &m->map.layout;
    return scales->kind == BSM_LAYOUT_LINEAR && scales->pitch % 32 == 0 && (uintptr_t)m->scales % 32 == 0;
}

/* The kernel for them, in front of bsmi_order_scales, or bsmi_quantize_row_and_column.  Of fewer tiles it is not known
 * whether two take less time than one. */
static enum bsmi_cuda_kernel_id kernel_for_both(const struct bsmi_cuda_gpu *gpu,
                                                const struct bsmi_quantize_request *rows,
                                                const struct bsmi_quantize_request *columns, int64_t tiles)
{
    enum { LEAST = 15 };                  /* of an SM */
    const struct bsmi_reals *s = &rows->source;
    if (s->rows % BSMI_ROW_AND_COLUMN_POWERS != 0 || s->columns % BSMI_ROW_AND_COLUMN_POWERS != 0
        || tiles < (int64_t)gpu->sm_count * LEAST)
        return BSMI_KERNEL_ROW_AND_COLUMN;
    if (!has_whole_sectors(&rows->destination) || !has_whole_sectors(&columns->destination))
        return BSMI_KERNEL_ROW_AND_COLUMN;
    if (is_for_powers(rows) && is_for_powers(columns)) return BSMI_KERNEL_ROW_AND_COLUMN_POWERS;
    return is_for_quotients(rows) && is_for_quotients(columns) ? BSMI_KERNEL_ROW_AND_COLUMN_QUOTIENTS
                                                               : BSMI_KERNEL_ROW_AND_COLUMN;
}

static bsm_status launch_in_order(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id kernel,
                                  const struct bsmi_row_and_column_parameters *p, int64_t tiles)
{
    const int64_t regions = bsmi_row_and_column_regions(&p->rows.destination.layout)
                            + bsmi_row_and_column_regions(&p->columns.destination.layout);
    const bsm_status status =
        bsmi_cuda_launch(queue, kernel, tiles / BSMI_ROW_AND_COLUMN_CHUNK + queue->gpu->sm_count, p);
    return status == BSM_OK ? bsmi_cuda_launch(queue, BSMI_KERNEL_ORDER_SCALES, regions, p) : status;
}

static bsm_status quantize_tiles(struct bsmi_cuda_queue *queue, const struct bsmi_quantize_request *rows,
                                 const struct bsmi_quantize_request *columns, int64_t tiles)
{
    const struct bsmi_row_and_column_parameters p = { parameters_of(rows), parameters_of(columns) };
    bsm_status status = rows->computes_tensor_scale ? find_amax(queue, rows) : BSM_OK;
    const enum bsmi_cuda_kernel_id kernel = kernel_for_both(queue->gpu, rows, columns, tiles);
    if (status == BSM_OK)
        status = kernel == BSMI_KERNEL_ROW_AND_COLUMN ? bsmi_cuda_launch(queue, kernel, tiles, &p)
                                            : launch_in_order(queue, kernel, &p, tiles);
    if (status == BSM_OK) status = clear_padding(queue, &rows->destination);
    return status == BSM_OK ? clear_padding(queue, &columns->destination) : status;
}

/* By one kernel, or one behind the other: the second reads along the source's columns. */
bsm_status bsmi_cuda_quantize_both(bsm_context *context, const struct bsmi_quantize_request *rows,
                                   const struct bsmi_quantize_request *columns)
{
    struct bsmi_cuda_queue queue = queue_of(context);
    bsm_status status = bsmi_cuda_enter(queue.gpu);
    if (status != BSM_OK) return status;
    const int64_t tiles = tiles_of_both(rows, columns);
    if (tiles > 0) return bsmi_cuda_leave(queue.gpu, quantize_tiles(&queue, rows, columns, tiles));
    status = quantize_entered(&queue, rows);
    return bsmi_cuda_leave(queue.gpu, status == BSM_OK ? quantize_entered(&queue, columns) : status);
}

bsm_status bsmi_cuda_dequantize(bsm_context *context, const struct bsmi_dequantize_request *r)
{
    struct bsmi_cuda_queue queue = queue_of(context);
    const struct bsmi_dequantize_parameters p = { bsmi_cuda_matrix(&r->source), bsmi_cuda_reals(&r->destination) };
    const bsm_status status = bsmi_cuda_enter(queue.gpu);
    if (status != BSM_OK) return status;
    return bsmi_cuda_leave(queue.gpu, bsmi_cuda_launch(&queue, BSMI_KERNEL_DEQUANTIZE,
                                                       pieces(r->source.rows, r->source.columns, r->source.batch), &p));
}

bsm_status bsmi_cuda_convert_scales(bsm_context *context, const struct bsmi_convert_request *r)
{
    struct bsmi_cuda_queue queue = queue_of(context);
    const struct bsmi_convert_scales_parameters p = { .from = r->from, .to = r->to,
                                                      .from_layout = bsmi_cuda_layout(&r->from_map),
                                                      .to_layout = bsmi_cuda_layout(&r->to_map), .batch = 1,
                                                      .repeat = 1 };
    const int64_t all = r->to_map.padded_rows * r->to_map.padded_columns;
    const bsm_status status = bsmi_cuda_enter(queue.gpu);
    if (status != BSM_OK) return status;
    return bsmi_cuda_leave(queue.gpu,
                           bsmi_cuda_launch(&queue, BSMI_KERNEL_CONVERT, bsmi_ceil_div(all, BSMI_CONVERT_THREADS), &p));
}
