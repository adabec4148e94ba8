/* A checked bsm_matmul: what backends compute from, and what a plan was made for. */
#ifndef BSMI_PRODUCT_H
#define BSMI_PRODUCT_H

#include "blockscale/matmul.h"
#include "matrix/matrix.h"

struct bsmi_product {
    struct bsmi_matrix a, b, c, d;        /* c only if has_c */
    bool has_c;
    int64_t m, n, k;                      /* n counted before gating */
    int64_t batch;                        /* matrices of D; 1 when grouped by rows */
    int64_t groups;                       /* along the rows of A; 0: not grouped, or along K */
    const int64_t *group_rows;
    int64_t column_groups;                /* along K, then it is `batch`, and groups is 0; 0: none */
    const int64_t *group_columns;
    const void *b_panels;                 /* NULL: none */
    bool b_alone;                         /* B is given by these alone: b.data and b.scales are NULL */
    const float *alpha, *beta;            /* NULL: 1 and 0 */
    bsm_per alpha_per;
    const void *bias;                     /* NULL: none */
    bsm_real bias_type;
    bsm_per bias_per;
    int64_t bias_batch_pitch;
    bsm_activation activation;
    bsm_gate gate;
    bsm_recipe d_recipe;
    bsm_nonfinite d_nonfinite;
    bool d_no_saturate;
    float *amax;                          /* NULL: not wanted */
    void *stream;                         /* NULL: the context's; of GPUs alone */
    bsm_compute compute;
    bsm_order order;
};

/* Checks `given` whole, fills in defaults.  Reads descriptions and, unless data lies on a device, group_rows and
 * group_columns; no other data. */
bsm_status bsmi_product_check(const bsm_matmul *given, bool on_device, struct bsmi_product *product);

/* The rules that only reading host data can tell: tensor scales, and C where beta is not 0. */
bsm_status bsmi_product_check_data(const struct bsmi_product *product);

/* Part of the check: nothing that is written may overlap anything else, but D may be C. */
bsm_status bsmi_product_check_overlap(const struct bsmi_product *product);
/* Once the kernel is known, and with it how much of b_panels it reads: what is written must not overlap that either. */
bsm_status bsmi_product_check_panels(const struct bsmi_product *product, size_t panels_bytes);
/* Where B itself is written, made of b_panels. */
bsm_status bsmi_product_check_unpacked(const struct bsmi_product *product, size_t panels_bytes);
/* `bytes` of memory called name must not overlap anything that the product reads or writes. */
bsm_status bsmi_product_check_apart(const struct bsmi_product *product, size_t panels_bytes, const char *name,
                                    const void *memory, size_t bytes);

/* Fails, naming the difference, unless both differ in pointers, group_rows and group_columns alone. */
bsm_status bsmi_product_same_shape(const struct bsmi_product *planned, const struct bsmi_product *product);

/* beta as it lies in host memory; 0 without one.  Told by its bits, so that a caller who flushes subnormals sees the
 * same. */
static inline bool bsmi_product_reads_c(const struct bsmi_product *product)
{
    return product->beta != NULL && (bsmi_float_bits(*product->beta) & 0x7fffffff) != 0;
}

/* Groups along K begin with a multiple of so many columns, whole blocks and whole bytes of both operands. */
int64_t bsmi_product_column_unit(const struct bsmi_product *product);

/* Columns of D. */
static inline int64_t bsmi_product_d_columns(const struct bsmi_product *product)
{
    return product->gate == BSM_GATE_NONE ? product->n : product->n / 2;
}

#endif
