/* Checkpoints: one file or several, opened and listed as one. */
#include "file/io/map.h"
#include "shard_index.h"
#include "file/tensors/sort.h"
#include "file/tensors/tensors.h"
#include "wide_scales.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

struct checkpoint_file {
    struct bsmi_map map;
    char *path; /* NULL: in the caller's memory */
    size_t path_bytes;
    struct bsmi_tensor_list list;
};

struct bsm_checkpoint {
    bsm_context *context;
    bsm_checkpoint_kind kind;
    struct checkpoint_file *files;
    int file_count;
    int64_t count;
    const struct bsmi_tensor **tensors, **by_name; /* one block of memory */
    struct bsmi_wide_scales wide;
};

/* Making ----------------------------------------------------------------------------------------------------------- */

static bsm_status make(bsm_context *context, int file_count, bsm_checkpoint **made)
{
    bsm_checkpoint *checkpoint = bsmi_allocate(context, sizeof *checkpoint);
    struct checkpoint_file *files = bsmi_allocate(context, (size_t)file_count * sizeof *files);
    if (checkpoint == NULL || files == NULL) {
        bsmi_release(context, checkpoint, sizeof *checkpoint);
        bsmi_release(context, files, (size_t)file_count * sizeof *files);
        return bsmi_fail(BSM_ENOMEM, "no memory for a checkpoint of %d files", file_count);
    }
    memset(files, 0, (size_t)file_count * sizeof *files);
    *checkpoint = (bsm_checkpoint){ .context = context, .files = files, .file_count = file_count };
    *made = checkpoint;
    return BSM_OK;
}

void bsm_checkpoint_close(bsm_checkpoint *checkpoint)
{
    if (checkpoint == NULL) return;
    const bsm_context *context = checkpoint->context;
    for (int i = 0; i < checkpoint->file_count; i++) {
        struct checkpoint_file *file = &checkpoint->files[i];
        bsmi_tensor_list_free(context, &file->list);
        bsmi_release(context, file->path, file->path_bytes);
        bsmi_unmap(&file->map);
    }
    bsmi_wide_scales_free(context, &checkpoint->wide);
    bsmi_release(context, checkpoint->tensors, 2 * (size_t)checkpoint->count * sizeof *checkpoint->tensors);
    bsmi_release(context, checkpoint->files, (size_t)checkpoint->file_count * sizeof *checkpoint->files);
    bsmi_release(context, checkpoint, sizeof *checkpoint);
}

static bsm_status read_list(bsm_checkpoint *checkpoint, int number, const unsigned char *bytes, size_t count)
{
    struct checkpoint_file *file = &checkpoint->files[number];
    const bool gguf = count >= 4 && memcmp(bytes, "GGUF", 4) == 0; /* as a length, more than a header may have */
    if (checkpoint->file_count > 1 && gguf)
        return bsmi_fail(BSM_EFILE, "is a GGUF file; the index of shards is about .safetensors files");
    checkpoint->kind = gguf ? BSM_CHECKPOINT_GGUF : BSM_CHECKPOINT_SAFETENSORS;
    const bsm_status status = gguf ? bsmi_gguf_read(checkpoint->context, bytes, count, &file->list)
                                   : bsmi_safetensors_read(checkpoint->context, bytes, count, &file->list);
    for (int64_t i = 0; status == BSM_OK && i < file->list.count; i++) file->list.tensors[i].file = number;
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct bsmi_tensor *const *)a)->name, (*(const struct bsmi_tensor *const *)b)->name);
}

