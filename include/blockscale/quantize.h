/* Real numbers into codes and scales, and back. */
#ifndef BLOCKSCALE_QUANTIZE_H
#define BLOCKSCALE_QUANTIZE_H

#include "matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the scale of a block follows from its largest magnitude m.  max and emax belong to the element: e4m3 448 and 8,
 * e5m2 57344 and 15, e3m2 28 and 4, e2m3 7.5 and 2, e2m1 6 and 2, int8 1.984375 and 0.  docs/guide/recipes.md has the
 * details. */
typedef enum bsm_recipe {
    BSM_RECIPE_DEFAULT,                  /* e8m0: RCEIL; ue4m3: NEAREST; unscaled: none */
    BSM_RECIPE_FLOOR,                    /* e8m0: floor(log2 m) - emax: OCP MX v1.0, torchao's default, oneDNN */
    BSM_RECIPE_RCEIL,                    /* e8m0: ceil(log2(m / max)), exact: NVIDIA, TransformerEngine, cuBLAS */
    BSM_RECIPE_CEIL,                     /* e8m0: ceil(log2 m) - emax */
    BSM_RECIPE_EVEN,                     /* e8m0: floor(log2(m rounded half up to the element's mantissa)) - emax:
                                            Quark, compressed-tensors */
    BSM_RECIPE_NEAREST,                  /* ue4m3: m / (6 t) rounded to nearest even, t the tensor scale: NVFP4's two
                                            levels */
    BSM_RECIPE_FOUR_OVER_SIX,            /* ue4m3: of NEAREST and m / (4 t), the one with less squared error; NEAREST on
                                            a tie */
    BSM_RECIPE_MSE,                      /* e8m0: of FLOOR's scale and RCEIL's, the one with less squared error; RCEIL's
                                            on a tie */
    BSM_RECIPE_COUNT
} bsm_recipe;

typedef enum bsm_nonfinite {
    BSM_NONFINITE_PROPAGATE,             /* a block with NaN or infinity gets the NaN scale code; its elements are code
                                            0 */
    BSM_NONFINITE_SATURATE               /* m is taken over finite elements; infinity becomes +-max, NaN what its
                                            encoder gives */
} bsm_nonfinite;

/* Another project's bits: its scales and elements with all of its roundings, and its slips, for blocks of finite
 * numbers.  Quantize from the type that the project sees: compressed-tensors computes in it (bf16 weights in bf16).
 * docs/guide/recipes.md says what each does, and bsm_preset_checked what the bits were compared with. */
typedef enum bsm_preset {
    BSM_PRESET_NONE,                     /* the recipe, exactly */
    BSM_PRESET_OCP,                      /* OCP MX v1.0: MXFP8, MXFP6, MXFP4 */
    BSM_PRESET_TORCHAO,                  /* MXFP8, MXFP6, MXFP4 (its default, floor); NVFP4, whose tensor scale
                                            multiplies */
    BSM_PRESET_TRANSFORMER_ENGINE,       /* MXFP8; NVFP4, whose tensor scale divides */
    BSM_PRESET_MODELOPT,                 /* MXFP8_E4M3, MXFP4; NVFP4, whose tensor scale multiplies */
    BSM_PRESET_COMPRESSED_TENSORS,       /* MXFP8_E4M3, MXFP6_E2M3, MXFP4; NVFP4, whose tensor scale divides */
    BSM_PRESET_GGML,                     /* MXFP4, NVFP4, without a tensor scale */
    BSM_PRESET_FLASHINFER,               /* NVFP4, whose tensor scale divides */
    BSM_PRESET_COUNT
} bsm_preset;

typedef enum bsm_tensor_scale_source {
    BSM_TENSOR_SCALE_GIVEN,              /* read from *tensor_scale of the destination; NULL there means none */
    BSM_TENSOR_SCALE_COMPUTED            /* computed from the largest finite magnitude and written to *tensor_scale */
} bsm_tensor_scale_source;

