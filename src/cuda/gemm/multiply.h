/* Products on a GPU: what is prepared for one, where it lies in the workspace, and the launches. */
#ifndef BSMI_CUDA_MULTIPLY_H
#define BSMI_CUDA_MULTIPLY_H

#include "codes.h"
#include "cuda/driver/device.h"
#include "fp8_requantized.h"
#include "int8.h"
#include "product/product.h"

/* How S is made. */
enum bsmi_cuda_road {
    BSMI_ROAD_TENSOR,                     /* bf16 rows by TMA into tensor cores: a GEMM instance */
    BSMI_ROAD_CODES,                      /* codes and scales by TMA into tensor cores that take them: a GEMM instance */
    BSMI_ROAD_FAST,                       /* refolded into e4m3 codes: a GEMM instance of BSM_COMPUTE_FAST */
    BSMI_ROAD_SIMT                        /* one thread an element, from the operands as they are */
};

/* How an operand gets into a GEMM kernel. */
enum bsmi_cuda_way {
    BSMI_WAY_AS_IT_IS,                    /* TMA reads the caller's rows */
    BSMI_WAY_DECODED,                     /* decoded into bf16 rows in the workspace */
    BSMI_WAY_REPACKED,                    /* rows that TMA cannot describe, copied into the workspace */
    BSMI_WAY_REFOLDED,                    /* e4m3 codes and a factor for 128 of them in the workspace */
    BSMI_WAY_IN_KERNEL                    /* TMA reads the caller's codes; the GEMM kernel decodes them into bf16 */
};

struct bsmi_cuda_operand {
    enum bsmi_cuda_way way;
    int terms;                            /* bf16 numbers for one element */
    int64_t padded_columns, pitch, batch_pitch;      /* of the rows in the workspace, elements */
    bool has_exponents;                   /* and rows that may be left out: scales are e8m0 */
    size_t rows_at, exponents_at, left_out_at;   /* in the workspace; left_out_at: flags of CTAs */
    /* In the kernel: scales as BSM_LAYOUT_128X4, the caller's own or brought into the workspace. */
    bool own_scales;
    bool any_scales;                      /* the caller's own, in any layout; the kernel finds exponents itself, and computes what
                                             is left out of either operand */
    int64_t scale_band_bytes, scale_batch_bytes; /* of 128 rows, of a matrix */
    size_t scales_at;
    struct bsmi_codes codes;              /* on the road of codes, where way and what it says count alone */
    struct bsmi_integers integers;        /* of a product of integers */
    struct bsmi_fast_operand fast;        /* refolded, which has exponents and leaves nothing out */
};

/* Made once for a product; a product that differs in pointers and group_rows alone can run with it. */
struct bsmi_cuda_multiply {
    enum bsmi_cuda_road road;
    int gemm;                             /* number of the instance; -1 on the SIMT road */
    int rest;                             /* where it multiplies integers: the instance, of the same tiles, that multiplies bf16
                                             instead if a row does not fit, which the device finds; else -1 */
    size_t unfit_at;                      /* flags of that */
    bool direct;                          /* D is finished where S is made; else S goes through the workspace */
    struct bsmi_cuda_operand a, b;
    int64_t row_tiles, column_tiles;      /* of the GEMM instance */
    size_t tables_at;                     /* grouped: group_starts, group_tiles */
    size_t sums_at;
    int64_t sums_pitch;
    int parts;                            /* of K, each summed by itself: bsmi_codes_parts */
    bool spread;                          /* each goes to CTAs of its own, and bsmi_finish adds them; else a CTA keeps them at
                                             kept_at */
    int64_t kept;                         /* numbers */
    size_t kept_at;
    size_t workspace_bytes;
    int64_t tiles, waves;                 /* what the plan expects of the GEMM kernel, for people; 0: nothing */
    double expected_nanoseconds;
};

enum { BSMI_CUDA_ALIGNMENT = 256 };       /* of the workspace, and of what lies in it */

/* Numbers of bf16 that stand for one of the operand's: two for an fp16. */
int bsmi_cuda_terms(const struct bsmi_matrix *operand);

/* Whether GEMM kernels that decode B so decode this format, in one of its packings. */
bool bsmi_cuda_decodes(enum bsmi_gemm_codes decodes, bsm_format format);

/* Whether the GEMM kernels can serve the product: operands that TMA can reach, decoded or repacked if need be. */
bool bsmi_cuda_tensor_serves(const struct bsmi_product *product);

