/* Debug lines: .file and .loc are kept, sections of debug data are passed over. */
#include "ptx/reader.h"

#include <stdlib.h>

enum { MAX_FILES = 1 << 16 };

/* .file 1 "name" [, timestamp, size] */
static void read_file(struct reader *r)
{
    struct module *m = r->module;
    token_next(r);
    const uint32_t number = (uint32_t)read_integer(r, "the number of a file", 0, MAX_FILES - 1);
    if (r->token.kind != TOKEN_STRING) {
        reader_fail(r, "the name of the file should stand here, in quotes");
        return;
    }
    if (number >= m->file_count) {
        const char **larger = realloc(m->files, (number + 1) * sizeof *larger);
        if (larger == NULL) {
            reader_fail(r, "no memory for the file names of this module");
            return;
        }
        for (uint32_t i = m->file_count; i <= number; i++) larger[i] = "";
        m->files = larger;
        m->file_count = number + 1;
    }
    const char *name = arena_string(&m->arena, r->token.text + 1, r->token.length - 2);
    if (name != NULL) m->files[number] = name;
    token_next(r);
    while (token_take(r, ',')) read_integer(r, "a number", 0, INT64_MAX);
}

/* function_name $L__info_string0 [+ offset], inlined_at 1 619 19 */
static uint32_t read_inlined(struct reader *r)
{
    while (token_take(r, ',')) {
        if (token_is_name(r, "function_name")) {
            token_next(r);
            uint32_t length;
            token_expect_name(r, "a label", &length);
            if (token_take(r, '+')) read_integer(r, "an offset", 0, INT32_MAX);
        } else if (token_is_name(r, "inlined_at")) {
            token_next(r);
            for (int i = 0; i < 3; i++) read_integer(r, "a number", 0, INT32_MAX);
        } else {
            reader_fail(r, "function_name or inlined_at should stand here");
        }
    }
    return 0;
}

/* .loc FILE LINE COLUMN */
static void read_location(struct reader *r)
{
    struct module *m = r->module;
    token_next(r);
    struct location l = { 0 };
    l.file = (uint32_t)read_integer(r, "the number of a file", 0, MAX_FILES - 1);
    l.line = (uint32_t)read_integer(r, "a line", 0, INT32_MAX);
    l.column = (uint32_t)read_integer(r, "a column", 0, INT32_MAX);
    l.inlined = read_inlined(r);
    if (m->location_count == 0) m->location_count = 1;
    if (!reader_grow(r, (void **)&m->locations, m->location_count, &r->location_capacity, sizeof *m->locations,
                     1u << 24, "debug lines"))
        return;
    m->locations[m->location_count] = l;
    r->location = m->location_count++;
}

/* .section .debug_info { ... } */
static void skip_section(struct reader *r)
{
    token_next(r);
    if (r->token.kind != TOKEN_WORD) {
        reader_fail(r, "the name of the section should stand here");
        return;
    }
    token_next(r);
    token_expect(r, '{');
    for (int depth = 1; depth > 0 && !r->failed;) {
        if (r->token.kind == TOKEN_END) {
            reader_fail(r, "the text ends inside a section");
            return;
        }
        depth += token_is(r, '{') ? 1 : token_is(r, '}') ? -1 : 0;
        token_next(r);
    }
}

bool read_debug(struct reader *r)
{
    if (token_is_word(r, ".loc")) read_location(r);
    else if (token_is_word(r, ".file")) read_file(r);
    else if (token_is_word(r, ".section")) skip_section(r);
    else return false;
    return true;
}
