/* Whether scales, as a layout has them, can be taken by an instruction without being moved first.
 *
 * A kernel copies a piece of the buffer to where its instruction reads, byte for byte.  Then the layout alone decides
 * what the instruction sees: whether it fits is a property of layout and shape, and of no data.
 * docs/guide/layouts.md, "Does it fit the copy", has every rule with its section of the manual, and which layout fits
 * what. */
#ifndef BLOCKSCALE_SCALE_COPY_H
#define BLOCKSCALE_SCALE_COPY_H

#include "scale_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bsm_scale_copy {
    BSM_SCALE_COPY_TCGEN05_CP,           /* tcgen05.cp.32x128b.warpx4: 128 rows x 4 columns from shared memory to where
                                            tcgen05.mma reads scales (sm_100a, sm_103a) */
    BSM_SCALE_COPY_TMA,                  /* cp.async.bulk.tensor: a rectangle of scales by a map of bytes (sm_90 on) */
    BSM_SCALE_COPY_LDMATRIX,             /* ldmatrix.m8n8.b16: four scales of a row to each lane, where mma.sync with
                                            .block_scale takes those of B (sm_120a) */
    BSM_SCALE_COPY_MFMA_16,              /* a load of 32 bits a lane, for v_mfma_scale_f32_16x16x128_f8f6f4 (gfx950) */
    BSM_SCALE_COPY_MFMA_32,              /* the same for v_mfma_scale_f32_32x32x64_f8f6f4 */
    BSM_SCALE_COPY_COUNT
} bsm_scale_copy;

/* "tcgen05.cp", "tma", "ldmatrix", "mfma_16", "mfma_32"; NULL for other numbers.  And back: -1 for other names. */
BSM_API const char *bsm_scale_copy_name(int copy);
BSM_API int bsm_scale_copy_from_name(const char *name);

#define BSM_TENSOR_RANK 5

/* What was found.  Numbers that a copy does not have are 0. */
typedef struct bsm_scale_fit {
    size_t struct_size;                  /* sizeof(bsm_scale_fit) where the caller was compiled */
    bool fits;
    int64_t rows, columns;               /* scales that one copy takes; TMA: that the smallest box holds */
    int64_t stride;                      /* tcgen05.cp: the matrix descriptor's stride dimension byte offset; there is
                                            no swizzle, and the leading dimension's counts for nothing */
    int lane;                            /* ldmatrix: row n of 8 is in lane 4 n + this, for the first 4 columns of the
                                            first 8 rows: the thread selector of B */
    int byte;                            /* MFMA: of the lane's 32 bits, for the first rows and columns: op_sel */
    int rank;                            /* TMA: of the tensor of bytes.  Where it does not fit: of the nearest one */
    int64_t dimension[BSM_TENSOR_RANK], tensor_stride[BSM_TENSOR_RANK];   /* [0] is 1 byte; as cuTensorMapEncodeTiled
                                                                             takes them: from [1] on */
    int64_t box[BSM_TENSOR_RANK];        /* the smallest */
    char text[512];                      /* fits: how the copy is told of it.  Otherwise: the rule that breaks, the
                                            first scale that breaks it, and the manual's section */
} bsm_scale_fit;

/* Fills in *fit.  The buffer begins at a multiple of 16 bytes (of 4 for MFMA).  rows, columns > 0.
 * Errors: BSM_EINVAL (an argument, parameters of the layout), BSM_EOVERFLOW.  That it does not fit is no error. */
BSM_API bsm_status bsm_scale_layout_fits(const bsm_scale_layout *layout, int64_t rows, int64_t columns,
                                         bsm_scale_copy copy, bsm_scale_fit *fit);

/* How the layout moves rows and columns, as nested loops: "rows (32, 4, 2) : (16, 4, 1024), columns (4, 2) : (1, 512)"
 * says that row i + 32 j + 128 k lies at 16 i + 4 j + 1024 k.  Writes at most `bytes` bytes, always ends with a zero
 * byte if bytes > 0; *length, unless NULL: the length it wanted to write.  rows, columns > 0.
 * Errors: as above. */
BSM_API bsm_status bsm_scale_layout_modes(const bsm_scale_layout *layout, int64_t rows, int64_t columns, char *text,
                                          size_t bytes, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
