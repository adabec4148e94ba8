/* Products.
 *
 *     S[i,j] = sum over k of a[i,k] sA[i,k/blockA] b[j,k] sB[j,k/blockB]
 *     f      = alpha * tA * tB              in double, rounded once to fp32 (a dividing tensor scale divides)
 *     t      = act(f * S + beta * C[i,j] + bias)      in fp32: fma(f, S, fma(beta, C, bias)), without the terms that
 *                                                     are absent; beta == 0 never reads C; an activation is
 *                                                     evaluated in double and rounded once to fp32; gating comes
 *                                                     after it and halves N
 *     D[i,j] = t rounded once to D's type, or to codes and scales in blocks along N
 *
 * Every product of decoded operands is exact; sums are fp32.  Their order on the CPU depends on K, the pair of formats
 * and the CPU's matrix unit alone.  Without one, or where BSM_ORDER_PORTABLE asks for it, it is the portable order.
 * Where both elements are small integers times a power of two (e2m1, e2m3, int8): k is cut into blocks of
 * min(blockA, blockB), each block sums exactly, and blocks are added in ascending order, one fused multiply-add each:
 * S = fma(block sum, combined scale, S).  For every other pair S is a chain of fp32 sums: k ascends,
 * S = fma(a sA, b sB, S).  Both are defined on the exact scaled values, also where these leave fp32's range; S itself
 * is fp32, subnormals included.  The orders of matrix units: with enum bsm_order, below.
 * NaN is always written as the canonical quiet NaN (sign 0) of D's type.  An exact zero sum is +0.
 * All this is so unless `compute` or `order` names something else. */
#ifndef BLOCKSCALE_MATMUL_H
#define BLOCKSCALE_MATMUL_H

