/* Prepacked weights: what lies where in them, and the launches that make them. */
#include "operands.h"

#include "device/matrix.h"
#include "hip/params/kernels.h"

bool bsmi_hip_place_panels(const struct bsmi_matrix *b, struct bsmi_hip_panels *panels)
{
    int64_t codes, scales, nans;
    const int64_t groups = bsmi_ceil_div(b->rows, 32);
    *panels = (struct bsmi_hip_panels){
        .row_bytes = BSMI_HIP_PACKED_ROW_BYTES(b->columns, b->bits),
        .scale_row_bytes = BSMI_HIP_PACKED_SCALE_BYTES(b->columns),
        .nan_words = b->block != 0 ? groups : 0,
    };
    if (bsmi_mul_overflows(bsmi_ceil_div(b->rows, BSMI_HIP_PACKED_ROWS), panels->row_bytes, &panels->batch_bytes)
        || bsmi_mul_overflows(groups, panels->scale_row_bytes, &panels->scale_batch_bytes)
        || bsmi_mul_overflows(b->batch, panels->batch_bytes, &codes)
        || bsmi_mul_overflows(b->batch, panels->scale_batch_bytes, &scales)
        || bsmi_mul_overflows(b->batch, panels->nan_words * (int64_t)sizeof(uint32_t), &nans)
        || bsmi_add_overflows(codes, scales, &panels->nans_at)
        || bsmi_add_overflows(panels->nans_at, nans, &panels->bytes)) return true;
    panels->scales_at = codes;
    return false;
}

size_t bsmi_hip_prepacked_bytes(const struct bsmi_hip_multiply *c, const struct bsmi_product *p)
{
    struct bsmi_hip_panels panels;
    if (!bsmi_hip_wants_prepacked(c) || bsmi_hip_place_panels(&p->b, &panels)) return 0;
    return (size_t)panels.bytes;
}

static bsm_status pack(const struct bsmi_hip_queue *queue, const struct bsmi_matrix *b, unsigned char *to)
{
    struct bsmi_hip_panels panels;
    if (bsmi_hip_place_panels(b, &panels)) return bsmi_fail(BSM_EOVERFLOW, "prepacked weights cannot be counted");
    const struct bsmi_hip_pack_b_parameters parameters = { bsmi_device_matrix_of(b), to, to + panels.scales_at };
    const struct bsmi_hip_nan_scales_parameters nans = {
        .scales = to + panels.scales_at,
        .scale_row_bytes = panels.scale_row_bytes,
        .scale_batch_bytes = panels.scale_batch_bytes,
        .columns = bsmi_ceil_div(b->columns, 32),
        .groups = (int32_t)panels.nan_words,
        .matrices = (int32_t)b->batch,
        .dim = 16,
        .nans = (uint32_t *)(void *)(to + panels.nans_at),
    };
    const bsm_status status = bsmi_hip_launch(queue, BSMI_HIP_KERNEL_PACK_B,
                                              bsmi_ceil_div(panels.scales_at / 4, BSMI_HIP_THREADS), &parameters);
    if (status != BSM_OK) return status;
    return bsmi_hip_launch(queue, BSMI_HIP_KERNEL_NAN_SCALES, bsmi_ceil_div(panels.nan_words * b->batch, 4), &nans);
}

bsm_status bsmi_hip_pack(bsm_context *context, const struct bsmi_product *p, void *panels)
{
    const struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    const struct bsmi_hip_queue queue = { device->gpu, p->stream != NULL ? p->stream : device->stream };
    int before;
    const bsm_status status = bsmi_hip_enter(device->gpu, &before);
    return status != BSM_OK ? status : bsmi_hip_leave(device->gpu, before, pack(&queue, &p->b, panels));
}
