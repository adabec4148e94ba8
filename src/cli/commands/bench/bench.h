/* What `bench` is made of: one measured point for each K, and the report. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/cli.h"
#include "cli/machine/blas_peer.h"
#include "cli/machine/measure.h"
#include "cli/machine/plan_text.h"

struct bench_point {
    int64_t k;
    struct contender product, fp32, peer; /* peer: only where report->has_peer */
    struct contender quantize_a, quantize_b;
    int64_t a_bytes, b_bytes;             /* codes and scales */
    char product_plan[PLAN_TEXT_BYTES], fp32_plan[PLAN_TEXT_BYTES];
};

struct bench_report {
    bsm_format a, b;
    int64_t m, n, rounds;
    bsm_order order;
    int threads;
    char machine[128];
    bool has_peer, verbose;
    struct blas_peer peer;
    int count;
    struct bench_point *points;
};

/* 2 M N K over the seconds, in 10^9 a second. */
double bench_gflops(const struct bench_report *report, const struct bench_point *point, double seconds);

void bench_report_text(const struct bench_report *report);
void bench_report_json(const struct bench_report *report);
void bench_report_plot(const struct bench_report *report, FILE *file);

#endif