/* The tensors of all files together. */
static bsm_status gather(bsm_checkpoint *checkpoint)
{
    int64_t count = 0, at = 0;
    for (int i = 0; i < checkpoint->file_count; i++) count += checkpoint->files[i].list.count;
    if (count == 0) return BSM_OK;
    checkpoint->tensors = bsmi_allocate(checkpoint->context, 2 * (size_t)count * sizeof *checkpoint->tensors);
    if (checkpoint->tensors == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a list of %" PRId64 " tensors", count);
    checkpoint->count = count;
    checkpoint->by_name = checkpoint->tensors + count;
    for (int i = 0; i < checkpoint->file_count; i++)
        for (int64_t j = 0; j < checkpoint->files[i].list.count; j++)
            checkpoint->tensors[at++] = &checkpoint->files[i].list.tensors[j];
    memcpy(checkpoint->by_name, checkpoint->tensors, (size_t)count * sizeof *checkpoint->tensors);
    bsmi_sort(checkpoint->by_name, (size_t)count, sizeof *checkpoint->by_name, by_name);
    for (int64_t i = 1; i < count; i++)
        if (by_name(&checkpoint->by_name[i - 1], &checkpoint->by_name[i]) == 0)
            return bsmi_fail(BSM_EFILE, "two tensors are called %.200s", checkpoint->by_name[i]->name);
    return bsmi_wide_scales_make(checkpoint->context, checkpoint, &checkpoint->wide);
}

/* The end of every kind of opening: the checkpoint, or nothing. */
static bsm_status finish(bsm_status status, bsm_checkpoint *made, bsm_checkpoint **checkpoint)
{
    if (status == BSM_OK) *checkpoint = made;
    else bsm_checkpoint_close(made);
    return status;
}

bsm_status bsm_checkpoint_parse(bsm_context *context, const void *file, size_t file_bytes, bsm_checkpoint **checkpoint)
{
    bsm_checkpoint *made;
    if (checkpoint == NULL) return bsmi_fail(BSM_EINVAL, "checkpoint is NULL");
    *checkpoint = NULL;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (file == NULL && file_bytes > 0) return bsmi_fail(BSM_EINVAL, "file is NULL with file_bytes=%zu", file_bytes);
    bsm_status status = make(context, 1, &made);
    if (status != BSM_OK) return status;
    status = read_list(made, 0, file, file_bytes);
    if (status == BSM_OK) status = gather(made);
    return finish(status, made, checkpoint);
}

/* Files on disk ---------------------------------------------------------------------------------------------------- */

/* The sentence with the path in front; those of BSM_EIO have it already. */
static bsm_status say_path(bsm_status status, const char *path)
{
    return status == BSM_OK || status == BSM_EIO ? status : bsmi_fail(status, "%.256s: %s", path, bsm_last_error());
}

/* Opens file `number` of the checkpoint: the first `folder` characters of path, and name behind them. */
static bsm_status open_file(bsm_checkpoint *checkpoint, int number, const char *path, int folder, const char *name)
{
    struct checkpoint_file *file = &checkpoint->files[number];
    file->path_bytes = (size_t)folder + strlen(name) + 1;
    file->path = bsmi_allocate(checkpoint->context, file->path_bytes);
    if (file->path == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a path");
    snprintf(file->path, file->path_bytes, "%.*s%s", folder, path, name);
    bsm_status status = bsmi_map_file(file->path, &file->map);
    if (status == BSM_OK) status = read_list(checkpoint, number, file->map.bytes, file->map.count);
    return say_path(status, file->path);
}

static bsm_status open_one(bsm_context *context, const char *path, const char *name, bsm_checkpoint **checkpoint)
{
    bsm_checkpoint *made = NULL;
    bsm_status status = make(context, 1, &made);
    if (status != BSM_OK) return status;
    status = open_file(made, 0, path, (int)strlen(path), name);
    if (status == BSM_OK) status = say_path(gather(made), made->files[0].path);
    return finish(status, made, checkpoint);
}

/* What the index says of every tensor is so. */
static bsm_status check_index(const bsm_checkpoint *checkpoint, const struct bsmi_shard_index *index)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(index->weight_map, i, n, key, value) {
        const char *name = yyjson_get_str(key), *file = yyjson_get_str(value);
        const int64_t at = bsm_checkpoint_find(checkpoint, name);
        if (at < 0) return bsmi_fail(BSM_EFILE, "tensor %.200s is said to be in %.200s, but is in no file", name, file);
        const char *holder = index->files[checkpoint->tensors[at]->file];
        if (strcmp(holder, file) != 0)
            return bsmi_fail(BSM_EFILE, "tensor %.200s is said to be in %.200s, but is in %.200s", name, file, holder);
    }
    return BSM_OK;
}

static bsm_status open_shards(bsm_context *context, const char *path, bsm_checkpoint **checkpoint)
{
    struct bsmi_shard_index index;
    bsm_checkpoint *made = NULL;
    const char *slash = strrchr(path, '/');
    bsm_status status = say_path(bsmi_shard_index_open(context, path, &index), path);
    if (status != BSM_OK) return status;
    status = make(context, index.file_count, &made);
    for (int i = 0; status == BSM_OK && i < index.file_count; i++)
        status = open_file(made, i, path, slash == NULL ? 0 : (int)(slash - path) + 1, index.files[i]);
    if (status == BSM_OK) {
        status = gather(made);
        if (status == BSM_OK) status = check_index(made, &index);
        status = say_path(status, path);
    }
    bsmi_shard_index_close(context, &index);
    return finish(status, made, checkpoint);
}

static bool ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), end = strlen(ending);
    return length > end && strcmp(path + length - end, ending) == 0;
}

