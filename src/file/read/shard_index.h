/* The index of a sharded checkpoint: which tensor is in which file. */
#ifndef BSMI_SHARD_INDEX_H
#define BSMI_SHARD_INDEX_H

#include "file/io/json.h"
#include "file/io/map.h"

struct bsmi_shard_index {
    struct bsmi_map map;
    struct bsmi_json json;
    yyjson_val *weight_map; /* an object of texts: tensor to file name */
    const char **files;     /* the names, sorted, each once */
    int file_count;
    size_t memory_bytes; /* of files */
};

/* Every file name is one in the index's own folder.  Errors: BSM_EIO, BSM_EFILE, BSM_ENOMEM; the index then holds
 * nothing. Those of BSM_EIO name the path. */
bsm_status bsmi_shard_index_open(const bsm_context *context, const char *path, struct bsmi_shard_index *index);
/* The same from text in memory. */
bsm_status bsmi_shard_index_read(const bsm_context *context, const char *text, size_t bytes,
                                 struct bsmi_shard_index *index);
void bsmi_shard_index_close(const bsm_context *context, struct bsmi_shard_index *index);

#endif
