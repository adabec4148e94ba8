/* The files of one checkpoint, see outputs.h. */
#include "outputs.h"
#include "file/io/file.h"
#include "file/io/replace.h"
#include "texts.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

struct bsmi_output {
    struct bsmi_output *next;
    char *path;
    void *file;                           /* the caller's */
    struct bsmi_replacement replacement;  /* ours */
};

void bsmi_outputs_start(struct bsmi_outputs *outputs, const bsm_context *context, const bsm_writer_files *files)
{
    *outputs = (struct bsmi_outputs){ .context = context, .given = files != NULL };
    if (files != NULL) outputs->files = *files;
}

/* What the caller's function left in errno. */
static bsm_status caller_failed(const char *path, const char *what)
{
    if (errno == 0) errno = EIO;
    return bsmi_fail_with_errno(path, what);
}

bsm_status bsmi_outputs_read(struct bsmi_outputs *outputs, const char *path)
{
    errno = 0;
    if (!outputs->given || outputs->files.reads(outputs->files.user, path)) return BSM_OK;
    return caller_failed(path, "cannot be read");
}

bsm_status bsmi_outputs_make_folder(struct bsmi_outputs *outputs, const char *path)
{
    struct stat there;
    errno = 0;
    if (outputs->given) {
        if (outputs->files.make_folder(outputs->files.user, path)) return BSM_OK;
        return caller_failed(path, "cannot be made");
    }
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) return BSM_OK;
    outputs->folder = bsmi_join_text(outputs->context, path, strlen(path), "");
    if (outputs->folder == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a path");
    if (mkdir(path, 0777) == 0) return BSM_OK;
    bsmi_release_text(outputs->context, outputs->folder);
    outputs->folder = NULL;
    return bsmi_fail_with_errno(path, "cannot be made");
}

static void release(struct bsmi_outputs *outputs, struct bsmi_output *output)
{
    bsmi_release_text(outputs->context, output->path);
    bsmi_release(outputs->context, output, sizeof *output);
}

static bsm_status open_output(struct bsmi_outputs *outputs, struct bsmi_output *output)
{
    if (!outputs->given) return bsmi_replacement_open(output->path, &output->replacement);
    errno = 0;
    output->file = outputs->files.create(outputs->files.user, output->path);
    return output->file != NULL ? BSM_OK : caller_failed(output->path, "cannot be written");
}

bsm_status bsmi_outputs_create(struct bsmi_outputs *outputs, const char *path, struct bsmi_output **output)
{
    struct bsmi_output *made = bsmi_allocate(outputs->context, sizeof *made), **end = &outputs->first;
    if (made == NULL) return bsmi_fail(BSM_ENOMEM, "no memory for a file");
    made->next = NULL;
    made->path = bsmi_join_text(outputs->context, path, strlen(path), "");
    const bsm_status status =
        made->path == NULL ? bsmi_fail(BSM_ENOMEM, "no memory for a path") : open_output(outputs, made);
    if (status != BSM_OK) {
        release(outputs, made);
        return status;
    }
    while (*end != NULL) end = &(*end)->next;
    *end = *output = made;
    return BSM_OK;
}

bsm_status bsmi_output_write(struct bsmi_outputs *outputs, struct bsmi_output *output, int64_t at, const void *data,
                             size_t bytes)
{
    if (!outputs->given) return bsmi_replacement_write(&output->replacement, at, data, bytes);
    errno = 0;
    if (outputs->files.write(outputs->files.user, output->file, at, data, bytes)) return BSM_OK;
    return caller_failed(output->path, "could not be written");
}

static void abandon_all(struct bsmi_outputs *outputs)
{
    for (struct bsmi_output *o = outputs->first; o != NULL && !outputs->given; o = o->next)
        bsmi_replacement_abandon(&o->replacement);
}

static void release_all(struct bsmi_outputs *outputs)
{
    for (struct bsmi_output *o = outputs->first, *next; o != NULL; o = next) {
        next = o->next;
        release(outputs, o);
    }
    outputs->first = NULL;
    bsmi_release_text(outputs->context, outputs->folder);
    outputs->folder = NULL;
}

bsm_status bsmi_outputs_finish(struct bsmi_outputs *outputs)
{
    bsm_status status = BSM_OK;
    for (struct bsmi_output *o = outputs->first; status == BSM_OK && !outputs->given && o != NULL; o = o->next)
        status = bsmi_replacement_close(&o->replacement);
    for (struct bsmi_output *o = outputs->first; status == BSM_OK && !outputs->given && o != NULL; o = o->next)
        status = bsmi_replacement_rename(&o->replacement);
    if (status == BSM_OK) release_all(outputs);
    return status;
}

void bsmi_outputs_end(struct bsmi_outputs *outputs)
{
    abandon_all(outputs);
    if (outputs->folder != NULL) rmdir(outputs->folder);
    release_all(outputs);
}
