/* Numbers that would pass in silence: NaN, infinity, and matrices that become nothing but zeros.  One line of warning
 * each. */
#ifndef CLI_SILENT_H
#define CLI_SILENT_H

#include "matrices.h"

/* Of one matrix. */
struct silent {
    int64_t nan, infinite, numbers;
    bool zeroed; /* some number was not zero, and all became zero */
};

/* Real numbers, and those of a matrix of any format (its memory may be read by the host). */
struct silent silent_reals(const bsm_real_matrix *real);
int silent_matrix(struct cli *cli, const bsm_matrix *matrix, struct silent *found);

/* Whether quantizing left nothing but zeros, by what it counted. */
bool silent_is_zeroed(const bsm_quantize_stats *stats);

/* "warning: NAME holds 2 NaN among 4096 numbers ..."; nothing where there is nothing to say.  consequence: what
 * follows from NaN and infinity, "" for nothing; format: what zeros are of. */
void silent_warn(const struct cli *cli, const char *name, const struct silent *found, const char *consequence,
                 bsm_format format);

/* What there is to say of a matrix that was quantized: its numbers are looked at where its statistics do not tell
 * that all are finite. */
struct silent silent_quantized(const bsm_real_matrix *source, const bsm_quantize_options *how,
                               const bsm_quantize_stats *stats);
void silent_warn_quantized(const struct cli *cli, const char *name, const struct silent *found, bsm_format format,
                           const bsm_quantize_stats *stats);

/* The same for many weights: two lines at most, each with the first weight's name. */
struct silent_weights {
    int64_t not_finite, zeroed;
    struct silent first;
    char first_not_finite[256], first_zeroed[256];
};
void silent_add(struct silent_weights *weights, const char *name, const struct silent *found);
void silent_warn_weights(const struct cli *cli, const struct silent_weights *weights, bsm_format format);

#endif
