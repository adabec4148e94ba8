/* Products on a GPU: what is prepared for one, where it lies in the workspace, and the launches. */
#ifndef BSMI_CUDA_MULTIPLY_H
#define BSMI_CUDA_MULTIPLY_H

#include "cuda/driver/device.h"
#include "matrix/matrix.h"
#include "product/k_major.h"
#include "product/product.h"

/* What an operand becomes. */
enum bsmi_cuda_form {
    BSMI_FORM_AS_STORED,                  /* TMA, cp.async, or the kernel without tensor cores, reads the caller's
                                             rows */
    BSMI_FORM_DEQUANTIZED,                /* bf16 rows in the workspace */
    BSMI_FORM_REPACKED,                   /* rows that the kernel cannot read, copied into the workspace */
    BSMI_FORM_REQUANTIZED,                /* e4m3 codes and an exponent for each row in the workspace */
    BSMI_FORM_IN_KERNEL                   /* TMA reads the caller's codes; the GEMM kernel dequantizes them into bf16 */
};

/* How scales get into layout 128x4, which the tensor cores read. */
enum bsmi_codes_scales {
    BSMI_SCALES_AS_THEY_ARE, /* the caller's have it */
    BSMI_SCALES_LINEAR,      /* the caller's linear rows, 16 bytes at a time: the kernel reads them, too */
    BSMI_SCALES_CONVERTED,   /* converted into the workspace */
    BSMI_SCALES_REPEATED,    /* the same, each twice: blocks of 32 beside blocks of 16 */
    BSMI_SCALES_ONES         /* the operand has none: scales of 1 in the workspace */
};

struct bsmi_codes {
    bool repacked;                                  /* codes that the kernel cannot read, copied into the workspace */
    int64_t padded_columns, row_bytes, batch_bytes; /* of the rows in the workspace */
    enum bsmi_codes_scales scales;
    struct bsmi_scale_map scale_map; /* of one matrix, in layout 128x4 */
    int64_t scale_batch_bytes;
    size_t rows_at, scales_at; /* in the workspace */
    bool metadata_copied;      /* of a sparse one: TMA cannot describe the caller's */
    int64_t metadata_row_bytes;
    size_t metadata_at;
};

struct bsmi_int8_operand { int64_t padded_columns, batch_pitch; size_t rows_at; };
struct bsmi_fp8_operand { int64_t row_bytes, batch_bytes; size_t codes_at; };

struct bsmi_cuda_operand {
    enum bsmi_cuda_form form;
    int copy_size;                        /* as stored: bytes of a copy by cp.async; 0: TMA */
    int terms;                            /* bf16 numbers for one element */
    bool as_it_is;                        /* rows of fp16 or fp32, multiplied as they are: an fp32 counts
                                             as two numbers */
    int64_t padded_columns, pitch, batch_pitch;      /* of the rows in the workspace, elements */
    bool has_exponents;                   /* of rows, in the workspace: scales are e8m0 */
    size_t rows_at, exponents_at, fallback_at;       /* in the workspace; fallback_at: flags of CTAs that met fallback
                                                        rows */
    /* In the kernel: scales as BSM_LAYOUT_128X4, the caller's own or loaded into the workspace. */
    bool own_scales;
    bool any_scales;                      /* the caller's own, in any layout; the kernel finds exponents itself, and
                                             computes the fallback rows of either operand */
    int64_t scale_band_bytes, scale_batch_bytes; /* of 128 rows, of a matrix */
    size_t scales_at;
    /* Of one lowering each. */
    struct bsmi_codes codes;
    struct bsmi_int8_operand int8;
    struct bsmi_fp8_operand fp8;
};

/* Made once for a product; a product that differs in pointers, group_rows and group_columns alone can run with
 * it. */
