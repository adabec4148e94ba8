/* Checkpoints written piece by piece, see checkpoint_writer.h. */
#include "checkpoint_writer.h"
#include "cli/matrices/matrices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum { GGUF_ALIGNMENT = 32 };

bool checkpoint_writer_is_folder(const char *output)
{
    return !cli_ends_with(output, ".gguf") && !cli_ends_with(output, ".safetensors");
}

void checkpoint_writer_start(struct checkpoint_writer *writer, const char *output)
{
    *writer = (struct checkpoint_writer){ .output = output };
    writer->kind = cli_ends_with(output, ".gguf") ? BSM_CHECKPOINT_GGUF : BSM_CHECKPOINT_SAFETENSORS;
}

int64_t checkpoint_writer_add(const struct cli *cli, struct checkpoint_writer *writer, const bsm_tensor *tensor)
{
    if (writer->count == writer->room) {
        const int64_t room = writer->room == 0 ? 64 : 2 * writer->room;
        bsm_tensor *tensors = cli_memory(cli, room, sizeof *tensors);
        if (writer->count > 0) memcpy(tensors, writer->tensors, (size_t)writer->count * sizeof *tensors);
        free(writer->tensors);
        writer->tensors = tensors;
        writer->room = room;
    }
    char *name = cli_memory(cli, (int64_t)strlen(tensor->name) + 1, 1);
    memcpy(name, tensor->name, strlen(tensor->name));
    writer->tensors[writer->count] = *tensor;
    writer->tensors[writer->count].struct_size = sizeof *tensor;
    writer->tensors[writer->count].name = name;
    return writer->count++;
}

/* Places ---------------------------------------------------------------------------------------------------------------- */

/* Bytes of a number, or 1: the wider lie first, so that all are aligned. */
static int width_of(const bsm_tensor *tensor)
{
    const int bits = bsm_tensor_type_bits((int)tensor->type);
    return bits > 8 ? bits / 8 : 1;
}

/* The tensors in the order of the file: numbers of them. */
static void order_tensors(const struct checkpoint_writer *writer, int64_t *order)
{
    int64_t used = 0;
    for (int width = 8; width >= 1; width /= 2)
        for (int64_t i = 0; i < writer->count; i++)
            if (width_of(&writer->tensors[i]) == width) order[used++] = i;
}

static int64_t padded(const struct checkpoint_writer *writer, int64_t bytes)
{
    return writer->kind == BSM_CHECKPOINT_GGUF ? (bytes + GGUF_ALIGNMENT - 1) / GGUF_ALIGNMENT * GGUF_ALIGNMENT : bytes;
}

int64_t checkpoint_writer_bytes(const struct checkpoint_writer *writer)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < writer->count; i++) bytes += padded(writer, writer->tensors[i].bytes);
    return bytes;
}

static int make_header(struct cli *cli, struct checkpoint_writer *writer, const bsm_metadata *metadata, int64_t metadata_count,
                       void **header, size_t *header_bytes)
{
    int64_t *order = cli_memory(cli, writer->count, sizeof *order);
    bsm_tensor *ordered = cli_memory(cli, writer->count, sizeof *ordered);
    order_tensors(writer, order);
    for (int64_t i = 0; i < writer->count; i++) ordered[i] = writer->tensors[order[i]];
    const bsm_status status =
        bsm_checkpoint_header(cli->context, writer->kind, ordered, writer->count, metadata, metadata_count, header, header_bytes);
    int64_t offset = (int64_t)*header_bytes;
    writer->offsets = cli_memory(cli, writer->count, sizeof *writer->offsets);
    for (int64_t i = 0; status == BSM_OK && i < writer->count; i++) {
        writer->offsets[order[i]] = offset;
        offset += padded(writer, ordered[i].bytes);
    }
    free(order);
    free(ordered);
    return status == BSM_OK ? CLI_DONE : cli_library_failed(cli, writer->output, status);
}

/* Opening --------------------------------------------------------------------------------------------------------------- */

