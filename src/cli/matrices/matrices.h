/* The matrices of matmul, quantize and dequantize: real numbers from .npy files, and block-scaled ones with their
 * files. */
#ifndef CLI_MATRICES_H
#define CLI_MATRICES_H

#include "cli/cli.h"

/* Real numbers ----------------------------------------------------------------------------------------------------- */

/* What a file is said to hold; the values are those of bsm_real, one later. */
enum cli_type { CLI_TYPE_AUTO, CLI_TYPE_FP32, CLI_TYPE_FP16, CLI_TYPE_BF16, CLI_TYPE_FP64 };
extern const struct cli_choices cli_types;

/* Rows of numbers, one after the other.  fp64 from a file has become fp32. */
struct cli_real {
    bsm_real type;
    int64_t rows, columns;
    void *data;
    bsm_npy array;                        /* owns data, unless `own` does */
    void *own;
};

/* Reads a matrix of two dimensions; transpose: the file holds its columns as rows.  "random:ROWSxCOLUMNS" instead of a
 * path gives normally distributed numbers that depend on --seed and stream alone.
 * type AUTO: fp32, fp16, and two-byte voids as bf16 (what ml_dtypes writes); fp64 is refused unless type says so, and
 * is then rounded to fp32; BF16 reads uint16 too.  Returns CLI_DONE, or prints and returns CLI_BAD_INPUT or
 * CLI_WRONG_USAGE. */
int cli_read_real(struct cli *cli, const char *path, int type, bool transpose, uint64_t stream, struct cli_real *real);
/* The same for one dimension: rows is 1. */
int cli_read_vector(struct cli *cli, const char *path, int type, struct cli_real *real);
void cli_real_free(struct cli *cli, struct cli_real *real);

bsm_real_matrix cli_real_view(const struct cli_real *real);
/* The same numbers as an unscaled operand. */
bsm_matrix cli_real_matrix(const struct cli_real *real);

/* Quantized matrices ----------------------------------------------------------------------------------------------- */

/* Which tensor scale to use. */
struct cli_tensor_scale {
    enum { CLI_SCALE_USUAL, CLI_SCALE_NONE, CLI_SCALE_COMPUTED, CLI_SCALE_GIVEN } source;
    float value;
};
cli_parser cli_tensor_scale;
#define CLI_TENSOR_SCALE(settings, field) \
    cli_tensor_scale, CLI_FIELD(settings, field, struct cli_tensor_scale), .choices = NULL

/* Description and memory.  matrix points into it: never copied. */
struct cli_quantized {
    union { bsm_matrix matrix; bsm_sparse_matrix sparse; };
    float tensor_scale;
    int64_t data_bytes, scale_bytes, metadata_bytes;
    void *data, *scales, *metadata;       /* made by cli_quantized_new */
    bsm_npy codes_file, scales_file, metadata_file;       /* or read */
    bsm_sparsify_stats left_out;          /* by cli_quantize, of a sparse one */
};

/* Zeroed memory for a matrix; the gguf packing implies its scale layout, and a gguf layout its packing. */
int cli_quantized_new(struct cli *cli, bsm_format format, bsm_packing packing, bsm_scale_layout layout, int64_t rows,
                      int64_t columns, struct cli_quantized *quantized);
/* The same for a sparse one. */
int cli_quantized_new_sparse(struct cli *cli, bsm_format format, bsm_packing packing, bsm_scale_layout layout,
                             bsm_sparsity sparsity, int64_t rows, int64_t columns, struct cli_quantized *quantized);
bool cli_is_sparse(const bsm_matrix *matrix);
/* Makes a matrix that cli_quantized_new made MN-major.  Of gguf's packing that fails. */
int cli_quantized_turn(struct cli *cli, const char *what, struct cli_quantized *quantized);
void cli_quantized_free(struct cli *cli, struct cli_quantized *quantized);

/* Quantizes real, or what a sparse matrix keeps of it, into quantized (options->tensor_scale and the matrix' tensor
 * scale are set from `scale`). */
int cli_quantize(struct cli *cli, const char *what, const struct cli_real *real, struct cli_tensor_scale scale,
                 bsm_quantize_options options, struct cli_quantized *quantized, bsm_quantize_stats *stats);

/* The recipe behind DEFAULT; NULL for formats without scales. */
const char *cli_recipe_used(bsm_format format, bsm_recipe recipe);

/* The files of a quantized matrix: PREFIX.codes.npy, PREFIX.scales.npy, PREFIX.tensor_scale.npy,
 * PREFIX.metadata.npy (the last three where there are such), and PREFIX.json, the note that names them and says how to
 * read them. */
int cli_store_quantized(struct cli *cli, const char *prefix, const struct cli_quantized *quantized, const char *recipe);
int cli_load_quantized(struct cli *cli, const char *note_path, struct cli_quantized *quantized);
/* path without `ending`, if it ends so; in memory of the command's. */
char *cli_without_ending(const struct cli *cli, const char *path, const char *ending);
bool cli_ends_with(const char *path, const char *ending);

#endif
