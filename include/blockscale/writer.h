/* Writing checkpoints piece by piece: quantized weights under the names of a convention, all other tensors as they are,
 * what config.json says of the quantization, and the other files of a model's folder.
 *
 * First everything is announced (bsm_writer_add_weight, bsm_writer_add_tensor), which fixes the file's head; then the
 * numbers come, weight by weight and in any order, so that memory is that of one weight; then bsm_writer_finish:
 *
 *     bsm_writer *writer;
 *     bsm_writer_create(context, "out", NULL, &writer);          a folder; OUT.safetensors and OUT.gguf are files
 *     bsm_writer_weight weight = { .struct_size = sizeof weight, .name = "model.layers.0.mlp.up_proj",
 *                                  .convention = BSM_CONVENTION_MODELOPT, .format = BSM_MXFP4,
 *                                  .rows = n, .columns = k };
 *     bsm_matrix codes;                                          how they are to lie; data and scales are the caller's
 *     int64_t number;
 *     bsm_writer_add_weight(writer, &weight, &number, &codes);
 *     bsm_writer_begin(writer);
 *     codes.data = ...; codes.scales = ...; bsm_quantize(context, &numbers, &options, &codes, NULL);
 *     bsm_writer_put_weight(writer, number, &codes, NULL);
 *     bsm_writer_finish(writer);
 *     bsm_writer_destroy(writer);
 *
 * Nothing lies at its place before bsm_writer_finish: files are written under temporary names beside their targets and
 * renamed when all of them are complete.  A file that is replaced keeps its mode, and a link stays a link; checkpoints
 * that are open stay what they are.  After an error of bsm_writer_begin or bsm_writer_finish, and after BSM_EIO of any
 * call, bsm_writer_destroy is the only call that is left. */
#ifndef BLOCKSCALE_WRITER_H
#define BLOCKSCALE_WRITER_H

#include "weight.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bsm_writer bsm_writer;

/* Where the bytes go, for programs that keep their outputs apart themselves until all are complete.  Each function
 * returns false (create: NULL) where it fails, and may leave the reason in errno; the call that needed it then fails
 * with BSM_EIO.  Paths are the writer's own, valid during the call.  The writer closes nothing and renames nothing:
 * whether the files stay is the program's affair, also after bsm_writer_destroy. */
typedef struct bsm_writer_files {
    bool (*reads)(void *user, const char *path);           /* a file that is read: config.json, and those copied */
    bool (*make_folder)(void *user, const char *path);     /* it may be there */
    void *(*create)(void *user, const char *path);         /* a file, for write */
    bool (*write)(void *user, void *file, int64_t at, const void *data, size_t bytes);    /* from byte `at` on */
    void *user;
} bsm_writer_files;

typedef struct bsm_writer_options {
    size_t struct_size;                  /* sizeof(bsm_writer_options) where the caller was compiled */
    const char *model;                   /* the checkpoint that weights come from, as bsm_checkpoint_open takes it: the
                                            config.json beside it is completed, and the files of its folder are copied,
                                            into an output that is a folder.  NULL: there is none */
    const bsm_metadata *metadata;        /* as in bsm_checkpoint_header; metadata_count 0: "format": "pt" in a */
    int64_t metadata_count;              /*   .safetensors file, nothing in a GGUF file */
    const bsm_writer_files *files;       /* copied; NULL: the file system's */
} bsm_writer_options;

/* Starts a checkpoint at `path`: a GGUF file where it ends in ".gguf", a .safetensors file where it ends in that, else
 * a folder with model.safetensors.  options may be NULL.  Strings of the options are copied.  Nothing is opened yet.
 * Threads: one at a time.  The writer keeps `context`, which must outlive it; any context will do, and everything that
 * pointers here point to is host memory.
 * Errors: BSM_EINVAL, BSM_EIO (a path that is too long), BSM_ENOMEM.  On failure *writer is NULL. */
BSM_API bsm_status bsm_writer_create(bsm_context *context, const char *path, const bsm_writer_options *options,
                                     bsm_writer **writer);

/* Ends the writer; what was not finished is removed: temporary files, and the folder if the writer made it.
 * NULL is allowed. */
BSM_API void bsm_writer_destroy(bsm_writer *writer);

/* BSM_OK where weights of a format can be written as a convention has them; else BSM_EUNSUPPORTED, and the sentence
 * lists the formats that the convention has.  modelopt: NVFP4, MXFP4, MXFP6, MXFP8, e4m3; compressed_tensors: NVFP4,
 * MXFP4, MXFP6_E2M3, MXFP8_E4M3, e4m3; gpt_oss: MXFP4; gguf: MXFP4, NVFP4.  docs/guide/checkpoints.md has the names. */
