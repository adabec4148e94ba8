/* bench --profile: what each kernel of a product takes. */
#ifndef CLI_BENCH_GPU_PROFILE_H
#define CLI_BENCH_GPU_PROFILE_H

#include "gpu_point.h"

/* Before the first context of a GPU: asks cudasim, should it be the GPU, for counts of each launch. CLI_DONE, or prints
 * and returns an exit code. */
int gpu_profile_prepare(const struct cli *cli);

/* Runs the product that `run` puts into the context's stream, and tells of its kernels.  Returns CLI_DONE, or prints
 * and returns an exit code. */
int gpu_profile_run(const struct cli *cli, bsm_context *gpu, bool simulated, bsm_status (*run)(void *argument),
                    void *argument, struct gpu_side *side);

#endif
