/* The note beside a quantized matrix: one flat JSON object.  Lists and objects inside are refused. */
#include "cli/io/json_file.h"
#include "note.h"

#include <string.h>

enum { MOST_BYTES = 65535 };

static const struct cli_note_entry *find(const struct cli_note *note, const char *key)
{
    for (int i = 0; i < note->count; i++)
        if (strcmp(note->entries[i].key, key) == 0) return &note->entries[i];
    return NULL;
}

/* A text of fewer than `room` bytes, none of them NUL. */
static bool copy_text(yyjson_val *value, char *into, size_t room)
{
    const size_t length = yyjson_get_len(value);
    if (length >= room || strlen(yyjson_get_str(value)) != length) return false;
    memcpy(into, yyjson_get_str(value), length + 1);
    return true;
}

static int read_entry(struct cli *cli, yyjson_val *key, yyjson_val *value, struct cli_note *note)
{
    const char *name = yyjson_get_str(key);
    struct cli_note_entry *entry = &note->entries[note->count];
    if (note->count == CLI_NOTE_ENTRIES)
        return cli_bad_input(cli, "%s: is no note: a note has at most %d entries", note->path, CLI_NOTE_ENTRIES);
    if (!copy_text(key, entry->key, sizeof entry->key))
        return cli_bad_input(cli, "%s: \"%.64s\": no key of a note has a NUL, or more than %zu bytes", note->path, name,
                             sizeof entry->key - 1);
    if (find(note, entry->key) != NULL) return cli_bad_input(cli, "%s: \"%s\" is there twice", note->path, name);
    if (yyjson_is_ctn(value))
        return cli_bad_input(cli, "%s: \"%s\" is a list or an object: a text or a number is wanted", note->path, name);
    entry->is_text = yyjson_is_str(value);
    entry->size = yyjson_is_uint(value) && yyjson_get_uint(value) <= INT64_MAX ? (int64_t)yyjson_get_uint(value) : -1;
    entry->text[0] = '\0';
    if (entry->is_text && !copy_text(value, entry->text, sizeof entry->text))
        return cli_bad_input(cli, "%s: \"%s\": no text of a note has a NUL, or more than %zu bytes", note->path, name,
                             sizeof entry->text - 1);
    note->count++;
    return CLI_DONE;
}

static int read_entries(struct cli *cli, yyjson_val *top, struct cli_note *note)
{
    yyjson_val *key, *value;
    size_t i, count;
    int result = CLI_DONE;
    if (!yyjson_is_obj(top)) return cli_bad_input(cli, "%s: is no note: a JSON object is wanted", note->path);
    yyjson_obj_foreach(top, i, count, key, value)
        if (result == CLI_DONE) result = read_entry(cli, key, value, note);
    return result;
}

int cli_note_read(struct cli *cli, const char *path, struct cli_note *note)
{
    yyjson_doc *document;
    *note = (struct cli_note){ .path = path };
    int result = json_file_read(cli, path, "note", MOST_BYTES, &document);
    if (result == CLI_DONE) result = read_entries(cli, yyjson_doc_get_root(document), note);
    yyjson_doc_free(document);
    return result;
}

const char *cli_note_text(const struct cli_note *note, const char *key)
{
    const struct cli_note_entry *entry = find(note, key);
    return entry != NULL && entry->is_text ? entry->text : NULL;
}

bool cli_note_size(const struct cli_note *note, const char *key, int64_t *value)
{
    const struct cli_note_entry *entry = find(note, key);
    if (entry == NULL || entry->size < 0) return false;
    *value = entry->size;
    return true;
}
