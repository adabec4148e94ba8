/* Tensors as files list them, before and behind the public interface. */
#ifndef BSMI_TENSORS_H
#define BSMI_TENSORS_H

#include "blockscale/checkpoint.h"
#include "core/core.h"

/* Types ------------------------------------------------------------------------------------------------------------ */

/* How many numbers make a block, and the bytes of one: sub-byte types and GGUF's blocks. */
struct bsmi_tensor_block { int numbers, bytes; };

/* -1: not a word of safetensors. */
int bsmi_tensor_type_from_safetensors(const char *word);
bool bsmi_tensor_type_in_safetensors(bsm_tensor_type type);
/* What a type number of GGUF means; false if no such type is known.  name: ggml's. */
bool bsmi_tensor_type_from_gguf(uint32_t number, bsm_tensor_type *type, struct bsmi_tensor_block *block,
                                const char **name);
/* GGUF's number of a type; -1 if it has none. */
int bsmi_tensor_type_to_gguf(bsm_tensor_type type);
struct bsmi_tensor_block bsmi_tensor_type_block(bsm_tensor_type type);

/* Bytes of a tensor: its numbers, in whole blocks.  name is for the sentence.  rows_of_blocks: blocks must not reach
 * over the end of a row (GGUF); else only the whole must end on a byte.  Errors: `status`. */
bsm_status bsmi_tensor_bytes(bsm_status status, const char *name, int rank, const int64_t *shape,
                             struct bsmi_tensor_block block, bool rows_of_blocks, int64_t *bytes);

/* Lists ------------------------------------------------------------------------------------------------------------ */

struct bsmi_tensor {
    const char *name;
    bsm_tensor_type type;
    int gguf_type;                        /* -1 in safetensors */
    int rank;
    int64_t shape[BSM_TENSOR_MAX_RANK];
    int64_t offset, bytes;                /* from the start of the file's data */
    const unsigned char *data;
    int file;
};

/* What one file holds: one block of memory with tensors, metadata and texts. */
struct bsmi_tensor_list {
    struct bsmi_tensor *tensors;
    int64_t count;
    bsm_metadata *metadata;
    int64_t metadata_count;
    void *memory;
    size_t memory_bytes;
};

/* Memory for a list that is counted beforehand; *text gets text_bytes of it, for names.  Errors: BSM_ENOMEM. */
bsm_status bsmi_tensor_list_make(const bsm_context *context, int64_t count, int64_t metadata_count, size_t text_bytes,
                                 struct bsmi_tensor_list *list, char **text);
void bsmi_tensor_list_free(const bsm_context *context, struct bsmi_tensor_list *list);

/* Sorts by place and gives every tensor its data; `data` is the file's data, data_bytes long.  No tensor may overlap
 * another; dense: none may leave a hole, and the last ends the file.  Errors: BSM_EFILE. */
bsm_status bsmi_tensor_list_place(struct bsmi_tensor_list *list, const unsigned char *data, int64_t data_bytes,
                                  bool dense);

/* Files ------------------------------------------------------------------------------------------------------------ */

/* One file's bytes into a list.  Errors: BSM_EFILE, BSM_EUNSUPPORTED, BSM_ENOMEM; the list then holds nothing. */
bsm_status bsmi_safetensors_read(const bsm_context *context, const unsigned char *file, size_t file_bytes,
                                 struct bsmi_tensor_list *list);

bsm_status bsmi_gguf_read(const bsm_context *context, const unsigned char *file, size_t file_bytes,
                          struct bsmi_tensor_list *list);

enum { BSMI_GGUF_ALIGNMENT = 32 };        /* of every tensor's data, unless a file says otherwise */
enum { BSMI_SAFETENSORS_HEADER = 100000000 };    /* bytes that a header may have, by the format's own reader */

/* What is to be written: tensors whose descriptions were read whole, sizes filled in. */
struct bsmi_header_request {
    const bsm_tensor *tensors;
    int64_t count;
    const bsm_metadata *metadata;
    int64_t metadata_count;
};

/* Bytes that are first counted (room 0), then written. */
struct bsmi_sink { unsigned char *into; size_t room, used; };
void bsmi_sink_put(struct bsmi_sink *sink, const void *bytes, size_t count);

/* The bytes before the data, into a sink; the request was checked. */
void bsmi_safetensors_header(const struct bsmi_header_request *request, struct bsmi_sink *sink);
void bsmi_gguf_header(const struct bsmi_header_request *request, struct bsmi_sink *sink);

#endif
