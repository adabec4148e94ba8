/* The command line of a verb. */
#include "tools/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int bad_input(const char *format, ...)
{
    va_list arguments;
    fputs("cudasim: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return EXIT_BAD_INPUT;
}

/* Pipes and devices are read as far as this. */
static const size_t most_endless = (size_t)1 << 28;

static bool is_ordinary(FILE *file)
{
    struct stat s;
    return fstat(fileno(file), &s) == 0 && S_ISREG(s.st_mode);
}

char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rbe");
    size_t capacity = 1 << 16;
    char *text = file == NULL ? NULL : malloc(capacity + 1);
    *bytes = 0;
    for (size_t got; text != NULL && (got = fread(text + *bytes, 1, capacity - *bytes, file)) != 0;) {
        *bytes += got;
        if (*bytes < capacity) continue;
        if (capacity >= most_endless && !is_ordinary(file)) {
            bad_input("%s: no ordinary file, and longer than %zu MiB", path, most_endless >> 20);
            free(text);
            fclose(file);
            return NULL;
        }
        char *larger = realloc(text, 2 * (capacity *= 2) + 1);
        if (larger == NULL) free(text);
        text = larger;
    }
    if (text == NULL || ferror(file) != 0) {
        bad_input("%s: %s", path, strerror(errno));
        free(text);
        text = NULL;
    } else {
        text[*bytes] = '\0';
    }
    if (file != NULL) fclose(file);
    return text;
}

/* ---- values ---- */

static bool is_positional(const struct option *o) { return o->name[0] != '-'; }
static bool takes_value(const struct option *o) { return o->kind != OPTION_FLAG && o->kind != OPTION_MAYBE_TEXT; }

/* A number without a sign; decimal, or hexadecimal with 0x. */
static bool read_number(const char *text, uint64_t low, uint64_t high, uint64_t *value, char **end)
{
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *value = strtoull(text, end, text[1] == 'x' ? 16 : 10);
    return errno == 0 && *value >= low && *value <= high;
}

static bool read_extent(const char *text, uint64_t high, struct extent *extent)
{
    *extent = (struct extent){ { 1, 1, 1 }, true };
    for (int i = 0; i < 3; i++) {
        char *end;
        uint64_t value;
        if (!read_number(text, 1, high, &value, &end)) return false;
        extent->x[i] = (uint32_t)value;
        if (*end == '\0') return true;
        if (*end != ',') return false;
        text = end + 1;
    }
    return false;
}

static int store(const struct option *o, const char *text, void *settings)
{
    char *at = (char *)settings + o->offset, *end;
    struct text_list *list = (struct text_list *)(void *)at;
    switch (o->kind) {
    case OPTION_FLAG: *(bool *)at = true; return EXIT_DONE;
    case OPTION_TEXT:
    case OPTION_MAYBE_TEXT: *(const char **)(void *)at = text; return EXIT_DONE;
    case OPTION_NUMBER:
        if (read_number(text, o->low, o->high, (uint64_t *)(void *)at, &end) && *end == '\0') return EXIT_DONE;
        return bad_input("%s %s: must be a number from %llu to %llu", o->name, text, (unsigned long long)o->low,
                         (unsigned long long)o->high);
    case OPTION_EXTENT:
        if (read_extent(text, o->high, (struct extent *)(void *)at)) return EXIT_DONE;
        return bad_input("%s %s: must be X, X,Y or X,Y,Z, each from 1 to %llu", o->name, text,
                         (unsigned long long)o->high);
    case OPTION_LIST:
    case OPTION_FILES:
        if (list->count == LIST_MOST) return bad_input("%s %s: more than %d of them", o->name, text, LIST_MOST);
        list->item[list->count++] = text;
        return EXIT_DONE;
    }
    return EXIT_BAD_INPUT;
}

/* ---- arguments ---- */

enum { OPTIONS_MOST = 64 };

/* Option `number` of the verb, the shared ones first; NULL behind the last. */
static const struct option *option_at(const struct verb *verb, int number)
{
    for (const struct option *o = verb->shared; o != NULL && o->name != NULL; o++)
        if (number-- == 0) return o;
    for (const struct option *o = verb->options; o->name != NULL; o++)
        if (number-- == 0) return o;
    return NULL;
}

/* Which options were given. */
struct seen {
    const struct option *option[OPTIONS_MOST];
    int count;
};

static bool was_seen(const struct seen *seen, const struct option *o)
{
    for (int i = 0; i < seen->count; i++)
        if (seen->option[i] == o) return true;
    return false;
}

static const struct option *find(const struct verb *verb, const char *text, size_t length)
{
    const struct option *o;
    for (int i = 0; (o = option_at(verb, i)) != NULL; i++)
        if (!is_positional(o) && strlen(o->name) == length && memcmp(o->name, text, length) == 0) return o;
    return NULL;
}

