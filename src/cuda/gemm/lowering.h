/* A lowering is how a product is carried out: what its operands become in the workspace, and which launches make S.
 * One file each; bsmi_cuda_lowerings has them by number. */
#ifndef BSMI_CUDA_LOWERING_H
#define BSMI_CUDA_LOWERING_H

#include "cuda/driver/launch.h"
#include "cuda/params/late_rows.h"
#include "cuda/params/tensor_mixed_input.h"
#include "multiply.h"

/* One product on its way into a stream. */
struct bsmi_cuda_run {
    struct bsmi_cuda_queue queue;
    const struct bsmi_cuda_multiply *multiply;
    const struct bsmi_product *product;
    unsigned char *workspace;
    struct bsmi_epilogue_parameters epilogue;
    int32_t a_flags, b_flags;             /* CTAs that dequantize the operands, and set flags of fallback rows */
    struct bsmi_late_rows late[2];        /* of A and B, where the GEMM kernel decodes some; else without jobs */
    int32_t unfit_flags;                  /* the same of rows that do not fit int8 */
};

/* What GEMM kernels are launched with: all begin with the same. */
union bsmi_gemm_launch {
    struct bsmi_gemm_parameters gemm;
    struct bsmi_shared_memory_parameters shared_memory;
    struct bsmi_column_groups_parameters column_groups;
    struct bsmi_late_rows_parameters late_rows;
    struct bsmi_fused_parameters fused;
    struct bsmi_mixed_input_parameters mixed_input;
    struct bsmi_blackwell_parameters blackwell;
    struct bsmi_sparse_parameters sparse;
    struct bsmi_tensor_mixed_input_parameters tensor_mixed_input;
};

struct bsmi_lowering {
    /* The operands of multiply, whose lowering and gemm are known. */
    bsm_status (*describe)(const struct bsmi_product *product, struct bsmi_cuda_multiply *multiply);
    /* Their places behind *end, which moves on; true on overflow. */
    bool (*place)(const struct bsmi_product *product, struct bsmi_cuda_multiply *multiply, int64_t *end);
    /* The launches that make S, or D. */
    bsm_status (*enqueue)(struct bsmi_cuda_run *run);
    /* The operands for kernel `gemm`, and what its main loop is given besides. */
    bsm_status (*fill)(const struct bsmi_cuda_run *run, const struct bsmi_gemm_instance *gemm,
                       union bsmi_gemm_launch *parameters);
};

extern const struct bsmi_lowering bsmi_lowering_rows, bsmi_lowering_fused, bsmi_lowering_mixed_input,
    bsmi_lowering_tensor_mixed_input, bsmi_lowering_int8, bsmi_lowering_fp8_requantized, bsmi_lowering_codes,
    bsmi_lowering_column_groups;

/* What the lowerings share ----------------------------------------------------------------------------------------- */

static inline void *bsmi_cuda_at(const struct bsmi_cuda_run *run, size_t offset) { return run->workspace + offset; }

static inline int32_t *bsmi_cuda_exponents(const struct bsmi_cuda_run *run, const struct bsmi_cuda_operand *o)
{
    return o->has_exponents ? bsmi_cuda_at(run, o->exponents_at) : NULL;
}

/* Bytes behind *end, aligned; true on overflow. */
bool bsmi_cuda_place(int64_t count, int64_t bytes_each, size_t *at, int64_t *end);

/* Kernel `gemm` with the operands that `fill` gives it. */
bsm_status bsmi_cuda_run_gemm(struct bsmi_cuda_run *run, int gemm, const struct bsmi_lowering *operands);

/* Kernel bsmi_sums: all of S, or the fallback rows and columns. */
bsm_status bsmi_cuda_run_sums(struct bsmi_cuda_run *run, bool only_fallback);

/* Put into the queue, in front of a product: amax is 0, and the padding of D's scales. */
bsm_status bsmi_cuda_clear_amax(const struct bsmi_cuda_queue *queue, const struct bsmi_product *product);
bsm_status bsmi_cuda_clear_padding(struct bsmi_cuda_queue *queue, const struct bsmi_product *product);

/* rows.c ----------------------------------------------------------------------------------------------------------- */

/* A bf16 operand as the caller has it: numbers of any size, which no row's exponent may move further. */
static inline bool bsmi_cuda_is_bf16(const struct bsmi_cuda_operand *o)
{
    return o->form == BSMI_FORM_AS_STORED || o->form == BSMI_FORM_REPACKED;
}

/* The workspace of one operand of bf16 rows, or whose scales alone are loaded. */
struct bsmi_cuda_operand bsmi_cuda_describe_rows(const struct bsmi_matrix *matrix);
bool bsmi_cuda_place_rows(const struct bsmi_matrix *matrix, struct bsmi_cuda_operand *operand, int64_t *end);

