/* blockscale matmul, in parts: options and the product (matmul.c), A and B (operands.c), how right it is (check.c), the
 * summary (report.c). */
#ifndef CLI_MATMUL_H
#define CLI_MATMUL_H

#include "cli/machine/plan_text.h"
#include "cli/matrices/silent.h"

struct matmul_settings {
    const char *a, *b, *output, *c, *bias;
    bsm_format format, a_format, b_format, d_format;
    bsm_recipe recipe, d_recipe;
    bsm_scale_layout layout, d_layout;
    bsm_major a_major, b_major;
    struct cli_tensor_scale tensor_scale;
    int a_type, b_type, bias_per, device;
    float alpha, beta, d_tensor_scale;
    bsm_activation activation;
    bsm_gate gate;
    bsm_compute compute;
    bsm_order order;
    bool transpose_b, check, no_check, verbose;
};

struct matmul_operand {
    const char *path;
    bool stored;                          /* codes came from files; there are no real numbers to compare with */
    bsm_checkpoint *checkpoint;           /* that a stored matrix or real numbers point into; NULL: none */
    struct cli_real real;
    struct cli_quantized quantized;
    bsm_quantize_stats stats;
};

/* How right the product is. */
struct matmul_check {
    bool done;
    double worst;                         /* largest error of f S, in units of 2^-24 times f times the sum of |a||b| */
    double bound;                         /* the most that K fused multiply-adds can give */
    int64_t beyond;                       /* elements above the bound, or NaN or infinite where the exact sum is not */
    bool has_snr;                         /* both operands had real numbers */
    double snr_db;                        /* of f S against the exact product of the real numbers */
};

struct matmul_job {
    const struct matmul_settings *settings;
    bsm_context *gpu;                     /* NULL: the CPU multiplies */
    struct matmul_operand a, b;
    struct cli_real c, bias;
    bsm_matrix c_matrix;
    struct cli_quantized d;
    bsm_matmul product;
    struct silent d_silent;
    float amax;
    char kernel[PLAN_TEXT_BYTES];         /* what the plan says of itself */
    double seconds, processor_seconds;    /* of the fastest run */
    int runs;
    struct matmul_check check;
};

/* Reads A and B, and quantizes what are real numbers.  CLI_DONE, or prints and returns another. */
int matmul_read_operands(struct cli *cli, struct matmul_job *job);
void matmul_free_operand(struct cli *cli, struct matmul_operand *operand);
/* Whether to check: when asked, or when it takes about a second at most. */
bool matmul_wants_check(const struct matmul_job *job);
/* D, or if it has an epilogue or another type the same operands without, against the exact product.  CLI_DONE, or
 * prints and returns another. */
int matmul_check(struct cli *cli, struct matmul_job *job);
void matmul_report(const struct cli *cli, const struct matmul_job *job);

#endif
