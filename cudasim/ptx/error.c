/* Errors of the reader: where, the line, a caret. */
#include "ptx/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_COLUMNS = 160 };

const char *ptx_source_line(const struct module *module, uint32_t line, size_t *length)
{
    const char *at = module->text, *end = module->text + module->length;
    for (uint32_t i = 1; i < line && at < end; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        at = stop == NULL ? end : stop + 1;
    }
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) stop = end;
    if (stop > at && stop[-1] == '\r') stop--;
    *length = (size_t)(stop - at);
    return at;
}

static char printable(char c) { return c == '\t' || ((unsigned char)c >= 0x20 && (unsigned char)c != 0x7f) ? c : '?'; }

/* The line, cut around the column if it is long, and a caret below the column; tabs stay tabs so that the caret is in
 * place. */
static void show_line(const struct reader *r, struct ptx_error *error, size_t used)
{
    size_t length;
    const char *line = ptx_source_line(r->module, error->line, &length);
    const size_t column = error->column - 1 < length ? error->column - 1 : length;
    const size_t first = column > SHOWN_COLUMNS - 20 ? column - (SHOWN_COLUMNS - 20) : 0;
    const size_t last = length - first > SHOWN_COLUMNS ? first + SHOWN_COLUMNS : length;
    char *at = error->text + used;
    const char *stop = error->text + sizeof error->text - 2;
    for (size_t i = first; i < last && at < stop; i++) *at++ = printable(line[i]);
    *at++ = '\n';
    for (size_t i = first; i < column && at < stop; i++) *at++ = line[i] == '\t' ? '\t' : ' ';
    if (at < stop) *at++ = '^';
    *at = '\0';
}

__attribute__((format(printf, 4, 0)))
static void fail(struct reader *r, uint32_t line, uint32_t column, const char *format, va_list arguments)
{
    if (r->failed) return;
    r->failed = true;
    r->token.kind = TOKEN_END;
    if (r->error == NULL) return;
    struct ptx_error *error = r->error;
    error->line = line;
    error->column = column;
    vsnprintf(error->sentence, sizeof error->sentence, format, arguments);
    const int used =
        snprintf(error->text, sizeof error->text, "%.200s:%u:%u: error: %s\n", r->name, line, column, error->sentence);
    show_line(r, error, (size_t)used);
}

void reader_fail_at(struct reader *r, uint32_t line, uint32_t column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(r, line, column, format, arguments);
    va_end(arguments);
}

void reader_fail(struct reader *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(r, r->token.line, r->token.column, format, arguments);
    va_end(arguments);
}