/* Whether the instance can serve the product, of whose formats it knows: one that decodes B itself needs it in a form that it can
 * read.
 * If not, and sentence is not NULL, *sentence says what the kernel wants. */
bool bsmi_cuda_gemm_serves(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product, const char **sentence);

/* Clusters' tiles, at most: of groups the device alone knows how many. */
int64_t bsmi_cuda_tiles(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product);

/* Whether the parts of K go to CTAs of their own where so many clusters of the instance run at one time. */
bool bsmi_cuda_spreads(const struct bsmi_gemm_instance *gemm, const struct bsmi_product *product, int64_t clusters);

/* gemm: number of an instance that the GPU has and that serves the product, or -1 for the SIMT road.  Fails with BSM_EOVERFLOW if
 * the workspace cannot be counted. */
bsm_status bsmi_cuda_prepare(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *product, int gemm,
                             struct bsmi_cuda_multiply *multiply);

/* D as the GEMM and SIMT kernels finish it themselves, whatever there is of alpha, beta C, bias and the operands' tensor scales.
 * Kernels that multiply codes quantize it too, but not in GGUF's blocks, which may be wider than their tiles. */
bool bsmi_cuda_finishes_directly(const struct bsmi_product *product, enum bsmi_cuda_road road);

/* The matrix's data, as TMA may read rows of bf16. */
struct bsmi_cuda_rows bsmi_cuda_plain_rows(const struct bsmi_matrix *matrix);

/* Rows of bf16 in the workspace, made by a kernel that decodes. */
static inline bool bsmi_cuda_goes_into_rows(const struct bsmi_cuda_operand *o)
{
    return o->way == BSMI_WAY_DECODED || o->way == BSMI_WAY_REPACKED;
}

/* Whether decoding may leave rows out. */
static inline bool bsmi_cuda_leaves_out(const struct bsmi_cuda_multiply *c) { return c->a.has_exponents || c->b.has_exponents; }

/* Whether its kernel reads B from panels alone. */
static inline bool bsmi_cuda_wants_panels(const struct bsmi_cuda_multiply *c)
{
    return c->gemm >= 0 && bsmi_gemm_reads_prepacked(&bsmi_gemm_instances[c->gemm]);
}

/* Whether the GPU has every kernel that the product needs on this road. */
bool bsmi_cuda_has_kernels(const struct bsmi_cuda_gpu *gpu, const struct bsmi_product *product,
                           const struct bsmi_cuda_multiply *multiply);

/* Puts the product's work into its stream (the context's if it names none).  workspace: device memory, workspace_bytes, aligned to
 * BSMI_CUDA_ALIGNMENT.  Fails with BSM_EALIGN for an operand that was to be read as it is and is not aligned. */
bsm_status bsmi_cuda_run(bsm_context *context, const struct bsmi_cuda_multiply *multiply, const struct bsmi_product *product,
                         void *workspace);

/* The same with the context's cached workspace. */
bsm_status bsmi_cuda_multiply(bsm_context *context, const struct bsmi_cuda_multiply *multiply, const struct bsmi_product *product);

/* Everything between S and D, with pointers into the workspace. */
void bsmi_cuda_fill_epilogue(const struct bsmi_cuda_multiply *multiply, const struct bsmi_product *product,
                             unsigned char *workspace, struct bsmi_epilogue_parameters *epilogue);

/* Panels (sm90/operand/prepacked_layout.h) of B, for an instance that reads them; 0 for others, or where the bytes cannot be counted. */
size_t bsmi_cuda_panels_bytes(const struct bsmi_cuda_multiply *multiply, const struct bsmi_product *product);

/* Puts the kernel that makes them into the product's stream.  panels: device memory, aligned to 64 bytes. */
bsm_status bsmi_cuda_pack(bsm_context *context, const struct bsmi_product *product, void *panels);

/* Where the product's are. */
void bsmi_cuda_give_panels(const struct bsmi_product *product, struct bsmi_mixed_input_parameters *parameters);

/* Put into the queue, in front of a product: amax is 0, and the padding of D's scales. */
bsm_status bsmi_cuda_clear_amax(const struct bsmi_cuda_queue *queue, const struct bsmi_product *product);
bsm_status bsmi_cuda_clear_padding(struct bsmi_cuda_queue *queue, const struct bsmi_product *product);

/* "decoded", "as it is", ... */
const char *bsmi_cuda_way_name(enum bsmi_cuda_way way);

#endif