static int store_once(const struct option *o, const char *text, void *settings, struct seen *seen)
{
    const bool before = was_seen(seen, o);
    if (before && o->kind != OPTION_LIST && o->kind != OPTION_FILES) return bad_input("%s: given twice", o->name);
    if (!before) seen->option[seen->count++] = o;
    return store(o, text, settings);
}

static int store_positional(const struct verb *verb, const char *text, void *settings, struct seen *seen)
{
    const struct option *o;
    for (int i = 0; (o = option_at(verb, i)) != NULL; i++)
        if (is_positional(o) && (!was_seen(seen, o) || o->kind == OPTION_FILES))
            return store_once(o, text, settings, seen);
    return bad_input("%s: one argument too many; `cudasim %s --help` lists what there is", text, verb->name);
}

/* *used: how many arguments it took. */
static int parse_option(const struct verb *verb, int count, char **arguments, void *settings, struct seen *seen,
                        int *used)
{
    const char *text = arguments[0], *equals = strchr(text, '=');
    const size_t length = equals == NULL ? strlen(text) : (size_t)(equals - text);
    const struct option *o = find(verb, text, length);
    *used = 1;
    if (o == NULL)
        return bad_input("%.*s: no option of `cudasim %s`; --help lists them", (int)length, text, verb->name);
    if (!takes_value(o)) {
        if (equals != NULL && o->kind == OPTION_FLAG) return bad_input("%s: takes no value", o->name);
        return store_once(o, equals == NULL ? "" : equals + 1, settings, seen);
    }
    if (equals == NULL && count < 2) return bad_input("%s: needs a value, %s", o->name, o->value);
    if (equals == NULL) *used = 2;
    return store_once(o, equals == NULL ? arguments[1] : equals + 1, settings, seen);
}

static int check_required(const struct verb *verb, const struct seen *seen)
{
    const struct option *o;
    for (int i = 0; (o = option_at(verb, i)) != NULL; i++)
        if (o->required && !was_seen(seen, o))
            return bad_input("%s%s%s is missing; `cudasim %s --help` lists what there is", o->name,
                             is_positional(o) ? "" : " ", is_positional(o) ? "" : o->value, verb->name);
    return EXIT_DONE;
}

int options_parse(const struct verb *verb, int count, char **arguments, void *settings, char ***rest)
{
    struct seen seen = { .count = 0 };
    int status = EXIT_DONE;
    *rest = NULL;
    for (int i = 0; i < count && status == EXIT_DONE;) {
        int used = 1;
        if (strcmp(arguments[i], "--") == 0) {
            *rest = arguments + i + 1;
            break;
        }
        if (arguments[i][0] == '-' && arguments[i][1] != '\0')
            status = parse_option(verb, count - i, arguments + i, settings, &seen, &used);
        else status = store_positional(verb, arguments[i], settings, &seen);
        i += used;
        if (verb->ends_options != NULL && arguments[i - used][0] != '-' && verb->ends_options(arguments[i - used])) {
            *rest = arguments + i;
            break;
        }
    }
    return status == EXIT_DONE ? check_required(verb, &seen) : status;
}

/* ---- help ---- */

enum { HELP_INDENT = 30, HELP_WIDTH = 110 };

/* Words, wrapped, in lines that begin at column `indent`; the first line has come to `column` already. */
static void wrapped(FILE *file, const char *text, int indent, int column)
{
    while (*text != '\0') {
        const int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > HELP_WIDTH) {
            fputc('\n', file);
            column = 0;
        } else if (column > indent) {
            fputc(' ', file);
            column++;
        }
        if (column < indent) fprintf(file, "%*s", indent - column, ""), column = indent;
        fprintf(file, "%.*s", length, text);
        column += length;
        text += length;
        if (*text != '\0') text++;
    }
    fputc('\n', file);
}

/* Paragraphs are wrapped; lines that begin with a blank stay as they are. */
static void about(FILE *file, const char *text)
{
    while (*text != '\0') {
        char line[1024];
        const size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (*text == ' ') fprintf(file, "%s\n", line);
        else wrapped(file, line, 0, 0);
        text += length + (text[length] == '\n');
    }
    fputc('\n', file);
}

void options_help(const struct verb *verb, FILE *file)
{
    fprintf(file, "usage: cudasim %s %s\n\n", verb->name, verb->usage);
    about(file, verb->about);
    const struct option *o;
    for (int i = 0; (o = option_at(verb, i)) != NULL; i++) {
        int used = fprintf(file, "  %s", o->name);
        if (o->kind == OPTION_MAYBE_TEXT) used += fprintf(file, "[=%s]", o->value);
        else if (takes_value(o) && !is_positional(o)) used += fprintf(file, " %s", o->value);
        if (used >= HELP_INDENT - 1) {
            fputc('\n', file);
            used = 0;
        }
        wrapped(file, o->help, HELP_INDENT, used);
    }
    fputs("\nExit status: 0 done, 1 a report (for mutate: survivors), 2 bad input.\n", file);
}
