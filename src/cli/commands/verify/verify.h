/* What `verify` is made of: the cases, their data, what the product must be, and the report. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include "cli/matrices/compare.h"
#include "cli/machine/device.h"
#include "cli/matrices/operand.h"

enum { VERIFY_FORMATS = BSM_FORMAT_COUNT - 1, VERIFY_KERNELS_MAX = 256 };

enum verify_kind {
    VERIFY_INTEGERS,                      /* small integers, whose sums fp32 holds: the bits of the exact sum */
    VERIFY_CODES,                         /* finite codes, scales near 1: the portable order of sums, and gamma_n */
    VERIFY_FAR_SCALES,                    /* scales of A far from those of B: the portable order of sums */
    VERIFY_ANY_CODES,                     /* any finite codes and scales, sums beyond fp32 included: the same */
    VERIFY_NOT_FINITE,                    /* some NaN and infinite codes among finite ones: in the right places */
    VERIFY_SCALE_CODES,                   /* K is 1, all pairs of scale codes: bits of the exact sum */
    VERIFY_ELEMENT_CODES,                 /* K is 1, all pairs of element codes (256 of wide ones): the same */
    VERIFY_KINDS
};

struct verify_case {
    enum verify_kind kind;
    int64_t m, n, k;
    bool quick;                           /* part of --quick */
    bool ordinary;                        /* tight rows, scales linear or as 128x4, the usual packings */
};
extern const struct verify_case verify_cases[];
extern const int verify_case_count;
const char *verify_kind_name(enum verify_kind kind);

/* Operands and all that the product is compared with.  The same for every kernel. */
struct verify_problem {
    const struct verify_case *what;
    struct operand a, b;
    float *d;                             /* with gaps between the rows */
    struct compare_shape shape;
    bsm_matrix d_matrix;
    bsm_matmul product;                   /* of all these */
    struct device_product device;         /* its twin in a GPU's memory, for all kernels; empty without a GPU */
    float *exact;                         /* rounded to fp32; NULL where bits are not compared with it */
    double *sum;                          /* exact; NULL where it is not asked */
    double *magnitude;                    /* NULL where no bound is checked */
    double *fp16_magnitude;               /* of kernels that multiply fp16 as it is; NULL: another pair */
    float *ordered;                       /* in the portable order; NULL where it is not asked */
    int64_t roundings;                    /* of the portable order of sums */
    int cuts;                             /* how often tensor cores cut one product of bf16; 0: never */
    struct compare_limit tensor, unit;    /* of sums on tensor cores; on matrix units of CPUs */
    double flushed;                       /* what those may make a zero of one product: 0 without bf16 */
    double *scales;                       /* what 4-bit tensor cores may also lose to scales; NULL: no bound */
};

/* Codes and scales of one operand.  The same seed gives the same bytes; `stream` tells A from B. */
bsm_status verify_fill(const struct operand *operand, enum verify_kind kind, uint64_t seed, uint64_t stream);

/* gpu: unless NULL, with what kernels on tensor cores are compared with.  Returns CLI_DONE, or prints and returns what
 * to exit with.  Free it also after a failure.  It stays where it is. */
int verify_problem_create(struct cli *cli, struct verify_problem *problem, int case_index, bsm_format a, bsm_format b,
                          bsm_context *gpu);
void verify_problem_free(struct verify_problem *problem);

/* Which comparison failed. */
enum verify_check { VERIFY_CHECK_STATUS, VERIFY_CHECK_EXACT, VERIFY_CHECK_BOUND, VERIFY_CHECK_ORDER,
                    VERIFY_CHECK_GAPS };

struct verify_failure {
    enum verify_check check;
    struct verify_case what;
    struct difference first;
    char sentence[256];                   /* of the library, when the product was refused */
};

/* One pair of formats on one kernel. */
struct verify_result {
    bool served;
    int64_t cases, failures;              /* that ran on this kernel; failures: cases that differ */
    int64_t refused;                      /* that broke a rule of the kernel's own, so that it did not run */
    char refusal[256];                    /* the library's sentence for the first of them */
    double worst;                         /* error in units of eps * magnitude */
    struct verify_failure first;          /* when failures > 0 */
};

/* A kernel that serves the pair, but none of the problems: nothing is known of it. */
static inline bool verify_never_ran(const struct verify_result *result)
{
    return result->refused > 0 && result->cases == 0;
}

/* Runs the problem on this kernel and no other, and adds what came out to result.  Kernels on tensor cores and on
 * matrix units of CPUs have orders of sums of their own: where others are compared with the portable order, they are
 * held to their bound (docs/guide/numerics.md). */
void verify_run(struct cli *cli, struct verify_problem *problem, int kernel, struct verify_result *result);

/* All of it. */
struct verify_report {
    bsm_context *gpu;                     /* NULL: kernels of the CPU */
    int kernels;
    int kernel[VERIFY_KERNELS_MAX];       /* index for bsm_kernel_name */
    bsm_format only_a, only_b;            /* BSM_FORMAT_NONE: all pairs */
    bool quick;
    double seconds;
    struct verify_result (*results)[VERIFY_FORMATS][VERIFY_FORMATS];    /* [kernel][a - 1][b - 1] */
};

/* true if any pair differs, or never ran. */
bool verify_report_differs(const struct verify_report *report);
void verify_report_text(const struct cli *cli, const struct verify_report *report);
void verify_report_json(const struct cli *cli, const struct verify_report *report);

#endif
