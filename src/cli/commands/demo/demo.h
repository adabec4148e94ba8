/* What `demo` is made of: two matrices, a row of figures for each pair of formats, and the report. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli/cli.h"
#include "cli/machine/measure.h"

enum { DEMO_ROWS = 24 };

/* A matrix before quantizing, row-major fp32. */
struct demo_matrix {
    char about[256];                      /* "activations with outlier channels (made up)", or the file */
    int64_t rows, columns;
    int64_t file_rows;                    /* rows the file has; the demo uses the first `rows` of them */
    float *data;
};

/* What came out for one pair. */
struct demo_row {
    bsm_format a, b;
    char name[48];                        /* "mxfp4", or "bf16 x mxfp4" */
    double bits;                          /* per element, of both operands together */
    double snr_a, snr_b;                  /* dB */
    double error;                         /* |D - R| / |R|, Frobenius; R: exact, of the unquantized matrices */
    double worst;                         /* of D against the exact product, in 2^-24 * sum |a||b| */
    double allowed;                       /* gamma in the same unit */
    bool within;
    struct contender time;
};

struct demo {
    struct demo_matrix a, b;
    char machine[128];
    int threads, rounds;
    int count, fp32;                      /* fp32: the row that ratios refer to */
    struct demo_row row[DEMO_ROWS];
};

/* Reads a matrix from an .npy file (fp32, fp64, fp16, or bf16 as two-byte words). Returns CLI_DONE, or prints and
 * returns. */
int demo_read(struct cli *cli, const char *path, const char *name, struct demo_matrix *matrix);
void demo_make_activations(const struct cli *cli, int64_t rows, int64_t columns, struct demo_matrix *matrix);
void demo_make_weights(const struct cli *cli, int64_t rows, int64_t columns, struct demo_matrix *matrix);
void demo_free(struct demo_matrix *matrix);

double demo_gflops(const struct demo *demo, const struct demo_row *row);
double demo_ratio(const struct demo *demo, const struct demo_row *row);       /* times as fast as fp32 */

void demo_report_text(const struct demo *demo, const char *svg_path, bool own_data);
void demo_report_json(const struct demo *demo);
void demo_picture(const struct demo *demo, FILE *file);

#endif
