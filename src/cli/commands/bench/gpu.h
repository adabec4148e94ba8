/* bench --device cuda. */
#ifndef CLI_BENCH_GPU_H
#define CLI_BENCH_GPU_H

#include "gpu_point.h"

/* Measures and prints; plot: NULL, or where the chart goes. */
int bench_gpu_run(struct cli *cli, bsm_context *gpu, const struct bench_gpu *what, FILE *plot);

#endif
