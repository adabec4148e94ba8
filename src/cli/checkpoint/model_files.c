/* The other files of a model's folder, see model_files.h. */
#include "model_files.h"
#include "cli/io/mask.h"
#include "cli/matrices/matrices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 100, MOST_BYTES = 64 << 20, CHUNK = 65536 };

/* Weights in all their spellings, and what is written anew. */
static const char *const weights[] = { ".safetensors", ".index.json", ".gguf", ".bin",    ".pt",  ".pth", ".ckpt", ".h5",
                                       ".msgpack",     ".onnx",       ".ot",   ".tflite", ".npy", ".npz", ".pkl" };
static const char *const configurations[] = { "config.json", "hf_quant_config.json" };

static bool is_wanted(const char *name)
{
    if (name[0] == '.') return false;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        if (cli_ends_with(name, weights[i])) return false;
    for (size_t i = 0; i < sizeof configurations / sizeof configurations[0]; i++)
        if (strcmp(name, configurations[i]) == 0) return false;
    return true;
}

int model_folder_of(struct cli *cli, const char *input, struct model_folder *folder)
{
    struct stat there;
    const char *slash = strrchr(input, '/');
    if (stat(input, &there) != 0) return cli_bad_input(cli, "%s: cannot be read: %s", input, strerror(errno));
    const bool inside = S_ISDIR(there.st_mode);
    const int length = inside ? (int)strlen(input) : slash == NULL ? 1 : slash == input ? 1 : (int)(slash - input);
    snprintf(folder->path, sizeof folder->path, "%.*s", length, inside || slash != NULL ? input : ".");
    return CLI_DONE;
}

/* Listing ------------------------------------------------------------------------------------------------------------------ */

static char *copy_of(const struct cli *cli, const char *text)
{
    char *copy = cli_memory(cli, (int64_t)strlen(text) + 1, 1);
    memcpy(copy, text, strlen(text));
    return copy;
}

/* Files that are copied, and what is left. */
static void sort_entry(const struct cli *cli, const char *folder, const char *name, struct model_files *files)
{
    char path[4096 + 256];
    struct stat there;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!is_wanted(name) || stat(path, &there) != 0) return;
    const bool regular = S_ISREG(there.st_mode), copied = regular && there.st_size <= MOST_BYTES;
    if (copied) files->names[files->count++] = copy_of(cli, name);
    else if (regular || S_ISDIR(there.st_mode)) files->left[files->left_count++] = copy_of(cli, name);
}

static bool is_model_folder(const char *folder)
{
    char path[4096 + 64];
    struct stat there;
    snprintf(path, sizeof path, "%s/config.json", folder);
    return stat(path, &there) == 0 && S_ISREG(there.st_mode);
}

static bool are_same(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int list(struct cli *cli, const char *folder, struct model_files *files)
{
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) return cli_bad_input(cli, "%s: cannot be listed: %s", folder, strerror(errno));
    files->names = cli_memory(cli, count + 1, sizeof *files->names);
    files->left = cli_memory(cli, count + 1, sizeof *files->left);
    for (int i = 0; i < count; i++) sort_entry(cli, folder, entries[i]->d_name, files);
    for (int i = 0; i < count; i++) free(entries[i]);
    free(entries);
    return CLI_DONE;
}

/* Copying ------------------------------------------------------------------------------------------------------------------ */

static int copy_bytes(struct cli *cli, int from, const char *from_path, FILE *to, const char *to_path)
{
    char chunk[CHUNK];
    ssize_t got;
    errno = 0;
    while ((got = read(from, chunk, sizeof chunk)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cli_bad_input(cli, "%s: cannot be read: %s", from_path, strerror(errno));
        if (fwrite(chunk, 1, (size_t)got, to) != (size_t)got) break;
    }
    if (got == 0 && fflush(to) == 0) return CLI_DONE;
    return cli_bad_input(cli, "%s: could not be written: %s", to_path, strerror(errno != 0 ? errno : EIO));
}

static int copy_file(struct cli *cli, const char *folder, const char *output, const char *name)
{
    char from_path[4096 + 256], to_path[4096 + 256];
    struct stat facts;
    snprintf(from_path, sizeof from_path, "%s/%s", folder, name);
    snprintf(to_path, sizeof to_path, "%s/%s", output, name);
    const int from = open(from_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (from < 0) return cli_bad_input(cli, "%s: cannot be read: %s", from_path, strerror(errno));
    int result = CLI_BAD_INPUT;
    if (fstat(from, &facts) != 0 || !S_ISREG(facts.st_mode))
        result = cli_bad_input(cli, "%s: is no regular file any more", from_path);
    else {
        cli_input(from_path);
        FILE *to = cli_output(cli, to_path);
        if (to != NULL) result = copy_bytes(cli, from, from_path, to, to_path);
    }
    close(from);
    return result;
}

int model_files_copy(struct cli *cli, const char *input, const char *output, struct model_files *files)
{
    struct model_folder folder;
    *files = (struct model_files){ .count = 0 };
    int result = model_folder_of(cli, input, &folder);
    if (result != CLI_DONE || !is_model_folder(folder.path) || are_same(folder.path, output)) return result;
    result = list(cli, folder.path, files);
    if (files->count > MOST_FILES) {
        cli_note(cli, "the %d other files of %s are not copied: more than %d", files->count, folder.path, MOST_FILES);
        model_files_free(files);
    }
    for (int i = 0; result == CLI_DONE && i < files->count; i++) result = copy_file(cli, folder.path, output, files->names[i]);
    return result;
}

void model_files_free(struct model_files *files)
{
    for (int i = 0; i < files->count; i++) free(files->names[i]);
    for (int i = 0; i < files->left_count; i++) free(files->left[i]);
    free(files->names);
    free(files->left);
    *files = (struct model_files){ .count = 0 };
}

/* Reports ------------------------------------------------------------------------------------------------------------------ */

static void print_names(const char *what, char **names, int count)
{
    if (count == 0) return;
    printf("%s", what);
    for (int i = 0; i < count; i++) {
        char name[256 + 1];
        snprintf(name, sizeof name, "%s", names[i]);
        mask_text(name);
        printf("%s %s", i > 0 ? "," : "", name);
    }
    printf("\n");
}

void model_files_print(const struct model_files *files)
{
    print_names("copied:", files->names, files->count);
    print_names("not copied (folders, or more than 64 MiB):", files->left, files->left_count);
}

void model_files_print_json(struct cli_json *json, const struct model_files *files)
{
    cli_json_array(json, "copied");
    for (int i = 0; i < files->count; i++) cli_json_text(json, NULL, files->names[i]);
    cli_json_end(json);
}
