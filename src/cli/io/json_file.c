/* JSON files, see json_file.h. */
#include "json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_kind(struct cli *cli, const char *path, const char *what, int64_t most, const struct stat *facts)
{
    if (S_ISDIR(facts->st_mode)) return cli_bad_input(cli, "%s: is a directory, not a file", path);
    if (!S_ISREG(facts->st_mode)) return cli_bad_input(cli, "%s: is no regular file; its size must be known", path);
    if (facts->st_size <= most) return CLI_DONE;
    return cli_bad_input(cli, "%s: is no %s: it has %lld bytes, and a %s has at most %" PRId64, path, what,
                         (long long)facts->st_size, what, most);
}

static int read_all(struct cli *cli, const char *path, int descriptor, char *text, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = read(descriptor, text + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cli_bad_input(cli, "%s: cannot be read: %s", path, strerror(errno));
        if (got == 0) return cli_bad_input(cli, "%s: became shorter while it was read", path);
        done += (size_t)got;
    }
    return CLI_DONE;
}

static int read_text(struct cli *cli, const char *path, const char *what, int64_t most, char **text, size_t *bytes)
{
    struct stat facts;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return cli_bad_input(cli, "%s: cannot be read: %s", path, strerror(errno));
    int result = fstat(descriptor, &facts) == 0 ? check_kind(cli, path, what, most, &facts)
                                                : cli_bad_input(cli, "%s: cannot be read: %s", path, strerror(errno));
    if (result == CLI_DONE) {
        cli_input(path);
        *bytes = (size_t)facts.st_size;
        *text = cli_memory(cli, facts.st_size + 1, 1);
        result = read_all(cli, path, descriptor, *text, *bytes);
    }
    close(descriptor);
    return result;
}

int json_file_depth(const char *text, size_t bytes)
{
    int depth = 0, deepest = 0;
    bool inside = false;
    for (size_t i = 0; i < bytes; i++) {
        if (inside && text[i] == '\\') i++;
        else if (text[i] == '"') inside = !inside;
        else if (inside) continue;
        else if ((text[i] == '[' || text[i] == '{') && ++depth > deepest) deepest = depth;
        else if (text[i] == ']' || text[i] == '}') depth--;
    }
    return deepest;
}

static int parse(struct cli *cli, const char *path, char *text, size_t bytes, yyjson_doc **document)
{
    yyjson_read_err error = { 0 };
    const yyjson_alc memory = cli_yyjson_memory(cli);
    const int depth = json_file_depth(text, bytes);
    if (depth > JSON_FILE_DEPTH)
        return cli_bad_input(cli, "%s: has lists and objects %d deep in one another; read are up to %d", path, depth,
                             JSON_FILE_DEPTH);
    *document = yyjson_read_opts(text, bytes, YYJSON_READ_NOFLAG, &memory, &error);
    return *document != NULL ? CLI_DONE : cli_bad_input(cli, "%s: byte %zu is no JSON: %s", path, error.pos, error.msg);
}

int json_file_read(struct cli *cli, const char *path, const char *what, int64_t most, yyjson_doc **document)
{
    char *text = NULL;
    size_t bytes = 0;
    *document = NULL;
    int result = read_text(cli, path, what, most, &text, &bytes);
    if (result == CLI_DONE) result = parse(cli, path, text, bytes, document);
    free(text);
    return result;
}
