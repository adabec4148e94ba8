/* The note beside a quantized matrix: one flat JSON object, read strictly.
 *
 * Lists and objects inside are refused, and so are escapes beyond ASCII: what this command writes has none of them. */
#include "matrices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 65536 };

struct reader { const char *at; const char *wrong; };    /* wrong: what was wanted, once something is wrong */

static void skip_blanks(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r') r->at++;
}

static bool take(struct reader *r, char wanted)
{
    skip_blanks(r);
    if (*r->at != wanted) return false;
    r->at++;
    return true;
}

static bool fail(struct reader *r, const char *wanted)
{
    r->wrong = wanted;
    return false;
}

/* The character behind a backslash; 0 where it is none that is known. */
static char read_escape(struct reader *r)
{
    const char *known = "\"\\/bfnrt", *means = "\"\\/\b\f\n\r\t";
    const char c = *r->at != '\0' ? *r->at++ : '\0';
    if (c != 'u') return c != '\0' && strchr(known, c) != NULL ? means[strchr(known, c) - known] : '\0';
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", d = *r->at;
        const char *found = d != '\0' ? strchr(digits, d >= 'A' && d <= 'F' ? d - 'A' + 'a' : d) : NULL;
        if (found == NULL) return '\0';
        value = 16 * value + (int)(found - digits);
        r->at++;
    }
    return value < 0x80 ? (char)value : '\0';
}

static bool read_text(struct reader *r, char *into, size_t room)
{
    size_t used = 0;
    if (!take(r, '"')) return fail(r, "a text in double quotes");
    while (*r->at != '"') {
        if ((unsigned char)*r->at < 0x20) return fail(r, "a closing quote");
        char c = *r->at++;
        if (c == '\\' && (c = read_escape(r)) == '\0') return fail(r, "an escape of ASCII");
        if (used + 1 >= room) return fail(r, "a shorter text");
        into[used++] = c;
    }
    into[used] = '\0';
    r->at++;
    return true;
}

/* A number, true, false or null: kept as its letters. */
static bool read_word(struct reader *r, char *into, size_t room)
{
    skip_blanks(r);
    const size_t length = strspn(r->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    if (length == 0 || length >= room) return fail(r, "a text or a number");
    memcpy(into, r->at, length);
    into[length] = '\0';
    r->at += length;
    return true;
}

static const struct cli_note_entry *find(const struct cli_note *note, const char *key)
{
    for (int i = 0; i < note->count; i++)
        if (strcmp(note->entries[i].key, key) == 0) return &note->entries[i];
    return NULL;
}

static bool read_entry(struct reader *r, struct cli_note *note)
{
    if (note->count == CLI_NOTE_ENTRIES) return fail(r, "fewer entries");
    struct cli_note_entry *entry = &note->entries[note->count];
    if (!read_text(r, entry->key, sizeof entry->key)) return false;
    if (find(note, entry->key) != NULL) return fail(r, "every key once");
    if (!take(r, ':')) return fail(r, "':'");
    skip_blanks(r);
    entry->is_text = *r->at == '"';
    if (!(entry->is_text ? read_text(r, entry->value, sizeof entry->value) : read_word(r, entry->value, sizeof entry->value)))
        return false;
    note->count++;
    return true;
}

static bool read_object(struct reader *r, struct cli_note *note)
{
    if (!take(r, '{')) return fail(r, "'{'");
    if (!take(r, '}'))
        do {
            if (!read_entry(r, note)) return false;
            if (take(r, '}')) break;
        } while (take(r, ',') || fail(r, "',' or '}'"));
    if (r->wrong != NULL) return false;
    skip_blanks(r);
    return *r->at == '\0' || fail(r, "the end");
}

/* The whole file with a zero byte behind it. */
static int read_bytes(struct cli *cli, const char *path, char *text)
{
    errno = 0;
    FILE *file = fopen(path, "r");
    const size_t bytes = file != NULL ? fread(text, 1, MOST_BYTES, file) : 0;
    const bool failed = file == NULL || ferror(file);
    const int reason = errno;
    if (file != NULL) fclose(file);
    if (failed) return cli_bad_input(cli, "%s: cannot be read: %s", path, strerror(reason));
    cli_input(path);
    if (bytes == MOST_BYTES) return cli_bad_input(cli, "%s: is no note: a note has fewer than %d bytes", path, MOST_BYTES);
    text[bytes] = '\0';
    if (strlen(text) != bytes) return cli_bad_input(cli, "%s: byte %zu is a NUL; a note is JSON", path, strlen(text));
    return CLI_DONE;
}

int cli_note_read(struct cli *cli, const char *path, struct cli_note *note)
{
    char *text = cli_memory(cli, MOST_BYTES + 1, 1);
    *note = (struct cli_note){ .path = path };
    int result = read_bytes(cli, path, text);
    struct reader r = { text, NULL };
    if (result == CLI_DONE && !read_object(&r, note))
        result = cli_bad_input(cli, "%s: byte %d: %s is wanted", path, (int)(r.at - text), r.wrong);
    free(text);
    return result;
}

const char *cli_note_text(const struct cli_note *note, const char *key)
{
    const struct cli_note_entry *entry = find(note, key);
    return entry != NULL && entry->is_text ? entry->value : NULL;
}

bool cli_note_size(const struct cli_note *note, const char *key, int64_t *value)
{
    const struct cli_note_entry *entry = find(note, key);
    if (entry == NULL || entry->is_text || strspn(entry->value, "0123456789") != strlen(entry->value)) return false;
    errno = 0;
    *value = strtoll(entry->value, NULL, 10);
    return errno == 0;
}