#include "quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The formulas are taken at their word: at -infinity, where gelu, gelu_tanh, silu and swiglu_clamped are infinity times
 * zero, they give NaN (as PyTorch's do); at +infinity they give +infinity. */
typedef enum bsm_activation {
    BSM_ACT_NONE,
    BSM_ACT_RELU,                        /* max(x, 0); NaN stays NaN */
    BSM_ACT_GELU,                        /* x (1 + erf(x / sqrt 2)) / 2 */
    BSM_ACT_GELU_TANH,                   /* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
    BSM_ACT_SILU,                        /* x / (1 + exp(-x)) */
    BSM_ACT_SWIGLU_CLAMPED,              /* gpt-oss, gated only: g = min(gate, 7), u = clamp(up, -7, 7),
                                            g / (1 + exp(-1.702 g)) * (u + 1) */
    BSM_ACT_COUNT
} bsm_activation;

/* Gating: of B's N rows half are gates and half are ups; D[i, j] = act(gate_j) * up_j, rounded once, has N/2
 * columns. */
typedef enum bsm_gate {
    BSM_GATE_NONE,
    BSM_GATE_INTERLEAVED,                /* gate_j is column 2j, up_j is column 2j + 1 (gpt-oss) */
    BSM_GATE_SPLIT,                      /* gate_j is column j, up_j is column N/2 + j */
    BSM_GATE_COUNT
} bsm_gate;

/* How S is computed. */
typedef enum bsm_compute {
    BSM_COMPUTE_EXACT,                   /* every product of decoded operands exact, as the top of this file says */
    BSM_COMPUTE_FAST,                    /* operands may be rounded, for a faster unit: below */
    BSM_COMPUTE_TF32,                    /* fp32 operands may be cut to tf32: below */
    BSM_COMPUTE_COUNT
} bsm_compute;

/* BSM_COMPUTE_FAST is a permission.  Hopper uses it for pairs of MXFP8, MXFP6 and MXFP4 (not MXFP4 with itself), but
 * not for groups along K; Blackwell of compute capability 10.x for a sparse B (below); other GPUs, other pairs and the
 * CPU compute as without it.  Whether it is used depends on the device, the formats, K and that alone, and so does
 * every bit of D: not on M, N or neighbours.
 * Blackwell's sparse tensor cores take B 2:4 of MXFP8, MXFP6, MXFP4 or unscaled codes of 4, 6 or 8 bits, beside a dense
 * A of unscaled codes, with K a multiple of 8 and no groups along it.  They do not look at elements of A beside what B
 * leaves out: a NaN or an infinity there counts as nothing, and gives NaN without the permission.  The rest is as in
 * the other kernels on tensor cores, the bound of sums included.
 * Hopper requantizes each row of A and B to FP8 under one power of two, 2^e: the largest scale s among the row's blocks
 * (NaN aside), whatever their elements are, times 2^c, where the format's largest number times 2^-c is e4m3's largest
 * or below by less than a factor of two (c is 0 for e4m3, 7 e5m2, -5 e2m3, -4 e3m2, -6 e2m1).  Each number a becomes
 * the nearest e4m3 number times 2^e, a', ties to even:
 *     |a' - a| <= 2^-4 |a| or 2^-10 2^e, whichever is more; 0 where a / 2^e is a number of e4m3: all of MXFP6 and MXFP4
 *     whose block's scale is s / 512 or more, all of an e4m3 row whose scales are equal, and of an e4m3 block whose
 *     scale is s / 2^d the codes worth 2^(d-6) and more.
 * So a row with one block that is far larger than the rest is coarse in the rest, and no other row is.  NaN stays NaN,
 * and an infinity of e5m2 becomes NaN.  Then products are summed by groups of 256 columns in tensor cores, which keep
 * 13 bits behind the leading one, and the groups' sums in fp32, ascending:
 *     |S - exact S| <= sum |a'b' - ab| + (2^-4.9 + groups 2^-23) sum |a'b'|, and one further rounding where 2^e leaves
 *     fp32's range.
 * The second term is the worst that any data can do to 13 bits in eight steps of 33 numbers; with normal data it is
 * some 2^-16 sum |a'b'| for K = 512 and less for more. */

/* BSM_COMPUTE_TF32 is a permission, too, for products of fp32 by fp32.  GPUs of compute capability 10.x multiply these
 * with it alone, but not groups along K, and not in BSM_ORDER_PORTABLE; other GPUs refuse fp32 operands with it and
 * without it; CPUs, and other pairs everywhere, compute as without it.  The low 13 bits of each number a are cleared,
 * which rounds it toward zero to a':
 *     |a' - a| < 2^-10 |a|, or 2^-136 where a is subnormal; NaN without a bit that is left set is infinity.
 * Tensor cores then add 8 products a'b' at a time to the sum so far, k ascending:
 *     |S - exact S| <= sum |a'b' - ab| + gamma_n sum |a'b'|, n = 6 ceil(K/8)
 * and subnormal sums as with bf16.  docs/guide/numerics.md has the order of sums. */

/* In which order the products of an element of S are added. */
typedef enum bsm_order {
    BSM_ORDER_K,                         /* one order for every M and N, that of the machine for the pair: below */
    BSM_ORDER_ANY,                       /* whichever is faster: bits might depend on M, N and the GPU */
    BSM_ORDER_PORTABLE,                  /* the portable order, the same bits on every machine: top of this file */
    BSM_ORDER_SPLIT_K,                   /* as K, but two parts of K where weights are prepacked for Hopper: below */
    BSM_ORDER_COUNT
} bsm_order;

/* BSM_ORDER_K means the order of sums that the machine's kernels have for the pair of formats.  It depends on that pair
 * and on the CPU features that the context may use (context.h), or on the GPU, and on nothing else: every kernel that
 * may be chosen, for one row of A or for thousands, has its bits.  bsm_plan_describe says which order it is.
 * BSM_ORDER_SPLIT_K is an order of its own, and as much a promise, on Hopper with prepacked weights (b_panels): B of
 * MXFP4 or NVFP4, K-major, packed BSM_PACKING_LOW_FIRST, by A of any format but fp16 (and MXFP4, if B is MXFP4),
 * without groups, K even and more than 768.  With n = ceil(K/384), S is S1 + S2, rounded once to fp32: S1 is the sum of
 * the first 384 ceil(n/2) columns, S2 of the others, each as BSM_ORDER_K has it.  Nothing but K and the formats decides
 * that: every M and N have the same bits.  Sums of fallback rows, which no tensor core makes, are not divided.  The
 * bound is that of BSM_ORDER_K: an element's chains are shorter.  For everything else it means BSM_ORDER_K: weights as
 * they are stored, other machines, prepacked weights alone (b->data NULL) by A with e8m0 scales, operands that
 * BSM_COMPUTE_FAST rounds.
 * BSM_ORDER_PORTABLE means one order for every machine, at the speed of vector units: for results that machines of
 * several kinds must agree on.  Kernels of other orders are not taken for it, forced ones neither.  On a GPU a thread
 * computes an element.
 * On a CPU BSM_ORDER_K means, by the first of these features that the context may use:
 *   BSM_CPU_AMX           AMX's order, for every pair without fp32
 *   BSM_CPU_AVX512_BF16   AVX512_BF16's, for pairs that the portable order sums in fp32 chains, without fp32 and fp16
 *   BSM_CPU_BF16          Arm's, for the same pairs
 * and the portable order for all else.  Units multiply rows of bf16: a number, scaled, times a power of two for its
 * row; fp16 is two such numbers, cut off and the rest (or two halves).  Slices of 32 columns ascend, the last one is
 * filled up with zeros; of a slice each term of A takes a step with each term of B:
 *   AMX           even k from +0 by fused multiply-adds, ascending, odd k likewise; S = S + (even + odd)
 *   AVX512_BF16   pairs of k ascending: S = fma of the second product of the pair, then of the first
 *   Arm           pairs of k ascending: S = S + (first product + second), all rounded to odd
 * What is below 2^-126 on the way becomes a zero.  Then the powers of two are put back, with one rounding.
 *     |S - exact S| <= gamma_n (sum |a||b| + F) + F
 * with T the product of the operands' terms (2 for fp16, else 1) and F = 0 unless an operand is bf16:
 *   AMX           n = 16 + T ceil(K/32)       F = 34 T ceil(K/32) 2^-126
 *   AVX512_BF16   n = 1 + T K                 F = T K 2^-126
 *   Arm           n = 1 + 2 T ceil(K/2)       F = 4 T ceil(K/2) 2^-126
 * Rows that a power of two does not bring into bf16's reach are fallback rows: e8m0 formats' whose numbers span more
 * than 80 binades, or leave [2^-40, 2^41) where the other operand is bf16, and rows of bf16 with a subnormal number.
 * Sums of a fallback row of A or of B have the portable order and its bound.  docs/guide/numerics.md has all of it. */

/* BSM_ORDER_ANY is a permission to sum stretches of K by themselves and to add their sums, in fp32.  No kernel of this
 * version uses it: all have the bits of BSM_ORDER_K.  One that did would give the same bits each time for the same
 * description on one GPU, keep exact products exact, and hold the bound of BSM_ORDER_K and eight roundings:
 *     |S - exact S| <= (gamma_n + 8 2^-24) sum |a||b|, n as below. */

/* What a vector is indexed by. */
typedef enum bsm_per {
    BSM_PER_TENSOR,                      /* one number */
    BSM_PER_ROW,                         /* M of them (grouped: one per row of A, all groups together) */
    BSM_PER_COLUMN,                      /* N of them, N counted before gating */
    BSM_PER_BATCH,                       /* one per matrix of the batch, or per group */
    BSM_PER_COUNT
} bsm_per;

/* One product.  A is M x K, B is N x K, each K- or MN-major or sparse (matrix.h), with the same bits; C and D are M x N
 * (D: M x N/2 when gated).
 *   a, b     any two formats.  Batch: a->batch and b->batch are equal, or one of them is 1 and is broadcast; scales
 *            have the batch of their operand.
 *   alpha    NULL: 1.  beta NULL: 0.  Finite or not, taken as they are; beta == 0 never reads C.
 *   c        fp32, bf16 or fp16, unscaled, no tensor scale; NULL only if beta is absent or 0.  Batch 1 is broadcast.
 *            May be D itself (same data, same format, same pitches) when not gated; no other overlap is allowed.
 *   bias     NULL: none; bias_per must be set, to PER_ROW or PER_COLUMN; bias_batch_pitch elements lie between the
 *            biases of two batches (groups), 0: all share one.  Grouped PER_ROW biases are indexed by the row of A.
 *   d        fp32, bf16, fp16, unscaled e4m3 or e5m2, or a block format with its scales in any layout.  A tensor scale
 *            of d is read: codes hold t / tensor_scale.  Batch is that of the product.
 *   d_recipe, d_no_saturate   as in bsm_quantize_options, without FOUR_OVER_SIX and MSE; d_nonfinite likewise.
 *   amax     NULL, or receives the largest |t| of the whole product before it was rounded to D: NaN if any t is NaN; 0
 *            for an empty D.
 *   groups   0: not grouped.  Else A, C and D hold the rows of all groups one after the other, group_rows[g] >= 0 rows
 *            each, their sum is M; b->batch is groups, and group g multiplies with matrix g of B.  a, c, d have batch
 *            1.
 *   group_columns   NULL, or, in place of group_rows, groups along K, as gradients of experts' weights want
 *            them: A and B hold the columns of all groups one after the other, group_columns[g] >= 0 of them each,
 *            their sum is K. a and b have batch 1, D has the batch `groups`, and matrix g of it is the product of the
 *            columns of group g; all else (C, bias, alpha per batch) is as for such a batch, bits are those of a
 *            product of these columns alone (on GPUs but Hopper: of one in the CPU's order of sums), and a group
 *            without columns has S = 0.  Groups begin with a block: of the numbers that are not 0 all but the last are
 *            multiples of 32 (64: NVFP4 in GGUF's blocks, sparse blocks of 32).  Groups of other sizes are filled up
 *            with columns of zeros in A and B before these are quantized.  B is read as it is stored.
 *   compute  EXACT, or the permission FAST.
 *   order    K, the permission ANY, PORTABLE, or SPLIT_K.
 *   stream   of a context with a GPU: CUstream (cudaStream_t) that the work is put into; NULL: the context's.  CPU
 *            contexts: NULL.
 *   b_panels NULL, or what bsm_plan_pack_b wrote of this B (prepacked weights), aligned to 64 bytes: read in its place
 *            where the product's kernel reads such, with the same bits (BSM_ORDER_ANY on a GPU: within its bound;
 *            BSM_ORDER_SPLIT_K: in that order).  b is still given, and read where the kernel reads others (on compute
 *            capability 10.x its codes always).  On a GPU they lie in device memory, and nothing checks that they are
 *            this B's.  On other GPUs of NVIDIA B may be these alone: b describes it, and b->data and b->scales are
 *            NULL.  See bsm_plan_unpack_b.
 * Sizes: M, N, K may be 0; K = 0 gives S = 0.
 * On a GPU (device.h) all pointers are device pointers and fp32 operands are refused (but BSM_COMPUTE_TF32); sums are
 * fp32 too, in an order of their own: bsm_plan_describe says it.  Kernels on tensor cores: |S - exact| is at most
 * gamma_n of sum |a||b|, n = 10 ceil(K/16) (times 2 for each fp16 operand) or K, whichever is more; one further
 * rounding where a row has an exponent of its own.  A bf16 operand is taken as it is: then sums below 2^-126 are cut
 * toward zero to multiples of 2^-149, once for each 16 columns, a cut zero is +0, and in sum |a||b| a subnormal bf16
 * counts as 2^-126 (gfx950: rounded up or down, which is not published, once for each term of an operand and 32
 * columns).  Products of one term are exact but for that.  Blackwell of compute capability 10.x takes fp16 by fp16 as
 * it is, too: without that 2, and in sum |a||b| a subnormal fp16 counts as 2^-14.
 * Blackwell multiplies codes of MXFP8, MXFP6, MXFP4, NVFP4 and unscaled fp8, fp6 and fp4 by each other as they are
 * stored, and their scales with them: sums below 2^-126 are cut there as those with a bf16 operand.  Where both are
 * of 4 bits (MXFP4 of either block with either; unscaled e2m1, of scale 1, with MXFP4 or itself; NVFP4 with NVFP4)
 * its tensor cores also cut a sum behind 2^-35 of the largest product of two scales among 64 columns, even if all
 * elements under these are zeros.  No sum |a||b| knows of that: the bound of these pairs on Blackwell has besides
 *     2^-32 sum of sA sB, once for every 16 columns, the last ones included.
 * It is nothing beside the rest unless a block of zeros, or blocks whose numbers meet zeros alone, have a scale far
 * above the others': a block of zeros under 2^40 takes a sum of 48 away.  bsm_quantize gives blocks of zeros the scale
 * of code 0, which takes nothing. */
typedef struct bsm_matmul {
    size_t struct_size;                  /* sizeof(bsm_matmul) where the caller was compiled */
    const bsm_matrix *a, *b;
    const float *alpha;
    bsm_per alpha_per;
    const float *beta;
    const bsm_matrix *c;
    const void *bias;
    bsm_real bias_type;                  /* fp32, bf16 or fp16 */
    bsm_per bias_per;
    int64_t bias_batch_pitch;
    bsm_activation activation;
    bsm_gate gate;
    const bsm_matrix *d;
    bsm_recipe d_recipe;
    bsm_nonfinite d_nonfinite;
    bool d_no_saturate;
    float *amax;
    int64_t groups;
    const int64_t *group_rows;
    void *stream;
    const void *b_panels;
    bsm_compute compute;
    bsm_order order;
    const int64_t *group_columns;        /* with groups > 0: they are along K, and group_rows is NULL */
} bsm_matmul;

/* BSM_OK if bsm_multiply would serve this description; else the status, and the sentence in bsm_last_error.
 * Reads descriptions and, in host memory, group_rows or group_columns; no other data. */
BSM_API bsm_status bsm_supported(bsm_context *context, const bsm_matmul *product);

/* Computes the product with a workspace that the context keeps and grows.
 * Threads: calls on one context at the same time are safe; they take turns at the cached workspace.  For products that
 * should overlap, use plans with workspaces of their own, or one context each.
 * The same description and data give the same bits for any number of threads, any M, any N, and in any batch or group
 * (but for BSM_ORDER_ANY), on machines of one kind (BSM_ORDER_PORTABLE: on all).
 * On a GPU: puts the work into the stream and returns; not while the stream is being captured.
 * Errors: as bsm_plan_create, and BSM_EDEVICE; D is untouched after BSM_EINVAL, BSM_EALIGN, BSM_EOVERFLOW,
 * BSM_EUNSUPPORTED, BSM_ENOMEM. */
BSM_API bsm_status bsm_multiply(bsm_context *context, const bsm_matmul *product);

/* What was chosen for one description: which kernel, why, and the workspace it needs. */
typedef struct bsm_plan bsm_plan;

/* Errors: BSM_EINVAL, BSM_EALIGN, BSM_EOVERFLOW, BSM_EUNSUPPORTED, BSM_ENOMEM; *plan is NULL then. */
BSM_API bsm_status bsm_plan_create(bsm_context *context, const bsm_matmul *product, bsm_plan **plan);
BSM_API void bsm_plan_destroy(bsm_plan *plan);

/* Bytes of workspace that bsm_plan_run wants, aligned to 64 bytes (on a GPU: device memory, aligned to 256).  May be 0.
 * It must not overlap anything that the product reads or writes. */
BSM_API size_t bsm_plan_workspace_bytes(const bsm_plan *plan);

/* Runs the plan on a description that differs from the plan's only in pointers, group_rows (their sum stays M) and
 * group_columns (K).
 * Optional pointers (c, bias, alpha, beta, amax, tensor scales) may be NULL in one and given in the other.
 * Allocates nothing.  A plan may run in several threads at once, each with its own workspace.
 * On a GPU: puts the work into the stream and returns, waits for nothing, and may be captured into a graph.  A plan
 * that was made for operands aligned to 16 bytes (on GPUs of compute capability 12.x to 4 or 8) may read them as they
 * are, and then asks the same of later ones; amax and d->tensor_scale are given in both descriptions or in neither.
 * Errors: BSM_EINVAL (another shape or format than the plan's; workspace NULL or too small), BSM_EALIGN, BSM_EDEVICE,
 * BSM_EUNSUPPORTED (a forced kernel that reads prepacked weights alone, without b_panels). */
BSM_API bsm_status bsm_plan_run(const bsm_plan *plan, const bsm_matmul *product, void *workspace,
                                size_t workspace_bytes);

/* Prepacked weights: B once in the order in which the plan's kernel reads it, for every later product with the same B,
 * pair of formats, gate, compute and kernel, whatever its M.  Bytes that bsm_plan_pack_b writes: 0 where the kernel
 * reads B as it is stored (CPU kernels for few rows of A, up to 8, but one row by MXFP4, MXFP8 or NVFP4 with AMX; AMX's
 * for more rows; portable ones; groups along K; GPUs but Hopper, those of compute capability 10.x and 12.x and gfx950;
 * on the former three more rows of A than 4096 (12.x: some 64, 10.x: as many as its model says; not for
 * BSM_ORDER_SPLIT_K) and other weights than MXFP4 and NVFP4, unless BSM_COMPUTE_FAST rounds them: then B is kept as it
 * was rounded; on gfx950 other pairs than docs/guide/hip.md has) or the bytes cannot be counted.
 * Of a sparse B, and of an MN-major one that kernels do not read as it is stored (those of compute capability 10.x do
 * where bsm_plan_describe says so), a K-major, dense copy is written, for whichever kernel: it is not made again for
 * each product.  Kernels' own orders are for weights that are given K-major and dense.
 * What is written serves builds of the same version on machines that choose the same kernel; docs/design/prepacked.md
 * has its layouts. */
BSM_API size_t bsm_plan_b_panels_bytes(const bsm_plan *plan);

/* Packs product->b; the product may differ from the plan's as in bsm_plan_run.  panels: bsm_plan_b_panels_bytes of
 * them, aligned to 64, overlapping nothing that a product with them reads or writes.  To be made again when B changes.
 * Allocates nothing.
 * On a GPU: device memory; puts the work into product->stream and returns. One layout serves every M of the same pair
 * of formats and the same compute. There products read prepacked weights while kernels in front of them in their stream
 * still run: those that are written otherwise than by this function or by a copy of CUDA's have to be complete before
 * such kernels begin.
 * Errors: BSM_EINVAL, BSM_EALIGN, BSM_EUNSUPPORTED (a plan whose kernel reads no prepacked weights). */
BSM_API bsm_status bsm_plan_pack_b(const bsm_plan *plan, const bsm_matmul *product, void *panels, size_t bytes);

/* Prepacked weights alone, on GPUs of NVIDIA but those of compute capability 10.x, where they are B's scales; MXFP4
 * and NVFP4 (low nibble first, K even), but for groups along K and where BSM_COMPUTE_FAST rounds B: the bytes of codes
 * and scales with K rounded up to 384 and N to 64, instead of twice as many.  A plan is made for them where
 * product->b_panels is given and b->data and b->scales are NULL; b_panels may be any address then, aligned as in a
 * run, and runs give b_panels alone, too.  The bits are those with codes.  Where the plan takes another (more rows of A
 * than 4096, A with e8m0 scales, BSM_ORDER_PORTABLE, other GPUs than those of bsm_plan_b_panels_bytes), codes and
 * scales are unpacked into the workspace, which has room for them, in front of each product.
 * Rows of B that are fallback rows (MXFP4, enum bsm_order: numbers outside [2^-40, 2^41) where A is bf16, as was said
 * when the weights were packed, or that span more than 80 binades) are not in them: their columns of S are NaN.
 *
 * bsm_plan_unpack_b writes product->b's codes and scales, in any scale layout, made of product->b_panels; padding
 * stays.  They are those that were packed, but: signs of NVFP4's scales are 0; in MXFP4 blocks of zeros the scale is
 * that of bsm_quantize, code 0, where it was too small to be kept, and another too large one is a smaller one; the
 * scales of fallback rows are NaN.  So whoever drops the codes compares once.  The product may differ from the plan's
 * as in bsm_plan_run.  Puts the work into product->stream and returns.
 * Errors: BSM_EINVAL, BSM_EALIGN, BSM_EUNSUPPORTED (weights that cannot be unpacked; other contexts). */
BSM_API bsm_status bsm_plan_unpack_b(const bsm_plan *plan, const bsm_matmul *product);

/* One line for a person: kernel, tile, threads, order of sums, and the reason.  Writes at most `bytes` bytes, always
 * ends with a zero byte if bytes > 0, returns the length it wanted to write (like snprintf). */
BSM_API size_t bsm_plan_describe(const bsm_plan *plan, char *text, size_t bytes);

/* The name of kernel number `index` of this build, whether or not this machine can run it; NULL behind the last. */
BSM_API const char *bsm_kernel_name(int index);
/* true if kernel `index` runs on this context and serves this pair of formats, with BSM_COMPUTE_EXACT and
 * BSM_ORDER_K.  Forced, it computes in its own order, which may not be that of the kernel that would be chosen. */
BSM_API bool bsm_kernel_serves(const bsm_context *context, int index, bsm_format a, bsm_format b);
/* Makes every later plan of this context use kernel `index`; -1 lets the library choose again.  For tests and
 * measurements.  What the kernel cannot serve then fails with BSM_EUNSUPPORTED, and the sentence names the rule that it
 * breaks: another kernel is never taken instead.  Of a kernel that reads prepacked weights alone plans are made as of
 * others, and products have to give b_panels. */
BSM_API bsm_status bsm_context_force_kernel(bsm_context *context, int index);

/* S itself, for any pair of formats, exact and rounded once to the type of `sum` (fp32, fp16, bf16 or fp64), to nearest
 * even; tensor scales, alpha and beta have no part in it.  NaN by rule: a NaN operand or scale, infinity times zero, or
 * infinities of both signs give NaN; otherwise an infinity gives that infinity.  An exact zero is +0.
 * magnitude: NULL, or receives the sum of |a||b| in the same way: the unit of error is eps * magnitude.
 * Shapes: a M x K, b N x K, sum and magnitude M x N with any strides.  Batches: refused, pass one matrix at a time.
 * Aliasing: refused, as in bsm_quantize.  Allocates scratch from the context.  Errors: BSM_EINVAL, BSM_EALIGN,
 * BSM_EOVERFLOW, BSM_EUNSUPPORTED, BSM_ENOMEM. */
BSM_API bsm_status bsm_matmul_exact(bsm_context *context, const bsm_matrix *a, const bsm_matrix *b,
                                    const bsm_real_matrix *sum, const bsm_real_matrix *magnitude);

BSM_API const char *bsm_activation_name(int activation);
BSM_API int bsm_activation_from_name(const char *name);  /* -1 when not known */
BSM_API const char *bsm_compute_name(int compute);       /* "exact", "fast", "tf32"; NULL: not listed */
BSM_API int bsm_compute_from_name(const char *name);     /* -1 when not known */
BSM_API const char *bsm_order_name(int order);           /* "k", "any", "portable"; NULL: not listed */
BSM_API int bsm_order_from_name(const char *name);       /* -1 when not known */

#ifdef __cplusplus
}
#endif
#endif