static int check_room(struct cli *cli, const struct checkpoint_writer *writer, const char *folder, int64_t wanted)
{
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0) return CLI_DONE; /* opening the file will say why */
    const uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    if ((uint64_t)wanted <= room) return CLI_DONE;
    return cli_bad_input(cli, "%s: needs %" PRId64 " bytes, but its disk has room for %" PRIu64 "; make room and run this again",
                         writer->output, wanted, room);
}

static int find_path(struct cli *cli, struct checkpoint_writer *writer, char *folder, size_t room)
{
    const bool inside = checkpoint_writer_is_folder(writer->output);
    const char *slash = strrchr(writer->output, '/');
    if (strlen(writer->output) + 64 > sizeof writer->path) return cli_bad_input(cli, "%.64s...: too long a name", writer->output);
    snprintf(writer->path, sizeof writer->path, "%s%s", writer->output, inside ? "/model.safetensors" : "");
    if (inside) snprintf(folder, room, "%s", writer->output);
    else
        snprintf(folder, room, "%.*s", slash == NULL ? 1 : (int)(slash - writer->output) + 1, slash == NULL ? "." : writer->output);
    return inside ? cli_output_folder(cli, writer->output) : CLI_DONE;
}

int checkpoint_writer_open(struct cli *cli, struct checkpoint_writer *writer, const bsm_metadata *metadata, int64_t metadata_count)
{
    char folder[4096];
    void *header = NULL;
    size_t header_bytes = 0;
    int result = find_path(cli, writer, folder, sizeof folder);
    if (result == CLI_DONE) result = make_header(cli, writer, metadata, metadata_count, &header, &header_bytes);
    if (result == CLI_DONE) result = check_room(cli, writer, folder, (int64_t)header_bytes + checkpoint_writer_bytes(writer));
    if (result == CLI_DONE) writer->file = cli_output(cli, writer->path);
    if (result == CLI_DONE && writer->file == NULL) result = CLI_BAD_INPUT;
    errno = 0;
    if (result == CLI_DONE && fwrite(header, 1, header_bytes, writer->file) != header_bytes)
        result = cli_bad_input(cli, "%s: could not be written: %s", writer->path, strerror(errno != 0 ? errno : EIO));
    bsm_header_release(cli->context, header, header_bytes);
    return result;
}

int checkpoint_writer_put_part(struct cli *cli, struct checkpoint_writer *writer, int64_t number, int64_t at, const void *data,
                               int64_t bytes)
{
    static const char zeros[GGUF_ALIGNMENT];
    const int64_t all = writer->tensors[number].bytes;
    const size_t count = (size_t)bytes, padding = at + bytes == all ? (size_t)(padded(writer, all) - all) : 0;
    errno = 0;
    if (at < 0 || bytes < 0 || bytes > all - at)
        return cli_bad_input(cli, "%s: %" PRId64 " bytes were announced, but %" PRId64 " come", writer->tensors[number].name, all,
                             at + bytes);
    if (fseeko(writer->file, (off_t)(writer->offsets[number] + at), SEEK_SET) == 0 &&
        (count == 0 || fwrite(data, 1, count, writer->file) == count) && fwrite(zeros, 1, padding, writer->file) == padding &&
        fflush(writer->file) == 0)
        return CLI_DONE;
    return cli_bad_input(cli, "%s: could not be written: %s", writer->path, strerror(errno != 0 ? errno : EIO));
}

int checkpoint_writer_put(struct cli *cli, struct checkpoint_writer *writer, int64_t number, const void *data, int64_t bytes)
{
    return checkpoint_writer_put_part(cli, writer, number, 0, data, bytes);
}

void checkpoint_writer_free(struct checkpoint_writer *writer)
{
    for (int64_t i = 0; i < writer->count; i++) free((void *)(uintptr_t)writer->tensors[i].name);
    free(writer->tensors);
    free(writer->offsets);
    *writer = (struct checkpoint_writer){ .count = 0 };
}
