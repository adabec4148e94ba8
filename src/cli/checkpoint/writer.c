/* The library's writer over the command's outputs, see writer.h. */
#include "writer.h"
#include "cli/matrices/matrices.h"

#include <errno.h>

bool writer_is_gguf(const char *output) { return cli_ends_with(output, ".gguf"); }
bool writer_is_folder(const char *output) { return !writer_is_gguf(output) && !cli_ends_with(output, ".safetensors"); }

/* Files ----------------------------------------------------------------------------------------------------------- */

static bool note_input(void *user, const char *path)
{
    (void)user;
    cli_input(path);
    return true;
}

static bool make_folder(void *user, const char *path)
{
    struct writer *w = user;
    if (cli_output_folder(w->cli, path) == CLI_DONE) return true;
    w->has_said = true;
    return false;
}

static void *create(void *user, const char *path)
{
    struct writer *w = user;
    FILE *file = cli_output(w->cli, path);
    if (file == NULL) w->has_said = true;
    return file;
}

/* Flushed at once, so that a disk that takes no more is noticed here. */
static bool write_bytes(void *user, void *file, int64_t at, const void *data, size_t bytes)
{
    (void)user;
    return fseeko(file, (off_t)at, SEEK_SET) == 0 && fwrite(data, 1, bytes, file) == bytes && fflush(file) == 0;
}

/* The writer ------------------------------------------------------------------------------------------------------ */

int writer_check(struct writer *w, bsm_status status)
{
    if (status == BSM_OK) return CLI_DONE;
    return w->has_said ? CLI_BAD_INPUT : cli_library_failed(w->cli, NULL, status);
}

int writer_start(struct cli *cli, struct writer *w, const char *output, const char *model)
{
    *w = (struct writer){ .cli = cli, .output = output };
    const bsm_writer_files files = {
        .reads = note_input, .make_folder = make_folder, .create = create, .write = write_bytes, .user = w
    };
    const bsm_writer_options options = { .struct_size = sizeof options, .model = model, .files = &files };
    return writer_check(w, bsm_writer_create(cli->context, output, &options, &w->writer));
}

int writer_add_tensor(struct writer *w, const bsm_tensor *tensor, int64_t *number)
{
    return writer_check(w, bsm_writer_add_tensor(w->writer, tensor, number));
}

int writer_put_tensor(struct writer *w, int64_t number, const bsm_tensor *tensor)
{
    return writer_check(w, bsm_writer_put(w->writer, number, tensor->data, tensor->bytes));
}

int writer_finish(struct writer *w)
{
    const int result = writer_check(w, bsm_writer_finish(w->writer));
    const char *note;
    for (int64_t i = 0; result == CLI_DONE && (note = bsm_writer_note(w->writer, i)) != NULL; i++)
        cli_note(w->cli, "%s", note);
    return result;
}

void writer_end(struct writer *w)
{
    bsm_writer_destroy(w->writer);
    w->writer = NULL;
}
