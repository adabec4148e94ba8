/* The table of CPU figures: what is measured, beside whom, and what came out. */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include "blockscale.h"

#include <stdio.h>

enum { MOST_ROUNDS = 201, MOST_ROWS = 64 };

/* What a row compares ours with. */
enum kind {
    KIND_SGEMM,                           /* OpenBLAS on operands dequantized beforehand: sgemm, sgemv where M is 1 */
    KIND_BANDWIDTH,                       /* reading memory: the ratio is of bytes of weights a second */
    KIND_THREADS,                         /* ours on `base` threads */
    KIND_COPY,                            /* memcpy of as many bytes as quantizing M x K numbers reads and writes; a
                                             computed tensor scale reads them twice */
    KIND_COUNT
};

/* How a row differs from the plain one. */
enum {
    PREPACKED = 1,                        /* B was prepacked (bsm_plan_pack_b) */
    BACK = 2,                             /* of KIND_COPY: codes are dequantized */
    COMPUTED = 4,                         /* of KIND_COPY: the tensor scale is */
    OF_BF16 = 8,                          /* of KIND_COPY: bf16 is quantized, or comes back; else fp32 */
};

struct work {
    enum kind kind;
    bsm_format a, b;
    int64_t m, n, k;
    double reach, aim;                    /* of the ratio: the peer's time over ours */
    unsigned how;                         /* PREPACKED and so on, or'd */
};

struct row {
    struct work work;
    int threads;
    bool measured;                        /* false: the peer is missing, or the row was skipped */
    char kernel[64];                      /* ours */
    int rounds;
    double ours[MOST_ROUNDS], peer[MOST_ROUNDS];         /* seconds of one call */
};

struct table {
    char machine[128], cpu[128], date[32], commit[64], peer[128], load[48];
    int rounds, base;                     /* base: threads of ours and of the peer */
    struct row rows[MOST_ROWS];
    int count;
};

/* work.c: measures one row in alternating rounds; samples last at least `seconds`. */
struct blas_peer;
void measure_row(bsm_context *const contexts[2], const struct blas_peer *peer, int rounds, double seconds,
                 struct row *row);

/* clock.c: time of the calling thread, which other work on the machine takes nothing of, and time on the wall. */
double thread_seconds(void);
double wall_seconds(void);
double best_of(const double *seconds, int rounds);
double paired_ratio(const double *peer, const double *ours, int rounds);       /* median of peer / ours */

/* bandwidth.c: reads `bytes`, a multiple of 1024, and returns something that depends on all of them. */
uint64_t read_all(const void *memory, size_t bytes);

/* read_threads.c, in a library of its own: seconds of reading `bytes`, a multiple of 1024 times `threads` (at most
 * 256), from when the first thread began until the last one was through; 0 where threads cannot be made. */
double read_seconds(const void *memory, size_t bytes, int threads);

/* report.c, picture.c */
double row_ratio(const struct row *row);                 /* best over best */
bsm_real reals_of(const struct work *work);              /* of KIND_COPY */
int64_t moved_bytes(const struct work *work);            /* read and written, of KIND_COPY */
void row_names(const struct row *row, char *what, char *shape, size_t bytes);
const char *kind_name(enum kind kind);
void report_text(const struct table *table, FILE *file);
void report_json(const struct table *table, FILE *file);
void report_picture(const struct table *table, FILE *file);

#endif
