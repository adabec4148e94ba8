/* The index of a sharded checkpoint: JSON, {"metadata": ..., "weight_map": {"tensor": "file", ...}} (Hugging Face's
 * model.safetensors.index.json).  Other keys mean nothing here. */
#include "shard_index.h"
#include "file/tensors/sort.h"

enum { MOST_BYTES = 100000000, MOST_FILES = 100000 };

static bsm_status check_file_name(yyjson_val *tensor, yyjson_val *file)
{
    const char *name = yyjson_get_str(tensor), *word = yyjson_get_str(file);
    if (yyjson_get_len(tensor) == 0) return bsmi_fail(BSM_EFILE, "\"weight_map\": a tensor has no name");
    if (bsmi_json_has_nul(tensor))
        return bsmi_fail(BSM_EFILE, "\"weight_map\": the name of tensor %.200s holds a NUL", name);
    if (!yyjson_is_str(file))
        return bsmi_fail(BSM_EFILE, "\"weight_map\": tensor %.200s: the name of a file is wanted, not %s", name,
                         bsmi_json_kind(file));
    if (word[0] == '\0' || bsmi_json_has_nul(file) || strchr(word, '/') != NULL || strcmp(word, ".") == 0 ||
        strcmp(word, "..") == 0)
        return bsmi_fail(BSM_EFILE, "\"weight_map\": tensor %.200s: \"%.200s\" is no name of a file in the same folder",
                         name, word);
    return BSM_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Sorted, each once. */
static bsm_status collect_files(const bsm_context *context, struct bsmi_shard_index *index)
{
    size_t i, n, count = 0, kept = 0;
    yyjson_val *key, *value;
    index->memory_bytes = yyjson_obj_size(index->weight_map) * sizeof *index->files;
    index->files = bsmi_allocate(context, index->memory_bytes);
    if (index->files == NULL)
        return bsmi_fail(BSM_ENOMEM, "no memory for an index of %zu tensors", yyjson_obj_size(index->weight_map));
    yyjson_obj_foreach(index->weight_map, i, n, key, value) {
        const bsm_status status = check_file_name(key, value);
        if (status != BSM_OK) return status;
        index->files[count++] = yyjson_get_str(value);
    }
    bsmi_sort(index->files, count, sizeof *index->files, by_text);
    for (size_t at = 0; at < count; at++)
        if (kept == 0 || strcmp(index->files[kept - 1], index->files[at]) != 0) index->files[kept++] = index->files[at];
    if (kept > MOST_FILES)
        return bsmi_fail(BSM_EUNSUPPORTED, "\"weight_map\" names %zu files; read are up to %d", kept, MOST_FILES);
    index->file_count = (int)kept;
    return BSM_OK;
}

static bsm_status read_index(const bsm_context *context, const char *text, size_t bytes, struct bsmi_shard_index *index)
{
    if (bytes > MOST_BYTES)
        return bsmi_fail(BSM_EUNSUPPORTED, "the index has %zu bytes; read are up to %d", bytes, MOST_BYTES);
    const bsm_status status = bsmi_json_read(context, "the index", text, bytes, &index->json);
    if (status != BSM_OK) return status;
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(yyjson_doc_get_root(index->json.document), i, n, key, value) {
        if (!yyjson_equals_str(key, "weight_map")) continue;
        if (index->weight_map != NULL) return bsmi_fail(BSM_EFILE, "the index has the key \"weight_map\" twice");
        index->weight_map = value;
    }
    if (index->weight_map == NULL) return bsmi_fail(BSM_EFILE, "the index lacks the key \"weight_map\"");
    if (!yyjson_is_obj(index->weight_map))
        return bsmi_fail(BSM_EFILE, "\"weight_map\" is %s; an object of file names is wanted",
                         bsmi_json_kind(index->weight_map));
    if (yyjson_obj_size(index->weight_map) == 0) return bsmi_fail(BSM_EFILE, "\"weight_map\" names no file");
    return collect_files(context, index);
}

bsm_status bsmi_shard_index_read(const bsm_context *context, const char *text, size_t bytes,
                                 struct bsmi_shard_index *index)
{
    *index = (struct bsmi_shard_index){ .files = NULL };
    const bsm_status status = read_index(context, text, bytes, index);
    if (status != BSM_OK) bsmi_shard_index_close(context, index);
    return status;
}

bsm_status bsmi_shard_index_open(const bsm_context *context, const char *path, struct bsmi_shard_index *index)
{
    struct bsmi_map map;
    bsm_status status = bsmi_map_file(path, &map);
    if (status != BSM_OK) return status;
    status = bsmi_shard_index_read(context, (const char *)map.bytes, map.count, index);
    if (status == BSM_OK) index->map = map;
    else bsmi_unmap(&map);
    return status;
}

void bsmi_shard_index_close(const bsm_context *context, struct bsmi_shard_index *index)
{
    bsmi_release(context, index->files, index->memory_bytes);
    if (index->json.document != NULL) bsmi_json_free(&index->json);
    bsmi_unmap(&index->map);
    *index = (struct bsmi_shard_index){ .files = NULL };
}
