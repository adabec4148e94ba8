/* Products on a GPU of AMD: what is prepared for one, where it lies in the workspace, and the launches. */
#ifndef BSMI_HIP_MULTIPLY_H
#define BSMI_HIP_MULTIPLY_H

#include "hip/driver/device.h"
#include "matrix/matrix.h"
#include "product/k_major.h"
#include "product/product.h"

/* What an operand's numbers become. */
enum bsmi_hip_form {
    BSMI_HIP_AS_STORED,                   /* the kernel reads the caller's rows */
    BSMI_HIP_REPACKED,                    /* codes copied into the workspace, in the packing that kernels read */
    BSMI_HIP_DECODED,                     /* rows of bf16 in the workspace */
    BSMI_HIP_PREPACKED                    /* prepacked weights, scales and NaN bits with them */
};

/* How scales get into lane order. */
enum bsmi_hip_scales {
    BSMI_HIP_SCALES_AS_THEY_ARE,          /* the caller's have it */
    BSMI_HIP_SCALES_CONVERTED,            /* converted into the workspace */
    BSMI_HIP_SCALES_ONES                  /* the operand has none: scales of 1 in the workspace */
};

struct bsmi_hip_operand {
    enum bsmi_hip_form form;
    int64_t padded_columns, row_bytes, batch_bytes;       /* of rows in the workspace, or of the caller's */
    int stretches, repeat;                /* of decoded rows: params/kernels.h */
    size_t rows_at;                       /* in the workspace */
    enum bsmi_hip_scales scales;          /* of instances that read them */
    struct bsmi_scale_map scale_map;      /* in lane order, of one matrix in the workspace */
    size_t scales_at;
    size_t nans_at;                       /* of instances that read scales: a bit for each row that has a NaN among
                                             its own, nan_words a matrix; 0: the operand has none */
    int64_t nan_words;
    bool has_exponents;                   /* of rows of bf16, in the workspace: scales are e8m0, and there may be
                                             fallback rows */
    size_t exponents_at;
};

/* Made once for a product; a product that differs in pointers, group_rows and group_columns alone can run with
 * it. */
struct bsmi_hip_multiply {
    int gemm, pair;                       /* number of the instance, and of the pair of elements; gemm -1: one thread an
                                             element, from the operands as they are */
    struct bsmi_hip_operand a, b;
    int64_t k;                            /* of the rows that are multiplied */
    int64_t row_tiles, column_tiles;      /* of the instance */
    size_t tables_at;                     /* grouped: group_starts, group_tiles; along K: of column groups */
    bool direct;                          /* the GEMM kernel makes D; else S lies in the workspace */
    size_t sums_at;
    int64_t sums_pitch;
    size_t factors_at;                    /* direct: f, where there are tensor scales */
    size_t workspace_bytes;               /* with the copies of MN-major operands, which lie in front of the rest */
    struct bsmi_k_major k_major;          /* which these are: the plan's to say */
    double expected_nanoseconds;          /* for people; 0: nothing is expected */
};

enum { BSMI_HIP_ALIGNMENT = 256 };        /* of the workspace, and of what lies in it */

/* Whether the instance multiplies this pair of formats; *pair is then the pair of elements. */
bool bsmi_hip_serves(const struct bsmi_hip_instance *instance, bsm_format a, bsm_format b, int *pair);

/* Whether GEMM kernels can count the product's sizes. */
bool bsmi_hip_fits(const struct bsmi_product *product);

/* Tiles of the instance, at most: of groups the device alone knows how many. */
int64_t bsmi_hip_tiles(const struct bsmi_hip_instance *instance, const struct bsmi_product *product);

/* Whether GEMM kernels can be launched for so many tiles of the instance. */
bool bsmi_hip_can_launch(const struct bsmi_hip_instance *instance, const struct bsmi_product *product);

/* gemm: number of an instance that the GPU has and that serves the product, or -1.  Fails with BSM_EOVERFLOW if the
 * workspace cannot be counted. */
bsm_status bsmi_hip_prepare(const struct bsmi_product *product, int gemm, struct bsmi_hip_multiply *multiply);

/* Whether its kernel reads B from b_panels alone. */
static inline bool bsmi_hip_wants_prepacked(const struct bsmi_hip_multiply *c)
{
    return c->gemm >= 0 && bsmi_hip_instances[c->gemm].prepacked;
}

/* Prepacked weights for an instance that reads them; 0 for others, or if they cannot be counted. */
size_t bsmi_hip_prepacked_bytes(const struct bsmi_hip_multiply *multiply, const struct bsmi_product *product);

/* Puts the kernels that make them into the product's stream.  panels: device memory, aligned to 64 bytes. */
bsm_status bsmi_hip_pack(bsm_context *context, const struct bsmi_product *product, void *panels);

/* Puts the product's work into its stream (the context's if it names none).  workspace: device memory, workspace_bytes,
 * aligned to BSMI_HIP_ALIGNMENT.  Fails with BSM_EALIGN for an operand that was to be read as it is, or a D that was to
 * be written in whole words, and is not aligned. */
bsm_status bsmi_hip_run(bsm_context *context, const struct bsmi_hip_multiply *multiply,
                        const struct bsmi_product *product, void *workspace);

/* The same with the context's cached workspace. */
bsm_status bsmi_hip_multiply(bsm_context *context, const struct bsmi_hip_multiply *multiply,
                             const struct bsmi_product *product);

/* Puts the kernel that copies an MN-major operand into the stream, the context's if it is NULL. */
bsm_status bsmi_hip_copy_k_major(bsm_context *context, void *stream, const struct bsmi_matrix *from,
                                 const struct bsmi_matrix *to);

#endif