struct bsmi_cuda_multiply {
    const struct bsmi_lowering *lowering; /* lowering.h; NULL: one thread an element, from the operands as they are */
    int gemm;                             /* number of the instance; -1 without a lowering */
    int int8_fallback;                    /* of int8 rows: the instance, of the same tiles, that multiplies bf16 instead
                                             if a row does not fit, which the device finds; else -1 */
    size_t unfit_at;                      /* flags of that */
    bool keeps_b;                         /* requantized: B's codes and exponents are taken from b_panels */
    bool direct;                          /* D is finished where S is made; else S goes through the workspace */
    struct bsmi_cuda_operand a, b;
    int64_t row_tiles, column_tiles;      /* of the GEMM instance */
    size_t tables_at;                     /* grouped: group_starts, group_tiles; along K: of column groups */
    size_t steps_at;                      /* groups along K: of columns of each step */
    size_t sums_at;
    int64_t sums_pitch;
    int64_t late_rows[2];                 /* of A and B, that the GEMM kernel decodes itself; 0: it decodes none */
    size_t late_at;                       /* counts of late rows, and flags of their jobs */
    int parts;                            /* of K, each summed by itself: bsmi_codes_parts */
    bool split_k;                         /* each goes to CTAs of its own, and bsmi_finish adds them; else a CTA keeps
                                             them at kept_at */
    int64_t kept;                         /* numbers */
    size_t kept_at;
    size_t workspace_bytes;               /* with the copies of MN-major operands, which lie in front of the rest */
    struct bsmi_k_major k_major;          /* which these are: the plan's to say */
    int64_t tiles, waves;                 /* what the plan expects of the GEMM kernel, for people; 0: nothing */
    double expected_nanoseconds;
};

enum { BSMI_CUDA_ALIGNMENT = 256 };       /* of the workspace, and of what lies in it */

/* Numbers of bf16 that stand for one of the operand's: two for an fp16. */
int bsmi_cuda_terms(const struct bsmi_matrix *operand);

/* What the instance multiplies rows of: fp16, or fp32 (as tf32), where both operands are that and it is one of tcgen05;
 * else bf16. */
bsm_element bsmi_cuda_multiplied_element(const struct bsmi_gemm_instance *gemm, const struct bsmi_matrix *a,
                                         const struct bsmi_matrix *b);

/* Whether GEMM kernels that dequantize such codes of B take this format, in one of its packings. */
bool bsmi_cuda_dequantizes(enum bsmi_gemm_codes codes, bsm_format format);

/* Whether the instance multiplies the codes of this pair of formats. */
bool bsmi_codes_serve(const struct bsmi_gemm_instance *gemm, bsm_format a, bsm_format b);
/* Why mma.sync cannot multiply these codes in this instance; NULL: nothing of it is in the way. */
const char *bsmi_codes_rule(const struct bsmi_gemm_instance *gemm, bsm_format a, bsm_format b);

/* The rule of a kernel for a sparse B that the product breaks, whatever BSM_COMPUTE_FAST permits; NULL: none. */
const char *bsmi_sparse_rule(const struct bsmi_product *product);

/* Whether the instance, if its tiles have so many rows of the operand, reads an MN-major one as it is stored: 8 bits
 * among codes, 16 bits among rows, lines that TMA can describe.  The others are copied K-major in front. */
bool bsmi_cuda_reads_mn_major(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product,
                              const struct bsmi_matrix *operand, int tile_rows);

/* Steps of K that one chain of sums has, 0 for all of them: a function of K, the kind of products and the main loop
 * alone (and of whether the instance splits K), so that every M has the same sums. */
int32_t bsmi_codes_split(const struct bsmi_gemm_instance *gemm, int64_t k);

/* How many chains that makes. */
int32_t bsmi_codes_parts(const struct bsmi_gemm_instance *gemm, int64_t k);

/* Members of the parameters that say what is multiplied; of rows, whose element alone is looked at, the instruction
 * alone. */
void bsmi_codes_fill(const struct bsmi_gemm_instance *instance, const struct bsmi_matrix *a,
                     const struct bsmi_matrix *b, struct bsmi_blackwell_parameters *parameters);

/* "scales as they are", ... */
const char *bsmi_codes_scales_name(enum bsmi_codes_scales scales);

/* Whether products of this pair can be made of requantized operands. */
bool bsmi_fp8_serves(bsm_format a, bsm_format b);

/* The rule that an operand does not keep, or NULL if its rows may go as int8. */
const char *bsmi_int8_rule(const struct bsmi_matrix *matrix);

/* Whether the GEMM kernels can serve the product: operands that TMA can reach, dequantized or repacked if need be. */
bool bsmi_cuda_tensor_serves(const struct bsmi_product *product);

/* Whether 32-bit coordinates count the columns of groups along K, each from a step of K on. */
bool bsmi_cuda_column_groups_fit(const struct bsmi_product *product);

/* Whether the instance can serve the product, of whose formats it knows: one that dequantizes B itself needs it in a
 * form that it can read.  If not, and sentence is not NULL, *sentence says what the kernel wants. */
bool bsmi_cuda_gemm_serves(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product,
                           const char **sentence);

/* Whether the instance, of which `clusters` run at one time, would decode rows of the product itself, and the first of
 * them, of A and of B. */
bool bsmi_cuda_late_rows(const struct bsmi_gemm_instance *gemm, int clusters, const struct bsmi_product *product,
                         int64_t first[2]);

