/* Where the scale of (row r, scale column s) lies.
 *
 * A scale layout is a property of the data, never of a tuning choice.  Scales are bytes (e8m0 or ue4m3); `rows` are the
 * rows of the matrix and `columns` is ceil(K / block).  docs/guide/layouts.md has every formula with its source and a
 * picture. */
#ifndef BLOCKSCALE_SCALE_LAYOUT_H
#define BLOCKSCALE_SCALE_LAYOUT_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bsm_layout {
    BSM_LAYOUT_LINEAR,                   /* row-major, any pitch: what checkpoints store */
    BSM_LAYOUT_128X4,                    /* packed 512-byte blocks, "32_4_4": cuBLASLt, CUTLASS, tcgen05 */
    BSM_LAYOUT_8X4,                      /* small-M decode kernels of TensorRT-LLM */
    BSM_LAYOUT_TILES,                    /* contiguous tiles [rows/tile_rows, columns/tile_columns, tile_rows,
                                            tile_columns] */
    BSM_LAYOUT_CDNA4_16 = 5,             /* gfx950, MFMA with non-K dimension 16 */
    BSM_LAYOUT_CDNA4_32,                 /* gfx950, MFMA with non-K dimension 32 */
    BSM_LAYOUT_AITER,                    /* CDNA4_16 with rows padded to 256: AITER's shuffle_scale */
    BSM_LAYOUT_DEEPGEMM,                 /* packed int32 words, MN-major: DeepGEMM on sm_100 */
    BSM_LAYOUT_GGUF_MXFP4,               /* inside GGUF blocks of type 39: 17 bytes, scale first */
    BSM_LAYOUT_GGUF_NVFP4,               /* inside GGUF blocks of type 40: 36 bytes, four scales first */
    BSM_LAYOUT_COUNT                     /* above every number; bsm_layout_name is NULL for those that are no layout */
} bsm_layout;

/* A pitch of linear scales: rows padded to 16 bytes, 16 ceil(S/16), the least that TMA loads.  bsm_scale_layout_parse
 * reads it from "sm120_padded".  The bytes behind a row's scales are left alone as with any pitch. */
#define BSM_PITCH_PADDED_16 (-16)

typedef struct bsm_scale_layout {
    bsm_layout kind;
    int64_t pitch;                       /* linear and gguf: bytes between rows, 0 for tight; linear: or
                                            BSM_PITCH_PADDED_16; others: 0 */
    int64_t tile_rows, tile_columns;     /* tiles: > 0; others: 0 */
} bsm_scale_layout;

/* The short name ("128x4"), one line about the layout for a person, and the offset of (r, s) written out for R rows and
 * S columns.  NULL for numbers not listed. */
BSM_API const char *bsm_layout_name(int layout);
BSM_API const char *bsm_layout_about(int layout);
BSM_API const char *bsm_layout_formula(int layout);

/* Reads "128x4", "32_4_4", "linear", "linear:PITCH", "sm120_padded", "tiles:ROWSxCOLUMNS", ...
 * Errors: BSM_EINVAL names the text and lists the layouts. */
BSM_API bsm_status bsm_scale_layout_parse(const char *text, bsm_scale_layout *layout);

/* Rows and columns after padding, and the bytes of the whole buffer.  Zero rows or columns give zero bytes.
 * rows, columns >= 0.  The buffer of a gguf layout holds the elements too.
 * Errors: BSM_EINVAL (parameters of the layout), BSM_EOVERFLOW. */
BSM_API bsm_status bsm_scale_padded(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *padded_rows,
                                    int64_t *padded_columns);
BSM_API bsm_status bsm_scale_bytes(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t *bytes);

/* Byte offset of the scale (row, column) in a buffer for rows x columns.  Positions of the padding are allowed:
 * 0 <= row < padded rows, 0 <= column < padded columns. */
BSM_API bsm_status bsm_scale_offset(const bsm_scale_layout *layout, int64_t rows, int64_t columns, int64_t row,
                                    int64_t column, int64_t *offset);

/* A buffer that says which layout it is in. */
typedef struct bsm_scales {
    void *data;                          /* bsm_scale_bytes of it; no alignment */
    int64_t rows, columns;
    bsm_scale_layout layout;
} bsm_scales;

/* Writes from's scales into `to`, in to's layout.  All padding of `to` is written, as zero bytes; of a gguf buffer only
 * the scale bytes are.  Bytes between the rows of a pitched linear buffer are left alone.
 * The buffers must not overlap.  Equal layouts (kind and parameters) are an error: the buffer already is in that
 * layout, and a caller who asks again is about to swizzle twice.  Copy bytes with memcpy.
 * Errors: BSM_EINVAL, BSM_EOVERFLOW. */
BSM_API bsm_status bsm_scales_convert(const bsm_scales *from, const bsm_scales *to);

/* The same where the context computes: on a GPU (device.h) `data` of both are device pointers, and the work goes into
 * the context's stream.  Errors: as above, BSM_EDEVICE. */
BSM_API bsm_status bsm_scales_convert_on(bsm_context *context, const bsm_scales *from, const bsm_scales *to);

#ifdef __cplusplus
}
#endif
#endif