BSM_API bsm_status bsm_writer_check_format(bsm_convention convention, bsm_format format);

/* Announcing ------------------------------------------------------------------------------------------------------ */

typedef struct bsm_writer_weight {
    size_t struct_size;                  /* sizeof(bsm_writer_weight) where the caller was compiled */
    const char *name;                    /* X, without the endings of the convention's tensors; copied */
    bsm_convention convention;           /* gguf goes with a GGUF file, the others with the other kinds of output */
    bsm_format format;
    int64_t batch, rows, columns;        /* batch 0 is read as 1.  gpt_oss and gguf: columns of whole blocks (gguf: 32
                                            of MXFP4, 64 of NVFP4) */
    bool tensor_scale, input_scale;      /* it has such scales: fp32, one for the whole weight */
} bsm_writer_weight;

/* Announces a quantized weight; *number is what bsm_writer_put_weight knows it by, counted from 0, weights alone.
 * *matrix (struct_size need not be set) describes how its bytes are to lie: packing, scale layout, use of the tensor
 * scale; pointers are NULL.
 * Errors: BSM_EINVAL, BSM_EOVERFLOW, BSM_EUNSUPPORTED (bsm_writer_check_format), BSM_ENOMEM. */
BSM_API bsm_status bsm_writer_add_weight(bsm_writer *writer, const bsm_writer_weight *weight, int64_t *number,
                                         bsm_matrix *matrix);

/* Announces a tensor that is written as it is: name, type, gguf_type, rank, shape and bytes are read, as by
 * bsm_checkpoint_header; data is not.  The name is copied; tensors may be announced in any order of their widths.
 * *number is what bsm_writer_put knows it by, counted from 0, these tensors alone.
 * In the configuration, one of two dimensions that is called X.weight is a module that is not quantized.
 * Errors: BSM_EINVAL, BSM_ENOMEM. */
BSM_API bsm_status bsm_writer_add_tensor(bsm_writer *writer, const bsm_tensor *tensor, int64_t *number);

/* The path of the file with the weights; and the bytes of all tensors announced so far, padding included. */
BSM_API const char *bsm_writer_path(const bsm_writer *writer);
BSM_API int64_t bsm_writer_bytes(const bsm_writer *writer);

/* Writing --------------------------------------------------------------------------------------------------------- */

/* Ends the announcements, makes the folder, opens the file and writes its head.
 * Errors: those of bsm_checkpoint_header; BSM_EIO (a disk without room for all of the file, too). */
BSM_API bsm_status bsm_writer_begin(bsm_writer *writer);

/* The bytes of an announced tensor; or a part of them, from where the last part ended.  data of any alignment.
 * Errors: BSM_EINVAL (more bytes than were announced, too), BSM_EIO. */
BSM_API bsm_status bsm_writer_put(bsm_writer *writer, int64_t number, const void *data, int64_t bytes);

/* A weight: `matrix` as bsm_writer_add_weight described it, with its pointers.  tensor_scale is NULL, or not, as was
 * announced; so is input_scale, which is written as it is (compressed-tensors divides numbers of NVFP4 by it, the
 * others multiply).
 * Errors: BSM_EINVAL, BSM_EALIGN, BSM_EIO. */
BSM_API bsm_status bsm_writer_put_weight(bsm_writer *writer, int64_t number, const bsm_matrix *matrix,
                                         const float *input_scale);

/* Ends the checkpoint; every announced byte was put.  An output that is a folder gets a config.json too: that of the
 * model, if there is one, with a quantization_config in the convention's words (and ModelOpt's hf_quant_config.json),
 * or without one where no weight was announced.  Where the model's folder has a config.json, its other files are
 * copied: all but weights, their indexes, folders, and files of more than 64 MiB; nothing if they are more than 100.
 * Then all files get their names.
 * Errors: BSM_EINVAL (bytes that were not put: the sentence names the tensor), BSM_EIO, BSM_EFILE (a config.json that
 * is no JSON object, or deeper than 32), BSM_ENOMEM.  After an error what lay at the paths is untouched (a renaming
 * that fails takes new files back, but not what it replaced). */
BSM_API bsm_status bsm_writer_finish(bsm_writer *writer);

/* What bsm_writer_finish did beside the weights, by number from 0; NULL behind the last.  Names of files that were
 * copied; of those, and of folders, that were not; and sentences about what it omitted ("no config.json is written:
 * ..."). Valid until bsm_writer_destroy. */
BSM_API const char *bsm_writer_copied(const bsm_writer *writer, int64_t index);
BSM_API const char *bsm_writer_not_copied(const bsm_writer *writer, int64_t index);
BSM_API const char *bsm_writer_note(const bsm_writer *writer, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