/* Clusters' tiles, at most: of groups the device alone knows how many. */
int64_t bsmi_cuda_tiles(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product);

/* Whether the parts of K go to CTAs of their own where so many clusters of the instance run at one time. */
bool bsmi_cuda_splits_k(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product, int64_t clusters);

/* gemm: number of an instance that the GPU has and that serves the product, or -1 for the SIMT kernel.  Fails with
 * BSM_EOVERFLOW if the workspace cannot be counted. */
bsm_status bsmi_cuda_prepare(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *product, int gemm,
                             struct bsmi_cuda_multiply *multiply);

/* D as the GEMM and SIMT kernels finish it themselves, whatever there is of alpha, beta C, bias and the operands'
 * tensor scales. Kernels that multiply codes quantize it too, but not in GGUF's blocks, which may be wider than their
 * tiles. */
bool bsmi_cuda_finishes_directly(const struct bsmi_product *product, int gemm);

/* Rows of bf16 in the workspace, which a kernel in front makes. */
static inline bool bsmi_cuda_becomes_rows(const struct bsmi_cuda_operand *o)
{
    return o->form == BSMI_FORM_DEQUANTIZED || o->form == BSMI_FORM_REPACKED;
}

/* Whether its kernel multiplies codes as they are. */
static inline bool bsmi_cuda_multiplies_codes(const struct bsmi_cuda_multiply *c)
{
    return c->gemm >= 0 && bsmi_gemm_multiplies_codes(&bsmi_gemm_instances[c->gemm]);
}

/* Whether its kernel reads B from b_panels alone. */
static inline bool bsmi_cuda_wants_prepacked(const struct bsmi_cuda_multiply *c)
{
    return c->gemm >= 0 && (c->keeps_b || bsmi_gemm_reads_prepacked(&bsmi_gemm_instances[c->gemm]));
}

/* Whether the GPU has every kernel that the product needs. */
bool bsmi_cuda_has_kernels(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *product,
                           const struct bsmi_cuda_multiply *multiply);

/* Puts the product's work into its stream (the context's if it names none).  workspace: device memory, workspace_bytes,
 * aligned to BSMI_CUDA_ALIGNMENT.  Fails with BSM_EALIGN for an operand that was to be read as it is and is not
 * aligned. */
bsm_status bsmi_cuda_run(bsm_context *context, const struct bsmi_cuda_multiply *multiply,
                         const struct bsmi_product *product, void *workspace);

/* The same with the context's cached workspace. */
bsm_status bsmi_cuda_multiply(bsm_context *context, const struct bsmi_cuda_multiply *multiply,
                              const struct bsmi_product *product);

/* Puts the kernel that copies an MN-major operand into the stream, the context's if it is NULL. */
bsm_status bsmi_cuda_copy_k_major(bsm_context *context, void *stream, const struct bsmi_matrix *from,
                                  const struct bsmi_matrix *to);

/* Everything between S and D, with pointers into the workspace. */
void bsmi_cuda_fill_epilogue(const struct bsmi_cuda_multiply *multiply, const struct bsmi_product *product,
                             unsigned char *workspace, struct bsmi_epilogue_parameters *epilogue);

/* Prepacked weights (sm90/operand/prepacked_layout.h), or requantized ones, for an instance that reads them; 0 for
 * others, or where the bytes cannot be counted. */
size_t bsmi_cuda_prepacked_bytes(const struct bsmi_cuda_multiply *multiply, const struct bsmi_product *product);

/* The same of weights of 4 bits, in whichever plan. */
size_t bsmi_cuda_nibble_panels_bytes(const struct bsmi_matrix *b);

/* Whether products of this B may be asked for with its prepacked weights alone; if not, the rule that it breaks. */
const char *bsmi_cuda_rule_of_panels_alone(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *product);

/* Puts the kernel that writes codes and scales of product->b_panels to product->b into the product's stream. */
bsm_status bsmi_cuda_unpack(bsm_context *context, const struct bsmi_product *product);

/* Whether BSM_ORDER_SPLIT_K divides K where weights are prepacked: a question of the pair, of K and of groups alone. */
bool bsmi_cuda_has_split_k_order(const struct bsmi_product *product);

/* Steps of K that the slices of prepacked weights have. */
int64_t bsmi_cuda_prepacked_steps(int64_t k);

/* Puts the kernel that makes them into the product's stream.  panels: device memory, aligned to 64 bytes. */
bsm_status bsmi_cuda_pack(bsm_context *context, const struct bsmi_cuda_multiply *multiply,
                          const struct bsmi_product *product, void *panels);

#endif