/* The launch that dequantizes operands into rows, or loads B's scales. */
bsm_status bsmi_cuda_load_operands(struct bsmi_cuda_run *run);

/* That one; the GEMM kernel; and bsmi_sums, unless the kernel computes fallback rows itself. */
bsm_status bsmi_cuda_enqueue_rows(struct bsmi_cuda_run *run);

/* Stretches of K, and the map of an operand's rows. */
void bsmi_cuda_fill_segments(const struct bsmi_cuda_multiply *multiply, struct bsmi_gemm_parameters *gemm);
bsm_status bsmi_cuda_map_rows(const struct bsmi_cuda_run *run, const char *name, const struct bsmi_matrix *matrix,
                              const struct bsmi_cuda_operand *operand, int box_rows, struct bsmi_tensor_map *map);

/* boxes.c: bytes of K in a box of an operand of codes; what tcgen05 is given of an operand, of which a CTA has so many
 * rows of a tile; and the map of an MN-major one that it reads as it is stored. */
int bsmi_cuda_box_bytes(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *matrix);
int bsmi_cuda_map_swizzle(int bytes);
struct bsmi_operand_boxes bsmi_cuda_boxes(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *matrix,
                                          int tile_rows);
bsm_status bsmi_cuda_map_mn_major(const struct bsmi_cuda_gpu *gpu, const struct bsmi_gemm_instance *gemm,
                                  const char *name, const struct bsmi_matrix *matrix, int tile_rows,
                                  struct bsmi_tensor_map *map);

/* copied_rows.c: bytes of a copy by cp.async, for rows that TMA cannot describe; 0: the kernel cannot copy them,
 * either.  And what it is given of them. */
int bsmi_cuda_copy_size(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *matrix);
bsm_status bsmi_cuda_fill_copied(const char *name, const struct bsmi_matrix *matrix, int size,
                                 struct bsmi_copied_rows *to);

/* column_groups.c: the tables of groups along K, where there are some; and the first of them, else NULL. */
bool bsmi_cuda_place_column_tables(const struct bsmi_product *product, struct bsmi_cuda_multiply *multiply,
                                   int64_t *end);
bsm_status bsmi_cuda_make_column_tables(struct bsmi_cuda_run *run);
const struct bsmi_column_group *bsmi_cuda_column_table(const struct bsmi_cuda_run *run);

/* late_rows.c: rows that the GEMM kernel decodes; in place of the launch of bsmi_decode_plain, whose CTAs these are. */
void bsmi_cuda_describe_late_rows(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *product,
                                  struct bsmi_cuda_multiply *multiply);
bool bsmi_cuda_place_late_rows(const struct bsmi_product *product, struct bsmi_cuda_multiply *multiply, int64_t *end);
bsm_status bsmi_cuda_decode_early(struct bsmi_cuda_run *run, const struct bsmi_decode_plain_parameters *plain,
                                  const int64_t ctas[2]);
void bsmi_cuda_fill_late_rows(const struct bsmi_cuda_run *run, struct bsmi_late_rows_parameters *parameters);

/* int8.c: for a kernel that works depending on what the device finds of int8 rows. */
struct bsmi_condition bsmi_cuda_int8_condition(const struct bsmi_cuda_run *run, enum bsmi_gemm_condition when);

/* prepacked.c: where the product's weights are. */
void bsmi_cuda_fill_prepacked(const struct bsmi_product *product, struct bsmi_mixed_input_parameters *parameters);

/* The same of packed scales, which lie as BSM_LAYOUT_128X4, and of the flags of fallback rows behind B's exponents. */
const unsigned char *bsmi_cuda_packed_scales(const struct bsmi_product *product);
struct bsmi_fallback bsmi_cuda_packed_flags(const struct bsmi_product *product);

/* One operand requantized by itself, to where its codes and exponents are kept. */
bsm_status bsmi_cuda_requantize_one(struct bsmi_cuda_queue *queue, const struct bsmi_matrix *matrix,
                                    const struct bsmi_fp8_operand *operand, unsigned char *codes, int32_t *exponents);

/* The codes of B that b_panels has, behind its exponents. */
const unsigned char *bsmi_cuda_kept_codes(const struct bsmi_product *product);

/* Codes and scales of prepacked weights. */
bsm_status bsmi_cuda_unpack_to(struct bsmi_cuda_queue *queue, const void *panels, const struct bsmi_matrix *to);

/* The same operand for fallback rows where B is its prepacked weights alone, which have not their codes: all NaN. */
struct bsmi_matrix bsmi_cuda_without_codes(const struct bsmi_product *product);

/* Copies of MN-major operands: `given` is the product as it was asked for, `read` the one that kernels multiply. */
bsm_status bsmi_cuda_copy_operands(struct bsmi_cuda_queue *queue, const struct bsmi_k_major *k,
                                   const struct bsmi_product *given, const struct bsmi_product *read);

#endif
