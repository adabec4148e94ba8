/* bench --device cuda. */
#ifndef CLI_BENCH_GPU_H
#define CLI_BENCH_GPU_H

#include "cli/cli.h"

struct bench_gpu {
    bsm_format a, b, d;
    int64_t m, n, rounds;
    struct cli_range k;                   /* the K's to measure */
    bsm_compute compute;
    bsm_order order;
    bool prepacked;                       /* B is packed before; fails where no kernel reads such */
    bool explain;                         /* the plans alone: nothing is measured */
    bool verbose;                         /* print all that a plan says */
};

/* Measures and prints. */
int bench_gpu_run(struct cli *cli, bsm_context *gpu, const struct bench_gpu *what);

#endif
