/* Checkpoints: named tensors in .safetensors and GGUF files, in and out.
 *
 * Sources: the safetensors format (8 bytes of length, a JSON header, data without holes) and ggml's gguf.h (version 3).
 * Files are mapped: nothing is copied or converted, and tensors point into the mapping, which is read-only. */
#ifndef BLOCKSCALE_CHECKPOINT_H
#define BLOCKSCALE_CHECKPOINT_H

#include "matrix.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BSM_TENSOR_MAX_RANK = 8 };

/* How a tensor's numbers are stored, whatever they mean: most files keep 4-bit codes and e8m0 scales as U8. */
typedef enum bsm_tensor_type {
    BSM_TENSOR_F64,
    BSM_TENSOR_F32,
    BSM_TENSOR_F16,
    BSM_TENSOR_BF16,
    BSM_TENSOR_F8_E4M3,
    BSM_TENSOR_F8_E5M2,
    BSM_TENSOR_F8_E8M0,
    BSM_TENSOR_F8_E4M3FNUZ,
    BSM_TENSOR_F8_E5M2FNUZ,
    BSM_TENSOR_F6_E2M3,
    BSM_TENSOR_F6_E3M2, /* a little-endian stream of 6 bits; the shape counts
                           numbers */
    BSM_TENSOR_F4,      /* two a byte, the first in the low bits; the shape counts numbers, not
                           bytes */
    BSM_TENSOR_I64,
    BSM_TENSOR_I32,
    BSM_TENSOR_I16,
    BSM_TENSOR_I8,
    BSM_TENSOR_U64,
    BSM_TENSOR_U32,
    BSM_TENSOR_U16,
    BSM_TENSOR_U8,
    BSM_TENSOR_BOOL,
    BSM_TENSOR_C64,
    BSM_TENSOR_MXFP4,
    BSM_TENSOR_NVFP4, /* GGUF's types 39 and 40, blocks with their scales
                         inside */
    BSM_TENSOR_OTHER, /* a type of GGUF files that is only passed on */
    BSM_TENSOR_TYPE_COUNT
} bsm_tensor_type;

/* The file's own word ("F8_E4M3"); NULL for numbers not listed and for OTHER.  Bits of a number; 0 where that is no one
 * number (MXFP4, NVFP4, OTHER, numbers not listed). */
BSM_API const char *bsm_tensor_type_name(int type);
BSM_API int bsm_tensor_type_bits(int type);
/* ggml's name of a type of GGUF files by its number there ("Q8_0"); NULL for numbers not listed. */
BSM_API const char *bsm_gguf_type_name(int gguf_type);

typedef struct bsm_tensor {
    size_t struct_size;                  /* sizeof(bsm_tensor) where the caller was compiled */
    const char *name;                    /* UTF-8 */
    bsm_tensor_type type;
    int gguf_type;                       /* of GGUF files: the type's number there; else -1 */
    int rank;                            /* 0..BSM_TENSOR_MAX_RANK */
    int64_t shape[BSM_TENSOR_MAX_RANK];  /* the last index runs fastest, in GGUF files too (which list it first) */
    const void *data;                    /* of no particular alignment: that is the file's; NULL when there are no
                                            bytes */
    int64_t bytes;
    int file;                            /* which file of the checkpoint, from 0 */
} bsm_tensor;

typedef enum bsm_checkpoint_kind { BSM_CHECKPOINT_SAFETENSORS, BSM_CHECKPOINT_GGUF,
                                   BSM_CHECKPOINT_KIND_COUNT } bsm_checkpoint_kind;

typedef struct bsm_checkpoint bsm_checkpoint;

/* Opens a .safetensors file, a GGUF file (recognized by their first bytes), an index of shards (a path that ends in
 * .json: its "weight_map" names files in its own folder), or a folder (model.safetensors.index.json or else
 * model.safetensors in it). A shard may hold tensors that the index omits; what the index promises must be there.
 * Everything but the numbers is checked here: afterwards every tensor lies in its file, and no two overlap.
 * Memory: about 16 bytes for each byte of a JSON header while it is read, 200 bytes for each tensor afterwards, and 4
 * for each scale of an fp8 weight that the file has in 16 bits.
 * The files must not be changed while they are open: a mapping shows every change, and a file cut short ends the
 * program (SIGBUS) when the missing part is read.
 * Threads: a checkpoint may be read by several threads.  It keeps `context`, which must outlive it; any context will
 * do. Errors: BSM_EINVAL, BSM_EIO, BSM_EFILE (the sentence names the tensor and what is wrong), BSM_EUNSUPPORTED (a
 * legal file that is too new, or of an unknown type), BSM_ENOMEM.  On failure *checkpoint is NULL. */
