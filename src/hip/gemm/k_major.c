/* MN-major and sparse operands, copied K-major with all their elements by kernels in front. */
#include "operands.h"

#include "device/matrix.h"
#include "hip/params/kernels.h"

static bsm_status expand(const struct bsmi_hip_queue *queue, const struct bsmi_matrix *from,
                         const struct bsmi_matrix *to)
{
    const struct bsmi_expand_parameters codes = bsmi_device_expand_of(from, to);
    const struct bsmi_convert_scales_parameters scales = bsmi_device_expand_scales_of(from, to);
    const int64_t octets = to->batch * to->rows * bsmi_ceil_div(to->columns, 8),
                  bytes = to->batch * to->scale_batch_bytes;
    const bsm_status status =
        bsmi_hip_launch(queue, BSMI_HIP_KERNEL_EXPAND, bsmi_ceil_div(octets, BSMI_HIP_THREADS), &codes);
    if (status != BSM_OK || to->scale == BSM_UNSCALED) return status;
    return bsmi_hip_launch(queue, BSMI_HIP_KERNEL_CONVERT, bsmi_ceil_div(bytes, BSMI_HIP_THREADS), &scales);
}

static bsm_status transpose(const struct bsmi_hip_queue *queue, const struct bsmi_matrix *from,
                            const struct bsmi_matrix *to)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(from);
    const struct bsmi_transpose_parameters parameters = { bsmi_device_matrix_of(&stored), bsmi_device_matrix_of(to) };
    const int64_t octets = to->batch * to->rows * bsmi_ceil_div(to->columns, 8);
    return bsmi_hip_launch(queue, BSMI_HIP_KERNEL_TRANSPOSE, bsmi_ceil_div(octets, BSMI_HIP_THREADS), &parameters);
}

static bsm_status copy(const struct bsmi_hip_queue *queue, const struct bsmi_matrix *from, const struct bsmi_matrix *to)
{
    return from->sparsity != BSM_SPARSITY_NONE ? expand(queue, from, to) : transpose(queue, from, to);
}

bsm_status bsmi_hip_copy_operands(const struct bsmi_hip_queue *queue, const struct bsmi_k_major *k,
                                  const struct bsmi_product *given, const struct bsmi_product *read)
{
    const bsm_status status = k->a ? copy(queue, &given->a, &read->a) : BSM_OK;
    return status == BSM_OK && bsmi_k_major_copies_b(k, given) ? copy(queue, &given->b, &read->b) : status;
}

bsm_status bsmi_hip_copy_k_major(bsm_context *context, void *stream, const struct bsmi_matrix *from,
                                 const struct bsmi_matrix *to)
{
    const struct bsmi_hip_device *device = bsmi_hip_device_of(context);
    const struct bsmi_hip_queue queue = { device->gpu, stream != NULL ? stream : device->stream };
    int before;
    const bsm_status status = bsmi_hip_enter(device->gpu, &before);
    return status != BSM_OK ? status : bsmi_hip_leave(device->gpu, before, copy(&queue, from, to));
}
