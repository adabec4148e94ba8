/* Arrays in NumPy's .npy files, in and out.
 *
 * Source: the format's specification, NEP 1, versions 1.0 to 3.0.  A file is read whole into memory of the context's
 * allocator; it is written to a temporary name beside the target and renamed, so that it is complete or absent. */
#ifndef BLOCKSCALE_NPY_H
#define BLOCKSCALE_NPY_H

#include "matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BSM_NPY_MAX_RANK = 8 };

/* What a file holds.  ml_dtypes' types have no name of their own in the file (they read as BSM_NPY_BYTES), so the
 * caller says which of them it is. */
typedef enum bsm_npy_type {
    BSM_NPY_FP16, BSM_NPY_FP32, BSM_NPY_FP64,
    BSM_NPY_INT8, BSM_NPY_UINT8,
    BSM_NPY_BYTES,                       /* one-byte void or float ('|V1', '<f1'): fp4, fp6, fp8 and e8m0 of
                                            ml_dtypes */
    BSM_NPY_WORDS,                       /* two-byte void ('|V2', '<V2'): bfloat16 of ml_dtypes */
    BSM_NPY_UINT16,
    BSM_NPY_TYPE_COUNT
} bsm_npy_type;

typedef struct bsm_npy {
    size_t struct_size;                  /* set by the caller to sizeof(bsm_npy) */
    bsm_npy_type type;
    int rank;                            /* 0..BSM_NPY_MAX_RANK */
    int64_t shape[BSM_NPY_MAX_RANK];
    bool fortran_order;                  /* the first index runs fastest */
    void *data;                          /* aligned to 64 bytes; NULL when there are no elements */
    size_t bytes;                        /* of data */
    char descr[16];                      /* the type as the file spelled it */
} bsm_npy;

/* Reads a file.  array is filled on BSM_OK and must be given to bsm_npy_release; on failure it owns nothing.
 * Little-endian and one-byte types only.  Errors: BSM_EINVAL, BSM_EIO, BSM_EFILE (the sentence names what is wrong and
 * where), BSM_EUNSUPPORTED (a legal file of another type), BSM_ENOMEM. */
BSM_API bsm_status bsm_npy_read(bsm_context *context, const char *path, bsm_npy *array);
BSM_API void bsm_npy_release(bsm_context *context, bsm_npy *array);

/* The same from bytes in memory; data is copied. */
BSM_API bsm_status bsm_npy_parse(bsm_context *context, const void *file, size_t file_bytes, bsm_npy *array);

/* Writes a C-ordered array of `type` with `rank` dimensions.  Version 1.0 of the format; BSM_NPY_BYTES is spelled
 * '|V1'.
 * Errors: BSM_EINVAL, BSM_EOVERFLOW, BSM_EIO; the target is untouched then. */
BSM_API bsm_status bsm_npy_write(const char *path, bsm_npy_type type, int rank, const int64_t *shape, const void *data);

/* The bytes that stand before the data of such a file, for callers that write it themselves.  room is the size of
 * `header`, *bytes gets the length: a multiple of 64, at most BSM_NPY_MAX_HEADER.
 * Errors: BSM_EINVAL (room too small included), BSM_EOVERFLOW. */
enum { BSM_NPY_MAX_HEADER = 384 };
BSM_API bsm_status bsm_npy_header(bsm_npy_type type, int rank, const int64_t *shape, void *header, size_t room,
                                  size_t *bytes);

/* "fp32", "bytes" ...; NULL for numbers not listed.  Bytes of one number; 0 for numbers not listed. */
BSM_API const char *bsm_npy_type_name(int type);
BSM_API size_t bsm_npy_type_bytes(int type);

#ifdef __cplusplus
}
#endif
#endif
