/* What was measured on a GPU at one K, and how it is told. */
#ifndef CLI_BENCH_GPU_POINT_H
#define CLI_BENCH_GPU_POINT_H

#include "cli/cli.h"
#include "cli/machine/plan_text.h"

/* What is asked for. */
struct bench_gpu {
    bsm_format a, b, d;
    int64_t m, n, rounds;
    struct cli_range k;                   /* the K's to measure */
    bsm_compute compute;
    bsm_order order;
    bool prepacked;                       /* B is packed before; fails where no kernel reads such */
    bool explain;                         /* the plans alone: nothing is measured */
    bool verbose;                         /* print all that a plan says */
    bool profile;                         /* tell of each kernel */
};

/* A kernel of one product.  On a simulated GPU counts, which are exact for the schedule that was drawn; on others
 * seconds. */
struct gpu_kernel {
    bsm_kernel_time time;
    int64_t instructions, bytes;          /* simulated: of warps; of device memory, read and written */
};

struct gpu_side {
    char plan[PLAN_TEXT_BYTES], rows[2][192];   /* rows: of a plan that multiplies int8 rows */
    bool all_fit;
    double median, best;                  /* seconds of a product */
    int calls, places;                    /* products of a sample; places of operands */
    int64_t bytes;                        /* codes and scales of both operands, and D */
    struct gpu_kernel kernels[BSM_PROFILE_KERNELS];
    int kernel_count;
};

struct gpu_point { int64_t k; struct gpu_side product, bf16; };

struct gpu_report {
    const struct bench_gpu *what;
    bsm_device_info device;
    bool simulated;
    int count;
    struct gpu_point *points;
};

void gpu_report_text(const struct gpu_report *report);
void gpu_report_json(const struct gpu_report *report);
void gpu_report_plot(const struct gpu_report *report, FILE *file);

#endif
