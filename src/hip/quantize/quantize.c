/* Quantizing, dequantizing and converting scale layouts on a GPU of AMD: their launches. */
#include "quantize.h"

#include "device/matrix.h"
#include "hip/driver/launch.h"
#include "hip/params/kernels.h"

static struct bsmi_hip_queue queue_of(const bsm_context *context)
{
    const struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    return (struct bsmi_hip_queue){ device->gpu, device->stream };
}

/* What the largest magnitude makes of the tensor scale, where that lies. */
static bsm_status compute_tensor_scale(const struct bsmi_hip_queue *queue, const struct bsmi_quantize_request *r,
                                       const struct bsmi_hip_quantize_parameters *p)
{
    const struct bsmi_amax_parameters amax = { p->all.source, p->all.computed };
    bsm_status status = bsmi_hip_fill_word(queue, p->all.computed, BSMI_NO_AMAX, "clearing the tensor scale");
    if (status == BSM_OK)
        status = bsmi_hip_launch(queue, BSMI_HIP_KERNEL_AMAX,
                                 bsmi_ceil_div(r->source.rows * r->source.columns * r->source.batch, BSMI_HIP_THREADS),
                                 &amax);
    return status == BSM_OK ? bsmi_hip_launch(queue, BSMI_HIP_KERNEL_TENSOR_SCALE, 1, p) : status;
}

static bsm_status clear_padding(const struct bsmi_hip_queue *queue, const struct bsmi_matrix *m)
{
    const int64_t all = m->map.padded_rows * m->map.padded_columns;
    if (m->block == 0 || all == m->map.rows * m->map.columns) return BSM_OK;
    const struct bsmi_clear_padding_parameters p = { m->scales, bsmi_device_layout_of(&m->map), m->batch,
                                                     m->scale_batch_bytes };
    return bsmi_hip_launch(queue, BSMI_HIP_KERNEL_CLEAR_PADDING, bsmi_ceil_div(all * m->batch, BSMI_HIP_THREADS), &p);
}

static bsm_status quantize_entered(const struct bsmi_hip_queue *queue, const struct bsmi_quantize_request *r)
{
    const struct bsmi_matrix *m = &r->destination;
    const struct bsmi_hip_quantize_parameters p = {
        .all = { .source = bsmi_device_reals_of(&r->source),
                 .destination = bsmi_device_matrix_of(m),
                 .recipe = bsmi_device_recipe_of(r->recipe, m->scale),
                 .rounding = (int32_t)r->rounding,
                 .nonfinite = (int32_t)r->nonfinite,
                 .no_saturate = r->no_saturate,
                 .seed = r->seed,
                 .computed = r->computes_tensor_scale ? (uint32_t *)(void *)m->tensor_scale : NULL,
                 .largest = r->largest },
        .clamp = r->clamp,
        .smallest_scale = r->smallest_scale,
        .block_rows = BSMI_MAX(1, r->block_rows),
    };
    const int64_t units = m->batch * bsmi_ceil_div(m->rows, p.block_rows) *
                          bsmi_ceil_div(m->columns, m->block == 0 ? 1 : m->block);
    bsm_status status = r->computes_tensor_scale ? compute_tensor_scale(queue, r, &p) : BSM_OK;
    if (status == BSM_OK)
        status = bsmi_hip_launch(queue, BSMI_HIP_KERNEL_QUANTIZE, bsmi_ceil_div(units, BSMI_HIP_THREADS), &p);
    return status == BSM_OK ? clear_padding(queue, m) : status;
}

bsm_status bsmi_hip_quantize(bsm_context *context, const struct bsmi_quantize_request *request)
{
    const struct bsmi_hip_queue queue = queue_of(context);
    int before;
    const bsm_status status = bsmi_hip_enter(queue.gpu, &before);
    return status != BSM_OK ? status : bsmi_hip_leave(queue.gpu, before, quantize_entered(&queue, request));
}

/* One behind the other: the second reads along the source's columns. */
bsm_status bsmi_hip_quantize_both(bsm_context *context, const struct bsmi_quantize_request *rows,
                                  const struct bsmi_quantize_request *columns)
{
    const bsm_status status = bsmi_hip_quantize(context, rows);
    return status == BSM_OK ? bsmi_hip_quantize(context, columns) : status;
}

bsm_status bsmi_hip_dequantize(bsm_context *context, const struct bsmi_dequantize_request *r)
{
    const struct bsmi_hip_queue queue = queue_of(context);
    const struct bsmi_dequantize_parameters p = { bsmi_device_matrix_of(&r->source),
                                                  bsmi_device_reals_of(&r->destination) };
    const int64_t all = r->source.rows * r->source.columns * r->source.batch;
    int before;
    const bsm_status status = bsmi_hip_enter(queue.gpu, &before);
    if (status != BSM_OK) return status;
    return bsmi_hip_leave(
        queue.gpu, before,
        bsmi_hip_launch(&queue, BSMI_HIP_KERNEL_DEQUANTIZE, bsmi_ceil_div(all, BSMI_HIP_THREADS), &p));
}

bsm_status bsmi_hip_convert_scales(bsm_context *context, const struct bsmi_convert_request *r)
{
    const struct bsmi_hip_queue queue = queue_of(context);
    const struct bsmi_convert_scales_parameters p = { .from = r->from, .to = r->to,
                                                      .from_layout = bsmi_device_layout_of(&r->from_map),
                                                      .to_layout = bsmi_device_layout_of(&r->to_map), .batch = 1,
                                                      .repeat = 1 };
    const int64_t all = r->to_map.padded_rows * r->to_map.padded_columns;
    int before;
    const bsm_status status = bsmi_hip_enter(queue.gpu, &before);
    if (status != BSM_OK) return status;
    return bsmi_hip_leave(queue.gpu, before,
                          bsmi_hip_launch(&queue, BSMI_HIP_KERNEL_CONVERT, bsmi_ceil_div(all, BSMI_HIP_THREADS), &p));
}
