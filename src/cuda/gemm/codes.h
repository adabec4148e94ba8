/* Products of codes: operands that tensor cores take as they are stored, with their scales beside them. */
#ifndef BSMI_CUDA_CODES_H
#define BSMI_CUDA_CODES_H

#include "cuda/driver/launch.h"
#include "matrix/matrix.h"

/* How scales get into layout 128x4, which the tensor cores read. */
enum bsmi_codes_scales {
    BSMI_SCALES_AS_THEY_ARE, /* the caller's have it */
    BSMI_SCALES_CONVERTED,   /* converted into the workspace */
    BSMI_SCALES_REPEATED,    /* the same, each twice: blocks of 32 beside blocks of 16 */
    BSMI_SCALES_ONES         /* the operand has none: scales of 1 in the workspace */
};

struct bsmi_codes {
    bool repacked;                                  /* codes that TMA cannot describe, copied into the workspace */
    int64_t padded_columns, row_bytes, batch_bytes; /* of the rows in the workspace */
    enum bsmi_codes_scales scales;
    struct bsmi_scale_map scale_map; /* of one matrix, in layout 128x4 */
    int64_t scale_batch_bytes;
    size_t rows_at, scales_at; /* in the workspace */
};

/* Whether products of this kind take this pair of formats. */
bool bsmi_codes_serve(enum bsmi_gemm_operands kind, bsm_format a, bsm_format b);

/* Steps of K that one chain of sums has, 0 for all of them: a function of K and the kind alone, so that every M has the same
 * sums. */
int32_t bsmi_codes_split(enum bsmi_gemm_operands kind, int64_t k);

/* How many chains that makes. */
int32_t bsmi_codes_parts(enum bsmi_gemm_operands kind, int64_t k);

/* How operand `m` gets into a product of this kind.  Fails if its scales are more than an int64_t counts. */
bsm_status bsmi_codes_describe(enum bsmi_gemm_operands kind, const char *name, const struct bsmi_matrix *m, struct bsmi_codes *codes);

/* Bytes in the workspace, or -1 on overflow. */
int64_t bsmi_codes_rows_bytes(const struct bsmi_matrix *m, const struct bsmi_codes *codes);
int64_t bsmi_codes_scales_bytes(const struct bsmi_matrix *m, const struct bsmi_codes *codes);

/* Puts repacking and converting into the queue. */
bsm_status bsmi_codes_prepare(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *m, const struct bsmi_codes *codes,
                              unsigned char *workspace);

/* The maps of an operand's codes, in boxes of box_rows, and of its scales.  Fails with BSM_EALIGN for data that are not
 * aligned as those of the plan were. */
bsm_status bsmi_codes_map(const struct bsmi_cuda_gpu *gpu, enum bsmi_gemm_operands kind, const char *name, const struct bsmi_matrix *m,
                          const struct bsmi_codes *codes, unsigned char *workspace, int box_rows, struct bsmi_tensor_map *map,
                          struct bsmi_tensor_map *scale_map);

/* Members of the parameters that say what is multiplied; of bf16 rows, where a and b are not looked at, the instruction alone. */
void bsmi_codes_fill(const struct bsmi_gemm_instance *instance, const struct bsmi_matrix *a, const struct bsmi_matrix *b,
                     struct bsmi_tensor_memory_parameters *parameters);

/* "scales as they are", ... */
const char *bsmi_codes_scales_name(enum bsmi_codes_scales scales);

#endif
