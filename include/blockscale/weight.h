/* Weights: the matrices among a checkpoint's tensors, found by the names that quantizers give them, ready to multiply.
 *
 * Sources of the names: openai/gpt-oss (weights.py), NVIDIA Model Optimizer, compressed-tensors, DeepSeek-V3's weights,
 * ggml, torchao.
 * Nothing is copied, inverted or swizzled (but 16-bit scales of fp8, which become fp32): a bsm_matrix over the mapped
 * file says how its codes are packed, where its scales lie, and whether its tensor scale multiplies or divides.
 * docs/guide/checkpoints.md has the names. */
#ifndef BLOCKSCALE_WEIGHT_H
#define BLOCKSCALE_WEIGHT_H

#include "checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose names and layout a matrix has.  X stands for the weight's name. */
typedef enum bsm_convention {
    BSM_CONVENTION_NONE,                 /* no matrix: a vector, a scale, numbers of another kind */
    BSM_CONVENTION_PLAIN,                /* fp32, fp16, bf16, e4m3 or e5m2 without any scale */
    BSM_CONVENTION_GPT_OSS,              /* X_blocks, X_scales; X.blocks, X.scales: MXFP4 */
    BSM_CONVENTION_MODELOPT,             /* X.weight, X.weight_scale, X.weight_scale_2: NVFP4, MXFP4, MXFP6, MXFP8, e4m3
                                            (MXFP8 and e4m3 of compressed-tensors have the same names) */
    BSM_CONVENTION_COMPRESSED_TENSORS,   /* X.weight_packed, X.weight_scale, X.weight_global_scale: NVFP4, MXFP4,
                                            MXFP6_E2M3 */
    BSM_CONVENTION_DEEPSEEK,             /* X.weight, X.weight_scale_inv: e4m3, one fp32 scale for each 128 x 128 */
    BSM_CONVENTION_GGUF,                 /* a tensor of type MXFP4 or NVFP4 (with X.scale, where X.weight has one) */
    BSM_CONVENTION_TORCHAO,              /* X._weight_qdata, X._weight_scale, X._weight_per_tensor_scale: NVFP4, MXFP4,
                                            MXFP6, MXFP8, e4m3 */
    BSM_CONVENTION_COUNT
} bsm_convention;

BSM_API const char *bsm_convention_name(int convention);     /* "gpt_oss" ...; NULL for numbers not listed */
BSM_API int bsm_convention_from_name(const char *name);      /* -1 when not known */

/* One weight.  Tensors of more than two dimensions are batches: all but the last two (of gpt-oss: three) count the
 * matrices. */
typedef struct bsm_weight {
    size_t struct_size;                  /* sizeof(bsm_weight) where the caller was compiled */
    const char *name;                    /* of name_length bytes, without a zero behind it: the start of the codes' own
                                            name */
    int64_t name_length;
    bsm_convention convention;
    bsm_matrix matrix;                   /* points into the checkpoint: read only.  Whole, unless tile_rows is above
                                            0 */
    /* Above 0: the matrix's tensor_scale is NULL, since fp32 scales belong to tiles of it; bsm_weight_tile gives them.
     * The scale of tile (i, j) of matrix b is tile_scales[b * tile_batch_pitch + i * tile_row_pitch + j]; it
     * multiplies. */
    int64_t tile_rows, tile_columns;
    const float *tile_scales;
    int64_t tile_batch_pitch, tile_row_pitch;
    bool gate_up_interleaved;            /* even rows are gates, odd rows ups: bsm_weight_part */
    int64_t codes, scales, tensor_scale, input_scale;        /* the tensors that it is made of; -1: none */
} bsm_weight;

/* The weight whose codes are tensor `index`; convention NONE (and BSM_OK) if that tensor is no matrix.
 * Errors: BSM_EINVAL; BSM_EFILE (its parts do not fit together: the sentence names both tensors); BSM_EALIGN (fp32
 * scales, or numbers of 16 and 32 bits, that lie unaligned in the file); BSM_EUNSUPPORTED (scales of a type that no
 * format here has). */
BSM_API bsm_status bsm_checkpoint_weight(const bsm_checkpoint *checkpoint, int64_t index, bsm_weight *weight);

/* By the weight's name ("model.layers.0.mlp.down_proj") or that of its codes.  Errors: as above; BSM_EINVAL if there is
 * none. */
BSM_API bsm_status bsm_checkpoint_find_weight(const bsm_checkpoint *checkpoint, const char *name, bsm_weight *weight);

typedef enum bsm_weight_half { BSM_WEIGHT_GATE, BSM_WEIGHT_UP } bsm_weight_half;

/* The gates or the ups of a weight whose rows interleave, as a matrix of half the rows over the same bytes.
 * (To keep them together, multiply with weight->matrix and BSM_GATE_INTERLEAVED.)
 * Errors: BSM_EINVAL; BSM_EUNSUPPORTED where gate_up_interleaved is false. */
BSM_API bsm_status bsm_weight_part(const bsm_weight *weight, bsm_weight_half half, bsm_matrix *matrix);

/* A tile as a matrix over the same bytes, with its own tensor scale: rows tile_row * tile_rows and on, columns
 * likewise, of matrix `batch`.  Where tile_rows is 0, tile (0, 0) is the whole matrix of the batch.  A product with all
 * tiles of a row adds up: D = sum over j of A[:, columns of tile j] (tile j)^T, with beta = 1 after the first.
 * Errors: BSM_EINVAL (a tile that is not there). */
BSM_API bsm_status bsm_weight_tile(const bsm_weight *weight, int64_t batch, int64_t tile_row, int64_t tile_column,
                                   bsm_matrix *matrix);

#ifdef __cplusplus
}
#endif
#endif