BSM_API bsm_status bsm_checkpoint_open(bsm_context *context, const char *path, bsm_checkpoint **checkpoint);

/* The same for one file in memory, which must stay as it is until the checkpoint is closed.  Its alignment is the
 * tensors': 64 bytes keep those of a well-made file aligned to their numbers. */
BSM_API bsm_status bsm_checkpoint_parse(bsm_context *context, const void *file, size_t file_bytes,
                                        bsm_checkpoint **checkpoint);

/* Unmaps the files: tensors and matrices that point into them end.  NULL is allowed. */
BSM_API void bsm_checkpoint_close(bsm_checkpoint *checkpoint);

BSM_API bsm_checkpoint_kind bsm_checkpoint_get_kind(const bsm_checkpoint *checkpoint);
BSM_API const char *bsm_checkpoint_kind_name(int kind);      /* "safetensors", "gguf"; NULL for numbers not listed */

/* Files, in the order of their names; the path of one (NULL for a file in memory, or a number not listed). */
BSM_API int bsm_checkpoint_file_count(const bsm_checkpoint *checkpoint);
BSM_API const char *bsm_checkpoint_file_path(const bsm_checkpoint *checkpoint, int file);

/* Tensors, file by file, in the order of their data.  tensor->struct_size is set by the caller.  Errors: BSM_EINVAL. */
BSM_API int64_t bsm_checkpoint_tensor_count(const bsm_checkpoint *checkpoint);
BSM_API bsm_status bsm_checkpoint_tensor(const bsm_checkpoint *checkpoint, int64_t index, bsm_tensor *tensor);
/* By name: its index, -1 if there is none. */
BSM_API int64_t bsm_checkpoint_find(const bsm_checkpoint *checkpoint, const char *name);

/* The texts of safetensors' __metadata__, and those of GGUF's keys whose value is a string.  NULL where there is none;
 * with several files, the first one's that has the key. */
BSM_API int64_t bsm_checkpoint_metadata_count(const bsm_checkpoint *checkpoint);
BSM_API const char *bsm_checkpoint_metadata_key(const bsm_checkpoint *checkpoint, int64_t index);
BSM_API const char *bsm_checkpoint_metadata(const bsm_checkpoint *checkpoint, const char *key);

/* Writing ---------------------------------------------------------------------------------------------------------- */

typedef struct bsm_metadata { const char *key, *value; } bsm_metadata;

/* What stands before the data of a file with these tensors, for callers that write the data themselves: then every
 * tensor's bytes follow, in the given order; in a GGUF file each is followed by zeros up to a multiple of 32 bytes.
 *   tensors   struct_size (the same in all), name, type, rank and shape are read; `bytes` if it is not 0 must be what
 * these need; data is not read. safetensors: every type but MXFP4, NVFP4 and OTHER; wider numbers first, or some would
 * lie unaligned (refused). GGUF: F64, F32, F16, BF16, I8, I16, I32, I64, MXFP4, NVFP4; rank 1..4; OTHER with its
 * gguf_type. metadata  safetensors: __metadata__; GGUF: string keys.  May be NULL when count is 0. *header   memory of
 * the context, to be given to bsm_header_release. Errors: BSM_EINVAL (names twice, empty, no UTF-8; a type that the
 * kind does not have), BSM_EOVERFLOW, BSM_ENOMEM. */
BSM_API bsm_status bsm_checkpoint_header(bsm_context *context, bsm_checkpoint_kind kind, const bsm_tensor *tensors,
                                         int64_t count, const bsm_metadata *metadata, int64_t metadata_count,
                                         void **header, size_t *header_bytes);
BSM_API void bsm_header_release(bsm_context *context, void *header, size_t header_bytes);

/* Writes a whole file, data included, under a temporary name beside `path`, and renames it: complete, or as before.
 * Errors: as above, and BSM_EIO. */
BSM_API bsm_status bsm_checkpoint_write(bsm_context *context, const char *path, bsm_checkpoint_kind kind,
                                        const bsm_tensor *tensors, int64_t count, const bsm_metadata *metadata,
                                        int64_t metadata_count);

#ifdef __cplusplus
}
#endif
#endif