typedef struct bsm_quantize_options {
    size_t struct_size;                  /* sizeof(bsm_quantize_options) where the caller was compiled */
    bsm_recipe recipe;
    bsm_rounding rounding;               /* of elements */
    uint64_t seed;                       /* of stochastic rounding */
    bsm_nonfinite nonfinite;
    bsm_tensor_scale_source tensor_scale;
    bool no_saturate;                    /* unscaled e4m3 and e5m2: overflow gives NaN or infinity instead of the
                                            largest value */
    int64_t block_rows;                  /* rows that share a block's scale: 0 or 1, or the block's length (16x16, 32x32
                                            squares) */
    bsm_preset preset;                   /* instead of a recipe; rounding is then NEAREST_EVEN, and nonfinite
                                            PROPAGATE */
    /* Policies for block formats, none by default.  A block's largest magnitude (for a computed tensor scale, the
     * tensor's) is taken as at least clamp_low and at most clamp_high: larger numbers are cut.  Scale codes below
     * smallest_scale become it.  Blocks of zeros are no exception.  Both may be 0: no bound. */
    float clamp_low, clamp_high;
    uint8_t smallest_scale;
} bsm_quantize_options;

typedef struct bsm_quantize_stats {
    size_t struct_size;                  /* sizeof(bsm_quantize_stats) where the caller was compiled */
    int64_t elements, blocks;
    int64_t saturated_elements;          /* finite magnitudes beyond the largest code under their scale, cut to it */
    int64_t flushed_blocks;              /* blocks with a nonzero element whose codes are all zero, or whose scale is
                                            zero */
    int64_t nan_blocks;                  /* blocks that got the NaN scale */
    double signal, noise;                /* sum of x^2, and of (x - decoded)^2, over elements finite on both sides */
    double snr_db;                       /* 10 log10(signal / noise); +inf when noise is 0 */
    double amax;                         /* largest finite magnitude */
    int64_t scale_histogram[256];        /* by scale code */
} bsm_quantize_stats;

/* Quantizes source into the codes and scales of `destination` (its format, packing, scale layout, pitches).
 * Numbers: fp32, fp16, bf16 and fp64, rounded once from what the source holds; with a preset, and on a GPU, no fp64.
 * Shapes: equal rows, columns, batch.  Aliasing: refused, to the byte (strided views with no stride of 1
 * count as everything from their first byte to their last).  Zero sizes: nothing but the padding is written.
 * Element = RNE(x / (scale * tensor scale)), the quotient exact (rounded once), saturating.
 * Zero block: scale code 0 (e8m0: 2^-127), elements +-0; never a NaN scale.
 * Unscaled destinations are converted element by element, divided by the tensor scale if there is one.
 * A computed tensor scale t makes the largest magnitude the largest that the format holds: t = amax / (448 * 6) for
 * NVFP4 (256 * 6 for FOUR_OVER_SIX, whose scales need room to grow by half), amax / max for unscaled codes of 4 to 8
 * bits, kept within [2^-126, FLT_MAX]; 1 when amax is 0; a divisor is (448 * 6) / amax, rounded once, in the same way.
 * e8m0 formats, bf16, fp16 and fp32 refuse COMPUTED by name.
 * Squares (block_rows): the largest magnitude m is that of up to block_rows rows, from a row number that is a multiple
 * of it, and the scale is stored for each of them; a matrix and its transpose quantize to the same values.  Statistics
 * count blocks row by row.  Not with FOUR_OVER_SIX and MSE, which choose by the error of one row.
 * With a preset, scales and elements are the project's, zero blocks too; all else is as without.
 * options may be NULL (all defaults), stats may be NULL.
 * Threads: runs on the context's; the bits do not depend on how many, nor on the caller's floating-point mode.
 * On a GPU (device.h): the same bits, put into the context's stream; stats, presets, MSE and fp64 sources are refused.
 * Errors: BSM_EINVAL, BSM_EALIGN, BSM_EOVERFLOW, BSM_EUNSUPPORTED; the destination is untouched then.  BSM_EDEVICE. */
BSM_API bsm_status bsm_quantize(bsm_context *context, const bsm_real_matrix *source,
                                const bsm_quantize_options *options, const bsm_matrix *destination,
                                bsm_quantize_stats *stats);

/* A matrix and its transpose from one pass over the numbers: `rows` as bsm_quantize of source gives it, and `columns`,
 * whose rows are source's columns, as bsm_quantize gives it for the source with its rows and strides exchanged.  The
 * same bits as these two calls.  The formats may differ; options go for both.  A computed tensor scale is read from all
 * numbers first, once for each destination.  Squares are refused: one scale serves both axes there.
 * Aliasing: rows, columns and source do not overlap, nor the tensor scales where they are computed.
 * Threads, errors as bsm_quantize; nothing is written on an error. */