static bsm_status open_folder(bsm_context *context, const char *path, bsm_checkpoint **checkpoint)
{
    char inside[PATH_MAX];
    struct stat facts;
    if (snprintf(inside, sizeof inside, "%s/model.safetensors.index.json", path) >= (int)sizeof inside)
        return bsmi_fail(BSM_EIO, "%.256s: %s", path, strerror(ENAMETOOLONG));
    if (stat(inside, &facts) == 0) return open_shards(context, inside, checkpoint);
    snprintf(inside, sizeof inside, "%s/model.safetensors", path);
    if (stat(inside, &facts) == 0) return open_one(context, inside, "", checkpoint);
    return bsmi_fail(
        BSM_EIO, "%.256s: is a directory that holds neither model.safetensors.index.json nor model.safetensors", path);
}

bsm_status bsm_checkpoint_open(bsm_context *context, const char *path, bsm_checkpoint **checkpoint)
{
    struct stat facts;
    if (checkpoint == NULL) return bsmi_fail(BSM_EINVAL, "checkpoint is NULL");
    *checkpoint = NULL;
    if (context == NULL) return bsmi_fail(BSM_EINVAL, "context is NULL");
    if (path == NULL || path[0] == '\0') return bsmi_fail(BSM_EINVAL, "path is %s", path == NULL ? "NULL" : "empty");
    if (strlen(path) >= PATH_MAX) return bsmi_fail(BSM_EIO, "%.64s...: %s", path, strerror(ENAMETOOLONG));
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) return open_folder(context, path, checkpoint);
    return ends_with(path, ".json") ? open_shards(context, path, checkpoint) : open_one(context, path, "", checkpoint);
}

/* Looking ---------------------------------------------------------------------------------------------------------- */

static const char *const kind_names[BSM_CHECKPOINT_KIND_COUNT] = { "safetensors", "gguf" };

const char *bsm_checkpoint_kind_name(int kind)
{
    return kind >= 0 && kind < BSM_CHECKPOINT_KIND_COUNT ? kind_names[kind] : NULL;
}

bsm_checkpoint_kind bsm_checkpoint_get_kind(const bsm_checkpoint *checkpoint)
{
    return checkpoint == NULL ? BSM_CHECKPOINT_SAFETENSORS : checkpoint->kind;
}

int bsm_checkpoint_file_count(const bsm_checkpoint *checkpoint)
{
    return checkpoint == NULL ? 0 : checkpoint->file_count;
}

