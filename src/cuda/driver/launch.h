/* Launching kernels, and tensor maps. */
#ifndef BSMI_CUDA_LAUNCH_H
#define BSMI_CUDA_LAUNCH_H

#include "device.h"

/* Where the launches of one call go.  `behind` counts them: a kernel that begins by waiting may start before the one in
 * front ends. */
struct bsmi_cuda_queue {
    const struct bsmi_cuda_gpu *gpu;
    CUstream stream;
    int behind;
    struct bsmi_cuda_profile *profile;    /* of the device: NULL, or times are taken, and nothing starts early */
};
static inline struct bsmi_cuda_queue bsmi_cuda_queue_of(const struct bsmi_cuda_device *device, CUstream stream)
{
    return (struct bsmi_cuda_queue){ device->gpu, stream, 0, device->profile };
}

/* A kernel of the table, over `pieces` pieces of work, a CTA each, in a grid that fills the GPU a few times at most.
 * Fails with BSM_EUNSUPPORTED for a kernel that this build lacks.  parameters: its struct of cuda/params. */
bsm_status bsmi_cuda_launch(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id kernel, int64_t pieces,
                            const void *parameters);
/* The same; as the first of its call, too, it may begin while what is in front of the call still runs, and waits
 * itself. */
bsm_status bsmi_cuda_launch_early(struct bsmi_cuda_queue *queue, enum bsmi_cuda_kernel_id kernel, int64_t pieces,
                                  const void *parameters);

/* GEMM kernel number `gemm`, over `tiles` tiles of its clusters.  parameters: a struct that begins with
 * bsmi_gemm_parameters, as the kernel wants it. */
bsm_status bsmi_cuda_launch_gemm(struct bsmi_cuda_queue *queue, int gemm, int64_t tiles, const void *parameters);

/* Numbers of `type` (CU_TENSOR_MAP_DATA_TYPE_), or bytes, in rows: what a tensor map (columns, rows, batch)
 * describes. */
struct bsmi_cuda_rows {
    const void *data;
    int type;
    int64_t columns, rows, batch, row_bytes, batch_bytes;
};

/* Whether a tensor map can describe them: PTX ISA, tensor maps: addresses and strides in multiples of 16 bytes (of 32,
 * and 128 columns, where codes of 4 and 6 bits are padded to bytes), sizes below 2^32, strides below 2^40.  Rows too:
 * TMA reads and writes them up to the next multiple of 16 bytes behind their end. */
bool bsmi_cuda_can_map(const struct bsmi_cuda_rows *rows);
/* The same for loading alone, to the exact element: rows need not end at a multiple of 16 bytes, only begin there. */
bool bsmi_cuda_can_load(const struct bsmi_cuda_rows *rows);
bsm_status bsmi_cuda_map(const struct bsmi_cuda_gpu *gpu, const struct bsmi_cuda_rows *rows, int box_columns,
                         int box_rows, int swizzle, struct bsmi_tensor_map *map);

#endif
