/* Operands that kernels in front copy: MN-major and sparse ones K-major with all their elements, prepacked weights
 * alone as codes and scales. */
#include "cuda/driver/matrix.h"
#include "lowering.h"

static bsm_status expand(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *from, const struct bsmi_matrix *to)
{
    const struct bsmi_expand_parameters codes = bsmi_device_expand_of(from, to);
    const struct bsmi_convert_scales_parameters scales = bsmi_device_expand_scales_of(from, to);
    const int64_t pieces = to->batch * to->rows * bsmi_ceil_div(to->columns, BSMI_EXPAND_COLUMNS),
                  bytes = to->batch * to->scale_batch_bytes;
    const bsm_status status =
        bsmi_cuda_launch(queue, BSMI_KERNEL_EXPAND, bsmi_ceil_div(pieces, BSMI_EXPAND_THREADS), &codes);
    if (status != BSM_OK || to->scale == BSM_UNSCALED) return status;
    return bsmi_cuda_launch(queue, BSMI_KERNEL_CONVERT, bsmi_ceil_div(bytes, BSMI_CONVERT_THREADS), &scales);
}

static bsm_status transpose(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *from, const struct bsmi_matrix *to)
{
    const struct bsmi_matrix stored = bsmi_matrix_stored(from);
    struct bsmi_transpose_parameters parameters = { bsmi_cuda_matrix(&stored), bsmi_cuda_matrix(to) };
    const int64_t squares = to->batch * bsmi_ceil_div(to->rows, BSMI_TRANSPOSE_SIDE)
                            * bsmi_ceil_div(to->columns, BSMI_TRANSPOSE_SIDE);
    return bsmi_cuda_launch(queue, BSMI_KERNEL_TRANSPOSE, squares, &parameters);
}

static bsm_status copy(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *from, const struct bsmi_matrix *to)
{
    return from->sparsity != BSM_SPARSITY_NONE ? expand(queue, from, to) : transpose(queue, from, to);
}

bsm_status bsmi_cuda_copy_operands(struct bsmi_cuda_queue *queue, const struct bsmi_k_major *k,
                                   const struct bsmi_product *given, const struct bsmi_product *read)
{
    bsm_status status = k->a ? copy(queue, &given->a, &read->a) : BSM_OK;
    if (status == BSM_OK && bsmi_k_major_copies_b(k, given)) status = copy(queue, &given->b, &read->b);
    if (status == BSM_OK && k->unpacks_b) status = bsmi_cuda_unpack_to(queue, given->b_panels, &read->b);
    queue->behind = 0;                    /* kernels read operands before they wait for those in front of them in their
                                             call: the next one begins when the copies are made */
    return status;
}

bsm_status bsmi_cuda_copy_k_major(bsm_context *context, void *stream, const struct bsmi_matrix *from,
                                  const struct bsmi_matrix *to)
{
    const struct bsmi_cuda_device *device = bsmi_cuda_device_of(context);
    struct bsmi_cuda_queue queue = bsmi_cuda_queue_of(device, stream != NULL ? stream : device->stream);
    const bsm_status status = bsmi_cuda_enter(device->gpu);
    return status != BSM_OK ? status : bsmi_cuda_leave(device->gpu, copy(&queue, from, to));
}
