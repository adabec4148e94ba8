/* The other files of a model's folder: tokenizer, generation settings, chat template, code; see model.h. */
#include "file/io/file.h"
#include "file/tensors/sort.h"
#include "model.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 100, MOST_BYTES = 64 << 20, CHUNK = 65536 };

/* Weights in all their spellings, and what is written anew. */
static const char *const weights[] = { ".safetensors", ".index.json", ".gguf", ".bin",     ".pt",
                                       ".pth",         ".ckpt",       ".h5",   ".msgpack", ".onnx",
                                       ".ot",          ".tflite",     ".npy",  ".npz",     ".pkl" };
static const char *const configurations[] = { "config.json", "hf_quant_config.json" };

static bool is_wanted(const char *name)
{
    const size_t length = strlen(name);
    if (name[0] == '.') return false;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        const size_t end = strlen(weights[i]);
        if (length > end && strcmp(name + length - end, weights[i]) == 0) return false;
    }
    for (size_t i = 0; i < sizeof configurations / sizeof configurations[0]; i++)
        if (strcmp(name, configurations[i]) == 0) return false;
    return true;
}

/* Folders --------------------------------------------------------------------------------------------------------- */

bsm_status bsmi_model_find_folder(struct bsmi_model *model)
{
    struct stat there;
    const char *input = model->input, *slash = strrchr(input, '/');
    if (model->folder != NULL) return BSM_OK;
    if (stat(input, &there) != 0) return bsmi_fail_with_errno(input, "cannot be read");
    const bool inside = S_ISDIR(there.st_mode);
    const size_t length = inside ? strlen(input) : slash == NULL || slash == input ? 1 : (size_t)(slash - input);
    model->folder = bsmi_join_text(model->context, inside || slash != NULL ? input : ".", length, "");
    return model->folder != NULL ? BSM_OK : bsmi_fail(BSM_ENOMEM, "no memory for a path");
}

/* What stat says of a file of a folder; false: nothing. */
static bool look_at(const struct bsmi_model *model, const char *name, struct stat *facts)
{
    char *path = bsmi_join_path(model->context, model->folder, name);
    const bool there = path != NULL && stat(path, facts) == 0;
    bsmi_release_text(model->context, path);
    return there;
}

static bool are_same(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Listing --------------------------------------------------------------------------------------------------------- */

/* Files that are copied, and what is left. */
static bsm_status sort_entry(struct bsmi_model *model, const char *name)
{
    struct stat there;
    if (!is_wanted(name) || !look_at(model, name, &there)) return BSM_OK;
    const bool regular = S_ISREG(there.st_mode);
    if (regular && there.st_size <= MOST_BYTES) return bsmi_texts_add(model->context, &model->copied, name);
    return regular || S_ISDIR(there.st_mode) ? bsmi_texts_add(model->context, &model->not_copied, name) : BSM_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bsm_status list(struct bsmi_model *model)
{
    bsm_status status = BSM_OK;
    DIR *folder = opendir(model->folder);
    if (folder == NULL) return bsmi_fail_with_errno(model->folder, "cannot be listed");
    for (const struct dirent *entry; status == BSM_OK && (errno = 0, entry = readdir(folder)) != NULL;)
        status = sort_entry(model, entry->d_name);
    if (status == BSM_OK && errno != 0) status = bsmi_fail_with_errno(model->folder, "cannot be listed");
    closedir(folder);
    bsmi_sort(model->copied.items, (size_t)model->copied.count, sizeof *model->copied.items, by_name);
    bsmi_sort(model->not_copied.items, (size_t)model->not_copied.count, sizeof *model->not_copied.items, by_name);
    return status;
}

/* Copying --------------------------------------------------------------------------------------------------------- */

static bsm_status copy_bytes(struct bsmi_model *model, int from, const char *path, struct bsmi_output *output,
                             uint64_t bytes)
{
    char chunk[CHUNK];
    bsm_status status = BSM_OK;
    for (uint64_t at = 0; status == BSM_OK && at < bytes; at += CHUNK) {
        const size_t count = (size_t)BSMI_MIN(bytes - at, (uint64_t)CHUNK);
        status = bsmi_read_exactly(from, path, chunk, count);
        if (status == BSM_OK) status = bsmi_output_write(model->outputs, output, (int64_t)at, chunk, count);
    }
    return status;
}

static bsm_status copy_between(struct bsmi_model *model, const char *from, const char *to)
{
    struct bsmi_output *output;
    int descriptor;
    uint64_t bytes;
    bsm_status status = bsmi_open_file(from, &descriptor, &bytes);
    if (status != BSM_OK) return status;
    status = bsmi_outputs_read(model->outputs, from);
    if (status == BSM_OK) status = bsmi_outputs_create(model->outputs, to, &output);
    if (status == BSM_OK) status = copy_bytes(model, descriptor, from, output, bytes);
    close(descriptor);
    return status;
}

static bsm_status copy_file(struct bsmi_model *model, const char *name)
{
    char *from = bsmi_join_path(model->context, model->folder, name);
    char *to = bsmi_join_path(model->context, model->output, name);
    const bsm_status status =
        from == NULL || to == NULL ? bsmi_fail(BSM_ENOMEM, "no memory for a path") : copy_between(model, from, to);
    bsmi_release_text(model->context, from);
    bsmi_release_text(model->context, to);
    return status;
}

static bsm_status note_many(struct bsmi_model *model)
{
    char note[512];
    snprintf(note, sizeof note, "the %lld other files of %.256s are not copied: more than %d",
             (long long)model->copied.count, model->folder, MOST_FILES);
    bsmi_texts_free(model->context, &model->copied);
    bsmi_texts_free(model->context, &model->not_copied);
    return bsmi_texts_add(model->context, &model->notes, note);
}

bsm_status bsmi_model_copy_files(struct bsmi_model *model)
{
    struct stat there;
    if (model->input == NULL) return BSM_OK;
    bsm_status status = bsmi_model_find_folder(model);
    if (status != BSM_OK) return status;
    const bool is_model = look_at(model, "config.json", &there) && S_ISREG(there.st_mode);
    if (!is_model || are_same(model->folder, model->output)) return BSM_OK;
    status = list(model);
    if (status == BSM_OK && model->copied.count > MOST_FILES) status = note_many(model);
    for (int64_t i = 0; status == BSM_OK && i < model->copied.count; i++)
        status = copy_file(model, model->copied.items[i]);
    return status;
}

void bsmi_model_free(struct bsmi_model *model)
{
    bsmi_release_text(model->context, model->folder);
    model->folder = NULL;
    bsmi_texts_free(model->context, &model->copied);
    bsmi_texts_free(model->context, &model->not_copied);
    bsmi_texts_free(model->context, &model->notes);
}