BSM_API bsm_status bsm_quantize_both(bsm_context *context, const bsm_real_matrix *source,
                                     const bsm_quantize_options *options, const bsm_matrix *rows,
                                     const bsm_matrix *columns);

/* The value of every element, element * scale * tensor scale (or / it), exact and rounded once to destination's type.
 * Values beyond that type's range become infinity.  Shapes, aliasing, threads, errors as bsm_quantize. */
BSM_API bsm_status bsm_dequantize(bsm_context *context, const bsm_matrix *source, const bsm_real_matrix *destination);

/* Rotates blocks of `size` numbers along the columns: y = H (signs * x) / sqrt(size), H the Hadamard matrix of
 * Sylvester's order (H[i][j] is -1 to the number of ones that i and j have in common).  Rotating both operands of a
 * product in the same way leaves the product as it is, and spreads outliers over their block before quantizing.
 *   size         16, 32, 64 or 128; the columns are a multiple of it.
 *   signs        size numbers, each 1 or -1, the same for every block; NULL: all 1.
 *   inverse      x = signs * (H y) / sqrt(size): back, but for rounding.
 *   destination  of the same shape; it may be the source itself (same data, type and strides), otherwise overlap is
 *                refused.
 * Each number is a sum of doubles, in the order of the fast transform (neighbours first), times 1 / sqrt(size), rounded
 * once to the destination's type.  NaN and infinity spread over their block, as sums do.
 * Threads: runs on the context's; the bits do not depend on how many.  CPU contexts only.
 * Errors: BSM_EINVAL, BSM_EALIGN, BSM_EOVERFLOW, BSM_EUNSUPPORTED; the destination is untouched then. */
BSM_API bsm_status bsm_hadamard(bsm_context *context, const bsm_real_matrix *source, int size, const int8_t *signs,
                                bool inverse, const bsm_real_matrix *destination);

typedef struct bsm_merge_stats {
    size_t struct_size;                  /* sizeof(bsm_merge_stats) where the caller was compiled */
    int64_t scales, rounded_scales;      /* all of them, and those that the new tensor scale cannot express exactly */
    int64_t flushed_scales;              /* that were above 0 and became 0 */
    double worst_error;                  /* largest |merged - exact| / exact of a block's scale; 1 for a flushed one */
} bsm_merge_stats;

/* Block scales of several NVFP4 matrices (the gate and up projections of a fused layer, say) under one tensor scale.
 * The merged tensor scale is the one with the largest factor (the largest multiplier, the smallest divisor), so that
 * every block scale is multiplied by a factor <= 1 and none overflows: scale code * own / merged, exact, rounded once
 * to nearest even.
 *   parts         count of them; equal columns and tensor_scale_use, batch 1, scales in any layout.  Only scales are
 *                 read.
 *   scales        gets the codes of all rows, part by part, ceil(columns / 16) a row, linear and tight.  No overlap
 *                 with the parts'.
 *   tensor_scale  gets the merged one, which is used as those of the parts are.
 * NaN scales stay.  stats may be NULL.  Nothing is lost by multiplying part by part instead, or by a bsm_matmul with
 * alpha_per BSM_PER_COLUMN; a merged matrix is for callers who need a single tensor scale.
 * Errors: BSM_EINVAL, BSM_EALIGN, BSM_EOVERFLOW, BSM_EUNSUPPORTED (parts of another format); nothing is written
 * then. */
BSM_API bsm_status bsm_tensor_scales_merge(const bsm_matrix *const *parts, int64_t count, uint8_t *scales,
                                           float *tensor_scale, bsm_merge_stats *stats);

BSM_API const char *bsm_recipe_name(int recipe);
BSM_API int bsm_recipe_from_name(const char *name);      /* -1 when not known */
BSM_API const char *bsm_preset_name(int preset);
BSM_API int bsm_preset_from_name(const char *name);      /* -1 when not known */
/* What a preset's bits were compared with, or that its source alone was read; NULL for numbers not listed. */
BSM_API const char *bsm_preset_checked(int preset);

#ifdef __cplusplus
}
#endif
#endif