const char *bsm_checkpoint_file_path(const bsm_checkpoint *checkpoint, int file)
{
    return checkpoint == NULL || file < 0 || file >= checkpoint->file_count ? NULL : checkpoint->files[file].path;
}

int64_t bsm_checkpoint_tensor_count(const bsm_checkpoint *checkpoint)
{
    return checkpoint == NULL ? 0 : checkpoint->count;
}

bsm_status bsm_checkpoint_tensor(const bsm_checkpoint *checkpoint, int64_t index, bsm_tensor *tensor)
{
    if (checkpoint == NULL || tensor == NULL)
        return bsmi_fail(BSM_EINVAL, "%s is NULL", checkpoint == NULL ? "checkpoint" : "tensor");
    const size_t size = tensor->struct_size;
    if (size < sizeof size || size > 65536)
        return bsmi_fail(BSM_EINVAL, "tensor->struct_size is %zu: set it to sizeof(bsm_tensor), %zu", size,
                         sizeof *tensor);
    if (index < 0 || index >= checkpoint->count)
        return bsmi_fail(BSM_EINVAL, "index=%" PRId64 "; the checkpoint has %" PRId64 " tensors", index,
                         checkpoint->count);
    const struct bsmi_tensor *t = checkpoint->tensors[index];
    bsm_tensor found = { .struct_size = size,
                         .name = t->name,
                         .type = t->type,
                         .gguf_type = t->gguf_type,
                         .rank = t->rank,
                         .data = t->data,
                         .bytes = t->bytes,
                         .file = t->file };
    memcpy(found.shape, t->shape, sizeof found.shape);
    memset(tensor, 0, size);
    memcpy(tensor, &found, BSMI_MIN(size, sizeof found));
    return BSM_OK;
}

/* by_name points to the tensors; where one is in `tensors` follows from its file and place. */
static int64_t index_of(const bsm_checkpoint *checkpoint, const struct bsmi_tensor *tensor)
{
    int64_t index = tensor - checkpoint->files[tensor->file].list.tensors;
    for (int i = 0; i < tensor->file; i++) index += checkpoint->files[i].list.count;
    return index;
}

int64_t bsm_checkpoint_find(const bsm_checkpoint *checkpoint, const char *name)
{
    int64_t low = 0, high = checkpoint == NULL || name == NULL ? 0 : checkpoint->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(name, checkpoint->by_name[middle]->name);
        if (order == 0) return index_of(checkpoint, checkpoint->by_name[middle]);
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return -1;
}

/* The pair with this number, file by file; NULL behind the last. */
static const bsm_metadata *metadata_at(const bsm_checkpoint *checkpoint, int64_t index)
{
    for (int i = 0; checkpoint != NULL && index >= 0 && i < checkpoint->file_count; i++) {
        const struct bsmi_tensor_list *list = &checkpoint->files[i].list;
        if (index < list->metadata_count) return &list->metadata[index];
        index -= list->metadata_count;
    }
    return NULL;
}

int64_t bsm_checkpoint_metadata_count(const bsm_checkpoint *checkpoint)
{
    int64_t count = 0;
    for (int i = 0; checkpoint != NULL && i < checkpoint->file_count; i++)
        count += checkpoint->files[i].list.metadata_count;
    return count;
}

const char *bsm_checkpoint_metadata_key(const bsm_checkpoint *checkpoint, int64_t index)
{
    const bsm_metadata *pair = metadata_at(checkpoint, index);
    return pair == NULL ? NULL : pair->key;
}

const char *bsm_checkpoint_metadata(const bsm_checkpoint *checkpoint, const char *key)
{
    const bsm_metadata *pair;
    for (int64_t i = 0; key != NULL && (pair = metadata_at(checkpoint, i)) != NULL; i++)
        if (strcmp(pair->key, key) == 0) return pair->value;
    return NULL;
}

const float *bsmi_checkpoint_wide(const bsm_checkpoint *checkpoint, int64_t index)
{
    return bsmi_wide_scales_find(&checkpoint->wide, index);
}
