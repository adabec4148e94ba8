/* Launching kernels. */
#ifndef BSMI_HIP_LAUNCH_H
#define BSMI_HIP_LAUNCH_H

#include "device.h"

/* Where the launches of one call go. */
struct bsmi_hip_queue { const struct bsmi_hip_gpu *gpu; hipStream_t stream; };

/* A kernel of the table, over `pieces` pieces of work, a workgroup each, in a grid that fills the GPU a few times at
 * most.  Fails with BSM_EUNSUPPORTED for a kernel that this build lacks.  parameters: its struct of params. */
bsm_status bsmi_hip_launch(const struct bsmi_hip_queue *queue, enum bsmi_hip_kernel_id kernel, int64_t pieces,
                           const void *parameters);

/* GEMM instance `gemm` for a pair of elements, a workgroup a tile. */
bsm_status bsmi_hip_launch_gemm(const struct bsmi_hip_queue *queue, int gemm, int pair,
                                const struct bsmi_hip_gemm_parameters *parameters, int64_t tiles);

/* Words and bytes, set. */
bsm_status bsmi_hip_fill_word(const struct bsmi_hip_queue *queue, void *to, uint32_t word, const char *what);
bsm_status bsmi_hip_fill_bytes(const struct bsmi_hip_queue *queue, void *to, unsigned char value, int64_t bytes,
                               const char *what);

#endif
