/* The PTX text of one instruction.  The reader keeps lines only: where a line has several statements, they are
 * counted. */
#include "statement.h"

#include <ctype.h>
#include <string.h>

uint32_t statement_on_line(const struct module *module, uint32_t pc, uint32_t *of)
{
    const uint32_t line = module->code[pc].line;
    uint32_t first = pc, end = pc + 1;
    while (first > 0 && module->code[first - 1].line == line) first--;
    while (end < module->code_count && module->code[end].line == line) end++;
    if (of != NULL) *of = end - first;
    return pc - first + 1;
}

static const char *skip_comment(const char *at, const char *end)
{
    if (at[1] == '/') {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        return stop == NULL ? end : stop;
    }
    for (at += 2; at + 1 < end; at++)
        if (at[0] == '*' && at[1] == '/') return at + 2;
    return end;
}

static bool is_comment(const char *at, const char *end)
{
    return at + 1 < end && at[0] == '/' && (at[1] == '/' || at[1] == '*');
}

/* Behind blanks, braces and comments that stand before a statement. */
static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end) {
        if (is_comment(at, end)) at = skip_comment(at, end);
        else if (isspace((unsigned char)*at) || *at == '{' || *at == '}' || *at == ';') at++;
        else break;
    }
    return at;
}

/* Behind "NAME:", or where it is if there is no label. */
static const char *skip_label(const char *at, const char *end)
{
    const char *p = at;
    while (p < end && (isalnum((unsigned char)*p) || *p == '_' || *p == '$' || *p == '%')) p++;
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    return p > at && p < end && *p == ':' && (p + 1 == end || p[1] != ':') ? p + 1 : at;
}

/* Directives end with a semicolon (.reg) or with their line (.loc, .entry). */
static const char *directive_end(const char *at, const char *end)
{
    while (at < end && *at != ';' && *at != '\n') at++;
    return at;
}

static const char *statement_end(const char *at, const char *end)
{
    while (at < end && *at != ';') at = is_comment(at, end) ? skip_comment(at, end) : at + 1;
    return at;
}

/* The number-th instruction that begins on the line, or NULL. */
static const char *find(const char *line, const char *line_end, const char *end, uint32_t number)
{
    const char *at = line;
    for (;;) {
        const char *before;
        do {
            before = at;
            at = skip_label(skip_blanks(at, end), end);
        } while (at != before);
        if (at >= line_end) return NULL;
        if (*at == '.') {
            at = directive_end(at, end);
        } else {
            if (--number == 0) return at;
            at = statement_end(at, end);
        }
    }
}

void statement_text(const struct module *module, uint32_t pc, char *buffer, size_t size)
{
    size_t length;
    const char *line = ptx_source_line(module, module->code[pc].line, &length);
    const char *end = module->text + module->length;
    const char *at = find(line, line + length, end, statement_on_line(module, pc, NULL));
    const char *stop = at == NULL ? line + length : statement_end(at, end);
    if (at == NULL) at = line;
    size_t used = 0;
    bool blank = false;
    while (at < stop && used + 2 < size) {
        if (is_comment(at, stop)) {
            at = skip_comment(at, stop);
            continue;
        }
        if (isspace((unsigned char)*at)) {
            blank = used != 0;
        } else {
            if (blank) buffer[used++] = ' ';
            blank = false;
            buffer[used++] = *at;
        }
        at++;
    }
    buffer[used] = '\0';
}

void statement_name(const struct module *module, uint32_t pc, char *buffer, size_t size)
{
    char text[STATEMENT_BYTES];
    statement_text(module, pc, text, sizeof text);
    const char *at = text;
    if (*at == '@') {
        while (*at != '\0' && *at != ' ') at++;
        while (*at == ' ') at++;
    }
    size_t used = 0;
    while (at[used] != '\0' && at[used] != ' ' && used + 1 < size) buffer[used] = at[used], used++;
    buffer[used] = '\0';
}
