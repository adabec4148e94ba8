/* A matrix of the command's own: description and memory together. */
#ifndef CLI_OPERAND_H
#define CLI_OPERAND_H

#include "cli/cli.h"

struct operand {
    bsm_matrix matrix;
    float tensor_scale;                   /* matrix.tensor_scale points here or is NULL */
    int64_t data_bytes, scale_bytes;
};

/* Memory for a description whose data and scales are NULL; formats without scales ignore its scale layout.  All bytes
 * start as 0xff: scales of NaN, elements of NaN where the format has them; so padding that somebody reads shows.
 * Returns CLI_DONE, or prints and returns what to exit with. */
int operand_create(struct cli *cli, struct operand *operand, bsm_matrix description);
/* rows x columns, tight, the format's usual packing and linear scales. */
int operand_create_plain(struct cli *cli, struct operand *operand, bsm_format format, int64_t rows, int64_t columns);
/* Quantizes source (fp32, row-major with a pitch) by the format's default recipe; nvfp4 and unscaled e4m3 and e5m2 get
 * a computed tensor scale, as they are used in practice.  stats may be NULL. */
bsm_status operand_quantize(struct cli *cli, struct operand *operand, const float *source, int64_t pitch,
                            bsm_quantize_stats *stats);
void operand_free(struct operand *operand);

/* The first `count` rows alone, over the same memory; for plain operands. */
bsm_matrix operand_head(const struct operand *operand, int64_t count);

/* Row-major numbers as the library describes them; and an unscaled fp32 matrix for results. */
bsm_real_matrix real_rows(bsm_real type, int64_t rows, int64_t columns, void *data, int64_t pitch);
bsm_matrix fp32_rows(int64_t rows, int64_t columns, float *data, int64_t pitch);

#endif
